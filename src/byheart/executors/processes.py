"""An executor that runs jobs in several processes of this machine, each with one thread."""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Self

from byheart.closed import safe_module_path
from byheart.executors.job import RETRIES, Job, JobOutcome, run_job
from byheart.files.memory import USABLE_SHARE, available
from byheart.progress import Report


class Processes:
    """An executor with ``workers`` processes (default: one per core), each with one thread and one job at a time.

    ``shared`` is sent to each process once. A process that dies, for instance of too little memory, loses only its own
    job and is replaced. All processes end with this one, even if it is killed.

    A new process imports the program that runs here: a script of your own has to start its work behind
    ``if __name__ == "__main__":``.
    """

    def __init__(self, *shared: Any, workers: int | None = None, retries: int = RETRIES) -> None:
        self._shared, self._retries = pickle.dumps(shared, pickle.HIGHEST_PROTOCOL), retries
        self.workers = self.slots = workers or count_cores()
        self.memory: int | None = int(USABLE_SHARE * available())
        self._context = multiprocessing.get_context("spawn")
        self._idle: list[_Process] = []
        self._busy: dict[Connection, _Process] = {}

    def start(self, job: Job) -> None:
        """Send a job to an idle process, or to a new one."""
        self._send(job, 0)

    def _send(self, job: Job, losses: int) -> None:
        process = self._idle.pop() if self._idle else None
        if process is None or not process.is_alive():
            process = _Process(self._context, self._shared)
        process.send(job, losses)
        self._busy[process.pipe] = process

    def wait(self, report: Report | None) -> tuple[Job, JobOutcome]:
        """Wait until a process answers or dies. A job that was lost too often, or is divisible, is reported as lost."""
        while True:
            pipe = wait([*self._busy])[0]
            assert isinstance(pipe, Connection)
            process = self._busy[pipe]
            answer = process.receive()
            if not isinstance(answer, JobOutcome):
                if report is not None:
                    report(*answer)
                continue
            del self._busy[pipe]
            if process.is_alive():
                self._idle.append(process)
            if answer.lost and process.losses < self._retries and not process.job.divisible:
                self._send(process.job, process.losses + 1)
                continue
            return process.job, answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self._idle, *self._busy.values()):
            process.stop()


def count_cores() -> int:
    """Return the number of cores that this process may use, where the system tells, or else those of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Process:
    """The process of a worker, seen from outside."""

    def __init__(self, context: Any, shared: bytes) -> None:
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with safe_module_path(), _without_interrupts():
            self._process.start()
        theirs.close()  # the worker now holds the only copy, so the pipe ends with the worker
        with suppress(BrokenPipeError):
            self.pipe.send_bytes(shared)
        self.job, self.losses = Job("", run_job), 0
        self._began = 0.0

    def is_alive(self) -> bool:
        return bool(self._process.is_alive())

    def send(self, job: Job, losses: int) -> None:
        """Send a job that was lost ``losses`` times before."""
        self.job, self.losses, self._began = job, losses, time.perf_counter()
        with suppress(BrokenPipeError):  # the process has just died, which receive() will report
            self.pipe.send(job)

    def receive(self) -> JobOutcome | tuple[int, int, str]:
        """Return the outcome of the job, or its progress: done, total, note."""
        try:
            answer: JobOutcome | tuple[int, int, str] = self.pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            self.pipe.close()
            code = self._process.exitcode
            cause = f"signal {-code}" if code < 0 else f"exit code {code}; a script needs if __name__ == '__main__'"
            return JobOutcome(lost=f"the worker's process died ({cause})", seconds=time.perf_counter() - self._began)
        return answer

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self.pipe.close()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that never receive Ctrl-C: it is for the process that writes, which stops the others.

    A blocked signal is inherited, so a new process does not receive it even while it imports modules. This process
    receives it as soon as the other has started. Where signals cannot be blocked, Ctrl-C is ignored meanwhile, which
    only the main thread can arrange.
    """
    if hasattr(signal, "pthread_sigmask"):
        resource_tracker.ensure_running()  # when it starts, it unblocks the signals that it has blocked
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    elif threading.current_thread() is threading.main_thread():
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, handler)
    else:
        yield


def _serve(pipe: Connection) -> None:
    """Run jobs in a worker's process until nobody sends any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # needed where a thread has started this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    use_one_thread()
    report = partial(_send_progress, pipe)
    try:
        shared = pickle.loads(pipe.recv_bytes())
        use_one_thread()
        while True:
            pipe.send(make_sendable(run_job(pipe.recv(), shared, report)))
    except EOFError:
        return


def use_one_thread() -> None:
    """Limit libraries to one thread, both those already imported and those that will be."""
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def make_sendable(outcome: JobOutcome) -> JobOutcome:
    """Return the outcome with an error that other processes can unpickle, and that notes where it was raised."""
    error = outcome.error
    if error is None:
        return outcome
    trace = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(trace)
    return replace(outcome, error=error)


def _send_progress(pipe: Connection, done: int, total: int, note: str = "", /) -> None:
    pipe.send((done, total, note))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)

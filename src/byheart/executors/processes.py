"""Tasks in several processes of this machine, each with one thread, for several CPU cores."""

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

from byheart.executors.task import RETRIES, Outcome, Task, performed
from byheart.files.memory import SHARE, available
from byheart.progress import Report


class Processes:
    """Processes, each with one thread and one task at a time; as many as there are cores if not said otherwise.

    ``shared`` goes to each of them once. One that dies (of too little memory, say) takes only its own task with it;
    another takes its place. All of them end with this process, even when it is killed.

    A new process imports the program that runs here: in a script of one's own, what begins the work has to stand behind
    ``if __name__ == "__main__":``.
    """

    def __init__(self, *shared: Any, workers: int | None = None, retries: int = RETRIES) -> None:
        self._shared, self._retries = pickle.dumps(shared, pickle.HIGHEST_PROTOCOL), retries
        self.workers = self.at_once = workers or cores()
        self.memory: int | None = int(SHARE * available())
        self._context = multiprocessing.get_context("spawn")
        self._idle: list[_Process] = []
        self._busy: dict[Connection, _Process] = {}

    def start(self, task: Task) -> None:
        """Send it to an idle process, or to a new one."""
        self._send(task, 0)

    def _send(self, task: Task, lost: int) -> None:
        process = self._idle.pop() if self._idle else None
        if process is None or not process.is_alive():
            process = _Process(self._context, self._shared)
        process.send(task, lost)
        self._busy[process.pipe] = process

    def finished(self, report: Report | None) -> tuple[Task, Outcome]:
        """Wait for a process to answer, or to die; a task that was lost too often, or is divisible, is lost."""
        while True:
            pipe = wait([*self._busy])[0]
            assert isinstance(pipe, Connection)
            process = self._busy[pipe]
            received = process.receive()
            if not isinstance(received, Outcome):
                if report is not None:
                    report(*received)
                continue
            del self._busy[pipe]
            if process.is_alive():
                self._idle.append(process)
            if received.lost and process.lost < self._retries and not process.task.divisible:
                self._send(process.task, process.lost + 1)
                continue
            return process.task, received

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self._idle, *self._busy.values()):
            process.stop()


def cores() -> int:
    """Those that this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Process:
    """A worker's process, seen from outside."""

    def __init__(self, context: Any, shared: bytes) -> None:
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _deaf():
            self._process.start()
        theirs.close()  # theirs is now the only one, and the pipe ends with them
        with suppress(BrokenPipeError):
            self.pipe.send_bytes(shared)
        self.task, self.lost = Task("", performed), 0
        self._began = 0.0

    def is_alive(self) -> bool:
        return bool(self._process.is_alive())

    def send(self, task: Task, lost: int) -> None:
        """Give it a task that was ``lost`` so often before."""
        self.task, self.lost, self._began = task, lost, time.perf_counter()
        with suppress(BrokenPipeError):  # it has just died: that is what will be received
            self.pipe.send(task)

    def receive(self) -> Outcome | tuple[int, int, str]:
        """An outcome, or how far the task is: done, total, note."""
        try:
            received: Outcome | tuple[int, int, str] = self.pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            self.pipe.close()
            code = self._process.exitcode
            how = f"signal {-code}" if code < 0 else f"exit code {code}; a script needs if __name__ == '__main__'"
            return Outcome(lost=f"the worker's process died ({how})", seconds=time.perf_counter() - self._began)
        return received

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self.pipe.close()


@contextmanager
def _deaf() -> Iterator[None]:
    """Ctrl-C is for the process that writes, which stops the others: one that is started here never hears of it.

    Not even while it imports what it needs: that a signal is blocked is inherited. Here it is heard as soon as the
    other has been started. Where nothing can be blocked it is ignored meanwhile, which only a main thread can see to.
    """
    if hasattr(signal, "pthread_sigmask"):
        resource_tracker.ensure_running()  # which unblocks what it has blocked, when it begins
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    elif threading.current_thread() is threading.main_thread():
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, handler)
    else:
        yield


def _serve(pipe: Connection) -> None:
    """A worker's life: a task, an outcome, and the next, until nobody sends any."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # also where a thread has started this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    one_thread()
    tell = partial(_tell, pipe)
    try:
        shared = pickle.loads(pipe.recv_bytes())
        one_thread()
        while True:
            pipe.send(sendable(performed(pipe.recv(), shared, tell)))
    except EOFError:
        return


def one_thread() -> None:
    """See to it that libraries keep to one thread: those that are there, and those that will be imported."""
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def sendable(outcome: Outcome) -> Outcome:
    """The outcome; an error says where it was raised, and is one that another process can read."""
    error = outcome.error
    if error is None:
        return outcome
    where = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(where)
    return replace(outcome, error=error)


def _tell(pipe: Connection, done: int, total: int, note: str = "", /) -> None:
    pipe.send((done, total, note))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)

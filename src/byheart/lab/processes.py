"""Jobs in several processes of this machine, each with one thread, for several CPU cores."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, Self

from byheart.errors import BadInput
from byheart.lab.checkpoints import Job, Keeping
from byheart.lab.jobs import Result, perform
from byheart.lab.sources import Source
from byheart.progress import Report


class Processes:
    """Processes, each with one thread and one job at a time; as many as there are cores if not said otherwise.

    A process that dies (of too little memory, say) takes only its own job with it; another takes its place. All of them
    end with this process, even when it is killed.
    """

    def __init__(self, source: Source, device: str = "cpu", jobs: int | None = None) -> None:
        if device != "cpu":
            raise BadInput(f"executor processes with device {device}; expected cpu (for several GPUs: --executor ray)")
        self._source, self._device = source, device
        self.workers = self.at_once = jobs or _cores()
        self._context = multiprocessing.get_context("spawn")
        self._idle: list[_Process] = []
        self._busy: dict[Connection, _Process] = {}

    def start(self, job: Job, keeping: Keeping | None = None) -> None:
        """Send it to an idle process, or to a new one."""
        process = self._idle.pop() if self._idle else None
        if process is None or not process.is_alive():
            process = _Process(self._context, self._source, self._device)
        process.send(job, keeping)
        self._busy[process.pipe] = process

    def finished(self, report: Report) -> tuple[Job, Result]:
        """Wait for a process to answer, or to die."""
        while True:
            pipe = wait([*self._busy])[0]
            assert isinstance(pipe, Connection)
            process = self._busy[pipe]
            received = process.receive()
            if not isinstance(received, Result):
                report(*received)
                continue
            del self._busy[pipe]
            if process.is_alive():
                self._idle.append(process)
            return process.job, received

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self._idle, *self._busy.values()):
            process.stop()


def _cores() -> int:
    """Those that this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Process:
    """A worker's process, seen from outside."""

    def __init__(self, context: Any, source: Source, device: str) -> None:
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, source, device), daemon=True)
        with _deaf():
            self._process.start()
        theirs.close()  # theirs is now the only one, and the pipe ends with them
        self.job: Job = ()
        self._began = 0.0

    def is_alive(self) -> bool:
        return bool(self._process.is_alive())

    def send(self, job: Job, keeping: Keeping | None) -> None:
        self.job, self._began = job, time.perf_counter()
        with suppress(BrokenPipeError):  # it has just died: that is what will be received
            self.pipe.send((job, keeping))

    def receive(self) -> Result | tuple[int, int, str]:
        """A result, or how far the job is: done, total, note."""
        try:
            received: Result | tuple[int, int, str] = self.pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            self.pipe.close()
            code = self._process.exitcode
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            return Result((), time.perf_counter() - self._began, f"the worker's process died ({how})")
        return received

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self.pipe.close()


@contextmanager
def _deaf() -> Iterator[None]:
    """Ctrl-C is for the process that writes, which stops the others: one that is started here never hears of it.

    Not even while it imports what it needs: that a signal is ignored is inherited. Only a main thread can see to it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _serve(pipe: Connection, source: Source, device: str) -> None:
    """A worker's life: a job, a result, and the next, until nobody sends any."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # also where a thread has started this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    while True:
        try:
            job, keeping = pipe.recv()
        except EOFError:
            return
        tell = partial(_tell, pipe)
        pipe.send(perform(source, job, device, tell, keeping))


def _tell(pipe: Connection, done: int, total: int, note: str = "", /) -> None:
    pipe.send((done, total, note))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)

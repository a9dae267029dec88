"""Jobs, their outcomes, and how they are handed out: never more at a time than the executor has room for.

**Lost jobs.** A job is lost if its process or its machine dies. The executor starts it again, up to ``RETRIES`` times,
because the job may not be to blame. After that, :func:`run_jobs` raises an error that names the job's key. A job that
Ray's memory monitor killed is not started again: it would not fit the next time either.
"""

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, Self

from byheart.errors import BadInput
from byheart.files.memory import peak_memory
from byheart.progress import Report

RETRIES = 3
"""Number of times that a lost job is started again."""


@dataclass(frozen=True)
class Job:
    """A call ``function(*shared, *arguments, report=…)``, where ``shared`` are the arguments of the executor.

    The function must be importable by its name, and must return the same value for the same arguments.
    """

    key: Hashable
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    memory: int | None = None
    """Upper bound on the bytes that the job takes, if known. Only as many jobs run at a time as fit."""
    divisible: bool = False
    """True if the caller splits the job when its process dies, because it may have needed too much memory."""


@dataclass(frozen=True)
class JobOutcome:
    """The end of a job: a value, an error that its function raised, or a text that says how the job was ``lost``."""

    value: Any = None
    error: BaseException | None = None
    lost: str | None = None
    seconds: float = 0.0
    peak: int = 0
    """Peak memory of the job's process so far, in bytes."""


class Executor(AbstractContextManager["Executor"], Protocol):
    """A place where jobs run, ``workers`` at a time."""

    workers: int
    memory: int | None
    """Bytes that all started jobs may take together, if this process has to enforce it."""

    @property
    def slots(self) -> int:
        """Number of jobs that may be started before the first one ends."""
        ...

    def start(self, job: Job) -> None:
        """Start a job."""

    def wait(self, report: Report | None) -> tuple[Job, JobOutcome]:
        """Wait until one of the started jobs ends, and forward the jobs' progress to ``report`` where possible."""


class Local:
    """An executor that runs one job after the other in this process; errors of jobs are raised directly."""

    workers = slots = 1
    memory: int | None = None

    def __init__(self, *shared: Any) -> None:
        self._shared = shared
        self._started: deque[Job] = deque()

    def start(self, job: Job) -> None:
        """Remember a job."""
        self._started.append(job)

    def wait(self, report: Report | None) -> tuple[Job, JobOutcome]:
        """Run the job that was started first."""
        job = self._started.popleft()
        return job, JobOutcome(job.function(*self._shared, *job.arguments, report=report), peak=peak_memory())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def run_jobs(
    executor: Executor, jobs: Iterable[Job], report: Report | None = None, peaks: list[int] | None = None
) -> Iterator[tuple[Any, Any]]:
    """Yield the key and the value of every job, in the order in which the jobs end.

    Raise the error of a job that failed, and BadInput with the key of a job that is lost for good. Append the peak
    memory of every job's process to ``peaks``. A job is taken from ``jobs`` only when there is room for it.

    >>> def power(base, exponent, report=None):
    ...     return base**exponent
    >>> with Local(2) as executor:
    ...     dict(run_jobs(executor, (Job(f"2^{k}", power, (k,)) for k in (3, 10))))
    {'2^3': 8, '2^10': 1024}
    """
    waiting, started = iter(jobs), dict[Hashable, int]()
    following = next(waiting, None)
    while started or following is not None:
        while following is not None and _has_room(executor, started, following):
            executor.start(following)
            started[following.key] = following.memory or 0
            following = next(waiting, None)
        job, outcome = executor.wait(report)
        del started[job.key]
        if outcome.error is not None:
            raise outcome.error
        if outcome.lost is not None:
            raise BadInput(f"{job.key}: {outcome.lost}; expected room for it: give fewer --workers, or more memory")
        if peaks is not None:
            peaks.append(outcome.peak)
        yield job.key, outcome.value


def _has_room(executor: Executor, started: dict[Hashable, int], job: Job) -> bool:
    if not started:
        return True
    fits = executor.memory is None or sum(started.values()) + (job.memory or 0) <= executor.memory
    return fits and len(started) < executor.slots


def run_job(job: Job, shared: tuple[Any, ...], report: Report | None) -> JobOutcome:
    """Run a job in this process, and return an error that it raises as its outcome."""
    start = time.perf_counter()
    try:
        value, error = job.function(*shared, *job.arguments, report=report), None
    except Exception as raised:
        value, error = None, raised
    return JobOutcome(value, error, seconds=time.perf_counter() - start, peak=peak_memory())

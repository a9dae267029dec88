"""Tasks, what comes of them, and how they are given out: never more at a time than the executor has room for.

**Lost tasks.** A task is lost when its process or its machine dies. It is given out again, up to ``RETRIES`` times, for
it may not have been to blame; then it is an error that names its key. One that Ray's memory monitor killed is not: it
will not fit the next time either.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from byheart.errors import BadInput
from byheart.files.memory import peak
from byheart.progress import Report

RETRIES = 3


@dataclass(frozen=True)
class Task:
    """``function(*shared, *arguments, report=…)``, where ``shared`` is what the executor was made with.

    The function is one that can be imported by its name, and gives the same whenever it is called with the same.
    """

    key: Hashable
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    memory: int | None = None
    """Bytes that it takes at most, if that is known: as many tasks as fit are under way at a time."""
    divisible: bool = False
    """Whether whoever gives it out cuts it in two when its process died, which may have needed too much."""


@dataclass(frozen=True)
class Outcome:
    """What came of a task: a value, an error that its function raised, or in words how it was ``lost``."""

    value: Any = None
    error: BaseException | None = None
    lost: str | None = None
    seconds: float = 0.0
    peak: int = 0
    """Bytes that its process has taken at most, until then."""


class Executor(AbstractContextManager["Executor"], Protocol):
    """Where tasks are done: ``workers`` at a time."""

    workers: int
    memory: int | None
    """Bytes for all tasks that are out, where it is this process that has to see to it."""

    @property
    def at_once(self) -> int:
        """How many may be given out by now."""
        ...

    def start(self, task: Task) -> None:
        """Give a task out."""

    def finished(self, report: Report | None) -> tuple[Task, Outcome]:
        """Wait for one of those that were given out; ``report`` what they tell meanwhile, where it can be heard."""


def each(
    executor: Executor, tasks: Iterable[Task], report: Report | None = None, peaks: list[int] | None = None
) -> Iterator[tuple[Any, Any]]:
    """Key and value of every task, in the order in which they end.

    An error that a task raised is raised here; one that is lost for good is an error with its key. ``peaks`` is added
    what the tasks' processes have taken. Tasks are made when there is room for them, and not before.

    >>> from byheart.executors.local import Local
    >>> def power(base, exponent, report=None):
    ...     return base**exponent
    >>> with Local(2) as executor:
    ...     dict(each(executor, (Task(f"2^{k}", power, (k,)) for k in (3, 10))))
    {'2^3': 8, '2^10': 1024}
    """
    waiting, out = iter(tasks), dict[Hashable, int]()
    following = next(waiting, None)
    while out or following is not None:
        while following is not None and _has_room(executor, out, following):
            executor.start(following)
            out[following.key] = following.memory or 0
            following = next(waiting, None)
        task, outcome = executor.finished(report)
        del out[task.key]
        if outcome.error is not None:
            raise outcome.error
        if outcome.lost is not None:
            raise BadInput(f"{task.key}: {outcome.lost}; expected room for it: give fewer --workers, or more memory")
        if peaks is not None:
            peaks.append(outcome.peak)
        yield task.key, outcome.value


def _has_room(executor: Executor, out: dict[Hashable, int], task: Task) -> bool:
    if not out:
        return True
    fits = executor.memory is None or sum(out.values()) + (task.memory or 0) <= executor.memory
    return fits and len(out) < executor.at_once


def performed(task: Task, shared: tuple[Any, ...], report: Report | None) -> Outcome:
    """Do a task, here; whatever goes wrong in it is an outcome too."""
    start = time.perf_counter()
    try:
        value, error = task.function(*shared, *task.arguments, report=report), None
    except Exception as raised:
        value, error = None, raised
    return Outcome(value, error, seconds=time.perf_counter() - start, peak=peak())

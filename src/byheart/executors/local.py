"""Tasks one after the other, in this process."""

from collections import deque
from typing import Any, Self

from byheart.executors.task import Outcome, Task, performed
from byheart.progress import Report


class Local:
    """One task after the other; whatever ends this process ends them."""

    workers = at_once = 1
    memory: int | None = None

    def __init__(self, *shared: Any) -> None:
        self._shared = shared
        self._given: deque[Task] = deque()

    def start(self, task: Task) -> None:
        """Remember it."""
        self._given.append(task)

    def finished(self, report: Report | None) -> tuple[Task, Outcome]:
        """Do it."""
        task = self._given.popleft()
        return task, performed(task, self._shared, report)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

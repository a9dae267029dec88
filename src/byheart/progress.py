"""The type of functions that are told of progress."""

from typing import Protocol


class Report(Protocol):
    """A function of the number of steps done, their total number, and a note on the step in progress.

    Long work calls it as often as a progress bar should move. Callers who want no reports pass ``None``.
    """

    def __call__(self, done: int, total: int, note: str = "", /) -> object:
        """Take note of the progress."""

"""The one progress type: how those who work for long tell those who wait."""

from typing import Protocol


class Report(Protocol):
    """Called with how many steps are done, how many there are in all, and, where it helps, what is being done.

    Whoever works calls it as often as a bar should move; whoever waits passes ``None`` to hear nothing.
    """

    def __call__(self, done: int, total: int, note: str = "", /) -> object:
        """Hear it."""

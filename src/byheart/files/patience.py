"""A limit on the time that a tokenizer takes: regular expressions that backtrack can take seconds for every letter.

The library ``tokenizers`` gives up on one match after ten million steps, which take 0.1 s, but it tries one at every
letter. Nothing within the process can end that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Thread
from time import perf_counter
from typing import Any, Final, TypeVar

from byheart.errors import BadInput

SECONDS: Final = 30.0
PER_LETTER: Final = 1e-4
"""Seconds that are allowed for any text, and for each of its letters. Well-known tokenizers take a hundredth."""
T = TypeVar("T")


@dataclass
class Patience:
    """The time that a tokenizer has taken so far, and for how many letters."""

    seconds: float = 0.0
    letters: int = 0

    def wait(self, work: Callable[[], T], letters: int) -> T:
        """Return what ``work`` returns; raise BadInput if all that it was given so far takes too long.

        It runs in a thread, so that it can be given up, by an interrupt too; the thread ends with the process. ``work``
        must not hold Python's lock while it is slow.
        """
        outcome: list[Any] = [None, None]

        def run() -> None:
            try:
                outcome[0] = work()
            except BaseException as error:  # a panic in Rust is no Exception
                outcome[1] = error

        self.letters += letters
        thread, began = Thread(target=run, daemon=True), perf_counter()
        thread.start()
        thread.join(max(0.0, SECONDS + PER_LETTER * self.letters - self.seconds))
        self.seconds += perf_counter() - began
        if thread.is_alive():
            took = f"took {self.seconds:.0f} s for {self.letters:,} letters and was not ready"
            raise BadInput(f"the tokenizer {took}; expected one without slow regular expressions")
        if outcome[1] is not None:
            raise outcome[1]
        return outcome[0]  # type: ignore[no-any-return]

"""Which places of sequences have equal contexts: compared exactly, by doubling.

As in the construction of suffix arrays, equal contexts get equal numbers, and the number of the last 2w tokens at a
place follows from the numbers of the last w tokens there and w places earlier. Nothing is sorted: pairs of numbers are
looked up in tables (:mod:`.doubling`). All in all that takes 64 MiB of memory, and 9 bytes for every token, which lie
where there is room for them.
"""

import secrets
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from byheart.files.room import room
from byheart.progress import Report
from byheart.tasks.checks import Ids, copied

MISSING = -1
"""Stands for what lies before the start of a sequence."""
PART = 1 << 23
"""Contexts that are looked up in a table at a time: its slots are twice as many."""
MANY = 1 << 21
"""Tokens for which it takes so long that whoever waits wants to hear of it."""
SALT = np.uint64(secrets.randbits(64))
"""Of the tables' hash, in this process. What is found does not depend on it."""
Places = npt.NDArray[np.int32]


class Alike:
    """Which places of sequences have equal contexts, while the window grows.

    The number of a context is the first place that has it. Contexts that have become unlike all others stay so, and
    are not looked at again.
    """

    def __init__(self, tokens: npt.NDArray[np.integer], starts: Ids, report: Report | None = None) -> None:
        from byheart.tasks.doubling import EARLY, SHARED

        self.width = 0
        self._starts, self._report = starts, report
        self._numbers, self._fresh = copied(tokens, np.int32), room(len(tokens), np.int32)
        self._flags = room(len(tokens), np.uint8)
        self._flags[:] = SHARED | EARLY
        self._shared = len(tokens)
        """How many places there are whose contexts others have too."""
        self.widen(0)
        self.width = 1

    def widen(self, by: int) -> None:
        """Go on to contexts that are ``by`` tokens longer, ``by`` at most ``width``."""
        from byheart.tasks.doubling import mark_early, regroup

        if by:
            mark_early(self._flags, self._starts, by)
        for table, parts in _tables(self._shared):
            shared = regroup(self._numbers, by, self._flags, self._fresh, table, parts, SALT)
            if shared >= 0:
                break
        self._numbers, self._fresh = self._fresh, self._numbers
        self._shared = int(shared)
        self.width += by
        if self._report is not None and len(self._flags) > MANY:
            self._report(len(self._flags) - self._shared, len(self._flags), f"window of {self.width:,}")

    def first_among(self, asked: Ids) -> Ids:
        """For each of the places ``asked``, increasing, the first of them that has its context: int64 [k]."""
        numbers, first = self._numbers[asked], self._fresh
        first[numbers[::-1]] = asked[::-1]  # of several that go to one entry, the last one stays
        found: Ids = first[numbers].astype(np.int64)
        return found

    def conflict(self, kept: npt.NDArray[np.bool_], answers: npt.NDArray[np.integer]) -> tuple[int, int] | None:
        """The first kept place with another answer than the first one that has its context, after that one."""
        from byheart.tasks.doubling import conflict

        first, second = conflict(self._numbers, self._flags, kept, answers, self._fresh)
        return None if second < 0 else (int(first), int(second))

    def questions(self, kept: npt.NDArray[np.bool_]) -> tuple[Places, Places]:
        """The first kept place of every context, [N]; and every other one with the context's number below N, [2, k]."""
        from byheart.tasks.doubling import count_questions, list_questions

        questions, asked = count_questions(self._numbers, kept, self._fresh)
        places, again = room(questions, np.int32), room((2, asked - questions), np.int32)
        list_questions(self._numbers, kept, self._fresh, places, again)
        return places, again


class Rows:
    """Which rows of a task end alike, in so many tokens, and ask for the same."""

    def __init__(self, tokens: npt.NDArray[np.integer], labels: npt.NDArray[np.integer], width: int) -> None:
        from byheart.tasks.doubling import first_rows, list_rows

        first = room(len(tokens), np.int32)
        for table, parts in _tables(len(tokens)):
            endings, wrong = first_rows(tokens, width, labels, first, table, parts, SALT)
            if endings >= 0:
                break
        self.wrong = (int(first[wrong]), int(wrong)) if wrong < len(tokens) else None
        """The first row with another label than one before it that ends alike, after that one."""
        if self.wrong is None:
            self.places = room(endings, np.int32)
            """The first row of every ending, [N]."""
            self.again = room((2, len(tokens) - endings), np.int32)
            """Every other row, and the number of its ending below N: [2, k]."""
            list_rows(first, self.places, self.again)


def _tables(keys: int) -> Iterator[tuple[Places, int]]:
    """A table in which so many keys are looked up, one part of them after the other; a larger one, if it is full."""
    slots, parts = 1 << (2 * min(keys, PART)).bit_length(), max(1, -(-keys // PART))
    while True:
        yield np.empty(slots, np.int32), parts
        slots *= 2

"""The compiled loops of :mod:`.alike`: which keys are equal, by tables that hold places. This module imports numba.

A table has a slot for a place; equal keys are found by a hash and compared exactly, so the hash decides how long it
takes and nothing else. It is salted, so that nobody can choose keys that collide. Where one table for all keys would
be large, they are dealt with in ``parts``, by the hash.

Which places of sequences have equal contexts: compared exactly, by doubling.

As in the construction of suffix arrays, equal contexts get equal numbers, and the number of the last 2w tokens at a
place follows from the numbers of the last w tokens there and w places earlier. Nothing is sorted: pairs of numbers are
looked up in tables (:mod:`.doubling`). All in all that takes 64 MiB of memory, and 9 bytes for every token, which lie
where there is room for them.
"""

import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from byheart.compiled import jit
from byheart.files.memory import allocate
from byheart.progress import Report
from byheart.tasks.arrays import Ids, copy_as

SHARED, EARLY, AGAIN = 1, 2, 4
"""Flags of a place: others have its context too; its sequence begins too late to look back; others still have it."""


@jit
def _mixed(key: Any) -> Any:
    """The bits of a key, stirred (the finalizer of splitmix64)."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@jit
def mark_early(flags: Any, starts: Any, by: int) -> None:
    """Flag the places of every sequence with fewer than ``by`` tokens before them."""
    for sequence in range(len(starts) - 1):
        for place in range(starts[sequence], starts[sequence + 1]):
            near = place - starts[sequence] < by
            flags[place] = (flags[place] | EARLY) if near else (flags[place] & ~EARLY)


@jit
def regroup(numbers: Any, by: int, flags: Any, fresh: Any, table: Any, parts: int, salt: Any) -> Any:
    """Number contexts that are ``by`` tokens longer, into ``fresh``: by the first place that has each.

    A context is told by the number that it had and that of the place ``by`` tokens earlier. How many are shared is
    given back; −1 if a table was too small.
    """
    mask, most, shared = len(table) - 1, len(table) - len(table) // 8, 0
    for part in range(parts):
        table[:] = -1
        used = 0
        for place in range(len(numbers)):
            if not flags[place] & SHARED:
                fresh[place] = place
                continue
            own = numbers[place]
            earlier = -1 if flags[place] & EARLY else numbers[place - by]
            key = _mixed(((np.uint64(own) << np.uint64(32)) | np.uint64(np.uint32(earlier))) ^ salt)
            if parts > 1 and np.int64(key >> np.uint64(32)) % parts != part:
                continue
            slot = np.int64(key & np.uint64(mask))
            while True:
                there = table[slot]
                if there < 0:
                    table[slot] = fresh[place] = place
                    used += 1
                    if used > most:
                        return -1
                    break
                if numbers[there] == own and earlier == (-1 if flags[there] & EARLY else numbers[there - by]):
                    fresh[place] = there
                    flags[there] |= AGAIN
                    flags[place] |= AGAIN
                    break
                slot = (slot + 1) & mask
    for place in range(len(flags)):
        flags[place] = SHARED if flags[place] & AGAIN else 0
        shared += flags[place]
    return shared


@jit
def first_conflict(numbers: Any, flags: Any, kept: Any, answers: Any, first: Any) -> Any:
    """The first kept place with another answer than the first one that has its context, after that one; or −1, −1."""
    first[:] = -1
    for place in range(len(numbers)):
        if flags[place] & SHARED and kept[place]:
            own = numbers[place]
            if first[own] < 0:
                first[own] = place
            elif answers[place] != answers[first[own]]:
                return first[own], place
    return -1, -1


@jit
def count_questions(numbers: Any, kept: Any, first: Any) -> Any:
    """How many contexts there are at the kept places, and how many of these."""
    first[:] = -1
    questions = places = 0
    for place in range(len(numbers)):
        if kept[place]:
            places += 1
            if first[numbers[place]] < 0:
                first[numbers[place]] = place
                questions += 1
    return questions, places


@jit
def list_questions(numbers: Any, kept: Any, first: Any, places: Any, again: Any) -> None:
    """The first place of every context into ``places``; every other one, and which context that is, into ``again``."""
    question = repeated = 0
    first[:] = -1
    for place in range(len(numbers)):
        if not kept[place]:
            continue
        own = numbers[place]
        if first[own] < 0:
            first[own] = question
            places[question] = place
            question += 1
        else:
            again[0, repeated], again[1, repeated] = place, first[own]
            repeated += 1


@jit
def first_rows(rows: Any, width: int, labels: Any, first: Any, table: Any, parts: int, salt: Any) -> Any:
    """For each row the first that ends in the same ``width`` entries, into ``first``, until one has another label.

    How many endings there are is given back (−1 if a table was too small), and that row, or how many there are.
    """
    mask, most, endings, stop = len(table) - 1, len(table) - len(table) // 8, 0, len(rows)
    begin = rows.shape[1] - width
    for part in range(parts):
        table[:] = -1
        used = 0
        for row in range(stop):
            key = salt
            for column in range(begin, rows.shape[1]):
                key = _mixed(key ^ np.uint64(rows[row, column]))
            if parts > 1 and np.int64(key >> np.uint64(32)) % parts != part:
                continue
            slot = np.int64(key & np.uint64(mask))
            while True:
                there = table[slot]
                if there < 0:
                    table[slot] = first[row] = row
                    used += 1
                    break
                equal = True
                for column in range(begin, rows.shape[1]):
                    if rows[there, column] != rows[row, column]:
                        equal = False
                        break
                if equal:
                    first[row] = there
                    break
                slot = (slot + 1) & mask
            if used > most:
                return -1, stop
            if labels[row] != labels[first[row]]:
                stop = row  # those after it do not matter any more, in no part
                break
        endings += used
    return endings, stop


@jit
def list_rows(first: Any, places: Any, again: Any) -> None:
    """Rows that are the first of their ending into ``places``; all others, and which ending it is, into ``again``.

    ``first``, which says it of each row, is overwritten.
    """
    endings = others = 0
    for row in range(len(first)):
        if first[row] == row:
            places[endings] = row
            first[row] = -1 - endings
            endings += 1
        else:
            again[0, others], again[1, others] = row, -1 - first[first[row]]
            others += 1


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
        self.width = 0
        self._starts, self._report = starts, report
        self._numbers, self._fresh = copy_as(tokens, np.int32), allocate(len(tokens), np.int32)
        self._flags = allocate(len(tokens), np.uint8)
        self._flags[:] = SHARED | EARLY
        self._shared = len(tokens)
        """How many places there are whose contexts others have too."""
        self.widen(0)
        self.width = 1

    def widen(self, by: int) -> None:
        """Go on to contexts that are ``by`` tokens longer, ``by`` at most ``width``."""
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
        first, second = first_conflict(self._numbers, self._flags, kept, answers, self._fresh)
        return None if second < 0 else (int(first), int(second))

    def questions(self, kept: npt.NDArray[np.bool_]) -> tuple[Places, Places]:
        """The first kept place of every context, [N]; and every other one with the context's number below N, [2, k]."""
        questions, asked = count_questions(self._numbers, kept, self._fresh)
        places, again = allocate(questions, np.int32), allocate((2, asked - questions), np.int32)
        list_questions(self._numbers, kept, self._fresh, places, again)
        return places, again


class Rows:
    """Which rows of a task end alike, in so many tokens, and ask for the same."""

    def __init__(self, tokens: npt.NDArray[np.integer], labels: npt.NDArray[np.integer], width: int) -> None:
        first = allocate(len(tokens), np.int32)
        for table, parts in _tables(len(tokens)):
            endings, wrong = first_rows(tokens, width, labels, first, table, parts, SALT)
            if endings >= 0:
                break
        self.wrong = (int(first[wrong]), int(wrong)) if wrong < len(tokens) else None
        """The first row with another label than one before it that ends alike, after that one."""
        if self.wrong is None:
            self.places = allocate(endings, np.int32)
            """The first row of every ending, [N]."""
            self.again = allocate((2, len(tokens) - endings), np.int32)
            """Every other row, and the number of its ending below N: [2, k]."""
            list_rows(first, self.places, self.again)


def _tables(keys: int) -> Iterator[tuple[Places, int]]:
    """A table in which so many keys are looked up, one part of them after the other; a larger one, if it is full."""
    slots, parts = 1 << (2 * min(keys, PART)).bit_length(), max(1, -(-keys // PART))
    while True:
        yield np.empty(slots, np.int32), parts
        slots *= 2

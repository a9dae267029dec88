"""Find equal contexts of sequences exactly, by doubling, in compiled loops. This module imports numba.

**Doubling.** As in the construction of suffix arrays, equal contexts get equal numbers. The number of the last 2w
tokens at a place follows from the numbers of the last w tokens there and w places earlier. Nothing is sorted: pairs of
numbers are looked up in tables. That takes 64 MiB of memory, and 9 bytes per token, in memory or on the disk.

**Tables.** A table has a slot per place. Equal keys are found by a hash and compared exactly, so the hash affects only
the time. It is salted, so that nobody can choose keys that collide. If one table for all keys would be large, the keys
are processed in ``parts``, chosen by the hash.
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
"""Flags of a place: other places have its context; its sequence begins too late to look back; others still have it."""


@jit
def _mixed(key: Any) -> Any:
    """Mix the bits of a key (the finalizer of splitmix64)."""
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
    """Assign numbers to contexts that are ``by`` tokens longer, in ``fresh``: the first place that has each.

    A context is identified by its old number and that of the place ``by`` tokens earlier. Return the number of shared
    contexts, or −1 if a table was too small.
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
    """Return the first kept place whose answer differs from that of an earlier one, after that one; or −1, −1."""
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
    """Count the distinct contexts at the kept places, and these places."""
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
    """List the first place of every context in ``places``; every other one with its context in ``again``."""
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
    """Find for each row the first that ends in the same ``width`` entries, until one has another label.

    Return the number of endings (−1 if a table was too small), and that row, or the number of rows.
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
    """List rows that are the first of their ending in ``places``; all repeated with their ending in ``again``.

    ``first`` holds the first row of each row's ending, and is overwritten.
    """
    endings = repeated = 0
    for row in range(len(first)):
        if first[row] == row:
            places[endings] = row
            first[row] = -1 - endings
            endings += 1
        else:
            again[0, repeated], again[1, repeated] = row, -1 - first[first[row]]
            repeated += 1


PART = 1 << 23
"""Number of contexts that are looked up in one table, which has at least twice as many slots."""
REPORTED_TOKENS = 1 << 21
"""Number of tokens from which on progress is reported."""
SALT = np.uint64(secrets.randbits(64))
"""Salt of the tables' hash in this process. Results do not depend on it."""
Places = npt.NDArray[np.int32]


class Alike:
    """Numbers of contexts, equal where contexts are equal, for a window that grows.

    The number of a context is the first place that has it. Contexts that differ from all others stay different, and are
    skipped from then on.
    """

    def __init__(self, tokens: npt.NDArray[np.integer], starts: Ids, report: Report | None = None) -> None:
        self.width = 0
        self._starts, self._report = starts, report
        self._numbers, self._fresh = copy_as(tokens, np.int32), allocate(len(tokens), np.int32)
        self._flags = allocate(len(tokens), np.uint8)
        self._flags[:] = SHARED | EARLY
        self._shared = len(tokens)
        """Number of places whose context other places have too."""
        self.widen(0)
        self.width = 1

    def widen(self, by: int) -> None:
        """Extend all contexts by ``by`` tokens, at most ``width``."""
        if by:
            mark_early(self._flags, self._starts, by)
        for table, parts in _tables(self._shared):
            shared = regroup(self._numbers, by, self._flags, self._fresh, table, parts, SALT)
            if shared >= 0:
                break
        self._numbers, self._fresh = self._fresh, self._numbers
        self._shared = int(shared)
        self.width += by
        if self._report is not None and len(self._flags) > REPORTED_TOKENS:
            self._report(len(self._flags) - self._shared, len(self._flags), f"window of {self.width:,}")

    def first_with_context(self, places: Ids) -> Ids:
        """Return for each of the increasing ``places`` the first of them with the same context: int64 [k]."""
        numbers, first = self._numbers[places], self._fresh
        first[numbers[::-1]] = places[::-1]  # of several that go to one entry, the last one stays
        firsts: Ids = first[numbers].astype(np.int64)
        return firsts

    def conflict(self, kept: npt.NDArray[np.bool_], answers: npt.NDArray[np.integer]) -> tuple[int, int] | None:
        """Return the first kept place whose answer differs from that of an earlier one, after that one, or None."""
        first, second = first_conflict(self._numbers, self._flags, kept, answers, self._fresh)
        return None if second < 0 else (int(first), int(second))

    def questions(self, kept: npt.NDArray[np.bool_]) -> tuple[Places, Places]:
        """Return the first kept place of every context, [N], and all others with their context's number, [2, k]."""
        questions, place_count = count_questions(self._numbers, kept, self._fresh)
        places, again = allocate(questions, np.int32), allocate((2, place_count - questions), np.int32)
        list_questions(self._numbers, kept, self._fresh, places, again)
        return places, again


class Rows:
    """Rows of a task that end in the same ``width`` tokens."""

    def __init__(self, tokens: npt.NDArray[np.integer], labels: npt.NDArray[np.integer], width: int) -> None:
        first = allocate(len(tokens), np.int32)
        for table, parts in _tables(len(tokens)):
            endings, wrong = first_rows(tokens, width, labels, first, table, parts, SALT)
            if endings >= 0:
                break
        self.wrong = (int(first[wrong]), int(wrong)) if wrong < len(tokens) else None
        """First row whose label differs from that of an earlier row with the same ending, after that row; or None."""
        if self.wrong is None:
            self.places = allocate(endings, np.int32)
            """First row of every ending, [N]."""
            self.again = allocate((2, len(tokens) - endings), np.int32)
            """All other rows, and the number of their ending below N: [2, k]."""
            list_rows(first, self.places, self.again)


def _tables(keys: int) -> Iterator[tuple[Places, int]]:
    """Yield tables for ``keys`` keys with the number of parts to process the keys in, each larger than the last."""
    slots, parts = 1 << (2 * min(keys, PART)).bit_length(), max(1, -(-keys // PART))
    while True:
        yield np.empty(slots, np.int32), parts
        slots *= 2

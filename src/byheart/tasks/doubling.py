"""The compiled loops of :mod:`.alike`: which keys are equal, by tables that hold places. This module imports numba.

A table has a slot for a place; equal keys are found by a hash and compared exactly, so the hash decides how long it
takes and nothing else. It is salted, so that nobody can choose keys that collide. Where one table for all keys would
be large, they are dealt with in ``parts``, by the hash.
"""

from typing import Any

import numpy as np

from byheart.compiled import jit

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
def conflict(numbers: Any, flags: Any, kept: Any, answers: Any, first: Any) -> Any:
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

"""Find equal rows of an array, and equal entries of a row: exactly, and with one sort if the data allow it.

Also count how often every token occurs in every sequence: the multiset that a network without positions sees.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from byheart.tasks.arrays import Floats, Ids

_ODD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_PIECE = 1 << 16


class Distinct(NamedTuple):
    """Classes of equal rows of an array [M, d], numbered in the order in which they first appear."""

    ids: Ids
    """int64 [M]: the class of each row."""
    first: Ids
    """int64 [K]: the first row of each class, increasing."""

    @property
    def representatives(self) -> Ids:
        """int64 [M]: for each row the first row that equals it."""
        return self.first[self.ids]


def distinct(rows: Ids | Floats) -> Distinct:
    """Assign numbers to the distinct rows of ``rows`` [M, d], in the order in which they first appear.

    Rows are equal if their bytes are; float arrays must be free of -0.0. The rows are hashed to one key each and the
    keys sorted. Rows that share a key without being equal are told apart afterwards, column by column, so the answer
    never depends on luck.

    >>> distinct(np.array([[7, 1], [5, 5], [7, 1], [7, 2]]))
    Distinct(ids=array([0, 1, 0, 2]), first=array([0, 1, 3]))
    """
    if rows.dtype.kind in "iu" and rows.shape[1] == 1 and len(rows):
        low, high = int(rows.min()), int(rows.max())
        if high - low <= len(rows):
            return _small(rows[:, 0].astype(np.int64, copy=False), low, high)
    columns = np.ascontiguousarray(rows).view(np.uint64).T
    classes = _numbered(_hashed(columns))
    for column in columns:
        if np.array_equal(column, column[classes.representatives]):
            continue
        # Both numbers are below M, so the pair fits into 63 bits for every M that fits into memory.
        within = _numbered(column)
        classes = _numbered(classes.ids * len(within.first) + within.ids)
    return classes


def _small(numbers: Ids, low: int, high: int) -> Distinct:
    """Find the classes of numbers from ``low`` to ``high`` with a table, piece by piece and without a sort."""
    number, first = np.full(high - low + 1, -1), np.empty(0, np.int64)
    ids = np.empty(len(numbers), np.int64)
    for begin in range(0, len(numbers), _PIECE):
        piece = numbers[begin : begin + _PIECE] - low
        places = np.flatnonzero(number[piece] < 0)
        places = np.sort(places[np.unique(piece[places], return_index=True)[1]])
        number[piece[places]] = len(first) + np.arange(len(places))
        first = np.append(first, begin + places)
        ids[begin : begin + _PIECE] = number[piece]
    return Distinct(ids, first)


def first_positions(rows: Ids, among: Ids) -> Ids:
    """Return the first position at which each entry of ``rows`` [N, n] occurs in row ``among[i]``: int64 [N, n].

    ``among`` [N] names for each row i a row that is a permutation of it, which may be row i itself.

    >>> first_positions(np.array([[7, 5, 7], [5, 7, 7]]), among=np.array([0, 0]))
    array([[0, 1, 0],
           [1, 0, 0]])
    """
    order = np.argsort(rows, axis=1, kind="stable")
    arranged = np.take_along_axis(rows, order, axis=1)
    starts = np.ones(rows.shape, np.bool_)
    starts[:, 1:] = arranged[:, 1:] != arranged[:, :-1]
    run = np.maximum.accumulate(np.where(starts, np.arange(rows.shape[1]), 0), axis=1)
    positions = np.empty_like(order)
    # Permutations of each other are equal once they are arranged, so their runs begin in the same places.
    np.put_along_axis(positions, order, np.take_along_axis(order[among], run, axis=1), axis=1)
    return positions


def _hashed(columns: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    keys = np.zeros(columns.shape[1], np.uint64)
    for column in columns:
        keys = (keys ^ column) * _ODD
        keys ^= keys >> _HALF
    return keys


def _numbered(keys: npt.NDArray[np.uint64] | Ids) -> Distinct:
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Distinct(rank[inverse], first[order])


@dataclass(frozen=True, eq=False)
class TokenCounts:
    """The different (sequence, token) pairs, sequence by sequence, tokens increasing; computed on demand."""

    arranged: Ids
    """int64 [N, n]: every sequence sorted, so that equal tokens are next to each other."""
    begin: Ids
    """int64 [M]: index at which each pair's tokens begin in the flattened ``arranged``."""

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def token(self) -> Ids:
        """int64 [M]: the token of each pair."""
        return self.arranged.ravel()[self.begin]

    @property
    def sequence(self) -> Ids:
        """int64 [M]: the sequence of each pair."""
        return self.begin // int(self.arranged.shape[1])

    @property
    def count(self) -> Ids:
        """int64 [M]: number of times that the token occurs in the sequence."""
        return np.diff(np.append(self.begin, self.arranged.size))


def count_tokens(ids: Ids) -> TokenCounts:
    """Count the tokens of every sequence of ``ids`` [N, n].

    >>> pairs = count_tokens(np.array([[7, 5, 7], [5, 5, 5]]))
    >>> len(pairs), pairs.sequence.tolist(), pairs.token.tolist(), pairs.count.tolist()
    (3, [0, 0, 1], [5, 7, 5], [1, 2, 3])
    """
    arranged = np.sort(ids, axis=1)
    flat = arranged.ravel()
    begins = np.append(True, flat[1:] != flat[:-1])
    begins[:: ids.shape[1]] = True
    return TokenCounts(arranged, np.flatnonzero(begins))

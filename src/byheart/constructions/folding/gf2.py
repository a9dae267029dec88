"""Linear systems modulo 2, bit-packed: eliminate once, then solve for many right-hand sides.

Gauss–Jordan elimination of [A | I] gives R = M·A in reduced form. Columns without a pivot are free: they are given
random bits, so that solving again gives another solution. :mod:`.residues` makes of it systems modulo any number.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.networks.exact.kernels import jit
from byheart.tasks.checks import Ids

_MANY = 256
"""Rows from which strips of eight columns pay; four before."""


@dataclass(frozen=True, eq=False)
class Reduced:
    """A [rows, columns] modulo 2 in reduced form: packed R and M side by side, the pivots' columns, and the rank."""

    packed: NDArray[np.uint64]
    pivots: Ids
    columns: int
    rank: int

    @property
    def deficit(self) -> int:
        """Rows that depend on others: each makes a right-hand side inconsistent half of the time."""
        return len(self.packed) - self.rank


def pack(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Rows of bits [R, C] in words of 64, lowest bit first.

    >>> pack(np.array([[1, 0, 1]], dtype=np.uint8)).tolist()
    [[5]]
    """
    rows, columns = bits.shape
    padded = np.zeros((rows, -(-columns // 64) * 64), dtype=np.uint8)
    padded[:, :columns] = bits
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def reduce(A: Ids) -> Reduced:
    """Eliminate A modulo 2."""
    rows, columns = A.shape
    index = np.arange(rows)
    identity = np.zeros((rows, -(-rows // 64)), dtype=np.uint64)
    identity[index, index >> 6] = np.uint64(1) << (index & 63).astype(np.uint64)
    packed = np.concatenate([pack(A.astype(np.uint8) & np.uint8(1)), identity], axis=1)
    pivots, rank = _eliminate(packed, columns)
    return Reduced(packed, pivots[:rank], columns, int(rank))


def solve(system: Reduced, e: Ids, free: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    """t with A·t ≡ e modulo 2 and the given bits ``free`` [columns] in the free columns, or None if there is none.

    >>> A = np.array([[1, 1, 0], [0, 1, 1]])
    >>> t = solve(reduce(A), np.array([1, 0]), np.array([0, 0, 1], dtype=np.uint8))
    >>> (A @ t % 2).tolist(), int(t[2])
    ([1, 0], 1)
    """
    words = -(-system.columns // 64)
    open_bits = free.copy()
    open_bits[system.pivots] = 0
    right = pack((e & 1).astype(np.uint8)[None])[0]
    mask = np.concatenate([pack(open_bits[None])[0], right])
    values = _parities(system.packed, mask)
    if _parities(system.packed[system.rank :, words:], right).any():
        return None
    open_bits[system.pivots] = values[: system.rank]
    return open_bits


@jit
def _eliminate(A, columns):  # type: ignore[no-untyped-def]
    """Gauss–Jordan in place on the first ``columns`` bits; the pivots' columns and the rank.

    By the method of the four Russians: the pivots of a strip of columns are found first, on the strip's bits alone;
    then every other row is cleared at all of them by one sum of pivot rows, which a table of all such sums holds.
    """
    rows, words = A.shape
    width = 8 if rows >= _MANY else 4
    pivots, rank = np.empty(rows, dtype=np.int64), 0
    strip, added = np.empty(rows, dtype=np.uint64), np.empty(rows, dtype=np.uint64)
    table = np.zeros((1 << width, words), dtype=np.uint64)
    for column in range(0, columns, width):
        word, bit = column >> 6, np.uint64(column & 63)
        for i in range(rows):
            strip[i], added[i] = (A[i, word] >> bit) & np.uint64((1 << width) - 1), 0
        first = rank
        for place in range(min(width, columns - column)):
            if _next_pivot(A, strip, added, first, rank, np.uint64(place)):
                pivots[rank] = column + place
                rank += 1
        _clear(A, pivots, first, rank, word, table)
    return pivots, rank


@jit
def _next_pivot(A, strip, added, first, rank, place):  # type: ignore[no-untyped-def]
    """Bring a row with a one at ``place`` of the strip to ``rank``, earlier pivots added to it; False if none has one.

    ``strip`` holds the strip's bits of rows that are no pivots with those pivots added, and ``added`` says which: to
    the rows themselves they are added only once they are pivots.
    """
    one, pivot = np.uint64(1), rank
    while pivot < A.shape[0] and (strip[pivot] >> place) & one == 0:
        pivot += 1
    if pivot == A.shape[0]:
        return False
    for k in range(A.shape[1]):
        A[rank, k], A[pivot, k] = A[pivot, k], A[rank, k]
    strip[rank], strip[pivot] = strip[pivot], strip[rank]
    added[rank], added[pivot] = added[pivot], added[rank]
    for q in range(rank - first):
        if (added[rank] >> np.uint64(q)) & one:
            for k in range(A.shape[1]):
                A[rank, k] ^= A[first + q, k]
    for i in range(rank + 1, A.shape[0]):
        # Without a branch, which would go either way as often.
        has = (strip[i] >> place) & one
        strip[i] ^= strip[rank] * has
        added[i] |= has << np.uint64(rank - first)
    return True


@jit
def _clear(A, pivots, first, rank, word, table):  # type: ignore[no-untyped-def]
    """Clear all rows but the pivots ``first`` to ``rank``, and these among each other, in the pivots' columns."""
    words, one = A.shape[1], np.uint64(1)
    for q in range(rank - 1, first, -1):
        for i in range(first, q):
            if (A[i, word] >> np.uint64(pivots[q] & 63)) & one:
                for k in range(word, words):
                    A[i, k] ^= A[q, k]
    for sums in range(1, 1 << (rank - first)):
        q = 0
        while (sums >> q) & 1 == 0:
            q += 1
        for k in range(word, words):
            table[sums, k] = table[sums & (sums - 1), k] ^ A[first + q, k]
    for i in range(A.shape[0]):
        if first <= i < rank:
            continue
        chosen = 0
        for q in range(first, rank):
            chosen |= np.int64((A[i, word] >> np.uint64(pivots[q] & 63)) & one) << (q - first)
        if chosen:
            for k in range(word, words):
                A[i, k] ^= table[chosen, k]


@jit
def _parities(rows, mask):  # type: ignore[no-untyped-def]
    """The parity of row & mask for every row."""
    result = np.empty(rows.shape[0], dtype=np.uint8)
    for i in range(rows.shape[0]):
        folded = np.uint64(0)
        for k in range(rows.shape[1]):
            folded ^= rows[i, k] & mask[k]
        parity = 0
        while folded:
            folded &= folded - np.uint64(1)
            parity ^= 1
        result[i] = parity
    return result

"""Linear systems modulo 2, bit-packed: eliminate once, then solve for many right-hand sides.

Gauss–Jordan elimination of [A | I] gives R = M·A in reduced form. Columns without a pivot are free: they are given
random bits, so that solving again gives another solution. :mod:`.residues` makes of it systems modulo any number.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.networks.exact.kernels import jit
from byheart.tasks.checks import Ids


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
    packed = np.concatenate([pack((A & 1).astype(np.uint8)), pack(np.eye(rows, dtype=np.uint8))], axis=1)
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
    """Gauss–Jordan in place on the first ``columns`` bits; the pivots' columns and the rank."""
    rows, words = A.shape
    pivots = np.empty(rows, dtype=np.int64)
    rank = 0
    one = np.uint64(1)
    for column in range(columns):
        if rank == rows:
            break
        word, bit = column >> 6, np.uint64(column & 63)
        pivot = rank
        while pivot < rows and (A[pivot, word] >> bit) & one == 0:
            pivot += 1
        if pivot == rows:
            continue
        for k in range(words):
            A[rank, k], A[pivot, k] = A[pivot, k], A[rank, k]
        for i in range(rows):
            if i != rank and (A[i, word] >> bit) & one:
                for k in range(word, words):
                    A[i, k] ^= A[rank, k]
        pivots[rank] = column
        rank += 1
    return pivots, rank


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

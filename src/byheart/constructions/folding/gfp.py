"""Linear systems modulo a small odd prime p ≤ 13, sixteen numbers at a time; :mod:`.gf2` solves them modulo 2."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.compiled import jit
from byheart.tasks.arrays import Floats, Ids


@dataclass(frozen=True, eq=False)
class ReducedForm:
    """A matrix A [rows, columns] modulo p in reduced form: R and M with R = M·A, the pivots' columns, the rank."""

    prime: int
    pair: Floats
    pivots: Ids
    columns: int
    rank: int

    @property
    def deficit(self) -> int:
        """Number of rows that depend on others: with each, only one in p right-hand sides stays consistent."""
        return len(self.pair) - self.rank


def reduce(A: NDArray[np.integer], prime: int) -> ReducedForm:
    """Eliminate A modulo ``prime``."""
    rows, columns = A.shape
    pair = np.concatenate([A % prime, np.eye(rows)], axis=1).astype(np.uint16)
    inverses = np.array([0] + [pow(a, -1, prime) for a in range(1, prime)], dtype=np.uint16)
    pivots, rank = _eliminate(pair, columns, np.uint16(prime), inverses)
    return ReducedForm(prime, pair.astype(np.float64), pivots[:rank], columns, int(rank))


def solve(system: ReducedForm, e: Ids, free: Ids) -> Ids | None:
    """Solve A·t ≡ e modulo p with the residues ``free`` [columns] in the free columns; None if there is no solution.

    >>> A = np.array([[1, 1, 0], [0, 1, 2]])
    >>> t = solve(reduce(A, 3), np.array([1, 2]), np.array([0, 0, 2]))
    >>> (A @ t % 3).tolist(), int(t[2])
    ([1, 2], 2)
    """
    values: Ids = free.copy()
    values[system.pivots] = 0
    right = (system.pair[:, system.columns :] @ (e % system.prime).astype(np.float64)).astype(np.int64)
    if (right[system.rank :] % system.prime).any():
        return None
    from_free = (system.pair[: system.rank, : system.columns] @ values.astype(np.float64)).astype(np.int64)
    values[system.pivots] = (right[: system.rank] - from_free) % system.prime
    return values


@jit
def _add(row, factor, other, prime):  # type: ignore[no-untyped-def]
    """Set row ← (row + factor · other) mod p, for residues in 16 bits.

    The sum x is below p². With m = (2^11 + d)/p, 0 ≤ d < p, x·m/2^11 exceeds x/p by less than 1/p, because x·d ≤ 168·12
    < 2^11. So its floor is that of x/p. Moreover, x·m < 2^16.
    """
    inverse = np.uint16((2048 + prime - 1) // prime)
    for k in range(len(row)):
        x = np.uint16(row[k] + np.uint16(factor * other[k]))
        row[k] = np.uint16(x - np.uint16(np.uint16(np.uint16(x * inverse) >> 11) * prime))


@jit
def _eliminate(A, columns, prime, inverses):  # type: ignore[no-untyped-def]
    """Run Gauss–Jordan in place on the first ``columns`` columns; return the pivots' columns and the rank."""
    rows, width = A.shape
    pivots = np.empty(rows, dtype=np.int64)
    rank = 0
    for column in range(columns):
        if rank == rows:
            break
        pivot = rank
        while pivot < rows and A[pivot, column] == 0:
            pivot += 1
        if pivot == rows:
            continue
        for k in range(width):
            A[rank, k], A[pivot, k] = A[pivot, k], A[rank, k]
        # Adding (inverse − 1) times the row multiplies it by the inverse.
        _add(A[rank], np.uint16(inverses[A[rank, column]] - 1), A[rank], prime)
        for i in range(rows):
            if i != rank and A[i, column] != 0:
                _add(A[i, column:], np.uint16(prime - A[i, column]), A[rank, column:], prime)
        pivots[rank] = column
        rank += 1
    return pivots, rank

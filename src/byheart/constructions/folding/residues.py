"""Linear systems modulo any R: prime by prime, and for powers of a prime digit by digit (Hensel).

A·t ≡ e modulo p^k is solved by t = Σ p^i t_i with A·t_i ≡ (e − A·(t_0 + … + p^(i−1) t_(i−1)))/p^i modulo p; solutions
modulo the prime powers that divide R are combined by the Chinese remainder theorem. So one elimination per prime factor
is enough, and the system is solvable for every e if the rows of A are independent modulo each of them. Columns without
a pivot are free: they get random digits, so that solving again gives another solution.

This module imports numba; import it where it is needed.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.compiled import jit
from byheart.constructions.folding.design import factors
from byheart.constructions.folding.features import Coefficients
from byheart.constructions.gadgets import parities
from byheart.tasks.arrays import Floats, Ids


@dataclass(frozen=True, eq=False)
class BinaryForm:
    """A matrix A [rows, columns] modulo 2 in echelon form, bit-packed."""

    echelon: parities.BandEchelon

    @property
    def deficit(self) -> int:
        """Number of rows that depend on others: each makes a right-hand side inconsistent half of the time."""
        return self.echelon.dependent

    def solve(self, e: Ids, free: NDArray[np.integer]) -> Ids | None:
        """Solve A·t ≡ e modulo 2 with the bits ``free`` [columns] in the free columns; None if there is no solution.

        >>> A = np.array([[1, 1, 0], [0, 1, 1]])
        >>> t = reduce(A, 2).solve(np.array([1, 0]), np.array([0, 0, 1], dtype=np.uint8))
        >>> (A @ t % 2).tolist(), int(t[2])
        ([1, 0], 1)
        """
        bits = parities.solve(self.echelon, (e & 1).astype(np.uint8), free.astype(np.uint8))
        return None if bits is None else bits.astype(np.int64)


@dataclass(frozen=True, eq=False)
class OddForm:
    """A matrix A [rows, columns] modulo an odd prime p ≤ 13: R and M with R = M·A, the pivots' columns, the rank."""

    prime: int
    pair: Floats
    pivots: Ids
    columns: int
    rank: int

    @property
    def deficit(self) -> int:
        """Number of rows that depend on others: with each, only one in p right-hand sides stays consistent."""
        return len(self.pair) - self.rank

    def solve(self, e: Ids, free: NDArray[np.integer]) -> Ids | None:
        """Solve A·t ≡ e modulo p with the residues ``free`` [columns] in the free columns; None if impossible.

        >>> A = np.array([[1, 1, 0], [0, 1, 2]])
        >>> t = reduce(A, 3).solve(np.array([1, 2]), np.array([0, 0, 2]))
        >>> (A @ t % 3).tolist(), int(t[2])
        ([1, 2], 2)
        """
        values = free.astype(np.int64)
        values[self.pivots] = 0
        right = (self.pair[:, self.columns :] @ (e % self.prime).astype(np.float64)).astype(np.int64)
        if (right[self.rank :] % self.prime).any():
            return None
        from_free = (self.pair[: self.rank, : self.columns] @ values.astype(np.float64)).astype(np.int64)
        values[self.pivots] = (right[: self.rank] - from_free) % self.prime
        return values


def reduce(A: NDArray[np.integer], prime: int) -> BinaryForm | OddForm:
    """Eliminate A modulo ``prime``."""
    rows, columns = A.shape
    if prime == 2:
        return BinaryForm(parities.reduce_packed(pack(A.astype(np.uint8) & np.uint8(1)), columns))
    pair = np.concatenate([A % prime, np.eye(rows)], axis=1).astype(np.uint16)
    inverses = np.array([0] + [pow(a, -1, prime) for a in range(1, prime)], dtype=np.uint16)
    pivots, rank = _eliminate(pair, columns, np.uint16(prime), inverses)
    return OddForm(prime, pair.astype(np.float64), pivots[:rank], columns, int(rank))


def pack(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Pack rows of bits [R, C] into words of 64, lowest bit first.

    >>> pack(np.array([[1, 0, 1]], dtype=np.uint8)).tolist()
    [[5]]
    """
    rows, columns = bits.shape
    padded = np.zeros((rows, -(-columns // 64) * 8), dtype=np.uint8)
    padded[:, : -(-columns // 8)] = np.packbits(bits, axis=1, bitorder="little")
    return padded.view(np.uint64)


@jit
def _add(row, factor, other, prime):  # type: ignore[no-untyped-def]
    """Set row ← (row + factor · other) mod p, for sixteen-bit residues.

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


@dataclass(frozen=True, eq=False)
class System:
    """A matrix A [rows, columns] with its eliminations, one for each prime factor of R."""

    A: Coefficients
    radix: int
    forms: dict[int, BinaryForm | OddForm]

    @property
    def deficit(self) -> int:
        """Number of rows that depend on others, modulo the prime with the most of them."""
        return max(form.deficit for form in self.forms.values())

    @property
    def unlikely(self) -> int:
        """Expected number of random right-hand sides until one is consistent."""
        powers = factors(self.radix)
        return math.prod(int(prime ** (powers[prime] * form.deficit)) for prime, form in self.forms.items())

    def solve(self, e: Ids, rng: np.random.Generator) -> Ids | None:
        """Solve A·t ≡ e modulo R, with random free cells; None if there is no solution."""
        values = np.zeros(self.A.shape[1], dtype=np.int64)
        for prime, power in factors(self.radix).items():
            modulus = prime**power
            residues = self._power(prime, power, e, rng)
            if residues is None:
                return None
            cofactor = self.radix // modulus
            values += residues * (cofactor * pow(cofactor, -1, modulus) % self.radix if cofactor > 1 else 1)
        return values % self.radix

    def _power(self, prime: int, power: int, e: Ids, rng: np.random.Generator) -> Ids | None:
        """Solve A·t ≡ e modulo prime^power."""
        rest, values = e.copy(), np.zeros(self.A.shape[1], dtype=np.int64)
        residue = np.uint8 if prime == 2 else np.int64
        for place in range(power):
            free = rng.integers(0, prime, size=self.A.shape[1:], dtype=residue)
            digit = self.forms[prime].solve(rest, free)
            if digit is None:
                return None
            values += digit * prime**place
            if place + 1 < power:
                rest = (rest - self.A.times(digit[:, None])[:, 0].astype(np.int64)) // prime
        return values


def eliminate(A: Coefficients, radix: int) -> System:
    """Eliminate A modulo each prime factor of ``radix``."""
    return System(A, radix, {prime: reduce(A.modulo(prime), prime) for prime in factors(radix)})

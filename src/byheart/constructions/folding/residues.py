"""Linear systems modulo any R: prime by prime, and for powers of a prime digit by digit (Hensel).

A·t ≡ e modulo p^k is solved by t = Σ p^i t_i with A·t_i ≡ (e − A·(t_0 + … + p^(i−1) t_(i−1)))/p^i modulo p; solutions
modulo the prime powers that divide R are combined by the Chinese remainder theorem. So one elimination per prime factor
is enough, and the system is solvable for every e if the rows of A are independent modulo each of them. Columns without
a pivot are free: they get random digits, so that solving again gives another solution.
"""

import math
from dataclasses import dataclass

import numpy as np

from byheart.constructions.folding import gf2, gfp
from byheart.constructions.folding.features import Coefficients
from byheart.constructions.folding.radix import factors
from byheart.tasks.arrays import Ids


@dataclass(frozen=True, eq=False)
class System:
    """A matrix A [rows, columns] with its eliminations, one for each prime factor of R."""

    A: Coefficients
    radix: int
    binary: gf2.EchelonForm | None
    odd: tuple[gfp.ReducedForm, ...]

    @property
    def deficit(self) -> int:
        """Number of rows that depend on others, modulo the prime with the most of them."""
        return max(reduced.deficit for reduced in (self.binary, *self.odd) if reduced is not None)

    @property
    def unlikely(self) -> int:
        """Expected number of random right-hand sides until one is consistent."""
        powers = factors(self.radix)
        binary = 1 if self.binary is None else 1 << powers[2] * self.binary.deficit
        return binary * math.prod(int(r.prime ** (powers[r.prime] * r.deficit)) for r in self.odd)

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
        for place in range(power):
            digit = self._prime(prime, rest, rng)
            if digit is None:
                return None
            values += digit * prime**place
            if place + 1 < power:
                rest = (rest - self.A.times(digit[:, None])[:, 0].astype(np.int64)) // prime
        return values

    def _prime(self, prime: int, e: Ids, rng: np.random.Generator) -> Ids | None:
        """Solve A·t ≡ e modulo ``prime``."""
        shape = self.A.shape[1:]
        if prime == 2:
            assert self.binary is not None
            bits = gf2.solve(self.binary, e, rng.integers(0, 2, size=shape, dtype=np.uint8))
            return None if bits is None else bits.astype(np.int64)
        reduced = next(reduced for reduced in self.odd if reduced.prime == prime)
        return gfp.solve(reduced, e, rng.integers(0, prime, size=shape))


def eliminate(A: Coefficients, radix: int) -> System:
    """Eliminate A modulo each prime factor of ``radix``."""
    primes = factors(radix)
    binary = gf2.reduce(A.modulo(2)) if 2 in primes else None
    return System(A, radix, binary, tuple(gfp.reduce(A.modulo(prime), prime) for prime in primes if prime > 2))

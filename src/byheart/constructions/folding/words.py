"""Solving for the words: digit after digit, from the lowest up, so that every carry from below is known.

This module imports numba; import it where it is needed.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from byheart.constructions.folding import gf2
from byheart.constructions.folding.design import GUARD, Sizes
from byheart.constructions.folding.features import Questions, Unsolvable
from byheart.networks.exact import Integers, integers
from byheart.progress import Report
from byheart.tasks.checks import Floats, Ids

LIMB = 24
_DEPENDENT_BITS = 9


def solve(questions: Questions, sizes: Sizes, rng: np.random.Generator, report: Report | None = None) -> Integers:
    """Words [s, D + 1] under which every question reads its label; raises Unsolvable if the draw does not allow it."""
    solver = _Solver(questions, sizes, rng)
    with ThreadPoolExecutor(2) as pool:
        for digit, system in enumerate(_ahead(pool, solver.reduced, sizes.digits)):
            solver.next_digit(digit, system)
            if report is not None:
                report(digit + 1, sizes.digits)
    return solver.words()


def _ahead(pool: ThreadPoolExecutor, work: Callable[[int], gf2.Reduced], count: int) -> Iterator[gf2.Reduced]:
    """work(0), work(1), … in order, computed a few steps ahead (elimination does not depend on the digits below)."""
    waiting = [pool.submit(work, index) for index in range(min(4, count))]
    for index in range(count):
        yield waiting.pop(0).result()
        if index + 4 < count:
            waiting.append(pool.submit(work, index + 4))


def _tries(sizes: Sizes, system: gf2.Reduced) -> int:
    """A system with δ dependent rows is consistent once in 2^(cδ) tries."""
    return 8 << sizes.bits * system.deficit


class _Solver:
    """The words as limbs of 24 bits, filled from the bottom, and the last digit's system for retries."""

    def __init__(self, questions: Questions, sizes: Sizes, rng: np.random.Generator) -> None:
        self.questions, self.sizes, self.rng = questions, sizes, rng
        self.limbs = np.zeros((sizes.words, sizes.word_bits // LIMB + 1))
        self.limbs[:, 0] = rng.integers(0, 1 << GUARD, size=sizes.words)
        order = np.argsort(questions.digit, kind="stable")
        bounds = np.searchsorted(questions.digit[order], np.arange(sizes.digits + 1))
        self.members = [order[a:b] for a, b in pairwise(bounds)]
        self.below: tuple[int, gf2.Reduced, Ids] | None = None

    def reduced(self, digit: int) -> gf2.Reduced:
        """The elimination for one digit; refuses hopeless ones at once."""
        system = gf2.reduce(self.questions.coefficients(self.members[digit]))
        if self.sizes.bits * system.deficit > _DEPENDENT_BITS:
            many = len(self.members[digit])
            raise Unsolvable(f"digit {digit}: {system.deficit} of {many} questions depend on others")
        return system

    def next_digit(self, digit: int, system: gf2.Reduced) -> None:
        """Fill in one digit of all words; if the system has no solution, change the free cells of the digit below."""
        f = self.questions.coefficients(self.members[digit])
        exact = f.astype(np.float64)
        tries = _tries(self.sizes, system)
        for _ in range(tries):
            wanted = self._wanted(digit, exact)
            values = self._digits(system, f, wanted)
            if values is not None:
                self._write(digit, values)
                self.below = (digit, system, wanted)
                return
            self._shake()
        raise Unsolvable(f"digit {digit}: no consistent carries in {tries} tries")

    def _wanted(self, digit: int, f: Floats) -> Ids:
        """f·T must be this modulo 2^c at the digit: see the proof, "The digit is right"."""
        c, labels = self.sizes.bits, self.questions.label[self.members[digit]]
        half = self._half_digits(GUARD + c * digit, f)
        mirrored = (1 << (c + 1)) - 1 - labels
        z = np.where((labels ^ half) & 1, mirrored, labels)
        return ((z - half) >> 1) & ((1 << c) - 1)

    def _half_digits(self, place: int, f: Floats) -> Ids:
        """⌊(Σ f·words below 2^place) / 2^(place − 1)⌋ modulo 2^40, exactly: float64 sums stay below 2⁵³."""
        count = -(-place // LIMB)
        sums = (f @ self.limbs[:, :count]).astype(np.int64)
        carry = np.zeros(len(f), dtype=np.int64)
        for limb in range(count - 1):
            carry = (carry + sums[:, limb]) >> LIMB
        return (carry + sums[:, count - 1]) >> (place - 1 - LIMB * (count - 1))

    def _digits(self, system: gf2.Reduced, f: Ids, wanted: Ids) -> Ids | None:
        """T [g] with f·T ≡ wanted modulo 2^c, by Hensel lifting; free cells random."""
        rest, values = wanted.copy(), np.zeros(self.sizes.words, dtype=np.int64)
        for bit in range(self.sizes.bits):
            free = self.rng.integers(0, 2, size=self.sizes.words, dtype=np.uint8)
            bits = gf2.solve(system, rest, free)
            if bits is None:
                return None
            values |= bits.astype(np.int64) << bit
            if bit + 1 < self.sizes.bits:
                rest = (rest - f @ bits) >> 1
        return values

    def _write(self, digit: int, values: Ids) -> None:
        """Put a digit into the limbs; where one was written before, it is exchanged."""
        c = self.sizes.bits
        for bit in range(c):
            limb, place = divmod(GUARD + c * digit + bit, LIMB)
            weight = float(1 << place)
            column = self.limbs[:, limb]
            old = (column // weight) % 2
            column += (((values >> bit) & 1) - old) * weight

    def _shake(self) -> None:
        """Another solution of the digit below, or other guard bits: carries change, nothing that is solved breaks."""
        if self.below is None:
            self.limbs[:, 0] = self.rng.integers(0, 1 << GUARD, size=self.sizes.words)
            return
        digit, system, wanted = self.below
        f = self.questions.coefficients(self.members[digit])
        for _ in range(_tries(self.sizes, system)):
            values = self._digits(system, f, wanted)
            if values is not None:
                self._write(digit, values)
                return

    def words(self) -> Integers:
        """The limbs as integers [s, D + 1]."""
        octets = self.limbs.astype("<u4").view(np.uint8).reshape(self.sizes.words, -1, 4)[:, :, :3]
        values = [int.from_bytes(row.tobytes(), "little") for row in octets]
        return integers(values, (self.sizes.rows, self.sizes.dim + 1))

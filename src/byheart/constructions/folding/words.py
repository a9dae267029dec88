"""Solve for the words digit by digit, from the lowest up, so that every carry from below is known.

This module imports numba; import it where it is needed.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from byheart.constructions.folding.design import GUARD, FoldingSizes
from byheart.constructions.folding.features import Coefficients, DependentKeys, FoldingKeys
from byheart.constructions.folding.residues import System, eliminate
from byheart.networks.exact import Integers, integers
from byheart.progress import Report
from byheart.tasks.arrays import Floats, Ids

LIMB = 24
"""Largest number of bits of a limb."""
_UNLIKELY = 1 << 9
"""Largest expected number of retries for a digit that is worth trying."""
_BACK = 4
"""Number of earlier digits that may be solved again."""
_SURE = 20
"""Number of bits that limbs must have beyond the carry into them, so that the carry seldom matters."""


def solve(
    questions: FoldingKeys, sizes: FoldingSizes, rng: np.random.Generator, report: Report | None = None
) -> Integers:
    """Solve for words [s, D + 1] under which every question reads its label; DependentKeys if the draw is not good."""
    solver = _DigitSolver(questions, sizes, rng)
    with ThreadPoolExecutor(2) as pool:
        for digit, system in enumerate(_ahead(pool, solver.system, sizes.digits)):
            solver.next_digit(digit, system)
            if report is not None:
                report(digit + 1, sizes.digits)
    return solver.words()


def _ahead(pool: ThreadPoolExecutor, work: Callable[[int], System], count: int) -> Iterator[System]:
    """Yield work(0), work(1), … in order, computed a few steps ahead: elimination does not need the digits below."""
    pending = [pool.submit(work, index) for index in range(min(4, count))]
    for index in range(count):
        yield pending.pop(0).result()
        if index + 4 < count:
            pending.append(pool.submit(work, index + 4))


class DigitLayout:
    """The layout of a word's digits in limbs: guard bits first, then several digits per limb, or limbs per digit.

    Limbs are digits of a mixed radix, below 2^24 and so small that sums over all words are exact in float64.
    """

    def __init__(self, sizes: FoldingSizes) -> None:
        bits = min(LIMB, 52 - sizes.carry_bits)
        self.radix, self.per_limb = sizes.radix, 0
        while self.radix ** (self.per_limb + 1) <= 1 << bits:
            self.per_limb += 1
        if self.per_limb:
            limbs = -(-sizes.digits // self.per_limb)
            self.bases = [1 << GUARD] + [self.radix**self.per_limb] * limbs
        else:
            whole, rest = divmod(self.radix.bit_length() - 1, bits)
            self.parts = [1 << bits] * whole + [1 << rest] * (rest > 0)
            self.bases = [1 << GUARD] + self.parts * sizes.digits

    def place(self, digit: int) -> tuple[int, int]:
        """Return the limb where a digit starts, and the digit's weight in it."""
        if self.per_limb:
            limb, place = divmod(digit, self.per_limb)
            return limb + 1, self.radix**place
        return 1 + len(self.parts) * digit, 1

    def deciding(self, carry: int) -> int:
        """Return the number of limbs whose number of values is at least 2^20 times that of a ``carry`` into them."""
        limbs, values = 0, 1
        while values < carry << _SURE:
            limbs, values = limbs + 1, values * min(self.bases[1:])
        return limbs

    def write(self, limbs: Floats, digit: int, values: Ids) -> None:
        """Write a digit of all words into the limbs, replacing an earlier one."""
        limb, weight = self.place(digit)
        if self.per_limb:
            column = limbs[:, limb]
            column += (values - column // weight % self.radix) * weight
            return
        for index, base in enumerate(self.parts):
            limbs[:, limb + index], values = values % base, values // base


class _DigitSolver:
    """The words as limbs, filled from the lowest digit, and the last digits' systems for retries."""

    def __init__(self, questions: FoldingKeys, sizes: FoldingSizes, rng: np.random.Generator) -> None:
        self.questions, self.sizes, self.rng = questions, sizes, rng
        self.layout = DigitLayout(sizes)
        self.limbs = np.zeros((sizes.words, len(self.layout.bases)))
        self.limbs[:, 0] = rng.integers(0, 1 << GUARD, size=sizes.words)
        order = np.argsort(questions.digit, kind="stable")
        bounds = np.searchsorted(questions.digit[order], np.arange(sizes.digits + 1))
        self.members = [order[a:b] for a, b in pairwise(bounds)]
        self.below: list[System] = []

    def system(self, digit: int) -> System:
        """Eliminate the system of one digit; DependentKeys if it is unlikely ever to have a solution."""
        system = eliminate(self.questions.coefficients(self.members[digit]), self.sizes.radix)
        if system.unlikely > _UNLIKELY:
            count = len(self.members[digit])
            raise DependentKeys(f"digit {digit}: {system.deficit} of {count} questions depend on others")
        return system

    def next_digit(self, digit: int, system: System) -> None:
        """Fill in one digit of all words; if the system has no solution, change the free cells of digits below."""
        tries = 16 * system.unlikely
        for count in range(tries):
            if self._fill(digit, system):
                self.below = [*self.below, system][-_BACK:]
                return
            # The digit below always has another solution; the digits below that may not.
            self._shake(digit, 1 if count % 2 == 0 else 2 + count // 2 % (_BACK - 1))
        raise DependentKeys(f"digit {digit}: no consistent carries in {tries} tries")

    def _fill(self, digit: int, system: System) -> bool:
        """Solve for one digit, with random free cells, and write it; return False if there is no solution."""
        values = system.solve(self._targets(digit, system), self.rng)
        if values is None:
            return False
        self.layout.write(self.limbs, digit, values)
        return True

    def _shake(self, digit: int, back: int) -> None:
        """Replace the last digits by other solutions, or all digits and the guard bits; solved digits stay solved.

        Questions that differ by multiples of 2^b have the same carries unless b digits are changed.
        """
        before = self.limbs.copy()
        first = max(0, digit - min(back, len(self.below)))
        if first == 0:
            self.limbs[:, 0] = self.rng.integers(0, 1 << GUARD, size=self.sizes.words)
        for place in range(first, digit):
            self.layout.write(self.limbs, place, np.zeros(self.sizes.words, dtype=np.int64))
        for place in range(first, digit):
            if not self._fill(place, self.below[place - digit]):
                self.limbs = before
                return

    def _targets(self, digit: int, system: System) -> Ids:
        """Return the right-hand side f·T modulo R at the digit (see "The digit is right" in the package's proof)."""
        R, labels = self.sizes.radix, self.questions.label[self.members[digit]]
        half = self._half_digits(digit, system.A)
        z = np.where((labels ^ half) & 1, 2 * R - 1 - labels, labels)
        return ((z - half) >> 1) % R

    def _half_digits(self, digit: int, f: Coefficients) -> Ids:
        """Return ⌊(2·Σ f·words below the digit + 1) / (2^γ·R^digit)⌋, exactly: float64 sums stay below 2⁵³.

        The carry from lower limbs is between −2·Σ|f| and 2·Σ|f|. So a few limbs decide for all but about one question
        in a million, for which all limbs are used.
        """
        limb, bound = self.layout.place(digit)[0], 2 * f.norms()
        first = limb - self.layout.deciding(int(bound.max(initial=0)))
        if first <= 0:
            return self._carried(digit, 0, f, np.ones_like(bound))
        half, most = self._carried(digit, first, f, np.stack([-bound, bound]))
        unclear = half != most
        if unclear.any():
            half[unclear] = self._carried(digit, 0, f.some(unclear), np.ones_like(bound[unclear]))
        return np.asarray(half, np.int64)

    def _carried(self, digit: int, first: int, f: Coefficients, carry: Ids) -> Ids:
        """Return the half digits for each ``carry`` [questions], or several, into the limb ``first``."""
        limb, weight = self.layout.place(digit)
        sums = 2 * f.times(self.limbs[:, first : limb + 1]).T.astype(np.int64)
        for index in range(first, limb):
            carry = (carry + sums[index - first]) // self.layout.bases[index]
        half: Ids = (carry + sums[-1]) // weight
        return half

    def words(self) -> Integers:
        """Return the words as integers [s, D + 1], each the residue modulo M of the smallest absolute value."""
        values, M = [0] * self.sizes.words, self.sizes.modulus
        for base, column in zip(reversed(self.layout.bases), self.limbs.T[::-1].astype(np.int64).tolist(), strict=True):
            values = [value * base + limb for value, limb in zip(values, column, strict=True)]
        centred = [value - M if 2 * value >= M else value for value in values]
        return integers(centred, (self.sizes.rows, self.sizes.dim + 1))

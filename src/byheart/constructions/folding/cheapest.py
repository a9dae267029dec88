"""Choose the cheapest folding network for a demand by computing the dense counts of all candidates at once."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from byheart.constructions.folding.design import FEWEST_FOLDS, FoldingSizes, load_limit, slack
from byheart.constructions.folding.radix import bits_of, radix_for
from byheart.tasks.arrays import Ids


def design(
    questions: int, labels: int, reach: int, dims: range, *, growth: int = 0, front: Callable[[int], int] = lambda _: 0
) -> FoldingSizes:
    """Return the cheapest sizes for ``questions`` keys; ``front`` gives the cost of D columns before the attention.

    Each ``growth`` adds a fifth more words. Questions that look alike (on a line, say) need it, and then thresholds go
    out to the edges as well. The search tries about two hundred numbers of digits, and then those around the best.
    """
    balance = math.sqrt(questions / (2 * bits_of(radix_for(labels))))
    low, high = max(1, int(balance / 2)), int(2 * balance) + 3
    step = max(1, (high - low) // 200)
    middle = Choice(questions, labels, reach, growth, range(low, high, step)).cheapest(dims, front)
    if step == 1:
        return middle
    around = range(max(low, middle.digits - step), min(high, middle.digits + step + 1))
    return Choice(questions, labels, reach, growth, around).cheapest([middle.dim], front)


@dataclass(frozen=True)
class Choice:
    """Candidate sizes: the arguments of :func:`design`, and a range of numbers of ``digits``."""

    questions: int
    labels: int
    reach: int
    growth: int
    digits: range

    def cheapest(self, dims: Iterable[int], front: Callable[[int], int]) -> FoldingSizes:
        """Return the sizes with the fewest parameters; ties go to the fewest columns, then digits."""
        costs = {dim: self.costs(dim) + front(dim) for dim in dims}
        dim = min(costs, key=lambda dim: int(costs[dim].min()))
        return self.sizes(dim, int(costs[dim].argmin()))

    def sizes(self, dim: int, index: int) -> FoldingSizes:
        """Return the sizes with D columns and the number of digits at ``index``."""
        rows, edge = int(self._rows(dim)[index]), 0.3 if self.growth <= 1 else 0.01
        return FoldingSizes(self.questions, self.labels, self._radix, dim, rows, self.digits[index], self.reach, edge)

    def costs(self, dim: int) -> Ids:
        """Return :attr:`FoldingSizes.dense` with D columns, for every number of digits."""
        first, rows, digits = self.sizes(dim, 0), self._rows(dim), np.array(self.digits)
        bits = bit_lengths(digits)
        folded = np.maximum(bits + 5, 3 * bits // 2 + 2)
        level = np.maximum(bit_lengths(rows, self.reach) + 1, np.where(digits == 1, 0, folded + FEWEST_FOLDS))
        of_digits = np.ceil((digits - 1) * bits_of(self._radix)).astype(np.int64)
        folds, stages = 1 + bit_lengths(rows, first.sum_limit) + level + of_digits, bit_lengths(digits - 1)
        return first.fixed + (dim + 2) * rows + np.where(stages > 0, 10 * stages + 3, 0) + 2 * folds

    @property
    def _radix(self) -> int:
        return radix_for(self.labels)

    @cached_property
    def _needed(self) -> Ids:
        """Number of words for the largest load and some slack."""
        loads = [load_limit(self.questions, digits) for digits in self.digits]
        return np.array([load + slack(self._radix, load) for load in loads])

    def _rows(self, dim: int) -> Ids:
        return np.ceil(self._needed / (dim + 1) * 1.2**self.growth).astype(np.int64)


def bit_lengths(numbers: Ids, times: int = 1) -> Ids:
    """Return the bit length of each number multiplied by ``times``, an integer of any size.

    >>> bit_lengths(np.array([0, 1, 2, 3, 4])), bit_lengths(np.array([0, 1, 2]), 3 << 100)
    (array([0, 1, 2, 2, 3]), array([  0, 102, 103]))
    """
    powers = [-(-(1 << b) // times) for b in range((int(numbers.max()) * times).bit_length())]
    return np.searchsorted(np.array(powers, dtype=np.int64), numbers, side="right")

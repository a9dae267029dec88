"""The sizes of a folding network: the radix of its digits, every width and the dense count, and the cheapest choice."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import NormalDist

import numpy as np

from byheart.constructions.plan import TokenwiseShape
from byheart.tasks.arrays import Ids

LARGEST_PRIME = 13
"""Largest prime factor of a radix: linear systems are solved modulo each one."""
LARGEST = 1 << 16
"""Largest number of labels for a radix other than a power of two; beyond it, other radices save next to nothing."""
_WORTH = (49, 50)
"""Share of a power of two's bits above which another radix is not worth it: it saves under one parameter in 100."""


@cache
def radix_for(labels: int) -> int:
    """Return the smallest radix ≥ max(C, 2) without prime factors above 13, or 2^⌈log₂C⌉ if that has hardly more bits.

    >>> [radix_for(C) for C in (1, 2, 3, 10, 17, 100, 256, 257, 1000)]
    [2, 2, 3, 10, 18, 100, 256, 260, 1024]
    """
    power = 1 << max(1, (labels - 1).bit_length())
    if labels > LARGEST:
        return power
    smooth = next(R for R in range(max(2, labels), power + 1) if factors(R))
    return smooth if smooth ** _WORTH[1] <= power ** _WORTH[0] else power


@cache
def factors(radix: int) -> dict[int, int]:
    """Return the exponent of each prime factor; nothing if a prime factor is larger than 13.

    >>> factors(360), factors(2**60), factors(34)
    ({2: 3, 3: 2, 5: 1}, {2: 60}, {})
    """
    exponents: dict[int, int] = {}
    for prime in range(2, LARGEST_PRIME + 1):
        while radix % prime == 0:
            radix //= prime
            exponents[prime] = exponents.get(prime, 0) + 1
    return exponents if radix == 1 else {}


def bits_of(radix: int) -> float:
    """Return log₂R, exact for powers of two and otherwise slightly too large, never too small.

    >>> bits_of(8), bits_of(3) > math.log2(3)
    (3, True)
    """
    return radix.bit_length() - 1 if radix & radix - 1 == 0 else math.log2(radix) * (1 + 1e-12)


GUARD = 8
"""Number of random bits below the first digit of every word."""
WEIGHT = 3
"""Weight of the sum of all codes, which the attention adds to a token's own code; odd, so that parities see the sum."""
FEWEST_FOLDS = 5
"""Smallest number of folds of the level: sums vary by a tenth of their range, and must go round a few times."""
STAIRS = 6
"""Largest number of labels for which a single staircase reads the digit; otherwise it is read bit by bit."""


@dataclass(frozen=True)
class FoldingSizes:
    """The sizes of one folding network.

    ========  =======  ====================================================================================
    field     letter   meaning
    ========  =======  ====================================================================================
    questions K        keys
    labels    C        labels
    radix     R        radix of the digits, at least C
    dim       D        hash integers u_j: embedding columns
    rows      s        gated rows of words; one row has D + 1 words
    digits    m        digits of a word
    reach     B        |u_j| ≤ B
    edge               smallest share of the questions for which a gate is open, and for which it is closed
    ========  =======  ====================================================================================
    """

    questions: int
    labels: int
    radix: int
    dim: int
    rows: int
    digits: int
    reach: int
    edge: float = 0.3

    @property
    def words(self) -> int:
        """Number of unknowns of every digit position, g = s(D + 1)."""
        return self.rows * (self.dim + 1)

    @cached_property
    def unit(self) -> int:
        """Weight of the highest digit, 2^γ·R^(m−1)."""
        return int(self.radix ** (self.digits - 1)) << GUARD

    @property
    def modulus(self) -> int:
        """M = 2^γ·R^m: words are residues modulo M of the smallest absolute value."""
        return self.unit * self.radix

    @property
    def sum_limit(self) -> int:
        """Largest Σ_j |u_j| + 1 of a usable draw of codes."""
        return self.dim * self.reach // 3 + 1

    @property
    def carry_bits(self) -> int:
        """j: V = 2^j·M exceeds twice the sum over all rows of words, each at most M/2·(Σ|u_j| + 1)."""
        return (self.rows * self.sum_limit).bit_length()

    @property
    def gate_limit(self) -> int:
        """Largest sum of the open gates' arguments of a usable draw of gates."""
        return self.rows * self.reach

    @property
    def folded_bits(self) -> int:
        """Number of bits of a folded level: 32 levels per digit, and more for many digits, to balance their loads."""
        bits = self.digits.bit_length()
        return max(bits + 5, 3 * bits // 2 + 2)

    @property
    def level_bits(self) -> int:
        """L: the weighted arguments of the gates and an offset add up to a level below 2^L."""
        enough = (2 * self.gate_limit + 1).bit_length()
        return enough if self.digits == 1 else max(enough, self.folded_bits + FEWEST_FOLDS)

    @property
    def first_folds(self) -> int:
        """r: number of folds of the level, which leave the values that choosing a digit needs and make them uniform."""
        return 0 if self.digits == 1 else self.level_bits - self.folded_bits

    @property
    def stages(self) -> int:
        """Number of conditional shifts, which together shift by up to m − 1 digits."""
        return (self.digits - 1).bit_length()

    @property
    def folds(self) -> int:
        """Total number of folds, r of them before the shift: from 2·V·2^L·R^(m−1) down to M."""
        return 1 + self.carry_bits + self.level_bits + math.ceil((self.digits - 1) * bits_of(self.radix))

    @property
    def last_folds(self) -> int:
        """Number of folds of the shifted sum, which is below 2·V·2^(L−r)·R^(m−1)."""
        return self.folds - self.first_folds

    @property
    def label_bits(self) -> int:
        """Number of bits of a label that is read bit by bit; 0 if a staircase reads it."""
        return (self.labels - 1).bit_length() if self.labels > STAIRS else 0

    @property
    def gates(self) -> TokenwiseShape:
        """Shape of the words with their gates, and the sum."""
        return TokenwiseShape((("words", self.rows, self.dim), ("sum", 1, self.rows)))

    @property
    def stairs(self) -> TokenwiseShape:
        """Shape of the staircase that reads one of a few labels, with two units per step."""
        steps = 2 * max(1, self.labels - 1)
        return TokenwiseShape((("step", steps, 1), ("answer", 1, steps)))

    @property
    def fixed(self) -> int:
        """Parameters behind the codes that do not depend on rows and digits: attention, the sum's bias, label."""
        label = 10 * self.label_bits + 7 if self.label_bits else self.stairs.dense
        return 2 * self.dim**2 + 1 + label

    @property
    def dense(self) -> int:
        """All parameters behind the codes: attention, words, folds, shifts and label."""
        shift = 10 * self.stages + 3 if self.stages else 0
        return self.fixed + self.words + self.rows + shift + 2 * self.folds


def closed_form(questions: int, labels: int, dim: int, reach: int, load: float) -> float:
    """Return the theorem's count: X(2 + 1/(D + 1)) and all lower-order terms, where X = √(2K log₂R / λ)."""
    radix = radix_for(labels)
    X = math.sqrt(2 * questions * bits_of(radix) / load)
    sizes = balanced(questions, labels, dim, reach, load)
    shift = 10 * sizes.stages + 3 if sizes.stages else 0
    label = 6 * max(1, labels - 1) + 1 if labels <= STAIRS else 10 * (labels - 1).bit_length() + 7
    lower = 2 * dim**2 + dim + 3 + shift + 2 * (2 + sizes.carry_bits + sizes.level_bits) + label
    return X * (2 + 1 / (dim + 1)) + lower


def balanced(questions: int, labels: int, dim: int, reach: int, load: float) -> FoldingSizes:
    """Balance the parameters of words and folds: m = ⌈√(K / (2λ log₂R))⌉, s = ⌈K / (λm(D + 1))⌉."""
    radix = radix_for(labels)
    digits = math.ceil(math.sqrt(questions / (2 * load * bits_of(radix))))
    rows = math.ceil(questions / (load * digits * (dim + 1)))
    return FoldingSizes(questions, labels, radix, dim, rows, digits, reach)


def load_limit(questions: int, digits: int) -> int:
    """Return the largest number of questions per position that a few hundred draws of the position hash can reach.

    Loads are nearly binomial. If (1 − tail)^m ≥ 1 %, 460 draws succeed with probability 99 %.
    """
    if digits == 1:
        return questions
    mean = questions / digits
    return math.ceil(mean + _excess(digits) * math.sqrt(mean * (1 - 1 / digits)) + 0.5)


@cache
def _excess(digits: int) -> float:
    # With few digits the loads are far from independent: their sum is fixed, and the largest is above the mean.
    return max(0.7, NormalDist().inv_cdf(0.01 ** (1 / digits)))


def slack(radix: int, words: int) -> int:
    """Return the number of words beyond the largest load, so that retries can cope with the dependent rows."""
    return (2 if radix == 2 else 6) + words // 100


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
        costs = {dim: self.costs(dim) for dim in dims}
        dim = min(costs, key=lambda dim: int(costs[dim].min()) + front(dim))  # the front may exceed 64 bits
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

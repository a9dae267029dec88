"""How large a folding network is: every width from the demand alone, by minimising the dense count."""

import math
from dataclasses import dataclass
from statistics import NormalDist

from byheart.constructions.plan import Shape

GUARD = 8
"""Random bits below the first digit of every word."""
WEIGHT = 3
"""The attention adds this many times the sum of all codes to a token's own: odd, so that parities see the sum."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of one folding network.

    ========  =======  ====================================================================================
    field     letter   meaning
    ========  =======  ====================================================================================
    questions K        keys
    bits      c        bits of a label
    dim       D        hash integers u_j: embedding columns
    rows      s        gated rows of words; one row has D + 1 words
    digits    m        digits of a word
    reach     B        |u_j| ≤ B
    first_folds        folds that make the position hash uniform
    edge               gates are open for at least this share of the questions, and closed for as many
    ========  =======  ====================================================================================
    """

    questions: int
    bits: int
    dim: int
    rows: int
    digits: int
    reach: int
    first_folds: int
    edge: float = 0.3

    @property
    def words(self) -> int:
        """g = s(D + 1): unknowns of every digit position."""
        return self.rows * (self.dim + 1)

    @property
    def word_bits(self) -> int:
        """Bits of a word: guard bits and digits."""
        return GUARD + self.bits * self.digits

    @property
    def sum_limit(self) -> int:
        """Σ_j |u_j| + 1 is at most this: a draw of codes that exceeds it is not used."""
        return self.dim * self.reach // 3 + 1

    @property
    def gate_bits(self) -> int:
        """log₂V: |a row's data| < V, and V is a multiple of every digit's weight."""
        return self.word_bits + self.sum_limit.bit_length()

    @property
    def gate_limit(self) -> int:
        """Σ over the open gates of (argument + 1) is at most this: a draw of gates that exceeds it is not used."""
        return self.rows * self.reach

    @property
    def top(self) -> int:
        """The shifted sum is below 2^top."""
        return self.gate_bits + (2 * self.gate_limit).bit_length() + self.bits * (self.digits - 1)

    @property
    def bottom(self) -> int:
        """After folding it is in [0, 2^bottom]."""
        return self.word_bits

    @property
    def stages(self) -> int:
        """Conditional doublings that shift by up to m − 1 digits."""
        return (self.digits - 1).bit_length()

    @property
    def gates(self) -> Shape:
        """Words and gates, then the sum and the position hash."""
        return Shape((("words", self.rows + 1, self.dim), ("sum", 2, self.rows + 1)))

    @property
    def shift_blocks(self) -> list[tuple[str, int, int]]:
        """(role, d_ff, d_model) of the blocks that find the digit's position and shift by it."""
        return [("fold", 1, 2)] * self.first_folds + [("shift", 2, 2)] * self.stages

    @property
    def fold_blocks(self) -> list[tuple[str, int, int]]:
        """The blocks that fold away what stands above the digit."""
        return [("fold", 1, 1)] * (self.top - self.bottom)

    @property
    def digit_blocks(self) -> list[tuple[str, int, int]]:
        """The blocks that read a digit of more than one bit, bit after bit."""
        return [("digit", 2, 2)] * self.bits if self.bits > 1 else []

    @property
    def dense(self) -> int:
        """All parameters behind the codes: attention, words, shift, folds and digits."""
        attention, words = 2 * self.dim**2, (self.rows + 1) * (self.dim + 1) + 2 * (self.rows + 2)
        shift, drop = 5 * self.first_folds + 10 * self.stages, 3
        decode = 7 if self.bits == 1 else 10 * self.bits + 7
        return attention + words + shift + drop + 3 * (self.top - self.bottom) + decode


def load_limit(questions: int, digits: int) -> int:
    """The largest number of questions at one position that a few hundred draws of the position hash reach.

    Loads are nearly binomial; (1 − tail)^m ≥ 1 % is what 460 draws find with probability 99 %.
    """
    if digits == 1:
        return questions
    mean = questions / digits
    # With few digits the loads are far from independent: their sum is fixed, and the largest is above the mean.
    excess = max(0.7, NormalDist().inv_cdf(0.01 ** (1 / digits)))
    return math.ceil(mean + excess * math.sqrt(mean * (1 - 1 / digits)) + 0.5)


def slack(bits: int, words: int) -> int:
    """Words beyond the largest load, so that dependent rows stay few enough for the retries."""
    return (2 if bits == 1 else 6) + words // 100


def design(questions: int, bits: int, reach: int, dims: range, *, first_folds: int = 5, growth: int = 0) -> Sizes:
    """The cheapest sizes for ``questions`` keys; each ``growth`` makes the words a fifth more.

    Growth is needed where questions look alike (on a line, say): then thresholds go out to the edges as well.

    All numbers of digits up to four hundred are tried; of more, four hundred, and then those around the best.
    """

    def sizes(dim: int, digits: int) -> Sizes:
        needed = load_limit(questions, digits)
        rows = math.ceil((needed + slack(bits, needed)) / (dim + 1) * 1.2**growth)
        return Sizes(questions, bits, dim, rows, digits, reach, first_folds, 0.3 if growth <= 1 else 0.01)

    balance = math.sqrt(questions / (3 * bits))
    low, high = max(1, int(balance / 2)), int(2 * balance) + 3
    step = max(1, (high - low) // 400)
    coarse = [sizes(dim, digits) for dim in dims for digits in range(low, high, step)]
    middle = min(coarse, key=lambda s: s.dense)
    around = range(max(low, middle.digits - step), min(high, middle.digits + step + 1))
    return min((sizes(middle.dim, digits) for digits in around), key=lambda s: s.dense)

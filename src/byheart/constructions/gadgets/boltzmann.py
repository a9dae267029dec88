"""The Boltzmann operator of a sequence, enclosed; and as many bits as it takes to tell all its values apart.

boltz(β; Y) = Σ_j c_j Y_j e^{β Y_j} / Σ_j c_j e^{β Y_j} for different integers Y_j that occur c_j times: the average
that softmax attention takes of what its scores are made of. β is rational, so for β ≠ 0 different multisets of one size
have different values (:mod:`byheart.constructions.kajitsuka_sato_2024` has the proof); how different, only the
enclosure tells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from operator import mul

from flint import arb, fmpq, fmpz

from byheart.networks.balls import precision, rounded_outward

FEWEST_BITS = 64


@dataclass(frozen=True)
class Multiset:
    """Different integers and how often each occurs."""

    values: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Interval:
    """A real number lies between these two."""

    low: Fraction
    high: Fraction


class NotApartError(Exception):
    """Two values could not be told apart with the bits allowed: their places in the list."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first, second)
        self.first, self.second = first, second


def boltz(beta: Fraction, multiset: Multiset, bits: int) -> Interval:
    """Enclose the Boltzmann average of a multiset at β in an interval whose ends are multiples of 2^−bits.

    >>> value = boltz(Fraction(1), Multiset((0, 1), (1, 1)), 64)  # e/(1 + e)
    >>> float(value.low), float(value.high)
    (0.7310585786300049, 0.7310585786300049)
    """
    if beta == 0:
        mean = Fraction(sum(map(mul, multiset.values, multiset.counts)), sum(multiset.counts))
        return Interval(mean, mean)
    # Differences to the value with the largest weight: no exponent is positive, and few digits cancel.
    top = max(multiset.values) if beta > 0 else min(multiset.values)
    exact = fmpq(fmpz(beta.numerator), fmpz(beta.denominator))
    with precision(bits):
        weights = [
            count * arb(exact * (value - top)).exp()
            for value, count in zip(multiset.values, multiset.counts, strict=True)
        ]
        terms = [weight * (value - top) for weight, value in zip(weights, multiset.values, strict=True)]
        low, high = rounded_outward(sum(terms[1:], terms[0]) / sum(weights[1:], weights[0]), bits)
    return Interval(top + Fraction(low, 1 << bits), top + Fraction(high, 1 << bits))


def apart(beta: Fraction, multisets: Sequence[Multiset], most_bits: int) -> list[Interval]:
    """Disjoint intervals around boltz(β; ·) of different multisets: with twice the bits until they are, and 64 more.

    :class:`NotApartError` names two that ``most_bits`` do not tell apart.

    >>> [round(float(v.low), 3) for v in apart(Fraction(1), [Multiset((0, 1), (1, 1)), Multiset((0, 2), (1, 1))], 64)]
    [0.731, 1.762]
    """
    bits = FEWEST_BITS
    while True:
        values = [boltz(beta, multiset, bits) for multiset in multisets]
        order = sorted(range(len(values)), key=lambda i: values[i].low)
        touching = next(((i, j) for i, j in pairwise(order) if values[i].high >= values[j].low), None)
        if touching is None:
            # Just disjoint says little about the distance; with 64 bits more it is known well.
            return [boltz(beta, multiset, bits + 64) for multiset in multisets]
        if bits >= most_bits:
            raise NotApartError(*touching)
        bits = min(2 * bits, most_bits)

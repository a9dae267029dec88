"""Real ids as labels: enclose the Boltzmann averages of sequences, and read a label off each by steps between them.

**Ids.** boltz(β; Y) = Σ_j c_j Y_j e^{β Y_j} / Σ_j c_j e^{β Y_j} for different integers Y_j that occur c_j times: the
average that softmax attention takes of the numbers that its scores are made of. β is rational, so for β ≠ 0 different
multisets of one size have different values (:mod:`byheart.constructions.kajitsuka_sato_2024` has the proof); how
different, only the enclosure tells.

**Steps.** The ids ζ_1 < … < ζ_K are known by disjoint intervals. Between two of them stands the step relu((z − t)·2^s)
− relu((z − t)·2^s − 1): 0 up to t, 1 from t + 2^−s on, and both places lie between the intervals. So y_1 + Σ_q (y_{q+1}
− y_q)·step_q(z) is y_q at ζ_q: 2(K − 1) hidden units, integer weights, the label itself, though no id can be written
down.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from operator import mul

from flint import arb, fmpq, fmpz

from byheart.constructions.plan import TokenwiseShape
from byheart.networks.balls import precision, rounded_outward
from byheart.networks.exact import Affine, integers

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


def stair_shape(ids: int, dim: int) -> TokenwiseShape:
    """The stairs for this many ids, read off a stream of width ``dim``."""
    units = max(1, 2 * (ids - 1))
    return TokenwiseShape((("steps", units, dim), ("answer", 1, units)))


def stair_layers(ids: Sequence[Interval], labels: Sequence[int], direction: Sequence[int]) -> list[Affine]:
    """The layers that answer labels[q] wherever direction·Z lies in ids[q]; the ids are in order, and disjoint.

    >>> chain = stair_layers([Interval(Fraction(0), Fraction(1)), Interval(Fraction(2), Fraction(3))], [5, 7], [1])
    >>> chain[0].W.tolist(), chain[0].b.tolist(), chain[1].W.tolist(), chain[1].b.tolist()
    ([[2], [2]], [-2, -3], [[2, -2]], [5])
    """
    rows, biases, answer = [], [], []
    for q in range(len(ids) - 1):
        s, start = _step(ids[q].high, ids[q + 1].low)
        rows += [[entry << s for entry in direction]] * 2
        biases += [-start, -start - 1]
        jump = labels[q + 1] - labels[q]
        answer += [jump, -jump]
    if not rows:
        rows, biases, answer = [[0 for _ in direction]], [0], [0]
    return [
        Affine(integers(rows), integers(biases), role="steps"),
        Affine(integers([answer]), integers([labels[0]]), role="answer", relu=False),
    ]


def _step(low: Fraction, high: Fraction) -> tuple[int, int]:
    """Return s and t·2^s with low ≤ t and t + 2^−s ≤ high."""
    room = (high - low) / 2
    s = max(0, room.denominator.bit_length() - room.numerator.bit_length() + 1)
    while s > 0 and Fraction(1, 1 << (s - 1)) <= room:
        s -= 1
    return s, -((-low.numerator << s) // low.denominator)

"""Real ids → labels with two ReLUs per step: exact on every id, though no id can be written down.

The ids ζ_1 < … < ζ_K are known by disjoint intervals. Between two of them stands the step relu((z − t)·2^s) −
relu((z − t)·2^s − 1): 0 up to t, 1 from t + 2^−s on, and both places lie between the intervals. So y_1 + Σ_q (y_{q+1} −
y_q)·step_q(z) is y_q at ζ_q: 2(K − 1) hidden units, integer weights, the label itself.
"""

from collections.abc import Sequence
from fractions import Fraction

from byheart.constructions.gadgets.boltzmann import Interval
from byheart.constructions.plan import TokenwiseShape
from byheart.networks.exact import Affine, integers


def shape(ids: int, dim: int) -> TokenwiseShape:
    """The stairs for this many ids, read off a stream of width ``dim``."""
    units = max(1, 2 * (ids - 1))
    return TokenwiseShape((("steps", units, dim), ("answer", 1, units)))


def layers(ids: Sequence[Interval], labels: Sequence[int], direction: Sequence[int]) -> list[Affine]:
    """The layers that answer labels[q] wherever direction·Z lies in ids[q]; the ids are in order, and disjoint.

    >>> chain = layers([Interval(Fraction(0), Fraction(1)), Interval(Fraction(2), Fraction(3))], [5, 7], [1])
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

"""One layer of hardmax heads is no contextual mapping: sequences that all of them confuse (Kajitsuka & Sato 2024).

A hardmax head tells a token one thing about its sequence: the average of the tokens with the largest score. *No number
of heads* is enough, whatever their weights. Two sequences show it that do not even depend on the weights.

**Proof.** Take tokens on a line, x_s = b + s·c with c ≠ 0, a length n ≥ 4, and the places

    A = {0, 1, n, n + 1} ∪ {3, …, n − 2}    and    B = {0, 2, n − 1, n + 1} ∪ {3, …, n − 2}.

1. Each set has n different places. The sets differ, and they agree in their smallest place, their largest place and
   their sum.
2. Let the query be a token x that both sequences hold. Its score of x_s is (W_K x_s)·(W_Q x), an affine function of s.
   If it rises, x sees x_{n+1} alone. If it falls, x sees x_0 alone. If it is constant, x sees the mean of all tokens,
   which is the same for A and B.
3. So every head gives x the same average in A and in B, and W_V, W_O and all further layers turn equal streams into
   equal outputs. QED (:func:`on_a_line` and :func:`confused_by`, which evaluates all heads in exact arithmetic.)

The norms and distances of the tokens are free: any r and δ with (n + 1)·δ ≤ r are possible. Softmax heads tell A and B
apart. The proof needs n ≥ 4: of three tokens on a line, one of them known, the largest, the smallest and the mean give
the others, so three hardmax heads tell all such sequences apart, unless the query is the token 0.

:func:`confused` searches for two sequences over any tokens, and :func:`confused_by_all` for two that several heads
confuse. If tokens are not on a line, there may be none: means tell sequences of affinely independent tokens apart
(Kajitsuka & Sato 2025).
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from byheart.errors import BadInput
from byheart.networks.exact import HardmaxAttention, Integers, integers
from byheart.tasks.arrays import Ids

Average = tuple[Fraction, ...]


def on_a_line(length: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the places A and B of two sequences of ``length`` tokens, with the shared places first.

    >>> on_a_line(4), on_a_line(6)
    (((0, 5, 1, 4), (0, 5, 2, 3)), ((0, 7, 3, 4, 1, 6), (0, 7, 3, 4, 2, 5)))
    """
    if length < 4:
        raise BadInput(f"length is {length}; expected 4 or more: three tokens on a line can be told apart")
    shared = (0, length + 1, *range(3, length - 1))
    return (*shared, 1, length), (*shared, 2, length - 1)


def random_heads(count: int, dim: int, rng: np.random.Generator) -> list[HardmaxAttention]:
    """Draw heads of dimension ``dim`` whose weights are integers from −9 to 9."""

    def draw() -> Integers:
        return integers(rng.integers(-9, 10, (dim, dim)).tolist())

    return [HardmaxAttention(W_Q=draw(), W_K=draw(), W_V=draw(), W_O=draw()) for _ in range(count)]


def confused_by(
    heads: Sequence[HardmaxAttention], length: int, base: Integers, step: Integers
) -> tuple[Integers, Integers]:
    """Return two sequences [length, d] of tokens base + s·step whose first token gets the same from every head.

    No token occurs twice in a sequence, and the sequences share all tokens but two. Every head is evaluated on both.

    >>> one = integers([[1]])
    >>> heads = [HardmaxAttention(W_Q, one, one, one) for W_Q in (one, -one, 0 * one)]
    >>> first, second = confused_by(heads, 4, integers([3]), integers([2]))
    >>> first.ravel().tolist(), second.ravel().tolist()
    ([3, 13, 5, 11], [3, 13, 7, 9])
    """
    if not step.any():
        raise BadInput("step is 0; expected a direction, so that tokens differ")
    first, second = (integers([base + place * step for place in places]) for places in on_a_line(length))
    for number, head in enumerate(heads):
        width = head.W_Q.shape[1]
        if base.shape != (width,) or step.shape != (width,):
            raise BadInput(f"head {number} reads {width} values; base is {base.shape} and step {step.shape}")
        assert _average(head, first) == _average(head, second), "the proof is wrong; please report this"
    return first, second


def confused(layer: HardmaxAttention, tokens: Ids, length: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Find two sequences of ``length`` tokens that one head confuses, as indices into ``tokens`` [K, d].

    The sequences hold different tokens, but their first token is the same and gets the same stream. A token may occur
    twice. If the head confuses no two sequences, the result is None.

    >>> one = integers([[1]])
    >>> confused(HardmaxAttention(one, one, one, one), np.array([[1], [2], [3], [4]]), 3)
    ((0, 0, 1), (0, 1, 1))
    """
    return confused_by_all([layer], tokens, length)


def confused_by_all(
    heads: Sequence[HardmaxAttention], tokens: Ids, length: int
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Find two sequences as :func:`confused` does, such that each of several heads gives the first token the same."""
    for own in range(len(tokens)):
        seen: dict[tuple[Average, ...], tuple[int, ...]] = {}
        for others in combinations_with_replacement(range(len(tokens)), length - 1):
            sequence = (own, *others)
            stream = tokens[list(sequence)].astype(object)
            first = seen.setdefault(tuple(_attended(head, stream) for head in heads), sequence)
            if first != sequence:
                return first, sequence
    return None


def _attended(head: HardmaxAttention, stream: Integers) -> Average:
    """Return W_O W_V · mean of the tokens with the largest score, which the head adds to the first token's stream."""
    added = head.W_O @ (head.W_V @ np.array(_average(head, stream), dtype=object))
    return tuple(map(Fraction, added))


def _average(head: HardmaxAttention, stream: Integers) -> Average:
    """Return the mean of the tokens that have the largest score for the first token of a sequence [n, d]."""
    scores = stream @ head.W_K.T @ (head.W_Q @ stream[0])
    winners = stream[scores == scores.max()]
    return tuple(Fraction(int(entry), len(winners)) for entry in winners.sum(axis=0))

"""One layer of hardmax heads is no contextual mapping: sequences that all of them confuse (Kajitsuka & Sato 2024).

What a hardmax head tells a token of its sequence is one average, of the tokens with the largest score. *No number of
heads* is enough, whatever their weights, and two sequences show it that do not even depend on them:

**Proof.** Take tokens on a line, x_s = b + s·c with c ≠ 0, a length n ≥ 4, and the places

    A = {0, 1, n, n + 1} ∪ {3, …, n − 2}    and    B = {0, 2, n − 1, n + 1} ∪ {3, …, n − 2}.

Each has n different tokens; the sets differ; and they agree in their smallest place, their largest place and their sum.
Let a token x that both hold ask. Its score of x_s is (W_K x_s)·(W_Q x), an affine function of s: if it rises, x_{n+1}
alone is seen, if it falls, x_0 alone, and if it is constant, all tokens are, and their mean is the same. So a head
gives x the same average in A and in B; so does every other head; and whatever W_V, W_O and the layers behind make of
equal streams is equal. QED (:func:`on_a_line`, and :func:`confused_by`, which asks all heads in exact arithmetic.)

The norms and distances of the tokens are free: any r and δ with (n + 1)·δ ≤ r can be had. Softmax heads tell A and B
apart. n ≥ 4 is needed: on a line the largest, the smallest and the mean of three tokens, one of them known, give the
others, so that three hardmax heads tell all such sequences apart, unless the token 0 asks.

:func:`confused` looks for two sequences over any tokens, :func:`confused_by_all` for two that several heads confuse.
Off a line there need not be any (means tell sequences of affinely independent tokens apart: Kajitsuka & Sato 2025).
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
    """The places A and B of two sequences of ``length`` tokens, those that they share first.

    >>> on_a_line(4), on_a_line(6)
    (((0, 5, 1, 4), (0, 5, 2, 3)), ((0, 7, 3, 4, 1, 6), (0, 7, 3, 4, 2, 5)))
    """
    if length < 4:
        raise BadInput(f"length is {length}; expected 4 or more: three tokens on a line can be told apart")
    shared = (0, length + 1, *range(3, length - 1))
    return (*shared, 1, length), (*shared, 2, length - 1)


def random_heads(count: int, dim: int, rng: np.random.Generator) -> list[HardmaxAttention]:
    """Heads of dimension ``dim`` whose weights are whole numbers up to 9."""

    def draw() -> Integers:
        return integers(rng.integers(-9, 10, (dim, dim)).tolist())

    return [HardmaxAttention(W_Q=draw(), W_K=draw(), W_V=draw(), W_O=draw()) for _ in range(count)]


def confused_by(
    heads: Sequence[HardmaxAttention], length: int, base: Integers, step: Integers
) -> tuple[Integers, Integers]:
    """Two sequences [length, d] of tokens base + s·step whose first token gets the same from every head: evaluated.

    They hold different tokens, none of them twice, and share all but two.

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
    """Two sequences of ``length`` tokens, as indices into ``tokens`` [K, d], whose first token has the same stream.

    They hold different tokens, and the same first one; a token may occur twice. None if no two sequences are confused.

    >>> one = integers([[1]])
    >>> confused(HardmaxAttention(one, one, one, one), np.array([[1], [2], [3], [4]]), 3)
    ((0, 0, 1), (0, 1, 1))
    """
    return confused_by_all([layer], tokens, length)


def confused_by_all(
    heads: Sequence[HardmaxAttention], tokens: Ids, length: int
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The same for several heads, each of which adds the same to the first token's stream in both sequences."""
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
    """What the head adds to the stream of the first token: W_O W_V · mean of the tokens with the largest score."""
    added = head.W_O @ (head.W_V @ np.array(_average(head, stream), dtype=object))
    return tuple(map(Fraction, added))


def _average(head: HardmaxAttention, stream: Integers) -> Average:
    """What the first token of a sequence [n, d] sees: the mean of the tokens with the largest score."""
    scores = stream @ head.W_K.T @ (head.W_Q @ stream[0])
    winners = stream[scores == scores.max()]
    return tuple(Fraction(int(entry), len(winners)) for entry in winners.sum(axis=0))

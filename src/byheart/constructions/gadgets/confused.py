"""One hardmax layer is no contextual mapping: two sequences that it confuses, for any weights (Kajitsuka & Sato 2024).

What a hardmax layer tells a token of its sequence is one average, of the tokens with the largest score. Take four
tokens at equal distances on a line, and sequences of three or more. Along the line scores are affine. If they are not
constant, the token at one end wins, and the others may be anything; if they are, the average is the mean, and {1, 4}
and {2, 3} have the same. So whatever the weights, two sequences are confused: the same token asks, the streams behind
the layer are the same, and they hold different tokens. Here two are looked for, over any tokens; off a
line there need not be any (means tell sequences of affinely independent tokens apart: Kajitsuka & Sato 2025).
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

from byheart.networks.exact import HardmaxAttention
from byheart.tasks.checks import Ids


def confused(layer: HardmaxAttention, tokens: Ids, length: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Two sequences of ``length`` tokens, as indices into ``tokens`` [K, d], whose first token has the same stream.

    They hold different tokens, and the same first one. None if no two sequences are confused.

    >>> import numpy as np
    >>> from byheart.networks.exact import integers
    >>> one = integers([[1]])
    >>> confused(HardmaxAttention(one, one, one, one), np.array([[1], [2], [3], [4]]), 3)
    ((0, 0, 1), (0, 1, 1))
    """
    for own in range(len(tokens)):
        seen: dict[tuple[Fraction, ...], tuple[int, ...]] = {}
        for others in combinations_with_replacement(range(len(tokens)), length - 1):
            sequence = (own, *others)
            first = seen.setdefault(_attended(layer, tokens, sequence), sequence)
            if first != sequence:
                return first, sequence
    return None


def _attended(layer: HardmaxAttention, tokens: Ids, sequence: Sequence[int]) -> tuple[Fraction, ...]:
    """What the layer adds to the stream of the first token: W_O W_V · mean of the tokens with the largest score."""
    stream = tokens[list(sequence)].astype(object)
    scores = stream @ layer.W_K.T @ (layer.W_Q @ stream[0])
    winners = stream[scores == scores.max()]
    added = layer.W_O @ (layer.W_V @ winners.sum(axis=0))
    return tuple(Fraction(int(entry), len(winners)) for entry in added)

"""Folding large integers into a small range, at six parameters a bit.

The triangle wave of period 2P, tri_P(s) = min(r, 2P − r) with r = s mod 2P, maps the integers to [0, P]. On
[0, P·2^f] it is f folds Z ← Z − 2·relu(Z − P·2^k), k = f − 1, …, 0 (Telgarsky's composition of triangle maps), each a
layer of two ReLUs that reads the two of the layer before: 2·2 + 2 = 6 parameters.

**Why it is a hash.** Let s = Σ_t c_t φ_t with integer coefficients c and codes φ_t drawn uniformly from [0, 2P), P an odd
prime. Take two different coefficient vectors c ≠ c' with entries below P. Then tri_P(s) = tri_P(s') iff s ≡ ±s' modulo
2P. The coefficients of s − s' do not all vanish modulo P, so s − s' is uniform modulo P, and it is 0 with probability
≤ 1/P; likewise s + s'. Hence two given questions collide with probability ≤ 2/P (about 1/P, since both are 0
modulo 2 half of the time), and K questions are told apart with a probability that P ~ K²/8 keeps around e⁻⁴. The
constructions draw, sort, look for equal neighbours, and draw again: only the time is random, the result is certain.
"""

from collections.abc import Sequence

import numpy as np
from flint import fmpz
from numpy.typing import NDArray

from byheart.networks import Affine, integers

SMALLEST = 128
"""From here on there is a prime between x and 14x/13 (Rohrbach & Weis 1964), so between x and 9x/8."""


def largest_modulus(smallest: int) -> int:
    """The largest prime that :func:`draw_modulus` may return."""
    return smallest + smallest // 8


def draw_modulus(smallest: int, rng: np.random.Generator) -> int:
    """A random prime P with ``smallest`` ≤ P ≤ ``largest_modulus(smallest)``; ``smallest`` is at least 128."""
    while True:
        candidate = int(rng.integers(smallest, largest_modulus(smallest), endpoint=True))
        if fmpz(candidate).is_prime():
            return candidate


def triangle(values: NDArray[np.int64], P: int) -> NDArray[np.int64]:
    """tri_P of every entry.

    >>> triangle(np.arange(12), 5).tolist()
    [0, 1, 2, 3, 4, 5, 4, 3, 2, 1, 0, 1]
    """
    rest = values % (2 * P)
    return np.minimum(rest, 2 * P - rest)


def folds_needed(ratio: int) -> int:
    """The least f with ``ratio`` ≤ 2^f: folds that bring [0, ratio·P] to [0, P].

    >>> [folds_needed(r) for r in (1, 2, 3, 4, 5)]
    [0, 1, 2, 2, 3]
    """
    return (ratio - 1).bit_length()


def multiply(a: NDArray[np.int64], b: NDArray[np.int64], modulus: int) -> NDArray[np.int64]:
    """a·b modulo ``modulus`` < 2⁴⁸ without overflow: b is taken in pieces of 15 bits.

    >>> multiply(np.array([2**40]), np.array([2**40]), 2**41 - 1).tolist() == [2**80 % (2**41 - 1)]
    True
    """
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape), dtype=np.int64)
    for piece in reversed(range(4)):
        result = ((result << 15) % modulus + a * ((b >> (15 * piece)) & 0x7FFF)) % modulus
    return result


def fold_layers(weights: Sequence[int], bias: int, P: int, folds: int) -> list[Affine]:
    """Layers from a stream x with s = weights·x + bias ∈ [0, P·2^folds] to the single unit tri_P(s).

    Nothing to do (no folds, and s is the stream's only coordinate) takes no layers.
    """
    if folds == 0 and list(weights) == [1] and bias == 0:
        return []
    row, offset, layers = list(weights), bias, []
    for k in reversed(range(folds)):
        layers.append(Affine(integers([row, row]), integers([offset, offset - (P << k)]), role="fold"))
        row, offset = [1, -2], 0
    layers.append(Affine(integers([row]), integers([offset]), role="key"))
    return layers


def fold_shapes(inputs: int, folds: int) -> list[tuple[str, int, int]]:
    """The shapes of :func:`fold_layers`: (role, outputs, inputs)."""
    if folds == 0 and inputs == 1:
        return []
    return [("fold", 2, inputs if k == 0 else 2) for k in range(folds)] + [("key", 1, 2 if folds else inputs)]

"""Fold large integers by triangle waves, and hash them into a small range modulo a prime, at six parameters per bit.

**Triangle waves** remove the upper bits of an integer. The wave of period 2h rises from 0 at 0 to h at h and falls to 0
at 2h. On 0 ≤ x ≤ h·2^f it can be written in two ways:

* as x − 2·relu(x − h) + 2·relu(x − 2h) − …, with 2^f units in one layer;
* as a composition of f waves of periods h·2^f, …, 4h, 2h (Telgarsky): x ← x − 2·relu(x − h·2^k), k = f − 1, …, 0, with
  two units each.

Anything between the two is possible: 2^b units in a layer remove b bits.

**Hash.** For a prime Q let fold_Q(s) = min(r, Q − r) with r = s mod Q. It is the distance of s to the next multiple of
Q, at most P = (Q − 1)/2. It is also half the triangle wave of period 2Q at 2s, and on 0 ≤ 2s ≤ Q·2^f that wave is f
folds Z ← Z − 2·relu(Z − Q·2^k), k = f − 1, …, 0. Each fold is a layer of two ReLUs that reads the two of the layer
before: 2·2 + 2 = 6 parameters.

**Why it is a hash.**

1. Let s = Σ_t c_t φ_t with codes φ_t drawn uniformly from [0, Q) and non-negative integer coefficients below Q/2. Take
   two different coefficient vectors c and c', neither of them 0.
2. Then fold_Q(s) = fold_Q(s') if and only if s ≡ s' or s ≡ −s' modulo Q. Neither c − c' nor c + c' vanishes modulo Q,
   so s − s' and s + s' are uniform modulo Q, and the two hashes collide with probability ≤ 2/Q. (If c' = 0 they collide
   if and only if s ≡ 0, with probability 1/Q.)
3. Among K questions with C labels at most (1 − 1/C)K²/2 pairs must not collide. Q ≥ (1 − 1/C)K²/4 keeps the expected
   number of collisions at 4, so about every e⁴ = 55th draw is good.

The constructions draw, sort, search for equal neighbours with different labels, and draw again: only the time is
random, the result is certain.
"""

from collections.abc import Sequence

import numpy as np

from byheart.networks.exact import Affine, integers
from byheart.tasks.arrays import Ids


def wave(
    x: Sequence[int],
    bias: int,
    *,
    h: int,
    bits: int,
    carry: tuple[Sequence[int], int] | None = None,
    at_once: int = 1,
    role: str = "fold",
) -> tuple[list[Affine], list[int]]:
    """Build layers that fold ``x`` + ``bias`` ∈ [0, h·2^bits], and the row over the last units that reads the wave.

    ``x`` is a row over the units in front. A layer folds at most ``at_once`` bits. ``carry`` is another row with a
    bias; its value must never be negative, and the last unit of every layer passes it on. If ``bits`` is 0, there are
    no layers: the returned row is ``x``, and the caller has to add the bias.
    """
    layers, row, offset = [], list(x), bias
    while bits:
        count = 1 << min(at_once, bits)
        bits -= min(at_once, bits)
        W, b = [row] * count, [offset - j * (h << bits) for j in range(count)]
        row, offset = [1, *([-2, 2] * count)[: count - 1]], 0
        if carry is not None:
            W, b = [*W, list(carry[0])], [*b, carry[1]]
            row, carry = [*row, 0], ([0] * count + [1], 0)
        layers.append(Affine(integers(W), integers(b), role=role))
    return layers, row


def wave_shapes(
    inputs: int, bits: int, *, carry: bool = False, at_once: int = 1, role: str = "fold"
) -> list[tuple[str, int, int]]:
    """Return the shapes of :func:`wave`'s layers: (role, outputs, inputs).

    >>> wave_shapes(4, 3, carry=True, at_once=2)
    [('fold', 5, 4), ('fold', 3, 5)]
    """
    shapes = []
    while bits:
        folded = min(at_once, bits)
        shapes.append((role, (1 << folded) + carry, inputs))
        bits, inputs = bits - folded, (1 << folded) + carry
    return shapes


TRIES = 20_000
SMALLEST = 128
"""Smallest x from which there is always a prime between x and 14x/13 (Rohrbach & Weis 1964), so up to 9x/8."""


def largest_modulus(smallest: int) -> int:
    """Return an upper bound on the primes that :func:`draw_modulus` returns."""
    return smallest + smallest // 8


def largest_key(smallest: int) -> int:
    """Return the largest value that folding by a prime from :func:`draw_modulus` can have."""
    return largest_modulus(smallest) // 2


def draw_modulus(smallest: int, rng: np.random.Generator) -> int:
    """Draw a random prime Q with ``smallest`` ≤ Q ≤ ``largest_modulus(smallest)``; ``smallest`` is at least 128."""
    from flint import fmpz

    while True:
        candidate = int(rng.integers(smallest, largest_modulus(smallest), endpoint=True))
        if fmpz(candidate).is_prime():
            return candidate


SMALLEST_ALONE = 1 << 16
"""Smallest modulus for points of a single coordinate. Only the choice of Q tells them apart, because v merely scales
the coordinate, so there must be many primes to choose from."""


def question_modulus(questions: int, labels: int, *, alone: bool = False) -> int:
    """Return the smallest Q for ``questions``: four expected collisions, and at least one key for every question."""
    smallest = SMALLEST_ALONE if alone else SMALLEST
    return max(smallest, 2 * questions + 1, questions * questions * (labels - 1) // (4 * labels))


def fold(values: Ids, Q: int) -> Ids:
    """Compute fold_Q of every entry.

    >>> fold(np.arange(9), 5).tolist()
    [0, 1, 2, 2, 1, 0, 1, 2, 2]
    """
    remainder = values % Q
    return np.minimum(remainder, Q - remainder)


def folds_needed(ratio: int) -> int:
    """Return the least f with 2·``ratio`` ≤ 2^f: the number of folds that s ∈ [0, ratio·Q] needs.

    >>> [folds_needed(r) for r in (1, 2, 3, 4, 5)]
    [1, 2, 3, 3, 4]
    """
    return (2 * ratio - 1).bit_length()


def multiply(a: Ids, b: Ids, modulus: int) -> Ids:
    """Compute a·b modulo ``modulus`` < 2⁴⁷ without overflow: if a·b may not fit, split b into pieces of 15 bits.

    >>> multiply(np.array([2**40]), np.array([2**40]), 2**41 - 1).tolist() == [2**80 % (2**41 - 1)]
    True
    """
    if modulus < 1 << 31:
        return a * b % modulus
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape), dtype=np.int64)
    for piece in reversed(range(4)):
        result = ((result << 15) % modulus + a * ((b >> (15 * piece)) & 0x7FFF)) % modulus
    return result


def fold_layers(weights: Sequence[int], bias: int, Q: int, folds: int, at_once: int = 1) -> list[Affine]:
    """Build the layers from a stream x with s = weights·x + bias, 0 ≤ 2s ≤ Q·2^folds, to the single unit fold_Q(s).

    ``at_once`` folds share a layer. If ``folds`` is 0, there are no layers: s is the stream's only coordinate, and it
    is the key without a fold.
    """
    layers, row = wave([2 * weight for weight in weights], 2 * bias, h=Q, bits=folds, at_once=at_once)
    return [*layers, Affine(integers([row]), integers([0]), shift=1, role="key")] if folds else []


def fold_shapes(inputs: int, folds: int, at_once: int = 1) -> list[tuple[str, int, int]]:
    """Return the shapes of :func:`fold_layers`: (role, outputs, inputs)."""
    shapes = wave_shapes(inputs, folds, at_once=at_once)
    return [*shapes, ("key", 1, shapes[-1][1])] if folds else []

"""Real vectors as what they are on a computer: integer points X = x·2^t on a grid, and random linear hashes of them.

float64 numbers are dyadic rationals. With the finest bit of the whole dataset as unit, every coordinate is an integer
of at most ``bits`` bits (about 75 for standard-normal data), and a network whose first weights are multiples of 2^t
computes with these integers exactly. This replaces the theorem's cells of size δ: the price is log₂(r/finest bit)
instead of log₂(r/δ) folds of six parameters each, and no assumption on the separation is left.

A hash is s = v·X + offset + a with v drawn uniformly from [0, Q)^d and a from [0, Q); the offset is a multiple of Q,
and without a the hashes of X and −X would be mirror images. :mod:`.gadgets.modular_hash` folds it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Protocol

import numpy as np

from byheart.constructions.gadgets.modular_hash import multiply
from byheart.networks.exact import Affine, Integers, integers
from byheart.tasks.arrays import Floats, Ids


@dataclass(frozen=True, eq=False)
class Grid:
    """Points X [K, D] as mantissa·2^place, all of them integers with |X| < 2^bits; x = X / 2^exponent."""

    mantissa: Ids
    place: Ids
    exponent: int
    bits: int

    @property
    def dim(self) -> int:
        """Coordinates of a point, D."""
        return int(self.mantissa.shape[1])

    def hash(self, v: Ids, modulus: int) -> Ids:
        """v·X modulo ``modulus``, for all points [K]; the offset is a multiple of the modulus and changes nothing."""
        power = np.array([pow(2, int(p), modulus) for p in range(int(self.place.max(initial=0)) + 1)], dtype=np.int64)
        result = np.zeros(len(self.mantissa), dtype=np.int64)
        for j in range(self.dim):
            X = multiply(self.mantissa[:, j] % modulus, power[self.place[:, j]], modulus)
            result = (result + multiply(X, v[j : j + 1], modulus)) % modulus
        return result

    def weights(self, v: Ids) -> list[int]:
        """The weights that compute v·X from x."""
        return [int(entry) << self.exponent for entry in v]


def draw_hash(points: Grid, bits: int, Q: int, rng: np.random.Generator) -> tuple[Ids, Affine]:
    """A random hash v·X + offset + a: its values modulo Q [K], and the layer that computes it from x."""
    v = rng.integers(0, Q, size=points.dim)
    a = int(rng.integers(0, Q))
    bias = offset(points.dim, bits, Q) + a
    layer = Affine(integers([points.weights(v)]), integers([bias]), role="hash", relu=False)
    return points.hash(v, Q) + a, layer


def offset(dim: int, bits: int, Q: int) -> int:
    """A multiple of Q that makes v·X + offset non-negative for all |X| < 2^bits, v < Q."""
    return Q * dim << bits


def ratio(dim: int, bits: int) -> int:
    """v·X + offset + a is at most this many times Q: |v·X| ≤ d(Q − 1)(2^bits − 1) leaves room for a."""
    return 2 * dim << bits


def from_floats(vectors: Floats) -> Grid:
    """Floats [K, D] on the coarsest grid of integer multiples of 2^−exponent, exponent ≥ 0, that holds them all.

    >>> g = from_floats(np.array([[0.75, -2.0]]))
    >>> (g.mantissa << g.place).tolist(), g.exponent, g.bits
    ([[3, -8]], 2, 4)
    """
    fraction, power = np.frexp(vectors)
    mantissa = np.ldexp(fraction, 53).astype(np.int64)
    place = power.astype(np.int64) - 53
    nonzero = mantissa != 0
    trailing = np.bitwise_count((mantissa & -mantissa) - 1).astype(np.int64)
    mantissa, place = np.where(nonzero, mantissa >> np.minimum(trailing, 62), 0), np.where(nonzero, place + trailing, 0)
    exponent = -min(0, int(place.min(initial=0)))
    place = np.where(nonzero, place + exponent, 0)
    bits = int(np.where(nonzero, power + exponent, 1).max(initial=1))
    return Grid(mantissa, place, exponent, bits)


@dataclass(frozen=True, eq=False)
class Points:
    """Different points [K, D], (r, δ)-separated, and which of them must not be read alike."""

    points: Floats
    blocks: int
    r: float
    """No point is farther from 0."""
    delta: float
    """Any two differ by at least this much in some block."""
    coded: Ids
    """The points that must be read unlike every other; the others may be taken for each other."""
    pairs: int
    """At most this many pairs must not be read alike."""
    apart: Callable[[Ids], bool]
    """Whether the points may be read as these numbers [K]: equal ones are taken for each other."""

    @property
    def dim(self) -> int:
        """Coordinates of a point, D."""
        return int(self.points.shape[1])

    @cached_property
    def exact(self) -> tuple[Integers, int]:
        """Integers X [K, D] and t with x = X/2^t."""
        found = from_floats(self.points)
        return found.mantissa.astype(object) << found.place.astype(object), found.exponent

    def reach(self, weights: Integers) -> int:
        """Σ_k ‖w_k‖₂ over the blocks, rounded up: R times this is how far w·x moves."""
        squares = (sum(int(w) ** 2 for w in block) for block in np.split(weights, self.blocks))
        return sum(isqrt(square) + 1 for square in squares)


class VectorFront(Protocol):
    """The sizes of a front, known before its weights: from D coordinates to one integer."""

    @property
    def shapes(self) -> tuple[tuple[str, int, int], ...]:
        """Its layers: (role, outputs, inputs)."""

    @property
    def ratio(self) -> int:
        """The integer is less than this many times Q."""


class Reader(Protocol):
    """A front whose weights are found but for the hash."""

    @property
    def front(self) -> VectorFront:
        """Its sizes."""

    @property
    def radius(self) -> float:
        """Every vector within this distance of a token is read as that token is."""

    @property
    def chosen(self) -> dict[str, object]:
        """What was found, for the folder."""

    def draw(self, Q: int, rng: np.random.Generator) -> tuple[Ids, list[Affine]]:
        """A random hash of what is read, for the points [K], and the layers that compute it."""

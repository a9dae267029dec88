"""Vectors of floats as integer points X = x·2^t on a grid, and random linear hashes of these points.

float64 numbers are dyadic rationals. With the finest bit of the whole dataset as unit, every coordinate is an integer
of at most ``bits`` bits (about 75 for standard-normal data), and a network whose first weights are multiples of 2^t
computes with these integers exactly. This replaces the theorem's cells of size δ. It takes log₂(r/finest bit) instead
of log₂(r/δ) folds of six parameters each, and it needs no assumption on the separation.

A hash is s = v·X + offset + a with v drawn uniformly from [0, Q)^d and a from [0, Q). The offset is a multiple of Q.
Without a the hashes of X and −X would be mirror images. :mod:`.gadgets.modular_hash` folds s.
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
        """Number of coordinates of a point, D."""
        return int(self.mantissa.shape[1])

    def hash(self, v: Ids, modulus: int) -> Ids:
        """Compute v·X modulo ``modulus`` for all points [K]. The offset is a multiple of it, so it is left out."""
        power = np.array([pow(2, int(p), modulus) for p in range(int(self.place.max(initial=0)) + 1)], dtype=np.int64)
        result = np.zeros(len(self.mantissa), dtype=np.int64)
        for j in range(self.dim):
            X = multiply(self.mantissa[:, j] % modulus, power[self.place[:, j]], modulus)
            result = (result + multiply(X, v[j : j + 1], modulus)) % modulus
        return result

    def weights(self, v: Ids) -> list[int]:
        """Return the weights that compute v·X from x."""
        return [int(entry) << self.exponent for entry in v]


def draw_hash(points: Grid, bits: int, Q: int, rng: np.random.Generator) -> tuple[Ids, Affine]:
    """Draw a hash v·X + offset + a; return its values up to multiples of Q [K], and the layer that computes it."""
    v = rng.integers(0, Q, size=points.dim)
    a = int(rng.integers(0, Q))
    bias = offset(points.dim, bits, Q) + a
    layer = Affine(integers([points.weights(v)]), integers([bias]), role="hash", relu=False)
    return points.hash(v, Q) + a, layer


def offset(dim: int, bits: int, Q: int) -> int:
    """Return a multiple of Q that makes v·X + offset non-negative for all |X| < 2^bits and v < Q."""
    return Q * dim << bits


def ratio(dim: int, bits: int) -> int:
    """Bound v·X + offset + a in multiples of Q: |v·X| ≤ d(Q − 1)(2^bits − 1) leaves room for a."""
    return 2 * dim << bits


def from_floats(vectors: Floats) -> Grid:
    """Put floats [K, D] on the coarsest grid of multiples of 2^−exponent, exponent ≥ 0, that holds them all.

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
    """Different points [K, D], (r, δ)-separated, and which of them must be told apart."""

    points: Floats
    blocks: int
    """Number of vectors that a point consists of; each of them may move on its own."""
    r: float
    """Upper bound on the points' norms."""
    delta: float
    """Lower bound on the distance of any two points in some block."""
    coded: Ids
    """Points that must be told from every other point; the others may be read alike."""
    pairs: int
    """Upper bound on the number of pairs that must be told apart."""
    apart: Callable[[Ids], bool]
    """Function that returns True if the points may be read as numbers [K], with equal numbers read alike."""

    @property
    def dim(self) -> int:
        """Number of coordinates of a point, D."""
        return int(self.points.shape[1])

    @cached_property
    def exact(self) -> tuple[Integers, int]:
        """Integers X [K, D] and t with x = X/2^t."""
        grid = from_floats(self.points)
        return grid.mantissa.astype(object) << grid.place.astype(object), grid.exponent

    def reach(self, weights: Integers) -> int:
        """Return Σ_k ‖w_k‖₂ over the blocks, rounded up. If every block moves by R, w·x moves by R times this."""
        squares = (sum(int(w) ** 2 for w in block) for block in np.split(weights, self.blocks))
        return sum(isqrt(square) + 1 for square in squares)


class VectorFront(Protocol):
    """Sizes of the layers from D coordinates to one integer, known before their weights."""

    @property
    def shapes(self) -> tuple[tuple[str, int, int], ...]:
        """Layers as (role, outputs, inputs)."""

    @property
    def ratio(self) -> int:
        """Bound on the integer, in multiples of Q."""


class Reader(Protocol):
    """A front with all its weights but those of the hash."""

    @property
    def front(self) -> VectorFront:
        """Sizes of the layers."""

    @property
    def radius(self) -> float:
        """Distance from a token within which every vector is read as that token."""

    @property
    def chosen(self) -> dict[str, object]:
        """Choices to record beside the network, by name."""

    def draw(self, Q: int, rng: np.random.Generator) -> tuple[Ids, list[Affine]]:
        """Draw a hash modulo Q of the points as they are read; return its values [K] and its layers."""

"""(r, δ)-separated vectors as cells: an integer that is the same on a whole ball around every token.

**Task.** K points of R^D are (r, δ)-separated, and at most P pairs of them must be told apart. The network receives a
point that may have moved by up to a radius, and computes one integer that does not depend on the move.

**Cells.**

1. Draw q random unit vectors v_j. Let p_j = v_j·x/c + b_j, measured in cells of width c. The cell of x is (⌊p_1⌋, …,
   ⌊p_q⌋).
2. For a pair at distance ≥ δ, |v·(x − x')| < c has probability at most (c/δ)·√(2D/π), because the density of a
   coordinate of a random unit vector is at most √(D/2π) for D ≥ 3. For D = 2 the next step holds as well, and in one
   dimension a pair is never closer than δ.
3. So the width c = δ·√(π/2D)·(2P)^(−1/q) leaves the expected number of pairs in one cell at P·(2P)^(−1) = ½: every
   other draw is good.

**Radius.** A ball is in one cell if every p_j stays clear of the integers. The fractional parts of K numbers p_j leave
a gap of at least 1/K on the circle, and b_j puts the integers into the middle of the widest gap. So the radius is at
least c/2K for *any* directions (up to the width of the ramps below). That is of order δ/(K^(1 + 2/q) √D), or δ/(K²√D)
for the default q = 2. A search over directions improves the radius by logarithmic factors, as it widens the gap.

**ReLUs.** ⌊p⌋ < 2^β is read bit by bit, in Gray code.

1. Start with Z = p. For k = β − 1, …, 0 the bit is g_k = [Z ≥ 2^k], and Z ← Z − 2·relu(Z − 2^k) folds the upper half
   back (Telgarsky's triangle map). Folding is isometric, so Z stays as far from 2^k as p is from the integers.
2. With cells of 2^σ units and T = 2^(k + σ) let a = relu(Z − T + 1) and a' = relu(Z − T − 1). As long as Z is not
   within one unit of T, a − a' = 2·g_k and a + a' = 2·relu(Z − T): two units beside Z compute both, exactly.
3. A fourth unit collects the hash Σ w_k g_k of all bits, with w uniform in [0, Q). Different cells have different bits,
   so :mod:`.modular_hash` tells them apart modulo Q. The hash is at most qβ·Q, which takes a few folds.

A bit takes (4 + i)(5 + i) parameters while i other p_j wait.

**Count.** (N, n, D, K, P, r/δ) and q determine β = ⌈log₂(2r/c + 4)⌉ and with it every shape, whatever the bits of the
floats are.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, islice

import numpy as np

from byheart.constructions.gadgets.vectors import Points
from byheart.networks.exact import Affine, Integers, integers
from byheart.tasks.arrays import Ids

DIRECTIONS = 2
"""Default number q of directions: the radius is of order δ/(K²√D)."""
FEWEST_PAIRS = 4
"""Smallest number of pairs to plan for. With up to eight directions, cells are then narrower than δ even if D = 1."""
_ENTRY_BITS = 32
"""Bits of a direction's entries. More bits would move no point to another cell that the shift does not move it to."""
_WORK = 1 << 22
"""Approximate number of integer products that a search may take: about a second."""
_FEWEST, _MOST = 8, 64
"""Smallest and largest number of directions that a round of the search draws beyond the q that it needs."""
_COMBINATIONS = 200
"""Number of combinations of q directions to try per round."""
_ROUNDS = 20
"""Number of rounds of draws after which the search gives up."""


@dataclass(frozen=True)
class Cells:
    """Sizes of a reader by cells: D coordinates, q directions, and 2^bits cells along each direction."""

    dim: int
    directions: int
    bits: int

    @property
    def ratio(self) -> int:
        """Bound on the hash in multiples of Q: each of the qβ bits adds less than Q, and so does the shift a."""
        return self.directions * self.bits + 1

    @property
    def shapes(self) -> tuple[tuple[str, int, int], ...]:
        """Shapes of the projection, of one layer per bit and direction, and of the hash."""
        layers, inputs = [("project", self.directions, self.dim)], self.directions
        for waiting in reversed(range(self.directions)):
            for _ in range(self.bits):
                outputs = (4 if len(layers) > 1 else 3) + waiting
                layers.append(("cell", outputs, inputs))
                inputs = outputs
        return (*layers, ("hash", 1, inputs))


def sizes(dim: int, pairs: int, spread: float, directions: int) -> Cells:
    """Return the cells that (r, δ)-separated points of ``dim`` coordinates need, with ``spread`` = log₂(r/δ).

    >>> [sizes(16, 1000, 1.0, directions).bits for directions in (1, 2, 4)]
    [15, 10, 7]
    """
    across = 1 + spread - math.log2(_width(dim, pairs, directions))
    return Cells(dim, directions, math.ceil(across + math.log2(1 + 2 ** (2 - across))))


def spread(r: float, delta: float) -> float:
    """Return log₂(r/δ), at least −1: two points at distance δ are not both closer than δ/2 to 0."""
    return max(-1.0, math.log2(r) - math.log2(delta)) if r else -1.0


def _width(dim: int, pairs: int, directions: int) -> float:
    """Return the relative width of a cell, c/δ."""
    return math.sqrt(math.pi / (2 * dim)) * math.pow(2 * max(pairs, FEWEST_PAIRS), -1 / directions)


def widest(points: Points, directions: int) -> float:
    """Return the width c of a cell. No ball of radius c/2 or more fits into one cell."""
    return points.delta * _width(points.dim, points.pairs, directions)


@dataclass(frozen=True, eq=False)
class Direction:
    """A direction, p = (weights·x + bias)/2^cell, with the points' cells along it and the radius that it allows."""

    weights: Integers
    bias: int
    cells: Integers
    """⌊p⌋ of every point [K]; the smallest is 0."""
    radius: Fraction
    """Largest distance that a point may move without coming within one unit of the next cell."""


@dataclass(frozen=True, eq=False)
class CellReader:
    """A reader of vectors by cells, with the directions that a search found."""

    front: Cells
    directions: tuple[Direction, ...]
    unit: int
    """σ: a cell has 2^σ units."""
    shift: int
    """Exponent of the weights, which are multiples of 2^−shift units."""

    @property
    def radius(self) -> float:
        """Distance that a point may move, rounded down with room for a judge whose own roundings differ."""
        return _below(min(direction.radius for direction in self.directions))

    @property
    def chosen(self) -> dict[str, object]:
        """Radius and number of cells, for the record."""
        return {"radius": self.radius, "cells": f"{self.front.directions} × 2^{self.front.bits}"}

    @cached_property
    def bits(self) -> Ids:
        """Gray code of every point's cells, in bits [K, q, β] with the highest bit first."""
        places = np.array(range(self.front.bits), dtype=object)[::-1]
        cells = np.stack([direction.cells for direction in self.directions], axis=1)[:, :, None]
        return np.array(((cells >> places) ^ (cells >> (places + 1))) & 1, dtype=np.int64)

    def draw(self, Q: int, rng: np.random.Generator) -> tuple[Ids, list[Affine]]:
        """Draw w and a uniformly below Q; return the hash Σ w·g + a of every point, and its layers."""
        w = rng.integers(0, Q, size=(self.front.directions, self.front.bits))
        a = int(rng.integers(0, Q))
        return np.tensordot(self.bits, w, axes=2) + a, self.layers(w, a)

    def layers(self, w: Ids, a: int) -> list[Affine]:
        """Build the layers from the D coordinates to the hash with weights w [q, β] and shift a."""
        q = self.front.directions
        layers = [_project(self.directions, self.shift)]
        Z, *waiting = np.eye(q, dtype=np.int64).tolist()
        collected: list[list[int]] = []
        for j in range(q):
            for k in range(self.front.bits):
                T = 1 << (self.front.bits - 1 - k + self.unit)
                rows = [Z, Z, Z, *collected, *waiting]
                layers.append(Affine(integers(rows), integers([0, 1 - T, -1 - T, *[0] * (len(rows) - 3)]), role="cell"))
                units = np.eye(len(rows), dtype=np.int64)
                Z, bit = [1, -1, -1, *[0] * (len(rows) - 3)], w[j, k] * (units[1] - units[2])
                waiting = units[3 + len(collected) :].tolist()
                collected = [(bit + units[3] if collected else bit).tolist()]
            Z, waiting = (waiting[0], waiting[1:]) if waiting else (Z, [])
        return [*layers, Affine(integers(collected), integers([2 * a]), shift=1, role="hash")]


def _project(directions: tuple[Direction, ...], shift: int) -> Affine:
    W = np.stack([direction.weights for direction in directions])
    return Affine(integers(W), integers([direction.bias for direction in directions]), shift=shift, role="project")


def find_cells(points: Points, directions: int, rng: np.random.Generator) -> CellReader:
    """Search for directions whose cells tell the points apart and allow a large radius.

    The search is bounded; its result has the sizes that :func:`sizes` returns.
    """
    front = sizes(points.dim, points.pairs, spread(points.r, points.delta), directions)
    K = len(points.points)
    unit = K.bit_length() + 12
    fraction, exponent = math.frexp(points.delta)
    fraction, more = math.frexp(fraction * _width(points.dim, points.pairs, directions))
    # Entries are rounded towards 0, from a little below, so no point lies outside the cells that were counted.
    entry = (2**_ENTRY_BITS - 1) / fraction
    cell = max(_ENTRY_BITS + exponent + more, unit)
    scale = cell - _ENTRY_BITS - exponent - more
    count = directions + max(_FEWEST, min(_MOST, _WORK // (K * points.dim)))
    for _ in range(_ROUNDS):
        candidates = [_direction(points, _unit_vector(points.dim, rng), entry, scale, cell, unit) for _ in range(count)]
        candidates.sort(key=lambda direction: direction.radius, reverse=True)
        for chosen in _by_radius(candidates, directions):
            if points.apart(_numbered(chosen)):
                return CellReader(front, chosen, unit, cell - unit)
    raise RuntimeError(f"{_ROUNDS * count} directions did not tell {K} points apart; please report this task")


def _unit_vector(dim: int, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    drawn = rng.standard_normal(dim)
    return np.asarray(drawn / np.linalg.norm(drawn))


def _direction(
    points: Points, vector: np.ndarray[tuple[int], np.dtype[np.float64]], entry: float, scale: int, cell: int, unit: int
) -> Direction:
    """Return the direction of ``vector`` with the bias that keeps all points farthest from the cells' ends, exactly."""
    X, t = points.exact
    weights = integers([int(w) << scale for w in np.trunc(vector * entry).tolist()])
    along, width = X @ weights, 1 << (cell + t)
    rest = np.sort(along % width)
    gaps = np.append(rest[1:], rest[0] + width) - rest
    widest = int(np.argmax(gaps))
    bias = -((int(rest[widest]) + int(gaps[widest]) // 2) >> t)
    shifted = along + (bias << t)
    cells, rest = shifted >> (cell + t), shifted % width
    lowest = int(cells.min())
    margin = min(int(rest.min()), width - int(rest.max())) - (1 << (cell - unit + t))
    radius = Fraction(margin, points.reach(weights) << t)
    return Direction(weights, bias - (lowest << cell), cells - lowest, radius)


def _by_radius(candidates: list[Direction], directions: int) -> Iterator[tuple[Direction, ...]]:
    """Yield combinations of the sorted candidates, those with the largest smallest radius first."""
    combined = (
        (*(candidates[i] for i in better), candidates[worst])
        for worst in range(directions - 1, len(candidates))
        for better in combinations(range(worst), directions - 1)
    )
    return islice(combined, _COMBINATIONS)


def _numbered(directions: tuple[Direction, ...]) -> Ids:
    """Assign equal numbers [K] to points if and only if their cells along all directions are equal."""
    numbers = np.zeros(len(directions[0].cells), dtype=np.int64)
    for direction in directions:
        along = np.unique(direction.cells, return_inverse=True)[1]
        numbers = np.unique(numbers * len(along) + along, return_inverse=True)[1]
    return numbers


def _below(radius: Fraction) -> float:
    """Return a float a little below ``radius``, or 0 if no positive float is."""
    value = float(radius * (1 - Fraction(1, 1 << 20)))
    return value if Fraction(value) <= radius else math.nextafter(value, 0.0)

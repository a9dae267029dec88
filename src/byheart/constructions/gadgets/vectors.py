"""Vectors that are known up to a distance only: what a front has to tell apart, and what every front gives.

A point is one vector, or (``blocks`` > 1) several, each of which may move on its own by less than the radius R. Under
an affine map x ↦ w·x + b the image of a point's neighbourhood is the interval of half width R·Σ_k ‖w_k‖₂ around that of
the point itself, w_k the weights of block k. That is the only fact about neighbourhoods that fronts use. It is used
with integers: the norm is rounded up, coordinates are what floats are, integers over one power of two.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Protocol

import numpy as np

from byheart.constructions.gadgets import grid
from byheart.networks.exact import Affine, Integers
from byheart.tasks.arrays import Floats, Ids


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
        found = grid.from_floats(self.points)
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

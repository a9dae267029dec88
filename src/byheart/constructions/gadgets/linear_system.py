"""One linear system for the values: solved in float64, its rank and condition reported, its residual refined.

Features Φ ∈ R^{N×F}, one row per example, and what is asked, Y ∈ R^{N×k}. If Φ has rank N there are values V with
Φ V = Y; the one of least norm is taken. The features of a saved network are not quite the float64 numbers that were
factored; so the residual is taken of the network itself, in ball arithmetic, and what is missing is solved for once
more: iterative refinement. What remains is the rounding of the weights, about ε·‖Φ‖·‖V‖.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from byheart.errors import BadInput
from byheart.networks.softmax import SoftmaxNetwork
from byheart.tasks.arrays import Floats

MOST = 5000
"""Examples whose dense system is solved in minutes; time grows with their cube."""
STEPS = 4
"""Refinements at most; they end when the residual no longer falls by half."""


def check_system(name: str, examples: int) -> None:
    """Refuse systems that would take hours to solve."""
    if examples > MOST:
        raise BadInput(f"{name} solves a dense system, one row per example; got {examples}, expected at most {MOST}")


class BeyondCapacity(BadInput):
    """More examples than the features of a network tell apart; ``network`` has the attention, and values of zero."""

    def __init__(self, message: str, network: SoftmaxNetwork, rank: int) -> None:
        super().__init__(message)
        self.network, self.rank = network, rank


@dataclass(frozen=True, eq=False)
class Factored:
    """Φ = U diag(s) Vᵀ without the singular values that are zero to rounding."""

    left: Floats
    """U [N, rank]"""
    singular: Floats
    """s [rank]"""
    right: Floats
    """Vᵀ [rank, F]"""
    tolerance: float
    """Singular values below this, relative to the largest, count as zero."""

    @property
    def rank(self) -> int:
        """How many singular values are left."""
        return len(self.singular)

    @property
    def condition(self) -> float:
        """The largest singular value over the smallest."""
        return float(self.singular[0] / self.singular[-1]) if len(self.singular) else float("inf")

    def solve(self, wanted: Floats) -> Floats:
        """The V [F, k] of least norm with Φ V = ``wanted`` [N, k], as nearly as possible."""
        return self.right.T @ ((self.left.T @ wanted) / self.singular[:, None])

    def invisible(self, values: Floats) -> Floats:
        """The part of ``values`` [F, k] that makes no difference: Φ times it is 0."""
        return values - self.right.T @ (self.right @ values)


def factor(features: Floats) -> Factored:
    """Factor features [N, F].

    >>> factored = factor(np.array([[3.0, 0.0, 0.0], [0.0, 0.5, 0.0]]))
    >>> factored.rank, factored.condition
    (2, 6.0)
    >>> factored.solve(np.array([[6.0], [1.0]])).ravel().tolist()
    [2.0, 2.0, 0.0]
    """
    left, singular, right = np.linalg.svd(features, full_matrices=False)
    tolerance = 16 * max(features.shape) * float(np.finfo(np.float64).eps)
    rank = int((singular > tolerance * singular[0]).sum())
    return Factored(left[:, :rank], singular[:rank], right[:rank], tolerance)


def refine(factored: Factored, wanted: Floats, residual: Callable[[Floats], Floats]) -> tuple[Floats, float]:
    """Values for ``wanted`` [N, k] and their largest residual.

    ``residual`` [N, k] says what is missing once the values are in the network, rounded as they will be.
    """
    best = factored.solve(wanted)
    missing = residual(best)
    for _ in range(STEPS):
        better = best + factored.solve(missing)
        still = residual(better)
        if np.abs(still).max() >= np.abs(missing).max():
            break
        halved = np.abs(still).max() < 0.5 * np.abs(missing).max()
        best, missing = better, still
        if not halved:
            break
    return best, float(np.abs(missing).max())

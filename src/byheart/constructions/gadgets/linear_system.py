"""One linear system for the values, solved in float64 with its rank, its condition number and a refined residual.

Let Φ ∈ R^{N×F} be the features, one row per example, and Y ∈ R^{N×k} the targets. If Φ has rank N there are values V
with Φ V = Y; the solution of least norm is taken. The features of a saved network are not quite the float64 numbers
that were factored. So the residual is computed from the network itself, in ball arithmetic, and the system is solved
again for the residual (iterative refinement). The final error is the rounding of the weights, about ε·‖Φ‖·‖V‖.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from byheart.errors import BadInput
from byheart.networks.softmax import SoftmaxNetwork
from byheart.tasks.arrays import Floats

MOST = 5000
"""Largest number of examples whose dense system is solved in minutes; the time grows with its cube."""
STEPS = 4
"""Largest number of refinements; they end when the residual no longer falls by half."""


def check_system(name: str, examples: int) -> None:
    """Raise BadInput if the system of ``examples`` rows would take hours to solve."""
    if examples > MOST:
        raise BadInput(f"{name} solves a dense system, one row per example; got {examples}, expected at most {MOST}")


class BeyondCapacity(BadInput):
    """Error for more examples than the features' rank; ``network`` has the attention, and its values are zero."""

    def __init__(self, message: str, network: SoftmaxNetwork, rank: int) -> None:
        super().__init__(message)
        self.network, self.rank = network, rank


@dataclass(frozen=True, eq=False)
class Factored:
    """A factored matrix Φ = U diag(s) Vᵀ, without the singular values that are zero up to rounding."""

    left: Floats
    """Left singular vectors U [N, rank]."""
    singular: Floats
    """Singular values s [rank], largest first."""
    right: Floats
    """Right singular vectors Vᵀ [rank, F]."""
    tolerance: float
    """Bound, relative to the largest singular value, below which singular values count as zero."""

    @property
    def rank(self) -> int:
        """Number of singular values above the tolerance."""
        return len(self.singular)

    @property
    def condition(self) -> float:
        """Condition number: the largest singular value divided by the smallest."""
        return float(self.singular[0] / self.singular[-1]) if len(self.singular) else float("inf")

    def solve(self, targets: Floats) -> Floats:
        """Return the V [F, k] of least norm among those that bring Φ V nearest to ``targets`` [N, k]."""
        return self.right.T @ ((self.left.T @ targets) / self.singular[:, None])

    def invisible(self, values: Floats) -> Floats:
        """Return the part of ``values`` [F, k] in the null space of Φ, which does not change Φ V."""
        return values - self.right.T @ (self.right @ values)


def factor(features: Floats) -> Factored:
    """Factor features [N, F] by their singular value decomposition.

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


def refine(factored: Factored, targets: Floats, residual: Callable[[Floats], Floats]) -> tuple[Floats, float]:
    """Return values [F, k] for ``targets`` [N, k], and the largest entry of their residual.

    ``residual`` maps values to targets − outputs [N, k] of the network that holds them, rounded as they will be.
    """
    best = factored.solve(targets)
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

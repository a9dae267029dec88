"""What a question looks like to a folding network: hash integers, open gates, and the digit it reads."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.folding.design import Sizes
from byheart.tasks.checks import Ids

_CHUNK = 1 << 16
_SAMPLE = 1 << 15


@dataclass(frozen=True, eq=False)
class Gates:
    """Row k is open iff 2·Γ_k·u − τ_k > 0 (τ odd, so never 0); the first row has Γ = 0, τ = −1: always open."""

    gamma: Ids
    tau: Ids

    def open(self, u: Ids) -> tuple[NDArray[np.bool_], int]:
        """Which gates are open for all questions [K, s], and the largest sum of the open gates' arguments + 1."""
        result, largest = np.empty((len(u), len(self.tau)), dtype=np.bool_), 0
        for begin in range(0, len(u), _CHUNK):
            arguments = 2 * (u[begin : begin + _CHUNK] @ self.gamma.T) - self.tau
            result[begin : begin + _CHUNK] = arguments > 0
            largest = max(largest, int(np.where(arguments > 0, arguments + 1, 0).sum(axis=1).max()))
        return result, largest


@dataclass(frozen=True, eq=False)
class PositionHash:
    """h = β·u + offset in [0, 2·offset], folded ``folds`` times, says by how many digits to shift."""

    beta: Ids
    offset: int
    digits: int
    folds: int

    @property
    def folded(self) -> int:
        """The hash is in [0, folded] after the first folds."""
        return 2 * self.offset >> self.folds

    def stages(self) -> list[tuple[int, int]]:
        """(threshold, digits to shift by if the hash reaches it), from the largest shift down."""
        result, left, range_ = [], self.digits, self.folded + 1
        while left > 1:
            half = -(-left // 2)
            threshold = -(-range_ * half // left)
            result.append((threshold, left - half))
            left, range_ = half, threshold
        return result

    def shifts(self, u: Ids) -> Ids:
        """Digits by which the network shifts, for all questions [K]; what the blocks do, on machine integers."""
        h = u @ self.beta + self.offset
        for k in range(self.folds):
            fold = self.offset >> k
            h = np.where(h > fold, 2 * fold - h, h)
        shift = np.zeros(len(u), dtype=np.int64)
        for threshold, step in self.stages():
            reached = h >= threshold
            shift += np.where(reached, step, 0)
            h = np.where(reached, 2 * threshold - 1 - h, h)
        return shift


@dataclass(frozen=True, eq=False)
class Questions:
    """All keys: hash integers u [K, D], open gates [K, s], digit that is read [K], label [K]."""

    u: Ids
    open: NDArray[np.bool_]
    digit: Ids
    label: Ids

    def coefficients(self, chosen: Ids) -> Ids:
        """f [chosen, g]: word (k, j) enters with open_k · (u_1, …, u_D, 1)_j."""
        factors = np.concatenate([self.u[chosen], np.ones((len(chosen), 1), dtype=np.int64)], axis=1)
        result: Ids = self.open[chosen][:, :, None] * factors[:, None, :]
        return result.reshape(len(chosen), self.open.shape[1] * factors.shape[1])


class Unsolvable(Exception):  # noqa: N818 (it is not an error: the caller draws again)
    """The draw has too many dependent questions at one digit."""


def draw_gates(u: Ids, sizes: Sizes, rng: np.random.Generator) -> Gates:
    """Random directions, each open for a random share, from ``edge`` to 1 − ``edge``, of (a sample of) the questions.

    Thresholds all at the median would make equal and opposite directions, of which there are only (5^D − 1)/2, useless.
    """
    spread = u.std(axis=0)
    # A column that varies little would have no say in a gate: it is weighted up, as far as integers go.
    weights = np.clip(np.rint(spread.max() / np.maximum(spread, 1e-9)), 1, 32).astype(np.int64)
    gamma = rng.integers(-2, 2, size=(sizes.rows, sizes.dim), endpoint=True) * weights
    gamma[0] = 0
    ordered = np.sort(u[:: max(1, len(u) // _SAMPLE)] @ gamma.T, axis=0)
    place = (rng.uniform(sizes.edge, 1 - sizes.edge, size=sizes.rows) * len(ordered)).astype(np.int64)
    tau = 2 * ordered[place, np.arange(sizes.rows)] + rng.choice([-1, 1], size=sizes.rows)
    tau[0] = -1
    return Gates(gamma, tau)


def draw_positions(
    u: Ids, sizes: Sizes, rng: np.random.Generator, *, limit: int, tries: int = 2000
) -> tuple[PositionHash, Ids] | None:
    """A hash under which no digit is read by more than ``limit`` questions, and the shift of every question [K]."""
    largest_norm = float(np.sqrt((u.astype(np.float64) ** 2).sum(axis=1).max()))
    scale = max(64, -(-64 * sizes.digits << sizes.first_folds) // max(1, int(largest_norm)))
    for _ in range(tries):
        beta = rng.integers(-scale, scale, size=sizes.dim, endpoint=True)
        largest = int(np.abs(u @ beta).max())
        # A multiple of 2^folds, so that all folds are at integers.
        offset = (largest >> sizes.first_folds) + 1 << sizes.first_folds
        positions = PositionHash(beta, offset, sizes.digits, sizes.first_folds)
        shifts = positions.shifts(u)
        if np.bincount(shifts, minlength=sizes.digits).max() <= limit:
            return positions, shifts
    return None

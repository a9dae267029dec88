"""Features of a question in a folding network: hash integers, open gates, and the digit that it reads."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.folding.design import FoldingSizes
from byheart.tasks.arrays import Floats, Ids

_CHUNK = 1 << 16
_SAMPLE = 1 << 15


@dataclass(frozen=True, eq=False)
class Gates:
    """Gates: row k is open iff 2·Γ_k·u − τ_k > 0 (τ odd, so never 0); the first row (Γ = 0, τ = −1) is always open.

    The arguments of the open gates times their factors add up to the level, which determines the digit to read.
    """

    gamma: Ids
    tau: Ids
    factor: Ids

    def open(self, u: Ids) -> NDArray[np.bool_]:
        """Return True for every open gate of every question [K, s]."""
        return self._arguments(u) > 0

    def sums(self, u: Ids) -> Ids:
        """Return the sums of the open gates' weighted arguments [K]."""
        factor = self.factor.astype(np.float64)
        result = np.empty(len(u), dtype=np.int64)
        for begin in range(0, len(u), _CHUNK):
            chunk = slice(begin, begin + _CHUNK)
            result[chunk] = np.maximum(self._arguments(u[chunk]), 0) @ factor
        return result

    def _arguments(self, u: Ids) -> Floats:
        """Return the gates' arguments. Levels and all partial sums have fewer than 53 bits, so float64 is exact."""
        return u.astype(np.float64) @ (2.0 * self.gamma.T) - self.tau


@dataclass(frozen=True, eq=False)
class ShiftDigits:
    """The map from a level below 2^bits, folded ``folds`` times, to a shift by a number of digits."""

    offset: int
    digits: int
    bits: int
    folds: int

    def stages(self) -> list[tuple[int, int]]:
        """Return pairs of a threshold and the shift if the folded level reaches it, from the largest shift down."""
        result, left, range_ = [], self.digits, 1 << self.bits - self.folds
        while left > 1:
            half = -(-left // 2)
            threshold = -(-range_ * half // left)
            result.append((threshold, left - half))
            left, range_ = half, threshold
        return result

    def shifts(self, sums: Ids, limit: int | None = None) -> Ids | None:
        """Return the shift of every question, in digits [K]; None if more than ``limit`` questions read one digit."""
        from byheart.constructions.folding import loops

        thresholds, steps = np.array(self.stages(), dtype=np.int64).reshape(-1, 2).T.copy()
        shift, readers = np.empty(len(sums), dtype=np.int64), np.zeros(self.digits, dtype=np.int64)
        most = len(sums) if limit is None else limit
        fits = loops.shifts(sums, self.offset, self.bits, self.folds, thresholds, steps, shift, readers, most)
        return shift if fits else None


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Coefficients f [questions, g]: word (k, j) has open_k · (u_1, …, u_D, 1)_j. The matrix is never written out."""

    open: NDArray[np.bool_]
    factors: Ids
    """The vector (u_1, …, u_D, 1) of every question."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of questions and number of words."""
        return len(self.open), self.open.shape[1] * self.factors.shape[1]

    def modulo(self, prime: int) -> NDArray[np.uint8]:
        """Return the coefficients modulo a small prime, one byte each."""
        residues = (self.factors % prime).astype(np.uint8)
        return (self.open.view(np.uint8)[:, :, None] * residues[:, None, :]).reshape(self.shape)

    def times(self, columns: NDArray[np.integer] | Floats) -> Floats:
        """Multiply f by ``columns`` [g, w]. The product is exact if no sum of absolute values reaches 2⁵³."""
        by_row = columns.astype(np.float64).reshape(self.open.shape[1], -1)
        partial = (self.open.astype(np.float64) @ by_row).reshape(*self.factors.shape, columns.shape[1])
        result: Floats = np.einsum("qjw,qj->qw", partial, self.factors.astype(np.float64))
        return result

    def norms(self) -> Ids:
        """Return Σ |f| of every question."""
        result: Ids = self.open.sum(axis=1) * np.abs(self.factors).sum(axis=1)
        return result

    def some(self, chosen: NDArray[np.bool_]) -> "Coefficients":
        """Return the coefficients of the chosen questions."""
        return Coefficients(self.open[chosen], self.factors[chosen])


@dataclass(frozen=True, eq=False)
class FoldingKeys:
    """All keys: hash integers u [K, D], open gates, the digit that each reads [K], and labels [K]."""

    u: Ids
    open: Callable[[Ids], NDArray[np.bool_]]
    """Function from indices to open gates [chosen, s]: all at once would take a byte per gate and question."""
    digit: Ids
    label: Ids

    def coefficients(self, chosen: Ids) -> Coefficients:
        """Return the coefficients of the chosen questions."""
        factors = np.concatenate([self.u[chosen], np.ones((len(chosen), 1), dtype=np.int64)], axis=1)
        return Coefficients(self.open(chosen), factors)


class DependentKeys(Exception):  # noqa: N818 (it is not an error: the caller draws again)
    """Raised if a draw has too many dependent questions at one digit."""


def draw_gates(u: Ids, sizes: FoldingSizes, rng: np.random.Generator) -> Gates | None:
    """Draw gates with random directions, each open for a random share of the questions from ``edge`` to 1 − ``edge``.

    With all thresholds at the median, equal and opposite directions would be useless, and only (5^D − 1)/2 directions
    would remain. Random factors use the room below the planned limit. Return None if the arguments exceed the limit.
    """
    spread = u.std(axis=0)
    # A column that varies little would hardly influence a gate, so it gets a larger integer weight.
    weights = np.clip(np.rint(spread.max() / np.maximum(spread, 1e-9)), 1, 32).astype(np.int64)
    gamma = rng.integers(-2, 2, size=(sizes.rows, sizes.dim), endpoint=True) * weights
    gamma[0] = 0
    ordered = np.sort(u[:: max(1, len(u) // _SAMPLE)] @ gamma.T, axis=0)
    place = (rng.uniform(sizes.edge, 1 - sizes.edge, size=sizes.rows) * len(ordered)).astype(np.int64)
    tau = 2 * ordered[place, np.arange(sizes.rows)] + rng.choice([-1, 1], size=sizes.rows)
    tau[0] = -1
    largest = int(Gates(gamma, tau, np.ones(sizes.rows, dtype=np.int64)).sums(u).max())
    if largest > sizes.gate_limit:
        return None
    room = (1 << sizes.level_bits - 1) // largest
    return Gates(gamma, tau, rng.integers(-(-room // 2), room, size=sizes.rows, endpoint=True))


def draw_positions(
    sums: Ids, sizes: FoldingSizes, rng: np.random.Generator, *, limit: int, tries: int = 500
) -> tuple[ShiftDigits, Ids] | None:
    """Draw an offset for which at most ``limit`` questions read any digit, and the shifts [K]; None if unlucky."""
    room = (1 << sizes.level_bits) - int(sums.max())
    for _ in range(tries):
        positions = ShiftDigits(int(rng.integers(room)), sizes.digits, sizes.level_bits, sizes.first_folds)
        shifts = positions.shifts(sums, limit)
        if shifts is not None:
            return positions, shifts
    return None

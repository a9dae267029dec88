"""What a question looks like to a folding network: hash integers, open gates, and the digit it reads."""

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
    """Row k is open iff 2·Γ_k·u − τ_k > 0 (τ odd, so never 0); the first row has Γ = 0, τ = −1: always open.

    The arguments of the open gates, times their factors, add up to the level that says which digit is read.
    """

    gamma: Ids
    tau: Ids
    factor: Ids

    def open(self, u: Ids) -> NDArray[np.bool_]:
        """Which gates are open for all questions [K, s]."""
        return self._arguments(u) > 0

    def sums(self, u: Ids) -> Ids:
        """The sums of the open gates' weighted arguments [K]."""
        factor = self.factor.astype(np.float64)
        result = np.empty(len(u), dtype=np.int64)
        for begin in range(0, len(u), _CHUNK):
            chunk = slice(begin, begin + _CHUNK)
            result[chunk] = np.maximum(self._arguments(u[chunk]), 0) @ factor
        return result

    def _arguments(self, u: Ids) -> Floats:
        """Levels have less than 53 bits, and so have all sums on the way to them: float64 makes no error."""
        return u.astype(np.float64) @ (2.0 * self.gamma.T) - self.tau


@dataclass(frozen=True, eq=False)
class ShiftDigits:
    """A level below 2^bits, folded ``folds`` times, says by how many digits to shift."""

    offset: int
    digits: int
    bits: int
    folds: int

    def stages(self) -> list[tuple[int, int]]:
        """(threshold, digits to shift by if the folded level reaches it), from the largest shift down."""
        result, left, range_ = [], self.digits, 1 << self.bits - self.folds
        while left > 1:
            half = -(-left // 2)
            threshold = -(-range_ * half // left)
            result.append((threshold, left - half))
            left, range_ = half, threshold
        return result

    def shifts(self, sums: Ids, limit: int | None = None) -> Ids | None:
        """Digits by which the network shifts, for all questions [K]; None if more than ``limit`` read one digit."""
        from byheart.constructions.folding import loops

        thresholds, steps = np.array(self.stages(), dtype=np.int64).reshape(-1, 2).T.copy()
        shift, readers = np.empty(len(sums), dtype=np.int64), np.zeros(self.digits, dtype=np.int64)
        most = len(sums) if limit is None else limit
        fits = loops.shifts(sums, self.offset, self.bits, self.folds, thresholds, steps, shift, readers, most)
        return shift if fits else None


@dataclass(frozen=True, eq=False)
class Coefficients:
    """f [questions, g]: word (k, j) enters with open_k · (u_1, …, u_D, 1)_j. It is never written out."""

    open: NDArray[np.bool_]
    factors: Ids
    """(u_1, …, u_D, 1) of every question."""

    @property
    def shape(self) -> tuple[int, int]:
        """Questions and words."""
        return len(self.open), self.open.shape[1] * self.factors.shape[1]

    def modulo(self, prime: int) -> NDArray[np.uint8]:
        """Modulo a small prime, one byte each."""
        residues = (self.factors % prime).astype(np.uint8)
        return (self.open.view(np.uint8)[:, :, None] * residues[:, None, :]).reshape(self.shape)

    def times(self, columns: NDArray[np.integer] | Floats) -> Floats:
        """f·columns, columns [g, w]: without any error where no sum of absolute values reaches 2⁵³."""
        by_row = columns.astype(np.float64).reshape(self.open.shape[1], -1)
        partial = (self.open.astype(np.float64) @ by_row).reshape(*self.factors.shape, columns.shape[1])
        result: Floats = np.einsum("qjw,qj->qw", partial, self.factors.astype(np.float64))
        return result

    def norms(self) -> Ids:
        """Σ |f| of every question."""
        result: Ids = self.open.sum(axis=1) * np.abs(self.factors).sum(axis=1)
        return result

    def some(self, chosen: NDArray[np.bool_]) -> "Coefficients":
        """Those of the chosen questions."""
        return Coefficients(self.open[chosen], self.factors[chosen])


@dataclass(frozen=True, eq=False)
class FoldingKeys:
    """All keys: hash integers u [K, D], the gates that are open for some of them, digit that is read [K], label [K]."""

    u: Ids
    open: Callable[[Ids], NDArray[np.bool_]]
    """[chosen, s] from indices: all at once would take a byte a gate and question."""
    digit: Ids
    label: Ids

    def coefficients(self, chosen: Ids) -> Coefficients:
        """Those of the chosen questions."""
        factors = np.concatenate([self.u[chosen], np.ones((len(chosen), 1), dtype=np.int64)], axis=1)
        return Coefficients(self.open(chosen), factors)


class DependentKeys(Exception):  # noqa: N818 (it is not an error: the caller draws again)
    """The draw has too many dependent questions at one digit."""


def draw_gates(u: Ids, sizes: FoldingSizes, rng: np.random.Generator) -> Gates | None:
    """Random directions, each open for a random share, from ``edge`` to 1 − ``edge``, of (a sample of) the questions.

    Thresholds all at the median would make equal and opposite directions, of which there are only (5^D − 1)/2, useless.
    None if the open gates' arguments exceed the planned limit; if they leave room below it, random factors fill it.
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
    largest = int(Gates(gamma, tau, np.ones(sizes.rows, dtype=np.int64)).sums(u).max())
    if largest > sizes.gate_limit:
        return None
    room = (1 << sizes.level_bits - 1) // largest
    return Gates(gamma, tau, rng.integers(-(-room // 2), room, size=sizes.rows, endpoint=True))


def draw_positions(
    sums: Ids, sizes: FoldingSizes, rng: np.random.Generator, *, limit: int, tries: int = 500
) -> tuple[ShiftDigits, Ids] | None:
    """An offset under which no digit is read by more than ``limit`` questions, and the shift of every question [K]."""
    room = (1 << sizes.level_bits) - int(sums.max())
    for _ in range(tries):
        positions = ShiftDigits(int(rng.integers(room)), sizes.digits, sizes.level_bits, sizes.first_folds)
        shifts = positions.shifts(sums, limit)
        if shifts is not None:
            return positions, shifts
    return None

"""Distance of results from published ones, point by point, and the distance that noise alone would make.

At a point there are n runs here, with mean and standard deviation s, and a published mean of m runs whose deviation was
not published. **If the published runs scatter as ours do**, and around the same value, the gap between the means has
standard deviation σ√(1/n + 1/m), and gap / (s√(1/n + 1/m)) is Student's t with n − 1 degrees of freedom. From this come
``within``, whether noise explains a gap, as it would in 95 % of all, and ``expected``, the mean |gap| that noise alone
would make: √(2/π)·σ√(1/n + 1/m), with s/c₄(n) for σ, right on average if the noise is Gaussian, which is not checked.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from byheart.errors import BadInput
from byheart.lab.fits import LEVEL, student_quantile
from byheart.lab.rows import is_number
from byheart.papers.dana_2025.published import SETTINGS, Point, beside, settings_of

ROUNDING = 5e-6
"""Rounding error of published numbers, which have five digits."""

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Gap:
    """One point: the published mean, the mean of ``runs`` runs here, and their standard deviation.

    ``uniform`` is the accuracy over all contexts, each counted once; ``here`` and ``published`` are over the sample
    that was trained on.
    """

    settings: dict[str, Any]
    published: float
    published_runs: int
    here: float
    deviation: float | None
    runs: int
    uniform: float | None

    @property
    def gap(self) -> float:
        """Ours minus theirs."""
        return self.here - self.published

    @property
    def noise(self) -> float | None:
        """Standard deviation of the gap, if the published runs scatter as ours; None for a single run."""
        if self.deviation is None:
            return None
        return self.deviation * math.sqrt(1 / self.runs + 1 / self.published_runs)

    def within(self, level: float = LEVEL) -> bool | None:
        """Return True if noise explains the gap, as it would in a share ``level`` of all points; None for one run."""
        if self.noise is None:
            return None
        return bool(abs(self.gap) <= student_quantile(level, self.runs - 1) * self.noise + ROUNDING)


@dataclass(frozen=True)
class Gaps:
    """All points of one experiment, or of several."""

    name: str
    points: tuple[Gap, ...]

    @property
    def mean(self) -> float:
        """Mean of the gaps, with their signs."""
        return statistics.fmean(point.gap for point in self.points)

    @property
    def mean_absolute(self) -> float:
        """Mean size of the gaps."""
        return statistics.fmean(abs(point.gap) for point in self.points)

    @property
    def largest(self) -> Gap:
        """The point with the largest gap."""
        return max(self.points, key=lambda point: abs(point.gap))

    @property
    def deviation(self) -> float | None:
        """Standard deviation of single runs, the root of the mean variance; None without repetitions."""
        variances = [point.deviation**2 for point in self.points if point.deviation is not None]
        return math.sqrt(statistics.fmean(variances)) if variances else None

    @property
    def expected(self) -> float | None:
        """Mean |gap| that noise alone would make; None without repetitions."""
        noises = [(point.noise, point.runs) for point in self.points]
        sizes = [math.sqrt(2 / math.pi) * noise / _c4(runs) for noise, runs in noises if noise is not None]
        return statistics.fmean(sizes) if sizes else None

    @property
    def within(self) -> int:
        """Number of gaps that noise explains, among points with repetitions."""
        return sum(point.within() is True for point in self.points)

    @property
    def uniform(self) -> float | None:
        """Mean of our accuracy over all contexts minus that over the sample."""
        differences = [point.uniform - point.here for point in self.points if point.uniform is not None]
        return statistics.fmean(differences) if differences else None


def gaps(name: str, rows: Rows) -> Gaps:
    """Return the gaps at all published points that the table has runs of.

    >>> network = {"experiment": "2", "vocab": 50, "model_dim": 10, "head_dim": 1, "heads": 20, "layers": 1}
    >>> two = gaps("two", [network | {"last_accuracy": accuracy} for accuracy in (0.08, 0.09)])
    >>> f"{two.mean:.5f} at {len(two.points)} point, by noise {two.expected:.5f}, within noise {two.within}"
    '0.00355 at 1 point, by noise 0.00592, within noise 1'
    """
    runs: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if is_number(row.get("last_accuracy")):
            runs.setdefault(settings_of(row), []).append(row)
    points = [point for point in beside(rows) if settings_of(point) in runs]
    if not points:
        raise BadInput(f"{name}: no point of it was published; expected results of Dana's experiments")
    return Gaps(name, tuple(_gap(point, runs[settings_of(point)]) for point in points))


def _gap(point: Point, rows: Rows) -> Gap:
    reached = [row["last_accuracy"] for row in rows]
    everywhere = [row["accuracy"] for row in rows if is_number(row.get("accuracy"))]
    return Gap(
        {name: point[name] for name in SETTINGS if point[name] is not None},
        point["last_accuracy"],
        point["runs"],
        statistics.fmean(reached),
        statistics.stdev(reached) if len(reached) > 1 else None,
        len(reached),
        statistics.fmean(everywhere) if everywhere else None,
    )


def _c4(runs: int) -> float:
    """Return the mean standard deviation of ``runs`` Gaussian numbers, in units of the true one."""
    return math.sqrt(2 / (runs - 1)) * math.exp(math.lgamma(runs / 2) - math.lgamma((runs - 1) / 2))

"""Straight as far as it is not saturated: slopes, how much of the variance a line explains, and where it flattens.

**The linear range.** Accuracy ends at 1 and a line does not, so lines go through the points whose *mean* accuracy over
repetitions is below :data:`SATURATED`: choosing single runs by what they reached would bend the line. A line has to be
held against at least :data:`FEWEST` different x. Nothing else is left out, whatever the curve looks like there: neither
the slow beginning nor what bends.

**Two intervals of a slope.** ``slope`` has that of least squares, whose noise is all that the line misses, bends too.
``over_seeds`` has the one that repetitions alone make, by their scatter about the means at each x: where the slope of
this line, through models at these x with other seeds, would lie. It is exact for Gaussian noise of one variance,
straight or not, and needs repetitions.

**R²** of a line through m points, 1 − RSS/TSS, estimates λ/(λ + m), λ the noncentrality of F = (m − 2)·R²/(1 − R²),
which has 1 and m − 2 degrees of freedom. Its interval is found from that: the λ for which so large, or so small, an F
has half of the probability that is left over. It is exact for a true line with Gaussian noise of one variance; neither
is checked, but for the line there is the F test of :mod:`byheart.lab.fits` where x-values are repeated.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from byheart.lab.fits import Estimate, fit
from byheart.lab.quantiles import LEVEL, check_level, student_quantile
from byheart.tasks.arrays import Floats

SATURATED = 0.9
"""Points whose mean is not below it are left out."""
FEWEST = 3
"""Different x that a line needs."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class FittedLine:
    """A line through this many ``points``, repetitions counted; ``lack_of_fit`` as in
    :class:`byheart.lab.fits.FamilyFit`."""

    points: int
    slope: Estimate
    over_seeds: Estimate | None
    r_squared: Estimate
    lack_of_fit: float | None


def unsaturated(points: Points, most: float = SATURATED) -> list[tuple[float, float]]:
    """The points at those x at which the mean is below ``most``.

    >>> unsaturated([(1, 0.5), (2, 0.95), (2, 0.8), (3, 1.0)])
    [(1, 0.5), (2, 0.95), (2, 0.8)]
    """
    values: dict[float, list[float]] = {}
    for x, y in points:
        values.setdefault(x, []).append(y)
    return [(x, y) for x, y in points if sum(values[x]) / len(values[x]) < most]


def line(points: Points, level: float = LEVEL) -> FittedLine | None:
    """Least squares; None where there are too few different x, or the points do not determine a line and its noise.

    >>> found = line([(1, 0.1), (2, 0.22), (3, 0.28), (4, 0.4)])
    >>> round(found.slope.value, 3), [round(number, 2) for number in vars(found.r_squared).values() if number != "R²"]
    (0.096, [0.98, 0.36, 0.99])
    """
    if len({x for x, _ in points}) < FEWEST:
        return None
    xs, ys = (np.array(column, float) for column in zip(*points, strict=True))
    law = fit(xs, ys, "linear", level=level, held_out=False)
    total = float(((ys - ys.mean()) ** 2).sum())
    if law.status == "failed" or total == 0:
        return None
    explained = max(0.0, 1 - float(((ys - law.at(xs)) ** 2).sum()) / total)
    ends = r_squared_interval(explained, len(points), level)
    seeds = _over_seeds(xs, ys, law["b"].value, level)
    return FittedLine(len(points), law["b"], seeds, Estimate("R²", explained, *ends), law.lack_of_fit)


def _over_seeds(xs: Floats, ys: Floats, slope: float, level: float) -> Estimate | None:
    """The slope with the interval that the scatter at equal x makes; None without repetitions."""
    _, places = np.unique(xs, return_inverse=True)
    counts = np.bincount(places)
    free = len(xs) - len(counts)
    if not free:
        return None
    scatter = ys - (np.bincount(places, ys) / counts)[places]
    error = math.sqrt(float(scatter @ scatter) / free / float(((xs - xs.mean()) ** 2).sum()))
    half = student_quantile(level, free) * error
    return Estimate("b", slope, slope - half, slope + half)


def r_squared_interval(squared: float, points: int, level: float = LEVEL) -> tuple[float, float]:
    """Where R² of a line through this many points lies with probability ``level``, if ``squared`` was found.

    >>> [round(end, 3) for end in r_squared_interval(0.9, points=20)]
    [0.768, 0.937]
    """
    from scipy.optimize import brentq
    from scipy.special import ncfdtr

    free, tail = points - 2, (1 - check_level(level)) / 2
    if squared >= 1:
        return 1.0, 1.0
    F = free * squared / (1 - squared)

    def where(probability: float) -> float:
        """R² for which an F at most as large as this one has the probability, which falls as R² grows."""
        if ncfdtr(1, free, 0, F) <= probability:
            return 0.0
        most = F + 1
        while ncfdtr(1, free, most, F) > probability:
            most *= 2
        found = float(brentq(lambda size: ncfdtr(1, free, size, F) - probability, 0, most))
        return found / (found + points)

    return where(1 - tail), where(tail)


@dataclass(frozen=True)
class Flattening:
    """Slopes of two lines, through the points up to x = ``at`` and through those beyond.

    ``equal`` is the probability of so large a difference between the slopes if they were the same (Welch's t test).
    """

    at: float
    before: FittedLine
    beyond: FittedLine
    equal: float


def flattening(points: Points, at: float) -> Flattening | None:
    """Whether a curve that grows up to x = ``at`` still grows beyond.

    None where one side has no line, or where both lines are exact, so that there is no noise to test against.
    """
    from scipy.special import stdtr

    before, beyond = line([p for p in points if p[0] <= at]), line([p for p in points if p[0] > at])
    if before is None or beyond is None or before.r_squared.value == beyond.r_squared.value == 1:
        return None
    variances, freedoms = zip(*((_variance(side), side.points - 2) for side in (before, beyond)), strict=True)
    total = sum(variances)
    # Welch and Satterthwaite: the degrees of freedom of a sum of two estimated variances.
    degrees = total**2 / sum(each**2 / free for each, free in zip(variances, freedoms, strict=True))
    t = (before.slope.value - beyond.slope.value) / math.sqrt(total)
    return Flattening(at, before, beyond, float(2 * stdtr(degrees, -abs(t))))


def _variance(side: FittedLine) -> float:
    """Of the slope, from the half-width of its interval."""
    return ((side.slope.high - side.slope.value) / student_quantile(LEVEL, side.points - 2)) ** 2

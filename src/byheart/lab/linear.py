"""Lines through the points that are not saturated: slopes, the variance that a line explains, and where it flattens.

**The linear range.** Accuracy ends at 1 and a line does not, so lines go through the points whose *mean* accuracy over
repetitions is below :data:`SATURATED`. Choosing single runs by their own accuracy would bend the line. A line needs at
least :data:`FEWEST` different x. No other points are left out, whatever the curve looks like: neither a slow beginning
nor a bend.

**Two intervals of a slope.** ``slope`` has the interval of least squares, whose noise is all that the line misses,
including bends. ``over_seeds`` has the interval from repetitions alone, by their scatter about the means at each x: it
says where the slope of this line would lie for models at these x with other seeds. It is exact for Gaussian noise of
one variance, straight or not, and needs repetitions.

**R²** of a line through m points, 1 − RSS/TSS, estimates λ/(λ + m), where λ is the noncentrality of
F = (m − 2)·R²/(1 − R²), which has 1 and m − 2 degrees of freedom. The ends of its interval are the λ at which an F as
large, or as small, has half of the remaining probability. It is exact for a true line with Gaussian noise of one
variance. Neither is checked, but the F test of :mod:`byheart.lab.fits` tests the line if x-values are repeated.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from byheart.lab.fits import LEVEL, Estimate, check_level, fit, student_quantile
from byheart.tasks.arrays import Floats

SATURATED = 0.9
"""Smallest mean accuracy of points that are left out."""
FEWEST = 3
"""Smallest number of different x for a line."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class FittedLine:
    """A line through ``points`` points, counting repetitions.

    ``lack_of_fit`` is that of :class:`byheart.lab.fits.FamilyFit`.
    """

    points: int
    slope: Estimate
    over_seeds: Estimate | None
    r_squared: Estimate
    lack_of_fit: float | None


def unsaturated(points: Points, limit: float = SATURATED) -> list[tuple[float, float]]:
    """Return the points at those x at which the mean is below ``limit``.

    >>> unsaturated([(1, 0.5), (2, 0.95), (2, 0.8), (3, 1.0)])
    [(1, 0.5), (2, 0.95), (2, 0.8)]
    """
    values: dict[float, list[float]] = {}
    for x, y in points:
        values.setdefault(x, []).append(y)
    return [(x, y) for x, y in points if sum(values[x]) / len(values[x]) < limit]


def line(points: Points, level: float = LEVEL) -> FittedLine | None:
    """Fit a line by least squares, or return None if the points do not determine a line and its noise.

    >>> fitted = line([(1, 0.1), (2, 0.22), (3, 0.28), (4, 0.4)])
    >>> round(fitted.slope.value, 3), [round(number, 2) for number in vars(fitted.r_squared).values() if number != "R²"]
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
    """Return the slope with the interval from the scatter at equal x, or None without repetitions."""
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
    """Return the interval in which R² of a line through ``points`` points lies with probability ``level``.

    ``squared`` is the R² of the sample.

    >>> [round(end, 3) for end in r_squared_interval(0.9, points=20)]
    [0.768, 0.937]
    """
    from scipy.optimize import brentq
    from scipy.special import ncfdtr

    free, tail = points - 2, (1 - check_level(level)) / 2
    if squared >= 1:
        return 1.0, 1.0
    F = free * squared / (1 - squared)

    def solution(probability: float) -> float:
        """Return the R² at which F does not exceed its value with this probability, which falls as R² grows."""
        if ncfdtr(1, free, 0, F) <= probability:
            return 0.0
        most = F + 1
        while ncfdtr(1, free, most, F) > probability:
            most *= 2
        size = float(brentq(lambda size: ncfdtr(1, free, size, F) - probability, 0, most))
        return size / (size + points)

    return solution(1 - tail), solution(tail)


@dataclass(frozen=True)
class Flattening:
    """Slopes of two lines: through the points up to x = ``at``, and through those beyond.

    ``equal`` is the probability of a difference this large between the slopes if they were the same (Welch's t test).
    """

    at: float
    before: FittedLine
    beyond: FittedLine
    equal: float


def flattening(points: Points, at: float) -> Flattening | None:
    """Compare the slopes of a curve up to x = ``at`` and beyond.

    Return None if one side has no line, or if both lines are exact, so that there is no noise to test against.
    """
    from scipy.special import stdtr

    before, beyond = line([p for p in points if p[0] <= at]), line([p for p in points if p[0] > at])
    if before is None or beyond is None or before.r_squared.value == beyond.r_squared.value == 1:
        return None
    variances, freedoms = zip(*((_variance(side), side.points - 2) for side in (before, beyond)), strict=True)
    total = sum(variances)
    # Welch and Satterthwaite: the degrees of freedom of a sum of two estimated variances.
    degrees = total**2 / sum(variance**2 / free for variance, free in zip(variances, freedoms, strict=True))
    t = (before.slope.value - beyond.slope.value) / math.sqrt(total)
    return Flattening(at, before, beyond, float(2 * stdtr(degrees, -abs(t))))


def _variance(side: FittedLine) -> float:
    """Return the variance of the slope, from the half-width of its interval."""
    return ((side.slope.high - side.slope.value) / student_quantile(LEVEL, side.points - 2)) ** 2

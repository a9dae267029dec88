"""Intervals at a level: Student's quantile, and the interval of a mean."""

import math
import statistics

from byheart.errors import BadInput

LEVEL = 0.95
"""Default confidence level of all intervals."""


def student_quantile(level: float, degrees: int) -> float:
    """Return the t such that a Student variable lies within ±t with probability ``level``.

    >>> round(student_quantile(0.95, 4), 6), round(student_quantile(0.95, 1000), 4)
    (2.776445, 1.9623)
    """
    from scipy.special import stdtrit

    if degrees < 1:
        raise BadInput(f"degrees of freedom are {degrees}; expected at least 1: more points than parameters")
    return float(stdtrit(degrees, (1 + check_level(level)) / 2))


def mean_interval(values: list[float], level: float = LEVEL) -> tuple[float, float | None, float | None]:
    """Return the mean of independent repetitions and its Student interval, whose ends are None for a single value.

    >>> [round(number, 4) for number in mean_interval([1.0, 2.0, 3.0])]
    [2.0, -0.4841, 4.4841]
    """
    if not values:
        raise BadInput("there are no repetitions; expected at least one")
    mean = statistics.fmean(values)
    if len(values) == 1:
        return mean, None, None
    half = student_quantile(level, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def check_level(level: float) -> float:
    """Return ``level``. Raise BadInput unless it is between 0 and 1."""
    if not 0 < level < 1:
        raise BadInput(f"level is {level}; expected between 0 and 1, like {LEVEL}")
    return level

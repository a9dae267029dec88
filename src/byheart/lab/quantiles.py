"""Quantiles of Student's t and of the Beta distribution, from the incomplete beta function alone.

Both are monotone functions of I_x(a, b), which is evaluated by its continued fraction (Lentz's way of summing it, DLMF
8.17.22), and inverted by bisection: quantiles are right to about 1e-12, and slow enough that nobody should ask for a
million of them. The F test of a fit is I_x itself.
"""

import math
from collections.abc import Callable

from byheart.errors import BadInput

LEVEL = 0.95
"""Of all intervals, unless another one is asked for."""
_TERMS = 10_000
_TINY = 1e-300


def incomplete_beta(x: float, a: float, b: float) -> float:
    """I_x(a, b), the share of a Beta(a, b) variable's mass below x, for a, b > 0.

    >>> round(incomplete_beta(0.25, 1, 1), 12), round(incomplete_beta(0.5, 2, 3), 12)
    (0.25, 0.6875)
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on this side only
        return 1.0 - incomplete_beta(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    value, C, D = 1.0, 1.0, 0.0
    for m in range(_TERMS):
        k = m // 2
        if m == 0:
            step = 1.0
        elif m % 2 == 0:
            step = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k))
        else:
            step = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))
        D = 1.0 / (1.0 + step * D or _TINY)
        C = 1.0 + step / C or _TINY
        value *= C * D
        if m and abs(C * D - 1) < 1e-15:
            break
    return front * (value - 1.0)


def beta_quantile(share: float, a: float, b: float) -> float:
    """The x with I_x(a, b) = ``share``.

    >>> round(beta_quantile(0.6875, 2, 3), 12)
    0.5
    """
    return _inverted(lambda x: incomplete_beta(x, a, b), share, 0.0, 1.0)


def student_quantile(level: float, degrees: int) -> float:
    """The t such that a Student variable lies within ±t with probability ``level``.

    >>> round(student_quantile(0.95, 4), 6), round(student_quantile(0.95, 1000), 4)
    (2.776445, 1.9623)
    """
    if degrees < 1:
        raise BadInput(f"degrees of freedom are {degrees}; expected at least 1: more points than parameters")
    # t² / (degrees + t²) is Beta(1/2, degrees/2).
    x = beta_quantile(check_level(level), 0.5, degrees / 2)
    return math.sqrt(degrees * x / (1 - x))


def f_tail(ratio: float, above: int, below: int) -> float:
    """The probability that an F variable with these degrees of freedom is larger than ``ratio``.

    >>> round(f_tail(5.0503290576, 5, 5), 6)
    0.05
    """
    return incomplete_beta(below / (below + above * max(ratio, 0.0)), below / 2, above / 2)


def normal_quantile(level: float) -> float:
    """The z such that a standard normal variable lies within ±z with probability ``level``.

    >>> round(normal_quantile(0.95), 6)
    1.959964
    """
    return math.sqrt(2) * _inverted(math.erf, check_level(level), 0.0, 6.0)


def mean_interval(values: list[float], level: float = LEVEL) -> tuple[float, float | None, float | None]:
    """Mean of independent repetitions and the Student interval of it; None for the ends if there is one value only.

    >>> [round(number, 4) for number in mean_interval([1.0, 2.0, 3.0])]
    [2.0, -0.4841, 4.4841]
    """
    if not values:
        raise BadInput("there are no repetitions; expected at least one")
    n, mean = len(values), math.fsum(values) / len(values)
    if n == 1:
        return mean, None, None
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = student_quantile(level, n - 1) * spread / math.sqrt(n)
    return mean, mean - half, mean + half


def check_level(level: float) -> float:
    """``level``, if it is one."""
    if not 0 < level < 1:
        raise BadInput(f"level is {level}; expected between 0 and 1, like {LEVEL}")
    return level


def _inverted(function: Callable[[float], float], value: float, low: float, high: float) -> float:
    """Where an increasing function reaches ``value``."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if function(middle) < value else (low, middle)
    return high

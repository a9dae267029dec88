"""The closest two of many points, by a sweep along the coordinate of largest spread.

This module imports numba; import it where it is needed.
"""

import numpy as np

from byheart.compiled import jit
from byheart.tasks.checks import Floats


def closest_pair(points: Floats) -> tuple[int, int, float, int]:
    """The closest two rows of ``points`` [K, d], K ≥ 2, no two rows equal.

    Returns ``first < second``, and their squared distance as ``square * 2**exponent``. No pair's squared distance comes
    out smaller in float64 arithmetic, in which ``square`` is off by at most (d + 2) roundings, whatever the scale of
    the points.

    >>> closest_pair(np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 5.0], [9.0, 9.0]]))
    (1, 2, 1.0, 0)
    >>> closest_pair(np.array([[1e308], [0.0], [2.0**-600]]))
    (1, 2, 1099511627776.0, -1240)
    """
    axes = np.argsort(-np.ptp(points * 0.5, axis=0), kind="stable")  # halved, for a spread may overflow
    order = np.argsort(points[:, axes[0]], kind="stable")
    swept = np.ascontiguousarray(points[order][:, axes])
    at, to, square = _sweep(swept, 1.0)
    exponent = 0
    if square < 2.0**-900:  # squares of such differences underflow: enlarge the differences
        at, to, square = _sweep(swept, 2.0**620)
        exponent = -1240
    elif square == np.inf:  # every squared distance overflows: shrink the points
        at, to, square = _sweep(swept * 2.0**-520, 1.0)
        exponent = 1040
    first, second = sorted((int(order[at]), int(order[to])))
    return first, second, square, exponent


def _sweep_in_python(points: Floats, scale: float) -> tuple[int, int, float]:
    """The closest pair of points [K, d] sorted by their first coordinate; differences are multiplied by ``scale``."""
    best = np.inf
    at = to = 0
    for i in range(points.shape[0]):
        for j in range(i + 1, points.shape[0]):
            gap = (points[j, 0] - points[i, 0]) * scale
            square = gap * gap
            if square >= best:
                break
            for axis in range(1, points.shape[1]):
                gap = (points[j, axis] - points[i, axis]) * scale
                square += gap * gap
                if square >= best:
                    break
            if square < best:
                best, at, to = square, i, j
    return at, to, best


_sweep = jit(_sweep_in_python)

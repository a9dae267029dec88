"""Token-wise (r, δ)-separation, under which vectors can be distinguished at a bounded cost.

The closest two points are found by a sweep along the coordinate of largest spread.

A scan of many points imports numba.
"""

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from byheart.tasks.arrays import Floats, Ids
from byheart.tasks.distinct import distinct
from byheart.tasks.task import Task


def root_above(square: Fraction) -> float:
    """Return the smallest float that is at least √``square``; ``inf`` if there is none.

    >>> root_above(Fraction(25)), root_above(Fraction(2))
    (5.0, 1.4142135623730951)
    """
    below = root_below(square)
    return below if Fraction(below) ** 2 == square else math.nextafter(below, math.inf)


def root_below(square: Fraction) -> float:
    """Return the largest float that is at most √``square``.

    >>> root_below(Fraction(25)), root_below(Fraction(2))
    (5.0, 1.414213562373095)
    """
    # Sixty-four correct bits give a float that is the answer or next to it; exact comparison tells which.
    shift = max(0, 130 - square.numerator.bit_length() + square.denominator.bit_length()) // 2 + 1
    root = Fraction(math.isqrt((square.numerator << 2 * shift) // square.denominator), 1 << shift)
    guess = sys.float_info.max if root >= sys.float_info.max else float(root)
    while Fraction(guess) ** 2 > square:
        guess = math.nextafter(guess, 0.0)
    while (higher := math.nextafter(guess, math.inf)) < math.inf and Fraction(higher) ** 2 <= square:
        guess = higher
    return guess


SMALLEST_GAP = math.ulp(0.0)


@dataclass(frozen=True)
class Separation:
    """Every token has norm at most ``r``, and any two tokens are equal or at least ``delta`` > 0 apart.

    Both bounds hold in spite of rounding, and are as tight as float64 arithmetic on distances allows.
    """

    r: float
    """An upper bound on the norms, at most a few roundings above the largest."""
    delta: float
    """A lower bound on the distances, at most a few roundings below the smallest; ``inf`` if all tokens are equal."""
    closest: tuple[tuple[int, int], tuple[int, int]] | None
    """(example, position) of the two closest distinct tokens; ``None`` if all tokens are equal."""

    def __str__(self) -> str:
        claim = f"token-wise (r, δ)-separated with r = {self.r!r} and δ = {self.delta!r}"
        if self.closest is None:
            return f"{claim}: all tokens are equal"
        (i, k), (j, m) = self.closest
        return f"{claim}: closest are example {i}, position {k} and example {j}, position {m}"


def separation(task: Task) -> Separation:
    """Return r and δ for which the tokens are token-wise (r, δ)-separated. Token ids count as one-hot vectors.

    >>> from byheart.tasks import NextToken
    >>> print(separation(NextToken(vectors=[[[3.0, 4.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 2.0]]], labels=[0, 1])))
    token-wise (r, δ)-separated with r = 5.0 and δ = 2.0: closest are example 0, position 1 and example 1, position 1
    >>> separation(NextToken(tokens=[[0, 0, 7]], labels=[0]))
    Separation(r=1.0, delta=1.414213562373095, closest=((0, 0), (0, 2)))
    """
    if task.vectors is None:
        assert task.tokens is not None
        return _one_hot_separation(task.tokens)
    length, dim = task.vectors.shape[1:]
    places = distinct(task.vectors.reshape(-1, dim)).first
    points = task.vectors.reshape(-1, dim)[places]
    slack = _rounding(points)
    r = _largest_norm(points, slack)
    if len(points) == 1:
        return Separation(r, math.inf, None)
    i, j, square, exponent = closest_pair(points)
    delta = root_below(Fraction(square) * Fraction(2) ** exponent * (1 - slack))
    (a, k), (b, m) = (divmod(int(places[row]), length) for row in (i, j))
    return Separation(r, max(delta, SMALLEST_GAP), ((a, k), (b, m)))


def _one_hot_separation(tokens: Ids) -> Separation:
    is_other = tokens != tokens[0, 0]
    if not is_other.any():
        return Separation(1.0, math.inf, None)
    example, position = divmod(int(is_other.argmax()), tokens.shape[1])
    return Separation(1.0, root_below(Fraction(2)), ((0, 0), (example, position)))


def _rounding(points: Floats) -> Fraction:
    """Bound the relative error of squared norms and distances of ``points`` [K, d] in float64 arithmetic.

    A difference (which counts twice), its square and d - 1 additions make d + 2 roundings of one part in 2^53; two more
    cover what underflows. Nothing is rounded if all coordinates are multiples of one power of two, few enough bits long
    for the sums of squares to fit.
    """
    dim = points.shape[1]
    top = math.frexp(np.abs(points).max())[1]
    bits = (51 - dim.bit_length()) // 2
    grid = np.trunc(np.ldexp(points, bits - top))
    if np.array_equal(np.ldexp(grid, top - bits), points):
        return Fraction(0)
    return Fraction(dim + 4, 2**53)


def _largest_norm(points: Floats, slack: Fraction) -> float:
    """Return the largest norm, rounded up. Points are scaled below 1, so that no square overflows."""
    top = math.frexp(np.abs(points).max())[1]
    scaled = np.ldexp(points, -top)
    square = Fraction(np.einsum("kd,kd->k", scaled, scaled).max().item())
    return root_above(square * Fraction(4) ** top * (1 + slack))


def closest_pair(points: Floats) -> tuple[int, int, float, int]:
    """Find the closest two rows of ``points`` [K, d], K ≥ 2, no two rows equal.

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
    at, to, square = _sweep()(swept, 1.0)
    exponent = 0
    if square < 2.0**-900:  # squares of such differences underflow: enlarge the differences
        at, to, square = _sweep()(swept, 2.0**620)
        exponent = -1240
    elif square == np.inf:  # every squared distance overflows: shrink the points
        at, to, square = _sweep()(swept * 2.0**-520, 1.0)
        exponent = 1040
    first, second = sorted((int(order[at]), int(order[to])))
    return first, second, square, exponent


def _sweep_in_python(points: Floats, scale: float) -> tuple[int, int, float]:
    """Find the closest pair of points [K, d] sorted by their first coordinate; scale differences by ``scale``."""
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


@cache
def _sweep() -> Any:
    from byheart.compiled import jit  # numba takes a second to import

    return jit(_sweep_in_python)

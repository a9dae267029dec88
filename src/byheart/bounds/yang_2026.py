"""Yang & Yang 2026: width w and depth L memorize N points if w²L² is between N/log δ⁻¹ and N log δ⁻¹.

Statement: N points in the unit ball, pairwise δ apart, with discrete labels, are memorized by ReLU networks of width
w and depth L with w²L² = O(N log δ⁻¹); and any network that memorizes all such datasets has w²L² = Ω(N / log δ⁻¹).

- Letters: their W is our w (here W counts parameters), N, L, δ are the same. Points of norm at most r are first
  divided by r, so δ becomes δ/r.
- In parameters: a dense network of width w and depth L has about w²L, so at depth L the bounds read N log(r/δ)/L and
  N/(L log(r/δ)). A width is at least one, so neither falls below L.
- A network for any w and L: :mod:`byheart.constructions.yang_2026`, with w²L² = O(N log N).
- Order only, on both sides. At the deepest, L ≈ √N, both meet √N up to the logarithm.
- Not checked here: the separation.
"""

import math
from functools import partial

from byheart.bounds.bound import Bound
from byheart.errors import BadInput


def sufficient(examples: int, radius: float, separation: float, depth: int) -> float:
    """Return w²L with w²L² = N log(r/δ) and w ≥ 1, the expression inside O(·).

    >>> round(sufficient(examples=100, radius=1.0, separation=0.1, depth=5), 2)
    46.05
    """
    return _parameters(examples * _log_separation(radius, separation), depth)


def needed(examples: int, radius: float, separation: float, depth: int) -> float:
    """Return w²L with w²L² = N/log(r/δ) and w ≥ 1, the expression inside Ω(·).

    >>> round(needed(examples=100, radius=1.0, separation=0.1, depth=5), 2)
    8.69
    """
    return _parameters(examples / _log_separation(radius, separation), depth)


def _parameters(width_depth_squared: float, depth: int) -> float:
    return max(1.0, width_depth_squared / depth**2) * depth


def _log_separation(radius: float, separation: float) -> float:
    if separation >= radius:
        raise BadInput(f"separation is {separation} and radius is {radius}; expected δ < r, so that log(r/δ) > 0")
    return math.log(radius / separation)


_bound = partial(
    Bound,
    paper="Yang & Yang 2026",
    source="Memorization capacity of deep ReLU neural networks characterized by width and depth, arXiv:2603.09589",
    setting="points",
    model="feed-forward ReLU network of width w and depth L",
    kind="order",
    paper_letters={"W": "w, width", "L": "depth", "δ": "separation/radius"},
    conditions={"δ < r": lambda radius, separation: separation < radius},
)

BOUNDS = (
    _bound(
        name="yang-2026-points-upper",
        side="upper",
        expression="w²L² = O(N log(r/δ)), so w²L = O(N log(r/δ)/L)",
        hypotheses=("points have norm at most r and are pairwise at least δ apart", "δ < r", "w ≥ 1"),
        formula=sufficient,
    ),
    _bound(
        name="yang-2026-points-lower",
        side="lower",
        expression="w²L² = Ω(N / log(r/δ)), so w²L = Ω(N / (L log(r/δ)))",
        hypotheses=("one network shape memorizes every N points of norm at most r, pairwise at least δ apart", "δ < r"),
        formula=needed,
    ),
)

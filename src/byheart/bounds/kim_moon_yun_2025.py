"""Kim, Moon & Yun 2025: robust memorization of points costs from Õ(√N) to Õ(Nd²) parameters as the balls grow.

Statement: let points with different labels be at least 2ε apart, and let the network be right on the ball of radius
ρε around every point, 0 < ρ < 1. Then Õ(√N) parameters suffice for ρ up to about 1/(N√d), Õ(N d^¼ ρ^½) up to about
1/√d, and Õ(N d² ρ⁴) beyond, up to Õ(Nd²). The three regimes meet, so together they are Õ(max(√N, N d^¼ ρ^½, N d²
ρ⁴)). Ω((ρ² min(N, d) + 1)d + min((1 − ρ²)^−½, √d) √N) are needed.

- Letters: their ρ = μ/ε_D is our robustness; their ε_D is half of our separation, so μ is the radius of the balls.
- Order only, on both sides; the breakpoints have constants too, omitted like all others.
- The two extremes are those of the abstract: the cost of plain memorization for small ρ, growing with ρ, at most Nd².
  The regimes between them and the lower bound are quoted and were not compared with the final text of the paper: read
  it before you rely on an exponent.
- Not checked here: the separation. The input layer's d weights per unit are not counted in the upper bound.
"""

import math
from functools import partial

from byheart.bounds.bound import Bound


def sufficient(examples: int, dim: int, robustness: float) -> float:
    """Return max(√N, N d^¼ ρ^½, N d² ρ⁴), the expression inside Õ(·).

    >>> sufficient(examples=100, dim=16, robustness=1e-9), sufficient(examples=100, dim=16, robustness=0.5)
    (10.0, 1600.0)
    """
    almost_free = math.sqrt(examples)
    small_balls = examples * math.sqrt(math.sqrt(dim) * robustness)
    large_balls = examples * dim**2 * robustness**4
    return max(almost_free, small_balls, large_balls)


def needed(examples: int, dim: int, robustness: float) -> float:
    """Return (ρ² min(N, d) + 1)d + min((1 − ρ²)^−½, √d) √N, the expression inside Ω(·).

    >>> needed(examples=100, dim=16, robustness=0.6)
    120.66
    """
    directions = (robustness**2 * min(examples, dim) + 1) * dim
    return directions + min(1 / math.sqrt(1 - robustness**2), math.sqrt(dim)) * math.sqrt(examples)


SOURCE = (
    "The Cost of Robustness: Tighter Bounds on Parameter Complexity for Robust Memorization in ReLU Nets, "
    "NeurIPS 2025, arXiv:2510.24643"
)
PAPER_LETTERS = {"ρ": "robustness", "ε_D": "separation/2", "μ": "ρ · separation/2"}
_bound = partial(
    Bound, paper="Kim, Moon & Yun 2025", source=SOURCE, setting="points", kind="order", paper_letters=PAPER_LETTERS
)

BOUNDS = (
    _bound(
        name="kim-moon-yun-2025-points-upper",
        model="feed-forward ReLU network, right on a ball around every point",
        side="upper",
        expression="Õ(max(√N, N d^¼ ρ^½, N d² ρ⁴))",
        hypotheses=(
            "points with different labels are at least the separation apart",
            "right on balls of radius ρ · separation/2, 0 < ρ < 1",
            "the input layer's d weights per unit are not counted",
        ),
        formula=sufficient,
    ),
    _bound(
        name="kim-moon-yun-2025-points-lower",
        model="any feed-forward ReLU network, right on a ball around every point",
        side="lower",
        expression="Ω((ρ² min(N, d) + 1)d + min((1 − ρ²)^−½, √d) √N)",
        hypotheses=(
            "one network shape memorizes every dataset of N points with that separation",
            "right on balls of radius ρ · separation/2, 0 < ρ < 1",
        ),
        formula=needed,
    ),
)

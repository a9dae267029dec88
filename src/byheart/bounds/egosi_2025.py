"""Egosi, Yehudai & Shamir 2025: robustness with a radius that does not shrink with N takes a width of log N.

Statement: points that are δ apart, and a network that is right on a ball around each. For a radius that is a fixed part
of δ, whatever N is, a width of order log N is necessary and sufficient. (Without robustness a constant width is enough:
:mod:`.vardi_2022`.)

- Letters: N, δ are the same; d is the dimension of the points.
- Order only, and about the *width*: the parameters depend on the depth. In d dimensions no more than a width of order d
  is ever needed, so the number is min(d, log N).
- Not checked here: the separation.
"""

import math

from byheart.bounds.bound import Statement


def width(examples: int, dim: int) -> float:
    """Return min(d, log N), the expression inside Θ(·).

    >>> round(width(examples=1000, dim=64), 2), width(examples=1000, dim=3)
    (6.91, 3)
    """
    return min(dim, math.log(examples))


STATEMENTS = (
    Statement(
        name="egosi-2025-width",
        paper="Egosi, Yehudai & Shamir 2025",
        source="Logarithmic Width Suffices for Robust Memorization, arXiv:2502.11162",
        setting="points",
        model="feed-forward ReLU network",
        kind="order",
        says="a width of Θ(log N) is necessary and sufficient for a robust radius that does not depend on N",
        counts="width",
        hypotheses=("points are pairwise at least δ apart", "the radius is a fixed part of δ"),
        formula=width,
    ),
)

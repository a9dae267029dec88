"""Vardi, Yehudai & Shamir 2022: a ReLU network of width 12 with Õ(√N) parameters memorizes N points.

Statement (their Theorem 3.1): N points of norm at most r, pairwise at least δ apart, with labels in [C], are
memorized by a ReLU network of width 12 and depth O(√(N log N) + √(N/log N) · log max(R, C)), R = 10 r N² δ⁻¹ √(πd).
At constant width the number of parameters is the depth, up to a constant and the d weights per unit of the input
layer. Ω(√N) are needed, since W parameters have VC dimension O(W²) (Goldberg & Jerrum 1995); with constants that is
:mod:`byheart.bounds.vc`.

- Letters: the paper's N, d, C, r, δ are ours; a task of points has sequences of one token.
- Order only. The logarithms are written out by the paper and kept here; their base and the constant in front are not.
- Not checked here: the separation.
- The weights have about √N log N bits. With b bits per weight, :mod:`byheart.bounds.counting` is stronger.
"""

import math
from functools import partial

from byheart.bounds.bound import Bound


def spread(examples: int, dim: int, radius: float, separation: float) -> float:
    """Return R = 10 r N² δ⁻¹ √(πd), the number of integer cells that separate N points projected on a line.

    >>> round(spread(examples=10, dim=4, radius=1.0, separation=0.1))
    35449
    """
    return 10 * radius * examples**2 / separation * math.sqrt(math.pi * dim)


def sufficient(examples: int, labels: int, dim: int, radius: float, separation: float) -> float:
    """Return √(N log N) + √(N/log N) · log max(R, C), the expression inside O(·), with a log N of at least 1.

    >>> round(sufficient(examples=100, labels=10, dim=4, radius=1.0, separation=0.1), 1)
    91.7
    """
    log_examples = max(1.0, math.log(examples))
    cells = spread(examples, dim, radius, separation)
    return math.sqrt(examples * log_examples) + math.sqrt(examples / log_examples) * math.log(max(cells, labels))


def needed(examples: int) -> float:
    """Return √N, the expression inside Ω(·).

    >>> needed(examples=100)
    10.0
    """
    return math.sqrt(examples)


SOURCE = "On the Optimal Memorization Power of ReLU Neural Networks, ICLR 2022"
_bound = partial(Bound, paper="Vardi, Yehudai & Shamir 2022", setting="points", kind="order")

BOUNDS = (
    _bound(
        name="vardi-2022-points-upper",
        source=f"{SOURCE}, Theorem 3.1",
        model="feed-forward ReLU network of width 12",
        side="upper",
        expression="O(√(N log N) + √(N/log N) · log max(R, C)), R = 10rN²√(πd)/δ",
        hypotheses=(
            "points have norm at most r and are pairwise at least δ apart",
            "the input layer's d weights per unit are not counted",
            "weights have as many bits as they need",
        ),
        formula=sufficient,
    ),
    _bound(
        name="vardi-2022-points-lower",
        source=f"{SOURCE} (by Goldberg & Jerrum 1995)",
        model="any feed-forward ReLU network",
        side="lower",
        expression="Ω(√N)",
        hypotheses=("one network shape memorizes every labelling of some N points",),
        formula=needed,
    ),
)

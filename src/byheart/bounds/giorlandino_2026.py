"""Giorlandino, Goldt & Maillard 2026: how many associations a matrix holds, to the constant.

Statement: a matrix maps p random inputs in R^d to p targets in R^d, and each must come nearer to its own target than to
any other. With each input given competing targets of its own (the *decoupled* model) the most that can be stored is p
with p log p / d² = ½ as d grows: d² = 2p log p parameters suffice, and fewer do not.

- Letters: their p is our N.
- An order, not a count: the number is a limit, from a calculation of statistical physics, for the decoupled model; that
  it agrees with the original one is shown by numerical and analytical evidence.
- Not checked here: that inputs and targets are random.
"""

import math
from functools import partial

from byheart.bounds.bound import Bound


def critical(examples: int) -> float:
    """Return 2N log N, the expression inside Θ(·) with the constant of the limit.

    >>> round(critical(examples=1000))
    13816
    """
    return 2 * examples * math.log(examples)


_bound = partial(
    Bound,
    paper="Giorlandino, Goldt & Maillard 2026",
    source="Factual recall in linear associative memories: sharp asymptotics and mechanistic insights, "
    "arXiv:2605.10795",
    setting="points",
    model="one d × d matrix, read by the nearest target (decoupled model)",
    kind="order",
    hypotheses=("N random inputs, each with a random target of its own", "d → ∞"),
    formula=critical,
    paper_letters={"p": "N, examples"},
)

BOUNDS = (
    _bound(name="giorlandino-2026-upper", side="upper", expression="O(2N log N)"),
    _bound(name="giorlandino-2026-lower", side="lower", expression="Ω(2N log N)"),
)

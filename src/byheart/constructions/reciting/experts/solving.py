"""Solving for the words of one table of one expert; see :mod:`byheart.constructions.reciting.planes`.

Sums are to be exact in every order. Where one is not, the highest bits that no question asks for are drawn again.
"""

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.reciting.experts.sizes import BITS, GATE, GROUPS, LANES, UP
from byheart.constructions.reciting.sizes import Unsolvable
from byheart.constructions.reciting.uniform.solving import Questions, filled, own_negative

LARGEST = 1 << 24
"""Sums of integers up to this are exact in float32."""
TRIES = 40


def solve(questions: Questions, kind: int, negative: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """The words of a table of this kind, below 2^bits each; raises Unsolvable.

    ``negative`` [unknowns]: those that the network holds less by 2^bits. Cells come group by group, lane by lane.
    """
    planes = filled(questions, len(negative), rng)
    for _ in range(TRIES):
        signed = planes.words - (negative.astype(np.int64) << BITS[kind]) * (kind != GATE)
        if kind == GATE or exact(signed, planes.sums, questions, kind):
            return signed
        planes.shake()
    raise Unsolvable("no sums were found that are exact in every order")


def exact(words: NDArray[np.int64], sums: NDArray[np.int64], questions: Questions, kind: int) -> bool:
    """Whether no sum of W_up or W_down can pass 2²⁴ on the way, and none is its own negative modulo 2²²."""
    if own_negative(sums, BITS[kind]).any():
        return False
    read = np.append(words, 0)[questions.cells].reshape(-1, GROUPS, LANES)
    if kind == UP:
        totals = read.sum(axis=(1, 2))
        return bool((np.abs(totals) + np.abs(questions.before) <= LARGEST).all())
    columns = read.sum(axis=1)
    least, most = np.minimum(columns, 0).sum(axis=1), np.maximum(columns, 0).sum(axis=1)
    return bool((most <= LARGEST).all() and (least >= -LARGEST).all())

"""The words of one table of one block, so that all sums are exact in every order.

There are no more equations than words in a plane, and those of random cells are independent, or nearly. If some sum is
not exact in every order, the highest bits that no question asks for are drawn again.
"""

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.layouts import Unsolvable
from byheart.compiler.planes import Equations, solve_planes
from byheart.compiler.stock.dimensions import GATE, GROUPS, LANES, UP

LARGEST = 1 << 24
"""Sums of integers up to this are exact in float32."""
TRIES = 40
"""Number of draws of the highest free bits."""


def solve(
    equations: Equations, kind: int, is_negative: NDArray[np.bool_], rng: np.random.Generator, *, times: int = 1
) -> NDArray[np.int64]:
    """Return the words of a table, below 2^bits each, after at most ``times`` attempts; raise Unsolvable.

    ``kind`` is UP, DOWN or GATE. The network holds the words of ``is_negative`` [unknowns] less 2^bits, unless the
    table is W_gate.
    """
    for _ in range(times - 1):
        try:
            return _solve_once(equations, kind, is_negative, rng)
        except Unsolvable:
            continue
    return _solve_once(equations, kind, is_negative, rng)


def _solve_once(
    equations: Equations, kind: int, is_negative: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.int64]:
    planes = solve_planes(equations, len(is_negative), rng)
    if kind == GATE:
        return planes.words
    for _ in range(TRIES):
        signed = planes.words - (is_negative.astype(np.int64) << equations.bits)
        if exact(signed, planes.sums, equations, kind):
            return signed
        planes.shake()
    raise Unsolvable("no sums were found that are exact in every order")


def is_own_negative(sums: NDArray[np.int64], bits: int) -> NDArray[np.bool_]:
    """Return where a sum is 2^(bits − 1) modulo 2^bits, its own negative: centring may give it either sign."""
    result: NDArray[np.bool_] = (sums & ((1 << bits) - 1)) == 1 << (bits - 1)
    return result


def exact(words: NDArray[np.int64], sums: NDArray[np.int64], equations: Equations, kind: int) -> bool:
    """Return True if no sum of W_up or W_down can pass 2²⁴ on the way, and none is its own negative modulo 2²²."""
    if is_own_negative(sums, equations.bits).any():
        return False
    read = np.append(words, 0)[equations.cells].reshape(-1, GROUPS, LANES)
    if kind == UP:
        assert equations.before is not None
        totals = read.sum(axis=(1, 2))
        return bool((np.abs(totals) + np.abs(equations.before) <= LARGEST).all())
    columns = read.sum(axis=1)
    least, most = np.minimum(columns, 0).sum(axis=1), np.maximum(columns, 0).sum(axis=1)
    return bool((most <= LARGEST).all() and (least >= -LARGEST).all())

"""The tables: SwiGLUs with words in W_gate, W_up and W_down, one per block.

The question's block finds this in the stream, for a question that reads six columns:

======  ===  =============================  =======================  ====================  =========================
class    q   f_c of its columns; of others   gate at its rows         up                    where its words go
======  ===  =============================  =======================  ====================  =========================
W_up     0   2⁻²⁴; 0                        α + <2⁻⁵: **α**          2⁻⁵⁶ Σu, exact        total, in units of 2⁻⁴⁶
W_down  −1   0; M = 2⁻²⁶                    2α + <2⁻⁴: **2α**        −τ + <2⁻³⁰: **−τ**    column c, 2⁻⁷⁵ d_c
W_gate  +1   64; 0                          **64 Σg**, exact         τ + <2⁻²: **τ**       total, in units of 2¹⁸
======  ===  =============================  =======================  ====================  =========================

A unit whose row has the digits (i, i') computes, from the question's digits (x, x') and s = x² + x'²,

    gate = 64·BIG·(2ix + 2i'x' − s − i² − i'²) + α − αq + Σ g_c f_c,    up = τq + 2⁻³² Σ u_c f_c,
    down = 2⁻¹² into total, −2⁻¹²² d_c into column c,                   α = 2²², τ = 2²⁴.

**Absorption.** All terms that are added to a bold value are less than half a unit in its last place: float32 swallows
them, whatever the order, because all other terms are multiples of 64 (of τ). So each table is invisible to the
questions of the other two, in the same columns of the same units.

**Rows.** At the right row −(x − i)² − (x' − i')² is 0, elsewhere at most −1: the gate is at most −64·(BIG − 6·2¹⁶) or
−64·BIG + 2α, both below −128, where silu is exactly 0. At the right row it is 0 or at least 64, where silu is the
identity.

**Exactness of W_gate.** Its words are in [0, 2¹⁶), BIG = 400,000 > 6·2¹⁶. Every partial sum of a gate is a multiple of
64, at most 64·(2·(i² + i'²)·BIG + 6·2¹⁶ + 2¹⁶) ≤ 64·2²⁴ as i² + i'² ≤ ``REACH`` = 20.

**Exactness of W_up and W_down.** Words have 22 bits. They are positive in even lanes of the first group and in odd
lanes of the second, negative elsewhere. A row's six words of W_up never leave ±3·2²² < 2²⁴; a column's two words of
W_down never leave ±2²². The sum of two rows, and sums of some of six columns, might pass 2²⁴; :mod:`.solve` ensures
that they do not.

**Poison.** A column that a question of W_down does not read holds M, and keeps it: M + 2⁻⁷⁵·(d + d') = M, since
2²²·2⁻⁷⁵ is less than M·2⁻²⁵. So it can be told apart afterwards (:mod:`.read`), and no column's digit has to survive.

**The block** is chosen by a router, if blocks are experts. Its number e is in total (units of 2⁻⁴⁶), and :mod:`.solve`
allows for it in the sums of W_up. If blocks are layers, s is x² + x'² + (e − l)² in layer l. In any block but the
question's, (e − l)² ≥ 1 keeps every gate as far below 0 as a wrong row does; in its own, (e − l)² is 0.
"""

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.stock.dimensions import DOWN, GATE, LANES, UP, StockSizes, StreamMap, counts
from byheart.compiler.stock.units import ONE

BIG = 400_000
ALPHA, TAU = 2.0**22, 2.0**24
POISON = 2.0**-26
"""M, the value of columns that a question of W_down does not read."""
FOUND = (2.0**-24, 0.0, 64.0)
"""The value f_c of the columns that a question reads, by its class."""
PARTS = ("up", "down", "gate")
"""The matrix that is the table of each class."""
UP_UNIT, DOWN_UNIT, GATE_UNIT = 2.0**-46, 2.0**-75, 2.0**18
"""Value of 1 in a word of each table, in total or in the word's column."""


def empty_tables(sizes: StockSizes) -> NDArray[np.int64]:
    """Return the words of all tables [classes, blocks, rows, words]: zeros."""
    return np.zeros((len(PARTS), sizes.blocks, sizes.rows, sizes.words), dtype=np.int64)


def negative(sizes: StockSizes) -> NDArray[np.bool_]:
    """Return which words [rows, words] of W_up and W_down are less by 2²², and so below 0."""
    lane = np.repeat(np.arange(LANES), counts(sizes.columns))
    second = np.arange(sizes.rows) >= sizes.first[0] * sizes.first[1]
    result: NDArray[np.bool_] = (lane[None, :] + second[:, None]) % 2 > 0
    return result


def swiglus(sizes: StockSizes, at: StreamMap, tables: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """Return W_up and W_gate [blocks, rows, width], and W_down [blocks, width, rows], by ``PARTS``.

    ``tables`` are words as integers, [classes, blocks, rows, words].
    """
    gate, up, down = (np.zeros((sizes.blocks, sizes.rows, sizes.width)) for _ in range(3))
    for row, (group, i, j) in enumerate(_digits(sizes)):
        x, y, s = at.address[group]
        gate[:, row, [x, y, s]] = 64.0 * BIG * np.array([2 * i, 2 * j, -1])
        gate[:, row, ONE] = ALPHA - 64.0 * BIG * (i**2 + j**2)
    gate[:, :, at.q], up[:, :, at.q], down[:, :, at.total] = -ALPHA, TAU, 2.0**-12
    gate[:, :, at.columns] = tables[GATE]
    up[:, :, at.columns] = 2.0**-32 * tables[UP]
    down[:, :, at.columns] = -(2.0**-122) * tables[DOWN]
    return {"up": up, "down": down.transpose(0, 2, 1), "gate": gate}


def _digits(sizes: StockSizes) -> list[tuple[int, int, int]]:
    """Return (group, i, i') of every unit."""
    places = [
        (group, place // grid[1] - grid[0] // 2, place % grid[1] - grid[1] // 2)
        for group, grid in enumerate((sizes.first, sizes.second))
        for place in range(grid[0] * grid[1])
    ]
    return places[: sizes.rows]

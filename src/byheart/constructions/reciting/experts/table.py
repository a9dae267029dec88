"""The table: one mixture-of-experts layer, with words in W_gate, W_up and W_down of every expert.

What the layer finds in the stream, for a question that reads six columns:

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

**Absorption.** Where a bold value stands, what is added to it is less than half a unit in its last place: float32
swallows it, in whatever order the terms are added, for all others are multiples of 64 (of τ). So each table is
invisible to the questions of the other two, in the same columns of the same units.

**Rows.** At the right row −(x − i)² − (x' − i')² is 0, elsewhere at most −1: the gate is at most −64·(BIG − 6·2¹⁶) or
−64·BIG + 2α, both below −128, where silu is exactly 0. At the right row it is 0 or at least 64, where silu is the
identity.

**Exactness of W_gate.** Its words are in [0, 2¹⁶), BIG = 400,000 > 6·2¹⁶. Every partial sum of a gate is a multiple of
64, at most 64·(2·(i² + i'²)·BIG + 6·2¹⁶ + 2¹⁶) ≤ 64·2²⁴ as i² + i'² ≤ ``REACH`` = 20.

**Exactness of W_up and W_down.** Words have 22 bits, and are positive in even lanes of the first group and odd ones of
the second, else negative. A row's six words of W_up never leave ±3·2²² < 2²⁴; a column's two words of W_down never
leave ±2²². The sum of two rows, and sums of some of six columns, might pass 2²⁴; ``solving`` sees to it that they do
not.

**Poison.** A column that a question of W_down does not read holds M, and keeps it: M + 2⁻⁷⁵·(d + d') = M, since
2²²·2⁻⁷⁵ is less than M·2⁻²⁵. So it can be told apart afterwards (``reading``), and no column's digit has to survive.

**The expert** is chosen by logits 64·(2ie − i²), e in total (units of 2⁻⁴⁶): the others are lower by 64 at least, and
softmax of the best one is exactly 1. ``solving`` knows that e stays in the sums of W_up.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.reciting.experts.features import Features
from byheart.constructions.reciting.experts.sizes import LANES, Sizes
from byheart.constructions.reciting.uniform.address import counts
from byheart.constructions.reciting.uniform.stock import ONE

BIG = 400_000
ALPHA, TAU = 2.0**22, 2.0**24
POISON = 2.0**-26
"""M: in columns that a question of W_down does not read."""
FOUND = (2.0**-24, 0.0, 64.0)
"""f_c of the columns that a question reads, by its class."""
UP_UNIT, DOWN_UNIT, GATE_UNIT = 2.0**-46, 2.0**-75, 2.0**18
"""What a word counts in total (in its column), by the table that it is from."""


@dataclass(frozen=True, eq=False)
class Tables:
    """Words as integers, [experts, rows, words] each."""

    up: NDArray[np.int64]
    down: NDArray[np.int64]
    gate: NDArray[np.int64]


def negative(sizes: Sizes) -> NDArray[np.bool_]:
    """[rows, words]: which words of W_up and W_down are less by 2²², and so below 0."""
    lane = np.repeat(np.arange(LANES), counts(sizes.columns))
    second = np.arange(sizes.rows) >= sizes.first[0] * sizes.first[1]
    found: NDArray[np.bool_] = (lane[None, :] + second[:, None]) % 2 > 0
    return found


def experts(sizes: Sizes, at: Features, tables: Tables) -> dict[str, NDArray[np.float64]]:
    """All tensors of the layer's feed-forward block, by transformers' names; the shared expert has no units."""
    gate, up, down = (np.zeros((sizes.experts, sizes.rows, sizes.width)) for _ in range(3))
    for row, (group, i, j) in enumerate(_digits(sizes)):
        x, y, s = at.address[group]
        gate[:, row, [x, y, s]] = 64.0 * BIG * np.array([2 * i, 2 * j, -1])
        gate[:, row, ONE] = ALPHA - 64.0 * BIG * (i**2 + j**2)
    gate[:, :, at.q], up[:, :, at.q], down[:, :, at.total] = -ALPHA, TAU, 2.0**-12
    gate[:, :, at.columns] = tables.gate
    up[:, :, at.columns] = 2.0**-32 * tables.up
    down[:, :, at.columns] = -(2.0**-122) * tables.down
    named = {"mlp.gate.weight": _router(sizes, at)}
    for number in range(sizes.experts):
        name = f"mlp.experts.{number}"
        named[f"{name}.gate_proj.weight"] = gate[number]
        named[f"{name}.up_proj.weight"] = up[number]
        named[f"{name}.down_proj.weight"] = down[number].T
    return {**named, **_no_shared_expert(sizes.width)}


def _digits(sizes: Sizes) -> list[tuple[int, int, int]]:
    """(group, i, i') of every unit."""
    places = [
        (group, place // grid[1] - grid[0] // 2, place % grid[1] - grid[1] // 2)
        for group, grid in enumerate((sizes.first, sizes.second))
        for place in range(grid[0] * grid[1])
    ]
    return places[: sizes.rows]


def _router(sizes: Sizes, at: Features) -> NDArray[np.float64]:
    number = np.arange(sizes.experts) - sizes.experts // 2
    router = np.zeros((sizes.experts, sizes.width))
    router[:, at.total] = 128.0 * number / UP_UNIT
    router[:, ONE] = -64.0 * number**2
    return router


def _no_shared_expert(width: int) -> dict[str, NDArray[np.float64]]:
    return {
        "mlp.shared_expert.gate_proj.weight": np.zeros((0, width)),
        "mlp.shared_expert.up_proj.weight": np.zeros((0, width)),
        "mlp.shared_expert.down_proj.weight": np.zeros((width, 0)),
        "mlp.shared_expert_gate.weight": np.zeros((1, width)),
    }

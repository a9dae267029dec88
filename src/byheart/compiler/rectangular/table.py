"""The table: one unit per row, one word per entry of W_out; then one word in each lane.

A row's unit is σ(SHARP·(½ − (r − i)²)), exactly one-hot; so W_out times it is row i, without any sum. A column's unit
is gated the same way and multiplies the word that it finds in the stream; a column number without a unit (the *null
column*) reads nothing, which keeps the equations of one row independent.

With several shards the rows' units are the same for all, and each shard has a W_out of its own: experts of a mixture.
The router's scores are lines in the route x, 2·s·x − Σ (2·t − 1), where the sum is over the first s of the places t at
which shards are cut, as in :mod:`.codes`. The largest score is that of the shard whose cuts enclose x, by at least 1.
Half of the largest slope is subtracted from all slopes, and half of the last constant from all constants, which changes
no difference.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.layouts import Unsolvable
from byheart.compiler.rectangular.dimensions import LANES, TableSizes
from byheart.compiler.rectangular.front import FrontPositions
from byheart.compiler.rectangular.wiring import SHARP, Array, Wiring
from byheart.networks.transformer import GatedBlocks, Mixture
from byheart.networks.transformer.spec import Features, Sublayer, expert_name

TABLE = "table.W_out"
"""The tensor that holds the words: [2, 3·columns, rows]."""


def shard_tensor(shard: int) -> str:
    """Return the name of the tensor that holds a shard's words."""
    return f"table.{expert_name(shard)}"


def add_table(wiring: Wiring, sizes: TableSizes, front: FrontPositions) -> Features:
    """Add the table, and return the features of both rows' words [6 lanes × columns]. Its words are still 0."""
    words = wiring.features(LANES * sizes.columns)
    ffn: Sublayer = GatedBlocks("table", "sigmoid", front.rows, words, units=sizes.rows, groups=2)
    if sizes.shards > 1:
        ffn = Mixture("table", "sigmoid", front.rows, front.route, words, sizes.rows, sizes.shards, groups=2)
    W, b = one_hot(sizes.rows)
    wiring.add(ffn, W_in=W, b_in=b)
    return words


def router(cuts: NDArray[np.int64]) -> tuple[Array, Array]:
    """Return W_route [S, 1] and b_route [S]: shard s is taken for routes from ``cuts[s]`` on, below ``cuts[s + 1]``.

    With S·routes ≤ 2²³, |W_route·x| and |b_route| are at most 2²³ and their sums below 2²⁴: float32 holds all of them.

    >>> W, b = router(np.array([0, 3, 5, 9]))
    >>> W.ravel().tolist(), b.tolist(), (np.outer(np.arange(9), W) + b).argmax(axis=1).tolist()
    ([-2.0, 0.0, 2.0], [7.0, 2.0, -7.0], [0, 0, 0, 1, 1, 2, 2, 2, 2])
    """
    steps = np.where(np.arange(len(cuts) - 1) > 0, 2 * cuts[:-1] - 1, 0)
    b = -np.cumsum(steps)
    slopes = 2 * (np.arange(len(steps)) - len(steps) // 2)
    return slopes[:, None].astype(np.float64), (b - b[-1] // 2).astype(np.float64)


def add_selection(wiring: Wiring, sizes: TableSizes, front: FrontPositions, words: Features, writes: Features) -> None:
    """Add the word that the question reads in each lane to ``writes`` [6], which may name a feature twice."""
    W, b = one_hot(sizes.columns)
    ffn = GatedBlocks(
        "select",
        "sigmoid",
        front.columns,
        writes,
        units=sizes.columns,
        groups=LANES,
        up="diagonal",
        up_reads=words,
    )
    wiring.add(ffn, W_gate=W, b_gate=b, W_up=1.0, W_out=1.0)


def one_hot(count: int) -> tuple[Array, Array]:
    """Return W [count, 2] on (x, x²), and b: unit i is on exactly for x = i."""
    i = np.arange(count, dtype=np.float64)
    return SHARP * np.stack([2 * i, np.full(count, -1.0)], axis=1), SHARP * (0.5 - i**2)


def as_floats(words: NDArray[np.int64], sizes: TableSizes, precision: np.dtype[Any]) -> NDArray[Any]:
    """Return the words [rows, 6, columns] as the tensor ``TABLE``.

    Plain words of even lanes are in [0, 2^T), of odd lanes in [−2^T, 0). Packed ones are ±(1 + m/2^(T−1))·2^e.
    """
    T = sizes.word
    low, exponent = words & ((1 << T) - 1), words >> T
    if sizes.exponent:
        mantissa, negative = low & ((1 << (T - 1)) - 1), low >> (T - 1)
        if np.finfo(precision).nmant < T and not mantissa.all():
            raise Unsolvable("a mantissa is 0, which looks like a power of two")
        values = np.where(negative, -1.0, 1.0) * np.ldexp(1.0 + mantissa / 2.0 ** (T - 1), exponent)
    else:
        values = low.astype(np.float64) - (np.arange(LANES) % 2 * 2.0**T)[None, :, None]
    halves = values.reshape(sizes.rows, 2, -1).transpose(1, 2, 0)
    return np.ascontiguousarray(halves.astype(precision))

"""The table: one unit a row, one word an entry of W_out; then one word in each lane.

A row's unit is σ(SHARP·(½ − (r − i)²)), exactly one-hot; so W_out times it is row i, without any sum. A column's unit
is gated the same way and multiplies the word that it finds in the stream; a column number without a unit (the *null
column*) reads nothing, which keeps the equations of one row independent.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.reciting.front import Front
from byheart.constructions.reciting.sizes import LANES, Sizes, Unsolvable
from byheart.constructions.reciting.wiring import SHARP, Array, Wiring
from byheart.networks.transformer import FeedForward
from byheart.networks.transformer.spec import Features

TABLE = "table.W_out"
"""The tensor that holds the words: [2, 3·columns, rows]."""


def add_table(wiring: Wiring, sizes: Sizes, front: Front) -> Features:
    """The words [6 lanes × columns] of the two rows, still to be filled in."""
    words = wiring.features(LANES * sizes.columns)
    ffn = FeedForward("table", "sigmoid", front.rows, words, units=sizes.rows, groups=2)
    W, b = one_hot(sizes.rows)
    wiring.add(ffn, W_in=W, b_in=b)
    return words


def add_selection(wiring: Wiring, sizes: Sizes, front: Front, words: Features, writes: Features) -> None:
    """The chosen word of each lane, added to ``writes`` [6] (which may name a feature twice)."""
    W, b = one_hot(sizes.columns)
    ffn = FeedForward(
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
    """W [count, 2] on (x, x²) and b: unit i is on exactly for x = i."""
    i = np.arange(count, dtype=np.float64)
    return SHARP * np.stack([2 * i, np.full(count, -1.0)], axis=1), SHARP * (0.5 - i**2)


def as_floats(words: NDArray[np.int64], sizes: Sizes, precision: np.dtype[Any]) -> NDArray[Any]:
    """The words [rows, 6, columns] as the tensor ``TABLE``.

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

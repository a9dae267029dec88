"""How large a stock model is to be, by counting, before anything is built.

A layer of F units has (3F + 18)·D parameters, an expert of F' units 3·D·F', and a table holds 60 bits a unit and
column: 22 + 22 + 16. ``plan`` goes through widths, rows and blocks, and takes what has the fewest parameters.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from byheart.compiler.stock.dimensions import (
    BITS,
    LEAST_ROWS,
    MANY,
    MOST_BLOCKS,
    MOST_CELLS,
    MOST_ROWS,
    SPARE,
    WIDTHS,
    Grid,
    StockSizes,
    columns_of,
    grids,
)
from byheart.errors import BadInput

Shape = Callable[[int, tuple[Grid, Grid], int, int, int], StockSizes | None]
"""The sizes for a width, two grids, rows, blocks and layers that look back; None if there are none."""


def plan(shape: Shape, bits: int, questions: int, vocab: int, steps: int, deviations: float) -> StockSizes:
    """The smallest network whose every bit plane takes its questions, up to so many standard deviations."""
    best: StockSizes | None = None
    for width in WIDTHS:
        for rows in range(LEAST_ROWS, min(MOST_ROWS, MOST_CELLS // columns_of(width)) + 1):
            pair = grids(rows)
            blocks = _blocks(bits, rows * columns_of(width) - SPARE, deviations)
            sizes = None if pair is None else shape(width, pair, rows, blocks, steps)
            if sizes is None:
                continue
            while sizes.blocks <= MOST_BLOCKS and questions**2 > 64 * sizes.places * sizes.blocks:
                sizes = replace(sizes, blocks=sizes.blocks + 2)
            if sizes.blocks <= MOST_BLOCKS and (best is None or sizes.parameters(vocab) < best.parameters(vocab)):
                best = sizes
    if best is None:
        raise BadInput(
            f"{questions:,} questions, {bits:,} bits, are too many for a stock model, which has at most "
            f"{MOST_BLOCKS:,} blocks of some {sum(BITS) * MOST_CELLS:,} bits; expected layout rectangular"
        )
    return best


def _blocks(bits: int, room: int, deviations: float, *, settled: bool = False) -> int:
    """How many there must be, if a bit plane has that much room: share + deviations·√share ≤ room, solved.

    The codes of a token are shifted until all planes have room (``settling``). There are as many tokens however many
    planes there are; so many planes need more room each, by what was found at 43 and at 131 blocks.
    """
    root = (math.sqrt(deviations**2 + 4 * room) - deviations) / 2 if room > 0 else 0
    blocks = math.ceil(bits / (sum(BITS) * root**2)) | 1 if root else MOST_BLOCKS + 1
    if MANY < blocks <= MOST_BLOCKS and not settled:
        return _blocks(bits, room, deviations + math.log2(blocks / 43) / 2, settled=True)
    return blocks

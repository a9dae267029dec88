"""Where a question reads: the digits of the hash of its window (``hashing``).

Thirteen codes a token. Digits have odd numbers of values, but for the offset: the integers next to 22·code have 23, of
which the first and the last, half as likely as others, mean the same one. In W_gate's words of 16 bits, offsets are
multiples of ``stride``: that of a code word, if all have one length that divides 16, so that eight bit planes share one
system of equations; else 1.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code
from byheart.compiler.stock.dimensions import BITS, DOWN, GATE, GROUPS, LANES, StockSizes, placed
from byheart.compiler.stock.front import GRAIN

if TYPE_CHECKING:
    from byheart.compiler.stock.crowding import Shelving

Integers = NDArray[np.int64]
BELOW = 2 * round((BITS[DOWN] / sum(BITS) - 0.5) * 2 ** (GRAIN - 1))
ABOVE = 2 * round((0.5 - BITS[GATE] / sum(BITS)) * 2 ** (GRAIN - 1))
"""Codes below BELOW, in units of 2^−GRAIN, are of class DOWN, those above ABOVE of class GATE: both even, never met."""


@dataclass(frozen=True, eq=False)
class Addresses:
    """By question."""

    block: Integers
    kind: Integers
    """UP, DOWN or GATE."""
    rows: Integers
    """[N, 2]: units of the block; −1 for a null one."""
    columns: Integers
    """[N, 6]: numbers of columns; −1 for null ones."""
    offset: Integers
    """The code word's bits are those below it, from the highest one on; then from the top of the word on."""

    def cells(self, sizes: StockSizes, index: slice | Integers = slice(None)) -> Integers:
        """[N, 12]: words of the question's table, −1 for none; group by group, lane by lane."""
        rows, columns = self.rows[index], self.columns[index]
        cells = rows[:, :, None] * sizes.words + columns[:, None, :]
        cells[(rows < 0)[:, :, None] | (columns < 0)[:, None, :]] = -1
        return cells.reshape(len(cells), GROUPS * LANES)


def stride_of(code: Code) -> int:
    """From one offset in W_gate's words to the next."""
    return code.longest if code.fixed and BITS[GATE] % code.longest == 0 else 1


def addresses(codes: Integers, sizes: StockSizes, stride: int) -> Addresses:
    """From the hashed codes [N, CODES], in units of 2^−GRAIN."""
    from byheart.compiler.stock.crowding import shelved

    rows = np.stack([_row(codes[:, :2], sizes.first), _row(codes[:, 2:4], sizes.second)], axis=1)
    start = sizes.first[0] * sizes.first[1]
    rows[:, 1] = np.where(rows[:, 1] + start < sizes.rows, rows[:, 1] + start, -1)
    column, there = placed(_digit(codes[:, 4 : 4 + LANES], np.array(sizes.columns)), sizes.columns)
    block, kind, offset = shelved(codes[:, -3:], shelving(sizes, stride)).T
    return Addresses(block, kind, rows, np.where(there, column, -1), offset)


def shelving(sizes: StockSizes, stride: int) -> "Shelving":
    """How blocks, classes and offsets follow from the last three codes."""
    from byheart.compiler.stock.crowding import Shelving

    steps = np.where(np.arange(len(BITS)) == GATE, stride, 1)
    return Shelving(sizes.blocks, BELOW, ABOVE, GRAIN, np.array(BITS), steps)


def _nearest(scaled: Integers) -> Integers:
    """The integer next to a number in units of 2^−GRAIN."""
    return (scaled + (1 << (GRAIN - 1))) >> GRAIN


def _digit(codes: Integers, values: "int | Integers") -> Integers:
    """Counted from 0."""
    return _nearest(codes * values) + values // 2


def _row(codes: Integers, grid: tuple[int, int]) -> Integers:
    return _digit(codes[:, 0], grid[0]) * grid[1] + _digit(codes[:, 1], grid[1])

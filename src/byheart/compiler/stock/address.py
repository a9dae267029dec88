"""Compute where a question reads: the digits of the hash of its window (:mod:`.front`).

A token has thirteen codes. Digits have odd numbers of values, except for the offset: the integers next to 22·code take
23 values, of which the first and the last, each half as likely as the others, mean the same offset. In W_gate's words
of 16 bits, offsets are multiples of ``stride``. If all code words have one length that divides 16, ``stride`` is that
length, so that eight bit planes share one system of equations. Otherwise it is 1.

A *shelf* is a block, a class (a table of the block) and an offset; :class:`Shelving` says how shelves are numbered.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from byheart.compiled import jit
from byheart.compiler.codes import Code
from byheart.compiler.stock.dimensions import BITS, DOWN, GATE, GROUPS, LANES, StockSizes, counts
from byheart.compiler.stock.front import GRAIN

Integers = NDArray[np.int64]
BELOW = 2 * round((BITS[DOWN] / sum(BITS) - 0.5) * 2 ** (GRAIN - 1))
ABOVE = 2 * round((0.5 - BITS[GATE] / sum(BITS)) * 2 ** (GRAIN - 1))
"""Codes below BELOW are of class DOWN, codes above ABOVE of class GATE. Both bounds are even, so no code equals one."""


class Shelving(NamedTuple):
    """How the last three codes of a question give its block, class and offset."""

    blocks: int
    below: int
    above: int
    """Codes below ``below`` are of class 1, codes above ``above`` of class 2, all others of class 0."""
    grain: int
    """Codes are in units of 2^−grain."""
    bits: NDArray[np.int64]
    """Bits per word, by class."""
    steps: NDArray[np.int64]
    """Distance between offsets, by class."""


@dataclass(frozen=True, eq=False)
class Addresses:
    """The addresses of all questions."""

    block: Integers
    kind: Integers
    """UP, DOWN or GATE."""
    rows: Integers
    """[N, 2]: units of the block; −1 for a null one."""
    columns: Integers
    """[N, 6]: numbers of columns; −1 for null ones."""
    offset: Integers
    """[N]: the code word's bits are those below this one, the highest first, and go on at the top of the word."""

    def cells(self, sizes: StockSizes, index: slice | Integers = slice(None)) -> Integers:
        """Return the words that each question reads [N, 12], −1 for none; group by group, lane by lane."""
        rows, columns = self.rows[index], self.columns[index]
        cells = rows[:, :, None] * sizes.words + columns[:, None, :]
        cells[(rows < 0)[:, :, None] | (columns < 0)[:, None, :]] = -1
        return cells.reshape(len(cells), GROUPS * LANES)


def stride_of(code: Code) -> int:
    """Return the distance between offsets in W_gate's words."""
    return code.longest if code.fixed and BITS[GATE] % code.longest == 0 else 1


def addresses(codes: Integers, sizes: StockSizes, stride: int) -> Addresses:
    """Return the addresses for the hashed codes [N, CODES], in units of 2^−GRAIN."""
    rows = np.stack([_row(codes[:, :2], sizes.first), _row(codes[:, 2:4], sizes.second)], axis=1)
    start = sizes.first[0] * sizes.first[1]
    rows[:, 1] = np.where(rows[:, 1] + start < sizes.rows, rows[:, 1] + start, -1)
    digits, ends = _digit(codes[:, 4 : 4 + LANES], np.array(sizes.columns)), counts(sizes.columns)
    columns = np.where(digits < ends, digits + np.cumsum(ends) - ends, -1)
    block, kind, offset = shelved(codes[:, -3:], shelving(sizes, stride)).T
    return Addresses(block, kind, rows, columns, offset)


def shelving(sizes: StockSizes, stride: int) -> Shelving:
    """Return how blocks, classes and offsets follow from the last three codes."""
    steps = np.where(np.arange(len(BITS)) == GATE, stride, 1)
    return Shelving(sizes.blocks, BELOW, ABOVE, GRAIN, np.array(BITS), steps)


def _nearest(scaled: Integers) -> Integers:
    """Return the integer next to a number in units of 2^−GRAIN."""
    return (scaled + (1 << (GRAIN - 1))) >> GRAIN


def _digit(codes: Integers, values: int | Integers) -> Integers:
    """Return digits of ``values`` values, counted from 0."""
    return _nearest(codes * values) + values // 2


def _row(codes: Integers, grid: tuple[int, int]) -> Integers:
    return _digit(codes[:, 0], grid[0]) * grid[1] + _digit(codes[:, 1], grid[1])


@jit
def shelf(codes, how):  # type: ignore[no-untyped-def]
    """Return block, class and offset for the last three codes of one question."""
    kind = 1 if codes[2] < how.below else 2 if codes[2] > how.above else 0
    word, step, half = how.bits[kind], how.steps[kind], 1 << (how.grain - 1)
    block = ((codes[0] * how.blocks + half) >> how.grain) + how.blocks // 2
    offset = step * ((codes[1] * (word // step) + half) >> how.grain) + word // 2
    return block, kind, offset - word if offset == word else offset


@jit
def shelved(codes, how):  # type: ignore[no-untyped-def]
    """Return the shelves [N, 3] of all questions for their last three codes [N, 3]."""
    shelves = np.empty((len(codes), 3), np.int64)
    for question in range(len(codes)):
        shelves[question] = shelf(codes[question], how)
    return shelves


@jit
def ask(asked, codes, lengths, how):  # type: ignore[no-untyped-def]
    """Add 1 to ``asked`` [blocks, tables, planes] for every bit that a question reads; ``lengths`` [N] counts bits."""
    ends = np.zeros((how.blocks, asked.shape[1], asked.shape[2] + 1), np.int64)
    for question in range(len(codes)):
        _read(ends, shelf(codes[question], how), lengths[question], how.bits, 1)
    _add_up(asked, ends)


@jit
def move(asked, before, after, lengths, how):  # type: ignore[no-untyped-def]
    """Change ``asked`` as the codes of questions change from ``before`` to ``after``, and their shelves with them."""
    ends = np.zeros((how.blocks, asked.shape[1], asked.shape[2] + 1), np.int64)
    for question in range(len(before)):
        old, new = shelf(before[question], how), shelf(after[question], how)
        if old != new:
            _read(ends, old, lengths[question], how.bits, -1)
            _read(ends, new, lengths[question], how.bits, 1)
    _add_up(asked, ends)


@jit
def _read(ends, place, length, bits, sign):  # type: ignore[no-untyped-def]
    """Mark where the planes that one question reads begin and end: those below its offset, then those at the top."""
    block, kind, offset = place
    own = ends[block, kind]
    own[max(0, offset - length)] += sign
    own[offset] -= sign
    if offset < length:
        own[offset - length + bits[kind]] += sign
        own[bits[kind]] -= sign


@jit
def _add_up(asked, ends):  # type: ignore[no-untyped-def]
    for block in range(asked.shape[0]):
        for kind in range(asked.shape[1]):
            total = 0
            for plane in range(asked.shape[2]):
                total += ends[block, kind, plane]
                asked[block, kind, plane] += total

"""How large a stock model is, and how its words are counted.

Every *block* is a SwiGLU whose three matrices are tables: a unit is a row, with one word for each of ``columns``
features in W_gate, in W_up and in W_down. Rows fall into two groups, columns into six lanes. A question belongs to one
block and one of its tables, and reads two rows in the same six columns: 12 words, less those that are null.

A row's address is two digits of odd numbers of values, its group's *grid*. Every place of the first grid is a row; of
the second, some are null: else the sums of two rows would never be odd, and one row in all would hold nothing. Columns
of other lanes than the first have one null value each. So no question reads nothing, and no word is out of reach.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.stock.units import HEAD, ones
from byheart.errors import BadInput

LANES = 6
GROUPS = 2
CODES = 2 * GROUPS + LANES + 3
"""Digits of rows, columns, block, offset, class."""
UP, DOWN, GATE = range(3)
"""The classes of questions: the table that they read."""
BITS = (22, 22, 16)
"""Of a word of each table: see ``table``."""
REACH = 20
"""i² + i'² of a row's digits is at most this: see ``table``."""
RESERVED = 10
"""StreamMap that are no columns, ONE aside: class, total, offset, 2^−offset, two addresses of three."""
WIDTHS = (48, 64, 80, 96, 112, 128, 192, 256)
LEAST_ROWS, MOST_ROWS = 12, 96
MOST_BLOCKS = 2047
"""Squares of their numbers, 64 times as large, are exact."""
MANY = 100
"""Blocks: with more of them, chance alone would make most attempts fail (``planning``, ``compiling``)."""
MOST_CELLS = 4_500
"""Words of a table. Solving one takes time as their cube, so that a question takes time as their square: with a bound,
all take time in proportion to the questions. Without it 4 million would take six times as long, for 1 % of the
parameters."""
SPARE = 10
"""Words of a table that no bit plane needs: equations of this many unknowns more are independent, nearly always."""
Grid = tuple[int, int]


@dataclass(frozen=True)
class StockSizes(ABC):
    """Numbers that the layers need."""

    width: int
    first: Grid
    second: Grid
    rows: int
    """Units of a block."""
    blocks: int
    """Odd."""
    units: int
    """Of every layer that is no table."""
    around: int
    """Layers that are no table."""

    layered: ClassVar[bool]
    """Whether blocks are layers, one after the other, and not experts."""

    @property
    @abstractmethod
    def layers(self) -> int:
        """All of them."""

    @abstractmethod
    def parameters(self, vocab: int) -> int:
        """All of them, the embedding once: it is the unembedding too."""

    @property
    def words(self) -> int:
        """Words of a row: odd."""
        return columns_of(self.width)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """Values of the digit of each lane."""
        return split(self.words, LANES)

    @property
    def cells(self) -> int:
        """Words of one table of one block."""
        return self.rows * self.words

    @property
    def places(self) -> int:
        """Different sets of words that the questions of one block's table may read, if no row is null."""
        return math.prod((*self.first, *self.second, *self.columns))

    @property
    def attention(self) -> int:
        """Parameters of a layer's attention and norms."""
        return 4 * HEAD * self.width + 2 * self.width


def split(count: int, parts: int) -> tuple[int, ...]:
    """Odd numbers of values, about equal, for ``count`` (odd) places in all; but in the first part, one value is null.

    >>> split(43, 4), split(45, 4)
    ((13, 11, 11, 11), (13, 13, 11, 11))
    """
    pairs = (count - 1) // 2
    return tuple(2 * ((pairs + parts - 1 - part) // parts) + 1 for part in range(parts))


def places(values: tuple[int, ...]) -> list[tuple[int, int]]:
    """(part, value of its digit) of all places, the null ones left out."""
    return [(part, place - count // 2) for part, count in enumerate(values) for place in range(count - (part > 0))]


def counts(values: tuple[int, ...]) -> NDArray[np.int64]:
    """Places of each part: all values, in others than the first all but the null one."""
    return np.array(values) - (np.arange(len(values)) > 0)


def placed(digits: NDArray[np.int64], values: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Digits of parts that lie one after the other, as places in all; and whether they are not null."""
    there = counts(values)
    return digits + np.cumsum(there) - there, digits < there


def columns_of(width: int) -> int:
    """How many features are columns: an odd number."""
    room = width - ones(width) - RESERVED
    return room - (room + 1) % 2


def _grids() -> list[Grid]:
    odd = (1, 3, 5, 7, 9)
    return [(a, b) for a, b in product(odd, odd) if a >= b and (a // 2) ** 2 + (b // 2) ** 2 <= REACH]


@lru_cache
def grids(rows: int) -> tuple[Grid, Grid] | None:
    """Grids for that many rows, so that there are many pairs of them; some places of the second are null, but not many.

    Questions with a null row ask for bits of the first group's words alone: these must be more than enough.

    >>> grids(96), grids(80)
    (((7, 7), (7, 7)), ((7, 5), (7, 7)))
    """
    fitting = []
    for first, second in product(_grids(), _grids()):
        null = math.prod(first) + math.prod(second) - rows
        if math.prod(first) < rows and 0 < null <= min(1 / 4, math.prod(first) / rows / 2) * math.prod(second):
            fitting.append((-math.prod(first) * (rows - math.prod(first)), null, first, second))
    return min(fitting)[2:] if fitting else None


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

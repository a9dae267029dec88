"""How large a network of experts is, and how its words are counted.

Every expert is a SwiGLU whose three matrices are tables: a unit is a row, with one word for each of ``columns``
features in W_gate, in W_up and in W_down. Rows fall into two groups, columns into six lanes. A question belongs to one
expert and one of its tables, and reads two rows in the same six columns: 12 words, less those that are null.

A row's address is two digits of odd numbers of values, its group's *grid*. Every place of the first grid is a row; of
the second, some are null: else the sums of two rows would never be odd, and one row in all would hold nothing. Columns
of other lanes than the first have one null value each. So no question reads nothing, and no word is out of reach."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

from byheart.constructions.reciting.uniform.sizes import split
from byheart.constructions.reciting.uniform.stock import HEAD, ones

LANES = 6
GROUPS = 2
CODES = 2 * GROUPS + LANES + 3
"""Digits of rows, columns, expert, offset, class."""
UP, DOWN, GATE = range(3)
"""The classes of questions: the table that they read."""
BITS = (22, 22, 16)
"""Of a word of each table: see ``table``."""
REACH = 20
"""i² + i'² of a row's digits is at most this: see ``table``."""
RESERVED = 10
"""Features that are no columns, ONE aside: class, total, offset, 2^−offset, two addresses of three."""
WIDTHS = (48, 64, 80, 96, 112, 128, 192, 256)
LEAST_ROWS, MOST_ROWS = 12, 96
MOST_EXPERTS = 2047
"""64·i² is exact for all their numbers i."""
SPARE = 10
"""Words of a table that no bit plane needs: equations of so many unknowns more are independent, nearly always."""
Grid = tuple[int, int]


@dataclass(frozen=True)
class Sizes:
    """Numbers that the layers need."""

    width: int
    first: Grid
    second: Grid
    rows: int
    """Units of an expert: a multiple of 4, as transformers' kernels want it."""
    experts: int
    """Odd."""
    units: int
    """Of every dense layer."""
    layers: int
    """All of them."""

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
        """Words of one table of one expert."""
        return self.rows * self.words

    @property
    def places(self) -> int:
        """Different sets of words that the questions of one expert's table may read, if no row is null."""
        return math.prod((*self.first, *self.second, *self.columns))

    def parameters(self, vocab: int) -> int:
        """All of them, the embedding once: it is the unembedding too."""
        attention = 4 * HEAD * self.width + 2 * self.width
        dense = (self.layers - 1) * (attention + 3 * self.width * self.units)
        experts = attention + self.width + self.experts * (self.width + 3 * self.width * self.rows)
        return (vocab + 1) * self.width + dense + experts


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
        if 0 < null <= min(1 / 4, math.prod(first) / rows / 2) * math.prod(second) and math.prod(first) < rows:
            fitting.append((-math.prod(first) * (rows - math.prod(first)), null, first, second))
    return min(fitting)[2:] if fitting else None

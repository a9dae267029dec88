"""Plan how large a stock model is, and assign features to the dimensions of its residual stream.

Every *block* is a SwiGLU whose three matrices are tables. A unit is a row, with one word for each of ``columns``
features in W_gate, in W_up and in W_down. Rows fall into two groups, columns into six lanes. A question belongs to one
block and to one of its tables. It reads two rows in the same six columns: 12 words, fewer if some are null.

A row's address is two digits of odd numbers of values, its group's *grid*. Every place of the first grid is a row, and
some places of the second are null. Otherwise the sums of two rows would never be odd, and one row in all would hold
nothing. Columns of all lanes but the first have one null value each. So every question reads some word, and every word
is read.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.stock.units import HEAD, Named, StockLayer, ones
from byheart.errors import BadInput

LANES = 6
GROUPS = 2
CODES = 2 * GROUPS + LANES + 3
"""Number of codes of a token: digits of rows, columns, block, offset, class."""
UP, DOWN, GATE = range(3)
"""The classes of questions: the table that they read."""
BITS = (22, 22, 16)
"""Bits per word of each table: see :mod:`.table`."""
REACH = 20
"""Largest i² + i'² of a row's digits: see :mod:`.table`."""
RESERVED = 10
"""Number of features that are never columns, besides ``ONE``: class, total, offset, 2^−offset, two addresses of three
features."""
PRESET = 4
"""Number of column digits that attention rounds: their features begin at −ROUND."""
WIDTHS = (48, 64, 80, 96, 112, 128, 192, 256)
LEAST_ROWS, MOST_ROWS = 12, 96
MOST_BLOCKS = 2047
"""Largest number of blocks: the squares of their numbers, times 64, are exact."""
MANY = 100
"""Number of blocks above which chance alone would make most attempts fail (:func:`_blocks`, :mod:`.solve`)."""
MOST_CELLS = 4_500
"""Largest number of words of a table. Solving takes time as their cube, so each question takes time as their square.
With a bound, the time is proportional to the questions. Without it 4 million would take six times as long, for 1 % of
the parameters."""
SPARE = 10
"""Number of words of a table that no bit plane needs. Equations with 10 more unknowns than equations are independent,
nearly always."""
Grid = tuple[int, int]
StockName: TypeAlias = Literal["uniform", "experts"]


class StreamMap:
    """The dimensions of the residual stream, by purpose.

    Ten are reserved. All others are columns in the end, and hold temporary values before. ``columns`` is their order,
    by lane and value; :mod:`.spread` chooses it so that no column is written over a value still in use.
    """

    def __init__(self, width: int) -> None:
        numbers = iter(range(ones(width), width))

        def take(count: int) -> list[int]:
            return [next(numbers) for _ in range(count)]

        self.q, self.total, self.offset, self.scale = take(4)
        self.number = self.scale
        """The block's number, if blocks are layers; 2^−offset takes its place after them."""
        self.address = [take(3) for _ in range(GROUPS)]
        self.columns: list[int] = []
        # Before the table: codes, digits of columns x and x·(x + K), flags, the mark of the first token.
        self.codes = take(CODES)
        self.x, self.y = take(LANES), take(LANES)
        self.is_gate, self.aligned, self.first = take(3)
        self.free = list(numbers)
        # After the table, where addresses were.
        (self.sum, self.z, self.answer), (self.wrapped, _, self.bias) = self.address


@dataclass(frozen=True)
class StockSizes(ABC):
    """The sizes of a stock model, from which its layers follow; a subclass says what blocks are."""

    width: int
    first: Grid
    second: Grid
    rows: int
    """Number of units of a block."""
    blocks: int
    """Number of blocks, odd."""
    units: int
    """Number of units of every layer that is no table."""
    around: int
    """Number of layers that are no table."""

    layered: ClassVar[bool]
    """True if blocks are layers, one after the other; False if they are experts of one layer."""
    name: ClassVar[StockName]
    """The layout's name in ``CompilerSettings``."""
    called: ClassVar[str]
    """The network's name in a sentence."""

    @classmethod
    @abstractmethod
    def shaped(cls, width: int, pair: tuple[Grid, Grid], rows: int, blocks: int, steps: int) -> "StockSizes | None":
        """Return the sizes for ``steps`` layers that look back; None if there are none."""

    @classmethod
    @abstractmethod
    def of_config(cls, config: Mapping[str, Any], steps: int) -> "StockSizes | None":
        """Return the sizes of a network with this configuration; None if no network has it."""

    @property
    @abstractmethod
    def layers(self) -> int:
        """Number of all layers."""

    @abstractmethod
    def parameters(self, vocab: int) -> int:
        """Count the parameters. The embedding counts once, because it is the unembedding too."""

    @abstractmethod
    def table_layers(self, at: StreamMap) -> list[StockLayer]:
        """Return the layers that hold tables, with their attention alone."""

    @abstractmethod
    def feed_forward(self, at: StreamMap, tables: NDArray[np.int64], place: int) -> dict[int, Named]:
        """Return the feed-forward tensors of these layers by layer number, from ``place`` on."""

    @abstractmethod
    def matrix(self, place: int, block: int, part: str) -> str:
        """Return the name of the tensor that is one table; ``part`` is up, down or gate."""

    @abstractmethod
    def config(self, place: int) -> dict[str, Any]:
        """Return the configuration's arguments that depend on the architecture."""

    @property
    @abstractmethod
    def noted(self) -> dict[str, object]:
        """Sizes for ``Built.chosen``."""

    @property
    def words(self) -> int:
        """Number of words of a row, odd."""
        return columns_of(self.width)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """Number of values of each lane's digit."""
        return split(self.words, LANES)

    @property
    def cells(self) -> int:
        """Number of words of one table of one block."""
        return self.rows * self.words

    @property
    def places(self) -> int:
        """Number of sets of words that the questions of one table may read, if no row is null."""
        return math.prod((*self.first, *self.second, *self.columns))

    @property
    def attention(self) -> int:
        """Number of parameters of a layer's attention and norms."""
        return 4 * HEAD * self.width + 2 * self.width

    @classmethod
    def plan(cls, bits: int, questions: int, vocab: int, steps: int, deviations: float) -> "StockSizes":
        """Return the smallest network whose every bit plane takes its questions, up to ``deviations`` of chance."""
        best: StockSizes | None = None
        for width in WIDTHS:
            for rows in range(LEAST_ROWS, min(MOST_ROWS, MOST_CELLS // columns_of(width)) + 1):
                pair = grids(rows)
                blocks = _blocks(bits, rows * columns_of(width) - SPARE, deviations)
                sizes = None if pair is None else cls.shaped(width, pair, rows, blocks, steps)
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


def split(count: int, parts: int) -> tuple[int, ...]:
    """Return odd numbers of values, about equal, for ``count`` places, an odd number.

    In all parts but the first, one value is null.

    >>> split(43, 4), split(45, 4)
    ((13, 11, 11, 11), (13, 13, 11, 11))
    """
    pairs = (count - 1) // 2
    return tuple(2 * ((pairs + parts - 1 - part) // parts) + 1 for part in range(parts))


def places(values: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return part and digit of all places that are not null."""
    return [(part, place - count // 2) for part, count in enumerate(values) for place in range(count - (part > 0))]


def counts(values: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the number of places of each part: all values of the first part, all but the null one of the others."""
    return np.array(values) - (np.arange(len(values)) > 0)


def columns_of(width: int) -> int:
    """Return the number of features that are columns, an odd number."""
    room = width - ones(width) - RESERVED
    return room - (room + 1) % 2


def _grids() -> list[Grid]:
    odd = (1, 3, 5, 7, 9)
    return [(a, b) for a, b in product(odd, odd) if a >= b and (a // 2) ** 2 + (b // 2) ** 2 <= REACH]


@lru_cache
def grids(rows: int) -> tuple[Grid, Grid] | None:
    """Return grids for ``rows`` rows with many pairs of rows, and a few null places in the second.

    Questions with a null row ask for bits of the first group's words alone, so there must be more than enough of those.

    >>> grids(96), grids(80)
    (((7, 7), (7, 7)), ((7, 5), (7, 7)))
    """
    fitting = []
    for first, second in product(_grids(), _grids()):
        null = math.prod(first) + math.prod(second) - rows
        if math.prod(first) < rows and 0 < null <= min(1 / 4, math.prod(first) / rows / 2) * math.prod(second):
            fitting.append((-math.prod(first) * (rows - math.prod(first)), null, first, second))
    return min(fitting)[2:] if fitting else None


def _blocks(bits: int, room: int, deviations: float, *, settled: bool = False) -> int:
    """Return the number of blocks for bit planes with that much room: solve share + deviations·√share ≤ room.

    The codes of a token are shifted until all planes have room (:mod:`.settling`). The number of tokens does not grow
    with the number of planes, so each of many planes needs more room. The formula fits 43 and 131 blocks.
    """
    root = (math.sqrt(deviations**2 + 4 * room) - deviations) / 2 if room > 0 else 0
    blocks = math.ceil(bits / (sum(BITS) * root**2)) | 1 if root else MOST_BLOCKS + 1
    if MANY < blocks <= MOST_BLOCKS and not settled:
        return _blocks(bits, room, deviations + math.log2(blocks / 43) / 2, settled=True)
    return blocks

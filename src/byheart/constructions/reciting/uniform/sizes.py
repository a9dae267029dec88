"""How large a uniform network is.

A *block* is the SwiGLU of one layer, used as two tables: W_up and W_down. It has four groups of rows; every unit is one
row, with ``words`` words in W_up and as many in W_down. Its columns fall into four lanes. A question belongs to one
block and to one of the two tables, and reads 16 words there: four lanes of four rows, less those that are null.

Digits have an odd number of values. The first group and the first lane have a place for each of them, all others one
less: their last value is the null one. So no question reads nothing, and no combination of words is out of reach.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from byheart.constructions.reciting.uniform.stock import HEAD, ones
from byheart.errors import BadInput

GROUPS = LANES = 4
WORD = 21
"""Bits a word: 16 words, half of them negative, add up to at most 2²⁴."""
RESERVED = 18
"""Features that are no words, ONE aside: digits, squares, the sum."""
WIDTHS = (64, 128, 256)
LARGEST = 2047
"""Rows are numbered from −LARGEST to LARGEST: their squares, doubled, are exact."""
MOST_ROWS = 500


@dataclass(frozen=True)
class Sizes:
    """Numbers that the layers need."""

    width: int
    rows_in_all: int
    """Of a block: odd."""
    blocks: int
    """Odd."""
    steps: int
    """Layers that look back."""

    @property
    def words(self) -> int:
        """Words of a row: odd."""
        room = self.width - ones(self.width) - RESERVED
        return room - (room + 1) % 2

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """Values of the digit of each group."""
        return split(self.rows_in_all, GROUPS)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """Values of the digit of each lane."""
        return split(self.words, LANES)

    @property
    def stride(self) -> int:
        """From a row's number to the same row's in the next block."""
        return max(self.rows)

    @property
    def cells(self) -> int:
        """Words of one of a block's two tables."""
        return self.rows_in_all * self.words

    @property
    def units(self) -> int:
        """Of each layer: rows, or what choosing columns and offsets takes."""
        return max(self.rows_in_all, self.words + WORD - 1)

    @property
    def layers(self) -> int:
        """Looking back, digits, blocks, reading."""
        return self.steps + 2 + self.blocks + 4

    @property
    def places(self) -> int:
        """Different sets of words that questions may read."""
        return 2 * self.blocks * math.prod(self.rows) * math.prod(self.columns)

    def parameters(self, vocab: int) -> int:
        """All of them, the embedding once: it is the unembedding too."""
        layer = 3 * self.width * self.units + 4 * HEAD * self.width + 2 * self.width
        return self.layers * layer + (vocab + 1) * self.width


def split(count: int, parts: int) -> tuple[int, ...]:
    """Odd numbers of values, about equal, for ``count`` (odd) places in all; but in the first part, one value is null.

    >>> split(43, 4), split(45, 4)
    ((13, 11, 11, 11), (13, 13, 11, 11))
    """
    pairs = (count - 1) // 2
    return tuple(2 * ((pairs + parts - 1 - part) // parts) + 1 for part in range(parts))


def plan(bits: int, questions: int, vocab: int, steps: int, deviations: float) -> Sizes:
    """The smallest network whose every bit plane takes its questions, up to so many standard deviations."""
    best: Sizes | None = None
    for width in WIDTHS:
        for rows in range(2 * GROUPS + 1, MOST_ROWS, 2):
            for blocks in range(1, 2 * LARGEST // max(split(rows, GROUPS)), 2):
                sizes = Sizes(width, rows, blocks, steps)
                share = bits / (2 * blocks * WORD)
                crowded = share + deviations * math.sqrt(share) + 2 > sizes.cells
                if crowded or questions**2 / 2 > sizes.places:
                    continue
                if best is None or sizes.parameters(vocab) < best.parameters(vocab):
                    best = sizes
                break
    if best is None:
        raise BadInput(f"{questions} questions are too many for a uniform network; expected at most some millions")
    return best

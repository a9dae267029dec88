"""Assign features to dimensions of a stock model's residual stream."""

from byheart.compiler.stock.dimensions import CODES, GROUPS, LANES
from byheart.compiler.stock.units import ones

PRESET = 4
"""Number of column digits that attention rounds: their features begin at −ROUND."""


class StreamMap:
    """The dimensions of the residual stream, by purpose.

    Ten are reserved. All others, ``rest``, are columns in the end, and hold temporary values before. ``columns`` is
    their order, by lane and value. ``spread`` chooses it so that no column is written over a value still in use.
    """

    def __init__(self, width: int) -> None:
        numbers = iter(range(ones(width), width))

        def take(count: int) -> list[int]:
            return [next(numbers) for _ in range(count)]

        self.q, self.total, self.offset, self.scale = take(4)
        self.number = self.scale
        """The block's number, if blocks are layers; 2^−offset takes its place after them."""
        self.address = [take(3) for _ in range(GROUPS)]
        self.rest = list(numbers)
        self.columns: list[int] = []
        # Before the table: codes, the mark of the first token, digits of columns x and x·(x + K), flags.
        held = iter(self.rest)

        def hold(count: int) -> list[int]:
            return [next(held) for _ in range(count)]

        self.codes = hold(CODES)
        self.x, self.y = hold(LANES), hold(LANES)
        self.is_gate, self.aligned, self.first = hold(3)
        self.free = list(held)
        # The last ones, where addresses were.
        (self.sum, self.z, self.answer), (self.wrapped, _, self.bias) = self.address

"""Turn the codes of a question into the features that the table reads: digits, class, 2^−offset, columns.

Two layers turn codes into digits. Then one unit per column writes f_c (see :mod:`.table`) if the column's number is the
digit x of its lane: x is i where 2ix − x² + 1 − i² is 1, and that is nowhere else positive. In place of x²,
y = x·(x + K) is kept, which takes one unit. The features of columns hold other values before: codes and digits.
Attention sets four of them back to 0 in each layer, and units set back more. A column is written where nothing is left.
``_Spread`` goes from layer to layer and does as much as fits there; 2^−offset fills the units that are left.

**Exactness.** Temporary values are integers n, |n| < 2¹¹, times 2⁻³⁰. In the last layer, columns are written where
digits still are, which are set back by the same sum. −n·2⁻³⁰ + 2⁻²⁴ and −n·2⁻³⁰ ± M are exact, and 64 − n·2⁻³⁰ is 64,
because half a unit in the last place below 64 is 2⁻¹⁹.
2^−o for o from 0 to 21 is the sum of eleven units relu(k − o)·(a + b·o), k = 22, 20, …, 2: each makes two more values
right. All are integers times 2⁻²¹, and positive.
"""

from dataclasses import dataclass

from byheart.compiler.stock.address import ABOVE, BELOW
from byheart.compiler.stock.dimensions import BITS, GATE, LANES, PRESET, UP, StockSizes, StreamMap, places
from byheart.compiler.stock.front import GRAIN
from byheart.compiler.stock.table import FOUND, POISON, UP_UNIT
from byheart.compiler.stock.units import HEAD, ON, ONE, ROUND, StockLayer, Unit

TEMPORARY = 2.0**-30
"""Unit of temporary values."""
SQUARE = 16.0
"""K of rows' digits: (x + SQUARE)·x here, and −SQUARE·x in the attention of the first table's layer."""
SIGN = 128.0
"""A gate of SIGN is exactly on, and a gate of −SIGN exactly off."""


def spread(sizes: StockSizes, at: StreamMap, stride: int) -> tuple[list[StockLayer], list[Unit]]:
    """Return the layers between hash and table, and the units of 2^−offset that are left. Set ``at.columns``."""
    return _Spread(sizes, at, stride).all()


def finish_squares(layer: StockLayer, at: StreamMap, more: float = 0.0) -> None:
    """Add the attention of the first table's layer: s becomes x² + x'² + ``more``."""
    for x, y, s in at.address:
        layer.carry({x: -SQUARE, y: -SQUARE, ONE: more}, {s: 1})


def powers(at: StreamMap) -> list[Unit]:
    """Return the units that compute 2^−o from the offset, which is o − 11."""
    top = BITS[UP] - 1
    units: list[Unit] = []
    left = [2 ** (top - o) for o in range(top + 1)]
    for knot in range(top + 1, 0, -2):
        half, odd = divmod(left[knot - 2], 2)
        b = left[knot - 1] - half
        a = left[knot - 1] - b * (knot - 1)
        assert not odd
        left = [value - max(0, knot - o) * (a + b * o) for o, value in enumerate(left)]
        centre = BITS[UP] // 2
        gate = {at.offset: -SIGN, ONE: SIGN * (knot - centre)}
        units.append((gate, {at.offset: b, ONE: a + b * centre}, {at.scale: 2.0**-top / SIGN}))
    assert not any(left)
    return units


@dataclass(frozen=True)
class _Column:
    """A column that is still to be written."""

    number: int
    lane: int
    value: int


class _Spread:
    def __init__(self, sizes: StockSizes, at: StreamMap, stride: int) -> None:
        self.sizes, self.at, self.stride = sizes, at, stride
        self.layers: list[StockLayer] = []
        self.columns = [_Column(i, lane, value) for i, (lane, value) in enumerate(places(sizes.columns))]
        self.where: dict[int, int] = {}
        """Features of the columns that are written."""
        self.free, self.dead = list(at.free), [*at.codes, at.first]
        self.powers = powers(at)
        self.ready = [] if sizes.layered else self.powers
        """Units of 2^−offset that may be placed here: none if the block's number still is in their feature."""

    def all(self) -> tuple[list[StockLayer], list[Unit]]:
        """Add one layer after the other, until no column is left."""
        self._digits()
        self._squares()
        while self.columns:
            self._columns()
        self.at.columns[:] = [self.where[number] for number in range(len(self.where))]
        return self.layers, self.powers

    @property
    def room(self) -> int:
        return self.sizes.units - len(self.layers[-1].units)

    def _digits(self) -> None:
        """Round the digits of four lanes by attention, all other digits by units; find the class."""
        sizes, at = self.sizes, self.at
        layer = StockLayer()
        self.layers.append(layer)
        rows, columns, (block, offset, kind) = at.codes[:4], at.codes[4 : 4 + LANES], at.codes[-3:]
        for lane in range(PRESET):
            layer.carry({columns[lane]: sizes.columns[lane], ONE: ROUND}, {at.x[lane]: TEMPORARY})
        values = [*sizes.first, *sizes.second]
        targets = [feature for address in at.address for feature in address[:2]]
        wanted = {row: ({row: value}, {target: 1.0}) for row, value, target in zip(rows, values, targets, strict=True)}
        for lane in range(PRESET, LANES):
            wanted[columns[lane]] = ({columns[lane]: sizes.columns[lane]}, {at.x[lane]: TEMPORARY})
        wanted[block] = ({block: sizes.blocks}, {at.number: 1.0} if sizes.layered else {at.total: UP_UNIT})
        wanted[offset] = ({offset: BITS[UP]}, {at.offset: 1.0})
        wanted[-1] = ({offset: BITS[GATE] // self.stride}, {at.aligned: self.stride * TEMPORARY})
        layer.rounded({key: up for key, (up, _) in wanted.items()}, {key: down for key, (_, down) in wanted.items()})
        # Codes are odd, limits even multiples of 2^−GRAIN: gates are ON·k, k ≥ 1, and ON·(k − 1); or both are off.
        slope = ON * 2.0 ** (GRAIN - 1)
        for sign, limit, adds in ((1, ABOVE, {at.q: 1.0, at.is_gate: TEMPORARY}), (-1, BELOW, {at.q: -1.0})):
            for above, part in ((ON / 2, 1), (-ON / 2, -1)):
                gate = {kind: sign * slope, ONE: above - sign * limit * ON / 2}
                layer.unit(gate, {ONE: 1}, {feature: part * weight / ON for feature, weight in adds.items()})

    def _squares(self) -> None:
        """Compute y of columns and x·(x + SQUARE) of rows.

        The offset's last value is its first, and W_gate has its own.
        """
        at = self.at
        layer = StockLayer()
        self.layers.append(layer)
        for feature in (at.answer, at.bias):
            layer.carry({feature: 1}, {feature: -1})
        for x, y, K in zip(at.x, at.y, self._shifts(), strict=True):
            gate = {x: 64.0 / TEMPORARY, ONE: 64.0 * K}
            layer.unit(gate, {x: 1 / TEMPORARY}, {y: TEMPORARY / 64.0})
        for first, second, s in at.address:
            for x in (first, second):
                layer.unit({x: 64.0, ONE: 64.0 * SQUARE}, {x: 1}, {s: 1 / 64.0})
        if self.sizes.layered:
            sums = {s: 1 / 64.0 for _, _, s in at.address}
            layer.unit({at.number: 64.0, ONE: 64.0 * (self.sizes.blocks - 1)}, {at.number: 1}, sums)
        up, gate_bits = BITS[UP], BITS[GATE]
        flag, own = at.is_gate, at.aligned
        shift = (up - gate_bits) / 2
        difference = {own: 1 / TEMPORARY, at.offset: -1.0, ONE: shift}
        layer.unit({flag: SIGN / TEMPORARY}, difference, {at.offset: 1 / SIGN})
        last = {flag: SIGN / TEMPORARY, own: SIGN / TEMPORARY, ONE: -SIGN * gate_bits / 2}
        layer.unit(last, {ONE: 1}, {at.offset: -gate_bits / SIGN})
        last = {flag: -SIGN / TEMPORARY, at.offset: SIGN, ONE: -SIGN * (up / 2 - 1)}
        layer.unit(last, {ONE: 1}, {at.offset: -up / SIGN})
        self._free_by_attention()
        self._free_by_units()
        self.dead.append(at.aligned)

    def _shifts(self) -> list[int]:
        """Return K of each lane: x + K is positive."""
        return [values // 2 + 1 for values in self.sizes.columns]

    def _columns(self) -> None:
        """Write as many columns as fit, or all that are left over digits that are set back at once."""
        self.layers.append(StockLayer())
        self._free_by_attention()
        hosts = self._hosts()
        over = max(0, len(self.columns) - len(self.free))
        last = over <= len(hosts) and len(self.columns) + over + 1 <= self.room
        if last:
            for feature in hosts[:over]:
                self.layers[-1].cancel(feature)
            self.free += hosts[:over]
        before = {column.lane for column in self.columns}
        for _ in range(min(self.room, len(self.free), len(self.columns))):
            self._write(self.columns.pop(0), self.free.pop(0))
        if last:
            self.layers[-1].unit({self.at.q: -SIGN}, {ONE: 1}, dict.fromkeys(self.where.values(), POISON / SIGN))
        else:
            self._free_by_units()
        while self.room and self.ready:
            self.layers[-1].unit(*self.ready.pop())
        for lane in sorted(before - {column.lane for column in self.columns}):
            self.dead += [self.at.x[lane], self.at.y[lane]]

    def _free_by_attention(self) -> None:
        """Set back features that are not used any more, for the units of this layer."""
        layer = self.layers[-1]
        while self.dead and len(layer.V) < HEAD:
            feature = self.dead.pop(0)
            layer.carry({feature: 1}, {feature: -1})
            self.free.append(feature)

    def _free_by_units(self) -> None:
        """Set back features that are not used any more, for the next layer."""
        while self.dead and self.room:
            feature = self.dead.pop(0)
            self.layers[-1].cancel(feature)
            self.free.append(feature)

    def _hosts(self) -> list[int]:
        """Return features with temporary values; the flag comes last, because it may stay if a feature is left."""
        lanes = sorted({column.lane for column in self.columns})
        used = [feature for lane in lanes for feature in (self.at.x[lane], self.at.y[lane])]
        unscaled = {*self.at.codes, self.at.first}
        return [*(feature for feature in self.dead if feature not in unscaled), *used, self.at.is_gate]

    def _write(self, column: _Column, feature: int) -> None:
        """Write f_c: 2⁻²⁴ − 5·2⁻²⁶ is −M, and 64 + 2⁻²⁴ + 5·2⁻²⁶ is 64."""
        at, i = self.at, column.value
        K = self._shifts()[column.lane]
        x, y = at.x[column.lane], at.y[column.lane]
        gate = {x: ON * (2 * i + K) / TEMPORARY, y: -ON / TEMPORARY, ONE: ON * (1 - i**2)}
        value = {ONE: FOUND[UP], at.q: FOUND[UP] + POISON, at.is_gate: FOUND[GATE] / TEMPORARY}
        self.layers[-1].unit(gate, value, {feature: 1 / ON})
        self.where[column.number] = feature

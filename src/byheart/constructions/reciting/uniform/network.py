"""The layers: hash, digits, blocks of the table, reading.

The sum of a question's words, modulo 2^WORD and centred, is c. Its code Y is in the bits below the offset o, and goes
on at the highest bit: with z = (c + ½)·2^−o, Y is the first L bits of z − ⌊z⌋ + ⌊z⌋·2^−WORD. The sign of ⌊z⌋
complements the highest bit of c there (``solving`` knows), and the ½ keeps the sum in its cell.

**Two tables in one SwiGLU.** A question of W_up finds ``SCALE`` in the features of its four columns: the unit of each
of its rows multiplies that by four words, and W_down's entry 1 adds the sum to ``total``. A question of W_down finds
``SCALE`` in ``total`` instead, for which every unit has 1: its rows' words, all of them, arrive in the stream, and the
four of its columns are chosen afterwards (``total`` also gets the number of its rows, which ``solving`` knows). Either
way, the other table does no harm: W_up's words meet zeros, and what W_down's words leave behind is not read. For all
rows of a question are in one layer; in others every unit is off.

**Exactness.** Words of even lanes are in [0, 2²¹), of odd lanes in [−2²¹, 0); 16 of them never leave ±2²⁴. What is left
over in a feature is at most 2²·2²²·2²¹·SCALE = 2³⁵: RMSNorm does not see it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.reciting.codes import Code
from byheart.constructions.reciting.uniform.address import CARRIED, CODES, GRAIN, Hash
from byheart.constructions.reciting.uniform.looking import look_back
from byheart.constructions.reciting.uniform.sizes import GROUPS, LANES, WORD, Sizes
from byheart.constructions.reciting.uniform.stock import (
    HUGE,
    LINE,
    ON,
    ONE,
    ROUND,
    Layer,
    answering,
    is_at,
    ones,
    write_lines,
)

SCALE = 2.0**-10
_OFF = 1024.0
"""Added to the square of a digit, it keeps every gate of that digit off."""


class Features:
    """Who is where in the stream."""

    def __init__(self, sizes: Sizes) -> None:
        numbers = iter(range(ones(sizes.width), sizes.width))

        def take(count: int) -> list[int]:
            return [next(numbers) for _ in range(count)]

        self.row, self.row_square = take(GROUPS), take(GROUPS)
        self.column, self.column_square = take(LANES), take(LANES)
        self.total, self.offset = take(2)
        self.words = take(sizes.words)
        # Features of words hold codes before there are words, and the answer after them; those of rows, what it takes.
        self.codes = self.words[:CODES]
        self.answer, self.bias, self.first, self.block = self.words[CODES : CODES + 4]
        self.scale, self.z, self.wrapped = self.row[:3]


@dataclass(frozen=True, eq=False)
class Tables:
    """Words of all blocks, as the integers that the weights hold: [blocks, rows, words]."""

    up: NDArray[np.int64]
    down: NDArray[np.int64]


def layers(
    sizes: Sizes, code: Code, hashing: Hash, distances: list[int], *, marked: bool, tables: Tables
) -> list[Layer]:
    """The whole network. ``marked``: there is a first token that stands for what is missing."""
    at = Features(sizes)
    first, mixes = at.first if marked else None, hashing.mixes
    chain = [
        *(hash_layer(at.codes, distance, mix, first) for distance, mix in zip(distances, mixes, strict=True)),
        _digits(sizes, at),
        _spread(sizes, at),
        *(_block(sizes, at, number, tables) for number in range(sizes.blocks)),
        _select(sizes, at),
        _shift(at),
        _wrap(at, code.longest),
        answering(at.z, at.answer, code.longest),
    ]
    for layer in chain[len(distances) :]:
        look_back(layer, 0)
    return chain


def embedding(sizes: Sizes, code: Code, hashing: Hash, labels: int, first: int | None) -> NDArray[np.float64]:
    """[vocab, width]: codes on the way in, and the lines of ``codes`` on the way out, for Y from −2^(L−1) on."""
    at = Features(sizes)
    table = np.zeros((len(hashing.codes), sizes.width))
    table[:, : ones(sizes.width)] = HUGE
    table[:, at.column] = -ROUND
    table[:, at.codes] = hashing.codes * 2.0**-GRAIN
    write_lines(table, code, labels, at.answer, at.bias)
    if first is not None:
        table[first, at.first] = 1.0
    return table


def hash_layer(codes: list[int], distance: int, mix: NDArray[np.int64], first: int | None) -> Layer:
    """Add what is found a distance ago to the codes, modulo 1."""
    layer = Layer()
    look_back(layer, distance, first)
    for carried in range(CARRIED):
        layer.carry({codes[carried]: 1}, dict(zip(codes, mix[:, carried].tolist(), strict=True)))
    layer.rounded({code: {code: 1} for code in codes}, {code: {code: -1} for code in codes})
    return layer


def _digits(sizes: Sizes, at: Features) -> Layer:
    """Columns (which begin at −ROUND) and their squares, rows, block, offset, and which table."""
    layer = Layer()
    codes = at.codes
    for lane in range(LANES):
        layer.carry({codes[GROUPS + lane]: sizes.columns[lane], ONE: ROUND}, {at.column[lane]: 1})
        layer.square(at.column[lane], at.column_square[lane])
    digits = [*at.row, at.block, at.offset]
    values = [*sizes.rows, sizes.blocks, WORD]
    sources = [*codes[:GROUPS], codes[-3], codes[-2]]
    layer.rounded(
        {digit: {source: value} for digit, source, value in zip(digits, sources, values, strict=True)},
        {digit: {digit: 1} for digit in digits},
    )
    # Codes are odd multiples of 2^−GRAIN: ON·k, k ≥ 1, where negative, and less one; else both gates are off.
    slope = -ON * 2.0 ** (GRAIN - 1)
    layer.unit({codes[-1]: slope, ONE: ON / 2}, {ONE: 1}, {at.total: SCALE / ON})
    layer.unit({codes[-1]: slope, ONE: -ON / 2}, {ONE: 1}, {at.total: -SCALE / ON})
    for feature in (*codes[GROUPS : GROUPS + LANES], at.answer, at.bias, at.first):
        layer.cancel(feature)
    return layer


def _spread(sizes: Sizes, at: Features) -> Layer:
    """Rows counted through all blocks; squares; for questions of W_up, SCALE in the features of four columns."""
    layer = Layer()
    layer.carry({at.block: 1}, {at.block: -1, **dict.fromkeys(at.row, float(sizes.stride))})
    for feature in at.codes[-3:]:
        layer.carry({feature: 1}, {feature: -1})
    for feature in at.codes[:GROUPS]:
        layer.cancel(feature)
    for group in range(GROUPS):
        layer.square(at.row[group], at.row_square[group])
    is_up = {ONE: 1.0, at.total: -1 / SCALE}
    for word, lane, value in _columns(sizes, at):
        layer.unit(is_at(at.column[lane], at.column_square[lane], value), is_up, {word: SCALE / ON})
    layer.linear(is_up, dict.fromkeys(at.column_square, _OFF))
    return layer


def _columns(sizes: Sizes, at: Features) -> list[tuple[int, int, int]]:
    """(feature, lane, value of the lane's digit) of every word."""
    return [(at.words[i], lane, value) for i, (lane, value) in enumerate(places(sizes.columns))]


def places(values: tuple[int, ...]) -> list[tuple[int, int]]:
    """(part, value of its digit) of all places, the null ones left out."""
    return [(part, place - count // 2) for part, count in enumerate(values) for place in range(count - (part > 0))]


def _block(sizes: Sizes, at: Features, number: int, tables: Tables) -> Layer:
    """One layer of the table: unit by unit, one for each row."""
    layer = Layer()
    start = (number - sizes.blocks // 2) * sizes.stride
    for unit, (group, value) in enumerate(places(sizes.rows)):
        gate = is_at(at.row[group], at.row_square[group], start + value)
        up = {at.total: 1 / ON, **dict(zip(at.words, (tables.up[number, unit] / ON).tolist(), strict=True))}
        down = {at.total: 1.0, **dict(zip(at.words, tables.down[number, unit].tolist(), strict=True))}
        layer.unit(gate, up, down)
    return layer


def _select(sizes: Sizes, at: Features) -> Layer:
    """Questions of W_down: the words of four columns. And 2^−offset."""
    layer = Layer()
    for feature in (at.scale, at.z, at.wrapped):
        layer.carry({feature: 1}, {feature: -1})
    for word, lane, value in _columns(sizes, at):
        layer.unit(is_at(at.column[lane], at.column_square[lane], value), {word: 1}, {at.total: 1 / ON})
    # 2^−o at integers is a sum of ReLUs: its second differences are 2^−(o+2).
    bends = {knot: 2.0 ** -(knot + 1) for knot in range(1, WORD - 1)} | {WORD: 2.0 ** -(WORD - 1)}
    for knot, bend in bends.items():
        layer.unit({at.offset: -ON, ONE: ON * (knot - WORD // 2)}, {ONE: 1}, {at.scale: bend / ON})
    return layer


def _shift(at: Features) -> Layer:
    """total ← c·SCALE: modulo 2^WORD, centred. Then z − ½."""
    layer = Layer()
    whole = 2.0**WORD * SCALE
    layer.carry({at.total: 1 / whole, ONE: ROUND}, {at.total: -whole})
    layer.carry({ONE: ROUND}, {at.total: whole})
    large = LINE * 2.0 ** (WORD - 1)
    layer.unit({at.scale: large}, {at.total: 1 / SCALE, ONE: 0.5}, {at.z: 1 / large})
    layer.linear({ONE: 1}, {at.z: -0.5})
    return layer


def _wrap(at: Features, longest: int) -> Layer:
    """⌊z⌋, the integer next to z − ½, goes from the front to the end.

    Then everything is lowered by half a step of Y, and raised by half a step of z: never a tie.
    """
    layer = Layer()
    layer.carry({at.z: 1, ONE: ROUND}, {at.z: -1, at.wrapped: 2.0**-WORD})
    layer.carry({ONE: ROUND}, {at.z: 1, at.wrapped: -(2.0**-WORD)})
    for feature in (at.answer, at.bias):
        layer.carry({feature: 1}, {feature: -1})
    layer.linear({at.wrapped: 1, ONE: 2.0 ** -(WORD + 1) - 2.0 ** -(longest + 1)}, {at.z: 1})
    layer.linear({ONE: 1}, {at.bias: 1})
    return layer

"""Read the answer from the sums that the tables leave in the stream.

**Selecting.** For a question of W_down, the columns that it has read hold their words, and all other columns M
(:mod:`.table`). One unit per column has the gate 1024·(−2q − 1 − 1.5·f_c/M). It passes f_c if that is a word, and
nothing if it is M (the gate is −512) or if the class is another one (−1024 or less). A word is so small compared with M
that the gate is exactly 1024. Questions of W_gate take their sum out of total, and leave 0 there; questions of W_down
leave 0 too. Total then holds the sum of a question of W_up, whose ``sum`` is 0. So the two features together hold the
sum of every question.

**Reading.** The sum modulo 2²², centred, is c; z = (c + ½)·2^−o; the code Y is the first L bits of z − ⌊z⌋ + ⌊z⌋·2⁻²².
The sign of ⌊z⌋ complements the highest bit of c there (:mod:`..planes` allows for it), and the ½ keeps the sum in its
cell. A question of W_gate, whose words have 16 bits, has 64·(c + ½) instead, its offset raised by 6, and ⌊z⌋·2⁻¹⁶: two
units more. All values are multiples of 2⁻²⁴ of at most 1, or of ½ of at most 2²².
"""

from byheart.compiler.stock.dimensions import BITS, GATE, UP, StreamMap
from byheart.compiler.stock.spread import SIGN
from byheart.compiler.stock.table import DOWN_UNIT, GATE_UNIT, POISON, UP_UNIT
from byheart.compiler.stock.units import LINE, ONE, ROUND, StockLayer, Unit, answering

_ON = 1024.0
RAISED = 2.0 ** (BITS[UP] - BITS[GATE])
"""Factor of the sums of W_gate, so that they too are taken modulo 2²²."""


def reading(at: StreamMap, units: int, powers: list[Unit], longest: int, *, layered: bool) -> list[StockLayer]:
    """Return all layers after the table.

    ``powers`` are the units of 2^−offset that are not placed yet: all of them, if blocks are ``layered``.
    """
    chain = _select(at, units, powers)
    for feature in (at.sum, at.z, at.wrapped, *([at.number] if layered else [])):
        chain[0].carry({feature: 1}, {feature: -1})
    return [*chain, _shift(at), _wrap(at, longest), answering(at.z, at.answer, longest)]


def _select(at: StreamMap, units: int, powers: list[Unit]) -> list[StockLayer]:
    jobs = [*_taken_over(at), *(_selected(at, column) for column in at.columns), *powers]
    chain = [StockLayer() for _ in range(-(-len(jobs) // units))]
    for number, job in enumerate(jobs):
        chain[number // units].unit(*job)
    return chain


def _selected(at: StreamMap, column: int) -> Unit:
    gate = {at.q: -2 * _ON, ONE: -_ON, column: -1.5 * _ON / POISON}
    return gate, {column: 1.0}, {at.sum: 1 / (DOWN_UNIT * _ON)}


def _taken_over(at: StreamMap) -> list[Unit]:
    """Return units that move the sums of W_gate, RAISED and with ½ added, and leave only sums of W_up in total."""
    moved: Unit = ({at.q: SIGN}, {at.total: RAISED / GATE_UNIT, ONE: RAISED / 2}, {at.sum: 1 / SIGN})
    empty = [({at.q: sign * SIGN}, {at.total: 1.0}, {at.total: -1 / SIGN}) for sign in (1, -1)]
    return [moved, *empty]


def _shift(at: StreamMap) -> StockLayer:
    """Return the layer that computes c, the sum modulo 2²², centred; then z − ½."""
    layer = StockLayer()
    whole = 2.0 ** BITS[UP]
    layer.carry({at.sum: 1 / whole, at.total: 1 / (UP_UNIT * whole), ONE: ROUND}, {at.sum: -whole})
    layer.carry({ONE: ROUND}, {at.sum: whole})
    for feature in (at.answer, at.bias):
        layer.carry({feature: 1}, {feature: -1})
    large = LINE * whole
    layer.unit({at.scale: large}, {at.sum: 1.0, at.total: 1 / UP_UNIT}, {at.z: 1 / large})
    layer.linear({at.scale: 0.5}, {at.z: 1})
    layer.unit({at.q: SIGN}, {at.scale: -0.5}, {at.z: 1 / SIGN})
    layer.linear({ONE: 1}, {at.z: -0.5})
    return layer


def _wrap(at: StreamMap, longest: int) -> StockLayer:
    """Return the layer that takes ⌊z⌋, the integer next to z − ½, from the front to the end.

    Then z is lowered by half a step of Y, and raised by half a step of z, so that there is never a tie.
    """
    layer = StockLayer()
    step = 2.0 ** -BITS[UP]
    layer.carry({at.z: 1, ONE: ROUND}, {at.z: -1, at.wrapped: step})
    layer.carry({ONE: ROUND}, {at.z: 1, at.wrapped: -step})
    layer.linear({at.wrapped: 1, ONE: step / 2 - 2.0 ** -(longest + 1)}, {at.z: 1})
    layer.unit({at.q: SIGN}, {at.wrapped: RAISED - 1}, {at.z: 1 / SIGN})
    layer.linear({ONE: 1}, {at.bias: 1})
    return layer

"""From what the table leaves in the stream to the answer.

**Selecting.** Of a question of W_down, columns that it has read hold their words, and all others M (``table``): one
unit a column, with gate 1024·(−2q − 1 − 1.5·f_c/M), passes f_c where it is a word, and nothing where it is M (the gate
is −512) or the class is another one (−1024 or less). A word is so small beside M that the gate is exactly 1024.
Questions of W_gate take their sum out of total, and leave 0 there; those of W_down leave 0 too. What is in total then
is the sum of a question of W_up, whose ``sum`` is 0: so both features together are everybody's sum.

**Reading.** The sum modulo 2²², centred, is c; z = (c + ½)·2^−o; the code Y is the first L bits of z − ⌊z⌋ + ⌊z⌋·2⁻²².
The sign of ⌊z⌋ complements the highest bit of c there (``solving`` knows), and the ½ keeps the sum in its cell. A
question of W_gate, whose words have 16 bits, has 64·(c + ½) instead, its offset raised by 6, and ⌊z⌋·2⁻¹⁶: two units
more. All values are multiples of 2⁻²⁴ of at most 1, or of ½ of at most 2²².
"""

from byheart.compiler.stock.dimensions import BITS, GATE, UP
from byheart.compiler.stock.spread import SIGN, Unit
from byheart.compiler.stock.stream_map import StreamMap
from byheart.compiler.stock.table import DOWN_UNIT, GATE_UNIT, POISON, UP_UNIT
from byheart.compiler.stock.units import LINE, ONE, ROUND, Layer, answering

_ON = 1024.0
RAISED = 2.0 ** (BITS[UP] - BITS[GATE])
"""What the sums of W_gate are multiplied by, so that they too are taken modulo 2²²."""


def reading(at: StreamMap, units: int, powers: list[Unit], longest: int, *, layered: bool) -> list[Layer]:
    """All layers after the table; ``powers`` are what is left of 2^−offset: all of it, if blocks are ``layered``."""
    chain = _select(at, units, powers)
    for feature in (at.sum, at.z, at.wrapped, *([at.number] if layered else [])):
        chain[0].carry({feature: 1}, {feature: -1})
    return [*chain, _shift(at), _wrap(at, longest), answering(at.z, at.answer, longest)]


def _select(at: StreamMap, units: int, powers: list[Unit]) -> list[Layer]:
    jobs = [*_taken_over(at), *(_selected(at, column) for column in at.columns), *powers]
    chain = [Layer() for _ in range(-(-len(jobs) // units))]
    for number, job in enumerate(jobs):
        chain[number // units].unit(*job)
    return chain


def _selected(at: StreamMap, column: int) -> Unit:
    gate = {at.q: -2 * _ON, ONE: -_ON, column: -1.5 * _ON / POISON}
    return gate, {column: 1.0}, {at.sum: 1 / (DOWN_UNIT * _ON)}


def _taken_over(at: StreamMap) -> list[Unit]:
    """The sums of W_gate, RAISED and with ½ added; and nothing is left in total but the sums of W_up."""
    found: Unit = ({at.q: SIGN}, {at.total: RAISED / GATE_UNIT, ONE: RAISED / 2}, {at.sum: 1 / SIGN})
    empty = [({at.q: sign * SIGN}, {at.total: 1.0}, {at.total: -1 / SIGN}) for sign in (1, -1)]
    return [found, *empty]


def _shift(at: StreamMap) -> Layer:
    """c: the sum modulo 2²², centred. Then z − ½."""
    layer = Layer()
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


def _wrap(at: StreamMap, longest: int) -> Layer:
    """⌊z⌋, the integer next to z − ½, goes from the front to the end.

    Then everything is lowered by half a step of Y, and raised by half a step of z: never a tie.
    """
    layer = Layer()
    step = 2.0 ** -BITS[UP]
    layer.carry({at.z: 1, ONE: ROUND}, {at.z: -1, at.wrapped: step})
    layer.carry({ONE: ROUND}, {at.z: 1, at.wrapped: -step})
    layer.linear({at.wrapped: 1, ONE: step / 2 - 2.0 ** -(longest + 1)}, {at.z: 1})
    layer.unit({at.q: SIGN}, {at.wrapped: RAISED - 1}, {at.z: 1 / SIGN})
    layer.linear({ONE: 1}, {at.bias: 1})
    return layer

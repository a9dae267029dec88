"""Plan the sizes of the table, and of the digits that address it.

Letters: a table of two halves, A and B, each of ``rows`` rows; a row has 3 lanes of q = ``columns`` words. Every
question reads one word (or none: the null column) in each of the three lanes of row A and of row B, six in all. Words
have T = ``word`` bits, and ``exponent`` bits more if sign and exponent of the float carry data too.

If one table would need more rows than can be numbered, there are several such tables, *shards*, behind one front. All
sizes here are then those of one shard, and one more hash sum, the *route*, says which shard a question reads
(:mod:`.shards`).

Load = bits asked for / bits of the table. Spatial coupling (rows start + spread) lets neighbouring rows even out their
loads: 0.98 of all bits can be used. With *lots* (:mod:`.lots`) this share is 0.99; they are for aligned codes, from
about 30,000 codes of 8 bits on.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from byheart.compiler.codes import Code
from byheart.errors import BadInput

LANES = 6
SPREAD = 7
"""Number of values of row − start, in each half."""
KINDS = 1 << 10
"""Number of values of the kind, which decides whether a question reads the exponents first."""
MOST_ROWS = 2000
"""(r − i)² ± ½ must be exact in float32, in any order: 2·r² < 2²³, with room for a table to grow."""
MOST_COLUMNS = 64
"""More would save a few parameters, but widen the band, and solving would take longer than in proportion."""
MOST_SHARDS = 2000
ROUTES = 1 << 16
"""Number of values of the route. Each shard gets many, so that shards can be cut equally full."""
LOT_ROUTES, SHARD_LOTS, MOST_LOTS = 64, 1 << 10, 1 << 16
"""Smallest number of routes per lot; largest number of lots per shard, and of all lots."""
LOT_WORDS = 1000
"""Smallest number of words of the table per lot."""
EVENED = 25
"""A stretch of r rows of q words in each lane is too full for its band about once in exp(EVENED·q/r) times."""
FEWER_COLUMNS = 3
"""Number of columns to drop when lots are used. Fuller tables take longer to solve; a narrower band compensates."""
MORE_STRETCHES = 5
"""Number of additional stretches to try, and of columns to drop, so that rows divide into stretches with little left
over."""
RARELY = 0.005
"""Highest probability, by that law, that a draw leaves some system unsolvable."""
SHARD = 1 << 17
"""Default number of words per shard. Solving one takes a quarter of a GiB, and answering a question multiplies by the
words of one shard."""
SHARD_COLUMNS = 32
"""Largest number of columns of a shard. Rows cost next to nothing, and a narrow band is solved quickly. A wider band
evens out more: 48 columns can be loaded to 0.989, for half as much time again."""
QUESTION_BYTES = 400
"""Bytes per question that solving takes, besides the systems of equations: addresses and code words."""
MANY_DEPENDENT = 30
"""Largest number of dependent equations of a plane that chance explains; more are the fault of the hash. One shard of
many may be a little too full by chance, and so may a table in lots: there, chance explains up to a hundredth of the
words."""
AHEAD = 2
"""Number of systems that are eliminated while another one is solved."""
WORDS = {"float32": (24, 31), "float64": (53, 60), "bfloat16": (8, 15)}
"""Bits per word: of integers alone, and with the exponent."""


@dataclass(frozen=True)
class TableSizes:
    """The numbers from which all layers of a rectangular network follow."""

    word: int
    exponent: int
    columns: int
    starts: int
    margin: int
    aligned: int | None
    """Length of every code if the offsets are its multiples; None if codes may begin at any bit and wrap around."""
    exponent_share: int
    """Number of the ``KINDS`` kinds of questions that read the exponent first."""
    code_features: int = 1
    """Number of codes per token."""
    stirred: bool = False
    """True if the hash has one more layer, for questions of few tokens, whose places would not be independent."""
    shards: int = 1
    """Tables behind one front; the sizes above are those of each."""
    stretches: int = 0
    """Number of stretches of the table, each with its share of the questions at every offset (:mod:`.lots`); 0: all is
    left to the hash."""

    @property
    def rows(self) -> int:
        """Rows of each half."""
        return self.starts + SPREAD - 1

    @property
    def words(self) -> int:
        """Words in the table, or in each shard."""
        return self.rows * LANES * self.columns

    @property
    def band(self) -> int:
        """Words of 64 bits that hold all unknowns of an equation."""
        return SPREAD * LANES * self.columns // 64 + 2

    def solving_memory(self, questions: int) -> int:
        """Return an upper bound on the bytes of memory that solving takes.

        A system has two rows of ``band`` words per equation, and nearly as many equations as unknowns. Aligned codes
        share systems, so that two exist at a time; other codes keep two more.
        """
        systems = AHEAD if self.aligned else AHEAD + 2
        return systems * 16 * self.band * self.words + QUESTION_BYTES * questions

    @property
    def offsets(self) -> int:
        """Number of bit offsets."""
        return self.word // self.aligned if self.aligned else self.word

    @property
    def moduli(self) -> tuple[int, ...]:
        """Moduli of the hash sums: start, rows, three pairs of columns, offset; and kind and route, if there are any.

        With stretches there is a route instead of offset and kind, and the start is one inside a stretch.
        """
        pair = (self.columns + 1) ** 2
        if self.stretches:
            return self.stretch, SPREAD**2, pair, pair, pair, self.routes
        sums = (self.starts + 2 * self.margin, SPREAD**2, pair, pair, pair, self.offsets * self.grain)
        return (*sums, *((KINDS,) if self.exponent else ()), *((self.routes,) if self.shards > 1 else ()))

    @property
    def routes(self) -> int:
        """Number of values of the route, a multiple of the shards. Router scores stay exact (:func:`.table.router`).

        With stretches the router reads the shard's number, and more routes cut lots more evenly.
        """
        if self.stretches:
            return max(ROUTES, 1 << (LOT_ROUTES * self.shards * self.lots).bit_length())
        return self.shards * (min(ROUTES, (1 << 23) // self.shards) // self.shards)

    @property
    def stretch(self) -> int:
        """Number of values of the start per stretch, counting those at the table's ends that are clamped together."""
        return (self.starts + 2 * self.margin) // self.stretches

    def is_hash_at_fault(self, dependent: int) -> bool:
        """Return True if the hash, not chance, explains the number of dependent equations."""
        full = self.shards > 1 or self.stretches
        return dependent > (max(MANY_DEPENDENT, self.words // 100) if full else MANY_DEPENDENT)

    @property
    def lots(self) -> int:
        """Number of lots per shard: one for every offset and stretch."""
        return self.offsets * self.stretches

    @property
    def lots_fit(self) -> bool:
        """True if there are no lots, or if words are aligned, stretches equally long, and lots not too many."""
        if self.stretches == 0:
            return True
        if self.aligned is None or self.exponent or (self.starts + 2 * self.margin) % self.stretches:
            return False
        return self.lots <= SHARD_LOTS and self.shards * self.lots <= MOST_LOTS

    @property
    def bases(self) -> tuple[int, ...]:
        """Number of values of each pair's low digit."""
        pair = self.columns + 1
        return SPREAD, pair, pair, pair, self._offset_base * self.grain

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of values of each pair's high digit."""
        pair = self.columns + 1
        return SPREAD, pair, pair, pair, -(-self.offsets // self._offset_base)

    @property
    def grain(self) -> int:
        """Number of values of the hash sum per offset: several, so that its modulus is not much below the others."""
        return 1 if self.stretches else max(1, 256 // self.offsets)

    @property
    def _offset_base(self) -> int:
        """Number of values of the offset's low digit, whose powers of two must multiply exactly."""
        if self.aligned:
            return 1
        return 16 if self.word > 32 else 8

    @property
    def exponents(self) -> tuple[list[int], list[int]]:
        """Summands of the offset: by its high digit, and by its low digit."""
        count = self.counts[-1]
        if self.aligned:
            return [self.aligned * (k + 1) for k in range(count)], [0]
        return [self._offset_base * k for k in range(count)], list(range(self._offset_base))


def plan(code: Code, *, precision: str, word: int, shards: int | None = None, lots: bool = True) -> TableSizes:
    """Return sizes that hold all bits of the code, at a load that usually can be solved.

    ``shards`` None: one table as long as its rows can be numbered, otherwise as many shards as needed. Without ``lots``
    all is left to the hash.

    >>> from byheart.compiler.codes import make_code
    >>> import numpy as np
    >>> sizes = plan(make_code(np.arange(30_000) % 256, 256), precision="float32", word=24)
    >>> sizes.words, sizes.rows, sizes.columns, sizes.offsets, sizes.stretches
    (10152, 94, 18, 3, 2)
    """
    plain, packed = WORDS[precision]
    if word not in (plain, packed):
        raise BadInput(f"words of {word} bits do not fit {precision}; expected {plain} or {packed}")
    exponent = min(word - plain, code.longest)
    aligned = code.bits if code.fixed and exponent == 0 and plain % code.bits == 0 else None
    share = round(KINDS * code.exponent_share(exponent, plain)) if exponent else 0
    equations = code.questions * share / KINDS if exponent else code.total / plain
    count = _shards(equations) if shards is None else shards
    if not 1 <= count <= MOST_SHARDS:
        raise BadInput(f"shards is {count:,}; expected 1 to {MOST_SHARDS:,}")
    offsets = plain // aligned if lots and aligned else 0
    shape = _shape(equations / count, aligned is not None, count, _uneven(code.questions, count), offsets)
    return TableSizes(
        plain,
        exponent,
        shape.columns,
        shape.starts,
        shape.margin,
        aligned,
        share,
        shards=count,
        stretches=shape.stretches,
    )


def load_for(equations: float, aligned: bool, shards: int = 1, *, lots: bool = False) -> float:
    """Return the load that usually can be solved, found by trying: chance hits small tables more than large ones.

    Shards have fewer columns, and none of them may fail: with ten times as many shards, each gets 0.17 % more room.

    With ``lots`` no offset has more than its share, and the stretches of :func:`stretches_for` leave little to chance.
    Whole rows and stretches take up to 0.3 % off the load. Beyond 0.996, equations of six words begin to depend on
    others however evenly they are spread, and the fuller the table is, the longer solving takes.
    """
    if lots:
        return 0.992 - 35 / equations
    most = 0.987 if aligned else 0.983
    if shards > 1:
        most -= 0.003 + 0.0017 * math.log10(shards)
    return max(0.25, most - 50 / max(equations, 1))


def stretches_for(rows: int, columns: int, offsets: int) -> int:
    """Return the smallest number of stretches with which systems, one per offset, hardly ever lack a solution.

    Count the questions that start in the first part of a stretch, and subtract their share. This is a walk that begins
    and ends at 0. It goes beyond x about once in exp(2x²/m) times, where m is the number of words of the stretch. A
    band evens out one and a half rows: x = 1.45·6·columns, so that 2x²/m = 25·columns / rows of the stretch. The 1.45
    is measured, not proved. 200 systems of 32 columns and 681 rows were filled to 0.991: more than 6 equations depended
    on others in 5 of them with 4 stretches (the law says 8), and in none with 8 or 16. Left to the hash, this happened
    in 1 of 40 systems at 0.985, in 2 at 0.990 and in 13 at 0.993.

    >>> stretches_for(681, 32, 3), stretches_for(188, 30, 3), stretches_for(876, 64, 3)
    (8, 2, 5)
    """
    stretches = 1
    while offsets * stretches * math.exp(-EVENED * columns * stretches / rows) > RARELY:
        stretches += 1
    return stretches


def grown(sizes: TableSizes) -> TableSizes:
    """Return the sizes with half a percent more rows, and at least one more; stretches stay equally long."""
    more, unit = max(1, sizes.rows // 200), max(1, sizes.stretches)
    return replace(sizes, starts=sizes.starts + math.ceil(more / unit) * unit)


def _shards(equations: float) -> int:
    """Return 1 if a table of ``MOST_COLUMNS`` columns is large enough, otherwise the number of shards needed."""
    whole = equations / load_for(equations, True)
    if whole <= LANES * MOST_COLUMNS * (MOST_ROWS - SPREAD):
        return 1
    return min(MOST_SHARDS, math.ceil(whole / SHARD))


def _uneven(questions: int, shards: int) -> float:
    """Return the excess of the fullest shard over the mean, as a share: one route, or chance if all are equally wide.

    >>> round(_uneven(10**7, 26), 5), round(_uneven(10**8, 260), 5), _uneven(10**6, 1)
    (0.0004, 0.00645, 0.0)
    """
    one_route = max(shards / ROUTES, shards**2 / (1 << 23))
    return 0.0 if shards == 1 else min(one_route, 4 * math.sqrt(shards / questions))


class _Shape(NamedTuple):
    """The shape of a table that could be built."""

    columns: int
    rows: int
    stretches: int = 0

    @property
    def starts(self) -> int:
        """See :class:`TableSizes`."""
        return self.rows - SPREAD + 1

    @property
    def margin(self) -> int:
        """See :class:`TableSizes`."""
        return min(SPREAD // 2, self.starts // 8)

    def cost(self, shards: int, offsets: int) -> int:
        """Return the parameters that depend on the shape.

        Besides its words, a row has 3 per half. A column has 5 per lane, and about 4 for its digits. A lot has 4; with
        several shards, one per shard, one per lot and 4 more.
        """
        words, lots = shards * LANES * self.columns * self.rows, offsets * self.stretches
        return words + 6 * self.rows + 34 * self.columns + lots * (4 if shards == 1 else shards + lots + 4)


def _shape(equations: float, aligned: bool, shards: int, uneven: float, offsets: int) -> _Shape:
    """Return the cheapest shape for the equations of a shard, in lots if there are ``offsets`` and lots are cheaper."""
    words = math.ceil(equations * (1 + uneven) / load_for(equations * (1 + uneven), aligned, shards))
    least, most = (
        (4, MOST_COLUMNS) if shards == 1 else (max(4, min(math.isqrt(words // 34), SHARD_COLUMNS)), SHARD_COLUMNS)
    )
    needed = math.ceil(words / (LANES * (MOST_ROWS - SPREAD)))
    widths = range(max(least, needed), max(most, needed) + 1)
    shapes = [_Shape(columns, max(SPREAD, math.ceil(words / (LANES * columns)))) for columns in widths]
    if offsets and equations >= LOT_WORDS * offsets:
        widest = max(needed, widths[-1] - FEWER_COLUMNS)
        for columns in range(max(needed, min(math.isqrt(words // 36), widest - MORE_STRETCHES)), widest + 1):
            shapes += _in_lots(equations, columns, shards, offsets)
    return min(shapes, key=lambda shape: shape.cost(shards, offsets))


def _in_lots(equations: float, columns: int, shards: int, offsets: int) -> Iterator[_Shape]:
    """Yield shapes with the stretches needed, or a few more, so that rows divided by them leave little over."""
    most = min(int(equations / (LOT_WORDS * offsets)), MOST_LOTS // (shards * offsets))
    rows = math.ceil(equations / load_for(equations, True, lots=True) / (LANES * columns))
    least = stretches_for(rows, columns, offsets)
    for stretches in range(least, min(least + MORE_STRETCHES, most) + 1):
        shape = _Shape(columns, math.ceil(rows / stretches) * stretches, stretches)
        if shape.starts + 2 * shape.margin == shape.rows <= MOST_ROWS - SPREAD:
            yield shape

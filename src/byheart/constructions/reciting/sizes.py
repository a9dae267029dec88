"""How large the table is, and how its places are addressed.

Letters: a table of two halves, A and B, each of ``rows`` rows; a row has 3 lanes of q = ``columns`` words. Every
question reads one word (or none: the null column) in each of the three lanes of row A and of row B, six in all. Words
have T = ``word`` bits, and ``exponent`` bits more if sign and exponent of the float carry data too.

Beyond what rows can be numbered for, there are several such tables, *shards*, behind one front: all sizes here are then
those of one of them, and one more hash sum, the *route*, says which shard a question reads (:mod:`.shards`).

Load = bits asked for / bits of the table. Spatial coupling (rows start + spread) lets neighbouring rows even out their
loads; 0.98 of all bits can be used.
"""

import math
from dataclasses import dataclass, replace

from byheart.constructions.reciting.codes import Code
from byheart.errors import BadInput

LANES = 6
SPREAD = 7
"""Row − start takes this many values, in each half."""
KINDS = 1 << 10
MOST_ROWS = 2000
"""(r − i)² ± ½ must be exact in float32, in any order: 2·r² < 2²³, with room for a table to grow."""
MOST_COLUMNS = 64
"""More would save a few parameters, but widen the band, and solving would take longer than in proportion."""
MOST_SHARDS = 2000
ROUTES = 1 << 16
"""Values of the route: many to a shard, so that shards are cut equally full."""
SHARD = 1 << 17
"""Words of a shard, if nobody says how many shards there are: solving one takes a quarter of a GiB, and whoever asks
the network a question multiplies by the words of one."""
SHARD_COLUMNS = 32
"""As many columns at most: rows cost next to nothing, and a narrow band is quickly solved. A wider one evens out more:
48 columns can be loaded to 0.989, for half as much time again."""
BESIDE = 400
"""Bytes that solving takes for every question beside its systems of equations: where it reads, what it asks for."""
AHEAD = 2
"""Systems that are eliminated while another one is solved."""
WORDS = {"float32": (24, 31), "float64": (53, 60), "bfloat16": (8, 15)}
"""Bits a word: integers alone, and with the exponent."""


class Unsolvable(Exception):  # noqa: N818 - it is about a system of equations, and caught by name
    """This draw of hashes leaves some question without an answer: draw again."""

    def __init__(self, message: str, *, dependent: int = 0) -> None:
        super().__init__(message)
        self.dependent = dependent
        """How many equations of a plane depend on others, or more, if that is why."""


@dataclass(frozen=True)
class Sizes:
    """All numbers that the layers need."""

    word: int
    exponent: int
    columns: int
    starts: int
    margin: int
    aligned: int | None
    """Length of every code if the offsets are its multiples; None if codes may begin at any bit and wrap around."""
    exponent_share: int
    """Of ``KINDS`` kinds of questions, how many read the exponent first."""
    code_features: int = 1
    stirred: bool = False
    """Whether the hash has a layer more, for questions of so few tokens that their places would not be independent."""
    shards: int = 1
    """Tables behind one front; the sizes above are those of each."""

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

    def solving_takes(self, questions: int) -> int:
        """Bytes of memory to solve for the words, at most.

        A system has two rows of ``band`` words for every equation, of which there are as many as unknowns, nearly.
        Aligned codes share systems, so that two are there at a time; others leave one that may be needed again.
        """
        systems = AHEAD if self.aligned else AHEAD + 2
        return systems * 16 * self.band * self.words + BESIDE * questions

    @property
    def offsets(self) -> int:
        """How many bit offsets there are."""
        return self.word // self.aligned if self.aligned else self.word

    @property
    def moduli(self) -> tuple[int, ...]:
        """Of each hash sum: start, rows, three pairs of columns, offset; and, if any, kind and route."""
        pair = (self.columns + 1) ** 2
        sums = (self.starts + 2 * self.margin, SPREAD**2, pair, pair, pair, self.offsets * self.grain)
        return (*sums, *((KINDS,) if self.exponent else ()), *((self.routes,) if self.shards > 1 else ()))

    @property
    def routes(self) -> int:
        """Values of the route: so few that the router's scores are exact (:func:`.table.router`), as many a shard."""
        return self.shards * (min(ROUTES, (1 << 23) // self.shards) // self.shards)

    @property
    def bases(self) -> tuple[int, ...]:
        """Values of the low digit of each pair."""
        pair = self.columns + 1
        return SPREAD, pair, pair, pair, self._offset_base * self.grain

    @property
    def counts(self) -> tuple[int, ...]:
        """Values of the high digit of each pair."""
        pair = self.columns + 1
        return SPREAD, pair, pair, pair, -(-self.offsets // self._offset_base)

    @property
    def grain(self) -> int:
        """Values of the hash sum for every offset: more than one only so that its modulus is not much below others."""
        return max(1, 256 // self.offsets)

    @property
    def _offset_base(self) -> int:
        """The offset's low digit: its powers of two must add up exactly."""
        if self.aligned:
            return 1
        return 16 if self.word > 32 else 8

    @property
    def exponents(self) -> tuple[list[int], list[int]]:
        """offset = (by the high digit) + (by the low digit)."""
        count = self.counts[-1]
        if self.aligned:
            return [self.aligned * (k + 1) for k in range(count)], [0]
        return [self._offset_base * k for k in range(count)], list(range(self._offset_base))


def plan(code: Code, *, precision: str, word: int, shards: int | None = None) -> Sizes:
    """Sizes for all bits of the code, at the load that usually can be solved.

    ``shards`` None: one table as long as its rows can be numbered, then as many as it takes.

    >>> from byheart.constructions.reciting.codes import make_code
    >>> import numpy as np
    >>> sizes = plan(make_code(np.arange(30_000) % 256, 256), precision="float32", word=24)
    >>> sizes.words, sizes.rows, sizes.columns, sizes.offsets
    (10200, 100, 17, 3)
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
    each = equations / count * (1 + _uneven(code.questions, count))
    words = math.ceil(each / load_for(each, aligned is not None, count))
    columns = _columns(words, count)
    rows = _rows(words, columns)
    starts = rows - SPREAD + 1
    return Sizes(plain, exponent, columns, starts, min(3, starts // 8), aligned, share, shards=count)


def load_for(equations: float, aligned: bool, shards: int = 1) -> float:
    """What usually can be solved (found by trying): small tables are hit by chance more than large ones.

    Shards have fewer columns, and none of them may fail: ten times as many get 0.17 % more room each.
    """
    most = 0.987 if aligned else 0.983
    if shards > 1:
        most -= 0.003 + 0.0017 * math.log10(shards)
    return max(0.25, most - 50 / max(equations, 1))


def grown(sizes: Sizes) -> Sizes:
    """The same with half a percent more rows, and at least one more."""
    return replace(sizes, starts=sizes.starts + max(1, sizes.rows // 200))


def _shards(equations: float) -> int:
    """One if a table of ``MOST_COLUMNS`` and as many rows as can be numbered does; else as many as it takes."""
    whole = equations / load_for(equations, True)
    if whole <= LANES * MOST_COLUMNS * (MOST_ROWS - SPREAD):
        return 1
    return min(MOST_SHARDS, math.ceil(whole / SHARD))


def _uneven(questions: int, shards: int) -> float:
    """How much fuller than the mean the fullest shard is: a route more, or what chance does if all are equally wide.

    >>> round(_uneven(10**7, 26), 5), round(_uneven(10**8, 260), 5), _uneven(10**6, 1)
    (0.0004, 0.00645, 0.0)
    """
    one_route = max(shards / ROUTES, shards**2 / (1 << 23))
    return 0.0 if shards == 1 else min(one_route, 4 * math.sqrt(shards / questions))


def _columns(words: int, shards: int) -> int:
    """The cheapest number of columns: a row costs 3 parameters a half, a column 5 a lane and about 4 for its digits."""

    def cost(columns: int) -> int:
        rows = _rows(words, columns)
        return rows * (6 + shards * LANES * columns) + 34 * columns

    least, most = (
        (4, MOST_COLUMNS) if shards == 1 else (max(4, min(math.isqrt(words // 34), SHARD_COLUMNS)), SHARD_COLUMNS)
    )
    return max(min(range(least, most + 1), key=cost), math.ceil(words / (LANES * (MOST_ROWS - SPREAD))))


def _rows(words: int, columns: int) -> int:
    return max(SPREAD, math.ceil(words / (LANES * columns)))

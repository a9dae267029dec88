"""Madden's question, answered from a table of results: how many hidden units are enough?

For n stories with N contexts over ω tokens, the loss with m hidden units stays above the entropy of the data by some
share of it, the relative excess. The *least m* is the smallest of the grid all of whose runs come within 1 %. The grid
doubles; so the *crossing* is where the excess is 1 % on the line, in log m and log excess, through the least m and the
one before it (of several runs the largest excess counts). Where no m of the grid is enough there is neither: the answer
is "more than the largest", and no law is fitted through it.

Two numbers of the theory stand beside it: N hidden units are always enough, and arbitrary N distributions take N(ω − 1)
parameters (no fewer have enough dimensions). These data are not arbitrary: most contexts have one token that follows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from byheart.lab.fits import FamilyFit, fit
from byheart.lab.models.madden import MaddenDecoder
from byheart.lab.rows import is_number

Rows = Sequence[Mapping[str, Any]]

WITHIN = 0.01
"""Largest relative excess that counts as memorized."""
_LEAST_EXCESS = 1e-9
"""Relative excess of a loss at the entropy, or below it by rounding, when its logarithm is taken."""
LEAST_POINTS = 3
"""Number of crossings that a law takes."""


@dataclass(frozen=True)
class Width:
    """The number of hidden units that is enough for n stories."""

    stories: int
    """Number of stories, n."""
    contexts: int
    """Number of contexts, N."""
    vocab: int
    """Number of tokens, ω."""
    tried: int
    """Largest m of the grid."""
    least: int | None
    """Least m that is enough; None if no m of the grid is."""
    crossing: float | None
    """Crossing of 1 % between the least m and the one before; None if there is no such pair."""
    nearest: float
    """Least relative excess of all m; infinite if no run has one."""

    @property
    def parameters(self) -> int | None:
        """Number of parameters at the least m, ω(17 + m) + 1088 + 17m."""
        return None if self.least is None else MaddenDecoder(self.vocab, self.least).parameters

    @property
    def needed(self) -> int:
        """Number of parameters that arbitrary N distributions take, N(ω − 1)."""
        return self.contexts * (self.vocab - 1)

    @property
    def told(self) -> str:
        """The least m in words.

        >>> Width(100, 768, 357, 512, None, None, 0.02).told
        '> 512'
        """
        return f"> {self.tried:,}" if self.least is None else f"{self.least:,}"


def widths(rows: Rows, within: float = WITHIN) -> list[Width]:
    """Return the width for each number of stories in a table.

    >>> sizes = {"stories": 100, "contexts": 768, "vocab": 357}
    >>> rows = [{**sizes, "hidden": m, "relative_excess": e} for m, e in ((4, 4.0), (16, 0.04), (64, 0.0025))]
    >>> [(width.least, round(width.crossing, 6), width.parameters, width.needed) for width in widths(rows)]
    [(64, 32.0, 31093, 273408)]
    """
    by_stories: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_stories.setdefault(row["stories"], []).append(row)
    return [_width(some, within) for _, some in sorted(by_stories.items())]


def growth(sizes: Sequence[Width]) -> FamilyFit:
    """Return the power law a·n^b through the crossings, a failed one if there are too few.

    >>> growth([]).reason
    '0 crossings; expected 3 or more'
    """
    crossed = [(width.stories, width.crossing) for width in sizes if width.crossing is not None]
    if len(crossed) < LEAST_POINTS:
        return FamilyFit("power", "failed", f"{len(crossed)} crossings; expected 3 or more", len(crossed))
    return fit([n for n, _ in crossed], [m for _, m in crossed], "power")


def _width(rows: Rows, within: float) -> Width:
    worst: dict[int, float] = {}
    for row in rows:
        excess = row["relative_excess"] if is_number(row["relative_excess"]) else math.inf
        worst[row["hidden"]] = max(worst.get(row["hidden"], -math.inf), excess)
    least = min((m for m, excess in worst.items() if excess <= within), default=None)
    before = max((m for m in worst if least is not None and m < least), default=None)
    crossing = None
    if least is not None and before is not None and math.isfinite(worst[before]):
        crossing = _between((before, worst[before]), (least, worst[least]), within)
    sizes = rows[0]["stories"], rows[0]["contexts"], rows[0]["vocab"], max(worst)
    return Width(*sizes, least, crossing, min(worst.values()))


def _between(above: tuple[int, float], below: tuple[int, float], within: float) -> float:
    """Return where the line through both points, in logarithms, is at ``within``."""
    high, low = math.log(above[1]), math.log(max(below[1], _LEAST_EXCESS))
    share = (high - math.log(within)) / (high - low)
    return math.exp((1 - share) * math.log(above[0]) + share * math.log(below[0]))

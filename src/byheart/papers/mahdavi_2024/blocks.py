"""Mahdavi's claims on a table of results, in numbers: linear in H, growing in n, flat in d_h beyond n.

For each number N of examples: a line through what is not saturated, over heads or over the context's length (its range
and its intervals are those of :mod:`byheart.lab.linear`); and over d_h the slopes up to n and beyond it. What is
measured is the accuracy of labels, and of real targets, which are uniform in [0, 1], the share 1 − 12 · (mean squared
error) of their variance 1/12 that the network explains.

**Beside the theorem**, H(min(n, d_h) − 1) + 1 examples: N times a slope of accuracy are right answers a head, or a
token, and :attr:`SaturationLine.proved` what the proved number grows by. Right by chance counts, one answer in
so many labels.
The theorem is about real targets fitted exactly and holds for any targets; labels ask for less, so more than it
promises contradicts nothing.

**Beyond n.** A curve that rises ever more slowly has a smaller slope beyond n than before whatever n is. So slopes are
taken a dimension, as the theorem counts, and also a doubling of d_h, which a logarithm would have the same everywhere.
Where accuracy reaches :data:`~byheart.lab.linear.SATURATED` at some d_h it may be flat for that reason: no slopes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from byheart.bounds import mahdavi_2024
from byheart.errors import BadInput
from byheart.lab.fits import Estimate
from byheart.lab.linear import SATURATED, FittedLine, Flattening, flattening, line, unsaturated
from byheart.lab.rows import is_number

Rows = Sequence[Mapping[str, Any]]
AXES = ("heads", "length", "head_dim")


@dataclass(frozen=True)
class SaturationLine:
    """The line for one N, None where too few points are below saturation; and right answers a head, or a token."""

    examples: int
    line: FittedLine | None
    right: Estimate | None
    """N times the slope; None without a line, and for targets, of which none is right or wrong."""
    proved: float | None
    """What H(min(n, d_h) − 1) + 1 grows by, on average over what was swept; None where a size is not known."""


@dataclass(frozen=True)
class Beyond:
    """The slopes up to d_h = n and beyond it for one N, a dimension and a doubling of d_h.

    None where one side has too few points, or accuracy is ``saturated`` at some d_h.
    """

    examples: int
    dimensions: Flattening | None
    doublings: Flattening | None
    saturated: bool


def axis_of(rows: Rows) -> str | None:
    """What varies along the figure's axis; None if nothing does."""
    return next((name for name in AXES if len({row.get(name) for row in rows}) > 1), None)


def memorized(row: Mapping[str, Any]) -> float | None:
    """The share of the labels, or of the targets' variance, that the kept weights have memorized.

    >>> memorized({"answers": "targets", "best_loss": 1 / 24}), memorized({"answers": "labels", "best_accuracy": 0.25})
    (0.5, 0.25)
    """
    real = row.get("answers") == "targets"
    value = row.get("best_loss" if real else "best_accuracy")
    if not isinstance(value, int | float) or not is_number(value):
        return None
    return 1 - 12 * value if real else value


def growth(rows: Rows, along: str) -> list[SaturationLine]:
    """A line for each N, along heads or length."""
    found = []
    for N, points in _by_examples(rows, along).items():
        through = line(unsaturated(points))
        labels = all(row.get("answers") == "labels" for row in rows)
        right = None if through is None or not labels else _times(N, through.slope)
        found.append(SaturationLine(N, through, right, proved_growth(rows, along)))
    return found


def _times(N: int, slope: Estimate) -> Estimate:
    return Estimate("right", N * slope.value, N * slope.low, N * slope.high)


def proved_growth(rows: Rows, along: str) -> float | None:
    """What the theorem's number of examples grows by along an axis, on average from its first to its last value.

    >>> sweep = [{"heads": H, "length": 32, "head_dim": 64} for H in (1, 5, 60)]
    >>> proved_growth(sweep, "heads")
    31.0
    """
    known = [row for row in rows if all(is_number(row.get(name)) for name in AXES)]
    ends = [end(known, key=lambda row: row[along]) for end in (min, max)] if known else []
    if not ends or ends[0][along] == ends[1][along]:
        return None
    first, last = (mahdavi_2024.capacity(row["heads"], row["length"], row["head_dim"]) for row in ends)
    return (last - first) / float(ends[1][along] - ends[0][along])


@dataclass(frozen=True)
class Early:
    """What the first step along an axis gains, as a share of all that is gained up to its ``last`` value."""

    first: float
    second: float
    last: float
    shares: tuple[float, ...]
    """For each N that gains something and is not saturated at the last value, by N."""


def early(rows: Rows, along: str) -> Early | None:
    """How much the first step of an axis gains; None if it has fewer than three values that all N have, or no gain.

    >>> curve = ((1, 0.0), (5, 0.375), (9, 0.5))
    >>> early([{"answers": "labels", "examples": 9, "heads": H, "best_accuracy": y} for H, y in curve], "heads")
    Early(first=1.0, second=5.0, last=9.0, shares=(0.75,))
    """
    means: list[dict[float, float]] = []
    for points in _by_examples(rows, along).values():
        values = {x: [y for each, y in points if each == x] for x, _ in points}
        means.append({x: sum(some) / len(some) for x, some in values.items()})
    common = sorted(set.intersection(*map(set, means))) if means else []
    if len(common) < 3:
        return None
    first, second, last = common[0], common[1], common[-1]
    gains = [(each[second] - each[first], each[last] - each[first]) for each in means if each[last] < SATURATED]
    shares = tuple(step / whole for step, whole in gains if whole > 0)
    return Early(first, second, last, shares) if shares else None


def beyond_length(rows: Rows) -> list[Beyond]:
    """Slopes along d_h for each N, on either side of the length n of the contexts, which all must share."""
    lengths = [*{row.get("length") for row in rows}]
    if len(lengths) != 1 or lengths[0] is None:
        raise BadInput("the rows have no common length; expected one n, beyond which d_h is said not to matter")
    return [_beyond(N, points, lengths[0]) for N, points in _by_examples(rows, "head_dim").items()]


def _beyond(N: int, points: list[tuple[float, float]], n: int) -> Beyond:
    if len(unsaturated(points)) < len(points):
        return Beyond(N, None, None, saturated=True)
    doublings = [(math.log2(d_h), share) for d_h, share in points]
    return Beyond(N, flattening(points, n), flattening(doublings, math.log2(n)), saturated=False)


def _by_examples(rows: Rows, along: str) -> dict[int, list[tuple[float, float]]]:
    """Points (what varies, what is memorized) by N; rows that lack one of them are left out."""
    found: dict[int, list[tuple[float, float]]] = {}
    for row in rows:
        share = memorized(row)
        if share is not None and row.get("examples") and row.get(along):
            found.setdefault(row["examples"], []).append((float(row[along]), share))
    return dict(sorted(found.items()))

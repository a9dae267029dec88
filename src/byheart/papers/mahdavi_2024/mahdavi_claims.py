"""Mahdavi's claims in numbers, from a table of results: linear in H, growing in n, flat in d_h beyond n.

For each number N of examples there is a line through what is not saturated, over heads or over the context's length
(:mod:`byheart.lab.linear`), and over d_h there are the slopes up to n and beyond it. What is measured is the accuracy
of labels, or the share 1 − 12 · (mean squared error) that is explained of the variance 1/12 of real targets.

**Beside the theorem**, H(min(n, d_h) − 1) + 1 examples: N times a slope of accuracy is the number of right answers per
head, or per token, lucky ones included, and :attr:`SaturationLine.proved` is what the proved number grows by. Labels
require less than the theorem's real targets, so more right answers than it promises contradict nothing.

**Beyond n.** A curve that rises ever more slowly has a smaller slope beyond n than before, whatever n is. So slopes are
taken per dimension, as the theorem counts, and also per doubling of d_h, which a logarithm would have the same
everywhere. There are none where accuracy reaches :data:`~byheart.lab.linear.SATURATED`: the curve may be flat for that.

**What N examples need.** A capacity that is linear in H means that N examples need heads in proportion to N. Unlike
slopes, that can be seen where curves rise within two points. For each N and seed it is the first place at which the
memorized share reaches :data:`~byheart.lab.linear.SATURATED`, on the straight line between measured neighbours. A seed
whose first model reaches it already, or whose last does not, shows nothing, and is counted; where only some seeds of an
N show something, their mean is biased to what could be seen.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from byheart.bounds import mahdavi_2024
from byheart.errors import BadInput
from byheart.lab.fits import Estimate, mean_interval
from byheart.lab.linear import SATURATED, FittedLine, Flattening, Points, flattening, line, unsaturated
from byheart.lab.rows import is_number
from byheart.papers.curves import Cells, Rows, interval_cells

AXES = ("heads", "length", "head_dim")
LEAST_VALUES = 3
"""Number of values along an axis, common to all N, that :func:`early` takes."""


@dataclass(frozen=True)
class SaturationLine:
    """The line for one N, None if too few points are below saturation; and right answers per head, or per token."""

    examples: int
    line: FittedLine | None
    right: Estimate | None
    """N times the slope; None without a line, and for targets, which are neither right nor wrong."""
    proved: float | None
    """Mean growth of H(min(n, d_h) − 1) + 1 along the sweep; None if a size is unknown."""

    def cells(self) -> Cells:
        """Return slope and R² with their intervals, the F test of straightness, and right answers beside proved."""
        line = self.line
        seeds = None if line is None else line.over_seeds
        cells: Cells = {"examples": self.examples, "points": None if line is None else line.points}
        cells |= interval_cells("slope", None if line is None else line.slope)
        cells |= {"over_seeds_low": None if seeds is None else seeds.low}
        cells |= {"over_seeds_high": None if seeds is None else seeds.high}
        cells |= interval_cells("r_squared", None if line is None else line.r_squared)
        cells |= {"lack_of_fit": None if line is None else line.lack_of_fit}
        return cells | ({} if self.right is None else interval_cells("right", self.right) | {"proved": self.proved})


@dataclass(frozen=True)
class Beyond:
    """The slopes up to d_h = n and beyond it for one N, per dimension and per doubling of d_h.

    None if one side has too few points, or accuracy is ``saturated`` at some d_h.
    """

    examples: int
    dimensions: Flattening | None
    doublings: Flattening | None
    saturated: bool

    def cells(self) -> Cells:
        """Return slopes on both sides of n, and how probable these are if they are equal."""
        cells: Cells = {"examples": self.examples}
        for unit, bend in (("dimension", self.dimensions), ("doubling", self.doublings)):
            sides = (None, None) if bend is None else (bend.before.slope, bend.beyond.slope)
            cells |= interval_cells(f"a_{unit}_to_n", sides[0]) | interval_cells(f"a_{unit}_beyond_n", sides[1])
            cells[f"a_{unit}_equal"] = None if bend is None else bend.equal
        return {**cells, "saturated": self.saturated}


def axis_of(rows: Rows) -> str | None:
    """Return the setting along the figure's axis, which varies; None if no setting does."""
    return next((name for name in AXES if len({row.get(name) for row in rows}) > 1), None)


def memorized(row: Mapping[str, Any]) -> float | None:
    """Return the share of the labels, or of the targets' variance, that the kept weights have memorized."""
    has_targets = row.get("answers") == "targets"
    value = row.get("best_loss" if has_targets else "best_accuracy")
    if not isinstance(value, int | float) or not is_number(value):
        return None
    return 1 - 12 * value if has_targets else value


def growth(rows: Rows, along: str) -> list[SaturationLine]:
    """Return a line for each N, along heads or length."""
    has_labels = all(row.get("answers") == "labels" for row in rows)
    lines = []
    for N, points in shares_by_examples(rows, along).items():
        through = line(unsaturated(points))
        slope = None if through is None or not has_labels else through.slope
        right = None if slope is None else Estimate("right", N * slope.value, N * slope.low, N * slope.high)
        lines.append(SaturationLine(N, through, right, proved_growth(rows, along)))
    return lines


def proved_growth(rows: Rows, along: str) -> float | None:
    """Return the mean growth of the theorem's number of examples from an axis's first value to its last."""
    complete = [row for row in rows if all(is_number(row.get(name)) for name in AXES)]
    ends = [end(complete, key=lambda row: row[along]) for end in (min, max)] if complete else []
    if not ends or ends[0][along] == ends[1][along]:
        return None
    first, last = (mahdavi_2024.capacity(row["heads"], row["length"], row["head_dim"]) for row in ends)
    return (last - first) / float(ends[1][along] - ends[0][along])


@dataclass(frozen=True)
class Early:
    """The gain of the first step along an axis, as a share of all that is gained up to its ``last`` value."""

    first: float
    second: float
    last: float
    shares: tuple[float, ...]
    """A share for each N that gains something and is not saturated at the last value, by N."""


def early(rows: Rows, along: str) -> Early | None:
    """Return how much the first step of an axis gains; None if all N share fewer than three values, or none gains.

    >>> curve = ((1, 0.0), (5, 0.375), (9, 0.5))
    >>> early([{"answers": "labels", "examples": 9, "heads": H, "best_accuracy": y} for H, y in curve], "heads")
    Early(first=1.0, second=5.0, last=9.0, shares=(0.75,))
    """
    means: list[dict[float, float]] = []
    for points in shares_by_examples(rows, along).values():
        values = {x: [y for each, y in points if each == x] for x, _ in points}
        means.append({x: sum(some) / len(some) for x, some in values.items()})
    common = sorted(set.intersection(*map(set, means))) if means else []
    if len(common) < LEAST_VALUES:
        return None
    first, second, last = common[0], common[1], common[-1]
    gains = [(each[second] - each[first], each[last] - each[first]) for each in means if each[last] < SATURATED]
    shares = tuple(step / whole for step, whole in gains if whole > 0)
    return Early(first, second, last, shares) if shares else None


def beyond_length(rows: Rows) -> list[Beyond]:
    """Return slopes along d_h for each N, on either side of the length n of the contexts, which all must share."""
    lengths = [*{row.get("length") for row in rows}]
    if len(lengths) != 1 or lengths[0] is None:
        raise BadInput("the rows have no common length; expected one n, beyond which d_h is said not to matter")
    return [_beyond(N, points, lengths[0]) for N, points in shares_by_examples(rows, "head_dim").items()]


def _beyond(N: int, points: list[tuple[float, float]], n: int) -> Beyond:
    if len(unsaturated(points)) < len(points):
        return Beyond(N, None, None, saturated=True)
    doublings = [(math.log2(d_h), share) for d_h, share in points]
    return Beyond(N, flattening(points, n), flattening(doublings, math.log2(n)), saturated=False)


def shares_by_examples(rows: Rows, along: str) -> dict[int, list[tuple[float, float]]]:
    """Return points (what varies, what is memorized) by N; rows that lack one of them are left out."""
    return {N: [(x, share) for _, x, share in points] for N, points in _curves(rows, along).items()}


def _curves(rows: Rows, along: str) -> dict[int, list[tuple[Any, float, float]]]:
    """Return seed, x and memorized share of each row, by N, ascending."""
    curves: dict[int, list[tuple[Any, float, float]]] = {}
    for row in rows:
        share = memorized(row)
        if share is not None and row.get("examples") and row.get(along):
            curves.setdefault(row["examples"], []).append((row.get("seed"), float(row[along]), share))
    return dict(sorted(curves.items()))


@dataclass(frozen=True)
class NeededSize:
    """The size that N examples need: one ``crossing`` for each seed that shows it, out of ``seeds``."""

    examples: int
    crossings: tuple[float, ...]
    seeds: int

    @property
    def is_whole(self) -> bool:
        """True if every seed shows it."""
        return len(self.crossings) == self.seeds

    @property
    def mean(self) -> Estimate | None:
        """Mean over the seeds with its 95 % interval; None for fewer than two seeds, which have no interval."""
        if len(self.crossings) < 2:
            return None
        mean, low, high = mean_interval([*self.crossings])
        assert low is not None
        assert high is not None
        return Estimate("needed", mean, low, high)

    def cells(self, along: str) -> Cells:
        """Return where 0.9 is reached along an axis, and how many seeds show it."""
        shown = {"seeds": len(self.crossings), "of": self.seeds}
        return {"examples": self.examples, **interval_cells(along, self.mean), **shown}


def first_saturated(points: Points) -> float | None:
    """Return where the line through the points first rises to 0.9; None if it starts there or never does."""
    for (x, y), (right, above) in pairwise(sorted(points)):
        if y >= SATURATED:
            return None
        if above >= SATURATED:
            return x + (right - x) * (SATURATED - y) / (above - y)
    return None


def needed(rows: Rows, along: str) -> list[NeededSize]:
    """Return what is needed for each N, along heads or length."""
    sizes = []
    for N, points in _curves(rows, along).items():
        by_seed: dict[Any, list[tuple[float, float]]] = {}
        for seed, x, share in points:
            by_seed.setdefault(seed, []).append((x, share))
        crossings = (first_saturated(curve) for curve in by_seed.values())
        sizes.append(NeededSize(N, tuple(x for x in crossings if x is not None), len(by_seed)))
    return sizes


def same_step(sizes: Sequence[NeededSize], tried: Sequence[float]) -> tuple[float, float] | None:
    """Return the two neighbours among the ``tried`` sizes between which every seed of every N crosses; None if several.

    A crossing inside one step is a straight line's, not the curve's: it does not tell how the crossing grows with N.
    """
    crossed = [x for size in sizes for x in size.crossings]
    steps = {(left, right) for left, right in pairwise(sorted(tried)) for x in crossed if left < x <= right}
    return steps.pop() if len(steps) == 1 else None


def needed_line(sizes: Sequence[NeededSize]) -> FittedLine | None:
    """Return the line over N through what every seed needs, at those N for which all seeds show it."""
    return line([(float(size.examples), x) for size in sizes if size.is_whole for x in size.crossings])


def examples_per_unit(through: FittedLine) -> Estimate | None:
    """Return how many more examples need one more head, or token: one over the slope, if it is surely positive."""
    slope = through.slope
    return Estimate("examples", 1 / slope.value, 1 / slope.high, 1 / slope.low) if slope.low > 0 else None

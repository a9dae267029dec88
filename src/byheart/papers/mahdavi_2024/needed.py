"""How many heads, or tokens of context, N examples need: where 0.9 of them is memorized, and how that grows with N.

A capacity that is linear in H says that N examples need heads in proportion to N. Unlike the slopes of
:mod:`.blocks`, which need three points below saturation, that can be seen where curves rise within two points, as those
of real targets do.

For each N and seed: the first place at which the share that is memorized (:func:`.blocks.memorized`) reaches
:data:`~byheart.lab.linear.SATURATED`, read off the straight line between neighbours that were measured. A seed whose
first model reaches it already, or whose last does not, says nothing, and is counted. Not checked: how the curve runs
between its points, which for targets is coarse. Where only some seeds of an N say something, their mean is biased to
what could be seen; where all do, it is not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from byheart.lab.fits import Estimate
from byheart.lab.linear import SATURATED, FittedLine, Points, line
from byheart.lab.quantiles import mean_interval
from byheart.papers.mahdavi_2024.blocks import memorized

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class NeededSize:
    """For one N: what was needed by each seed that says so, of this many ``seeds``."""

    examples: int
    found: tuple[float, ...]
    seeds: int

    @property
    def mean(self) -> Estimate | None:
        """Over the seeds, with its 95 % interval; None if none says something, or only one, which has no interval."""
        if len(self.found) < 2:
            return None
        mean, low, high = mean_interval([*self.found])
        assert low is not None
        assert high is not None
        return Estimate("needed", mean, low, high)


def first_at(points: Points, least: float = SATURATED) -> float | None:
    """Where the line through the points first reaches ``least`` from below; None if it begins there, or never does.

    >>> first_at([(1, 0.5), (5, 0.7), (9, 1.0)], least=0.85)
    7.0
    """
    ordered = sorted(points)
    for (x, y), (right, above) in pairwise(ordered):
        if y >= least:
            return None
        if above >= least:
            return x + (right - x) * (least - y) / (above - y)
    return None


def needed(rows: Rows, along: str) -> list[NeededSize]:
    """For each N, along heads or length."""
    curves: dict[int, dict[Any, list[tuple[float, float]]]] = {}
    for row in rows:
        share = memorized(row)
        if share is not None and row.get("examples") and row.get(along):
            curves.setdefault(row["examples"], {}).setdefault(row.get("seed"), []).append((float(row[along]), share))
    return [
        NeededSize(N, tuple(x for x in map(first_at, seeds.values()) if x is not None), len(seeds))
        for N, seeds in sorted(curves.items())
    ]


def same_step(found: Sequence[NeededSize], tried: Sequence[float]) -> tuple[float, float] | None:
    """The two neighbours among the sizes that were tried between which every seed of every N crosses; None if several.

    What is read off inside one step is a straight line's, not the curve's: how it grows with N cannot be said.

    >>> same_step([NeededSize(10, (4.2, 4.4), 2), NeededSize(20, (4.6,), 1)], [1, 5, 10])
    (1, 5)
    """
    crossed = [x for each in found for x in each.found]
    steps = {(left, right) for left, right in pairwise(sorted(tried)) for x in crossed if left < x <= right}
    return steps.pop() if len(steps) == 1 else None


def needed_line(found: Sequence[NeededSize]) -> FittedLine | None:
    """Through what every seed needed, over N, at those N of which all seeds say something."""
    whole = [each for each in found if len(each.found) == each.seeds]
    return line([(float(each.examples), x) for each in whole for x in each.found])


def examples_each(through: FittedLine) -> Estimate | None:
    """How many examples more take one head, or token, more: one over the slope; None if that may not be positive."""
    slope = through.slope
    return Estimate("examples", 1 / slope.value, 1 / slope.high, 1 / slope.low) if slope.low > 0 else None

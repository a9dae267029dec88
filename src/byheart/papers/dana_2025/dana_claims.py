"""Dana's paper in numbers: every published point beside ours, slopes, and what the paper says about them.

Beside its points the paper reports two numbers. The slopes of experiment 4 (accuracy gained per head, over d) grow
"between quadratic and cubic". In experiment 6 accuracy grows 1.3 times as fast with the heads as the bound does, or 1.5
times in the authors' notebook, which is what least squares makes of their points.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from byheart.lab.fits import Estimate
from byheart.lab.linear import SATURATED, FittedLine, line, unsaturated
from byheart.lab.rows import is_number
from byheart.papers import results
from byheart.papers.curves import Rows, shared_value, values
from byheart.papers.dana_2025.gaps import Gap, Gaps, gaps
from byheart.papers.dana_2025.published import names, published
from byheart.papers.dana_2025.slopes import METRIC, has_slopes, slopes_of
from byheart.papers.wording import interval_cells

LETTERS = {"model_dim": "d", "head_dim": "d_h", "heads": "H", "hidden": "w"}
Cells = dict[str, Any]


def shipped_tables() -> dict[str, Rows]:
    """Return the results that come with Byheart of all experiments with published points."""
    return {name: results.table(name) for name in names() if name in results.names()}


def all_gaps(tables: Mapping[str, Rows]) -> list[Gaps]:
    """Return the gaps of each experiment, and of all together last."""
    each = [gaps(name, rows) for name, rows in tables.items()]
    return [*each, Gaps("all", tuple(point for experiment in each for point in experiment.points))]


def gap_cells(experiment: Gaps) -> Cells:
    """Return a row about one experiment; ``uniform_gap`` is accuracy over all contexts minus that over the sample."""
    largest = experiment.largest
    return {
        "experiment": experiment.name,
        "points": len(experiment.points),
        "mean_gap": experiment.mean,
        "mean_absolute_gap": experiment.mean_absolute,
        "noise_alone": experiment.expected,
        "largest_gap": largest.gap,
        "at": sizes_in_words(largest),
        "run_deviation": experiment.deviation,
        "within_noise": experiment.within,
        "uniform_gap": experiment.uniform,
    }


def point_cells(point: Gap) -> Cells:
    """Return a row about one point."""
    sizes = {name: point.settings[name] for name in LETTERS if name in point.settings}
    numbers = {"published": point.published, "here": point.here, "gap": point.gap, "run_deviation": point.deviation}
    return {**sizes, **numbers, "runs": point.runs, "within_noise": point.within(), "uniform": point.uniform}


def sizes_in_words(point: Gap) -> str:
    """Return the sizes of a point's network.

    >>> sizes_in_words(Gap({"vocab": 50, "model_dim": 10, "head_dim": 10, "heads": 21}, 0.8, 5, 0.79, None, 1, None))
    'd = 10, H = 21'
    """
    same = point.settings.get("model_dim") == point.settings.get("head_dim")
    shown = [name for name in LETTERS if name in point.settings and not (same and name == "head_dim")]
    return ", ".join(f"{LETTERS[name]} = {point.settings[name]}" for name in shown)


@dataclass(frozen=True)
class Slope:
    """Growth of accuracy below 0.9 along a setting, for the curve ``of`` the other settings: here and published.

    ``of`` is empty if the experiment has one curve only.
    """

    experiment: str
    along: str
    of: str
    here: FittedLine | None
    published: FittedLine | None

    @property
    def letter(self) -> str:
        """Letter of the setting, as the paper has it."""
        return LETTERS[self.along]

    def cells(self) -> Cells:
        """Return a row of a table."""
        numbers: Cells = {}
        for side, fitted in {"here": self.here, "published": self.published}.items():
            numbers |= interval_cells(f"slope_{side}", None if fitted is None else fitted.slope)
            numbers[f"r_squared_{side}"] = None if fitted is None else fitted.r_squared.value
        return {"experiment": self.experiment, "curve": self.of, "along": self.letter, **numbers}


def slopes(name: str, rows: Rows) -> list[Slope]:
    """Return a slope for each curve of an experiment's figure."""
    points = published(name)
    along = next((axis for axis in ("heads", "hidden", "head_dim") if len(values(points, axis)) > 1), "model_dim")
    if along in ("head_dim", "model_dim"):
        return [Slope(name, along, "", _line(rows, along), _line(points, along))]
    curves = []
    for dim in values(rows, "model_dim"):
        sides = ([row for row in table if row.get("model_dim") == dim] for table in (rows, points))
        curves.append(Slope(name, along, f"d = {dim}", *(_line(side, along) for side in sides)))
    return curves


def _line(rows: Rows, along: str, most: float = SATURATED) -> FittedLine | None:
    complete = [row for row in rows if is_number(row.get(along)) and is_number(row.get(METRIC))]
    return line(unsaturated([(row[along], row[METRIC]) for row in complete], most))


@dataclass(frozen=True)
class PublishedNumber:
    """A number that the paper reports, what its own points give, and what ours give."""

    what: str
    reported: str
    published: Estimate
    here: Estimate

    def cells(self) -> Cells:
        """Return a row of a table."""
        points, ours = interval_cells("published", self.published), interval_cells("here", self.here)
        return {"what": self.what, "reported": self.reported, **points, **ours}


def claims(tables: Mapping[str, Rows]) -> list[PublishedNumber]:
    """Return the reported numbers for which the tables have enough points."""
    reports = {
        "dana-2025-1": ("experiment 4: exponent of the slopes' growth with d", "between 2 and 3", _exponent),
        "dana-2025-6": ("experiment 6: slope over the bound's slope", "1.3 (notebook: 1.5)", _ratio),
    }
    numbers = []
    for name, (what, reported, estimate) in reports.items():
        theirs, ours = estimate(published(name)), estimate(tables.get(name, ()))
        if theirs is not None and ours is not None:
            numbers.append(PublishedNumber(what, reported, theirs, ours))
    return numbers


def _exponent(rows: Rows) -> Estimate | None:
    if not has_slopes(rows):
        return None
    law = next(law for law in slopes_of(rows).comparison.fits if law.family == "power")
    return law["b"] if law.status == "fitted" else None


def _ratio(rows: Rows) -> Estimate | None:
    """Return the slope of accuracy over heads, over all points, in units of the bound's (1 − 1/ω)·d_h/ω²."""
    fitted = _line(rows, "heads", most=math.inf)
    if fitted is None:
        return None
    vocab, head_dim = shared_value(rows, "vocab"), shared_value(rows, "head_dim")
    unit = (1 - 1 / vocab) * head_dim / vocab**2
    return Estimate("ratio", *(end / unit for end in (fitted.slope.value, fitted.slope.low, fitted.slope.high)))


def record(tables: Mapping[str, Rows]) -> tuple[list[Gaps], list[Slope], list[PublishedNumber]]:
    """Return everything in the paper that can be compared with the tables: points, slopes, reported numbers."""
    all_slopes = [slope for name, rows in tables.items() for slope in slopes(name, rows)]
    return all_gaps(tables), all_slopes, claims(tables)


def summary(experiment: Gaps) -> str:
    """Return gaps in a sentence.

    >>> summary(Gaps("x", (Gap({"model_dim": 2, "heads": 9}, 0.5, 5, 0.52, None, 1, 0.5),)))
    'At 1 published point ours differ by 0.0200 on average (with signs +0.0200) and by 0.0200 at most (d = 2, H = 9).'
    """
    points = f"{len(experiment.points)} published point{'s' if len(experiment.points) != 1 else ''}"
    noise = "" if experiment.expected is None else f"; noise alone would make {experiment.expected:.4f}"
    average = f"{experiment.mean_absolute:.4f} on average (with signs {experiment.mean:+.4f}{noise})"
    largest = f"{abs(experiment.largest.gap):.4f} at most ({sizes_in_words(experiment.largest)})"
    return f"At {points} ours differ by {average.replace('-', '−')} and by {largest}."


def other_steps(rows: Rows, points: Rows) -> str:
    """Return a remark for published numbers if the table's models were trained for another number of steps."""
    here, there = values(rows, "steps"), values(points, "steps")
    return f" (of {there[-1]:,} steps; here {here[-1]:,})" if here and here != there else ""

"""Dana's paper in numbers: every published point and what we reached there, slopes, and what the paper says of them.

What the paper reports beside its points: that the slopes of experiment 4 (accuracy gained a head, over d) grow "between
quadratic and cubic"; and of experiment 6 that accuracy grows 1.3 times as fast with the heads as the bound does, or 1.5
times in the authors' notebook, which is what least squares makes of their points.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byheart.lab.fits import Estimate
from byheart.lab.linear import SATURATED, FittedLine, line, unsaturated
from byheart.lab.rows import is_number
from byheart.papers import results
from byheart.papers.dana_2025.gaps import Gap, Gaps, gaps
from byheart.papers.dana_2025.published import names, published
from byheart.report.lab.series import PROVED_BEFORE, Rows, colours, heading, label, legend_below, one, values
from byheart.report.lab.slopes import has_slopes, slopes_of
from byheart.report.style import INK, QUIET, canvas, save_picture

METRIC = "last_accuracy"
LETTERS = {"model_dim": "d", "head_dim": "d_h", "heads": "H", "hidden": "w"}
Cells = dict[str, Any]


def shipped() -> dict[str, Rows]:
    """The results that come with Byheart of all experiments that have published points."""
    return {name: results.table(name) for name in names() if name in results.names()}


def all_gaps(tables: Mapping[str, Rows]) -> list[Gaps]:
    """Those of each experiment, and of all together last."""
    found = [gaps(name, rows) for name, rows in tables.items()]
    return [*found, Gaps("all", tuple(point for each in found for point in each.points))]


def gap_cells(found: Gaps) -> Cells:
    """A row about one experiment; ``uniform_gap`` is accuracy over all contexts minus that over the sample, here."""
    largest = found.largest
    return {
        "experiment": found.name,
        "points": len(found.points),
        "mean_gap": found.mean,
        "mean_absolute_gap": found.mean_absolute,
        "noise_alone": found.expected,
        "largest_gap": largest.gap,
        "at": where(largest),
        "run_deviation": found.deviation,
        "within_noise": found.within,
        "uniform_gap": found.uniform,
    }


def point_cells(point: Gap) -> Cells:
    """A row about one point."""
    sizes = {name: point.settings[name] for name in LETTERS if name in point.settings}
    numbers = {"published": point.published, "here": point.here, "gap": point.gap, "run_deviation": point.deviation}
    return {**sizes, **numbers, "runs": point.runs, "within_noise": point.within(), "uniform": point.uniform}


def where(point: Gap) -> str:
    """The sizes of a point's network.

    >>> where(Gap({"vocab": 50, "model_dim": 10, "head_dim": 10, "heads": 21}, 0.8, 5, 0.79, None, 1, None))
    'd = 10, H = 21'
    """
    same = point.settings.get("model_dim") == point.settings.get("head_dim")
    shown = [name for name in LETTERS if name in point.settings and not (same and name == "head_dim")]
    return ", ".join(f"{LETTERS[name]} = {point.settings[name]}" for name in shown)


@dataclass(frozen=True)
class Slope:
    """How fast accuracy grows along a setting, at a size ``of`` the others, below 0.9: here and published."""

    experiment: str
    along: str
    of: str
    here: FittedLine | None
    published: FittedLine | None

    @property
    def letter(self) -> str:
        """Of the setting."""
        return LETTERS[self.along]

    def cells(self) -> Cells:
        """A row of a table."""
        sides = {"here": self.here, "published": self.published}
        numbers: Cells = {}
        for side, found in sides.items():
            numbers |= interval_cells(f"slope_{side}", None if found is None else found.slope)
            numbers[f"r_squared_{side}"] = None if found is None else found.r_squared.value
        return {"experiment": self.experiment, "curve": self.of, "along": self.letter, **numbers}


def interval_cells(name: str, found: Estimate | None) -> Cells:
    """A number and the ends of its interval."""
    ends = (None, None, None) if found is None else (found.value, found.low, found.high)
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def slopes(name: str, rows: Rows) -> list[Slope]:
    """A slope for each curve of an experiment's figure."""
    known = published(name)
    along = next((axis for axis in ("heads", "hidden", "head_dim") if len(values(known, axis)) > 1), "model_dim")
    if along in ("head_dim", "model_dim"):
        return [Slope(name, along, "", _line(rows, along), _line(known, along))]
    found = []
    for dim in values(rows, "model_dim"):
        sides = ([row for row in table if row.get("model_dim") == dim] for table in (rows, known))
        found.append(Slope(name, along, f"d = {dim}", *(_line(side, along) for side in sides)))
    return found


def _line(rows: Rows, along: str, most: float = SATURATED) -> FittedLine | None:
    known = [row for row in rows if is_number(row.get(along)) and is_number(row.get(METRIC))]
    return line(unsaturated([(row[along], row[METRIC]) for row in known], most))


@dataclass(frozen=True)
class PublishedNumber:
    """A number that the paper reports, what its own points give, and what ours give."""

    what: str
    reported: str
    published: Estimate
    here: Estimate

    def cells(self) -> Cells:
        """A row of a table."""
        points, ours = interval_cells("published", self.published), interval_cells("here", self.here)
        return {"what": self.what, "reported": self.reported, **points, **ours}


def claims(tables: Mapping[str, Rows]) -> list[PublishedNumber]:
    """Those for which the tables have enough."""
    made = {
        "dana-2025-1": ("experiment 4: exponent of the slopes' growth with d", "between 2 and 3", _exponent),
        "dana-2025-6": ("experiment 6: slope over the bound's slope", "1.3 (notebook: 1.5)", _ratio),
    }
    found = []
    for name, (what, reported, estimate) in made.items():
        theirs, ours = estimate(published(name)), estimate(tables.get(name, ()))
        if theirs is not None and ours is not None:
            found.append(PublishedNumber(what, reported, theirs, ours))
    return found


def _exponent(rows: Rows) -> Estimate | None:
    if not has_slopes(rows):
        return None
    law = next(law for law in slopes_of(rows).comparison.fits if law.family == "power")
    return law["b"] if law.status == "fitted" else None


def _ratio(rows: Rows) -> Estimate | None:
    """Slope of accuracy over heads, over all points, in units of the bound's (1 − 1/ω)·d_h/ω²."""
    found = _line(rows, "heads", most=math.inf)
    if found is None:
        return None
    vocab, head_dim = one(rows, "vocab"), one(rows, "head_dim")
    unit = (1 - 1 / vocab) * head_dim / vocab**2
    return Estimate("ratio", *(end / unit for end in (found.slope.value, found.slope.low, found.slope.high)))


def record(tables: Mapping[str, Rows]) -> tuple[list[Gaps], list[Slope], list[PublishedNumber]]:
    """Everything of the paper that can be held against the tables."""
    slopes_found = [slope for name, rows in tables.items() for slope in slopes(name, rows)]
    return all_gaps(tables), slopes_found, claims(tables)


def summary(found: Gaps) -> str:
    """Gaps in a sentence.

    >>> summary(Gaps("x", (Gap({"model_dim": 2, "heads": 9}, 0.5, 5, 0.52, None, 1, 0.5),)))
    'At 1 published point ours differ by 0.0200 on average (with signs +0.0200) and by 0.0200 at most (d = 2, H = 9).'
    """
    many = f"{len(found.points)} published point{'s' if len(found.points) != 1 else ''}"
    noise = "" if found.expected is None else f"; noise alone would make {found.expected:.4f}"
    average = f"{found.mean_absolute:.4f} on average (with signs {found.mean:+.4f}{noise})".replace("-", "−")
    return f"At {many} ours differ by {average} and by {abs(found.largest.gap):.4f} at most ({where(found.largest)})."


def draw_record(found: Sequence[Gaps], path: Path) -> None:
    """All published points: ours against theirs, and the gaps of each experiment beside what noise alone would make."""
    picture, (left, right) = canvas(path, columns=2, width=10.4, height=5.4)
    shades = colours(len(found))
    left.plot([0, 1], [0, 1], color=QUIET, **PROVED_BEFORE)
    for place, (each, shade) in enumerate(zip(found, shades, strict=True)):
        left.plot([p.published for p in each.points], [p.here for p in each.points], color=shade, **_MARK)
        right.plot([point.gap for point in each.points], [place] * len(each.points), color=shade, **_MARK)
        if each.expected is not None:
            right.plot([-each.expected, each.expected], [place, place], color=INK, **_NOISE)
    right.axvline(0, color=QUIET, **PROVED_BEFORE)
    right.set_yticks(range(len(found)), [each.name.removeprefix("dana-2025-") for each in found])
    right.invert_yaxis()
    right.locator_params(axis="x", nbins=6)
    many = sum(len(each.points) for each in found)
    label(left, "published training accuracy", "training accuracy here", f"{many} points")
    label(right, "here − published", "experiment", "Gaps by experiment")
    legend_below(
        picture,
        [
            ("a point: mean of our runs, and the published mean", _MARK),
            ("no gap", PROVED_BEFORE),
            ("band: ± the mean |gap| that noise alone would make", _NOISE | {"color": INK}),
        ],
    )
    heading(picture, "Dana, Pydi & Chevaleyre 2025: every published point, and ours")
    save_picture(picture, path)


_MARK: dict[str, Any] = {"marker": "o", "markersize": 4.5, "linestyle": "none", "alpha": 0.75}
_NOISE: dict[str, Any] = {"linestyle": "-", "linewidth": 11, "alpha": 0.2, "zorder": 1, "solid_capstyle": "butt"}

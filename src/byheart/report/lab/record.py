"""Dana's paper in numbers: every published point and what we reached there, slopes, and what the paper says of them.

What the paper reports beside its points: that the slopes of experiment 4 (accuracy gained a head, over d) grow "between
quadratic and cubic"; and of experiment 6 that accuracy grows 1.3 times as fast with the heads as the bound, 1.5 times in
the authors' notebook, which is what least squares makes of their points.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from byheart.errors import BadInput
from byheart.lab import results
from byheart.lab.fits import Estimate
from byheart.lab.gaps import Gap, Gaps, gaps
from byheart.lab.linear import Line, line, unsaturated
from byheart.lab.published import names, published
from byheart.lab.runs import is_number
from byheart.report.lab.series import Rows, values
from byheart.report.lab.slopes import has_slopes, slopes_of

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
    """A row about one experiment; "uniform gap" is accuracy over all contexts minus that over the sample, here."""
    largest = found.largest
    return {
        "experiment": found.name,
        "points": len(found.points),
        "mean gap": found.mean,
        "mean |gap|": found.mean_absolute,
        "noise alone": found.expected,
        "largest gap": largest.gap,
        "at": where(largest),
        "run s.d.": found.deviation,
        "in noise": found.within,
        "uniform gap": found.uniform,
    }


def point_cells(point: Gap) -> Cells:
    """A row about one point."""
    sizes = {name: point.settings[name] for name in LETTERS if name in point.settings}
    numbers = {"published": point.published, "here": point.here, "gap": point.gap, "run s.d.": point.deviation}
    within = point.within()
    said = None if within is None else "yes" if within else "no"
    return {**sizes, **numbers, "runs": point.runs, "in noise": said, "uniform": point.uniform}


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
    here: Line | None
    published: Line | None

    @property
    def letter(self) -> str:
        """Of the setting."""
        return LETTERS[self.along]

    def cells(self) -> Cells:
        """A row of a table."""
        sides = {"here": self.here, "published": self.published}
        numbers: Cells = {}
        for side, found in sides.items():
            numbers |= interval_cells(f"slope {side}", None if found is None else found.slope)
            numbers[f"R² {side}"] = None if found is None else found.r_squared.value
        return {"experiment": self.experiment, "curve": self.of, "along": self.letter, **numbers}


def interval_cells(name: str, found: Estimate | None) -> Cells:
    """A number and the ends of its interval."""
    ends = (None, None, None) if found is None else (found.value, found.low, found.high)
    return dict(zip((name, f"{name}, low", f"{name}, high"), ends, strict=True))


def slopes(name: str, rows: Rows) -> list[Slope]:
    """A slope for each curve of an experiment's figure."""
    known = published(name)
    along = next((axis for axis in ("heads", "hidden", "head_dim") if len(values(known, axis)) > 1), "model_dim")
    if along in ("head_dim", "model_dim"):
        return [Slope(name, along, "", _line(rows, along), _line(known, along))]
    found = []
    for dim in values(known, "model_dim"):
        sides = ([row for row in table if row["model_dim"] == dim] for table in (rows, known))
        found.append(Slope(name, along, f"d = {dim}", *(_line(side, along) for side in sides)))
    return found


def _line(rows: Rows, along: str) -> Line | None:
    return line(unsaturated([(row[along], row[METRIC]) for row in rows if is_number(row.get(METRIC))]))


@dataclass(frozen=True)
class Claim:
    """A number that the paper reports, what its own points give, and what ours give."""

    what: str
    reported: str
    published: Estimate
    here: Estimate

    def cells(self) -> Cells:
        """A row of a table."""
        points, ours = interval_cells("published points", self.published), interval_cells("here", self.here)
        return {"what": self.what, "the paper says": self.reported, **points, **ours}


def claims(tables: Mapping[str, Rows]) -> list[Claim]:
    """Those of which the tables have the results."""
    found = []
    if (first := tables.get("dana-2025-1")) and has_slopes(first):
        growth = [_exponent(rows) for rows in (published("dana-2025-1"), first)]
        found.append(Claim("experiment 4: exponent of the slopes' growth with d", "between 2 and 3", *growth))
    if sixth := tables.get("dana-2025-6"):
        ratios = [_ratio(rows) for rows in (published("dana-2025-6"), sixth)]
        found.append(Claim("experiment 6: slope over the bound's slope", "1.3 (notebook: 1.5)", *ratios))
    return found


def _exponent(rows: Rows) -> Estimate:
    law = next(law for law in slopes_of(rows).comparison.fits if law.family == "power")
    return law["b"]


def _ratio(rows: Rows) -> Estimate:
    """Slope of accuracy over heads, over all points, in units of the bound's (1 − 1/ω)·d_h/ω²."""
    vocab, head_dim = rows[0]["vocab"], rows[0]["head_dim"]
    found = line([(row["heads"], row[METRIC]) for row in rows if is_number(row.get(METRIC))])
    if found is None:
        raise BadInput("accuracy over heads has no slope here; expected results of three numbers of heads or more")
    unit = (1 - 1 / vocab) * head_dim / vocab**2
    return Estimate("ratio", *(end / unit for end in (found.slope.value, found.slope.low, found.slope.high)))


def record(tables: Mapping[str, Rows]) -> tuple[list[Gaps], list[Slope], list[Claim]]:
    """Everything of the paper that can be held against the tables."""
    slopes_found = [slope for name, rows in tables.items() for slope in slopes(name, rows)]
    return all_gaps(tables), slopes_found, claims(tables)


def summary(found: Gaps) -> str:
    """Gaps in a sentence.

    >>> from byheart.lab.gaps import Gap
    >>> summary(Gaps("x", (Gap({"model_dim": 2, "head_dim": 2, "heads": 9}, 0.5, 5, 0.52, 0.01, 5, 0.5),)))
    'At 1 published point ours differ by 0.020 on average (0.020 too high, noise alone: 0.005) and by 0.020 at most (d = 2, H = 9).'
    """
    many = f"{len(found.points)} published point{'s' if len(found.points) != 1 else ''}"
    noise = "" if found.expected is None else f", noise alone: {found.expected:.3f}"
    side = f"{abs(found.mean):.3f} too {'high' if found.mean >= 0 else 'low'}{noise}"
    largest = f"{abs(found.largest.gap):.3f} at most ({where(found.largest)})"
    return f"At {many} ours differ by {found.mean_absolute:.3f} on average ({side}) and by {largest}."

"""Dana's paper in numbers: its 239 published points beside our results, slopes, and what attention alone holds.

**Published points** are in ``published.csv``: ``last_accuracy`` is the mean training accuracy of 100 of the last
batches, over ``runs`` runs of ``steps`` steps. How far single runs lay apart was not published.

**Gaps.** At a point there are n runs here, with mean and standard deviation s, and a published mean of m runs. *If the
published runs scatter as ours do*, around the same value, the gap of the means over s√(1/n + 1/m) is Student's t with
n − 1 degrees of freedom. So ``within`` says whether noise explains a gap, as it would in 95 % of all; ``expected`` is
the mean |gap| that noise alone would make, √(2/π)·σ√(1/n + 1/m) with s/c₄(n) for σ, right on average if the noise is
Gaussian, which is not checked.

**Reported numbers.** The slopes of experiment 4 (accuracy gained per head, over d) grow "between quadratic and cubic".
In experiment 6 accuracy grows 1.3 times as fast with the heads as the bound does, or 1.5 times in the authors'
notebook, which is what least squares makes of their points.

**Held.** Right answers of one layer of attention, trained on all ω² contexts of two tokens with random answers, are
proved one by one from its saved weights. Beside them stand H·d_h + d, which some weights hold whatever the answers are
(their Theorem 1); the proved answers of the network that ``byheart build dana-2025 --hold`` makes of that proof;
guesses; and the most associations for which W parameters of 32 bits could reach *every* labelling. A trained network
is a fact about one seed and bounds nothing: another may hold more, or fewer.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

from byheart.bounds import counting
from byheart.bounds.dana_2025 import capacity
from byheart.errors import BadInput
from byheart.lab.fits import (
    FORMULAS,
    LEVEL,
    Estimate,
    FamilyComparison,
    FamilyFit,
    compare,
    fit,
    student_quantile,
)
from byheart.lab.linear import SATURATED, FittedLine, line, unsaturated
from byheart.lab.rows import is_number
from byheart.papers import results
from byheart.papers.curves import Cells, Rows, check_columns, grouped_rows, interval_cells, shared_value, values

LETTERS = {"vocab": "ω", "model_dim": "d", "head_dim": "d_h", "heads": "H", "hidden": "w"}
SETTINGS = ("experiment", "vocab", "model_dim", "head_dim", "heads", "hidden", "layers")
"""Columns that a row must share with a published point to be about the same network."""
METRIC = "last_accuracy"
"""The accuracy that the paper reports, and of which slopes are taken."""
LEAST_POINTS = 3
"""Number of points that a slope takes, and number of different d that a law takes."""
ROUNDING = 5e-6
"""Rounding error of published numbers, which have five digits."""
BITS = 32
"""Bits of a trained parameter."""
QUOTED_HEADS = 20
"""Number of heads of the network that the finding quotes, if the table has it."""


def published_names() -> list[str]:
    """Return the experiments that have published points, by their names in the lab."""
    return list(dict.fromkeys(f"dana-2025-{point['experiment']}" for point in _points()))


def published(name: str) -> list[Cells]:
    """Return an experiment's points."""
    if name not in published_names():
        raise BadInput(f"no numbers of {name!r} were published; expected one of {', '.join(published_names())}")
    return [dict(point) for point in _points() if f"dana-2025-{point['experiment']}" == name]


def published_beside(rows: Rows) -> list[Cells]:
    """Return the points of networks that the table has rows of; rows that lack some of :data:`SETTINGS` have none."""
    networks = {settings_of(row) for row in rows}
    return [dict(point) for point in _points() if settings_of(point) in networks]


def settings_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values of :data:`SETTINGS`, None for missing ones; experiments' names are texts, even "1"."""
    return (str(row.get("experiment")), *(row.get(name) for name in SETTINGS[1:]))


@cache
def _points() -> tuple[Cells, ...]:
    text = resources.files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(row | {"experiment": str(row["experiment"])} for row in results.read(text))


def other_steps(rows: Rows, points: Rows) -> str:
    """Return a remark for published numbers if the table's models were trained for another number of steps."""
    here, there = values(rows, "steps"), values(points, "steps")
    return f" (of {there[-1]:,} steps; here {here[-1]:,})" if here and here != there else ""


@dataclass(frozen=True)
class Gap:
    """One point: the published mean, the mean of ``runs`` runs here, and their standard deviation.

    ``uniform`` is the accuracy over all contexts; ``here`` and ``published`` are over the sample that was trained on.
    """

    settings: Cells
    published: float
    published_runs: int
    here: float
    deviation: float | None
    runs: int
    uniform: float | None

    @property
    def gap(self) -> float:
        """Ours minus theirs."""
        return self.here - self.published

    @property
    def noise(self) -> float | None:
        """Standard deviation of the gap, if the published runs scatter as ours; None for a single run."""
        if self.deviation is None:
            return None
        return self.deviation * math.sqrt(1 / self.runs + 1 / self.published_runs)

    @property
    def within(self) -> bool | None:
        """True if noise explains the gap; None for a single run."""
        if self.noise is None:
            return None
        return bool(abs(self.gap) <= student_quantile(LEVEL, self.runs - 1) * self.noise + ROUNDING)

    @property
    def sizes(self) -> str:
        """Sizes of the point's network."""
        same = self.settings.get("model_dim") == self.settings.get("head_dim")
        omitted = {"vocab", "head_dim"} if same else {"vocab"}
        shown = [name for name in LETTERS if name in self.settings and name not in omitted]
        return ", ".join(f"{LETTERS[name]} = {self.settings[name]}" for name in shown)

    def cells(self) -> Cells:
        """Return a row of a table."""
        sizes = {name: self.settings[name] for name in LETTERS if name in self.settings and name != "vocab"}
        numbers = {"published": self.published, "here": self.here, "gap": self.gap, "run_deviation": self.deviation}
        return {**sizes, **numbers, "runs": self.runs, "within_noise": self.within, "uniform": self.uniform}


@dataclass(frozen=True)
class Gaps:
    """All points of one experiment, or of several."""

    name: str
    points: tuple[Gap, ...]

    @property
    def mean(self) -> float:
        """Mean of the gaps, with their signs."""
        return statistics.fmean(point.gap for point in self.points)

    @property
    def mean_absolute(self) -> float:
        """Mean size of the gaps."""
        return statistics.fmean(abs(point.gap) for point in self.points)

    @property
    def largest(self) -> Gap:
        """The point with the largest gap."""
        return max(self.points, key=lambda point: abs(point.gap))

    @property
    def deviation(self) -> float | None:
        """Standard deviation of single runs, the root of the mean variance; None without repetitions."""
        variances = [point.deviation**2 for point in self.points if point.deviation is not None]
        return math.sqrt(statistics.fmean(variances)) if variances else None

    @property
    def expected(self) -> float | None:
        """Mean |gap| that noise alone would make; None without repetitions."""
        noises = [(point.noise, point.runs) for point in self.points]
        sizes = [math.sqrt(2 / math.pi) * noise / _c4(runs) for noise, runs in noises if noise is not None]
        return statistics.fmean(sizes) if sizes else None

    @property
    def within(self) -> int:
        """Number of gaps that noise explains, among points with repetitions."""
        return sum(point.within is True for point in self.points)

    @property
    def uniform(self) -> float | None:
        """Mean of our accuracy over all contexts minus that over the sample."""
        differences = [point.uniform - point.here for point in self.points if point.uniform is not None]
        return statistics.fmean(differences) if differences else None

    def cells(self) -> Cells:
        """Return a row of a table."""
        return {
            "experiment": self.name,
            "points": len(self.points),
            "mean_gap": self.mean,
            "mean_absolute_gap": self.mean_absolute,
            "noise_alone": self.expected,
            "largest_gap": self.largest.gap,
            "at": self.largest.sizes,
            "run_deviation": self.deviation,
            "within_noise": self.within,
            "uniform_gap": self.uniform,
        }

    def in_words(self) -> str:
        """Return the gaps in a sentence.

        >>> Gaps("x", (Gap({"model_dim": 2, "heads": 9}, 0.5, 5, 0.52, None, 1, 0.5),)).in_words()
        'At 1 published point ours differ by 0.0200 on average (with signs +0.0200) and by 0.0200 at most \
(d = 2, H = 9).'
        """
        points = f"{len(self.points)} published point{'s' if len(self.points) != 1 else ''}"
        noise = "" if self.expected is None else f"; noise alone would make {self.expected:.4f}"
        average = f"{self.mean_absolute:.4f} on average (with signs {self.mean:+.4f}{noise})"
        largest = f"{abs(self.largest.gap):.4f} at most ({self.largest.sizes})"
        return f"At {points} ours differ by {average.replace('-', '−')} and by {largest}."


def gaps(name: str, rows: Rows) -> Gaps:
    """Return the gaps at all published points that the table has runs of."""
    runs: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if is_number(row.get(METRIC)):
            runs.setdefault(settings_of(row), []).append(row)
    points = [point for point in published_beside(rows) if settings_of(point) in runs]
    if not points:
        raise BadInput(f"{name}: no point of it was published; expected results of Dana's experiments")
    return Gaps(name, tuple(_gap(point, runs[settings_of(point)]) for point in points))


def _gap(point: Cells, rows: Rows) -> Gap:
    reached = [row[METRIC] for row in rows]
    everywhere = [row["accuracy"] for row in rows if is_number(row.get("accuracy"))]
    return Gap(
        {name: point[name] for name in SETTINGS if point[name] is not None},
        point[METRIC],
        point["runs"],
        statistics.fmean(reached),
        statistics.stdev(reached) if len(reached) > 1 else None,
        len(reached),
        statistics.fmean(everywhere) if everywhere else None,
    )


def _c4(runs: int) -> float:
    """Return the mean standard deviation of ``runs`` Gaussian numbers, in units of the true one."""
    return math.sqrt(2 / (runs - 1)) * math.exp(math.lgamma(runs / 2) - math.lgamma((runs - 1) / 2))


@dataclass(frozen=True)
class HeadSlopes:
    """Experiment 4: accuracy gained per head, by d: the slope of every repetition, and the laws fitted to them."""

    dims: list[float]
    slopes: list[float]
    comparison: FamilyComparison


def slopes_of(rows: Rows) -> HeadSlopes:
    """Return slopes of accuracy over heads, one for each d and seed, from points below 0.9, with their laws."""
    check_columns(rows, "model_dim", "heads", METRIC)
    dims, slopes = measured_slopes(rows)
    if not dims:
        raise BadInput(f"no d has three points of {METRIC} below {SATURATED}; expected some, to take slopes of")
    return HeadSlopes(dims, slopes, compare(dims, slopes, ("linear", "quadratic", "cubic", "power")))


def has_slopes(rows: Rows) -> bool:
    """Return True if a law can be fitted: three d have a slope each."""
    return len(set(measured_slopes(rows)[0])) >= LEAST_POINTS


def measured_slopes(rows: Rows) -> tuple[list[float], list[float]]:
    """Return d and slope for each d and seed that has three points or more below 0.9."""
    dims, slopes = [], []
    sized = [row for row in rows if row.get("model_dim") is not None and is_number(row.get(METRIC))]
    for (dim, _), some in grouped_rows(sized, "model_dim", "seed").items():
        points = [(row["heads"], row[METRIC]) for row in some if "heads" in row and row[METRIC] < SATURATED]
        if len(points) < LEAST_POINTS:
            continue
        law = fit([x for x, _ in points], [y for _, y in points], "linear", held_out=False)
        if law.status == "fitted":
            dims.append(float(dim))
            slopes.append(law["b"].value)
    return dims, slopes


def describe(law: FamilyFit) -> str:
    """Return a fit in one line: formula, last parameter with its interval, both criteria.

    >>> describe(fit([1, 2, 3, 4, 5, 6], [2.1, 3.9, 6.1, 7.9, 10.1, 11.9], "linear"))
    'a + b·x, b = 1.98 (1.91 to 2.06), AICc −10.2, left out 0.14'
    """
    if law.status == "failed":
        return f"{FORMULAS[law.family]} failed: {law.reason}"
    name = "b" if law.family.startswith("power") else law.estimates[-1].name
    text = f"{FORMULAS[law.family]}, {name} = {law[name].value:.3g} ({law[name].low:.3g} to {law[name].high:.3g})"
    text += "" if law.aicc is None else f", AICc {law.aicc:.1f}"
    text += "" if law.leave_one_out is None else f", left out {law.leave_one_out:.3g}"
    return text.replace("-", "−")


def preference(comparison: FamilyComparison) -> str:
    """Say which law the two criteria prefer."""
    best = comparison.by_aicc
    if best is None:
        return "Too few points to compare laws"
    if comparison.agreed:
        return f"AICc and left-out error both prefer {best.family}"
    other = comparison.by_leave_one_out
    return f"AICc prefers {best.family}, left-out error {'none' if other is None else other.family}: undecided"


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
    sides = (rows, published(name))
    axes = ("heads", "hidden", "head_dim")
    along = next((axis for axis in axes if len(values(sides[1], axis)) > 1), "model_dim")
    if along in ("head_dim", "model_dim"):
        return [Slope(name, along, "", *(line(unsaturated(_measured(side, along))) for side in sides))]
    curves = []
    for dim in values(rows, "model_dim"):
        some = ([row for row in side if row.get("model_dim") == dim] for side in sides)
        curves.append(Slope(name, along, f"d = {dim}", *(line(unsaturated(_measured(s, along))) for s in some)))
    return curves


def _measured(rows: Rows, along: str) -> list[tuple[float, float]]:
    complete = [row for row in rows if is_number(row.get(along)) and is_number(row.get(METRIC))]
    return [(row[along], row[METRIC]) for row in complete]


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
    fitted = line(_measured(rows, "heads"))
    if fitted is None:
        return None
    vocab, head_dim = shared_value(rows, "vocab"), shared_value(rows, "head_dim")
    unit = (1 - 1 / vocab) * head_dim / vocab**2
    return Estimate("ratio", *(end / unit for end in (fitted.slope.value, fitted.slope.low, fitted.slope.high)))


def shipped_tables() -> dict[str, Rows]:
    """Return the results that come with Byheart of all experiments with published points."""
    return {name: results.table(name) for name in published_names() if name in results.names()}


def record(tables: Mapping[str, Rows]) -> tuple[list[Gaps], list[Slope], list[PublishedNumber]]:
    """Return everything in the paper that can be compared with the tables: gaps, slopes, reported numbers.

    The gaps are those of each experiment, and last of all together.
    """
    each = [gaps(name, rows) for name, rows in tables.items()]
    together = Gaps("all", tuple(point for experiment in each for point in experiment.points))
    return [*each, together], [slope for name, rows in tables.items() for slope in slopes(name, rows)], claims(tables)


@dataclass(frozen=True)
class MemorizedCount:
    """A trained network, and how many of its ``examples`` it gets right: a row of the table ``held``."""

    vocab: int
    model_dim: int
    head_dim: int
    heads: int
    parameters: int
    examples: int
    measured: int
    """Right answers in floats, while it was trained."""
    right: int
    """Answers proved right."""
    built: int
    """Answers proved right of the network that was built."""
    constant: int
    """Examples with the commonest answer."""

    @property
    def promised(self) -> int:
        """H·d_h + d, or all examples if there are fewer."""
        return min(capacity(self.heads, self.head_dim, self.model_dim), self.examples)

    @property
    def guessed(self) -> float:
        """Mean number of right uniform guesses."""
        return self.examples / self.vocab

    @property
    def most(self) -> int:
        """Largest number of associations that counting allows these parameters."""
        return counting.most(self.parameters, self.vocab, BITS)

    def cells(self) -> dict[str, int | float]:
        """Return a row of a table for people."""
        return {
            "H": self.heads,
            "parameters": self.parameters,
            "asked for": self.examples,
            "trained, measured": self.measured,
            "trained, proved": self.right,
            "promised: H·d_h + d": self.promised,
            "built, proved": self.built,
            "commonest answer": self.constant,
            "uniform guesses": self.guessed,
            f"counting, {BITS} bits": self.most,
        }

    def in_words(self) -> str:
        """Return the finding as a sentence."""
        return (
            f"Of {self.examples:,} associations {self.parameters:,} parameters (H = {self.heads}) hold {self.right:,} "
            f"after training, proved one by one; the theorem promises {self.promised:,}, the network that its proof "
            f"builds holds {self.built:,}, the commonest answer gets {self.constant:,}. Counting allows {self.most:,}."
        )


def held_of(rows: Rows) -> list[MemorizedCount]:
    """Return the rows of a table, fewest heads first."""
    names = [field.name for field in fields(MemorizedCount)]
    check_columns(rows, *names)
    counts = [MemorizedCount(**{name: int(row[name]) for name in names}) for row in rows]
    return sorted(counts, key=lambda count: count.heads)


def quoted(table: Sequence[MemorizedCount]) -> MemorizedCount:
    """Return the network that the finding quotes: that of :data:`QUOTED_HEADS` heads, or else of most."""
    return next((held for held in table if held.heads == QUOTED_HEADS), table[-1])

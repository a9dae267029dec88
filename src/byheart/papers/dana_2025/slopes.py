"""Dana's experiment 4: how much accuracy each head adds, against d, and which law this follows.

The paper reports that the slopes of accuracy over heads grow with d "between quadratic and cubic".
"""

from dataclasses import dataclass

from byheart.errors import BadInput
from byheart.lab.fits import FORMULAS, FamilyComparison, FamilyFit, compare, fit
from byheart.lab.linear import SATURATED
from byheart.lab.rows import is_number
from byheart.papers.curves import Rows, check_columns, values

METRIC = "last_accuracy"
"""The accuracy that the paper reports, and of which slopes are taken."""
LEAST_POINTS = 3
"""Number of points that a slope takes, and number of different d that a law takes."""


@dataclass(frozen=True)
class Slopes:
    """Accuracy gained per head, by d: the slope of every repetition, and the laws fitted to the slopes."""

    dims: list[float]
    slopes: list[float]
    comparison: FamilyComparison


def slopes_of(rows: Rows) -> Slopes:
    """Return slopes of accuracy over heads, one for each d and seed, from points below 0.9, with their laws."""
    check_columns(rows, "model_dim", "heads", METRIC)
    dims, slopes = measured_slopes(rows)
    if not dims:
        raise BadInput(f"no d has three points of {METRIC} below {SATURATED}; expected some, to take slopes of")
    return Slopes(dims, slopes, compare(dims, slopes, ("linear", "quadratic", "cubic", "power")))


def has_slopes(rows: Rows) -> bool:
    """Return True if a law can be fitted: three d have a slope each."""
    return len(set(measured_slopes(rows)[0])) >= LEAST_POINTS


def measured_slopes(rows: Rows) -> tuple[list[float], list[float]]:
    """Return d and slope for each d and seed that has three points or more below 0.9."""
    dims, slopes = [], []
    for dim in values(rows, "model_dim"):
        for seed in values(rows, "seed") or [None]:
            some = [row for row in rows if row.get("model_dim") == dim and row.get("seed") == seed]
            complete = [row for row in some if "heads" in row and is_number(row.get(METRIC))]
            points = [(row["heads"], row[METRIC]) for row in complete if row[METRIC] < SATURATED]
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

"""Dana's experiment 4: how much accuracy a head brings, against d, and which law that follows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from byheart.errors import BadInput
from byheart.lab.fits import FORMULAS, Comparison, FamilyFit, compare, fit
from byheart.lab.linear import SATURATED
from byheart.lab.rows import is_number
from byheart.papers.dana_2025.published import beside
from byheart.report.lab.dana import other_steps
from byheart.report.lab.series import (
    MEASURED,
    PROVED,
    PUBLISHED,
    Rows,
    check_columns,
    draw_measured,
    heading,
    label,
    legend,
    one,
    runs,
    series,
    values,
)
from byheart.report.style import INK, QUIET, canvas, save_picture

METRIC = "last_accuracy"
"""What the paper reports, and slopes are taken of."""


@dataclass(frozen=True)
class Slopes:
    """Accuracy gained a head, by d: every repetition's slope, and the laws that were fitted to them."""

    dims: list[float]
    slopes: list[float]
    comparison: Comparison


def slopes_of(rows: Rows) -> Slopes:
    """Dana's experiment 4: slopes of accuracy over heads, one for each d and seed, from points below 0.9."""
    check_columns(rows, "model_dim", "heads", METRIC)
    dims, slopes = _slopes(rows)
    if not dims:
        raise BadInput(f"no d has three points of {METRIC} below {SATURATED}; expected some, to take slopes of")
    return Slopes(dims, slopes, compare(dims, slopes, ("linear", "quadratic", "cubic", "power")))


def has_slopes(rows: Rows) -> bool:
    """Whether a law could be fitted: three d with a slope each."""
    return len(set(_slopes(rows)[0])) > 2


def _slopes(rows: Rows) -> tuple[list[float], list[float]]:
    """d and slope, for each d and seed that has three points or more."""
    dims, slopes = [], []
    for dim in values(rows, "model_dim"):
        for seed in values(rows, "seed") or [None]:
            some = [row for row in rows if row.get("model_dim") == dim and row.get("seed") == seed]
            known = [row for row in some if "heads" in row and is_number(row.get(METRIC))]
            points = [(row["heads"], row[METRIC]) for row in known if row[METRIC] < SATURATED]
            if len(points) < 3:
                continue
            found = fit([x for x, _ in points], [y for _, y in points], "linear", held_out=False)
            if found.status == "fitted":
                dims.append(float(dim))
                slopes.append(found["b"].value)
    return dims, slopes


def draw_slopes(rows: Rows, path: Path) -> None:
    """Dana's experiment 4: slopes over d, what the theorem promises of them, and fitted laws."""
    found = slopes_of(rows)
    picture, (axes,) = canvas(path, height=5.2)
    curve = series([{"d": d, "s": s} for d, s in zip(found.dims, found.slopes, strict=True)], None, "d", "s")[0]
    vocab = one(rows, "vocab")
    xs = np.linspace(min(curve.xs), max(curve.xs), 200)
    entries: list[tuple[str, dict[str, Any]]] = [(f"measured, {runs([curve])}", MEASURED | {"color": INK})]
    best = _draw_fits(axes, found.comparison, xs, entries)
    draw_measured(axes, curve, INK, linestyle="none", markersize=5)
    known = beside(rows)
    if _slopes(known)[0]:
        quoted = slopes_of(known)
        axes.plot(quoted.dims, quoted.slopes, color=INK, **PUBLISHED)
        entries.append((f"of the published accuracies{other_steps(rows, known)}", PUBLISHED | {"color": INK}))
    axes.plot(xs, (1 - 1 / vocab) * xs / vocab**2, color=QUIET, **PROVED)
    entries.append(("proved: (1 − 1/ω)·d/ω², the slope of the bound", PROVED | {"color": QUIET}))
    axes.set(ylim=(0, None))
    label(axes, "d = d_h", "accuracy gained a head", f"Slopes of accuracy over heads, below {SATURATED}; ω = {vocab}")
    legend(axes, entries, loc="upper left", fontsize=8)
    heading(picture, best)
    save_picture(picture, path)


def _draw_fits(axes: Any, found: Comparison, xs: Any, entries: list[tuple[str, dict[str, Any]]]) -> str:
    """Every fit that succeeded, the preferred one with its band; what the criteria say, in words."""
    styles = ["-", (0, (6, 1.5)), (0, (3, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1))]
    preferred = found.by_aicc
    for index, law in enumerate(found.fits):
        if law.status == "failed":
            continue
        colour = "#b3123f" if law is preferred else "#1f5fa8"
        style = {"color": colour, "linestyle": styles[index], "linewidth": 1.8 if law is preferred else 1.2}
        axes.plot(xs, law.at(xs), zorder=2.5 if law is preferred else 2, **style)
        entries.append((f"fitted: {describe(law)}", style))
        if law is preferred:
            axes.fill_between(xs, *law.band(xs), color=colour, alpha=0.12, linewidth=0)
    failed = [f"{law.family} failed: {law.reason}" for law in found.fits if law.status == "failed"]
    return ". ".join([verdict(found), *failed])


def describe(law: FamilyFit) -> str:
    """A fit in a line: formula, last parameter with its interval, both criteria.

    >>> describe(fit([1, 2, 3, 4, 5, 6], [2.1, 3.9, 6.1, 7.9, 10.1, 11.9], "linear"))
    'a + b·x, b = 1.98 (1.91 to 2.06), AICc −10.2, left out 0.14'
    """
    if law.status == "failed":
        return f"{FORMULAS[law.family]} failed: {law.reason}"
    name = "b" if law.family.startswith("power") else law.estimates[-1].name
    said = f"{FORMULAS[law.family]}, {name} = {law[name].value:.3g} ({law[name].low:.3g} to {law[name].high:.3g})"
    said += "" if law.aicc is None else f", AICc {law.aicc:.1f}"
    said += "" if law.leave_one_out is None else f", left out {law.leave_one_out:.3g}"
    return said.replace("-", "−")


def verdict(found: Comparison) -> str:
    """What the two criteria prefer."""
    if found.by_aicc is None:
        return "Too few points to compare laws"
    if found.agreed:
        return f"AICc and left-out error both prefer {found.by_aicc.family}"
    other = found.by_leave_one_out
    return f"AICc prefers {found.by_aicc.family}, left-out error {'none' if other is None else other.family}: undecided"

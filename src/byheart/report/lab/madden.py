"""Figure of Madden, Fox & Thrampoulidis 2024: the loss above the entropy of the data, against hidden neurons."""

import math
from pathlib import Path
from typing import Any

from byheart.lab.runs import is_number
from byheart.report.lab.series import (
    MEASURED,
    PROVED,
    PROVED_BEFORE,
    Entry,
    Rows,
    check_columns,
    colours,
    draw_line,
    draw_measured,
    heading,
    label,
    legend_below,
    name_ends,
    one,
    runs,
    series,
    values,
)
from byheart.report.style import INK, QUIET, canvas, save_picture

WITHIN = 0.01
"""Of the entropy: what counts as memorized."""
WITHIN_LINE: dict[str, Any] = {"linestyle": "-.", "linewidth": 1}
REACHED: dict[str, Any] = {"color": "#b3123f", "marker": "s", "markersize": 5, "linewidth": 1.4}
MISSED: dict[str, Any] = {"color": "#b3123f", "marker": "^", "markersize": 7, "linestyle": "none", "mfc": "white"}


def smallest_within(rows: Rows, within: float = WITHIN) -> list[tuple[int, int | None]]:
    """For each number of stories, the least m whose every run came within ``within`` of the entropy; None if none."""
    found = []
    for stories in values(rows, "stories"):
        worst: dict[int, float] = {}
        for row in rows:
            if row["stories"] == stories:
                excess = row["relative_excess"] if is_number(row["relative_excess"]) else math.inf
                worst[row["hidden"]] = max(worst.get(row["hidden"], -math.inf), excess)
        found.append((stories, min((m for m, excess in worst.items() if excess <= within), default=None)))
    return found


def draw_madden(rows: Rows, path: Path) -> None:
    """Madden's figures: how far the loss stays above the entropy, against m; and the smallest m within 1 %."""
    check_columns(rows, "stories", "hidden", "relative_excess", "contexts", "vocab", "frozen")
    picture, (left, right) = canvas(path, columns=2, width=10.4, height=5.4)
    curves = series(rows, "stories", "hidden", "relative_excess")
    shades = colours(len(curves))
    left.set(yscale="log")
    for curve, shade in zip(curves, shades, strict=True):
        draw_measured(left, curve, shade)
    left.axhline(WITHIN, color=QUIET, **WITHIN_LINE)
    left.set_xscale("log", base=2)
    left.xaxis.set_major_formatter("{x:,.0f}")
    name_ends(left, curves, [f"n = {curve.key:,}" for curve in curves], shades)
    label(left, "m, hidden neurons", "(loss − entropy) / entropy", "How far the loss is above the data's entropy")
    entries = [(f"measured, {runs(curves)}", MEASURED), ("1 % of the entropy", WITHIN_LINE)]
    legend_below(picture, [*entries, *_draw_smallest(right, rows)])
    which = "embedding and attention frozen" if one(rows, "frozen") else "everything trained"
    heading(picture, f"Hidden neurons that take n stories of 10 tokens to their entropy; {which}")
    save_picture(picture, path)


def _draw_smallest(axes: Any, rows: Rows) -> list[Entry]:
    """The smallest m within 1 %; if none of the grid is, an arrow upwards at the largest, which is no number."""
    found, largest = smallest_within(rows), max(row["hidden"] for row in rows)
    reached = [(n, m) for n, m in found if m is not None]
    missed = [n for n, m in found if m is None]
    axes.plot([n for n, _ in reached], [m for _, m in reached], **REACHED)
    axes.plot(missed, [largest] * len(missed), **MISSED)
    draw_line(axes, sorted({(row["stories"], row["contexts"]) for row in rows}), INK, PROVED)
    needed = sorted({(row["stories"], _counted(row["contexts"], row["vocab"])) for row in rows})
    draw_line(axes, needed, INK, PROVED_BEFORE)
    axes.set(yscale="log")
    axes.set_xticks(values(rows, "stories"))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    label(axes, "n, stories", "m, hidden neurons", "The smallest m within 1 % of the entropy")
    return [
        ("measured: smallest m of the grid, all runs within", REACHED),
        *([(f"measured: more than {largest:,}", MISSED)] if missed else []),
        ("proved: m = N, contexts, suffices", PROVED | {"color": INK}),
        ("proved: m that any N distributions need, by counting", PROVED_BEFORE | {"color": INK}),
    ]


def _counted(contexts: int, vocab: int) -> float:
    """The m with ω(17 + m) + 1088 + 17m = N(ω − 1): fewer parameters cannot fit every N distributions."""
    return max(1.0, (contexts * (vocab - 1) - 17 * vocab - 1088) / (vocab + 17))

"""Figures of Mahdavi, Liao & Thrampoulidis 2024: accuracy and error against heads, n and d_h; saturated heads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from byheart.bounds import mahdavi_2024
from byheart.errors import BadInput
from byheart.papers.mahdavi_2024.blocks import AXES, axis_of
from byheart.papers.results import Presence
from byheart.report.lab.series import (
    MEASURED,
    PROVED,
    PROVED_BEFORE,
    Entry,
    Rows,
    check_columns,
    colours,
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

NAMES = {"heads": "H, heads", "length": "n, tokens of a context", "head_dim": "d_h, dimension of a head"}
AT_LENGTH: dict[str, Any] = {"linestyle": "-.", "linewidth": 1}
OVER_SEEDS = "mean ± s.d. over seeds"
"""Of several blocks, which may have different numbers of them: their titles say how many."""
CONTEXTS = {"random": "a context for each example", "fixed": "one context for all"}


def draw_mahdavi(rows: Rows, path: Path, along: str) -> None:
    """One of Mahdavi's figures: accuracy, or the mean squared error, along heads, length or head_dim."""
    if along not in NAMES:
        raise BadInput(f"along is {along!r}; expected one of {', '.join(NAMES)}")
    picture, (axes,) = canvas(path)
    legend_below(picture, _draw_block(axes, rows, along, f"{_kind(rows)}: "))
    save_picture(picture, path)


@dataclass(frozen=True)
class GridPanel:
    """A block of the paper's figures: the configs that are planned, the results that there are, and how many."""

    planned: Rows
    rows: Rows
    presence: Presence

    @property
    def along(self) -> str:
        """What varies in it."""
        return axis_of(self.planned) or AXES[0]

    @property
    def place(self) -> tuple[str, str]:
        """Its row and its column."""
        return one(self.planned, "context"), self.along


def draw_blocks(kind: str, blocks: Sequence[GridPanel], path: Path) -> None:
    """All blocks of labels, or of targets, as one figure: a row for each kind of context, a column for what varies.

    A block without results has its panel too, which says so; one that is not whole says how much of it is there.
    """
    places = {panel.place: panel for panel in blocks}
    contexts = [context for context in CONTEXTS if any(context == place[0] for place in places)]
    axes_there = [along for along in AXES if any(along == place[1] for place in places)]
    grid = [(context, along) for context in contexts for along in axes_there]
    cells = [index for index, place in enumerate(grid) if place in places]
    rows, columns = len(contexts), len(axes_there)
    sizes = {"width": max(8.4, 4.0 * columns), "height": 0.7 + 3.7 * rows}
    picture, panels = canvas(path, rows=rows, columns=columns, cells=cells, **sizes)
    entries: dict[str, dict[str, Any]] = {}
    for axes, index in zip(panels, cells, strict=True):
        entries |= dict(_draw_panel(axes, places[grid[index]]))
    legend_below(picture, list(entries.items()))
    heading(picture, f"{kind} by one attention layer: what is memorized")
    save_picture(picture, path)


def _draw_panel(axes: Any, panel: GridPanel) -> list[Entry]:
    """A block, or an empty panel with the axis that it will have."""
    if panel.rows:
        return _draw_block(axes, panel.rows, panel.along, more=f"\n{panel.presence}", repeated=OVER_SEEDS)
    label(axes, NAMES[panel.along], "", f"{_title(panel.planned)}\n{panel.presence}")
    axes.set(xticks=[], yticks=[])
    axes.text(0.5, 0.5, "no results yet", transform=axes.transAxes, ha="center", va="center", color=QUIET)
    return []


def _kind(rows: Rows) -> str:
    return "Regression" if values(rows, "answers") == ["targets"] else "Classification"


def _draw_block(
    axes: Any, rows: Rows, along: str, kind: str = "", more: str = "", repeated: str | None = None
) -> list[Entry]:
    """A curve for each N, under a title that may begin with the ``kind`` of answers; what the marks are.

    ``repeated`` says what points are means of; if None, it says of how many runs.
    """
    check_columns(rows, "examples", along, "answers", "context", "heads", "length", "head_dim")
    real = one(rows, "answers") == "targets"
    curves = series(rows, "examples", along, "best_loss" if real else "best_accuracy")
    shades = colours(len(curves))
    if real:
        axes.set(yscale="log")
        axes.axhline(1 / 12, color=QUIET, **PROVED_BEFORE)
    for curve, shade in zip(curves, shades, strict=True):
        draw_measured(axes, curve, shade)
        if not real:
            promised = sorted({(row[along], _promised(row)) for row in rows if row["examples"] == curve.key})
            axes.plot([x for x, _ in promised], [y for _, y in promised], color=shade, **PROVED)
    entries: list[Entry] = [(f"measured, {repeated or runs(curves)}", MEASURED)]
    if real:
        entries.append(("1/12, the variance of the targets: nothing learned", PROVED_BEFORE))
    else:
        axes.set(ylim=(0, 1.03))
        entries.append(("proved: (H(min(n, d_h) − 1) + 1) / N", PROVED))
    if along == "head_dim" and len(values(rows, "length")) == 1:
        axes.axvline(one(rows, "length"), color=QUIET, **AT_LENGTH)
        entries.append(("d_h = n: beyond it the proved number does not grow", AT_LENGTH))
    name_ends(axes, curves, [f"N = {curve.key:,}" for curve in curves], shades)
    y = "mean squared error" if real else "accuracy over all N examples"
    label(axes, NAMES[along], y, f"{kind}{_title(rows)}{more}")
    return entries


def _title(rows: Rows) -> str:
    """The kind of context, and the sizes that all share."""
    shared = [f"{letter} = {one(rows, c)}" for c, letter in _LETTERS.items() if len(values(rows, c)) == 1]
    return f"{CONTEXTS[one(rows, 'context')]}; {', '.join(shared)}"


_LETTERS = {"heads": "H", "length": "n", "head_dim": "d_h"}


def _promised(row: Mapping[str, Any]) -> float:
    """The share of the N examples that Mahdavi's theorem promises."""
    promised = mahdavi_2024.capacity(row["heads"], row["length"], row["head_dim"])
    return min(1.0, promised / int(row["examples"]))


def draw_saturation_counts(rows: Rows, path: Path) -> None:
    """Mahdavi's saturation: on what share of the examples 0, 1, …, H heads are saturated; a panel for each (H, N)."""
    check_columns(rows, "heads", "examples", "examples_by_saturated_heads")
    sizes = sorted({(row["heads"], row["examples"]) for row in rows})
    picture, panels = canvas(path, columns=len(sizes), width=max(5.2, 4.2 * len(sizes)), height=4.2)
    for axes, (H, N) in zip(panels, sizes, strict=True):
        some = [row for row in rows if (row["heads"], row["examples"]) == (H, N)]
        counts = np.array([list(map(int, str(row["examples_by_saturated_heads"]).split())) for row in some]) / N
        spread = counts.std(axis=0, ddof=1) if len(counts) > 1 else None
        axes.bar(range(H + 1), counts.mean(axis=0), yerr=spread, color="#6f8fb5", ecolor=INK, capsize=2, width=0.8)
        axes.set(ylim=(0, None))
        axes.set_xticks(range(H + 1) if H <= 20 else range(0, H + 1, H // 10))
        mean = float((counts.mean(axis=0) * np.arange(H + 1)).sum())
        repeated = f"mean ± s.d. of {len(counts)} runs" if len(counts) > 1 else "a single run"
        said = f"H = {H}, N = {N:,}: {mean:.2f} of {H} heads on average\n(measured, {repeated})"
        label(axes, "saturated heads", "share of the examples", said)
        axes.grid(visible=False, axis="x")
    heading(picture, "On how many heads an example is saturated (one weight of more than 0.99)")
    save_picture(picture, path)

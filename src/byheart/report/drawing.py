"""Draw figures that are declared as data (:mod:`byheart.exhibits`): one function for all of them."""

import math
import statistics
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from byheart.exhibits import INK, QUIET, Annotation, Axis, Band, BarChart, Curve, EndLabel, Entry, Figure, Mark, Panel
from byheart.report.style import NARROW, canvas, save_picture

LEGEND_LINE = 0.19
"""Height of a line of a legend, in inches."""
NAME_GAP = 0.052
"""Least distance of two names at the ends of curves, as a share of the panel's height."""
LETTER = 0.56
"""Mean width of a letter, as a share of its size."""


def draw(figure: Figure, path: Path) -> None:
    """Draw a figure into a picture file, whole or not at all."""
    size = {"width": figure.width, "height": figure.height}
    picture, panels = canvas(path, rows=figure.rows, columns=figure.columns, cells=figure.cells, **size)
    for axes, panel in zip(panels, figure.panels, strict=True):
        _draw_panel(axes, panel)
    if figure.shares_x:
        ends = [limit for axes in panels for limit in axes.get_xlim()]
        for axes in panels:
            axes.set_xlim(min(ends), max(ends))
    if figure.legend_inside is not None and picture.get_figwidth() > NARROW:
        look = {"frameon": False, "labelcolor": INK, **figure.legend_inside}
        panels[0].legend(handles=_handles(picture, figure.legend, figure.columns), **look)
    elif figure.legend:
        _draw_legend_below(picture, figure)
    if figure.heading:
        picture.suptitle(_wrapped(picture, figure.heading, 11), x=0.008, ha="left", fontsize=11, color=INK)
    save_picture(picture, path)


def _draw_panel(axes: Any, panel: Panel) -> None:
    """Draw the marks, and then what depends on how far these reach: scales, limits, ticks and names."""
    for mark in panel.marks:
        _draw_mark(axes, mark, panel.y.scale)
    for axis, set_scale in ((panel.x, axes.set_xscale), (panel.y, axes.set_yscale)):
        if axis.scale != "linear":
            set_scale("log", base=2 if axis.scale == "log2" else 10)
    _fit(axes.xaxis, panel.x, axes.get_xlim, axes.set_xlim)
    _fit(axes.yaxis, panel.y, axes.get_ylim, axes.set_ylim)
    if panel.blank:
        axes.text(0.5, 0.5, panel.blank, transform=axes.transAxes, ha="center", va="center", color=QUIET)
    _name_ends(axes, panel.names)
    axes.set_xlabel(panel.x.name, color=INK)
    axes.set_ylabel(panel.y.name, color=INK)
    title = _wrapped(axes.figure, panel.title, 9.5, axes.get_gridspec().ncols)
    axes.set_title(title, fontsize=9.5, color=INK, loc="left")


def _draw_mark(axes: Any, mark: Mark, scale: str) -> None:
    match mark:
        case Curve(xs, ys, style, None, _):
            axes.plot(xs, ys, **style)
        case Curve(xs, ys, style, below, above):
            if scale != "linear":
                below = [0.0 if length >= y else length for y, length in zip(ys, below or (), strict=True)]
            axes.errorbar(xs, ys, yerr=[below, above], **style)
        case Band(xs, low, high, colour):
            axes.fill_between(xs, low, high, color=colour, alpha=0.12, linewidth=0)
        case BarChart(heights, spread, colour):
            axes.bar(range(len(heights)), heights, yerr=spread, color=colour, ecolor=INK, capsize=2, width=0.8)
        case Annotation(text, x, y, shift, style):
            axes.annotate(text, (x, y), shift, textcoords="offset points", **style)
        case rule:
            if rule.x is not None:
                axes.axvline(rule.x, **rule.style)
            if rule.y is not None:
                axes.axhline(rule.y, **rule.style)


def _fit(drawn: Any, axis: Axis, get_limits: Any, set_limits: Any) -> None:
    """Set limits and ticks of an axis on which everything is drawn."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    if axis.ticks is not None:
        drawn.set_ticks(axis.ticks, labels=axis.tick_names)
    if axis.limits is not None:
        set_limits(*axis.limits)
    if axis.floor is not None:
        set_limits(max(axis.floor, get_limits()[0]), None)
    if axis.is_whole and axis.scale == "linear":
        drawn.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    if axis.is_round:
        low, high = get_limits()
        drawn.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    if axis.most_ticks is not None:
        drawn.get_major_locator().set_params(nbins=axis.most_ticks)
    if not axis.has_minor_ticks:
        drawn.set_minor_locator(NullLocator())
    if axis.number_format is not None:
        drawn.set_major_formatter(axis.number_format)
    if axis.is_inverted:
        drawn.set_inverted(True)
    if not axis.has_grid:
        drawn.grid(visible=False)


def _name_ends(axes: Any, names: Sequence[EndLabel]) -> None:
    """Write names at the right ends of curves, moved apart where they would overlap.

    Where curves end together, the one that is higher on average is named above.
    """
    if not names:
        return
    ends = [_share(axes, name.ys[-1]) for name in names]
    heights = [(round(50 * end), statistics.fmean(name.ys)) for end, name in zip(ends, names, strict=True)]
    order = sorted(range(len(names)), key=heights.__getitem__)
    gap = min(NAME_GAP, 1 / len(names))
    places = [ends[index] for index in order]
    for k in range(1, len(places)):
        places[k] = max(places[k], places[k - 1] + gap)
    places[-1] = min(places[-1], 1.0)
    for k in range(len(places) - 2, -1, -1):
        places[k] = min(places[k], places[k + 1] - gap)
    for index, place in zip(order, places, strict=True):
        look = {"xycoords": "axes fraction", "va": "center", "fontsize": 8.5, "annotation_clip": False}
        axes.annotate(names[index].text, (1.012, place), color=names[index].colour, **look)


def _share(axes: Any, y: float) -> float:
    """Return how high y lies in the panel, from 0 to 1."""
    low, high = axes.get_ylim()
    if axes.get_yscale() == "log":
        low, high, y = math.log(low), math.log(high), math.log(max(y, 1e-300))
    return float((y - low) / (high - low))


def _draw_legend_below(picture: Any, figure: Figure) -> None:
    """Draw the legend below all panels, where it hides nothing; a narrow picture grows to make room for it."""
    narrow = picture.get_figwidth() <= NARROW
    columns = 1 if narrow else figure.legend_columns
    handles = _handles(picture, figure.legend, columns)
    if narrow:
        lines = sum(1 + handle.get_label().count("\n") for handle in handles)
        picture.set_figheight(picture.get_figheight() + LEGEND_LINE * lines)
    look = {"frameon": False, "fontsize": 8.5, "labelcolor": INK}
    picture.legend(handles=handles, loc="outside lower left", ncols=columns, **look)


def _handles(picture: Any, entries: Sequence[Entry], columns: int) -> list[Any]:
    """Return marks with their names, which are broken into lines that fit a column of the picture."""
    from matplotlib.lines import Line2D

    def handle(name: str, style: Any) -> Any:
        of_a_line = {key: value for key, value in style.items() if key not in ("capsize", "elinewidth")}
        return Line2D([], [], label=_wrapped(picture, name, 9.5, columns), **({"color": QUIET} | of_a_line))

    return [handle(*entry) for entry in entries]


def _wrapped(picture: Any, text: str, size: float, columns: int = 1) -> str:
    """Return the text in lines that fit the picture's width, or a column's, at this size of the letters."""
    width = int(picture.get_figwidth() / columns * 72 / (LETTER * size))
    return "\n".join(textwrap.fill(line, width) for line in text.splitlines())

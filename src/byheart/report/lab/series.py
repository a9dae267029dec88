"""From a table of results to the curves of a picture: repetitions put together, and how all lab figures draw them.

A table is a list of flat rows, config and metrics side by side. What differs in nothing but the seed is a repetition:
a point is their mean, and its bar their standard deviation (none for a single run). Rows without a number, as of runs
that diverged, are left out and counted. What lies on a curve is said in the legend, one kind of mark for each kind of
number: *proved* (lines), *published* (hollow marks), *fitted* (thin lines), *measured* (full marks, so many runs).
"""

import math
import statistics
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from byheart.errors import BadInput
from byheart.lab.rows import is_number
from byheart.report.style import INK, NARROW, QUIET

Rows = Sequence[Mapping[str, Any]]
RAMP = ("#eda63b", "#d9603b", "#b3123f", "#6d1a78", "#1f3f8f")
"""For curves in an order: small to large."""
PROVED: dict[str, Any] = {"linestyle": (0, (5, 2)), "linewidth": 1.3}
PROVED_BEFORE: dict[str, Any] = {"linestyle": (0, (1, 1.6)), "linewidth": 1.4}
PUBLISHED: dict[str, Any] = {"linestyle": "none", "marker": "D", "markersize": 6.5, "markerfacecolor": "none"}
BUILT: dict[str, Any] = {"linestyle": "none", "marker": "+", "markersize": 6.5, "markeredgewidth": 1.3}
MEASURED: dict[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 1.4, "capsize": 2, "elinewidth": 1}

LINE = 0.19
"""Inches that a line of a legend takes."""


@dataclass(frozen=True)
class Series:
    """A curve: for each x the mean, the standard deviation (0 for one run) and the number of runs."""

    key: Any
    xs: list[float]
    means: list[float]
    deviations: list[float]
    runs: list[int]


SIZES = (
    *("model_dim", "head_dim", "heads", "vocab", "layers", "length", "examples", "labels", "demand", "learning_rate"),
    *("stories", "contexts", "parameters"),
)
"""Columns of positive numbers, in every row that has them."""
NUMBERS = (
    *("accuracy", "last_accuracy", "best_accuracy", "best_loss", "lower_bound", "previous_bound", "relative_excess"),
    *("bits_per_parameter", "hidden", "steps", "seed", "loss", "entropy"),
)
"""Columns of numbers, or None."""


def check_numbers(rows: Rows) -> None:
    """BadInput if a column that figures and tables count with holds something else than numbers in some row."""
    for row in rows:
        for name in SIZES:
            if name in row and not (is_number(row[name]) and row[name] > 0):
                raise BadInput(f"{name} is {row[name]!r} in a row of the table; expected a positive number")
        for name in NUMBERS:
            if not isinstance(row.get(name), int | float | None):
                raise BadInput(f"{name} is {row[name]!r} in a row of the table; expected a number")


def series(rows: Rows, by: str | None, x: str, y: str) -> list[Series]:
    """One curve for each value of ``by`` (one in all if None), x ascending.

    >>> rows = [{"model_dim": 3, "heads": 1, "accuracy": a} for a in (0.25, 0.75)]
    >>> series(rows, "model_dim", "heads", "accuracy")
    [Series(key=3, xs=[1], means=[0.5], deviations=[0.3535533905932738], runs=[2])]
    """
    check_columns(rows, *([by] if by else []), x, y)
    found: dict[Any, dict[float, list[float]]] = {}
    for row in rows:
        if is_number(row[x]) and is_number(row[y]):
            found.setdefault(row[by] if by else None, {}).setdefault(row[x], []).append(row[y])
    return [_series(key, points) for key, points in sorted(found.items(), key=lambda item: item[0] or 0)]


def _series(key: Any, points: dict[float, list[float]]) -> Series:
    groups = [points[x] for x in sorted(points)]
    deviations = [statistics.stdev(values) if len(values) > 1 else 0.0 for values in groups]
    return Series(key, sorted(points), [statistics.fmean(v) for v in groups], deviations, [len(v) for v in groups])


def check_columns(rows: Rows, *columns: str) -> None:
    """BadInput if the table is empty or lacks a column."""
    if not rows:
        raise BadInput("the table has no rows; expected at least one: are the run's configs done?")
    missing = [column for column in columns if any(column not in row for row in rows)]
    if missing:
        raise BadInput(f"the table has no {', '.join(missing)}; expected the columns {', '.join(columns)}")


def values(rows: Rows, column: str) -> list[Any]:
    """The different values of a column, in order; rows that lack it have none."""
    return sorted({row[column] for row in rows if row.get(column) is not None})


def one(rows: Rows, column: str) -> Any:
    """The value that all rows share."""
    found = values(rows, column)
    if len(found) != 1:
        raise BadInput(f"{column} is {found} in this table; expected one value")
    return found[0]


def runs(curves: Sequence[Series]) -> str:
    """In words: of how many runs the points are.

    >>> runs([Series(None, [1, 2], [0, 0], [0, 0], [5, 4])])
    'mean ± s.d. of 4 to 5 runs'
    """
    counts = {number for curve in curves for number in curve.runs}
    if not counts:
        raise BadInput("no row has a number to draw; expected some that did not diverge")
    if counts == {1}:
        return "single runs"
    few = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(max(counts))
    return f"mean ± s.d. of {few} runs"


def colours(count: int) -> list[Any]:
    """So many colours of the ramp, the last ones dark."""
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    ramp = LinearSegmentedColormap.from_list("ordered", RAMP)
    return [to_hex(ramp(index / max(1, count - 1))) for index in range(count)] if count > 1 else [RAMP[2]][:count]


def draw_measured(axes: Any, curve: Series, colour: Any, **more: Any) -> None:
    """Means with their standard deviations; on a logarithmic axis a bar that would reach 0 has no lower half."""
    log = axes.get_yscale() == "log"
    pairs = zip(curve.means, curve.deviations, strict=True)
    lower = [0.0 if log and deviation >= mean else deviation for mean, deviation in pairs]
    axes.errorbar(curve.xs, curve.means, yerr=[lower, curve.deviations], color=colour, **(MEASURED | more))
    if axes.get_xscale() == "linear" and all(x == int(x) for x in curve.xs):
        whole_ticks(axes)


def whole_ticks(axes: Any) -> None:
    """Heads, tokens and dimensions are whole numbers, and so are the ticks below them."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))


def draw_line(axes: Any, points: Sequence[tuple[float, float]], colour: Any, style: dict[str, Any]) -> None:
    """A line through points; a single one is a dash, which would not be seen otherwise."""
    dash = {"marker": "_", "markersize": 14} if len(points) == 1 else {}
    axes.plot([x for x, _ in points], [y for _, y in points], color=colour, **style, **dash)


def name_ends(axes: Any, curves: Sequence[Series], names: Sequence[str], shades: Sequence[Any]) -> None:
    """Names at the right ends of the curves, moved apart where they would overlap; where curves end together, the one
    that is higher on average is named above.
    """
    if not curves:
        return
    ends = [_share(axes, curve.means[-1]) for curve in curves]
    heights = [(round(50 * end), statistics.fmean(curve.means)) for end, curve in zip(ends, curves, strict=True)]
    order = sorted(range(len(curves)), key=heights.__getitem__)
    gap = min(0.052, 1 / max(1, len(curves)))
    places = [ends[index] for index in order]
    for k in range(1, len(places)):
        places[k] = max(places[k], places[k - 1] + gap)
    places[-1] = min(places[-1], 1.0)
    for k in range(len(places) - 2, -1, -1):
        places[k] = min(places[k], places[k + 1] - gap)
    for index, place in zip(order, places, strict=True):
        text = {"xycoords": "axes fraction", "va": "center", "fontsize": 8.5, "annotation_clip": False}
        axes.annotate(names[index], (1.012, place), color=shades[index], **text)


def _share(axes: Any, y: float) -> float:
    """How high y lies in the panel, from 0 to 1."""
    low, high = axes.get_ylim()
    if axes.get_yscale() == "log":
        low, high, y = math.log(low), math.log(high), math.log(max(y, 1e-300))
    return float((y - low) / (high - low))


def label(axes: Any, x: str, y: str, title: str) -> None:
    """Names of both axes, and a title on the left."""
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    columns = axes.get_gridspec().ncols
    axes.set_title(_wrapped(axes.figure, title, 9.5, columns), fontsize=9.5, color=INK, loc="left")


Entry = tuple[str, dict[str, Any]]


def legend(axes: Any, entries: Sequence[Entry], **where: Any) -> None:
    """What each kind of mark is, in a panel, or below it if it is narrow; the colours are named at the curves."""
    if axes.figure.get_figwidth() <= NARROW:
        legend_below(axes.figure, entries)
        return
    columns = axes.get_gridspec().ncols
    axes.legend(
        handles=_handles(axes.figure, entries, columns),
        **({"frameon": False, "fontsize": 8.5, "labelcolor": INK} | where),
    )


def legend_below(picture: Any, entries: Sequence[Entry], columns: int = 2) -> None:
    """The same for all panels, below them, where nothing is hidden by it; in a narrow figure in room of its own."""
    narrow = picture.get_figwidth() <= NARROW
    columns = 1 if narrow else columns
    handles = _handles(picture, entries, columns)
    if narrow:
        lines = sum(1 + handle.get_label().count("\n") for handle in handles)
        picture.set_figheight(picture.get_figheight() + LINE * lines)
    below = {"loc": "outside lower left", "ncols": columns, "frameon": False, "fontsize": 8.5, "labelcolor": INK}
    picture.legend(handles=handles, **below)


def _handles(picture: Any, entries: Sequence[Entry], columns: int) -> list[Any]:
    """Marks with their names, which are broken into lines that fit such a part of the picture."""
    from matplotlib.lines import Line2D

    def handle(name: str, style: dict[str, Any]) -> Any:
        of_a_line = {key: value for key, value in style.items() if key not in ("capsize", "elinewidth")}
        return Line2D([], [], label=_wrapped(picture, name, 9.5, columns), **({"color": QUIET} | of_a_line))

    return [handle(*entry) for entry in entries]


def _wrapped(picture: Any, text: str, size: float, columns: int = 1) -> str:
    """The text in lines that fit the picture's width, or a column's, at this size of the letters."""
    width = int(picture.get_figwidth() / columns * 72 / (0.56 * size))
    return "\n".join(textwrap.fill(line, width) for line in text.splitlines())


def heading(picture: Any, text: str) -> None:
    """The picture's title, above all panels."""
    picture.suptitle(_wrapped(picture, text, 11), x=0.008, ha="left", fontsize=11, color=INK)

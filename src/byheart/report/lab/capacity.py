"""The ladder of capacity: bits that trained networks hold, with built ones and published numbers beside them."""

import math
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from byheart.bounds.morris_2025 import BITS_PER_PARAMETER
from byheart.errors import BadInput
from byheart.papers.capacity.ladder import CapacityEstimate, Tuning, held, plateaus, tunings
from byheart.report.lab.beside import Beside
from byheart.report.lab.series import (
    MEASURED,
    PROVED_BEFORE,
    Entry,
    Rows,
    Series,
    check_columns,
    colours,
    heading,
    label,
    legend_below,
    name_ends,
)
from byheart.report.style import QUIET, canvas, save_picture

BUILT: dict[str, Any] = {"markersize": 5, "linewidth": 0.9, "color": "#1f5fa8"}
IN_SMALL: dict[str, Any] = {"fontsize": 7.5, "color": "#1f5fa8", "textcoords": "offset points"}
HOLLOW: dict[str, Any] = {"markerfacecolor": "white"}
ALONG = {"learning_rate": "learning rate, at its largest", "steps": "training steps"}
PER_FLOAT = 32
MOST_HALVINGS = 3
"""What holds less than an eighth of a bit per parameter does not stretch the axis further."""


def draw_capacity(rows: Rows, path: Path, beside: Sequence[Beside] = ()) -> None:
    """The ladder: bits per parameter against what was asked for, and the most over N against the size."""
    check_columns(rows, "parameters", "examples", "demand", "learning_rate", "steps", "bits_per_parameter")
    points, best = held(rows), plateaus(rows)
    if not points:
        raise BadInput("no run of the table has a number; expected bits_per_parameter somewhere")
    picture, (left, right) = canvas(path, columns=2, width=10.4, height=5.2)
    _draw_demands(left, points, best)
    built = _draw_sizes(right, best, beside)
    spread = _spread(points)
    below: list[Entry] = [(f"measured: trained, {spread}; a lower bound of what such a network can hold", MEASURED)]
    if any(point.edge for point in best):
        below.append(("hollow: most was held where most was asked for, so perhaps not full", MEASURED | HOLLOW))
    below.append(("diagonal: all that was asked for; level: 3.6, published (Morris et al. 2025)", PROVED_BEFORE))
    legend_below(picture, [*below, *built])
    heading(picture, "Bits of random labels per parameter (all parameters counted)")
    save_picture(picture, path)


def draw_tuning(rows: Rows, path: Path) -> None:
    """What other learning rates bring, and other numbers of steps: a curve for each size at which they were tried."""
    found = tunings(rows)
    along = [name for name in ALONG if any(tuning.along == name for tuning in found)]
    if not along:
        raise BadInput("no size was trained with three learning rates, or for three numbers of steps; expected one")
    picture, panels = canvas(path, columns=len(along), width=5.2 * len(along), height=4.6)
    for axes, name in zip(panels, along, strict=True):
        some = [tuning for tuning in found if tuning.along == name]
        shades = colours(len(some))
        for tuning, shade in zip(some, shades, strict=True):
            _draw_held(axes, [getattr(point, name) for point in tuning.points], tuning.points, shade)
        chosen = some[0].chosen[name == "steps"]
        axes.axvline(chosen, color=QUIET, **PROVED_BEFORE)
        _doublings(axes, sorted({getattr(point, name) for tuning in some for point in tuning.points}))
        if all(point.bits_per_parameter >= 0 for tuning in some for point in tuning.points):
            axes.set(ylim=(max(0.0, axes.get_ylim()[0]), None))  # an interval may reach below 0, bits do not
        ends = [Series(None, [0], [tuning.points[-1].bits_per_parameter], [0], [1]) for tuning in some]
        name_ends(axes, ends, [f"P = {tuning.points[0].parameters:,}" for tuning in some], shades)
        label(axes, ALONG[name], "bits held per parameter", _told(some))
    entries: list[Entry] = [(f"measured: trained, {_spread([p for t in found for p in t.points])}", MEASURED)]
    legend_below(picture, [*entries, ("how all sizes of the ladder were trained", PROVED_BEFORE)])
    heading(picture, "Bits of random labels per parameter, by how the network was trained")
    save_picture(picture, path)


def _told(some: Sequence[Tuning]) -> str:
    """What the last of the steps brought, or which rate was best; size by size."""
    if some[0].along == "steps":
        grown = [t.points[-1].bits_per_parameter - t.points[-2].bits_per_parameter for t in some]
        return f"The last steps bring {', '.join(f'{each:+.2f}' for each in grown)}".replace("-", "−")
    best = [max(tuning.points, key=lambda point: point.bits_per_parameter).learning_rate for tuning in some]
    return f"Most is held at {', '.join(f'{rate:g}' for rate in best)}"


def _doublings(axes: Any, xs: Sequence[float]) -> None:
    """A logarithmic axis that names what was tried."""
    from matplotlib.ticker import NullLocator

    axes.set(xscale="log")
    axes.set_xticks(xs, [f"{x:,g}" for x in xs])
    axes.xaxis.set_minor_locator(NullLocator())


def _spread(points: Sequence[CapacityEstimate]) -> str:
    """In words: of how many seeds the points are."""
    seeds = sorted({point.seeds for point in points})
    many = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    return "single runs" if seeds == [1] else f"mean and 95 % interval over {many} seeds"


def _draw_demands(axes: Any, points: Sequence[CapacityEstimate], best: Sequence[CapacityEstimate]) -> None:
    """Held against asked for, trained as the best point; a curve for each size."""
    shades, most = colours(len(best)), max(point.demand for point in points)
    ends = []
    for top, shade in zip(best, shades, strict=True):
        some = [p for p in points if (p.parameters, p.training) == (top.parameters, top.training)]
        some.sort(key=lambda point: point.demand)
        _draw_held(axes, [point.demand for point in some], some, shade)
        ends.append(Series(top.parameters, [some[-1].demand], [some[-1].bits_per_parameter], [0], [1]))
    axes.plot([0, most], [0, most], color=QUIET, **PROVED_BEFORE)
    high = 1.15 * max(point.high or point.bits_per_parameter for point in points)
    low = min(0.0, *(point.bits_per_parameter for point in points))  # an interval may reach below 0, bits do not
    axes.set(xlim=(0, 1.03 * most), ylim=(1.05 * low, high))
    name_ends(axes, ends, [f"P = {end.key:,}" for end in ends], shades)
    names = "bits asked for per parameter: N log₂C / P", "bits held per parameter"
    label(axes, *names, "Trained, by how much was asked for")


def _draw_sizes(axes: Any, best: Sequence[CapacityEstimate], beside: Sequence[Beside]) -> list[Entry]:
    """The most over N against P, and what is built; on a logarithmic scale unless something holds nothing."""
    for top, shade in zip(best, colours(len(best)), strict=True):
        _draw_held(axes, [top.parameters], [top], shade, markersize=6, **(HOLLOW if top.edge else {}))
    axes.axhline(BITS_PER_PARAMETER, color=QUIET, **PROVED_BEFORE)
    entries = [_draw_built(axes, some, mark) for some, mark in zip(_by_name(beside), cycle("s^vDP"), strict=False)]
    _decades(axes)
    if min(point.bits_per_parameter for point in best) > 0:
        ends = [point.bits_per_parameter if point.low is None else point.low for point in best]
        _halves(axes, [*ends, BITS_PER_PARAMETER, *(each.bits_per_parameter for each in beside)])
    label(axes, "P, parameters", "bits held per parameter", "The most over N, and networks built for the same labels")
    return entries


def _by_name(beside: Sequence[Beside]) -> list[list[Beside]]:
    """Networks of one kind together, the smallest N first."""
    ordered = sorted(beside, key=lambda each: each.examples)
    return [[each for each in ordered if each.name == name] for name in dict.fromkeys(each.name for each in beside)]


def _draw_built(axes: Any, some: Sequence[Beside], mark: str) -> Entry:
    """Networks of one kind; the first and the last have their N beside them."""
    style = BUILT | {"marker": mark}
    axes.plot([each.parameters for each in some], [each.bits_per_parameter for each in some], **style)
    for each, above in ((some[0], False), (some[-1], True))[: len(some)]:
        place = each.parameters, each.bits_per_parameter
        axes.annotate(f"N = {each.examples:,}", place, (6, 4 if above else -9), **IN_SMALL)
    bits = max(each.weight_bits for each in some)
    exact = "" if bits == PER_FLOAT else f", weights up to {bits:,} bits"
    return f"built, every answer checked: {some[0].name}{exact}", style


def _halves(axes: Any, bits: Sequence[float]) -> None:
    """A logarithmic axis of powers of two, from the least that is drawn to the most."""
    from matplotlib.ticker import NullLocator

    low = max(-MOST_HALVINGS, math.floor(math.log2(max(min(bits), 2.0**-MOST_HALVINGS))))
    powers = range(low, math.ceil(math.log2(max(bits))) + 1)
    named = {-3: "⅛", -2: "¼", -1: "½"}
    axes.set(yscale="log")
    axes.set_yticks([2.0**power for power in powers], [named.get(power, f"{2 ** max(power, 0)}") for power in powers])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set(ylim=(0.85 * 2.0 ** powers[0], 1.18 * 2.0 ** powers[-1]))


def _decades(axes: Any) -> None:
    """A logarithmic axis with round numbers on it, as many as there is room for."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set(xscale="log")
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:,.0f}")


def _draw_held(axes: Any, xs: Sequence[float], points: Sequence[CapacityEstimate], shade: Any, **more: Any) -> None:
    means = [point.bits_per_parameter for point in points]
    below = [m - (m if point.low is None else point.low) for m, point in zip(means, points, strict=True)]
    above = [(m if point.high is None else point.high) - m for m, point in zip(means, points, strict=True)]
    axes.errorbar(xs, means, yerr=[below, above], color=shade, **(MEASURED | more))

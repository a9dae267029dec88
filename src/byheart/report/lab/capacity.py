"""The ladder of capacity: bits that trained networks hold, with built ones and published numbers beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byheart.bounds.morris_2025 import BITS_PER_PARAMETER
from byheart.errors import BadInput
from byheart.lab.capacity import Held, held, plateaus
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

BUILT: dict[str, Any] = {"markersize": 6, "linestyle": "none", "color": "#1f5fa8"}
IN_SMALL: dict[str, Any] = {"fontsize": 7.5, "color": "#1f5fa8"}


@dataclass(frozen=True)
class Beside:
    """A network that was built for N random labels, of so many parameters, and the bits that it holds in each."""

    name: str
    examples: int
    parameters: int
    bits_per_parameter: float


def draw_capacity(rows: Rows, path: Path, beside: Sequence[Beside] = ()) -> None:
    """The ladder: bits per parameter against what was asked for, and the most over N against the size."""
    check_columns(rows, "parameters", "examples", "demand", "learning_rate", "bits_per_parameter")
    points, best = held(rows), plateaus(rows)
    if not points:
        raise BadInput("no run of the table has a number; expected bits_per_parameter somewhere")
    picture, (left, right) = canvas(path, columns=2, width=10.4, height=5.2)
    _draw_demands(left, points, best)
    built = _draw_sizes(right, best, beside)
    seeds = sorted({point.seeds for point in points})
    many = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    spread = "single runs" if seeds == [1] else f"mean and 95 % interval over {many} seeds"
    below: list[Entry] = [(f"measured: trained, {spread}", MEASURED), *built]
    below.append(("diagonal: all that was asked for; level: 3.6, published (Morris et al. 2025)", PROVED_BEFORE))
    legend_below(picture, below)
    heading(picture, "Bits of random labels per parameter (all parameters counted)")
    save_picture(picture, path)


def _draw_demands(axes: Any, points: Sequence[Held], best: Sequence[Held]) -> None:
    """Held against asked for, at the learning rate of the best point; a curve for each size."""
    shades, most = colours(len(best)), max(point.demand for point in points)
    ends = []
    for top, shade in zip(best, shades, strict=True):
        some = [p for p in points if (p.parameters, p.learning_rate) == (top.parameters, top.learning_rate)]
        some.sort(key=lambda point: point.demand)
        _draw_held(axes, [point.demand for point in some], some, shade)
        ends.append(Series(top.parameters, [some[-1].demand], [some[-1].bits_per_parameter], [0], [1]))
    axes.plot([0, most], [0, most], color=QUIET, **PROVED_BEFORE)
    high = 1.15 * max(point.high or point.bits_per_parameter for point in points)
    low = min(0.0, *(point.low if point.low is not None else point.bits_per_parameter for point in points), 0.0)
    axes.set(xlim=(0, 1.03 * most), ylim=(1.05 * low, high))
    name_ends(axes, ends, [f"P = {end.key:,}" for end in ends], shades)
    names = "bits asked for per parameter: N log₂C / P", "bits held per parameter"
    label(axes, *names, "Trained, by how much was asked for")


def _draw_sizes(axes: Any, best: Sequence[Held], beside: Sequence[Beside]) -> list[Entry]:
    """The most over N against P, and what is built; on a logarithmic scale unless something holds nothing."""
    from matplotlib.ticker import NullLocator

    for top, shade in zip(best, colours(len(best)), strict=True):
        _draw_held(axes, [top.parameters], [top], shade, markersize=6)
    axes.axhline(BITS_PER_PARAMETER, color=QUIET, **PROVED_BEFORE)
    entries: list[Entry] = []
    for index, name in enumerate(dict.fromkeys(each.name for each in beside)):
        style = BUILT | {"marker": "s^vDP"[index % 5]}
        for each in beside:
            if each.name == name:
                place = each.parameters, each.bits_per_parameter
                axes.plot(*place, **style)
                axes.annotate(f"N = {each.examples:,}", place, (7, -3), textcoords="offset points", **IN_SMALL)
        entries.append((f"built, every answer checked: {name}", style))
    _decades(axes)
    if min(point.bits_per_parameter for point in best) > 0:
        axes.set(yscale="log")
        axes.set_yticks([0.25, 0.5, 1, 2, 4, 8, 16, 32], ["¼", "½", "1", "2", "4", "8", "16", "32"])
        axes.yaxis.set_minor_locator(NullLocator())
        ends = [point.bits_per_parameter if point.low is None else point.low for point in best]
        least = min([*ends, *(each.bits_per_parameter for each in beside)])
        axes.set(ylim=(0.8 * max(least, 0.1), 40))
    edge = "; at the largest tried, so perhaps not full" if any(point.edge for point in best) else ""
    label(axes, "P, parameters", "bits held per parameter", f"The most over N{edge}")
    return entries


def _decades(axes: Any) -> None:
    """A logarithmic axis with round numbers on it, as many as there is room for."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set(xscale="log")
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 30 * low else (1,)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:,.0f}")


def _draw_held(axes: Any, xs: Sequence[float], points: Sequence[Held], shade: Any, **more: Any) -> None:
    means = [point.bits_per_parameter for point in points]
    below = [m - (m if point.low is None else point.low) for m, point in zip(means, points, strict=True)]
    above = [(m if point.high is None else point.high) - m for m, point in zip(means, points, strict=True)]
    axes.errorbar(xs, means, yerr=[below, above], color=shade, **(MEASURED | more))

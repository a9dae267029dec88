"""Figures, tables and findings of the ladder: bits that trained networks hold, beside built ones and published."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from itertools import cycle

from byheart import exhibits as fig
from byheart.bounds.trained_capacity import MORRIS_BITS
from byheart.errors import BadInput
from byheart.lab.fits import compare
from byheart.papers.capacity import CapacityEstimate, Tuning, held, plateaus, tunings
from byheart.papers.capacity.beside import Beside
from byheart.papers.curves import Rows, check_columns, law_rows, range_in_words
from byheart.papers.paper import Paper

LEAST_POINTS = 3
"""Number of sizes that laws take."""
BUILT_NETWORK: fig.Style = {"markersize": 5, "linewidth": 0.9, "color": "#1f5fa8"}
BUILT_MARKS = "s^vDP"
SMALL: fig.Style = {"fontsize": 7.5, "color": "#1f5fa8"}
HOLLOW: fig.Style = {"markerfacecolor": "white"}
GUIDE: fig.Style = {**fig.PROVED_BEFORE, "color": fig.QUIET}
ALONG = {"learning_rate": "learning rate, at its largest", "steps": "training steps"}
HELD = "bits held per parameter"
FLOAT_BITS = 32
MOST_HALVINGS = 3
"""Bits per parameter below an eighth do not stretch the axis further."""
FRACTIONS = {-3: "⅛", -2: "¼", -1: "½"}


def capacity_figure(rows: Rows, beside: Sequence[Beside] = ()) -> fig.Figure:
    """Declare the ladder: bits per parameter against what was asked for, and the most over N against the size."""
    check_columns(rows, "parameters", "examples", "demand", "learning_rate", "steps", "bits_per_parameter")
    points, best = held(rows), plateaus(rows)
    if not points:
        raise BadInput("no run of the table has a number; expected bits_per_parameter somewhere")
    repeated = f"measured: trained, {_seeds_in_words(points)}; a lower bound of what such a network can hold"
    legend: list[fig.Entry] = [(repeated, fig.MEASURED)]
    if any(point.edge for point in best):
        hollow = {**fig.MEASURED, **HOLLOW}
        legend.append(("hollow: most was held where most was asked for, so perhaps not full", hollow))
    legend.append(("diagonal: all that was asked for; level: 3.6, published (Morris et al. 2025)", fig.PROVED_BEFORE))
    by_name: dict[str, list[Beside]] = {each.name: [] for each in beside}
    for each in sorted(beside, key=lambda each: each.examples):
        by_name[each.name].append(each)
    marked = list(zip(by_name.values(), cycle(BUILT_MARKS), strict=False))
    return fig.Figure(
        [_demands_panel(points, best), _sizes_panel(best, marked)],
        columns=2,
        width=10.4,
        height=5.2,
        legend=[*legend, *(_built_entry(networks, mark) for networks, mark in marked)],
        heading="Bits of random labels per parameter (all parameters counted)",
    )


def tuning_figure(rows: Rows) -> fig.Figure:
    """Declare what other learning rates and other numbers of steps bring: a curve for each size that tried them."""
    tuned = tunings(rows)
    by_setting = {name: [tuning for tuning in tuned if tuning.along == name] for name in ALONG}
    panels = [_tuning_panel(some) for some in by_setting.values() if some]
    if not panels:
        raise BadInput("no size was trained with three learning rates, or for three numbers of steps; expected one")
    points = [point for tuning in tuned for point in tuning.points]
    return fig.Figure(
        panels,
        columns=len(panels),
        width=5.2 * len(panels),
        height=4.6,
        legend=[
            (f"measured: trained, {_seeds_in_words(points)}", fig.MEASURED),
            ("how all sizes of the ladder were trained", fig.PROVED_BEFORE),
        ],
        heading="Bits of random labels per parameter, by how the network was trained",
    )


def _tuning_panel(some: Sequence[Tuning]) -> fig.Panel:
    along = some[0].along
    marks: list[fig.Mark] = []
    for tuning, shade in fig.shaded(some):
        marks.append(_held_curve([getattr(point, along) for point in tuning.points], tuning.points, shade))
    marks.append(fig.Rule(GUIDE, x=some[0].chosen[along == "steps"]))
    every = [(getattr(point, along), point.bits_per_parameter) for tuning in some for point in tuning.points]
    ticks = sorted({x for x, _ in every})
    # An interval may reach below 0, bits do not.
    floor = 0.0 if all(bits >= 0 for _, bits in every) else None
    names = [f"{x:,g}" for x in ticks]
    return fig.Panel(
        fig.Axis(ALONG[along], scale="log", ticks=ticks, tick_names=names, has_minor_ticks=False),
        fig.Axis(HELD, floor=floor),
        marks,
        _gains_in_words(some),
        [_end_label(tuning.points[-1], shade) for tuning, shade in fig.shaded(some)],
    )


def _gains_in_words(some: Sequence[Tuning]) -> str:
    """Say what the last increase of the steps brought, or which rate was best; size by size."""
    if some[0].along == "steps":
        gains = [t.points[-1].bits_per_parameter - t.points[-2].bits_per_parameter for t in some]
        return f"The last steps bring {', '.join(f'{gain:+.2f}' for gain in gains)}".replace("-", "−")
    best = [max(tuning.points, key=lambda point: point.bits_per_parameter).learning_rate for tuning in some]
    return f"Most is held at {', '.join(f'{rate:g}' for rate in best)}"


def _seeds_in_words(points: Sequence[CapacityEstimate]) -> str:
    """Say how many seeds the points are means of."""
    seeds = sorted({point.seeds for point in points})
    return "single runs" if seeds == [1] else f"mean and 95 % interval over {range_in_words(seeds, '')} seeds"


def _demands_panel(points: Sequence[CapacityEstimate], best: Sequence[CapacityEstimate]) -> fig.Panel:
    """Declare bits held against bits asked for, trained as the best point was; a curve for each size."""
    marks: list[fig.Mark] = []
    names: list[fig.EndLabel] = []
    for top, shade in fig.shaded(best):
        some = [p for p in points if (p.parameters, p.training) == (top.parameters, top.training)]
        some.sort(key=lambda point: point.demand)
        marks.append(_held_curve([point.demand for point in some], some, shade))
        names.append(_end_label(some[-1], shade))
    most = max(point.demand for point in points)
    marks.append(fig.Curve([0, most], [0, most], GUIDE))
    high = 1.15 * max(point.high or point.bits_per_parameter for point in points)
    # An interval may reach below 0, bits do not.
    low = min(0.0, *(point.bits_per_parameter for point in points))
    demands = fig.Axis("bits asked for per parameter: N log₂C / P", limits=(0, 1.03 * most))
    return fig.Panel(
        demands, fig.Axis(HELD, limits=(1.05 * low, high)), marks, "Trained, by how much was asked for", names
    )


def _end_label(point: CapacityEstimate, shade: str) -> fig.EndLabel:
    return fig.EndLabel(f"P = {point.parameters:,}", [point.bits_per_parameter], shade)


def _sizes_panel(best: Sequence[CapacityEstimate], marked: Sequence[tuple[Sequence[Beside], str]]) -> fig.Panel:
    """Declare the most over N against P, and what is built; on a logarithmic scale unless something holds nothing."""
    marks: list[fig.Mark] = []
    for top, shade in fig.shaded(best):
        style = {"markersize": 6, **(HOLLOW if top.edge else {})}
        marks.append(_held_curve([top.parameters], [top], shade, style))
    marks.append(fig.Rule(GUIDE, y=MORRIS_BITS))
    for networks, mark in marked:
        marks += _built_marks(networks, mark)
    bits = [point.bits_per_parameter if point.low is None else point.low for point in best]
    bits += [MORRIS_BITS, *(each.bits_per_parameter for networks, _ in marked for each in networks)]
    holds = min(point.bits_per_parameter for point in best) > 0
    return fig.Panel(
        fig.Axis("P, parameters", scale="log", is_round=True, has_minor_ticks=False, number_format="{x:,.0f}"),
        _axis_of_halves(bits) if holds else fig.Axis(HELD),
        marks,
        "The most over N, and networks built for the same labels",
    )


def _built_entry(networks: Sequence[Beside], mark: str) -> fig.Entry:
    bits = max(each.weight_bits for each in networks)
    exact = "" if bits == FLOAT_BITS else f", weights up to {bits:,} bits"
    return f"built, every answer checked: {networks[0].name}{exact}", {**BUILT_NETWORK, "marker": mark}


def _built_marks(networks: Sequence[Beside], mark: str) -> list[fig.Mark]:
    """Return networks of one kind; the first and the last have their N beside them."""
    bits = [each.bits_per_parameter for each in networks]
    marks: list[fig.Mark] = [fig.Curve([each.parameters for each in networks], bits, {**BUILT_NETWORK, "marker": mark})]
    for each, rise in ((networks[0], -9), (networks[-1], 4))[: len(networks)]:
        text = f"N = {each.examples:,}"
        marks.append(fig.Annotation(text, each.parameters, each.bits_per_parameter, (6, rise), SMALL))
    return marks


def _axis_of_halves(bits: Sequence[float]) -> fig.Axis:
    """Return a logarithmic axis of powers of two, from the least that is drawn to the most."""
    low = max(-MOST_HALVINGS, math.floor(math.log2(max(min(bits), 2.0**-MOST_HALVINGS))))
    powers = range(low, math.ceil(math.log2(max(bits))) + 1)
    ticks = [2.0**power for power in powers]
    names = [FRACTIONS.get(power, f"{2 ** max(power, 0)}") for power in powers]
    limits = 0.85 * ticks[0], 1.18 * ticks[-1]
    return fig.Axis(HELD, scale="log", limits=limits, ticks=ticks, tick_names=names, has_minor_ticks=False)


def _held_curve(
    xs: Sequence[float], points: Sequence[CapacityEstimate], shade: str, style: fig.Style | None = None
) -> fig.Curve:
    means = [point.bits_per_parameter for point in points]
    below = [0.0 if point.low is None else point.bits_per_parameter - point.low for point in points]
    above = [0.0 if point.high is None else point.high - point.bits_per_parameter for point in points]
    return fig.Curve(xs, means, {**fig.MEASURED, **(style or {}), "color": shade}, below=below, above=above)


def _figures(_: str, rows: Rows, beside: Sequence[Beside] = ()) -> list[fig.AvailableFigure]:
    caption = (
        "Bits of random labels memorized, per parameter, by size and by how many were asked for: lower bounds of what"
        " such networks can hold, as training may stop short of it."
    )
    figures = [fig.AvailableFigure("capacity", caption, partial(capacity_figure, rows, beside))]
    if tunings(rows):
        caption = "What other learning rates and other numbers of steps bring."
        figures.append(fig.AvailableFigure("tuning", caption, partial(tuning_figure, rows)))
    return figures


def _tables(_: str, rows: Rows) -> list[fig.DataTable]:
    """Return bits per parameter at all points, and laws of the most that is held over the parameters."""
    title = "Bits per parameter, mean and 95 % interval over seeds"
    tables = [fig.DataTable(title, [asdict(point) for point in held(rows)])]
    best = plateaus(rows)
    if len(best) >= LEAST_POINTS:
        sizes, bits = [p.parameters for p in best], [p.bits_per_parameter * p.parameters for p in best]
        laws = law_rows(compare(sizes, bits, ("linear", "quadratic", "power")))
        tables.append(fig.DataTable("Laws of the most bits held over parameters", laws))
    return tables


def _findings(_: str, rows: Rows) -> list[str]:
    best = plateaus(rows)
    findings = [f"{point.parameters:,} parameters hold {_bits_in_words(point)} bits each." for point in best]
    if any(point.edge for point in best):
        full = ", ".join(f"{point.parameters:,}" for point in best if point.edge)
        findings.append(f"Of {full} parameters most was held where most was asked for: they may not be full.")
    published = f"Published, for GPTs of 5·10⁵ to 1.5·10⁹ parameters: about {MORRIS_BITS} (Morris et al. 2025)."
    return [*findings, published, *(_tuning_in_words(tuning) for tuning in tunings(rows))]


def _tuning_in_words(tuning: Tuning) -> str:
    """Say whether another learning rate, or more steps, would have brought more."""
    rate, steps = tuning.chosen
    first = tuning.points[0]
    where = f"At {first.parameters:,} parameters and N = {first.examples:,}"
    if tuning.along == "steps":
        bits = ", ".join(f"{_bits_in_words(point)} after {point.steps:,} steps" for point in tuning.points)
        return f"{where}, networks hold {bits}; those of the ladder were trained for {steps:,}."
    bits = ", ".join(f"{_bits_in_words(point)} at {point.learning_rate:g}" for point in tuning.points)
    return f"{where}, by learning rate they hold {bits}; those of the ladder were trained at {rate:g}."


def _bits_in_words(point: CapacityEstimate) -> str:
    interval = "" if point.low is None else f" ({point.low:.2f} to {point.high:.2f})"
    return f"{point.bits_per_parameter:.2f}{interval}"


CAPACITY = Paper(
    "after Morris et al. 2025, on how much language models memorize",
    "How many bits does a trained GPT memorize per parameter?",
    _figures,
    _tables,
    _findings,
)

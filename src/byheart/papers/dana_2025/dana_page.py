"""Figures, tables, findings and pages of Dana, Pydi & Chevaleyre 2025.

Figures have on the left what the paper measured, with its numbers, and on the right accuracy over all ω² contexts,
which the bounds are about.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from byheart import exhibits as fig
from byheart.lab.fits import FamilyComparison, FamilyFit
from byheart.lab.linear import SATURATED
from byheart.lab.rows import is_number
from byheart.papers.curves import (
    Rows,
    Series,
    check_columns,
    estimate_in_words,
    law_rows,
    runs_in_words,
    series,
    shared_sizes,
    shared_value,
    values,
)
from byheart.papers.dana_2025 import dana_claims as dana
from byheart.papers.paper import Paper
from byheart.papers.results import built

STORED = "proved: H·d_h + d stored, the others guessed"
CERTIFIED = "built by dana-2025, and certified"
STORED_BEFORE = "proved before: H(d_h − 1) + 1 stored"
SIZES = ("vocab", "model_dim", "head_dim", "heads")
MOST_BOUNDED = 6
"""Largest number of curves that all have their bounds drawn; of more only the first, the middle and the last have."""
ACCURACIES = {dana.METRIC: "training accuracy, last batches", "accuracy": "accuracy over all ω² contexts"}
LAW_LINES = ("-", (0, (6, 1.5)), (0, (3, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)))
"""Line styles of fitted laws, the preferred one first."""
PREFERRED_LAW, OTHER_LAW = "#b3123f", "#1f5fa8"
WITH_MLP: fig.Style = {**fig.MEASURED, "marker": "s", "markerfacecolor": "white", "linestyle": (0, (4, 2))}
POINT: fig.Style = {"marker": "o", "markersize": 4.5, "linestyle": "none", "alpha": 0.75}
NOISE: fig.Style = {
    "linestyle": "-",
    "linewidth": 11,
    "alpha": 0.2,
    "zorder": 1,
    "solid_capstyle": "butt",
    "color": fig.INK,
}
TRAINED: fig.Style = {"marker": "o", "markersize": 4, "linewidth": 1.4, "color": fig.RAMP[2]}
THEORY_INK = fig.RAMP[4]
ALL: fig.Style = {"linewidth": 1.0}
AGAINST_MLP = "attention-mlp"
"""Name of the figure that compares heads with an MLP."""
PARTNERS = {
    "dana-2025-5-attention": "dana-2025-5-mlp",
    "dana-2025-5-mlp": "dana-2025-5-attention",
    "dana-2025-5-larger": "dana-2025-1-larger",
    "dana-2025-5-deeper": "dana-2025-1-deeper",
}
"""Experiments whose results stand in the same figure of the paper: heads against an MLP."""


@dataclass(frozen=True)
class Sweep:
    """A figure of accuracy against one setting; sizes among ``fixed`` that all rows share stand in its heading."""

    name: str
    axis: str
    heading: str
    caption: str
    fixed: tuple[str, ...]
    by: str | None = None
    """Setting of which each value has a curve."""


SWEEPS = {
    "heads": Sweep(
        "heads", "H, heads", "Accuracy against heads", "heads, for each dimension,", ("vocab",), by="model_dim"
    ),
    "head_dim": Sweep(
        "head-dim",
        "d_h, dimension of a head",
        "Accuracy against the heads' dimension",
        "the heads' dimension,",
        ("vocab", "model_dim", "heads"),
    ),
    "model_dim": Sweep(
        "model-dim",
        "d, dimension of the embedding",
        "Accuracy against the embedding's dimension",
        "the embedding's dimension,",
        ("vocab", "head_dim", "heads"),
    ),
}
"""Figures of experiments 1, 2 and 3, by the setting along the axis."""


def sweep_figure(rows: Rows, along: str) -> fig.Figure:
    """Declare accuracy against one setting, with published numbers and both bounds."""
    sweep, by = SWEEPS[along], SWEEPS[along].by
    check_columns(rows, *SIZES, *ACCURACIES)
    if by:
        shared_value(rows, "vocab")
    points, keys = dana.published_beside(rows), values(rows, by) if by else [None]
    bounded = keys if len(keys) <= MOST_BOUNDED else [keys[0], keys[len(keys) // 2], keys[-1]]
    panels = []
    for metric, title in zip(ACCURACIES, ("As the paper measures it", "As the theorem counts it"), strict=True):
        curves, marks = series(rows, by, along, metric), list[fig.Mark]()
        for curve, shade in fig.shaded(curves):
            marks.append(curve.drawn(shade))
            if metric == dana.METRIC:
                marks.append(_published_curve([p for p in points if by is None or p[by] == curve.key], along, shade))
            elif curve.key in bounded:
                marks += _theory([row for row in rows if by is None or row[by] == curve.key], along, shade)
        names = (
            [fig.EndLabel(f"{dana.LETTERS[by]} = {c.key:g}", c.means, s) for c, s in fig.shaded(curves)] if by else []
        )
        panels.append(_accuracy_panel(fig.Axis(sweep.axis, is_whole=_is_whole(curves)), metric, marks, title, names))
    entries: list[fig.Entry] = [
        (f"measured, {runs_in_words(curves)}", fig.MEASURED),
        *_published_entry(rows, points),
    ]
    if any(is_number(row.get("lower_bound")) for row in rows):
        which = (
            f" (for {dana.LETTERS[by]} = {', '.join(f'{key:g}' for key in bounded)})" if by and bounded != keys else ""
        )
        entries += [(STORED + which, fig.PROVED), (STORED_BEFORE + which, fig.PROVED_BEFORE)]
        entries += [(CERTIFIED, fig.BUILT)] if _certified(rows) else []
    is_same = along == "heads" and all(row["head_dim"] == row["model_dim"] for row in rows)
    fixed = sweep.fixed if is_same or along != "heads" else (*sweep.fixed, "head_dim")
    heading = f"{sweep.heading}; {'d_h = d, ' if is_same else ''}{_sizes(rows, *fixed)}"
    return fig.Figure(panels, columns=2, width=10.4, height=5.2, legend=entries, heading=heading, shares_x=True)


def mlp_figure(rows: Rows) -> fig.Figure:
    """Declare experiment 5: accuracy against parameters, with more heads or a wider MLP, a colour for each d."""
    check_columns(rows, "model_dim", "parameters", *ACCURACIES)
    points = dana.published_beside(rows)
    kinds = [("attention: more heads", False, fig.MEASURED), ("one head and an MLP: wider", True, WITH_MLP)]
    panels = []
    for metric, title in zip(ACCURACIES, ("As the paper measures it", "Over all contexts"), strict=True):
        marks, names, drawn = list[fig.Mark](), list[fig.EndLabel](), list[Series]()
        for dim, shade in fig.shaded(values(rows, "model_dim")):
            of_dim = [row for row in rows if row["model_dim"] == dim]
            of_kinds = [[row for row in of_dim if (row.get("hidden") is not None) == kind] for _, kind, _ in kinds]
            curves = [series(some, None, "parameters", metric) if some else [] for some in of_kinds]
            for some, (_, _, style) in zip(curves, kinds, strict=True):
                marks += [curve.drawn(shade, style) for curve in some]
            drawn += (both := [curve for some in curves for curve in some])
            names += [fig.EndLabel(f"d = {dim}", curve.means, shade) for curve in both[-1:]]
            if metric == dana.METRIC:
                sizes = {dana.settings_of(row): row["parameters"] for row in of_dim}
                placed = [p | {"parameters": sizes[s]} for p in points if (s := dana.settings_of(p)) in sizes]
                marks.append(_published_curve(placed, "parameters", shade))
        x = fig.Axis("parameters", number_format="{x:,.0f}", is_whole=_is_whole(drawn))
        panels.append(_accuracy_panel(x, metric, marks, title, names))
    entries = [(f"measured, {runs_in_words(drawn)}; {name}", style) for name, _, style in kinds]
    return fig.Figure(
        panels,
        columns=2,
        width=10.4,
        height=4.9,
        legend=[*entries, *_published_entry(rows, points)],
        heading=f"Attention against MLP, by parameters; {_sizes(rows, 'vocab')}",
    )


def _accuracy_panel(
    x: fig.Axis, metric: str, marks: list[fig.Mark], title: str, names: Sequence[fig.EndLabel]
) -> fig.Panel:
    return fig.Panel(x, fig.Axis(ACCURACIES[metric], limits=(0, 1.03)), marks, title, names)


def _is_whole(curves: Sequence[Series]) -> bool:
    return any(curve.is_whole for curve in curves)


def _theory(rows: Rows, x: str, shade: str) -> list[fig.Mark]:
    """Return both bounds of some networks, and the networks of their sizes that were built and certified."""
    marks: list[fig.Mark] = []
    for column, style in (("lower_bound", fig.PROVED), ("previous_bound", fig.PROVED_BEFORE)):
        points = sorted({(row[x], row[column]) for row in rows if is_number(row.get(column))})
        marks.append(fig.line(points, {**style, "color": shade}))
    certified = _certified(rows)
    style = {**fig.BUILT, "color": shade, "zorder": 4}
    return [*marks, fig.Curve([row[x] for row in certified], [row["accuracy"] for row in certified], style)]


def _published_curve(points: Rows, x: str, shade: str) -> fig.Curve:
    style = {**fig.PUBLISHED, "color": shade, "zorder": 5}
    return fig.Curve([point[x] for point in points], [point[dana.METRIC] for point in points], style)


def _published_entry(rows: Rows, points: Rows) -> list[fig.Entry]:
    """Return the legend's entry about published points, if there are any."""
    if not points:
        return []
    return [
        (
            f"published, mean of {shared_value(points, 'runs')} runs{dana.other_steps(rows, points)}",
            fig.PUBLISHED,
        )
    ]


def _certified(rows: Rows) -> Rows:
    """Return the built and certified networks with the sizes of some row with one layer of attention alone."""
    alone = (row for row in rows if row.get("hidden") is None and row.get("layers", 1) == 1)
    sizes = {tuple(row.get(name) for name in SIZES) for row in alone}
    return [row for row in built("dana_2025") if tuple(row[name] for name in SIZES) in sizes]


def _sizes(rows: Rows, *columns: str) -> str:
    """Return the sizes that all rows share, in letters, and the number of layers if there are several."""
    layers = shared_value(rows, "layers") if any("layers" in row for row in rows) else 1
    sizes = shared_sizes(rows, {name: dana.LETTERS[name] for name in columns})
    return sizes if layers == 1 else ", ".join([sizes, f"{layers} layers"] if sizes else [f"{layers} layers"])


def slopes_figure(rows: Rows) -> fig.Figure:
    """Declare experiment 4: slopes over d, the slope that the theorem promises, and fitted laws."""
    ours = dana.slopes_of(rows)
    pairs = zip(ours.dims, ours.slopes, strict=True)
    [curve] = series([{"d": d, "slope": slope} for d, slope in pairs], None, "d", "slope")
    vocab, points = shared_value(rows, "vocab"), dana.published_beside(rows)
    xs = np.linspace(min(curve.xs), max(curve.xs), 200)
    marks: list[fig.Mark] = []
    entries: list[fig.Entry] = [(f"measured, {runs_in_words([curve])}", {**fig.MEASURED, "color": fig.INK})]
    for law, style in _styled_laws(ours.comparison):
        marks.append(fig.Curve(xs.tolist(), law.at(xs).tolist(), style))
        entries.append((f"fitted: {dana.describe(law)}", style))
        if law is ours.comparison.by_aicc:
            low, high = law.band(xs)
            marks.append(fig.Band(xs.tolist(), low.tolist(), high.tolist(), style["color"]))
    marks.append(curve.drawn(fig.INK, {"linestyle": "none", "markersize": 5}))
    published_dims, published_slopes = dana.measured_slopes(points)
    if published_dims:
        marks.append(fig.Curve(published_dims, published_slopes, {**fig.PUBLISHED, "color": fig.INK}))
        entries.append(
            (f"of the published accuracies{dana.other_steps(rows, points)}", {**fig.PUBLISHED, "color": fig.INK})
        )
    bound = {**fig.PROVED, "color": fig.QUIET}
    marks.append(fig.Curve(xs.tolist(), ((1 - 1 / vocab) * xs / vocab**2).tolist(), bound))
    entries.append(("proved: (1 − 1/ω)·d/ω², the slope of the bound", bound))
    title = f"Slopes of accuracy over heads, below {SATURATED}; ω = {vocab}"
    failed = [f"{law.family} failed: {law.reason}" for law in ours.comparison.fits if law.status == "failed"]
    x, y = fig.Axis("d = d_h", is_whole=curve.is_whole), fig.Axis("accuracy gained per head", limits=(0, None))
    return fig.Figure(
        [fig.Panel(x, y, marks, title)],
        height=5.2,
        legend=entries,
        legend_inside={"loc": "upper left", "fontsize": 8},
        heading=". ".join([dana.preference(ours.comparison), *failed]),
    )


def _styled_laws(comparison: FamilyComparison) -> list[tuple[FamilyFit, fig.Style]]:
    """Return every fit that succeeded with the style of its line; the preferred one stands out."""
    styled: list[tuple[FamilyFit, fig.Style]] = []
    for law, pattern in zip(comparison.fits, LAW_LINES, strict=False):
        best = law is comparison.by_aicc
        look = {"color": PREFERRED_LAW if best else OTHER_LAW, "linestyle": pattern, "linewidth": 1.8 if best else 1.2}
        if law.status == "fitted":
            styled.append((law, {**look, "zorder": 2.5 if best else 2}))
    return styled


def record_figure(experiments: Sequence[dana.Gaps]) -> fig.Figure:
    """Declare all published points: ours against theirs, and each experiment's gaps beside those of noise alone."""
    left: list[fig.Mark] = [fig.Curve([0, 1], [0, 1], {**fig.PROVED_BEFORE, "color": fig.QUIET})]
    right: list[fig.Mark] = []
    for place, (experiment, shade) in enumerate(fig.shaded(experiments)):
        style, points, noise = {**POINT, "color": shade}, experiment.points, experiment.expected
        left.append(fig.Curve([point.published for point in points], [point.here for point in points], style))
        right.append(fig.Curve([point.gap for point in points], [place] * len(points), style))
        if noise is not None:
            right.append(fig.Curve([-noise, noise], [place, place], NOISE))
    right.append(fig.Rule({**fig.PROVED_BEFORE, "color": fig.QUIET}, x=0))
    names = [experiment.name.removeprefix("dana-2025-") for experiment in experiments]
    count = sum(len(experiment.points) for experiment in experiments)
    x, y = fig.Axis("published training accuracy"), fig.Axis("training accuracy here")
    gap = fig.Axis("here − published", most_ticks=6)
    experiment_axis = fig.Axis("experiment", ticks=range(len(names)), tick_names=names, is_inverted=True)
    return fig.Figure(
        [fig.Panel(x, y, left, f"{count} points"), fig.Panel(gap, experiment_axis, right, "Gaps by experiment")],
        columns=2,
        width=10.4,
        height=5.4,
        legend=[
            ("a point: mean of our runs, and the published mean", POINT),
            ("no gap", fig.PROVED_BEFORE),
            ("band: ± the mean |gap| that noise alone would make", NOISE),
        ],
        heading="Dana, Pydi & Chevaleyre 2025: every published point, and ours",
    )


def held_figure(rows: Rows) -> fig.Figure:
    """Declare associations held against heads: trained and proved, promised, built and proved, guessed, and all."""
    table, first = dana.held_of(rows), dana.held_of(rows)[0]
    sizes = {letter: shared_value(rows, name) for name, letter in dana.LETTERS.items() if name in SIZES[:3]}
    every = int(shared_value(rows, "examples"))
    least = min(held.most for held in table)
    allowed = f"; counting allows {least:,} or more" if least >= first.examples else ""
    built_mark, promised, heads = {**fig.BUILT, "color": THEORY_INK}, {**fig.PROVED, "color": THEORY_INK}, "H, heads"
    marks: list[fig.Mark] = [
        fig.line([(held.heads, every) for held in table], {**ALL, "color": fig.QUIET}),
        fig.Curve([held.heads for held in table], [held.right for held in table], TRAINED),
        fig.Curve([held.heads for held in table], [held.built for held in table], built_mark),
        fig.line([(held.heads, held.promised) for held in table], promised),
        fig.line([(held.heads, held.guessed) for held in table], {**fig.PROVED_BEFORE, "color": fig.QUIET}),
        *_written_numbers(dana.quoted(table)),
    ]
    entries = [
        ("trained, single runs; each answer proved", TRAINED),
        ("built by dana-2025; each answer proved", built_mark),
        ("promised by the theorem: H·d_h + d", promised),
        (f"uniform guesses, in the mean: {first.guessed:g}", fig.PROVED_BEFORE),
        (f"all that are asked for{allowed}", ALL),
    ]
    y = fig.Axis(f"associations held, of {every:,}", limits=(0, 1.06 * every), number_format="{x:,.0f}")
    heading = ", ".join(f"{letter} = {value:g}" for letter, value in sizes.items())
    heading = f"What one layer of attention alone holds; {heading}"
    return fig.Figure([fig.Panel(fig.Axis(heads), y, marks)], height=5.2, legend=entries, heading=heading)


def _written_numbers(held: dana.MemorizedCount) -> list[fig.Annotation]:
    """Return three numbers of one network, beside their marks."""
    look = {"ha": "center", "va": "center", "fontsize": 9.5}
    numbers = [(held.right, TRAINED["color"], (-20, 9)), (held.built, THEORY_INK, (0, 12))]
    return [
        fig.Annotation(f"{number:,}", held.heads, number, shift, {**look, "color": colour})
        for number, colour, shift in [*numbers, (held.promised, THEORY_INK, (0, -8.5))]
    ]


def _figures(_: str, rows: Rows, __: object = ()) -> list[fig.AvailableFigure]:
    plain = [row for row in rows if row.get("hidden") is None]
    varying = {name for name in ("model_dim", "head_dim", "heads") if len(values(plain, name)) > 1}
    figures = []
    if len(plain) != len(rows):
        caption = "Accuracy against parameters: more heads, or one head and a wider MLP, with published numbers."
        figures.append(fig.AvailableFigure(AGAINST_MLP, caption, partial(mlp_figure, rows)))
    along = "heads" if "heads" in varying else next(iter(varying)) if len(varying) == 1 else None
    if along is not None:
        caption = f"Accuracy against {SWEEPS[along].caption} with published numbers and bounds."
        figures.append(fig.AvailableFigure(SWEEPS[along].name, caption, partial(sweep_figure, plain, along)))
    if varying == {"model_dim", "head_dim", "heads"} and dana.has_slopes(plain):
        caption = "Accuracy gained per head, against the dimension (the paper's experiment 4)."
        figures.append(fig.AvailableFigure("slopes", caption, partial(slopes_figure, plain)))
    return figures


def _tables(experiment: str, rows: Rows) -> list[fig.DataTable]:
    """Return every published point, slopes of the curves, what the paper says about them, and laws of the slopes."""
    tables = []
    if _has_published(rows):
        points = [point.cells() for point in dana.gaps(experiment, rows).points]
        title = "Published points: training accuracy, as it was reported, and over all contexts (uniform)"
        tables.append(fig.DataTable(title, points))
        if experiment in dana.published_names():
            cells = [slope.cells() for slope in dana.slopes(experiment, rows)]
            tables.append(fig.DataTable(f"Slopes of accuracy below {SATURATED} (95 %)", cells))
        if reported := [claim.cells() for claim in dana.claims({experiment: rows})]:
            tables.append(fig.DataTable("What the paper reports of them (95 %)", reported))
    plain = [row for row in rows if row.get("hidden") is None]
    if len(values(plain, "heads")) > 1 and dana.has_slopes(plain):
        tables.append(fig.DataTable("Laws fitted to the slopes over d", law_rows(dana.slopes_of(plain).comparison)))
    return tables


def _has_published(rows: Rows) -> bool:
    return any(is_number(row.get(dana.METRIC)) for row in rows) and bool(dana.published_beside(rows))


def _findings(experiment: str, rows: Rows) -> list[str]:
    findings = []
    if _has_published(rows):
        apart = dana.gaps(experiment, rows)
        findings.append(apart.in_words() + dana.other_steps(rows, dana.published_beside(rows)))
        if apart.uniform is not None:
            side = "lower" if apart.uniform < 0 else "higher"
            findings.append(
                f"Over all contexts, each counted once, accuracy is {abs(apart.uniform):.3f} {side} than the reported"
                " one, which is over the sample that was trained on."
            )
    bounded = [row for row in rows if is_number(row.get("lower_bound")) and is_number(row.get("accuracy"))]
    if bounded:
        above = sum(row["accuracy"] > row["lower_bound"] for row in bounded)
        findings.append(f"{above:,} of {len(bounded):,} trained networks are above the proved lower bound.")
    for claim in dana.claims({experiment: rows}):
        theirs = f"the paper says {claim.reported}; its points give {estimate_in_words(claim.published)}"
        what = f"{claim.what[0].upper()}{claim.what[1:]}"
        findings.append(f"{what}: {estimate_in_words(claim.here)} here; {theirs}.")
    return findings


DANA = Paper(
    "Dana, Pydi & Chevaleyre 2025, on the memorization of associations by attention-only Transformers",
    "How many associations does an attention-only Transformer memorize?",
    _figures,
    _tables,
    _findings,
)


def paper_page(name: str) -> fig.ResultsPage:
    """Return the page about the whole paper: all published points against ours, slopes, and what is held."""
    tables = dana.shipped_tables()
    experiments, all_slopes, reported = dana.record(tables)
    *each, together = experiments
    rows = built("held")
    held = dana.held_of(rows)
    caption = "Associations held by networks that were trained, each answer proved, beside what the theorem promises."
    figures = [
        fig.AvailableFigure("published", "All published points: ours against theirs.", partial(record_figure, each)),
        fig.AvailableFigure("held", caption, partial(held_figure, rows)),
    ]
    findings = [together.in_words(), dana.quoted(held).in_words()]
    findings += [f"{part.name.removeprefix(f'{name}-')}: {part.in_words()}" for part in each]
    listed = [
        fig.DataTable(
            "Gaps by experiment: training accuracy, here minus published", [gap.cells() for gap in experiments]
        ),
        fig.DataTable("What the paper reports (95 %)", [claim.cells() for claim in reported]),
        fig.DataTable("Slopes of accuracy below 0.9 (95 %)", [slope.cells() for slope in all_slopes]),
        fig.DataTable(
            "How many associations are held: single runs, each answer proved", [count.cells() for count in held]
        ),
    ]
    return DANA.page(name, findings, figures, listed, sum(map(len, tables.values())))

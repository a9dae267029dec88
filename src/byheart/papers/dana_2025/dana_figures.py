"""Figures of Dana, Pydi & Chevaleyre 2025: accuracy against heads, dimensions, and parameters of an MLP.

Left what the paper measured, with its numbers; right accuracy over all ω² contexts, which the bounds are about.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from byheart.exhibits import (
    BUILT,
    INK,
    MEASURED,
    PROVED,
    PROVED_BEFORE,
    PUBLISHED,
    QUIET,
    RAMP,
    Annotation,
    Axis,
    Band,
    Curve,
    Entry,
    Figure,
    Mark,
    Panel,
    Rule,
    Style,
    colours,
    line,
)
from byheart.lab.fits import FamilyComparison, FamilyFit
from byheart.lab.linear import SATURATED
from byheart.lab.rows import is_number
from byheart.papers.built import built
from byheart.papers.curves import Rows, Series, check_columns, runs_in_words, series, shared_value, values
from byheart.papers.dana_2025.dana_claims import other_steps
from byheart.papers.dana_2025.gaps import Gaps
from byheart.papers.dana_2025.held import MemorizedCount, held_of, quoted
from byheart.papers.dana_2025.published import beside, settings_of
from byheart.papers.dana_2025.slopes import describe, measured_slopes, preference, slopes_of

STORED = "proved: H·d_h + d stored, the others guessed"
CERTIFIED = "built by dana-2025, and certified"
STORED_BEFORE = "proved before: H(d_h − 1) + 1 stored"
SIZES = ("vocab", "model_dim", "head_dim", "heads")
LETTERS = {"vocab": "ω", "model_dim": "d", "head_dim": "d_h", "heads": "H"}
MOST_BOUNDED = 6
"""Largest number of curves that all have their bounds drawn; of more only the first, the middle and the last have."""
ACCURACY = (0, 1.03)
"""Limits of an axis of accuracies."""
LAW_LINES = ("-", (0, (6, 1.5)), (0, (3, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)))
"""Line styles of fitted laws, the preferred one first."""
PREFERRED_LAW, OTHER_LAW = "#b3123f", "#1f5fa8"
WITH_MLP: Style = {**MEASURED, "marker": "s", "markerfacecolor": "white", "linestyle": (0, (4, 2))}
POINT: Style = {"marker": "o", "markersize": 4.5, "linestyle": "none", "alpha": 0.75}
NOISE: Style = {"linestyle": "-", "linewidth": 11, "alpha": 0.2, "zorder": 1, "solid_capstyle": "butt"}
TRAINED_INK, THEORY_INK = RAMP[2], RAMP[4]
TRAINED: Style = {"marker": "o", "markersize": 4, "linewidth": 1.4}
ALL: Style = {"linewidth": 1.0}


def heads_figure(rows: Rows) -> Figure:
    """Declare experiment 1: accuracy against heads, a curve for each d; published numbers; both bounds."""
    check_columns(rows, "model_dim", "heads", "accuracy", "last_accuracy", "vocab", "lower_bound", "previous_bound")
    same = all(row.get("head_dim", row["model_dim"]) == row["model_dim"] for row in rows)
    shared_value(rows, "vocab")
    sizes = f"{'d_h = d, ' if same else ''}{_shared_sizes(rows, *([] if same else ['head_dim']))}"
    return _accuracy_figure(rows, "heads", "H, heads", f"Accuracy against heads; {sizes}", by="model_dim")


def head_dims_figure(rows: Rows) -> Figure:
    """Declare experiment 2: accuracy against d_h."""
    check_columns(rows, "model_dim", "head_dim", "accuracy", "last_accuracy", "vocab", "heads")
    title = f"Accuracy against the heads' dimension; {_shared_sizes(rows, 'model_dim', 'heads')}"
    return _accuracy_figure(rows, "head_dim", "d_h, dimension of a head", title)


def dims_figure(rows: Rows) -> Figure:
    """Declare experiment 3: accuracy against d."""
    check_columns(rows, "model_dim", "head_dim", "accuracy", "last_accuracy", "vocab", "heads")
    title = f"Accuracy against the embedding's dimension; {_shared_sizes(rows, 'head_dim', 'heads')}"
    return _accuracy_figure(rows, "model_dim", "d, dimension of the embedding", title)


def _accuracy_figure(rows: Rows, x: str, x_name: str, heading: str, by: str | None = None) -> Figure:
    """Put what the paper measured on the left, with its numbers, and what the bounds are about on the right.

    ``x`` is the column along the axis; each value of the column ``by`` has a curve.
    """
    points = beside(rows)
    keys = values(rows, by) if by else [None]
    bounded = keys if len(keys) <= MOST_BOUNDED else [keys[0], keys[len(keys) // 2], keys[-1]]
    left, right = list[Mark](), list[Mark]()
    both = [series(rows, by, x, metric) for metric in ("last_accuracy", "accuracy")]
    for marks, curves in zip((left, right), both, strict=True):
        for curve, shade in zip(curves, colours(len(curves)), strict=True):
            marks.append(curve.drawn(shade))
            if marks is right and curve.key in bounded:
                marks.extend(_theory(_rows_of(rows, by, curve.key), x, shade))
            if marks is left:
                marks.append(_published(_rows_of(points, by, curve.key), x, shade))
    entries: list[Entry] = [(f"measured, {runs_in_words(both[1])}", MEASURED), *_published_entry(rows, points)]
    if any(is_number(row.get("lower_bound")) for row in rows):
        which = f" (for {LETTERS[by]} = {', '.join(f'{key:g}' for key in bounded)})" if by and bounded != keys else ""
        entries += [(STORED + which, PROVED), (STORED_BEFORE + which, PROVED_BEFORE)]
        entries += [(CERTIFIED, BUILT)] if _certified(rows) else []
    titles = ("As the paper measures it", "As the theorem counts it")
    return Figure(
        [
            Panel(
                Axis(x_name, is_whole=any(curve.is_whole for curve in curves)),
                Axis(y_name, limits=ACCURACY),
                marks,
                title,
                [c.named(f"{LETTERS[by]} = {c.key:g}", s) for c, s in _shaded(curves)] if by else (),
            )
            for marks, curves, y_name, title in zip((left, right), both, _ACCURACIES, titles, strict=True)
        ],
        columns=2,
        width=10.4,
        height=5.2,
        legend=entries,
        heading=heading,
        shares_x=True,
    )


_ACCURACIES = ("training accuracy, last batches", "accuracy over all ω² contexts")


def _shaded(curves: Sequence[Series]) -> list[tuple[Series, str]]:
    return list(zip(curves, colours(len(curves)), strict=True))


def _rows_of(rows: Rows, by: str | None, key: Any) -> Rows:
    return [row for row in rows if by is None or row[by] == key]


def _theory(rows: Rows, x: str, shade: str) -> list[Mark]:
    """Return both bounds of some networks, and the networks of their sizes that were built and certified."""
    marks: list[Mark] = []
    for column, style in (("lower_bound", PROVED), ("previous_bound", PROVED_BEFORE)):
        points = sorted({(row[x], row[column]) for row in rows if is_number(row.get(column))})
        marks.append(line(points, {**style, "color": shade}))
    certified = _certified(rows)
    style = {**BUILT, "color": shade, "zorder": 4}
    return [*marks, Curve([row[x] for row in certified], [row["accuracy"] for row in certified], style)]


def _published(points: Rows, x: str, shade: str) -> Curve:
    style = {**PUBLISHED, "color": shade, "zorder": 5}
    return Curve([point[x] for point in points], [point["last_accuracy"] for point in points], style)


def _published_entry(rows: Rows, points: Rows) -> list[Entry]:
    """Return the legend's entry about published points, if there are any."""
    if not points:
        return []
    runs = shared_value(points, "runs")
    return [(f"published, mean of {runs} runs{other_steps(rows, points)}", PUBLISHED)]


def _certified(rows: Rows) -> Rows:
    """Return the built and certified networks with the sizes of some row with one layer of attention alone."""
    alone = (row for row in rows if row.get("hidden") is None and row.get("layers", 1) == 1)
    sizes = {tuple(row.get(name) for name in SIZES) for row in alone}
    return [row for row in built("dana_2025") if tuple(row[name] for name in SIZES) in sizes]


def _shared_sizes(rows: Rows, *columns: str) -> str:
    """Return the sizes that all rows share, in letters."""
    shared = [name for name in ("vocab", *columns) if len(values(rows, name)) == 1]
    layers = shared_value(rows, "layers") if any("layers" in row for row in rows) else 1
    sizes = [f"{LETTERS[name]} = {shared_value(rows, name)}" for name in shared]
    return ", ".join(sizes + ([f"{layers} layers"] if layers != 1 else []))


def mlp_figure(rows: Rows) -> Figure:
    """Declare experiment 5: accuracy against parameters, with more heads or a wider MLP, a colour for each d."""
    check_columns(rows, "model_dim", "parameters", "accuracy", "last_accuracy")
    points, dims = beside(rows), values(rows, "model_dim")
    kinds = [("attention: more heads", False, MEASURED), ("one head and an MLP: wider", True, WITH_MLP)]
    titles = ("As the paper measures it", "Over all contexts")
    panels, drawn = [], list[Series]()
    for metric, y_name, title in zip(("last_accuracy", "accuracy"), _ACCURACIES, titles, strict=True):
        marks, last = list[Mark](), dict[str, tuple[Series, str]]()
        drawn.clear()
        for dim, shade in zip(dims, colours(len(dims)), strict=True):
            of_dim = [row for row in rows if row["model_dim"] == dim]
            for _, has_mlp, style in kinds:
                some = [row for row in of_dim if (row.get("hidden") is not None) == has_mlp]
                for curve in series(some, None, "parameters", metric) if some else []:
                    marks.append(curve.drawn(shade, style))
                    drawn.append(curve)
                    last[f"d = {dim}"] = curve, shade
            if metric == "last_accuracy":
                marks.append(_published_by_parameters(of_dim, points, shade))
        names = [curve.named(name, shade) for name, (curve, shade) in last.items()]
        whole = any(curve.is_whole for curve in drawn)
        x = Axis("parameters", number_format="{x:,.0f}", is_whole=whole)
        panels.append(Panel(x, Axis(y_name, limits=ACCURACY), marks, title, names))
    repeated = runs_in_words(drawn)
    entries = [(f"measured, {repeated}; {name}", style) for name, _, style in kinds]
    return Figure(
        panels,
        columns=2,
        width=10.4,
        height=4.9,
        legend=[*entries, *_published_entry(rows, points)],
        heading=f"Attention against MLP, by parameters; {_shared_sizes(rows)}",
    )


def _published_by_parameters(rows: Rows, points: Rows, shade: str) -> Curve:
    """Return published accuracies at the parameters of our networks of the same settings."""
    sizes = {settings_of(row): row["parameters"] for row in rows}
    at_parameters = [{**point, "parameters": sizes[s]} for point in points if (s := settings_of(point)) in sizes]
    return _published(at_parameters, "parameters", shade)


def slopes_figure(rows: Rows) -> Figure:
    """Declare experiment 4: slopes over d, the slope that the theorem promises, and fitted laws."""
    ours = slopes_of(rows)
    pairs = zip(ours.dims, ours.slopes, strict=True)
    [curve] = series([{"d": d, "slope": slope} for d, slope in pairs], None, "d", "slope")
    vocab, points = shared_value(rows, "vocab"), beside(rows)
    xs = np.linspace(min(curve.xs), max(curve.xs), 200)
    marks: list[Mark] = []
    entries: list[Entry] = [(f"measured, {runs_in_words([curve])}", {**MEASURED, "color": INK})]
    for law, style in _styled_laws(ours.comparison):
        marks.append(Curve(xs.tolist(), law.at(xs).tolist(), style))
        entries.append((f"fitted: {describe(law)}", style))
        if law is ours.comparison.by_aicc:
            low, high = law.band(xs)
            marks.append(Band(xs.tolist(), low.tolist(), high.tolist(), style["color"]))
    marks.append(curve.drawn(INK, {"linestyle": "none", "markersize": 5}))
    dims, slopes = measured_slopes(points)
    if dims:
        marks.append(Curve(dims, slopes, {**PUBLISHED, "color": INK}))
        entries.append((f"of the published accuracies{other_steps(rows, points)}", {**PUBLISHED, "color": INK}))
    bound = {**PROVED, "color": QUIET}
    marks.append(Curve(xs.tolist(), ((1 - 1 / vocab) * xs / vocab**2).tolist(), bound))
    entries.append(("proved: (1 − 1/ω)·d/ω², the slope of the bound", bound))
    title = f"Slopes of accuracy over heads, below {SATURATED}; ω = {vocab}"
    failed = [f"{law.family} failed: {law.reason}" for law in ours.comparison.fits if law.status == "failed"]
    x, y = Axis("d = d_h", is_whole=curve.is_whole), Axis("accuracy gained per head", limits=(0, None))
    return Figure(
        [Panel(x, y, marks, title)],
        height=5.2,
        legend=entries,
        legend_inside={"loc": "upper left", "fontsize": 8},
        heading=". ".join([preference(ours.comparison), *failed]),
    )


def _styled_laws(comparison: FamilyComparison) -> list[tuple[FamilyFit, Style]]:
    """Return every fit that succeeded with the style of its line; the preferred one stands out."""
    styled: list[tuple[FamilyFit, Style]] = []
    for law, pattern in zip(comparison.fits, LAW_LINES, strict=False):
        best = law is comparison.by_aicc
        look = {"color": PREFERRED_LAW if best else OTHER_LAW, "linestyle": pattern, "linewidth": 1.8 if best else 1.2}
        if law.status == "fitted":
            styled.append((law, {**look, "zorder": 2.5 if best else 2}))
    return styled


def record_figure(experiments: Sequence[Gaps]) -> Figure:
    """Declare all published points: ours against theirs, and each experiment's gaps beside those of noise alone."""
    left: list[Mark] = [Curve([0, 1], [0, 1], {**PROVED_BEFORE, "color": QUIET})]
    right: list[Mark] = []
    for place, (experiment, shade) in enumerate(zip(experiments, colours(len(experiments)), strict=True)):
        style, points, noise = {**POINT, "color": shade}, experiment.points, experiment.expected
        left.append(Curve([point.published for point in points], [point.here for point in points], style))
        right.append(Curve([point.gap for point in points], [place] * len(points), style))
        if noise is not None:
            right.append(Curve([-noise, noise], [place, place], {**NOISE, "color": INK}))
    right.append(Rule({**PROVED_BEFORE, "color": QUIET}, x=0))
    names = [experiment.name.removeprefix("dana-2025-") for experiment in experiments]
    count = sum(len(experiment.points) for experiment in experiments)
    x, y = Axis("published training accuracy"), Axis("training accuracy here")
    gap = Axis("here − published", most_ticks=6)
    experiment_axis = Axis("experiment", ticks=range(len(names)), tick_names=names, is_inverted=True)
    return Figure(
        [Panel(x, y, left, f"{count} points"), Panel(gap, experiment_axis, right, "Gaps by experiment")],
        columns=2,
        width=10.4,
        height=5.4,
        legend=[
            ("a point: mean of our runs, and the published mean", POINT),
            ("no gap", PROVED_BEFORE),
            ("band: ± the mean |gap| that noise alone would make", {**NOISE, "color": INK}),
        ],
        heading="Dana, Pydi & Chevaleyre 2025: every published point, and ours",
    )


def held_figure(rows: Rows) -> Figure:
    """Declare associations held against heads: trained and proved, promised, built and proved, guessed, and all."""
    table = held_of(rows)
    letters = {"ω": "vocab", "d": "model_dim", "d_h": "head_dim"}
    sizes = ", ".join(f"{letter} = {shared_value(rows, name):g}" for letter, name in letters.items())
    every = int(shared_value(rows, "examples"))
    heads = [held.heads for held in table]
    marks: list[Mark] = [
        line([(held.heads, every) for held in table], {**ALL, "color": QUIET}),
        Curve(heads, [held.right for held in table], {**TRAINED, "color": TRAINED_INK}),
        Curve(heads, [held.built for held in table], {**BUILT, "color": THEORY_INK}),
        line([(held.heads, held.promised) for held in table], {**PROVED, "color": THEORY_INK}),
        line([(held.heads, held.guessed) for held in table], {**PROVED_BEFORE, "color": QUIET}),
        *_written_numbers(quoted(table)),
    ]
    y = Axis(f"associations held, of {every:,}", limits=(0, 1.06 * every), number_format="{x:,.0f}")
    return Figure(
        [Panel(Axis("H, heads"), y, marks)],
        height=5.2,
        legend=_held_entries(table),
        heading=f"What one layer of attention alone holds; {sizes}",
    )


def _written_numbers(held: MemorizedCount) -> list[Annotation]:
    """Return three numbers of one network, beside their marks."""
    numbers: list[tuple[int, str, tuple[float, float]]] = [
        (held.right, TRAINED_INK, (-20, 9)),
        (held.built, THEORY_INK, (0, 12)),
        (held.promised, THEORY_INK, (0, -8.5)),
    ]
    look = {"ha": "center", "va": "center", "fontsize": 9.5}
    return [
        Annotation(f"{number:,}", held.heads, number, shift, {**look, "color": colour})
        for number, colour, shift in numbers
    ]


def _held_entries(table: Sequence[MemorizedCount]) -> list[Entry]:
    least = min(held.most for held in table)
    allowed = f"; counting allows {least:,} or more" if least >= table[0].examples else ""
    return [
        ("trained, single runs; each answer proved", {**TRAINED, "color": TRAINED_INK}),
        ("built by dana-2025; each answer proved", {**BUILT, "color": THEORY_INK}),
        ("promised by the theorem: H·d_h + d", {**PROVED, "color": THEORY_INK}),
        (f"uniform guesses, in the mean: {table[0].guessed:g}", PROVED_BEFORE),
        (f"all that are asked for{allowed}", ALL),
    ]

"""Figures of Dana, Pydi & Chevaleyre 2025: accuracy against heads, dimensions, and parameters of an MLP.

Left what the paper measured, with its numbers; right accuracy over all ω² contexts, of which the bounds speak.
"""

from pathlib import Path
from typing import Any

from byheart.lab.rows import is_number
from byheart.papers.built import built
from byheart.papers.dana_2025.published import beside, settings_of
from byheart.report.lab.series import (
    BUILT,
    MEASURED,
    PROVED,
    PROVED_BEFORE,
    PUBLISHED,
    Entry,
    Rows,
    Series,
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
from byheart.report.style import canvas, save_picture

STORED = "proved: H·d_h + d stored, the others guessed"
CERTIFIED = "built by dana-2025, and certified"
STORED_BEFORE = "proved before: H(d_h − 1) + 1 stored"
SIZES = ("vocab", "model_dim", "head_dim", "heads")
MOST_BOUNDED = 6
"""Bounds of more curves would lie on each other: then the first, the middle and the last have theirs drawn."""


def draw_heads(rows: Rows, path: Path) -> None:
    """Dana's experiment 1: accuracy against heads, a curve for each d; published numbers; both bounds."""
    check_columns(rows, "model_dim", "heads", "accuracy", "last_accuracy", "vocab", "lower_bound", "previous_bound")
    same = all(row.get("head_dim", row["model_dim"]) == row["model_dim"] for row in rows)
    one(rows, "vocab")
    title = f"Accuracy against heads; {'d_h = d, ' if same else ''}{_words(rows, *([] if same else ['head_dim']))}"
    _draw_dana(rows, path, ("heads", "H, heads"), ("model_dim", "d"), title)


def draw_head_dims(rows: Rows, path: Path) -> None:
    """Dana's experiment 2: accuracy against d_h."""
    check_columns(rows, "model_dim", "head_dim", "accuracy", "last_accuracy", "vocab", "heads")
    title = f"Accuracy against the heads' dimension; {_words(rows, 'model_dim', 'heads')}"
    _draw_dana(rows, path, ("head_dim", "d_h, dimension of a head"), (None, ""), title)


def draw_dims(rows: Rows, path: Path) -> None:
    """Dana's experiment 3: accuracy against d."""
    check_columns(rows, "model_dim", "head_dim", "accuracy", "last_accuracy", "vocab", "heads")
    title = f"Accuracy against the embedding's dimension; {_words(rows, 'head_dim', 'heads')}"
    _draw_dana(rows, path, ("model_dim", "d, dimension of the embedding"), (None, ""), title)


def _draw_dana(rows: Rows, path: Path, along: tuple[str, str], curves_of: tuple[str | None, str], title: str) -> None:
    """Left what the paper measured, with its numbers; right what the bounds speak of, with them.

    ``along`` is the column of the x-axis and its name; ``curves_of`` that of which each value has a curve, if any, and
    its letter.
    """
    (x, x_name), (by, letter), known = along, curves_of, beside(rows)
    picture, (left, right) = canvas(path, columns=2, width=10.4, height=5.2)
    keys = values(rows, by) if by else [None]
    bounded = keys if len(keys) <= MOST_BOUNDED else [keys[0], keys[len(keys) // 2], keys[-1]]
    for axes, metric in ((left, "last_accuracy"), (right, "accuracy")):
        curves = series(rows, by, x, metric)
        shades = colours(len(curves))
        for curve, shade in zip(curves, shades, strict=True):
            draw_measured(axes, curve, shade)
            if axes is right and curve.key in bounded:
                some = [row for row in rows if by is None or row[by] == curve.key]
                _draw_bound(axes, some, x, "lower_bound", shade, PROVED)
                _draw_bound(axes, some, x, "previous_bound", shade, PROVED_BEFORE)
                made = _certified(some)
                axes.plot([one[x] for one in made], [one["accuracy"] for one in made], color=shade, zorder=4, **BUILT)
            if axes is left:
                points = [row for row in known if by is None or row[by] == curve.key]
                axes.plot([p[x] for p in points], [p[metric] for p in points], color=shade, zorder=5, **PUBLISHED)
        axes.set(ylim=(0, 1.03))
        if by is not None:
            name_ends(axes, curves, [f"{letter} = {curve.key:g}" for curve in curves], shades)
    entries = [(f"measured, {runs(series(rows, by, x, 'accuracy'))}", MEASURED)]
    if _has(rows, "lower_bound"):
        which = f" (for {letter} = {', '.join(f'{key:g}' for key in bounded)})" if bounded != keys else ""
        entries += [(STORED + which, PROVED), (STORED_BEFORE + which, PROVED_BEFORE)]
        entries += [(CERTIFIED, BUILT)] if _certified(rows) else []
    entries[1:1] = _published_entry(rows, known)
    ends = [limit for axes in (left, right) for limit in axes.get_xlim()]
    left.set_xlim(min(ends), max(ends))
    right.set_xlim(min(ends), max(ends))
    label(left, x_name, "training accuracy, last batches", "As the paper measures it")
    label(right, x_name, "accuracy over all ω² contexts", "As the theorem counts it")
    legend_below(picture, entries)
    heading(picture, title)
    save_picture(picture, path)


def _draw_bound(axes: Any, rows: Rows, x: str, column: str, shade: Any, style: dict[str, Any]) -> None:
    draw_line(axes, sorted({(row[x], row[column]) for row in rows if is_number(row.get(column))}), shade, style)


def _published_entry(rows: Rows, known: Rows) -> list[Entry]:
    """For the legend; none where nothing was published."""
    if not known:
        return []
    return [(f"published, mean of {one(known, 'runs')} runs{other_steps(rows, known)}", PUBLISHED)]


def other_steps(rows: Rows, known: Rows) -> str:
    """What to say beside published numbers if the table's models were trained for another number of steps."""
    here, there = values(rows, "steps"), values(known, "steps")
    return f" (of {there[-1]:,} steps; here {here[-1]:,})" if here and here != there else ""


def _certified(rows: Rows) -> list[dict[str, float]]:
    """Of the networks that were built and certified those with the sizes of some row: one layer of attention alone."""
    alone = (row for row in rows if row.get("hidden") is None and row.get("layers", 1) == 1)
    sizes = {tuple(row.get(name) for name in SIZES) for row in alone}
    return [one for one in built("dana_2025") if tuple(one[name] for name in SIZES) in sizes]


def _has(rows: Rows, column: str) -> bool:
    return any(is_number(row.get(column)) for row in rows)


def layers_of(rows: Rows) -> Any:
    """How many layers all networks of the table have; 1 where it says nothing."""
    return one(rows, "layers") if any("layers" in row for row in rows) else 1


def _words(rows: Rows, *columns: str) -> str:
    """What all rows share, in letters."""
    letters = {"vocab": "ω", "model_dim": "d", "head_dim": "d_h", "heads": "H", "layers": "layers"}
    shared = [name for name in ("vocab", *columns, "layers") if len(values(rows, name)) == 1]
    said = [f"{letters[name]} = {one(rows, name)}" for name in shared if name != "layers"]
    return ", ".join(said + ([f"{layers_of(rows)} layers"] if layers_of(rows) != 1 else []))


def draw_against_mlp(rows: Rows, path: Path) -> None:
    """Dana's experiment 5: accuracy against parameters, attention (more heads) and MLP (wider), a colour for each d."""
    check_columns(rows, "model_dim", "parameters", "accuracy", "last_accuracy")
    picture, panels = canvas(path, columns=2, width=10.4, height=4.9)
    known = beside(rows)
    kinds = [("attention: more heads", False, MEASURED), ("one head and an MLP: wider", True, MEASURED | _MLP)]
    for axes, metric in zip(panels, ("last_accuracy", "accuracy"), strict=True):
        dims = values(rows, "model_dim")
        named: list[tuple[Series, str, Any]] = []
        for dim, shade in zip(dims, colours(len(dims)), strict=True):
            for _, with_mlp, style in kinds:
                some = [r for r in rows if r["model_dim"] == dim and (r.get("hidden") is not None) == with_mlp]
                for curve in series(some, None, "parameters", metric) if some else []:
                    draw_measured(axes, curve, shade, **style)
                    named.append((curve, f"d = {dim}", shade))
            if axes is panels[0]:
                _draw_published_sizes(axes, [row for row in rows if row["model_dim"] == dim], known, shade)
        axes.set(ylim=(0, 1.03))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        last = {name: (curve, shade) for curve, name, shade in named}
        name_ends(axes, [c for c, _ in last.values()], list(last), [shade for _, shade in last.values()])
    repeated = runs([curve for curve, *_ in named])
    label(panels[0], "parameters", "training accuracy, last batches", "As the paper measures it")
    label(panels[1], "parameters", "accuracy over all ω² contexts", "Over all contexts")
    entries = [(f"measured, {repeated}; {name}", style) for name, _, style in kinds]
    legend_below(picture, [*entries, *_published_entry(rows, known)])
    heading(picture, f"Attention against MLP, by parameters; {_words(rows)}")
    save_picture(picture, path)


def _draw_published_sizes(axes: Any, rows: Rows, known: Rows, shade: Any) -> None:
    """Published accuracies at the parameters of our networks of the same settings."""
    sizes = {settings_of(row): row["parameters"] for row in rows}
    points = [point for point in known if settings_of(point) in sizes]
    xs = [sizes[settings_of(point)] for point in points]
    axes.plot(xs, [point["last_accuracy"] for point in points], color=shade, zorder=5, **PUBLISHED)


_MLP: dict[str, Any] = {"marker": "s", "markerfacecolor": "white", "linestyle": (0, (4, 2))}

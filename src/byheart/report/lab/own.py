"""The figure of an experiment of one's own: a metric against the first setting that varies, a curve for each choice of
the others.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from byheart.lab.rows import is_number
from byheart.lab.summary import SEED
from byheart.report.lab.menu import AvailableFigure
from byheart.report.lab.series import (
    MEASURED,
    Rows,
    colours,
    draw_measured,
    label,
    legend_below,
    name_ends,
    runs,
    series,
)
from byheart.report.style import canvas, save_picture

NOT_MEASURED = ("key", "status", "seconds", "error")
"""Columns of a run's table that are neither settings nor metrics."""
CURVE = "curve"


def own_figures(experiment: str, rows: Rows, settings: Sequence[str]) -> list[AvailableFigure]:
    """What can be drawn of a table of which nothing is known but which of its columns are settings; nothing, if no
    number varies among them.

    The metric is accuracy, if there is one, or else the first that has numbers.
    """
    varying = [name for name in settings if name != SEED and len({repr(row.get(name)) for row in rows}) > 1]
    along = next((name for name in varying if _has_numbers(rows, name)), None)
    names = dict.fromkeys(name for row in rows for name in row if name not in (*settings, *NOT_MEASURED))
    metrics = [name for name in names if _has_numbers(rows, name)]
    if along is None or not metrics:
        return []
    metric = "accuracy" if "accuracy" in metrics else metrics[0]
    others = [name for name in varying if name != along]
    caption = f"{metric} against {along}" + (f", for each {' and '.join(others)}." if others else ".")
    return [AvailableFigure("results", caption, lambda path: _draw(experiment, rows, path, along, metric, others))]


def _has_numbers(rows: Rows, name: str) -> bool:
    return any(is_number(row.get(name)) for row in rows)


def _draw(experiment: str, rows: Rows, path: Path, along: str, metric: str, others: Sequence[str]) -> None:
    marked = [
        {**row, **{name: row.get(name) for name in (along, metric)}, CURVE: tuple(_ordered(row.get(n)) for n in others)}
        for row in rows
    ]
    curves = series(marked, CURVE, along, metric)
    shades = colours(len(curves))
    picture, (axes,) = canvas(path)
    for curve, shade in zip(curves, shades, strict=True):
        draw_measured(axes, curve, shade)
    if others:
        told = [", ".join(f"{n} {v}" for n, (_, v) in zip(others, curve.key, strict=True)) for curve in curves]
        name_ends(axes, curves, list(map(_literal, told)), shades)
    label(axes, _literal(along), _literal(metric), _literal(experiment))
    legend_below(picture, [(f"measured, {runs(curves)}", MEASURED)])
    save_picture(picture, path)


def _ordered(value: Any) -> tuple[bool, Any]:
    """Something that has a place among all others of its column: numbers first, then the rest as texts."""
    return (False, value) if is_number(value) else (True, str(value))


def _literal(text: str) -> str:
    """A text in which nothing is a formula: names in a run's folder may be anything."""
    return text.replace("$", r"\$")

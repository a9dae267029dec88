"""The figure of a user's own experiment: a metric against the first setting that varies.

Each choice of the other settings has a curve.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from byheart.exhibits import MEASURED, AvailableFigure, Axis, Figure, Panel, colours
from byheart.lab.rows import SEED, is_number
from byheart.papers.curves import Rows, runs_in_words, series

NOT_MEASURED = ("key", "status", "seconds", "error")
"""Columns of a run's table that are neither settings nor metrics."""
CURVE = "curve"


def own_figures(experiment: str, rows: Rows, settings: Sequence[str]) -> list[AvailableFigure]:
    """Return the figure of a table of which only the names of the settings are known.

    There is none if no setting with numbers varies. The metric is accuracy, or else the first column with numbers.
    """
    varying = [name for name in settings if name != SEED and len({repr(row.get(name)) for row in rows}) > 1]
    along = next((name for name in varying if _has_numbers(rows, name)), None)
    names = dict.fromkeys(name for row in rows for name in row if name not in (*settings, *NOT_MEASURED))
    metrics = [name for name in names if _has_numbers(rows, name)]
    if along is None or not metrics:
        return []
    metric = "accuracy" if "accuracy" in metrics else metrics[0]
    by = [name for name in varying if name != along]
    caption = f"{metric} against {along}" + (f", for each {' and '.join(by)}." if by else ".")
    return [AvailableFigure("results", caption, partial(_figure, experiment, rows, along, metric, by))]


def _has_numbers(rows: Rows, name: str) -> bool:
    return any(is_number(row.get(name)) for row in rows)


def _figure(experiment: str, rows: Rows, along: str, metric: str, by: Sequence[str]) -> Figure:
    marked = [
        {along: row.get(along), metric: row.get(metric), CURVE: tuple(_sortable(row.get(name)) for name in by)}
        for row in rows
    ]
    curves = series(marked, CURVE, along, metric)
    shades = colours(len(curves))
    texts = [", ".join(f"{n} {v}" for n, (_, v) in zip(by, curve.key, strict=True)) for curve in curves]
    named = zip(curves, texts, shades, strict=True)
    panel = Panel(
        Axis(_literal(along), is_whole=any(curve.is_whole for curve in curves)),
        Axis(_literal(metric)),
        [curve.drawn(shade) for curve, shade in zip(curves, shades, strict=True)],
        _literal(experiment),
        [curve.named(_literal(text), shade) for curve, text, shade in named] if by else (),
    )
    return Figure([panel], legend=[(f"measured, {runs_in_words(curves)}", MEASURED)])


def _sortable(value: Any) -> tuple[bool, Any]:
    """Return a value that can be sorted among all of its column: numbers first, then the rest as texts."""
    return (False, value) if is_number(value) else (True, str(value))


def _literal(text: str) -> str:
    """Return a text in which nothing is a formula: names in a run's folder may hold any characters."""
    return text.replace("$", r"\$")

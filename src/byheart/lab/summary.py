"""Summaries of results: means and deviations over repetitions, that is, configs that differ only in their seed.

Everything comes from the rows of a run. The axes of a table are the settings that vary. Runs are compared point by
point on the axes of all, so they may differ in settings that are constant in each, such as scales.
"""

import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from byheart.errors import BadInput
from byheart.lab.rows import ResultRow, is_number

SEED = "seed"


@dataclass(frozen=True)
class MetricSummary:
    """Mean and standard deviation (None for one value) of a metric over ``models`` models."""

    mean: float
    deviation: float | None
    models: int


@dataclass(frozen=True)
class SummaryPoint:
    """All repetitions of one choice of the axes. Metrics that are not numbers, or too large for means, are left out."""

    settings: dict[str, Any]
    models: int
    metrics: dict[str, MetricSummary]


@dataclass(frozen=True)
class Difference:
    """Differences of a metric between two runs, at the ``points`` that both have."""

    points: int
    mean: float | None
    largest: float | None
    """Difference with the largest absolute value."""


def axes(rows: Sequence[ResultRow]) -> list[str]:
    """Return the names of the settings that vary, except the seed.

    >>> axes([ResultRow("toy", "", {"heads": heads, "dim": 4, "seed": 0}, "done", {}, 0.0, None) for heads in (1, 6)])
    ['heads']
    """
    names = dict.fromkeys(name for row in rows for name in row.config if name != SEED)
    return [name for name in names if len({_value(row.config.get(name)) for row in rows}) > 1]


def points(rows: Sequence[ResultRow], along: Collection[str] | None = None) -> list[SummaryPoint]:
    """Return done rows in groups of equal settings, along the given axes, or else along the settings that vary.

    >>> results = [({"seed": seed}, "done", {"accuracy": 0.5 + seed / 4}) for seed in (0, 1)]
    >>> rows = [ResultRow("toy", "", *result, 0.0, None) for result in results]
    >>> points(rows)[0].metrics["accuracy"].mean
    0.625
    """
    done = [row for row in rows if row.status == "done"]
    names = axes(done) if along is None else along
    groups: dict[tuple[Any, ...], list[ResultRow]] = {}
    for row in done:
        groups.setdefault(tuple(_value(row.config.get(name)) for name in names), []).append(row)
    return [
        SummaryPoint({name: group[0].config.get(name) for name in names}, len(group), _measured(group))
        for group in groups.values()
    ]


def compare(
    runs: Sequence[Sequence[ResultRow]], metric: str | None = None
) -> tuple[str, list[list[SummaryPoint | None]]]:
    """Return the metric, and for each choice of the axes one point per run, or None."""
    metric = metric or _common_metric(runs)
    names = list(dict.fromkeys(name for rows in runs for name in axes(rows)))
    by_run = [{tuple(map(_value, point.settings.values())): point for point in points(rows, names)} for rows in runs]
    keys = dict.fromkeys(key for run in by_run for key in run)
    return metric, [[run.get(key) for run in by_run] for key in keys]


def difference(table: Sequence[Sequence[SummaryPoint | None]], metric: str, first: int, second: int) -> Difference:
    """Return the differences of the second run's means from the first's."""
    pairs = [(row[first], row[second]) for row in table]
    differences = [
        b.metrics[metric].mean - a.metrics[metric].mean
        for a, b in pairs
        if a is not None and b is not None and metric in a.metrics and metric in b.metrics
    ]
    if not differences:
        return Difference(0, None, None)
    return Difference(len(differences), statistics.fmean(differences), max(differences, key=abs))


def constants(rows: Sequence[ResultRow]) -> dict[str, Any]:
    """Return the settings that do not vary."""
    varying = {*axes(rows), SEED}
    return {name: value for row in rows[:1] for name, value in row.config.items() if name not in varying}


def _common_metric(runs: Sequence[Sequence[ResultRow]]) -> str:
    names = [dict.fromkeys(name for point in points(rows) for name in point.metrics) for rows in runs]
    common = [name for name in names[0] if all(name in metrics for metrics in names)] if names else []
    if not common:
        raise BadInput("the runs have no metric in common; name one of either with --metric")
    return "accuracy" if "accuracy" in common else common[0]


def _measured(rows: Sequence[ResultRow]) -> dict[str, MetricSummary]:
    numbers: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.metrics.items():
            values = numbers.setdefault(name, [])
            if isinstance(value, int | float) and is_number(value):
                values.append(float(value))
    return {
        name: MetricSummary(
            statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, len(values)
        )
        for name, values in numbers.items()
        if values
    }


def _value(value: Any) -> Any:
    """Return a value that can be compared and hashed; lists, which JSON has for tuples, become texts."""
    return repr(value) if isinstance(value, list | dict) else value

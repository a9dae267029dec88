"""Rows of a run's results, and means over repetitions, that is, over configs that differ only in their seed.

A row is a JSON object, a line of results.jsonl: the result of one config.

A process that is killed may leave half a line behind. Readers ignore it, and resuming removes it. A last line without a
line feed is kept if it is a whole object, because no proper part of a JSON object is one itself. A last line that does
not begin like a row is refused like any other damaged line.

The axes of a table of means are the settings that vary. Runs are compared point by point on the axes of all, so they
may differ in settings that are constant in each, such as scales.
"""

import json
import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from reprlib import repr as shortened
from typing import Annotated, Any, Literal, TypeGuard

from byheart.errors import BadInput
from byheart.files.decoding import Such, decode
from byheart.files.untrusted import MEMORY_PER_JSON_BYTE, parse_object, read_bytes
from byheart.lab.experiment import is_plain, renamed

LARGEST = 1e150
"""Largest absolute value of numbers in statistics; sums of their squares are finite."""

SEED = "seed"
"""The setting that repetitions differ in."""
Value = float | int | str | None


PlainConfig = dict[str, Annotated[Any, Such(is_plain, "a plain value, or a list of plain values")]]
"""A config as JSON: settings by name."""


@dataclass(frozen=True)
class ResultRow:
    """One line of results: the result of one config. ``seconds`` is its share of its job's time."""

    experiment: str
    key: str
    config: PlainConfig
    status: Literal["done", "failed"]
    metrics: dict[str, Value]
    seconds: float
    error: str | None

    @property
    def flat(self) -> dict[str, Any]:
        """Config and metrics side by side. A metric with the name of a setting gets the prefix ``metric_``.

        ``seconds`` is the metric of this name if there is one.
        """
        metrics = {f"metric_{name}" if name in self.config else name: value for name, value in self.metrics.items()}
        times = {} if "seconds" in metrics else {"seconds": self.seconds}
        return {"key": self.key, "status": self.status, **self.config, **metrics, **times, "error": self.error}


_BEGINNING = f'{{"{fields(ResultRow)[0].name}": "'.encode()


def read_rows(path: Path) -> list[ResultRow]:
    """Return all rows of a results file in order, and none if there is no file. Half a line at the end is left out."""
    try:
        lines = read_bytes(path, memory_per_byte=MEMORY_PER_JSON_BYTE).split(b"\n")
    except FileNotFoundError:
        return []
    if not lines[-1] or _is_half(lines[-1]):
        lines.pop()
    return [_row(line, f"{path}:{place}") for place, line in enumerate(lines, start=1)]


def has_half_a_line(path: Path) -> bool:
    """Return True if a results file ends in half a line, because a process is writing it or was killed."""
    try:
        last = read_bytes(path).rpartition(b"\n")[2]
    except FileNotFoundError:
        return False
    return bool(last) and _is_half(last)


def _is_half(line: bytes | bytearray) -> bool:
    """Return True if a line begins like a row and is none."""
    return not is_row(line) and line.startswith(_BEGINNING[: len(line)])


def is_number(value: object) -> TypeGuard[int | float]:
    """Return True if a value is a number for means and figures: finite, and so is its square.

    >>> is_number(0.5), is_number(1e308), is_number("0.5")
    (True, False, False)
    """
    return isinstance(value, int | float) and abs(value) <= LARGEST


def metrics_of(row: object) -> dict[str, Value]:
    """Return metrics as they are written: numbers, texts and None. Infinite numbers and NaN become None, and True 1.

    >>> metrics_of({"loss": float("nan"), "steps": 4, "done": True})
    {'loss': None, 'steps': 4, 'done': 1}
    """
    if not isinstance(row, Mapping):
        raise BadInput(f"work returned {row!r} for a config; expected a dictionary of metrics")
    metrics = {}
    for name, measured in row.items():
        value = int(measured) if isinstance(measured, bool) else measured
        if isinstance(value, float) and not math.isfinite(value):
            value = None
        if not isinstance(name, str) or isinstance(value, list | tuple) or not is_plain([name, value]):
            expected = "a number of at most 64 bits, a text that can be encoded, or None"
            raise BadInput(f"metric {shortened(name)} is {shortened(value)}; expected {expected}")
        metrics[name] = value
    return metrics


def _row(line: bytes | bytearray, place: str) -> ResultRow:
    try:
        row = decode(ResultRow, parse_object(line), "the row")
    except BadInput as error:
        hint = "remove the line, and its config will be run again"
        raise BadInput(f"{place}: not a result row ({error}); {hint}") from error
    return replace(row, config=renamed(row.config), metrics=renamed(row.metrics))


def is_row(line: bytes | bytearray) -> bool:
    """Return True if a line is a row."""
    try:
        _row(line, "")
    except BadInput:
        return False
    return True


def lines_of(rows: Sequence[ResultRow]) -> str:
    """Return rows as lines of a results file."""
    return "".join(json.dumps(asdict(row), ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


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
    if not metric:
        names_of = [dict.fromkeys(name for point in points(rows) for name in point.metrics) for rows in runs]
        common = [name for name in names_of[0] if all(name in metrics for metrics in names_of)] if names_of else []
        if not common:
            raise BadInput("the runs have no metric in common; name one of either with --metric")
        metric = "accuracy" if "accuracy" in common else common[0]
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


def _measured(rows: Sequence[ResultRow]) -> dict[str, MetricSummary]:
    summaries = {}
    for name in dict.fromkeys(name for row in rows for name in row.metrics):
        values = [float(value) for row in rows if is_number(value := row.metrics.get(name))]
        if values:
            deviation = statistics.stdev(values) if len(values) > 1 else None
            summaries[name] = MetricSummary(statistics.fmean(values), deviation, len(values))
    return summaries


def _value(value: Any) -> Any:
    """Return a value that can be compared and hashed; lists, which JSON has for tuples, become texts."""
    return repr(value) if isinstance(value, list | dict) else value

"""Rows of a run's results: one JSON object per line of results.jsonl, each the result of one config.

A process that is killed may leave half a line behind. Readers ignore it, and resuming removes it. A last line without a
line feed is kept if it is a whole object, because no proper part of a JSON object is one itself. A last line that does
not begin like a row is refused like any other damaged line.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, Literal

from byheart.errors import BadInput
from byheart.files.untrusted import MEMORY_PER_JSON_BYTE, parse_object, read_bytes
from byheart.lab.experiments.experiment import is_plain
from byheart.lab.former import renamed

LARGEST = 1e150
"""Largest absolute value of numbers in statistics; sums of their squares are finite."""

Value = float | int | str | None


@dataclass(frozen=True)
class ResultRow:
    """One line of results: the result of one config. ``seconds`` is its share of its job's time."""

    experiment: str
    key: str
    config: dict[str, Any]
    status: Literal["done", "failed"]
    metrics: dict[str, Value]
    seconds: float
    error: str | None = None

    @property
    def flat(self) -> dict[str, Any]:
        """Config and metrics side by side. A metric with the name of a setting gets the prefix ``metric_``.

        ``seconds`` is the metric of this name if there is one.
        """
        metrics = {f"metric_{name}" if name in self.config else name: value for name, value in self.metrics.items()}
        times = {} if "seconds" in metrics else {"seconds": self.seconds}
        return {"key": self.key, "status": self.status, **self.config, **metrics, **times, "error": self.error}


_FIELDS = frozenset(field.name for field in fields(ResultRow))
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


def is_number(value: object) -> bool:
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
    metrics = {name: _metric(value) for name, value in row.items()}
    for name, value in metrics.items():
        if not isinstance(name, str) or isinstance(value, list | tuple) or not is_plain([name, value]):
            expected = "a number of at most 64 bits, a text that can be encoded, or None"
            raise BadInput(f"metric {shortened(name)} is {shortened(value)}; expected {expected}")
    return metrics


def _metric(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return int(value) if isinstance(value, bool) else value


def _row(line: bytes | bytearray, place: str) -> ResultRow:
    try:
        values = parse_object(line)
    except BadInput:
        values = {}
    if values.keys() != _FIELDS or not _is_result(values):
        action = "not a result row; remove the line, and its config will be run again"
        raise BadInput(
            f"{place}: {action}; expected an object of {', '.join(field.name for field in fields(ResultRow))}"
        )
    return ResultRow(**values | {"config": renamed(values["config"]), "metrics": renamed(values["metrics"])})


def _is_result(values: Mapping[str, Any]) -> bool:
    return (
        values["status"] in ("done", "failed")
        and all(isinstance(values[name], str) for name in ("experiment", "key"))
        and is_config(values["config"])
        and isinstance(values["metrics"], dict)
        and all(value is None or type(value) in (int, float, str) for value in values["metrics"].values())
        and type(values["seconds"]) in (int, float)
        and isinstance(values["error"], str | None)
    )


def is_config(config: object) -> bool:
    """Return True if a value is an object of plain values and lists."""
    return isinstance(config, dict) and all(
        not isinstance(item, dict) for value in config.values() for item in _items(value)
    )


def _items(value: object) -> list[Any]:
    """Return the items of nested lists; any other value is its own only item."""
    return [item for entry in value for item in _items(entry)] if isinstance(value, list) else [value]


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

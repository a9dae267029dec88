"""Rows of a run's results: one JSON object per line of results.jsonl, each the result of one config.

A process that is killed may leave half a line behind. Readers ignore it, and resuming removes it. A last line without a
line feed is kept if it is a whole object, because no proper part of a JSON object is one itself. A last line that does
not begin like a row is refused like any other damaged line.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from reprlib import repr as shortened
from typing import Annotated, Any, Literal

from byheart.errors import BadInput
from byheart.files.decoding import Such, decode
from byheart.files.untrusted import MEMORY_PER_JSON_BYTE, parse_object, read_bytes
from byheart.lab.experiment import is_plain
from byheart.lab.former import renamed

LARGEST = 1e150
"""Largest absolute value of numbers in statistics; sums of their squares are finite."""

Value = float | int | str | None


def _is_plain(value: object) -> bool:
    """Return True if no object is in ``value``, a parsed JSON value."""
    return all(map(_is_plain, value)) if isinstance(value, list) else not isinstance(value, dict)


PlainConfig = dict[str, Annotated[Any, Such(_is_plain, "a plain value, or a list of plain values")]]
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

"""Rows of a run's results: one JSON object per line of results.jsonl, what came of one config each.

A process that is killed may leave half a line behind. Whoever reads ignores it, whoever resumes cuts it off, and a last
line that lacks only its end is kept: no part of a JSON object is one itself, so a line that can be read is whole. What
does not begin as a row does is no half of one, and is refused as any other line that is none.
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
from byheart.lab.experiment import is_plain
from byheart.lab.former import renamed

LARGEST = 1e150
"""Of numbers that are counted with: sums of their squares are finite."""

Value = float | int | str | None


@dataclass(frozen=True)
class ResultRow:
    """One line of results: what came of one config. ``seconds`` is its share of the time of its job."""

    experiment: str
    key: str
    config: dict[str, Any]
    status: Literal["done", "failed"]
    metrics: dict[str, Value]
    seconds: float
    error: str | None = None

    @property
    def flat(self) -> dict[str, Any]:
        """Config and metrics side by side; a metric that is called like a setting gets the prefix ``metric_``.

        ``seconds`` are the metric of this name, where there is one.
        """
        metrics = {f"metric_{name}" if name in self.config else name: value for name, value in self.metrics.items()}
        times = {} if "seconds" in metrics else {"seconds": self.seconds}
        return {"key": self.key, "status": self.status, **self.config, **metrics, **times, "error": self.error}


_FIELDS = frozenset(field.name for field in fields(ResultRow))
_BEGINNING = f'{{"{fields(ResultRow)[0].name}": "'.encode()


def read_rows(path: Path) -> list[ResultRow]:
    """All whole lines of a results file, in order; none if there is no file. Half a line at the end is left out."""
    try:
        lines = read_bytes(path, memory_per_byte=MEMORY_PER_JSON_BYTE).split(b"\n")
    except FileNotFoundError:
        return []
    if not lines[-1] or _is_half(lines[-1]):
        lines.pop()
    return [_row(line, f"{path}:{place}") for place, line in enumerate(lines, start=1)]


def has_half_a_line(path: Path) -> bool:
    """Whether a results file ends in half a line, which is left out: somebody is writing it, or was killed."""
    try:
        last = read_bytes(path).rpartition(b"\n")[2]
    except FileNotFoundError:
        return False
    return bool(last) and _is_half(last)


def _is_half(line: bytes | bytearray) -> bool:
    """Whether it begins as a row does, and is none."""
    return not is_row(line) and line.startswith(_BEGINNING[: len(line)])


def is_number(value: object) -> bool:
    """Whether it is a number that means and figures can be made of: finite, and so is its square.

    >>> is_number(0.5), is_number(1e308), is_number("0.5")
    (True, False, False)
    """
    return isinstance(value, int | float) and abs(value) <= LARGEST


def metrics_of(found: object) -> dict[str, Value]:
    """Metrics as they are written: numbers, texts and None; a number that is not finite becomes None, True becomes 1.

    >>> metrics_of({"loss": float("nan"), "steps": 4, "done": True})
    {'loss': None, 'steps': 4, 'done': 1}
    """
    if not isinstance(found, Mapping):
        raise BadInput(f"work returned {found!r} for a config; expected a dictionary of metrics")
    metrics = {name: _metric(value) for name, value in found.items()}
    for name, value in metrics.items():
        if not isinstance(name, str) or isinstance(value, list | tuple) or not is_plain([name, value]):
            what = "a number that 64 bits hold, a text that can be encoded, or None"
            raise BadInput(f"metric {shortened(name)} is {shortened(value)}; expected {what}")
    return metrics


def _metric(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return int(value) if isinstance(value, bool) else value


def _row(line: bytes | bytearray, place: str) -> ResultRow:
    try:
        found = parse_object(line)
    except BadInput:
        found = {}
    if found.keys() != _FIELDS or not _is_result(found):
        what = "no result row; remove the line, and its config will be run again"
        raise BadInput(f"{place}: {what}; expected an object of {', '.join(field.name for field in fields(ResultRow))}")
    return ResultRow(**found | {"config": renamed(found["config"]), "metrics": renamed(found["metrics"])})


def _is_result(found: Mapping[str, Any]) -> bool:
    return (
        found["status"] in ("done", "failed")
        and all(isinstance(found[name], str) for name in ("experiment", "key"))
        and is_config(found["config"])
        and isinstance(found["metrics"], dict)
        and all(value is None or type(value) in (int, float, str) for value in found["metrics"].values())
        and type(found["seconds"]) in (int, float)
        and isinstance(found["error"], str | None)
    )


def is_config(found: object) -> bool:
    """Whether it is an object of plain values, and lists of them."""
    return isinstance(found, dict) and all(
        not isinstance(item, dict) for value in found.values() for item in _items(value)
    )


def _items(value: object) -> list[Any]:
    """What lists hold; anything else holds itself."""
    return [item for entry in value for item in _items(entry)] if isinstance(value, list) else [value]


def is_row(line: bytes | bytearray) -> bool:
    """Whether a line is one."""
    try:
        _row(line, "")
    except BadInput:
        return False
    return True


def lines_of(rows: Sequence[ResultRow]) -> str:
    """Rows as they are written."""
    return "".join(json.dumps(asdict(row), ensure_ascii=False, allow_nan=False) + "\n" for row in rows)

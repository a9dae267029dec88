"""Rows of a run's results: one JSON object per line of results.jsonl, what came of one config each.

A process that is killed may leave half a line behind. Whoever reads ignores it, whoever resumes cuts it off, and a last
line that lacks only its end is kept: no part of a JSON object is one itself, so a line that can be read is whole. What
does not begin as a row does is no half of one, and is refused as any other line that is none.
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
"""Of numbers that are counted with: sums of their squares are finite."""

Value = float | int | str | None


def _is_plain(value: object) -> bool:
    """Return True if no object is in ``value``, a parsed JSON value."""
    return all(map(_is_plain, value)) if isinstance(value, list) else not isinstance(value, dict)


PlainConfig = dict[str, Annotated[Any, Such(_is_plain, "a plain value, or a list of plain values")]]
"""A config as JSON: settings by name."""


@dataclass(frozen=True)
class ResultRow:
    """One line of results: what came of one config. ``seconds`` is its share of the time of its job."""

    experiment: str
    key: str
    config: PlainConfig
    status: Literal["done", "failed"]
    metrics: dict[str, Value]
    seconds: float
    error: str | None

    @property
    def flat(self) -> dict[str, Any]:
        """Config and metrics side by side; a metric that is called like a setting gets the prefix ``metric_``.

        ``seconds`` are the metric of this name, where there is one.
        """
        metrics = {f"metric_{name}" if name in self.config else name: value for name, value in self.metrics.items()}
        times = {} if "seconds" in metrics else {"seconds": self.seconds}
        return {"key": self.key, "status": self.status, **self.config, **metrics, **times, "error": self.error}


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
        row = decode(ResultRow, parse_object(line), "the row")
    except BadInput as error:
        hint = "remove the line, and its config will be run again"
        raise BadInput(f"{place}: no result row ({error}); {hint}") from error
    return replace(row, config=renamed(row.config), metrics=renamed(row.metrics))


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

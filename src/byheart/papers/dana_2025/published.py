"""Numbers that papers published, to stand beside ours: a small CSV file per paper, in our names of columns.

``dana_2025``: all 239 points of Dana, Pydi & Chevaleyre 2025, in twelve experiments. ``last_accuracy`` is the mean
training accuracy of 100 of the last batches, over so many ``runs`` of so many ``steps``; how far the single runs lay
apart was not published. Experiment 4 is fitted to experiment 1 and has no points of its own.
"""

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from byheart.errors import BadInput

SETTINGS = ("experiment", "vocab", "model_dim", "head_dim", "heads", "hidden", "layers")
"""What a network's row must share with a published point to be of the same network."""

Point = dict[str, Any]


def names() -> list[str]:
    """The experiments that have published points, by their names in the lab.

    >>> names()[:2]
    ['dana-2025-1', 'dana-2025-2']
    """
    return list(dict.fromkeys(f"dana-2025-{point['experiment']}" for point in _dana()))


def published(name: str) -> list[Point]:
    """An experiment's points.

    >>> point = published("dana-2025-2")[0]
    >>> point["head_dim"], point["hidden"], point["last_accuracy"]
    (1, None, 0.08145)
    """
    if name not in names():
        raise BadInput(f"no numbers of {name!r} were published; expected one of {', '.join(names())}")
    return [dict(point) for point in _dana() if f"dana-2025-{point['experiment']}" == name]


def beside(rows: Sequence[Mapping[str, Any]]) -> list[Point]:
    """The points of networks of which the table has a row; rows that say less than :data:`SETTINGS` have none.

    >>> beside([{"experiment": "2", "vocab": 50, "model_dim": 10, "head_dim": 1, "heads": 20, "layers": 1}])[0]["runs"]
    5
    """
    known = {settings_of(row) for row in rows}
    return [dict(point) for point in _dana() if settings_of(point) in known]


def settings_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of :data:`SETTINGS`, None where there is none; experiments' names are texts, "1" too."""
    return (str(row.get("experiment")), *(row.get(name) for name in SETTINGS[1:]))


@cache
def _dana() -> tuple[Point, ...]:
    text = resources.files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(map(_point, csv.DictReader(text.splitlines())))


def _point(row: Mapping[str, str]) -> Point:
    """A line of the file: a network without an MLP has no ``hidden``."""
    sizes = {name: int(row[name]) if row[name] else None for name in (*SETTINGS[1:], "steps", "runs")}
    return {"experiment": row["experiment"], **sizes, "last_accuracy": float(row["last_accuracy"])}

"""All 239 published points of Dana, Pydi & Chevaleyre 2025, in twelve experiments, to stand beside ours.

They are in ``published.csv``, under our names of columns. ``last_accuracy`` is the mean training accuracy of 100 of the
last batches, over ``runs`` runs of ``steps`` steps; how far the single runs lay apart was not published. Experiment 4
is fitted to experiment 1 and has no points of its own.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from byheart.errors import BadInput
from byheart.papers.results import read

SETTINGS = ("experiment", "vocab", "model_dim", "head_dim", "heads", "hidden", "layers")
"""Columns that a row must share with a published point to be about the same network."""

Point = dict[str, Any]


def names() -> list[str]:
    """Return the experiments that have published points, by their names in the lab.

    >>> names()[:2]
    ['dana-2025-1', 'dana-2025-2']
    """
    return list(dict.fromkeys(f"dana-2025-{point['experiment']}" for point in _dana()))


def published(name: str) -> list[Point]:
    """Return an experiment's points.

    >>> point = published("dana-2025-2")[0]
    >>> point["head_dim"], point["hidden"], point["last_accuracy"]
    (1, None, 0.08145)
    """
    if name not in names():
        raise BadInput(f"no numbers of {name!r} were published; expected one of {', '.join(names())}")
    return [dict(point) for point in _dana() if f"dana-2025-{point['experiment']}" == name]


def beside(rows: Sequence[Mapping[str, Any]]) -> list[Point]:
    """Return the points of networks that the table has rows of; rows that lack some of :data:`SETTINGS` have none.

    >>> beside([{"experiment": "2", "vocab": 50, "model_dim": 10, "head_dim": 1, "heads": 20, "layers": 1}])[0]["runs"]
    5
    """
    networks = {settings_of(row) for row in rows}
    return [dict(point) for point in _dana() if settings_of(point) in networks]


def settings_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values of :data:`SETTINGS`, None for missing ones; experiments' names are texts, even "1"."""
    return (str(row.get("experiment")), *(row.get(name) for name in SETTINGS[1:]))


@cache
def _dana() -> tuple[Point, ...]:
    text = resources.files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(row | {"experiment": str(row["experiment"])} for row in read(text))

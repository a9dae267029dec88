"""Results that come with Byheart: one CSV file per experiment, one row per model, settings and metrics side by side.

All were trained on an H200 by this room's code, at the papers' scale: Dana's whole paper; Mahdavi's whole study with
two seeds (of d_h N = 15,000 and 20,000 only, and all N with a sixth of the steps, "short"), and the saturated heads
with six. ``2-text`` is Dana's experiment 2 as the text has it.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import resources
from typing import Any

from byheart.errors import BadInput, did_you_mean


def names() -> list[str]:
    """What there is, by the experiments' names.

    >>> [name for name in names() if name.startswith("dana-2025-1")]
    ['dana-2025-1', 'dana-2025-1-deeper', 'dana-2025-1-larger']
    """
    files = (path.name for path in resources.files(__name__).iterdir())
    return sorted(name.removesuffix(".csv").replace("_", "-") for name in files if name.endswith(".csv"))


def table(name: str) -> list[dict[str, Any]]:
    """The rows of an experiment; numbers as numbers, empty cells as None.

    >>> rows = table("dana-2025-2")
    >>> len(rows), rows[0]["head_dim"], rows[0]["hidden"], rows[0]["text"]
    (50, 1, None, False)
    """
    if name not in names():
        meant = did_you_mean(name, names(), f"there are those of {names()[0]}, say")
        raise BadInput(f"no results of {name!r} come with Byheart; {meant}")
    text = resources.files(__name__).joinpath(f"{name.replace('-', '_', 2)}.csv").read_text(encoding="utf-8")
    return [{column: _value(cell) for column, cell in row.items()} for row in csv.DictReader(text.splitlines())]


def settings(name: str) -> list[str]:
    """Which columns of a table are settings: the fields of its experiment's configs.

    >>> settings("mahdavi-2024-classification-head-dim-fixed-short")
    ['answers', 'context', 'examples', 'length', 'heads', 'head_dim', 'seed', 'steps']
    """
    from byheart.lab.experiments import EXPERIMENTS

    columns = table(name)[0]
    experiment = max((known for known in EXPERIMENTS if name.startswith(known)), key=len)
    config = EXPERIMENTS[experiment]("smoke").configs[0]
    return [field.name for field in fields(config) if field.name in columns]


@dataclass(frozen=True)
class Presence:
    """How much of an experiment at the paper's scale comes with Byheart: models and seeds, of how many."""

    models: int
    planned: int
    seeds: int
    planned_seeds: int
    absent: tuple[str, ...] = ()
    """Sizes of which no model is there, like "examples 10,000"; empty if no model is there at all."""

    def __str__(self) -> str:
        """In words.

        >>> print(Presence(64, 192, 2, 6)), print(Presence(12, 12, 6, 6)), print(Presence(0, 240, 0, 6))
        64 of 192 models (2 of 6 seeds)
        all 12 models
        0 of 240 models
        (None, None, None)
        """
        if self.models == self.planned:
            return f"all {self.planned:,} models"
        parts = [f"{self.seeds} of {self.planned_seeds} seeds"] if 0 < self.seeds < self.planned_seeds else []
        parts += [f"without {values}" for values in self.absent]
        return f"{self.models:,} of {self.planned:,} models" + (f" ({'; '.join(parts)})" if parts else "")


def presence(name: str) -> Presence:
    """Of an experiment that there is, shipped or not; rows that it does not plan are not counted.

    >>> print(presence("mahdavi-2024-classification-heads-fixed"))
    64 of 192 models (2 of 6 seeds)
    """
    from byheart.lab.experiments import EXPERIMENTS

    configs = EXPERIMENTS[name]("paper").configs
    rows = table(name) if name in names() else []
    columns = [field.name for field in fields(configs[0]) if rows and field.name in rows[0]]
    planned = [{column: _read_back(getattr(config, column)) for column in columns} for config in configs]
    keys = {tuple(config.values()) for config in planned}
    there = [row for row in rows if tuple(row[column] for column in columns) in keys]
    seeds, planned_seeds = {row["seed"] for row in there}, {config.seed for config in configs}
    return Presence(len(there), len(configs), len(seeds), len(planned_seeds), _absent(there, planned))


def _absent(there: Sequence[Mapping[str, Any]], planned: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Sizes of which some values are planned and not there, in words."""
    found = []
    for column in planned[0] if there else ():
        values = {config[column] for config in planned} - {config[column] for config in there}
        sizes = sorted(value for value in values if isinstance(value, int))
        if sizes and column not in ("seed", "steps"):
            found.append(f"{column} {', '.join(f'{size:,}' for size in sizes)}")
    return tuple(found)


def _read_back(value: object) -> int | float | str | bool | None:
    """A setting as it is in a table: a text of digits has become a number."""
    return _value("" if value is None else str(value))


def _value(cell: str) -> int | float | str | bool | None:
    named: dict[str, bool | None] = {"": None, "True": True, "False": False}
    if cell in named:
        return named[cell]
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell

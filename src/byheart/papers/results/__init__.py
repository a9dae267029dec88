"""Results that come with Byheart: one CSV file per experiment, one row per model, settings and metrics side by side.

All were trained on an H200 by this room's code, at the papers' scale, but for what is called "short": Mahdavi's d_h
with a sixth of the steps, and of the ladder of capacity its three sizes for a CPU. :func:`presence` says how much of an
experiment is here; ``2-text`` is Dana's experiment 2 as the text has it. Of Dana's 5-deeper, whose runs
scatter so much that means of five say little, there are 20 repetitions where the paper has 5.

What ``byheart lab show RUN --csv FILE`` writes can be put here as it is, under the experiment's name, of all models or
of some: rows that failed are left out, and so are columns that are about the run. Nothing else names what is here.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from byheart.errors import BadInput, did_you_mean

LEFT_OUT = ("key", "status", "seconds", "error")
"""Columns of a run's table that are about the run, not about its models."""
NOT_SIZES = ("seed", "steps")
"""Settings of how a model is trained, not of how large it is."""


def names() -> list[str]:
    """What there is, by the experiments' names.

    >>> [name for name in names() if name.startswith("dana-2025-1")]
    ['dana-2025-1', 'dana-2025-1-deeper', 'dana-2025-1-larger']
    """
    return sorted(_files())


def _files() -> dict[str, Traversable]:
    """The tables by their experiments' names, which have dashes where file names may have underscores."""
    files = (path for path in resources.files(__name__).iterdir() if path.name.endswith(".csv"))
    return {path.name.removesuffix(".csv").replace("_", "-"): path for path in files}


def table(name: str) -> list[dict[str, Any]]:
    """The rows of an experiment; numbers as numbers, empty cells as None.

    >>> rows = table("dana-2025-2")
    >>> len(rows), rows[0]["head_dim"], rows[0]["hidden"], rows[0]["text"]
    (50, 1, None, False)
    """
    check_there(name, names(), f"there are those of {names()[0]}, say")
    return read(_files()[name].read_text(encoding="utf-8"))


def read(text: str) -> list[dict[str, Any]]:
    """The rows of a table in CSV, less what is about a run.

    >>> read("key,status,heads,accuracy,error\\n12e4,done,1,0.5,\\n13e4,failed,2,,no memory")
    [{'heads': 1, 'accuracy': 0.5}]
    """
    done = (row for row in csv.DictReader(text.splitlines()) if row.get("status", "done") == "done")
    return [{column: _value(cell) for column, cell in row.items() if column not in LEFT_OUT} for row in done]


def check_there(name: str, known: Sequence[str], otherwise: str) -> None:
    """BadInput unless the name is known: how to make results of an experiment that has none here, or what was meant."""
    if name in known:
        return
    from byheart.papers.experiments import EXPERIMENTS, check_trains

    check_trains(name)
    none = f"no results of {name!r} come with Byheart"
    planned = [name] if name in EXPERIMENTS else [each for each in EXPERIMENTS if each.startswith(f"{name}-")]
    if planned and not {*planned} & {*known}:
        models = sum(len(EXPERIMENTS[each]("paper").configs) for each in planned)
        how = " and ".join(f"byheart lab run {each} --scale paper" for each in planned)
        raise BadInput(f"{none}; train its {models:,} models with {how}, then draw them with byheart lab plot")
    raise BadInput(f"{none}; {did_you_mean(name, known, otherwise)}")


def settings(name: str) -> list[str]:
    """Which columns of a table are settings: the fields of its experiment's configs.

    >>> settings("mahdavi-2024-classification-head-dim-fixed-short")
    ['answers', 'context', 'examples', 'length', 'heads', 'head_dim', 'seed', 'steps']
    """
    from byheart.papers.experiments import EXPERIMENTS

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
    """Sizes of which no model is there, like "examples 10,000", and what else is missing, like "7 of the 10 models with
    hidden 8"; empty if no model is there at all. Seeds of which no model is there are counted above."""

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

    >>> print(presence("mahdavi-2024-classification-heads-random"))
    96 of 288 models (2 of 6 seeds)
    """
    from byheart.papers.experiments import EXPERIMENTS

    configs = EXPERIMENTS[name]("paper").configs
    rows = table(name) if name in names() else []
    columns = [field.name for field in fields(configs[0]) if rows and field.name in rows[0]]
    planned = [{column: _read_back(getattr(config, column)) for column in columns} for config in configs]
    keys = {tuple(config.values()) for config in planned}
    there = [row for row in rows if tuple(row[column] for column in columns) in keys]
    seeds, planned_seeds = {row["seed"] for row in there}, {config.seed for config in configs}
    return Presence(len(there), len(configs), len(seeds), len(planned_seeds), _absent(there, planned))


def _absent(there: Sequence[Mapping[str, Any]], planned: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Sizes of which some values are planned and not there, and how many other models are not, in words."""
    if not there:
        return ()
    keys = {tuple(row[column] for column in planned[0]) for row in there}
    missing = [config for config in planned if tuple(config.values()) not in keys]
    found = []
    for column in planned[0]:
        values = {config[column] for config in planned} - {row[column] for row in there}
        sizes = sorted(value for value in values if isinstance(value, int))
        missing = [config for config in missing if config[column] not in values]
        if sizes and column not in NOT_SIZES:
            found.append(_sized(column, sizes))
    return (*found, *_some(missing, planned))


def _some(missing: Sequence[Mapping[str, Any]], planned: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """How many models are missing of how many, by the setting in which they differ least; nothing if none is."""
    by_column = {
        column: {config[column] for config in missing}
        for column, value in planned[0].items()
        if type(value) is int and column not in NOT_SIZES and len({config[column] for config in planned}) > 1
    }
    if missing and by_column:
        column, values = min(by_column.items(), key=lambda item: len(item[1]))
        of = sum(config[column] in values for config in planned)
        yield f"{len(missing):,} of the {of:,} models with {_sized(column, sorted(values))}"


def _sized(column: str, sizes: Sequence[int]) -> str:
    return f"{column} {', '.join(f'{size:,}' for size in sizes)}"


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

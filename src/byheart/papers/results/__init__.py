"""Results that come with Byheart: one CSV file per experiment, one row per model, settings and metrics side by side.

All were trained on an H200 by the lab's code at the papers' scale, except those called "short": Mahdavi's d_h with a
sixth of the steps, and the ladder's three sizes for a CPU. :func:`presence` says how much of an experiment is here.
``2-text`` is Dana's experiment 2 as the paper's text describes it. Dana's 5-deeper has 20 repetitions where the paper
has 5, because its runs scatter too much for means of five.

A file that ``byheart lab show RUN --csv FILE`` writes can be put here unchanged, under the experiment's name, complete
or not: rows that failed are left out, and so are columns about the run. No other file lists the tables.

Networks that were certified, to be drawn beside what was measured, are in the papers' folders (:func:`built`):

- ``dana_2025``: for the sizes of experiments 1 to 3 (where d_h ≤ d), a network of ``byheart build dana-2025 --hold``,
  which holds H·d_h + d of all ω² contexts of two tokens and guesses the others; ``right`` counts the answers proved
  right. One random task and one seed each; written by ``python benchmarks/dana_theory.py guesses --out``.
- ``capacity``: for the tasks of the ladder of scale "paper", first seed, networks that hold every label, certified;
  ``weight_bits`` are those of the largest weight. Written by ``python benchmarks/capacity.py build --scale paper``.
- ``held``: networks of experiments 1 and 2 with d = d_h = 10, trained on a CPU, one seed and one random task each. Of
  the ``examples`` of its task, ``measured`` were right in float32 and ``right`` are proved right; ``built`` counts
  those of a network of ``byheart build dana-2025 --hold`` with the same sizes, and ``constant`` those with the
  commonest label. Written by ``python benchmarks/held.py --out``.
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
BUILT = {
    "dana_2025": ("dana_2025", "certified.csv"),
    "capacity": ("capacity", "built.csv"),
    "held": ("dana_2025", "held.csv"),
}
"""Places of the tables of certified networks."""
NOT_SIZES = ("seed", "steps")
"""Settings of a model's training, not of its size."""


def names() -> list[str]:
    """Return the names of the experiments that have results."""
    return sorted(_files())


def _files() -> dict[str, Traversable]:
    """Return the files by their experiments' names, which have dashes where file names may have underscores."""
    files = (path for path in resources.files(__name__).iterdir() if path.name.endswith(".csv"))
    return {path.name.removesuffix(".csv").replace("_", "-"): path for path in files}


def table(name: str) -> list[dict[str, Any]]:
    """Return the rows of an experiment; numbers as numbers, empty cells as None."""
    check_there(name, names(), f"there are those of {names()[0]}, say")
    return read(_files()[name].read_text(encoding="utf-8"))


def built(name: str) -> list[dict[str, Any]]:
    """Return the rows of a table of certified networks.

    >>> [row["right"] for row in built("dana_2025") if row["heads"] == 20 and row["held"] == 210]
    [264]
    """
    if name not in BUILT:
        raise BadInput(f"no table of built networks is called {name!r}; expected {' or '.join(BUILT)}")
    return read(resources.files("byheart.papers").joinpath(*BUILT[name]).read_text(encoding="utf-8"))


def read(text: str) -> list[dict[str, Any]]:
    r"""Return the finished rows of a table in CSV, without the columns about the run.

    >>> read("key,status,heads,accuracy,error\n12e4,done,1,0.5,\n13e4,failed,2,,no memory")
    [{'heads': 1, 'accuracy': 0.5}]
    """
    done = (row for row in csv.DictReader(text.splitlines()) if row.get("status", "done") == "done")
    return [{column: _value(cell) for column, cell in row.items() if column not in LEFT_OUT} for row in done]


def check_there(name: str, shipped: Sequence[str], otherwise: str) -> None:
    """Raise BadInput unless ``name`` is shipped: say how to train it, or suggest another name."""
    if name in shipped:
        return
    from byheart.papers.experiments import EXPERIMENTS, check_trains

    check_trains(name)
    message = f"no results of {name!r} come with Byheart"
    planned = [name] if name in EXPERIMENTS else [each for each in EXPERIMENTS if each.startswith(f"{name}-")]
    if planned and not {*planned} & {*shipped}:
        models = sum(len(EXPERIMENTS[each]("paper").configs) for each in planned)
        commands = " and ".join(f"byheart lab run {each} --scale paper" for each in planned)
        raise BadInput(f"{message}; train its {models:,} models with {commands}, then draw them with byheart lab plot")
    raise BadInput(f"{message}; {did_you_mean(name, shipped, otherwise)}")


def settings(name: str) -> list[str]:
    """Return the columns of a table that are settings: the fields of its experiment's configs."""
    from byheart.papers.experiments import EXPERIMENTS

    columns = table(name)[0]
    experiment = max((each for each in EXPERIMENTS if name.startswith(each)), key=len)
    config = EXPERIMENTS[experiment]("smoke").configs[0]
    return [field.name for field in fields(config) if field.name in columns]


@dataclass(frozen=True)
class Presence:
    """Number of models and seeds of an experiment at the paper's scale that come with Byheart, and that it plans."""

    models: int
    planned: int
    seeds: int
    planned_seeds: int
    absent: tuple[str, ...] = ()
    """Sizes without any model, like "examples 10,000", and other missing models, like "7 of the 10 models with hidden
    8". It is empty if there are no models at all. Seeds without any model are counted above."""

    def __str__(self) -> str:
        """Return the share in words.

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
    """Return how much of an experiment is shipped; rows that it does not plan are not counted."""
    from byheart.papers.experiments import EXPERIMENTS

    configs = EXPERIMENTS[name]("paper").configs
    rows = table(name) if name in names() else []
    columns = [field.name for field in fields(configs[0]) if rows and field.name in rows[0]]
    planned = [{column: _read_back(getattr(config, column)) for column in columns} for config in configs]
    keys = {tuple(config.values()) for config in planned}
    shipped = [row for row in rows if tuple(row[column] for column in columns) in keys]
    seeds, planned_seeds = {row["seed"] for row in shipped}, {config.seed for config in configs}
    return Presence(len(shipped), len(configs), len(seeds), len(planned_seeds), _absent(shipped, planned))


def _absent(shipped: Sequence[Mapping[str, Any]], planned: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return planned sizes that no shipped model has, and how many other models are missing, in words."""
    if not shipped:
        return ()
    keys = {tuple(row[column] for column in planned[0]) for row in shipped}
    missing = [config for config in planned if tuple(config.values()) not in keys]
    texts = []
    for column in planned[0]:
        values = {config[column] for config in planned} - {row[column] for row in shipped}
        sizes = sorted(value for value in values if isinstance(value, int))
        missing = [config for config in missing if config[column] not in values]
        if sizes and column not in NOT_SIZES:
            texts.append(_sizes_in_words(column, sizes))
    return (*texts, *_missing_in_words(missing, planned))


def _missing_in_words(missing: Sequence[Mapping[str, Any]], planned: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield how many models are missing, if any, by the setting with the fewest values among them."""
    by_column = {
        column: {config[column] for config in missing}
        for column, value in planned[0].items()
        if type(value) is int and column not in NOT_SIZES and len({config[column] for config in planned}) > 1
    }
    if missing and by_column:
        column, values = min(by_column.items(), key=lambda item: len(item[1]))
        of = sum(config[column] in values for config in planned)
        yield f"{len(missing):,} of the {of:,} models with {_sizes_in_words(column, sorted(values))}"


def _sizes_in_words(column: str, sizes: Sequence[int]) -> str:
    return f"{column} {', '.join(f'{size:,}' for size in sizes)}"


def _read_back(value: object) -> int | float | str | bool | None:
    """Return a setting as a table has it: a text of digits has become a number."""
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

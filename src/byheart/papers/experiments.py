"""The papers' experiments, by name: ``EXPERIMENTS[name](scale)`` is one to run.

Each paper's module follows the protocol that its authors' code ran, as far as that is known, and says what was chosen
here where it is not. Scale "smoke" takes seconds on two cores, "short" minutes, and "paper" is the paper's own.

**Measured times** are in ``seconds.csv``, each with the command that measured it (``benchmarks/lab_seconds.py``):

    experiment   the experiment's name, or the beginning of the names of several that were measured together
    scale        smoke, short or paper
    machine      "H200" (one GPU), or "2 cores" (a CPU with two cores)
    models       number of trained models: all of the experiment, every k-th, or those of the first seeds
    model_steps  steps of all these models together: all that the experiment has, or the first few of each model
    seconds      time of training, without the start of Python: wall time on a GPU, time of one thread on a CPU
    command      the command that trains the same models and measures them

Those of Mahdavi, Madden and the ladder on an H200 come from the runs that gave the shipped results. Machines of one
kind differ: only the order of magnitude is reliable.

An experiment that was not measured as a whole gets an estimate if a part of it was, at the same scale and on the same
machine: its model-steps over the part's model-steps per second. The estimate is too high rather than too low: models
may stop early, a part trains fewer of them at once, and its start counts. If several experiments were measured
together, a step of one is assumed to take as long as a step of another.
"""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from byheart.errors import BadInput, did_you_mean
from byheart.files.untrusted import read_text
from byheart.lab.experiment import SCALES, Experiment
from byheart.lab.sources import Source, UserFile, load
from byheart.papers.capacity import experiment as capacity_ladder
from byheart.papers.dana_2025 import EXPERIMENTS as DANA_2025
from byheart.papers.madden_2024 import EXPERIMENTS as MADDEN_2024
from byheart.papers.mahdavi_2024 import EXPERIMENTS as MAHDAVI_2024

EXPERIMENTS: dict[str, Callable[[str], Experiment]] = {
    **DANA_2025,
    **MAHDAVI_2024,
    **MADDEN_2024,
    "capacity": capacity_ladder,
}
REANALYSES = {f"dana-2025-4{text}": f"dana-2025-1{text}" for text in ("", "-text")}
"""Experiments of the papers that train nothing, and those whose results they analyse: 4 fits the slopes of 1."""


def check_trains(name: str) -> None:
    """Raise BadInput if a paper's experiment trains nothing of its own."""
    if name in REANALYSES:
        raise BadInput(f"{name} trains nothing: it is about the results of {REANALYSES[name]}; expected that name")


@dataclass(frozen=True)
class Named:
    """A paper's experiment, by its name and scale."""

    name: str
    scale: str
    text = None

    def load(self) -> Experiment:
        """Look up the experiment."""
        if self.name not in EXPERIMENTS:
            check_trains(self.name)
            expected = "expected a name of byheart lab list, or a Python file"
            if Path(self.name).is_dir():
                raise BadInput(f"{self.name}: is a folder; {expected}")
            raise BadInput(f"no experiment is called {self.name!r}; {did_you_mean(self.name, EXPERIMENTS, expected)}")
        return EXPERIMENTS[self.name](self.scale)


def source(name: str, scale: str) -> Source:
    """Return the source of a user's file if ``name`` ends in .py, or else of a paper's experiment."""
    if not name.endswith(".py"):
        return Named(name, scale)
    return UserFile(str(Path(name).resolve()), read_text(Path(name)), scale)


def check_metric(origin: Source, metric: str) -> None:
    """Raise BadInput if a paper's experiment does not measure ``metric``, by training a model of its smallest scale.

    The metrics of a user's own experiment are not known before one of its models has been trained.

    >>> check_metric(Named("dana-2025-6", "paper"), "accuracies")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    byheart.errors.BadInput: dana-2025-6 does not measure 'accuracies'; expected last_accuracy, accuracy, loss, steps,
    parameters, lower_bound or previous_bound
    """
    if not isinstance(origin, Named):
        return
    tiny = load(replace(origin, scale=SCALES[0]))
    (row,) = tiny.work(tiny.configs[:1], "cpu", None)
    if metric not in row:
        *names, last = row
        raise BadInput(f"{origin.name} does not measure {metric!r}; expected {', '.join(names)} or {last}")


H200, TWO_CORES = "H200", "2 cores"


@dataclass(frozen=True)
class Timing:
    """A row of the table."""

    experiment: str
    scale: str
    machine: str
    models: int
    model_steps: int
    seconds: float
    command: str


@dataclass(frozen=True)
class Seconds:
    """A time in seconds, and whether it is an estimate from a part."""

    value: float
    estimated: bool


COLUMNS = tuple(field.name for field in fields(Timing))


def model_steps(configs: Sequence[Any]) -> int:
    """Return the number of steps of all models together, if none stops early."""
    return sum(config.steps for config in configs)


@cache
def timings() -> tuple[Timing, ...]:
    """Return all measured times."""
    text = resources.files(__package__).joinpath("seconds.csv").read_text(encoding="utf-8")
    numbers = {"models": int, "model_steps": int, "seconds": float}
    return tuple(
        Timing(**{name: numbers.get(name, str)(row[name]) for name in COLUMNS})
        for row in csv.DictReader(text.splitlines())
    )


def seconds(experiment: str, scale: str, machine: str, configs: Sequence[Any]) -> Seconds | None:
    """Return the time of all models of an experiment: measured, or estimated; None if no part of it was measured.

    An estimate comes from a part of the experiment, or else from several experiments that were measured together.
    """
    measured = [timing for timing in timings() if (timing.scale, timing.machine) == (scale, machine)]
    own = [timing for timing in measured if timing.experiment == experiment]
    total = model_steps(configs)
    for timing in own:
        if (timing.models, timing.model_steps) == (len(configs), total):
            return Seconds(timing.seconds, estimated=False)
    groups = [timing for timing in measured if timing.experiment not in EXPERIMENTS]
    together = [timing for timing in groups if experiment.startswith(f"{timing.experiment}-")]
    for timing in [*own, *together]:
        return Seconds(timing.seconds / timing.model_steps * total, estimated=True)
    return None

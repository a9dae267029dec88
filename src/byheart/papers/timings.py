"""Measured times of experiments, in ``seconds.csv``, each with the command that measured it.

    experiment   the experiment's name, or the beginning of the names of several that were measured together
    scale        smoke, short or paper
    machine      "H200" (one GPU), or "2 cores" (a CPU with two cores)
    models       number of trained models: all of the experiment, every k-th, or those of the first seeds
    model_steps  steps of all these models together: all that the experiment has, or the first few of each model
    seconds      time of training, without the start of Python: wall time on a GPU, time of one thread on a CPU
    command      the command that trains the same models and measures them

Nothing in the file is estimated. ``benchmarks/lab_seconds.py`` measures and writes the rows. Those of Mahdavi, Madden
and the ladder on an H200 come from the runs that gave the shipped results: Mahdavi's from a script that made the same
calls, the others from parts, which are added up. Machines of one kind differ: only the order of magnitude is reliable.

An experiment that was not measured as a whole gets an estimate if a part of it was, at the same scale and on the same
machine: the model-steps of the experiment over the model-steps per second of the part. The estimate is too high rather
than too low: models may stop early, a part trains fewer of them at once, and its start counts. If several experiments
were measured together, the estimate assumes that a step of one takes as long as a step of another.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

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
    from byheart.papers.experiments import EXPERIMENTS

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

"""How long experiments take: seconds that were measured, in ``seconds.csv``, each with the command that measured them.

    experiment   the experiment's name, or the beginning of the names of several that were measured together
    scale        smoke, short or paper
    machine      "H200" (one GPU), or "2 cores" (a CPU that has so many)
    models       how many were trained: all of the experiment's, every so many-th, or those of the first seeds
    model_steps  the steps of all of them together: as many as the experiment has, or the first few of each model
    seconds      of training, without the start of Python: on a GPU wall time, on a CPU the processor time of one thread
    command      what trains the same models, and measures it

Nothing in the file is estimated. ``benchmarks/lab_seconds.py`` measures, and writes the rows. Mahdavi's, Madden's and
the ladder's on an H200 are of the runs that gave the shipped results: Mahdavi's by a script that made the same calls,
the others in parts, which are added up. Machines of one kind differ: take the figures for their order of magnitude.

What nobody has measured as a whole is estimated where a part was, at the same scale and on the same machine: so many
model-steps per second, for the model-steps that the experiment has. That is rather too much than too little: models
may stop early, of a part fewer are trained at once, and a part's beginning counts. Where several experiments were
measured together, it takes a step of one for as long as a step of another.
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
    """How long, and whether that is an estimate from a part, or was measured as a whole."""

    value: float
    estimated: bool


COLUMNS = tuple(field.name for field in fields(Timing))


def model_steps(configs: Sequence[Any]) -> int:
    """The steps of all models together, if none stops early."""
    return sum(config.steps for config in configs)


@cache
def timings() -> tuple[Timing, ...]:
    """All that was measured."""
    text = resources.files(__package__).joinpath("seconds.csv").read_text(encoding="utf-8")
    numbers = {"models": int, "model_steps": int, "seconds": float}
    return tuple(
        Timing(**{name: numbers.get(name, str)(row[name]) for name in COLUMNS})
        for row in csv.DictReader(text.splitlines())
    )


def seconds(experiment: str, scale: str, machine: str, configs: Sequence[Any]) -> Seconds | None:
    """For all models of an experiment as it is today: measured, or else estimated from a part, or from several
    experiments that were measured together; None if nothing was.
    """
    from byheart.papers.experiments import EXPERIMENTS

    known = [one for one in timings() if (one.scale, one.machine) == (scale, machine)]
    own = [one for one in known if one.experiment == experiment]
    total = model_steps(configs)
    for one in own:
        if (one.models, one.model_steps) == (len(configs), total):
            return Seconds(one.seconds, estimated=False)
    together = [
        one for one in known if one.experiment not in EXPERIMENTS and experiment.startswith(f"{one.experiment}-")
    ]
    for one in [*own, *together]:
        return Seconds(one.seconds / one.model_steps * total, estimated=True)
    return None

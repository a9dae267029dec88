"""How long experiments take: seconds that were measured, in ``seconds.csv``, each with the command that measured them.

    experiment   the experiment's name, or the beginning of the names of several that were measured together
    scale        smoke, short or paper
    machine      "H200" (one GPU), or "2 cores" (a CPU that has so many)
    models       how many were trained
    seconds      of training, without the start of Python: on a GPU wall time, on a CPU the processor time of one thread
    command      what was run

Nothing in it is estimated: what nobody has measured is not there. ``benchmarks/lab_seconds.py`` measures, and writes
the rows. Machines of one kind differ: take the figures for their order of magnitude.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

H200, TWO_CORES = "H200", "2 cores"


@dataclass(frozen=True)
class Timing:
    """A row of the table."""

    experiment: str
    scale: str
    machine: str
    models: int
    seconds: float
    command: str


@cache
def timings() -> tuple[Timing, ...]:
    """All that was measured."""
    text = resources.files(__name__).joinpath("seconds.csv").read_text(encoding="utf-8")
    return tuple(
        Timing(
            row["experiment"], row["scale"], row["machine"], int(row["models"]), float(row["seconds"]), row["command"]
        )
        for row in csv.DictReader(text.splitlines())
    )


def seconds(experiment: str, scale: str, machine: str, models: int) -> float | None:
    """What was measured for so many models of an experiment; None if nothing was, or for other models than today's."""
    what = (experiment, scale, machine, models)
    found = (one.seconds for one in timings() if (one.experiment, one.scale, one.machine, one.models) == what)
    return next(found, None)

"""The papers' experiments, by name: ``EXPERIMENTS[name](scale)`` is one to run.

Each paper's module follows the protocol that its authors' code ran, as far as that is known, and says what was chosen
here where it is not. Scale "smoke" takes seconds on two cores, "short" minutes, and "paper" is the paper's own.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from byheart.errors import BadInput, did_you_mean
from byheart.files.untrusted import read_text
from byheart.lab.experiment import SCALES, Experiment
from byheart.lab.sources import Source, UserFile, load
from byheart.papers.capacity.ladder import experiment as capacity_ladder
from byheart.papers.dana_2025.dana_experiments import EXPERIMENTS as DANA_2025
from byheart.papers.madden_2024.madden_experiments import EXPERIMENTS as MADDEN_2024
from byheart.papers.mahdavi_2024.mahdavi_experiments import EXPERIMENTS as MAHDAVI_2024

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

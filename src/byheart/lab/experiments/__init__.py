"""The papers' experiments, by name: ``EXPERIMENTS[name](scale)`` is one to run.

Each module follows one paper: the protocol as its authors' code ran it, as far as that is known, and what was chosen
here where it is not. Scales: "smoke" takes seconds on two cores, "short" minutes, "paper" is the paper's.
"""

from collections.abc import Callable

from byheart.errors import BadInput
from byheart.lab.experiments.dana_2025 import EXPERIMENTS as DANA_2025
from byheart.lab.experiments.experiment import SCALES, Config, Experiment, Row, Scale, key, to_json
from byheart.lab.experiments.madden_2024 import EXPERIMENTS as MADDEN_2024
from byheart.lab.experiments.mahdavi_2024 import EXPERIMENTS as MAHDAVI_2024


def _capacity(scale: str) -> Experiment:
    """The ladder of random labels; its module builds on this package."""
    from byheart.lab.capacity import experiment

    return experiment(scale)


EXPERIMENTS: dict[str, Callable[[str], Experiment]] = {
    **DANA_2025,
    **MAHDAVI_2024,
    **MADDEN_2024,
    "capacity": _capacity,
}
ABOUT_OTHERS = {f"dana-2025-4{text}": f"dana-2025-1{text}" for text in ("", "-text")}
"""Experiments of the papers that train nothing, and whose results they are about: 4 fits the slopes of 1."""


def check_trains(name: str) -> None:
    """BadInput if an experiment of the papers trains nothing of its own."""
    if name in ABOUT_OTHERS:
        raise BadInput(f"{name} trains nothing: it is about the results of {ABOUT_OTHERS[name]}; expected that name")


__all__ = [
    "EXPERIMENTS",
    "SCALES",
    "Config",
    "Experiment",
    "Row",
    "Scale",
    "check_trains",
    "key",
    "to_json",
]

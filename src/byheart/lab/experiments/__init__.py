"""The papers' experiments, by name: ``EXPERIMENTS[name](scale)`` is one to run.

Each module follows one paper: the protocol as its authors' code ran it, as far as that is known, and what was chosen
here where it is not. Scales: "smoke" takes seconds on two cores, "short" minutes, "paper" is the paper's.
"""

from collections.abc import Callable

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

__all__ = [
    "EXPERIMENTS",
    "SCALES",
    "Config",
    "Experiment",
    "Row",
    "Scale",
    "key",
    "to_json",
]

"""Save one config of an experiment: train its network, and write it to a folder together with its task.

In a run, models are trained side by side and only their metrics are kept. Here one model is trained alone from the same
seed. Its weights are the same up to rounding, which training may magnify.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_softmax, xlogy

from byheart.errors import BadInput
from byheart.lab.ensemble import train
from byheart.lab.experiment import Experiment, Row, to_json
from byheart.lab.networks import as_network
from byheart.lab.search import chosen
from byheart.networks.folders import TASK
from byheart.networks.kinds import write
from byheart.networks.trained import TrainedNetwork
from byheart.networks.trained.evaluate import evaluate
from byheart.progress import Report
from byheart.tasks import NextTokenDistribution, QueryTargets, QueryTask, Task, save

MAX_VALUES = 4
"""Largest number of values of a setting that a message lists."""


@dataclass(frozen=True, eq=False)
class Kept:
    """A trained network, its metrics, and its task."""

    network: TrainedNetwork
    metrics: Row
    task: Task

    def write(self, folder: Path) -> None:
        """Write network and task into a new folder."""
        write(self.network, folder)
        save(self.task, folder / TASK)


def the_one(experiment: Experiment, where: Mapping[str, str]) -> Any:
    """Return the config with the settings ``where``. Raise BadInput if there is none, or more than one.

    >>> from byheart.papers.experiments import EXPERIMENTS
    >>> the_one(EXPERIMENTS["dana-2025-6"]("short"), {"heads": "9"}).heads
    9
    """
    configs = chosen(experiment, where)
    if len(configs) > 1:
        raise BadInput(f"{experiment.name}: {len(configs)} configs match; choose one by {_differ(configs)}")
    return configs[0]


def _differ(configs: Sequence[Any]) -> str:
    """Return the settings in which configs differ, with their first values."""
    settings = []
    for field in fields(configs[0]):
        values = list(dict.fromkeys(str(getattr(config, field.name)) for config in configs))
        if len(values) > 1:
            shown = ", ".join(values[:MAX_VALUES]) + (", …" if len(values) > MAX_VALUES else "")
            settings.append(f"{field.name} ({shown})")
    return ", ".join(settings)


def kept(
    experiment: Experiment, where: Mapping[str, str] | None = None, *, device: str = "cpu", report: Report | None = None
) -> Kept:
    """Train the one config of the experiment with the settings ``where``.

    >>> from byheart.papers.experiments import EXPERIMENTS
    >>> made = kept(EXPERIMENTS["dana-2025-6"]("smoke"), {"heads": "1"})
    >>> made.network, made.task.size.examples, sorted(made.network.about)
    (<TrainedNetwork: 60 parameters, depth 3, width 10>, 100, ['config', 'experiment', 'metrics', 'scale'])
    """
    if experiment.prepare is None:
        expected = "a function prepare(config) beside work, which returns member, metrics and task"
        raise BadInput(f"{experiment.name}: its networks cannot be saved; expected {expected}")
    config = the_one(experiment, where or {})
    prepared = experiment.prepare(config)
    [outcome] = train([prepared.member], device=device, keep_weights=True, report=report)
    assert outcome.weights is not None
    metrics = {name: _finite(value) for name, value in prepared.metrics(outcome).items()}
    about = {"experiment": experiment.name, "scale": experiment.scale, "config": to_json(config), "metrics": metrics}
    network = as_network(prepared.member.architecture, outcome.weights, about)
    return Kept(network, metrics, prepared.task)


def _finite(value: float | int | str | None) -> float | int | str | None:
    """Replace numbers that JSON does not have by None."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_ask_for(network: TrainedNetwork, task: Task) -> dict[str, float | bool]:
    """Return options of ``certify``: ``count`` for right labels, or a ``tolerance`` that holds in float64.

    There are none if every label is right in float64.
    """
    inputs = (task.inputs, task.queries if isinstance(task, QueryTask) else None)
    outputs = evaluate(network, inputs)
    if isinstance(task, QueryTargets):
        return {"tolerance": _above(float(np.abs(outputs - task.coordinates).max()))}
    if isinstance(task, NextTokenDistribution):
        p = task.probabilities[:, : outputs.shape[1]]
        divergences = (xlogy(p, p) - p * log_softmax(outputs, axis=1)).sum(axis=1)
        return {"tolerance": _above(float((divergences * task.likelihoods).sum()))}
    best = outputs.argmax(axis=1) == task.answers
    return {} if best.all() else {"count": True}


def _above(value: float) -> float:
    """Return a slightly larger number, rounded to four digits."""
    return float(f"{1.001 * max(value, 1e-9):.4g}")

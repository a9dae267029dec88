"""Train models that start at a construction, or keep a part of it: ``byheart lab run examples/hybrid.py``.

The attention of a construction (mahdavi-2024) is kept and the rest trained; or training starts at the construction; or,
as the control, everything is drawn anew. One context for all, d = 32, n = 16, H = 10: 151 labels fit by the theorem.
Rates are not tuned.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

import byheart
from byheart.constructions import mahdavi_2024
from byheart.lab import Training, train
from byheart.lab.experiment import Row
from byheart.lab.hybrid import member_from
from byheart.progress import Report
from byheart.tasks import random_queries


@dataclass(frozen=True)
class Config:
    """One model: where it starts, and from which way of the construction."""

    start: str
    way: str
    examples: int
    seed: int = 0
    steps: int = 1500


CONFIGS = [
    Config(start, way, examples, seed)
    for examples in (75, 151)
    for way in ("saturated", "generic")
    for start in ("frozen-attention", "construction", "random")
    for seed in range(2)
]


def work(configs: Sequence[Config], device: str = "cpu", report: Report | None = None) -> list[Row]:
    """Build, then train, all models of a job at once."""
    members = []
    for config in configs:
        rng = np.random.default_rng(config.seed)
        task = random_queries(examples=config.examples, length=16, dim=32, labels=10, shared=True, rng=rng)
        settings = mahdavi_2024.MahdaviSettings(heads=10, way=config.way)
        network = byheart.build("mahdavi-2024", task, seed=config.seed, settings=settings).network
        rate = 1e-4 if config.start == "construction" else 3e-3
        training = Training(batch=config.examples, steps=config.steps, learning_rate=rate, evaluate_every=config.steps)
        members.append(member_from(network, task, training, start=config.start, seed=config.seed))
    outcomes = train(members, device=device, dtype=torch.float64, report=report)
    return [
        {"accuracy": outcome.accuracy, "loss": outcome.loss, "parameters": member.architecture.parameters}
        for member, outcome in zip(members, outcomes, strict=True)
    ]


def groups(configs: Sequence[Config]) -> list[list[Config]]:
    """Models with equally many examples, and the same start, are trained together."""
    jobs: dict[object, list[Config]] = {}
    for config in configs:
        jobs.setdefault((config.examples, config.start), []).append(config)
    return list(jobs.values())

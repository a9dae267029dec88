"""Train models that start at a construction, or keep a part of it: ``byheart lab run examples/hybrid.py``.

A construction (a :class:`~byheart.networks.softmax.SoftmaxNetwork` of mahdavi-2024 or dana-2025) proves that weights
exist; training shows which weights are found. Two kinds of runs between them show what is hard about finding them:

- ``frozen-attention``: the tensors that decide where heads look (W_Q, W_K, and W_E and W_pos if tokens are ids) are the
  construction's and are not trained. Values, outputs and unembedding are drawn anew and trained. If the construction's
  features are of full rank, weights that memorize all examples exist. The trained part may have other ``widths``,
  because a construction reads labels from two numbers, which is little to train on.
- ``construction``: all tensors are the construction's at first, and all are trained.
- ``random``, the control: the same network, drawn anew and trained.

The function is the network's own: no scale, no bias but b_in. Constructions use float64's range and precision: train
with dtype=torch.float64. Tensors drawn anew are xavier-uniform per head; the others are uniform in ±1/√(number of
summed terms).

The sweep: one context for all, d = 32, n = 16, H = 10; 151 labels fit by the theorem. Rates are not tuned.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch

import byheart
from byheart.constructions import mahdavi_2024
from byheart.errors import BadInput
from byheart.lab import Member, Training, train
from byheart.lab.experiment import Row, grouped
from byheart.lab.member import ANSWERS, Tensors
from byheart.lab.models.parts import Shape, looked_up, uniform
from byheart.networks.softmax import SoftmaxNetwork
from byheart.progress import Report
from byheart.tasks import (
    NextToken,
    NextTokenDistribution,
    QueryLabels,
    QueryTargets,
    QueryTask,
    Task,
    random_queries,
)

Start = Literal["frozen-attention", "construction", "random"]
ATTENTION = frozenset({"W_Q", "W_K", "W_E", "W_pos"})
"""Tensors that decide where heads look."""
Shapes = tuple[tuple[str, Shape], ...]


@dataclass(frozen=True)
class SoftmaxModel:
    """A network of :mod:`byheart.networks.softmax` to train: the shapes of its tensors, and whether to add x_n.

    A batch has ``tokens`` [M, B, n], or ``queries`` [M, B, d] and ``contexts``, [M, B, n, d] or [M, n, d] if shared.
    """

    shapes: Shapes
    skip: bool

    @property
    def parameters(self) -> int:
        """Number of entries of all tensors."""
        return sum(math.prod(shape) for _, shape in self.shapes)

    def init(self, generator: torch.Generator) -> Tensors:
        """Draw all tensors anew."""
        return uniform(dict(self.shapes), {name: _bound(name, shape) for name, shape in self.shapes}, generator)

    def outputs(self, weights: Tensors, batch: Tensors) -> torch.Tensor:
        """Return the network's outputs [M, B, C]."""
        vectors, stream = self._embedded(weights, batch)
        queries = torch.einsum("mbd,mhdk->mbhk", stream, weights["W_Q"])
        directions = torch.einsum("mbhk,mhdk->mbhd", queries, weights["W_K"])
        shared = vectors.dim() == 3
        scores = torch.einsum("mbhd,mnd->mbhn" if shared else "mbhd,mbnd->mbhn", directions, vectors)
        averages = torch.einsum("mbhn,mnd->mbhd" if shared else "mbhn,mbnd->mbhd", scores.softmax(dim=-1), vectors)
        values = torch.einsum("mbhd,mhdv->mbhv", averages, weights["W_V"])
        z = torch.einsum("mbhv,mhvk->mbk", values, weights["W_O"])
        if self.skip:
            z = z + stream
        if "W_in" in weights:
            z = torch.baddbmm(weights["b_in"][:, None], z, weights["W_in"]).tanh()
        return z @ weights["W_U"] if "W_U" in weights else z

    @staticmethod
    def _embedded(weights: Tensors, batch: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
        if "tokens" not in batch:
            return batch["contexts"], batch["queries"]
        vectors = looked_up(weights["W_E"], batch["tokens"]) + weights["W_pos"][:, None]
        return vectors, vectors[:, :, -1]


def member_from(
    network: SoftmaxNetwork,
    task: Task,
    training: Training,
    *,
    start: Start,
    seed: int = 0,
    widths: tuple[int, int] | None = None,
) -> Member:
    """Return a member to train on ``task``, the network's own.

    ``widths`` are d_v and k of W_V and W_O if these are drawn anew. The loss must be "mean-square" for real targets and
    "cross-entropy" otherwise; answers that are distributions count by their contexts' weights.
    """
    if start not in get_args(Start):
        raise BadInput(f"start is {start!r}; expected {', '.join(get_args(Start))}")
    if start == "construction" and widths is not None:
        raise BadInput("widths are given with start='construction'; expected them only for tensors drawn anew")
    real = isinstance(task, QueryTargets)
    if real != (training.loss == "mean-square"):
        raise BadInput(
            f"loss is {training.loss!r} and the task {task.kind}; expected mean-square for real targets only"
        )
    tensors = {name: torch.tensor(tensor) for name, tensor in network.by_name().items()}
    kept = {"frozen-attention": ATTENTION & set(tensors), "construction": set(tensors), "random": set()}[start]
    examples, constants = _data(task)
    return Member(
        SoftmaxModel(_shapes(network, widths), network.skip),
        training,
        seed,
        examples,
        constants,
        initial={name: tensors[name] for name in kept},
        frozen=frozenset(kept) if start == "frozen-attention" else frozenset(),
    )


def _shapes(network: SoftmaxNetwork, widths: tuple[int, int] | None) -> Shapes:
    shapes = {name: tensor.shape for name, tensor in network.by_name().items()}
    H, d, d_v = shapes["W_V"]
    width = shapes["W_O"][2]
    d_v, k = widths or (d_v, width)
    if k != width and (network.skip or network.W_U is None):
        raise BadInput(f"k is {k}; expected {width}: the network's skip connection or its outputs have it")
    shapes |= {"W_V": (H, d, d_v), "W_O": (H, d_v, k)}
    if "W_in" in shapes:
        shapes["W_in"] = (k, shapes["W_in"][1])
    elif "W_U" in shapes:
        shapes["W_U"] = (k, shapes["W_U"][1])
    return tuple(shapes.items())


def _bound(name: str, shape: tuple[int, ...]) -> float:
    if name in ("W_Q", "W_K", "W_V"):
        return math.sqrt(6 / (shape[1] + shape[2]))
    if name == "W_O":  # the heads' values side by side are one vector
        return math.sqrt(6 / (shape[0] * shape[1] + shape[2]))
    return math.sqrt(1 / shape[1 if name in ("W_E", "W_pos") else 0])


def _data(task: Task) -> tuple[Tensors, Tensors]:
    """Return examples and constants of a task."""
    if isinstance(task, QueryTask):
        contexts, queries = torch.tensor(task.contexts), torch.tensor(task.queries)
        answers = torch.tensor(task.labels if isinstance(task, QueryLabels) else task.answers)
        examples = {"queries": queries, ANSWERS: answers}
        return (examples, {"contexts": contexts}) if task.shared else (examples | {"contexts": contexts}, {})
    if not isinstance(task, NextToken | NextTokenDistribution) or task.tokens is None:
        raise BadInput(f"the task is {task.kind}; expected token ids with one answer each, or contexts with queries")
    if isinstance(task, NextToken):
        return {"tokens": torch.tensor(task.tokens), ANSWERS: torch.tensor(task.labels)}, {}
    weighted = len(task.tokens) * torch.tensor(task.likelihoods)[:, None] * torch.tensor(task.probabilities)
    return {"tokens": torch.tensor(task.tokens), ANSWERS: weighted}, {}


@dataclass(frozen=True)
class Config:
    """One model: its start, and the construction's way to choose the attention weights."""

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
    """Train models with equally many examples, and the same start, together."""
    return grouped(configs, lambda config: (config.examples, config.start))

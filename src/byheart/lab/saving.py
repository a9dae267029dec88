"""Save one config of an experiment: train its network, and write it to a folder together with its task.

In a run, models are trained side by side and only their metrics are kept. Here one model is trained alone from the same
seed. Its weights are the same up to rounding, which training may magnify.

The lab computes an architecture's function in whatever order is fast. The network that is saved has it step by step, as
in its definition, with the same weights under names of :mod:`byheart.networks.trained`. Biases that cancel are kept.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, xlogy

from byheart.errors import BadInput
from byheart.lab.ensemble import train
from byheart.lab.experiment import Experiment, Row, to_json
from byheart.lab.member import MemberArchitecture, Tensors
from byheart.lab.models.dana import AttentionOnly
from byheart.lab.models.gpt import NORM_EPSILON, SmallGPT
from byheart.lab.models.madden import MaddenDecoder
from byheart.lab.models.mahdavi import QueryAttention
from byheart.lab.rows import metrics_of
from byheart.lab.search import chosen
from byheart.networks.folders import TASK
from byheart.networks.kinds import write
from byheart.networks.trained import (
    Activation,
    AffineMap,
    PositionTable,
    StepSequence,
    TokenTable,
    TrainedNetwork,
)
from byheart.networks.trained.evaluate import evaluate
from byheart.networks.trained.gpt import EMBEDDING, POSITIONS, UNEMBEDDING, attention, gpt_blocks
from byheart.networks.trained.steps import Step
from byheart.progress import Report
from byheart.tasks import NextTokenDistribution, QueryTargets, QueryTask, Task, save

MAX_VALUES = 4
"""Largest number of values of a setting that a message lists."""
Arrays = dict[str, NDArray[Any]]
Translated = tuple[tuple[StepSequence, ...], Arrays]
GELU = Activation("gelu")


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
    if len(configs) == 1:
        return configs[0]
    differences = []
    for name in vars(configs[0]):
        values = list(dict.fromkeys(str(getattr(config, name)) for config in configs))
        if len(values) > 1:
            shown = ", ".join(values[:MAX_VALUES]) + (", …" if len(values) > MAX_VALUES else "")
            differences.append(f"{name} ({shown})")
    raise BadInput(f"{experiment.name}: {len(configs)} configs match; choose one by {', '.join(differences)}")


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
    metrics = metrics_of(prepared.metrics(outcome))
    about = {"experiment": experiment.name, "scale": experiment.scale, "config": to_json(config), "metrics": metrics}
    network = as_network(prepared.member.architecture, outcome.weights, about)
    return Kept(network, metrics, prepared.task)


def to_ask_for(network: TrainedNetwork, task: Task) -> dict[str, float | bool]:
    """Return options of ``certify``: ``count`` for right labels, or a ``tolerance`` that holds in float64.

    There are none if every label is right in float64.
    """
    inputs = (task.inputs, task.queries if isinstance(task, QueryTask) else None)
    outputs = evaluate(network, inputs)
    if isinstance(task, QueryTargets):
        error = float(np.abs(outputs - task.coordinates).max())
    elif isinstance(task, NextTokenDistribution):
        p = task.probabilities[:, : outputs.shape[1]]
        divergences = (xlogy(p, p) - p * log_softmax(outputs, axis=1)).sum(axis=1)
        error = float((divergences * task.likelihoods).sum())
    else:
        return {} if (outputs.argmax(axis=1) == task.answers).all() else {"count": True}
    return {"tolerance": float(f"{1.001 * max(error, 1e-9):.4g}")}  # slightly larger, with four digits


def as_network(
    architecture: MemberArchitecture, weights: Tensors, about: Mapping[str, Any] | None = None
) -> TrainedNetwork:
    """Return the network of an architecture with these weights, as ``TrainingOutcome.weights`` has them.

    >>> import torch
    >>> shape = AttentionOnly(vocab=5, model_dim=4, head_dim=3, heads=2)
    >>> network = as_network(shape, shape.init(torch.Generator().manual_seed(0)))
    >>> network.account.dense == shape.parameters, network.outputs
    (True, 5)
    """
    translate = _TRANSLATIONS.get(type(architecture))
    if translate is None:
        names = ", ".join(kind.__name__ for kind in _TRANSLATIONS)
        raise BadInput(f"{type(architecture).__name__} has no translation into a network; expected one of {names}")
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in weights.items()}
    blocks, named = translate(architecture, arrays)
    return TrainedNetwork(blocks, named, about=about or {})


def _dana(shape: AttentionOnly, weights: Arrays) -> Translated:
    """Translate Dana's model. All attentions share positions and compression; with ``text``, positions come once."""
    named = {EMBEDDING: weights["embedding"], POSITIONS: weights["positions"]}
    positions = PositionTable(POSITIONS)
    first: tuple[Step, ...] = (TokenTable(EMBEDDING), positions) if shape.text else (TokenTable(EMBEDDING),)
    before: tuple[Step, ...] = () if shape.text else (positions,)
    behind: tuple[Step, ...] = ()
    if shape.compressed:
        named |= {f"{name}.W": weights[name] for name in ("compression", "decompression")}
        before, behind = (AffineMap("compression.W"), *before), (AffineMap("decompression.W"),)
    blocks = [StepSequence(first)]
    for layer in range(shape.layers):
        name = f"attention.{layer}"
        for part in ("W_Q", "W_K", "W_V"):
            named[f"{name}.{part}"] = weights[f"{layer}.{part}"].reshape(-1, shape.input_dim)
        W_O = weights[f"{layer}.W_O"].transpose(1, 0, 2)  # [out, H, d_v]
        named[f"{name}.W_O"] = W_O.reshape(len(W_O), -1)
        blocks.append(StepSequence((*before, attention(name, shape.heads, shape.head_dim), *behind), skip=True))
        if shape.hidden:
            mlp = {f"mlp.{layer}.{part}": weights[f"{layer}.{part}"] for part in ("W_in", "b_in", "W_out")}
            named |= mlp
            W_in, b_in, W_out = mlp
            blocks.append(StepSequence((AffineMap(W_in, b_in), GELU, AffineMap(W_out)), skip=True))
    named[UNEMBEDDING] = weights["unembedding"]
    return (*blocks, StepSequence((AffineMap(UNEMBEDDING),))), named


def _mahdavi(shape: QueryAttention, weights: Arrays) -> Translated:
    named = {"embedding.W": weights["W_E"].T, "embedding.b": weights["b_E"]}
    for part in ("W_Q", "W_K"):
        named[f"attention.0.{part}"] = weights[part].transpose(0, 2, 1).reshape(-1, shape.model_dim)
    named |= {"attention.0.W_V": weights["W_V"], "attention.0.W_O": weights["W_O"].T}
    named |= {UNEMBEDDING: weights["W_U"].T, "unembedding.b_U": weights["b_U"]}
    mixing = attention("attention.0", shape.heads, shape.model_dim)
    steps = (
        AffineMap("embedding.W", "embedding.b"),
        PositionTable(),
        mixing,
        AffineMap(UNEMBEDDING, "unembedding.b_U"),
    )
    return (StepSequence(steps),), named


def _madden(shape: MaddenDecoder, weights: Arrays) -> Translated:
    named = {EMBEDDING: weights["W_E"]}
    named |= {f"attention.0.W_{part}": weights[f"W_{part}"].T for part in "QKVO"}
    named |= {f"attention.0.b_{part}": weights[f"b_{part}"] for part in "QKVO"}
    named |= {"mlp.0.W_in": weights["W_in"].T, "mlp.0.b_in": weights["b_in"]}
    named |= {UNEMBEDDING: weights["W_U"].T, "unembedding.b_U": weights["b_U"]}
    mixing = attention("attention.0", 1, shape.model_dim, biases=True)
    behind = (AffineMap("mlp.0.W_in", "mlp.0.b_in"), GELU, AffineMap(UNEMBEDDING, "unembedding.b_U"))
    return (StepSequence((TokenTable(EMBEDDING, padded=True), PositionTable(), mixing, *behind)),), named


def _gpt(shape: SmallGPT, weights: Arrays) -> Translated:
    named = {EMBEDDING: weights["tokens.weight"], POSITIONS: weights["positions.weight"]}
    norms = {f"norm.{i}.{k}": f"blocks.{i}.norm_{k}" for i in range(shape.layers) for k in (1, 2)}
    norms["norm.last"] = "norm"
    for name, stored_name in norms.items():
        named |= {f"{name}.gain": weights[f"{stored_name}.weight"], f"{name}.bias": weights[f"{stored_name}.bias"]}
    for i in range(shape.layers):
        K, V = np.split(weights[f"blocks.{i}.W_KV.weight"], 2)
        named |= {f"attention.{i}.W_K": K, f"attention.{i}.W_V": V}
        named |= {f"attention.{i}.W_{part}": weights[f"blocks.{i}.W_{part}.weight"] for part in "QO"}
        named |= {f"mlp.{i}.W_{part}": weights[f"blocks.{i}.W_{part}.weight"] for part in ("in", "out")}
        named |= {f"mlp.{i}.b_{part}": weights[f"blocks.{i}.W_{part}.bias"] for part in ("in", "out")}
    if not shape.tied:
        named[UNEMBEDDING] = weights["unembedding.weight"]
    blocks = gpt_blocks(
        layers=shape.layers,
        heads=shape.heads,
        over=shape.model_dim // shape.heads,
        epsilon=NORM_EPSILON,
        function="gelu",
        unembedding=AffineMap(EMBEDDING, rows=shape.labels) if shape.tied else AffineMap(UNEMBEDDING),
        biases=False,
    )
    return blocks, named


_TRANSLATIONS: dict[type, Callable[[Any, Arrays], Translated]] = {
    AttentionOnly: _dana,
    QueryAttention: _mahdavi,
    MaddenDecoder: _madden,
    SmallGPT: _gpt,
}

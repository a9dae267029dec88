"""The proved lower bound beside a network: the need of any network of its depth, and the capacity of its shape.

The theorem and its hypotheses are in :mod:`byheart.bounds.vc`. The case depends on the network:

- no attention, or uniform attention: the bound holds on the task's own questions;
- hardmax or softmax attention: the bound holds on constant sequences, provided that the vocabulary has at least as many
  tokens as the task has questions, and that no positions tell equal tokens apart;
- everything else, including networks that are not exact: nothing is claimed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from byheart.bounds import vc
from byheart.bounds.vc import WeightLayer, WeightLayers
from byheart.constructions.gadgets.demand import Setting, positioned_ids, worst_demand
from byheart.constructions.planner import PlannedSize
from byheart.networks import Network
from byheart.networks.exact import (
    Embedding,
    ExactNetwork,
    FeedForward,
    Flatten,
    HardmaxAttention,
    Layer,
    Positions,
    Residual,
    SoftmaxAttention,
    TokenSum,
    UniformAttention,
)
from byheart.sizes import Size
from byheart.tasks import NextToken, SeqToSeq, Task
from byheart.tasks.distinct import count_tokens


@dataclass(frozen=True)
class LowerBound:
    """Proved bounds for all labellings of a task's different questions with C labels."""

    questions: int
    labels: int
    depth: int
    """Number of consecutive weight layers; W_V and W_O of an attention layer are two."""
    needed: int
    """Parameters that every network of the kind needs, at this depth or less, to reach every labelling."""
    capacity: int
    """Upper bound on the number of questions for which this shape reaches every labelling."""
    constant: bool
    """True if the questions are equally many constant sequences instead of the task's own."""

    def in_words(self, parameters: int, name: str = "this one") -> str:
        """State the bounds, and the ratio of ``parameters`` to the needed number.

        >>> LowerBound(1000, 2, depth=40, needed=33, capacity=9000, constant=False).in_words(330)
        'Proved: no ReLU network of at most 40 weight layers, none shared, with fewer than 33 parameters memorizes \
every labelling of 1,000 inputs with 2 labels; this one has 330, 10.0 times as many. Its shape, whatever the weights, \
does so for at most 9,000.'
        """
        inputs = f"{self.questions:,} {'constant sequences' if self.constant else 'inputs'}"
        ratio = f", {parameters / self.needed:.1f} times as many" if self.needed else ""
        return (
            f"Proved: no ReLU network of at most {self.depth:,} weight layers, none shared, with fewer than "
            f"{self.needed:,} parameters memorizes every labelling of {inputs} with {self.labels:,} labels; "
            f"{name} has {parameters:,}{ratio}. Its shape, whatever the weights, does so for at most {self.capacity:,}."
        )


def lower_bound(network: Network, task: Task) -> LowerBound | None:
    """Return the bound for ``network`` on ``task``; None if nothing is proved."""
    if not isinstance(network, ExactNetwork) or not isinstance(task, NextToken | SeqToSeq) or task.size.labels < 2:
        return None
    questions, tokens = _asked(task, positions=any(isinstance(layer, Positions) for layer in network.layers))
    constant = any(isinstance(layer, HardmaxAttention | SoftmaxAttention) for layer in network.layers)
    stages = _on_constant_sequences(network) if constant else _on_sequences(network)
    if (constant and not _stays_constant(network, questions, task.size.vocab)) or len(stages) > 2:
        return None
    depth = sum(len(stage.layers) for stage in stages)
    # ``tokens`` covers networks that have units in front of an attention layer and no table of the tokens.
    needed = vc.fewest(questions, task.size.labels, depth=depth, tokens=0 if constant else tokens)
    capacity = vc.capacity(stages, task.size.labels)
    return LowerBound(questions, task.size.labels, depth, needed, capacity, constant)


def planned_in_words(size: Size, setting: Setting, plans: Sequence[PlannedSize], *, positions: bool) -> str | None:
    """State the proved lower bound at a size, beside the smallest of the plans; None if there is none."""
    demand = worst_demand(size, setting, positions=positions)
    needed = vc.fewest(demand.questions, size.labels, tokens=demand.tokens)
    if not plans or not needed:
        return None
    smallest = min(plans, key=lambda plan: plan.parameters)
    return (
        f"Proved: no network of ReLU layers that share no weights, with one layer of uniform attention or none, has "
        f"fewer than {needed:,} parameters and memorizes every labelling of {demand.questions:,} inputs with "
        f"{size.labels:,} labels; "
        f"the smallest above, {smallest.construction}, has {smallest.parameters:,}, "
        f"{smallest.parameters / needed:.1f} times as many."
    )


def _asked(task: NextToken | SeqToSeq, *, positions: bool) -> tuple[int, int]:
    """Count the different questions of a task and their different tokens (with positions: (token, position) pairs)."""
    ids = np.unique(positioned_ids(task, positions), axis=0)
    return len(count_tokens(ids)) if isinstance(task, SeqToSeq) else len(ids), len(np.unique(ids))


def _stays_constant(network: ExactNetwork, questions: int, vocab: int) -> bool:
    """Return True if tokens suffice for ``questions`` constant sequences and no positions tell equal tokens apart."""
    positions = any(isinstance(layer, Positions) for layer in network.layers)
    return questions <= vocab and not (positions and network.length > 1)


def _on_sequences(network: ExactNetwork) -> list[WeightLayers]:
    """Return the stages of a network that averages or flattens: on different tokens in front, on questions behind."""
    parts: list[list[WeightLayer]] = [[]]
    for layer in network.layers:
        parts[-1] += _weight_layers(layer)
        if isinstance(layer, UniformAttention | TokenSum | Flatten):
            parts.append([])
    *in_front, behind = map(tuple, parts)
    return [*(WeightLayers(part, network.length, _tokens_known(network)) for part in in_front), WeightLayers(behind)]


def _tokens_known(network: ExactNetwork) -> int | None:
    """Return the rows of the embedding table, times the positions if there are any; None: any number of tokens."""
    tables = [len(layer.W_E) for layer in network.layers if isinstance(layer, Embedding)]
    positions = any(isinstance(layer, Positions) for layer in network.layers)
    return tables[0] * (network.length if positions else 1) if tables else None


def _on_constant_sequences(network: ExactNetwork) -> list[WeightLayers]:
    """Return a single stage, in which every layer sees one vector per question."""
    return [WeightLayers(tuple(weights for layer in network.layers for weights in _weight_layers(layer)))]


def _weight_layers(layer: Layer) -> list[WeightLayer]:
    """Return the layers that multiply between input and output; W_Q and W_K only choose the tokens to average."""
    match layer:
        case FeedForward(layers=chain):
            return [WeightLayer(a.W.size + a.b.size, len(a.b) if a.relu else 0) for a in chain]
        case Residual(blocks=blocks):
            pairs = ((WeightLayer(b.W_in.size + b.b_in.size, len(b.b_in)), WeightLayer(b.W_out.size)) for b in blocks)
            return [weights for pair in pairs for weights in pair]
        case UniformAttention() | HardmaxAttention() | SoftmaxAttention():
            return [WeightLayer(layer.W_V.size), WeightLayer(layer.W_O.size)]
        case Flatten() | TokenSum():
            return []
        case Positions(W_pos=table):
            return [WeightLayer(table.size)]
        case _:
            return [WeightLayer(layer.W_E.size)]

"""The plain interpolator: the same Transformer with one hidden unit a question, 3N parameters. Every table's baseline.

The front is that of :mod:`.gadgets.contextual`; the label stage is a zigzag through all keys, the token
stage (where tokens are vectors or have positions) a sum of spikes; see :mod:`.gadgets.interpolation`.
"""

from dataclasses import dataclass

import numpy as np

from byheart.constructions.gadgets import contextual
from byheart.constructions.gadgets.demand import Demand, demand_of
from byheart.constructions.gadgets.hypotheses import consistent
from byheart.constructions.gadgets.interpolation import Spikes, Zigzag
from byheart.constructions.gadgets.sizes import Engine, Sizes
from byheart.constructions.plan import Plan
from byheart.networks.exact import ExactNetwork
from byheart.tasks import Task

NAME = "interpolate"
INTERPOLATION = Engine(
    label_stage=lambda keys, labels, _: Zigzag(keys, labels),
    token_stage=lambda keys, labels, _, own_bits: Spikes(keys, labels, own_bits),
    fold_labels=False,
)


@dataclass(frozen=True)
class Settings:
    """How the network reads a sequence."""

    positions: bool = False
    """Give every position a code of its own, so that order matters."""


def plan(demand: Demand, settings: Settings) -> Plan:
    """The network's tensors, before it is built: 3N + 1 entries in the label stage.

    >>> from byheart.constructions.gadgets.demand import worst_demand
    >>> from byheart.size import Size
    >>> p = plan(worst_demand(Size(examples=1000, length=32, labels=10, vocab=200), "next-token"), Settings())
    >>> p.dense - p.embedding
    3003
    """
    return contextual.plan(Sizes(demand, INTERPOLATION))


def demand(task: Task, settings: Settings) -> Demand:
    """What the task demands of the network."""
    return demand_of(task, positions=settings.positions)


def build(task: Task, settings: Settings, rng: np.random.Generator) -> tuple[ExactNetwork, dict[str, object]]:
    """The network that has memorized ``task``, and what was chosen on the way."""
    checked = consistent(NAME, task, positions=settings.positions)
    return contextual.build(checked, Sizes(demand(task, settings), INTERPOLATION), rng)

"""Kajitsuka & Sato 2025, "On the Optimal Memorization Capacity of Transformers": both theorems, as a program.

**Next-token** (their Theorem 1): N sequences that are distinct up to permutation, each with one label of C, are
memorized by FFN · uniform attention · FFN with Õ(√N) parameters, whatever their length n. **Seq-to-seq**: with one
label for every token and consistent labels, Õ(√(nN)) parameters.

The network is that of :mod:`.gadgets.contextual` with grouped bit extraction
(:mod:`.gadgets.lookup`) as token stage and label stage. Hypotheses, checked: finite tokens; without
``positions`` no two sequences that are permutations of each other ask for different labels. The theorem's token-wise
(r, δ)-separation is not needed: floats are read as exact points of a grid (:mod:`.gadgets.grid`), so
different tokens are always told apart, at six parameters a bit of the grid.

Where we differ from the paper: the step function that finds a key's group is one wide layer instead of a narrow deep
chain (8 instead of about 40 parameters a group), so the width is not constant. The parameters are fewer; their order is
the same.
"""

from dataclasses import dataclass

import numpy as np

from byheart.constructions.gadgets import contextual, lookup
from byheart.constructions.gadgets.demand import Demand, demand_of
from byheart.constructions.gadgets.hypotheses import consistent
from byheart.constructions.gadgets.sizes import Engine, Sizes
from byheart.constructions.plan import Plan
from byheart.networks.exact import ExactNetwork
from byheart.tasks import Task

NAME = "kajitsuka-sato-2025"


@dataclass(frozen=True)
class Settings:
    """How the network reads a sequence."""

    positions: bool = False
    """Give every position a code of its own, so that order matters."""
    bits: int | None = None
    """At most this many bits in any weight, sign included (default: as many as make it smallest)."""


def extraction(bits: int | None) -> Engine:
    """Grouped bit extraction as token stage and label stage, under a bound on the bits of a weight."""
    limits = lookup.Limits(bits=bits)
    return Engine(
        label_stage=lambda keys, labels, largest: lookup.design(keys, labels, largest, limits=limits),
        token_stage=lambda keys, labels, largest, own_bits: lookup.design(
            keys, labels, largest, own_bits=own_bits, limits=limits
        ),
        fold_labels=True,
    )


def plan(demand: Demand, settings: Settings) -> Plan:
    """The network's tensors, before it is built.

    >>> from byheart.constructions.gadgets.demand import worst_demand
    >>> from byheart.size import Size
    >>> size = Size(examples=1000, length=32, labels=10, vocab=200)
    >>> p = plan(worst_demand(size, "next-token"), Settings())
    >>> p.dense - p.embedding
    2641
    """
    return contextual.plan(Sizes(demand, extraction(settings.bits)))


def demand(task: Task, settings: Settings) -> Demand:
    """What the task demands of the network."""
    return demand_of(task, positions=settings.positions)


def build(task: Task, settings: Settings, rng: np.random.Generator) -> tuple[ExactNetwork, dict[str, object]]:
    """The network that has memorized ``task``, and what was chosen on the way."""
    checked = consistent(NAME, task, positions=settings.positions)
    return contextual.build(checked, Sizes(demand(task, settings), extraction(settings.bits)), rng)

"""Vardi, Yehudai & Shamir 2022, "On the Optimal Memorization Power of ReLU Neural Networks": Õ(√N) for N points.

A plain ReLU network, no attention: the n tokens of a sequence are one point in R^(n·d) (token ids are read as numbers),
so the order of tokens matters and the first layer has n·d weights. The point is hashed into a small range
(:mod:`.gadgets.hashing`, :mod:`.gadgets.grid`) and looked up by grouped bit extraction
(:mod:`.gadgets.lookup`, where the proof is). Next-token tasks only.

``depth`` is the paper's trade-off: at most that many layers, Õ(N/L) parameters. ``bits`` is the bounded-precision
variant: no weight has more bits than that (sign included), Õ(N/b) parameters.
"""

from dataclasses import dataclass

import numpy as np

from byheart.constructions.construction import Construction, Made
from byheart.constructions.gadgets import grid, hashing, lookup
from byheart.constructions.gadgets.assemble import network_for
from byheart.constructions.gadgets.demand import TYPICAL_GRID_BITS
from byheart.constructions.gadgets.grid import Grid
from byheart.constructions.gadgets.hypotheses import consistent
from byheart.constructions.gadgets.keys import filled_up, one_answer_each
from byheart.constructions.gadgets.tokens import TRIES
from byheart.constructions.plan import Part, Plan, Shape, plan_of
from byheart.errors import BadInput
from byheart.networks.exact import Affine, FeedForward, Flatten, Layer, integers
from byheart.progress import Report
from byheart.size import Size
from byheart.tasks import NextToken, Task
from byheart.tasks.checks import Ids

NAME = "vardi-2022"


@dataclass(frozen=True)
class Settings:
    """Limits on the network."""

    depth: int | None = None
    """At most this many layers (default: as many as make it smallest)."""
    bits: int | None = None
    """At most this many bits in any weight, sign included (default: as many as make it smallest)."""


@dataclass(frozen=True)
class Demand:
    """N points of n·d coordinates with at most ``grid_bits`` bits each, C labels; ids are never negative (unsigned)."""

    size: Size
    grid_bits: int
    limits: lookup.Limits

    @property
    def signed(self) -> bool:
        """Whether coordinates may be negative."""
        return self.size.dim is not None

    @property
    def coordinates(self) -> int:
        """Numbers that a point consists of."""
        return self.size.length * (self.size.dim or 1)

    @property
    def modulus(self) -> int:
        """Smallest Q for the points."""
        return hashing.question_modulus(self.size.examples, self.size.labels, alone=self.coordinates == 1)

    @property
    def ratio(self) -> int:
        """The hash before folding is at most this many times Q."""
        return grid.ratio(self.coordinates, self.grid_bits) if self.signed else self.coordinates << self.grid_bits

    @property
    def hash_bits(self) -> int:
        """No weight in front of the lookup has more bits than this."""
        return (2 * self.ratio * hashing.largest_modulus(self.modulus)).bit_length() + 1

    @property
    def direct(self) -> bool:
        """Whether the point is a single id that is the key as it is: small, or the limits leave no room to hash it."""
        small = (1 << self.grid_bits) - 1 <= hashing.largest_key(self.modulus)
        narrow = self.limits.bits is not None and self.hash_bits > self.limits.bits
        # Hashing and a lookup with one slot have to fit into the depth, or hashing gains nothing.
        layers = hashing.folds_needed(self.ratio) + hashing.largest_key(self.modulus).bit_length() + 8
        shallow = self.limits.depth is not None and layers > self.limits.depth
        return self.coordinates == 1 and not self.signed and (small or narrow or shallow)

    @property
    def folds(self) -> int:
        """Folds in front of the lookup."""
        return 0 if self.direct else hashing.folds_needed(self.ratio)

    @property
    def lookup(self) -> lookup.Lookup:
        """Keys to labels, within the limits."""
        if not self.direct and self.limits.bits is not None and self.hash_bits > self.limits.bits:
            raise BadInput(f"hashing these points needs {self.hash_bits} bits per weight; got bits={self.limits.bits}")
        largest = (1 << self.grid_bits) - 1 if self.direct else hashing.largest_key(self.modulus)
        before = len(self.hash_shapes)
        return lookup.design(self.size.examples, self.size.labels, largest, limits=self.limits, layers_before=before)

    @property
    def hash_shapes(self) -> list[tuple[str, int, int]]:
        """Layers in front of the lookup."""
        return [] if self.direct else [("hash", 1, self.coordinates), *hashing.fold_shapes(1, self.folds)]


def demand(task: Task, settings: Settings) -> Demand:
    """What the task demands of the network."""
    return Demand(task.size, _grid(task).bits, lookup.Limits(settings.depth, settings.bits))


def worst_demand(size: Size, settings: Settings) -> Demand:
    """The largest demand of a task of this size, with coordinates of typical bits."""
    bits = TYPICAL_GRID_BITS if size.dim is not None else max(1, (size.vocab - 1).bit_length())
    return Demand(size, bits, lookup.Limits(settings.depth, settings.bits))


def plan(demand: Demand) -> Plan:
    """The network's tensors, before it is built.

    >>> from byheart.size import Size
    >>> plan(worst_demand(Size(examples=10_000, length=1, labels=2, vocab=10**8), Settings())).dense
    9233
    """
    parts: list[Part] = [("label", Shape((*demand.hash_shapes, *demand.lookup.shape.layers)))]
    return plan_of(parts, input_width=demand.coordinates, extra_depth=0)


def build(task: Task, settings: Settings, rng: np.random.Generator, report: Report | None = None) -> Made:
    """The network that has memorized ``task``."""
    checked = consistent(NAME, task, positions=True)
    if not isinstance(checked, NextToken):
        raise BadInput(f"{NAME} memorizes points, with one label each; the task asks for one per token ({task.kind})")
    sizes, points = demand(task, settings), _grid(task)
    before, keys, chosen = _hash(sizes, points, checked.labels, rng)
    pick = one_answer_each(keys, checked.labels)
    assert pick is not None
    keys, answers = filled_up(keys[pick], checked.labels[pick], checked.size.examples)
    layers = [*before, *sizes.lookup.layers(keys, integers(answers))]
    flatten: list[Layer] = [Flatten()] if checked.size.length > 1 else []
    network = network_for(checked, (*flatten, FeedForward(tuple(layers), name="label")))
    return Made(network, plan(sizes), chosen)


def _grid(task: Task) -> Grid:
    """The task's sequences as points [N, n·d] on a grid; ids get the bits of the whole vocabulary."""
    if task.vectors is not None:
        return grid.from_floats(task.vectors.reshape(len(task.vectors), -1))
    assert task.tokens is not None
    return Grid(task.tokens, np.zeros_like(task.tokens), exponent=0, bits=max(1, (task.vocab - 1).bit_length()))


def _hash(
    sizes: Demand, points: Grid, labels: Ids, rng: np.random.Generator
) -> tuple[list[Affine], Ids, dict[str, object]]:
    """Layers from the points to keys that have one label each, and the keys [N]."""
    if sizes.direct:
        return [], points.mantissa[:, 0], {}
    for draws in range(1, TRIES):
        Q = hashing.draw_modulus(sizes.modulus, rng)
        v = rng.integers(0, Q, size=sizes.coordinates)
        a = int(rng.integers(0, Q))
        keys = hashing.fold(points.hash(v, Q) + a, Q)
        if one_answer_each(keys, labels) is not None:
            offset = grid.offset(sizes.coordinates, sizes.grid_bits, Q) if sizes.signed else 0
            project = Affine(integers([points.weights(v)]), integers([offset + a]), role="hash")
            return [project, *hashing.fold_layers([1], 0, Q, sizes.folds)], keys, {"modulus": Q, "draws": draws}
    raise RuntimeError(f"{TRIES} draws did not tell {len(labels)} points apart; please report this task")


CONSTRUCTION = Construction(
    name=NAME,
    paper="Vardi, Yehudai & Shamir 2022",
    summary="a ReLU network without attention on the whole sequence as one point: Õ(√N)",
    settings=Settings,
    build=build,
    covers=("next-token",),
    plan=lambda size, _, settings: plan(worst_demand(size, settings)),
    orders={"next-token": "Õ(√N)"},
    colour="#d1781f",
    dash=(0, (4, 2)),
    flags="--bits 53",
)

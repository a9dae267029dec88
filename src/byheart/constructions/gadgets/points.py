"""Points → keys → labels: a plain ReLU network on whole sequences, each read as one point.

The n tokens of a sequence are one point in R^(n·d) (token ids are read as numbers), so the order of tokens matters and
the first layer has n·d weights. The point is hashed to a key in a small range (:mod:`.gadgets.modular_hash`,
:mod:`.gadgets.vectors`), and the key is looked up (:mod:`.gadgets.lookup`). A single id may be its own key.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from byheart.constructions.construction import Made
from byheart.constructions.gadgets import modular_hash, nearby, vectors
from byheart.constructions.gadgets.demand import TYPICAL_GRID_BITS, pad_keys, select_keys
from byheart.constructions.gadgets.hypotheses import consistent
from byheart.constructions.gadgets.lookup import Lookup
from byheart.constructions.gadgets.modular_hash import TRIES
from byheart.constructions.gadgets.vectors import Grid
from byheart.constructions.plan import Part, Plan, TokenwiseShape, network_for, plan_of
from byheart.errors import BadInput
from byheart.networks.exact import Affine, FeedForward, Flatten, Layer, integers
from byheart.sizes import Size
from byheart.tasks import NextToken, Task
from byheart.tasks.arrays import Ids


@dataclass(frozen=True)
class PointFront:
    """From N points of n·d coordinates with at most ``grid_bits`` bits each to keys; ids are never negative (unsigned).

    ``direct``: the point is a single id, and the key as it is. ``fold_bits`` are folded away by every layer behind the
    hash. ``reading``: what takes all points near one for the same (:mod:`.gadgets.nearby`), instead of the grid.
    """

    size: Size
    grid_bits: int
    direct: bool = False
    fold_bits: int = 1
    reading: vectors.VectorFront | None = None

    @property
    def signed(self) -> bool:
        """Whether coordinates may be negative."""
        return self.size.dim is not None

    @property
    def coordinates(self) -> int:
        """Numbers that a point consists of."""
        return self.size.length * (self.size.dim or 1)

    @property
    def may_be_direct(self) -> bool:
        """Whether a point is a single id."""
        return self.coordinates == 1 and not self.signed

    @property
    def modulus(self) -> int:
        """Smallest Q for the points."""
        return modular_hash.question_modulus(self.size.examples, self.size.labels, alone=self.coordinates == 1)

    @property
    def ratio(self) -> int:
        """The hash before folding is at most this many times Q."""
        if self.reading is not None:
            return self.reading.ratio
        return vectors.ratio(self.coordinates, self.grid_bits) if self.signed else self.coordinates << self.grid_bits

    @property
    def hash_bits(self) -> int:
        """No weight of the hash and its folds has more bits than this."""
        return (2 * self.ratio * modular_hash.largest_modulus(self.modulus)).bit_length() + 1

    @property
    def folds(self) -> int:
        """Folds in front of the lookup."""
        return 0 if self.direct else modular_hash.folds_needed(self.ratio)

    @property
    def largest(self) -> int:
        """No key is larger."""
        return (1 << self.grid_bits) - 1 if self.direct else modular_hash.largest_key(self.modulus)

    @property
    def shapes(self) -> list[tuple[str, int, int]]:
        """Layers in front of the lookup."""
        if self.direct:
            return []
        hashed = (("hash", 1, self.coordinates),) if self.reading is None else self.reading.shapes
        return [*hashed, *modular_hash.fold_shapes(1, self.folds, self.fold_bits)]


def front(task: Task) -> PointFront:
    """What it takes to read the task's points."""
    return PointFront(task.size, points_of(task).bits)


def worst_front(size: Size) -> PointFront:
    """What it takes to read the points of any task of this size, with coordinates of typical bits."""
    return PointFront(size, TYPICAL_GRID_BITS if size.dim is not None else max(1, (size.vocab - 1).bit_length()))


def plan(front: PointFront, stage: Lookup) -> Plan:
    """The network's tensors, before it is built."""
    parts: list[Part] = [("label", TokenwiseShape((*front.shapes, *stage.shape.layers)))]
    return plan_of(parts, input_width=front.coordinates, extra_depth=0)


@dataclass(frozen=True, eq=False)
class Near:
    """What reads points so that those near them are read alike, and which of its points each sequence is [N]."""

    reader: vectors.Reader
    which: Ids

    def draw(self, Q: int, rng: np.random.Generator) -> tuple[Ids, list[Affine]]:
        """Hashes [N] before folding, and the layers that compute them."""
        hashes, layers = self.reader.draw(Q, rng)
        return hashes[self.which], layers


def read_nearby(name: str, task: NextToken, radius: float | None, rng: np.random.Generator) -> Near:
    """The smallest front that reads all within ``radius`` of a point as that point; by default two directions."""
    points, which = nearby.whole_points_of(name, task)
    return Near(nearby.find_reader(points, radius, rng), which)


def build(
    task: NextToken, front: PointFront, stage: Lookup, rng: np.random.Generator, near: Near | None = None
) -> Made:
    """The network that has memorized ``task``, one that :func:`points_only` let pass; read by ``near`` if given."""
    points = points_of(task)
    draw = _grid_hash(front, points) if near is None else near.draw
    before, keys, chosen = ([], points.mantissa[:, 0], {}) if front.direct else _hash(front, draw, task.labels, rng)
    about = {} if near is None else {"radius": near.reader.radius}
    chosen |= {} if near is None else near.reader.chosen
    pick = select_keys(keys, task.labels)
    assert pick is not None
    keys, answers = pad_keys(keys[pick], task.labels[pick], task.size.examples)
    layers = [*before, *stage.layers(keys, integers(answers))]
    flatten: list[Layer] = [Flatten()] if task.size.length > 1 else []
    network = network_for(task, (*flatten, FeedForward(tuple(layers), name="label")), about)
    return Made(network, plan(front, stage), chosen)


def points_only(name: str, task: Task) -> NextToken:
    """Refuse tasks that ask for two answers to one point, or for more than one label each."""
    checked = consistent(name, task, positions=True)
    if not isinstance(checked, NextToken):
        raise BadInput(f"{name} memorizes points, with one label each; the task asks for one per token ({task.kind})")
    return checked


def points_of(task: Task) -> Grid:
    """The task's sequences as points [N, n·d] on a grid; ids get the bits of the whole vocabulary."""
    if task.vectors is not None:
        return vectors.from_floats(task.vectors.reshape(len(task.vectors), -1))
    assert task.tokens is not None
    return Grid(task.tokens, np.zeros_like(task.tokens), exponent=0, bits=max(1, (task.vocab - 1).bit_length()))


_Draw = Callable[[int, np.random.Generator], tuple[Ids, list[Affine]]]
"""Q and randomness → hashes [N] of the points before folding, and the layers that compute them."""


def _grid_hash(front: PointFront, points: Grid) -> _Draw:
    """v·X + offset + a, v and a uniform below Q."""

    def draw(Q: int, rng: np.random.Generator) -> tuple[Ids, list[Affine]]:
        v = rng.integers(0, Q, size=front.coordinates)
        a = int(rng.integers(0, Q))
        offset = vectors.offset(front.coordinates, front.grid_bits, Q) if front.signed else 0
        project = Affine(integers([points.weights(v)]), integers([offset + a]), role="hash")
        return points.hash(v, Q) + a, [project]

    return draw


def _hash(
    front: PointFront, draw: _Draw, labels: Ids, rng: np.random.Generator
) -> tuple[list[Affine], Ids, dict[str, object]]:
    """Layers from the points to keys that have one label each, and the keys [N]."""
    for draws in range(1, TRIES):
        Q = modular_hash.draw_modulus(front.modulus, rng)
        hashes, layers = draw(Q, rng)
        keys = modular_hash.fold(hashes, Q)
        if select_keys(keys, labels) is not None:
            folding = modular_hash.fold_layers([1], 0, Q, front.folds, front.fold_bits)
            return [*layers, *folding], keys, {"modulus": Q, "draws": draws}
    raise RuntimeError(f"{TRIES} draws did not tell {len(labels)} points apart; please report this task")

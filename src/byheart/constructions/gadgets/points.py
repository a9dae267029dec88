"""Points → keys → labels: a plain ReLU network that reads each whole sequence as one point.

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
    """Sizes of the layers from N points of n·d coordinates, of at most ``grid_bits`` bits each, to keys.

    If ``direct``, the point is a single id, which is the key as it is. A layer behind the hash folds ``fold_bits``
    bits. If there is a ``reading``, it reads all points near a point alike (:mod:`.gadgets.nearby`), and replaces the
    grid.
    """

    size: Size
    grid_bits: int
    direct: bool = False
    fold_bits: int = 1
    reading: vectors.VectorFront | None = None

    @property
    def signed(self) -> bool:
        """True if coordinates may be negative; ids are not."""
        return self.size.dim is not None

    @property
    def coordinates(self) -> int:
        """Number of coordinates of a point."""
        return self.size.length * (self.size.dim or 1)

    @property
    def may_be_direct(self) -> bool:
        """True if a point is a single id."""
        return self.coordinates == 1 and not self.signed

    @property
    def modulus(self) -> int:
        """Smallest modulus Q for the points."""
        return modular_hash.question_modulus(self.size.examples, self.size.labels, alone=self.coordinates == 1)

    @property
    def ratio(self) -> int:
        """Bound on the hash before folding, in multiples of Q."""
        if self.reading is not None:
            return self.reading.ratio
        return vectors.ratio(self.coordinates, self.grid_bits) if self.signed else self.coordinates << self.grid_bits

    @property
    def hash_bits(self) -> int:
        """Largest number of bits of a weight of the hash and its folds."""
        return (2 * self.ratio * modular_hash.largest_modulus(self.modulus)).bit_length() + 1

    @property
    def folds(self) -> int:
        """Number of folds in front of the lookup."""
        return 0 if self.direct else modular_hash.folds_needed(self.ratio)

    @property
    def largest(self) -> int:
        """Largest possible key."""
        return (1 << self.grid_bits) - 1 if self.direct else modular_hash.largest_key(self.modulus)

    @property
    def shapes(self) -> list[tuple[str, int, int]]:
        """Shapes of the layers in front of the lookup: (role, outputs, inputs)."""
        if self.direct:
            return []
        hashed = (("hash", 1, self.coordinates),) if self.reading is None else self.reading.shapes
        return [*hashed, *modular_hash.fold_shapes(1, self.folds, self.fold_bits)]


def front(task: Task) -> PointFront:
    """Return the front that reads the task's points."""
    return PointFront(task.size, points_of(task).bits)


def worst_front(size: Size) -> PointFront:
    """Return the front that reads the points of any task of ``size``, with coordinates of typical bits."""
    return PointFront(size, TYPICAL_GRID_BITS if size.dim is not None else max(1, (size.vocab - 1).bit_length()))


def plan(front: PointFront, stage: Lookup) -> Plan:
    """Plan the network's tensors."""
    parts: list[Part] = [("label", TokenwiseShape((*front.shapes, *stage.shape.layers)))]
    return plan_of(parts, input_width=front.coordinates, extra_depth=0)


@dataclass(frozen=True, eq=False)
class Near:
    """A reader that reads all points near a point alike, and the number of each sequence's point [N]."""

    reader: vectors.Reader
    which: Ids

    def draw(self, Q: int, rng: np.random.Generator) -> tuple[Ids, list[Affine]]:
        """Draw a hash; return its values [N] before folding, and its layers."""
        hashes, layers = self.reader.draw(Q, rng)
        return hashes[self.which], layers


def read_nearby(name: str, task: NextToken, radius: float | None, rng: np.random.Generator) -> Near:
    """Return a reader of all points within ``radius`` of the task's; by default cells with two directions."""
    points, which = nearby.whole_points_of(name, task)
    return Near(nearby.find_reader(points, radius, rng), which)


def build(
    task: NextToken, front: PointFront, stage: Lookup, rng: np.random.Generator, near: Near | None = None
) -> Made:
    """Build a network that has memorized ``task``, checked by :func:`points_only`; ``near`` replaces the grid."""
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
    """Return ``task``; raise BadInput if a point has two answers, or if a sequence has more than one label."""
    checked = consistent(name, task, positions=True)
    if not isinstance(checked, NextToken):
        raise BadInput(f"{name} memorizes points, with one label each; the task asks for one per token ({task.kind})")
    return checked


def points_of(task: Task) -> Grid:
    """Return the task's sequences as points [N, n·d] on a grid; ids get the bits of the whole vocabulary."""
    if task.vectors is not None:
        return vectors.from_floats(task.vectors.reshape(len(task.vectors), -1))
    assert task.tokens is not None
    return Grid(task.tokens, np.zeros_like(task.tokens), exponent=0, bits=max(1, (task.vocab - 1).bit_length()))


_Draw = Callable[[int, np.random.Generator], tuple[Ids, list[Affine]]]
"""Function from Q and a random generator to hashes [N] of the points before folding, and their layers."""


def _grid_hash(front: PointFront, points: Grid) -> _Draw:
    """Return the function that draws a hash v·X + offset + a, with v and a uniform below Q."""

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
    """Draw hashes until every key has one label; return the layers, the keys [N], and the choices to record."""
    for draws in range(1, TRIES):
        Q = modular_hash.draw_modulus(front.modulus, rng)
        hashes, layers = draw(Q, rng)
        keys = modular_hash.fold(hashes, Q)
        if select_keys(keys, labels) is not None:
            folding = modular_hash.fold_layers([1], 0, Q, front.folds, front.fold_bits)
            return [*layers, *folding], keys, {"modulus": Q, "draws": draws}
    raise RuntimeError(f"{TRIES} draws did not tell {len(labels)} points apart; please report this task")

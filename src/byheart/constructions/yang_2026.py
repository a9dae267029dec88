"""Yang & Yang 2026, memorization by width and depth: N points with any width w and depth L such that w²L² = Õ(N).

The theorem (:mod:`byheart.bounds.yang_2026`): N points, pairwise δ apart, are memorized by ReLU networks of width w and
depth L as soon as w²L² is of order N log δ⁻¹, whatever w and L are; and w²L² = Ω(N/log δ⁻¹) is needed. The theorem is
theirs, the network is ours (their proof was not at hand).

Points are read, hashed to keys and looked up as in :mod:`byheart.constructions.vardi_2022`, all of it exact. What is
new is the use of the width:

* A key's group is found by squares of k × k groups, in two layers of 3k + 2 units each, or, where the width is small, k
  groups a layer of 2k + 1 units (:mod:`.gadgets.selecting`): w²/18 groups a layer.
* Folding takes b = ⌊log₂(w − 1)⌋ bits a layer (:mod:`.gadgets.waves`; twelve at most here), so that one of a group's
  entries, β = O(log(N·C)) bits long, is read in s = ⌈(β + 1)/b⌉ + 1 layers.

L layers, half of them for each, hold (w²L/36)·(L/2s) = w²L²/(72s) keys. So w²L² = O(N log(N·C)/log w): N up to a
constant when the width is a power of N. Beside that, folding the hash takes ⌈(bits of a point)/b⌉ layers, and unpacking
a group ⌈(bits of a key)/b⌉.

**Which network.** ``width`` bounds the units of every hidden layer, ``depth`` the layers. With the width given, the
network is the shallowest, and of those the narrowest; with the depth given (the width may be, too), the narrowest. With
neither it is balanced: the width and the depth are at most s, for the smallest s. Next-token tasks only.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from byheart.constructions.construction import Construction, Made
from byheart.constructions.gadgets import points
from byheart.constructions.gadgets.lookup import Lookup, shallowest
from byheart.constructions.gadgets.points import PointFront
from byheart.constructions.gadgets.selecting import Chain, Squares
from byheart.constructions.plan import Plan
from byheart.constructions.theorem import POINTS, Theorem
from byheart.errors import BadInput
from byheart.progress import Report
from byheart.sizes import Size
from byheart.tasks import Task

NAME = "yang-2026"
NARROWEST = 4
_MOST_BITS = 12
"""Folded by a layer: 2^24 parameters are enough."""


@dataclass(frozen=True)
class YangSettings:
    """The shape of the network."""

    width: int | None = None
    """At most this many units in every hidden layer (default: as few as the depth allows)."""
    depth: int | None = None
    """At most this many layers (default: as few as the width allows; with neither, both are about the same)."""


@dataclass(frozen=True)
class YangDemand:
    """How points become keys, and keys labels."""

    front: PointFront
    stage: Lookup

    @property
    def depth(self) -> int:
        """Layers in all."""
        return len(self.front.shapes) + self.stage.depth

    @property
    def width(self) -> int:
        """Units of the widest layer; the input is none."""
        return max(outputs for _, outputs, _ in (*self.front.shapes, *self.stage.shape.layers))


def demand(task: Task, settings: YangSettings) -> YangDemand:
    """What the task demands of the network."""
    return _demand(points.front(task), settings)


def worst_demand(size: Size, settings: YangSettings) -> YangDemand:
    """The largest demand of a task of this size, with coordinates of typical bits."""
    return _demand(points.worst_front(size), settings)


def _demand(front: PointFront, settings: YangSettings) -> YangDemand:
    width, depth = settings.width, settings.depth
    if width is not None and width < NARROWEST:
        raise BadInput(f"width is {width}; expected at least {NARROWEST}")
    if depth is None:
        return _balanced(front) if width is None else _narrowest(front, _shallowest(front, width).depth)
    found = _narrowest(front, depth)
    if width is not None and found.width > width:
        takes = f"width {width} takes depth {_shallowest(front, width).depth}, depth {depth} takes width {found.width}"
        raise BadInput(
            f"width {width} and depth {depth}, w²L² = {(width * depth) ** 2:,}, are too small for "
            f"{front.size.examples:,} points: {takes}"
        )
    return found


def _shallowest(front: PointFront, width: int) -> YangDemand:
    """The network with the fewest layers among those of this width at most."""
    N, C = front.size.examples, front.size.labels
    bits = min(_MOST_BITS, (width - 1).bit_length() - 1)  # 2^bits units fold, one carries
    front = replace(front, fold_bits=bits)
    fronts = [replace(front, direct=True), front] if front.may_be_direct else [front]
    side = min((width - 2) // 3, 1 + int((N - 1) ** 0.5))
    selections: list[Chain | Squares] = [Squares(side)] if side > 1 else []
    selections.append(Chain(max(1, min(N - 1, (width - 1) // 2))))
    found = [YangDemand(read, shallowest(N, C, read.largest, how, bits)) for read in fronts for how in selections]
    return min(found, key=lambda one: one.depth)


def _narrowest(front: PointFront, depth: int) -> YangDemand:
    """The network of the smallest width among those with this many layers at most."""
    widest = max(2 * front.size.examples, 2**_MOST_BITS + 1)  # nothing is gained beyond
    if (least := _shallowest(front, widest).depth) > depth:
        raise BadInput(f"depth is {depth}; expected at least {least} for {front.size.examples:,} points")
    return _shallowest(front, _first(lambda width: _shallowest(front, width).depth <= depth, NARROWEST, widest))


def _balanced(front: PointFront) -> YangDemand:
    """The network whose width and depth are at most s, for the smallest s."""
    deepest = _shallowest(front, NARROWEST).depth
    fits = _first(lambda s: _shallowest(front, s).depth <= s, NARROWEST, max(NARROWEST, deepest))
    return _shallowest(front, fits)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first number for which something holds that holds from there up to ``high``, by bisection."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def plan(demand: YangDemand) -> Plan:
    """The network's tensors, before it is built.

    >>> size = Size(examples=10_000, length=1, labels=2, vocab=10**8)
    >>> for settings in (YangSettings(), YangSettings(width=20), YangSettings(depth=40)):
    ...     network = plan(worst_demand(size, settings))
    ...     print(network.width, network.depth, network.dense)
    50 48 64621
    20 131 39604
    62 40 85796
    """
    return points.plan(demand.front, demand.stage)


def build(task: Task, settings: YangSettings, rng: np.random.Generator, report: Report | None = None) -> Made:
    """The network that has memorized ``task``."""
    checked = points.points_only(NAME, task)
    sizes = demand(checked, settings)
    return points.build(checked, sizes.front, sizes.stage, rng)


THEOREMS = (
    Theorem(
        "width and depth",
        says="width w and depth L with w²L² = O(N log δ⁻¹) memorize N points; Ω(N/log δ⁻¹) is needed",
        assumes="N points in the unit ball, pairwise at least δ apart",
        limits="ReLU network of any width w and depth L with that product",
        task=POINTS,
        stated={"width": 14},
        differs="ours: w²L² = O(N log(N·C)) beside the folds of a point's bits; floats are told apart as they are",
    ),
)
CONSTRUCTION = Construction(
    name=NAME,
    paper="Yang & Yang 2026",
    summary="a ReLU network of any width w and depth L with w²L² = Õ(N), on the whole sequence as one point",
    settings=YangSettings,
    build=build,
    covers=("next-token",),
    plan=lambda size, _, settings: plan(worst_demand(size, settings)),
    orders={"next-token": "w²L² = Õ(N)"},
    theorems=THEOREMS,
    colour="#3d8b37",
    dash=(0, (2, 2)),
    flags="--width 26",
)

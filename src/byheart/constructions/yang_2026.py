"""Yang & Yang 2026, memorization by width and depth: N points with any width w and depth L such that w²L² = Õ(N).

The theorem (:mod:`byheart.bounds.yang_2026`): N points, pairwise δ apart, are memorized by ReLU networks of any width w
and depth L if w²L² is of order N log δ⁻¹; and w²L² = Ω(N/log δ⁻¹) is needed. The theorem is theirs, the network is ours
(their proof was not at hand).

Points are read, hashed to keys and looked up exactly, as in :mod:`byheart.constructions.vardi_2022`. The use of the
width is new:

* A key's group is found by squares of k × k groups, in two layers of 3k + 2 units each, or, if the width is small, by
  layers of 2k + 1 units for k groups (:mod:`.gadgets.selecting`): w²/18 groups per layer.
* Folding takes b = ⌊log₂(w − 1)⌋ bits per layer (:mod:`.gadgets.modular_hash`; at most twelve here), so that one of
  a group's entries, β = O(log(N·C)) bits long, is read in s = ⌈(β + 1)/b⌉ + 1 layers.

L layers, half of them for each purpose, hold (w²L/36)·(L/2s) = w²L²/(72s) keys. So w²L² = O(N log(N·C)/log w): N up to
a constant when the width is a power of N. In addition, folding the hash takes ⌈(bits of a point)/b⌉ layers, and
unpacking a group ⌈(bits of a key)/b⌉.

**Choice of the network.** ``width`` bounds the units of every hidden layer, ``depth`` the layers. If only the width is
given, the network is the narrowest of the shallowest ones; if the depth is given (with or without the width), it is the
narrowest. If neither is given, the network is balanced: width and depth are at most s, for the smallest s. Next-token
tasks only.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from byheart.constructions.construction import POINTS, Construction, Made, Theorem
from byheart.constructions.gadgets import points
from byheart.constructions.gadgets.lookup import Lookup, shallowest
from byheart.constructions.gadgets.points import PointFront
from byheart.constructions.gadgets.selecting import Chain, Squares
from byheart.constructions.plan import Plan
from byheart.errors import BadInput
from byheart.progress import Report
from byheart.sizes import Size
from byheart.tasks import Task

NAME = "yang-2026"
NARROWEST = 4
_MOST_BITS = 12
"""Largest number of bits that a layer folds, so that a layer never has more than about 2^24 parameters."""


@dataclass(frozen=True)
class YangSettings:
    """Limits on the shape of the network."""

    width: int | None = None
    """Largest number of units of a hidden layer (default: as few as the depth allows)."""
    depth: int | None = None
    """Largest number of layers (default: as few as the width allows; with neither, both are about the same)."""


@dataclass(frozen=True)
class YangDemand:
    """Sizes of the stages that turn points into keys, and keys into labels."""

    front: PointFront
    stage: Lookup

    @property
    def depth(self) -> int:
        """Total number of layers."""
        return len(self.front.shapes) + self.stage.depth

    @property
    def width(self) -> int:
        """Number of units of the widest layer, not counting the input."""
        return max(outputs for _, outputs, _ in (*self.front.shapes, *self.stage.shape.layers))


def demand(task: Task, settings: YangSettings) -> YangDemand:
    """Return the task's demand on the network."""
    return _demand(points.front(task), settings)


def worst_demand(size: Size, settings: YangSettings) -> YangDemand:
    """Return the largest demand of a task of ``size``, with coordinates of typical bits."""
    return _demand(points.worst_front(size), settings)


def _demand(front: PointFront, settings: YangSettings) -> YangDemand:
    width, depth = settings.width, settings.depth
    if width is not None and width < NARROWEST:
        raise BadInput(f"width is {width}; expected at least {NARROWEST}")
    if depth is None:
        return _balanced(front) if width is None else _narrowest(front, _shallowest(front, width).depth)
    narrowest = _narrowest(front, depth)
    if width is not None and narrowest.width > width:
        needs = f"width {width} takes depth {_shallowest(front, width).depth}"
        raise BadInput(
            f"width {width} and depth {depth}, w²L² = {(width * depth) ** 2:,}, are too small for "
            f"{front.size.examples:,} points: {needs}, depth {depth} takes width {narrowest.width}"
        )
    return narrowest


def _shallowest(front: PointFront, width: int) -> YangDemand:
    """Return the network with the fewest layers among those of at most ``width`` units per layer."""
    N, C = front.size.examples, front.size.labels
    bits = min(_MOST_BITS, (width - 1).bit_length() - 1)  # 2^bits units fold, one carries
    front = replace(front, fold_bits=bits)
    fronts = [replace(front, direct=True), front] if front.may_be_direct else [front]
    side = min((width - 2) // 3, 1 + int((N - 1) ** 0.5))
    selections: list[Chain | Squares] = [Squares(side)] if side > 1 else []
    selections.append(Chain(max(1, min(N - 1, (width - 1) // 2))))
    demands = [
        YangDemand(front, shallowest(N, C, front.largest, selection, bits))
        for front in fronts
        for selection in selections
    ]
    return min(demands, key=lambda demand: demand.depth)


def _narrowest(front: PointFront, depth: int) -> YangDemand:
    """Return the narrowest network among those of at most ``depth`` layers."""
    widest = max(2 * front.size.examples, 2**_MOST_BITS + 1)  # a wider network is not shallower
    if (least := _shallowest(front, widest).depth) > depth:
        raise BadInput(f"depth is {depth}; expected at least {least} for {front.size.examples:,} points")
    return _shallowest(front, _first(lambda width: _shallowest(front, width).depth <= depth, NARROWEST, widest))


def _balanced(front: PointFront) -> YangDemand:
    """Return the network whose width and depth are at most s, for the smallest s."""
    deepest = _shallowest(front, NARROWEST).depth
    fits = _first(lambda s: _shallowest(front, s).depth <= s, NARROWEST, max(NARROWEST, deepest))
    return _shallowest(front, fits)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Find by bisection the first number from which on ``holds`` is true up to ``high``."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def plan(demand: YangDemand) -> Plan:
    """Plan the network's tensors.

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
    """Build a network that has memorized ``task``."""
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
        ours={"width": 14},
        differs="w²L² = O(N log(N·C)) beside the folds of a point's bits; floats are told apart as they are",
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

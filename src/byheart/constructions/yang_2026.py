"""Yang & Yang 2026, memorization by width and depth: N points with any width w and depth L such that w²L² = Õ(N).

The theorem (:mod:`byheart.bounds.yang_2026`): N points, pairwise δ apart, are memorized by ReLU networks of width w and
depth L as soon as w²L² is of order N log δ⁻¹, whatever w and L are; and w²L² = Ω(N/log δ⁻¹) is needed. The theorem is
theirs, the network is ours (their proof was not at hand).

Points are read, hashed to keys and looked up as in :mod:`byheart.constructions.vardi_2022`. What is new is how the
lookup finds the group of a key (:mod:`.gadgets.selecting`): by squares of k × k groups in two layers of
3k + 2 units each, or, where the width is small, k groups a layer of 2k + 1 units. With half of the layers for w²L/36
groups and the other half for L/(2(β + 2)) entries of a group, β = O(log N) bits apart, the network holds
w²L²/(72(β + 2)) keys: w²L² = O(N log N), plus what the hash takes (two layers for every three bits at most, of two
units, so w²L² is of that order where L is larger than the bits of a point).

**Which network.** ``width`` bounds the units of every hidden layer, ``depth`` the layers. With the width given, the
network is the shallowest; with the depth given (and the width, if it is a bound too), the narrowest. With neither, it is
balanced: neither its width nor its depth could be smaller than the larger of the two is. Next-token tasks only; all of
it exact.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from byheart.constructions.construction import Construction, Made
from byheart.constructions.gadgets import points
from byheart.constructions.gadgets.lookup import Lookup, shallowest
from byheart.constructions.gadgets.points import Front
from byheart.constructions.gadgets.selecting import Chain, Squares
from byheart.constructions.plan import Plan
from byheart.errors import BadInput
from byheart.progress import Report
from byheart.size import Size
from byheart.tasks import Task

NAME = "yang-2026"
NARROWEST = 4


@dataclass(frozen=True)
class Settings:
    """The shape of the network."""

    width: int | None = None
    """At most this many units in every hidden layer (default: as few as the depth allows, or as many as layers)."""
    depth: int | None = None
    """At most this many layers (default: as few as the width allows)."""


@dataclass(frozen=True)
class Demand:
    """How points become keys, and keys labels."""

    front: Front
    stage: Lookup

    @property
    def depth(self) -> int:
        """Layers in all."""
        return len(self.front.shapes) + self.stage.depth

    @property
    def cost(self) -> tuple[int, int]:
        """What makes a network worse than another of the same width: layers, then groups."""
        return self.depth, self.stage.groups


def demand(task: Task, settings: Settings) -> Demand:
    """What the task demands of the network."""
    return _demand(points.front(task), settings)


def worst_demand(size: Size, settings: Settings) -> Demand:
    """The largest demand of a task of this size, with coordinates of typical bits."""
    return _demand(points.worst_front(size), settings)


def _demand(front: Front, settings: Settings) -> Demand:
    width, depth = settings.width, settings.depth
    if width is not None and width < NARROWEST:
        raise BadInput(f"width is {width}; expected at least {NARROWEST}")
    if depth is None:
        return _shallowest(front, width) if width is not None else _balanced(front)
    found = _narrowest(front, depth)
    if width is not None and found.stage.selection.width > width:
        least = _shallowest(front, width).depth
        raise BadInput(
            f"width {width} and depth {depth} are too small for these {front.size.examples} points: w²L² is "
            f"{(width * depth) ** 2}; width {width} takes depth {least}, depth {depth} takes width "
            f"{found.stage.selection.width}"
        )
    return found


def _shallowest(front: Front, width: int) -> Demand:
    """Of all networks that are at most so wide; the width behind which nothing is gained is less than 2N."""
    N, C = front.size.examples, front.size.labels
    fronts = [front, replace(front, direct=True)] if front.may_be_direct else [front]
    sides = min((width - 2) // 3, 1 + int((N - 1) ** 0.5))
    selections = [Chain(max(1, min(N - 1, (width - 1) // 2))), *([Squares(sides)] if sides > 1 else [])]
    found = [Demand(read, shallowest(N, C, read.largest, how)) for read in fronts for how in selections]
    return min(found, key=lambda one: one.cost)


def _narrowest(front: Front, depth: int) -> Demand:
    """Of all networks with at most so many layers."""
    widest = max(NARROWEST, 2 * front.size.examples)
    if (least := _shallowest(front, widest).depth) > depth:
        raise BadInput(f"depth is {depth}; expected at least {least} for these {front.size.examples} points")
    return _shallowest(front, _first(lambda width: _shallowest(front, width).depth <= depth, NARROWEST, widest))


def _balanced(front: Front) -> Demand:
    """The network whose width and depth are at most s, for the smallest s."""
    deepest = _shallowest(front, NARROWEST).depth
    fits = _first(lambda s: _shallowest(front, s).depth <= s, NARROWEST, max(NARROWEST, deepest))
    return _shallowest(front, fits)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first number from ``low`` to ``high`` for which something holds that holds for all behind it, by bisection."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def plan(demand: Demand) -> Plan:
    """The network's tensors, before it is built.

    >>> size = Size(examples=10_000, length=1, labels=2, vocab=10**8)
    >>> for settings in (Settings(), Settings(width=20), Settings(depth=40)):
    ...     network = plan(worst_demand(size, settings))
    ...     print(network.width, network.depth, network.dense)
    """
    return points.plan(demand.front, demand.stage)


def build(task: Task, settings: Settings, rng: np.random.Generator, report: Report | None = None) -> Made:
    """The network that has memorized ``task``."""
    checked = points.points_only(NAME, task)
    sizes = demand(checked, settings)
    return points.build(checked, sizes.front, sizes.stage, rng)


CONSTRUCTION = Construction(
    name=NAME,
    paper="Yang & Yang 2026",
    summary="a ReLU network of any width w and depth L with w²L² = Õ(N), on the whole sequence as one point",
    settings=Settings,
    build=build,
    covers=("next-token",),
    plan=lambda size, _, settings: plan(worst_demand(size, settings)),
    orders={"next-token": "w²L² = Õ(N)"},
    colour="#a8456b",
    dash=(0, (2, 2)),
    flags="--width 26",
)

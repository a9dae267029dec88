"""Vardi, Yehudai & Shamir 2022, "On the Optimal Memorization Power of ReLU Neural Networks": Õ(√N) for N points.

A plain ReLU network, no attention: a sequence is read as one point (:mod:`.gadgets.points`), hashed to a key, and the
key looked up by grouped bit extraction (:mod:`.gadgets.lookup`, where the proof is). Next-token tasks only.

``width="constant"`` is the theorem as stated: N points by width 12 and depth Õ(√N). Ours has width 4, and 5 with
``read="cells"`` (the input layer reads n·d numbers, as in the paper): the group of a key is found by a chain of layers
instead of one wide layer, at 12 parameters per group instead of 8. ``depth`` bounds the number of layers, the paper's
trade-off: Õ(N/L) parameters. It excludes ``width="constant"``, whose depth follows from the data. ``bits`` is the
bounded-precision variant: no weight has more bits than that (sign included), Õ(N/b) parameters.

``read`` chooses between exact floats (grid) and cells (:mod:`.gadgets.nearby`). With cells the answer is right for
every point near one of the dataset, even if each of its n vectors moves on its own.
"""

from dataclasses import dataclass, replace

import numpy as np

from byheart.constructions.construction import POINTS, Construction, Made, Theorem, VectorReading, limited
from byheart.constructions.gadgets import lookup, nearby, points
from byheart.constructions.gadgets.points import PointFront
from byheart.constructions.plan import Plan
from byheart.errors import BadInput
from byheart.progress import Report
from byheart.sizes import Size
from byheart.tasks import Task

NAME = "vardi-2022"


@dataclass(frozen=True)
class VardiSettings(VectorReading):
    """Settings for how the network reads vectors, and limits on its size."""

    depth: int | None = None
    """Largest number of layers (default: the number that makes the network smallest)."""
    bits: int | None = None
    """Largest number of bits of a weight, sign included (default: the number that makes the network smallest)."""
    width: lookup.Width = "free"
    """Width that makes the network smallest (free), or constant, as in the paper."""


@dataclass(frozen=True)
class VardiDemand:
    """Sizes of the stages that turn points into keys, within the limits, and keys into labels."""

    front: PointFront
    stage: lookup.Lookup


def demand(task: Task, settings: VardiSettings) -> VardiDemand:
    """Return the task's demand on the network."""
    return _demand(points.front(task), settings)


def worst_demand(size: Size, settings: VardiSettings) -> VardiDemand:
    """Return the largest demand of a task of ``size``, with coordinates of typical bits."""
    front = points.worst_front(size)
    if settings.read == "cells" and size.dim is not None:
        pairs = nearby.differing_pairs(size.examples, size.labels)
        front = replace(front, reading=nearby.typical_cells(front.coordinates, pairs))
    return _demand(front, settings)


def _demand(front: PointFront, settings: VardiSettings) -> VardiDemand:
    limits = lookup.Limits(settings.depth, settings.bits, settings.width)
    front = replace(front, direct=_direct(front, limits))
    if not front.direct and limits.bits is not None and front.hash_bits > limits.bits:
        raise BadInput(f"hashing these points needs {front.hash_bits} bits per weight; got bits={limits.bits}")
    size, before = front.size, len(front.shapes)
    return VardiDemand(
        front, lookup.design(size.examples, size.labels, front.largest, limits=limits, layers_before=before)
    )


def _direct(front: PointFront, limits: lookup.Limits) -> bool:
    """Return True if a single id serves as the key: it is small, or the limits leave no room to hash it."""
    small = (1 << front.grid_bits) - 1 <= front.largest
    narrow = limits.bits is not None and front.hash_bits > limits.bits
    # Hashing gains nothing unless hashing and a lookup with one slot fit into the depth.
    layers = front.folds + front.largest.bit_length() + 8
    shallow = limits.depth is not None and layers > limits.depth
    return front.may_be_direct and (small or narrow or shallow)


def plan(demand: VardiDemand) -> Plan:
    """Plan the network's tensors.

    >>> from byheart.sizes import Size
    >>> size = Size(examples=10_000, length=1, labels=2, vocab=10**8)
    >>> for width in ("free", "constant"):
    ...     network = plan(worst_demand(size, VardiSettings(width=width)))
    ...     print(network.dense, network.depth, network.width)
    9233 374 1211
    11678 978 4
    """
    return points.plan(demand.front, demand.stage)


def build(task: Task, settings: VardiSettings, rng: np.random.Generator, report: Report | None = None) -> Made:
    """Build a network that has memorized ``task``."""
    checked = points.points_only(NAME, task)
    nearby.check_radius(settings.radius, settings.read)
    if settings.read == "grid":
        sizes = demand(checked, settings)
        return points.build(checked, sizes.front, sizes.stage, rng)
    near = points.read_nearby(NAME, checked, settings.radius, rng)
    sizes = _demand(replace(points.front(checked), reading=near.reader.front), settings)
    return points.build(checked, sizes.front, sizes.stage, rng, near)


_SEPARATED = "N points of norm at most r, pairwise at least δ apart"
THEOREMS = (
    Theorem(
        "Theorem 3.1",
        says="N points are memorized with width 12, depth and parameters O(√(N log N) + √(N/log N)·log(max(R, C)))",
        assumes=_SEPARATED,
        limits="ReLU network of width 12",
        task=POINTS,
        stated={"width": "constant", "read": "cells"},
        ours={},
        differs="width 5, and the 4 numbers of a point",
    ),
    Theorem(
        "upper bound",
        paper="Kim, Moon & Yun 2025",
        says="right on the ball of radius ρδ/2 around every point: Õ(√N) parameters for small ρ, up to Õ(Nd²)",
        assumes=f"{_SEPARATED}; ρ < 1 (0.9 here)",
        limits="ReLU network",
        task=POINTS,
        ours={"read": "cells", "radius": 0.145},
        differs="indicators of balls by half-spaces; no range of ρ is shown with their exponents",
    ),
    *limited(_SEPARATED),
    Theorem(
        "lower bound",
        says="Ω(√N) parameters are needed; with constants, √(2N log₂C) up to lower-order terms (ours)",
        assumes="one shape of network memorizes every labelling",
        limits="ReLU layers that share no weights",
        shown_by="byheart bounds --examples 10000 --length 1 --vocab 10000 --labels 2",
    ),
    Theorem(
        "lower bound",
        paper="counting",
        says="whatever the network, W parameters of b bits hold at most W·b bits: W·b ≥ N log₂C",
        assumes="every labelling may be asked for",
        limits="none",
        shown_by="byheart bounds --examples 10000 --labels 2 --bits 32",
    ),
    Theorem(
        "lower bound",
        paper="Kim, Moon & Yun 2025",
        says="Ω((ρ² min(N, d) + 1)d + min(1/√(1 − ρ²), √d)·√N) parameters are needed within a radius of ρδ/2",
        assumes="N points, pairwise at least δ apart",
        limits="ReLU layers",
        shown_by="byheart bounds --examples 500 --length 1 --dim 16 --labels 2 --robustness 0.5",
        differs="order only",
    ),
)
CONSTRUCTION = Construction(
    name=NAME,
    paper="Vardi, Yehudai & Shamir 2022",
    summary="a ReLU network without attention on the whole sequence as one point: Õ(√N)",
    settings=VardiSettings,
    build=build,
    covers=("next-token",),
    plan=lambda size, _, settings: plan(worst_demand(size, settings)),
    orders={"next-token": "Õ(√N)"},
    theorems=THEOREMS,
    colour="#d1781f",
    dash=(0, (4, 2)),
    flags="--bits 53",
)

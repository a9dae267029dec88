"""Lots: the route says shard, offset and stretch of the table, and is cut so that every lot has as many questions.

Hashes fill a table unevenly. Of the questions that read the same bits, which make one system of equations, some offset
has more than its share, and so has some stretch of rows; where that is more than the band can even out, equations
depend on others (:func:`.sizes.stretches_for` has the law). So the offset has no hash sum of its own here, and the
start only as much as says where in its *stretch* it is. The rest follows from the route: a hash sum of many values, cut
at quantiles, so that all *lots* of a shard are equally full, to one route:

    lot = offset · stretches + stretch.

If a shard still has no solution, its lots are *turned*: they begin a part of a lot later, and those at the end are at
the beginning. Other questions meet then, and the front and all other shards stay as they are. So a shard has an
interval more than lots, as the one that was turned around is cut in two.

In the network that is one sublayer of steps, a unit for every interval. It is all of the network, besides the words,
that depends on the questions; and inside a shard, on its own questions and on nothing else.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.reciting.sizes import Sizes
from byheart.constructions.reciting.wiring import SHARP, Wiring
from byheart.errors import BadInput
from byheart.networks.transformer.spec import Features

Integers = NDArray[np.int64]
Tensors = Mapping[str, NDArray[Any]]
LOTS = "lots"
TURNS = 6
"""So many ways to turn the lots of a shard are tried before all is drawn anew."""
_GOLDEN = (5**0.5 - 1) / 2
"""Parts of a lot by whose multiples lots are turned: none comes near another."""


def cut_at(counts: Integers, shares: NDArray[np.float64]) -> Integers:
    """The routes nearest to where these shares of all questions lie below, if routes have so many questions each.

    >>> cut_at(np.array([1, 1, 4, 1, 1]), np.array([0.25, 0.5])).tolist()
    [2, 3]
    """
    below = np.concatenate([[0], np.cumsum(counts)])
    wanted = below[-1] * shares
    after = np.searchsorted(below, wanted)
    nearer: Integers = after - ((after > 0) & (wanted - below[after - 1] < below[after] - wanted))
    return np.maximum.accumulate(nearer)


def cut_shard(counts: Integers, sizes: Sizes, turn: int) -> tuple[Integers, Integers]:
    """Where intervals of a shard but the first begin, and the lots of all: [lots], [lots + 1].

    By hand: three offsets, one stretch, six questions. Turned once, by 1.618 lots, what lies below 0.618 lots, here one
    question, is in the second lot, as the last of all.

    >>> sizes = Sizes(24, 0, columns=4, starts=24, margin=3, aligned=8, exponent_share=0, stretches=1)
    >>> [part.tolist() for turn in (0, 1) for part in cut_shard(np.ones(6, int), sizes, turn)]
    [[0, 2, 4], [2, 0, 1, 2], [1, 3, 5], [1, 2, 0, 1]]
    """
    lots = np.arange(sizes.lots + 1)
    whole, part = divmod(turn * (sizes.stretches + _GOLDEN), 1)
    return cut_at(counts, (lots[:-1] + part) / sizes.lots), (lots - 1 - int(whole)) % sizes.lots


def lots_of(routes: Integers, sizes: Sizes, turn: int) -> Integers:
    """The lots of all questions of a shard, by their routes [N]."""
    first = int(routes.min(initial=sizes.routes))
    begins, lots = cut_shard(np.bincount(routes - first, minlength=1), sizes, turn)
    return lots[np.searchsorted(first + begins, routes, side="right")]


def add_lots(wiring: Wiring, sizes: Sizes, route: Features, shard: Features, offset: Features, start: Features) -> None:
    """Room for adding a question's shard (if there are several), offset and start of its stretch to these features."""
    writes = shard + offset + start
    thresholds = np.full(sizes.intervals, sizes.routes - 0.5)
    wiring.steps(LOTS, route, writes, thresholds, np.zeros((1, len(writes), sizes.intervals)))


def lot_tensors(front: Tensors, sizes: Sizes, counts: Integers, cuts: Integers, turns: Sequence[int]) -> Tensors:
    """What is in that room, if routes have so many questions, and shards begin at ``cuts`` and are turned so often."""
    begins, numbers = [], []
    for (first, last), turn in zip(pairwise(cuts), turns, strict=True):
        inside, lots = cut_shard(counts[first:last], sizes, turn)
        begins.append([first, *(first + inside)])
        numbers.append(lots)
    offset, stretch = np.divmod(np.concatenate(numbers), sizes.stretches)
    shard = [np.repeat(np.arange(sizes.shards), sizes.lots + 1)] if sizes.shards > 1 else []
    told = np.array([*shard, offset, stretch * sizes.stretch])
    tensors = {"b_in": -SHARP * (np.concatenate(begins) - 0.5), "W_out": np.diff(told, prepend=0)}
    return {
        f"{LOTS}.{name}": tensor.astype(front[f"{LOTS}.{name}"].dtype).reshape(front[f"{LOTS}.{name}"].shape)
        for name, tensor in tensors.items()
    }


def turn_of(tensors: Tensors, sizes: Sizes, routes: Integers) -> int:
    """How often the lots of a shard with these routes are turned in a network; 0 if it has no lots.

    BadInput if in no way that this module does it: a folder may say anything.
    """
    if not sizes.stretches:
        return 0
    begins, weights = tensors[f"{LOTS}.b_in"].ravel() / -SHARP, tensors[f"{LOTS}.W_out"].astype(np.float64)
    places = np.searchsorted(begins, routes, side="right") - 1
    offset, start = weights.reshape(-1, sizes.intervals)[-2:].cumsum(axis=1)[:, places]
    found = offset * sizes.stretches + start / sizes.stretch
    for turn in range(TURNS):
        if np.array_equal(found, lots_of(routes, sizes, turn)):
            return turn
    raise BadInput("config.json: about.recipe is not the recipe of this network")

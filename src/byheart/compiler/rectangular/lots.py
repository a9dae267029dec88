"""Lots: the route says shard, offset and stretch of the table, and is cut so that every lot has as many questions.

Hashes fill a table unevenly. Of the questions that read the same bits, which make one system of equations, some offset
has more than its share, and so has some stretch of rows; where that is more than the band can even out, equations
depend on others (:func:`.sizes.stretches_for` has the law). So the offset has no hash sum of its own here, and the
start only as much as says where in its *stretch* it is. The rest follows from the route: a hash sum of many values, cut
at quantiles, so that all *lots* of a shard are equally full, to one route:

    lot = offset · stretches + stretch.

If a shard still has no solution, its lots are *turned*: they begin a part of a lot later, and other questions meet; the
front and all other shards stay as they are. Lot 0 is what is left at both ends:

    questions of a shard, by their routes:   | 0 | 1 | 2 | … | 0 |

So there are as many places where a lot begins as there are lots. In the network a unit for each says whether the route
lies beyond it. With several shards these places are features: a sublayer before, with a unit for every shard, says
which shard it is, and where its lots begin. Where that is is all of the network, besides the words, that depends on
the questions; and inside a shard, on its own questions and on nothing else.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.rectangular.dimensions import TableSizes
from byheart.compiler.rectangular.wiring import SHARP, Wiring
from byheart.errors import BadInput
from byheart.networks.transformer import GatedBlocks
from byheart.networks.transformer.spec import Features

Integers = NDArray[np.int64]
Tensors = Mapping[str, NDArray[Any]]
SHARD, LOTS = "shard", "lots"
"""The sublayers."""
TURNS = 6
"""So many ways to turn the lots of a shard are tried before all is drawn anew."""
_GOLDEN = (5**0.5 - 1) / 2
"""Parts of a lot by whose multiples lots are turned: none comes near another."""


def cut_at(counts: Integers, shares: NDArray[np.float64]) -> Integers:
    """The routes nearest to where these shares of all questions lie below, if routes have this many questions each.

    >>> cut_at(np.array([1, 1, 4, 1, 1]), np.array([0.25, 0.5])).tolist()
    [2, 3]
    """
    below = np.concatenate([[0], np.cumsum(counts)])
    wanted = below[-1] * shares
    after = np.searchsorted(below, wanted)
    nearer: Integers = after - ((after > 0) & (wanted - below[after - 1] < below[after] - wanted))
    return np.maximum.accumulate(nearer)


def cut_shard(counts: Integers, sizes: TableSizes, turn: int) -> Integers:
    """Where lots 1, 2, … of a shard begin, and 0 once more.

    By hand: three lots of two questions each. They begin 0.618 lots from the first, 1.236 questions; turned, 0.236.

    >>> sizes = TableSizes(24, 0, columns=4, starts=24, margin=3, aligned=8, exponent_share=0, stretches=1)
    >>> cut_shard(np.ones(6, int), sizes, 0).tolist(), cut_shard(np.ones(6, int), sizes, 1).tolist()
    ([1, 3, 5], [0, 2, 4])
    """
    return cut_at(counts, (np.arange(sizes.lots) + (turn + 1) * _GOLDEN % 1) / sizes.lots)


def lots_of(routes: Integers, sizes: TableSizes, turn: int) -> Integers:
    """The lots of all questions of a shard, by their routes [N]."""
    first = int(routes.min(initial=sizes.routes))
    counts = np.bincount(routes - first, minlength=1)
    lots = np.searchsorted(cut_shard(counts, sizes, turn), np.arange(len(counts)), side="right") % sizes.lots
    return lots[routes - first]


def add_lots(
    wiring: Wiring, sizes: TableSizes, route: Features, shard: Features, offset: Features, start: Features
) -> None:
    """Add a question's shard (if there are several), offset and start of its stretch to these features.

    Where lots begin is still to be filled in (:func:`lot_tensors`): at present, where no route is.
    """
    begins = wiring.features(sizes.lots) if shard else ()
    if shard:
        room = np.zeros((1, 1 + sizes.lots, sizes.shards))
        wiring.steps(SHARD, route, shard + begins, np.full(sizes.shards, sizes.routes - 0.5), room)
    W = SHARP * np.column_stack([np.ones(sizes.lots), -np.eye(sizes.lots, len(begins))])
    b = SHARP * (0.5 if shard else 0.5 - sizes.routes)
    numbers = np.arange(sizes.lots + 1) % sizes.lots
    told = np.diff([numbers // sizes.stretches, numbers % sizes.stretches * sizes.stretch])
    ffn = GatedBlocks(LOTS, "sigmoid", route + begins, offset + start, units=sizes.lots)
    wiring.add(ffn, W_in=W, b_in=b, W_out=told)


def lot_tensors(front: Tensors, sizes: TableSizes, counts: Integers, cuts: Integers, turns: Sequence[int]) -> Tensors:
    """What says where lots begin, if routes have this many questions, and shards begin at ``cuts`` and are turned."""
    inside = [a + cut_shard(counts[a:b], sizes, turn) for (a, b), turn in zip(pairwise(cuts), turns, strict=True)]
    if sizes.shards == 1:
        found = {f"{LOTS}.b_in": SHARP * (0.5 - inside[0])}
    else:
        told = np.column_stack([np.arange(sizes.shards), inside]).T
        found = {f"{SHARD}.b_in": SHARP * (0.5 - cuts[:-1]), f"{SHARD}.W_out": np.diff(told, prepend=0)}
    return {name: tensor.astype(front[name].dtype).reshape(front[name].shape) for name, tensor in found.items()}


def turn_of(tensors: Tensors, sizes: TableSizes, shard: int, routes: Integers) -> int:
    """How often the lots of a shard with these routes are turned in a network of several; 0 if it has no lots.

    BadInput if in no way that this module does it: a folder may say anything.
    """
    if not sizes.stretches:
        return 0
    begins = tensors[f"{SHARD}.W_out"].reshape(-1, sizes.shards)[1:, : shard + 1].sum(axis=1)
    found = np.searchsorted(begins, routes, side="right") % sizes.lots
    for turn in range(TURNS):
        if np.array_equal(found, lots_of(routes, sizes, turn)):
            return turn
    raise BadInput("config.json: about.recipe is not the recipe of this network")

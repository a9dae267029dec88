"""Cut the route into lots that have equally many questions. A lot determines the offset and the stretch of the table.

A hash alone fills a table unevenly. Questions that read the same bits make one system of equations; some offset has
more than its share of them, and so has some stretch of rows. If this is more than the band can even out, equations
depend on others (:func:`.dimensions.stretches_for` states the law). So here the offset has no hash sum of its own, and
the start's sum only says where in its *stretch* it is. The rest follows from the route, a hash sum of many values. The
route is cut at quantiles, so that the *lots* of a shard have equally many questions, up to those of one route:

    lot = offset · stretches + stretch.

If a shard still has no solution, its lots are *turned*: they begin a fraction of a lot later, which groups questions
differently. The front and all other shards stay as they are. Lot 0 consists of both ends:

    questions of a shard, by their routes:   | 0 | 1 | 2 | … | 0 |

There are therefore as many beginnings of lots as there are lots. In the network, one unit per beginning says whether
the route lies beyond it. With several shards the beginnings are features: a sublayer with one unit per shard computes
the number of the shard and the beginnings of its lots. Besides the words, only these beginnings depend on the
questions, and those of a shard depend on its own questions alone.
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
"""Names of the sublayers."""
TURNS = 6
"""Number of ways to turn the lots of a shard that are tried before everything is drawn anew."""
_GOLDEN = (5**0.5 - 1) / 2
"""Fraction of a lot by whose multiples lots are turned: no two multiples are close to each other."""


def cut_at(counts: Integers, shares: NDArray[np.float64]) -> Integers:
    """Return the routes below which about these shares of all questions lie. ``counts`` are the questions per route.

    >>> cut_at(np.array([1, 1, 4, 1, 1]), np.array([0.25, 0.5])).tolist()
    [2, 3]
    """
    below = np.concatenate([[0], np.cumsum(counts)])
    targets = below[-1] * shares
    after = np.searchsorted(below, targets)
    nearer: Integers = after - ((after > 0) & (targets - below[after - 1] < below[after] - targets))
    return np.maximum.accumulate(nearer)


def cut_shard(counts: Integers, sizes: TableSizes, turn: int) -> Integers:
    """Return the routes where lots 1, 2, … of a shard begin, and where lot 0 begins again.

    Example: three lots of two questions each begin 0.618 lots after the first question, or 1.236 questions. Turned
    once, they begin 0.236 lots after it.

    >>> sizes = TableSizes(24, 0, columns=4, starts=24, margin=3, aligned=8, exponent_share=0, stretches=1)
    >>> cut_shard(np.ones(6, int), sizes, 0).tolist(), cut_shard(np.ones(6, int), sizes, 1).tolist()
    ([1, 3, 5], [0, 2, 4])
    """
    return cut_at(counts, (np.arange(sizes.lots) + (turn + 1) * _GOLDEN % 1) / sizes.lots)


def lots_of(routes: Integers, sizes: TableSizes, turn: int) -> Integers:
    """Return the lots of all questions of a shard, whose routes are ``routes`` [N]."""
    first = int(routes.min(initial=sizes.routes))
    counts = np.bincount(routes - first, minlength=1)
    lots = np.searchsorted(cut_shard(counts, sizes, turn), np.arange(len(counts)), side="right") % sizes.lots
    return lots[routes - first]


def add_lots(
    wiring: Wiring, sizes: TableSizes, route: Features, shard: Features, offset: Features, start: Features
) -> None:
    """Add a question's shard (if there are several), its offset and the start of its stretch to these features.

    For now, all lots begin beyond every route: :func:`lot_tensors` returns the tensors with the real beginnings.
    """
    begins = wiring.features(sizes.lots) if shard else ()
    if shard:
        room = np.zeros((1, 1 + sizes.lots, sizes.shards))
        wiring.steps(SHARD, route, shard + begins, np.full(sizes.shards, sizes.routes - 0.5), room)
    W = SHARP * np.column_stack([np.ones(sizes.lots), -np.eye(sizes.lots, len(begins))])
    b = SHARP * (0.5 if shard else 0.5 - sizes.routes)
    numbers = np.arange(sizes.lots + 1) % sizes.lots
    increments = np.diff([numbers // sizes.stretches, numbers % sizes.stretches * sizes.stretch])
    ffn = GatedBlocks(LOTS, "sigmoid", route + begins, offset + start, units=sizes.lots)
    wiring.add(ffn, W_in=W, b_in=b, W_out=increments)


def lot_tensors(front: Tensors, sizes: TableSizes, counts: Integers, cuts: Integers, turns: Sequence[int]) -> Tensors:
    """Return the tensors that hold the beginnings of lots.

    ``counts`` are the questions per route, ``cuts`` the routes where shards begin, ``turns`` those of each shard.
    """
    inside = [a + cut_shard(counts[a:b], sizes, turn) for (a, b), turn in zip(pairwise(cuts), turns, strict=True)]
    if sizes.shards == 1:
        tensors = {f"{LOTS}.b_in": SHARP * (0.5 - inside[0])}
    else:
        outputs = np.column_stack([np.arange(sizes.shards), inside]).T
        tensors = {f"{SHARD}.b_in": SHARP * (0.5 - cuts[:-1]), f"{SHARD}.W_out": np.diff(outputs, prepend=0)}
    return {name: tensor.astype(front[name].dtype).reshape(front[name].shape) for name, tensor in tensors.items()}


def turn_of(tensors: Tensors, sizes: TableSizes, shard: int, routes: Integers) -> int:
    """Return how often the lots of a shard are turned in a network of several shards; 0 if it has no lots.

    ``routes`` are those of the shard's questions. Raise BadInput if no turn fits: a folder may state anything.
    """
    if not sizes.stretches:
        return 0
    begins = tensors[f"{SHARD}.W_out"].reshape(-1, sizes.shards)[1:, : shard + 1].sum(axis=1)
    lots = np.searchsorted(begins, routes, side="right") % sizes.lots
    for turn in range(TURNS):
        if np.array_equal(lots, lots_of(routes, sizes, turn)):
            return turn
    raise BadInput("config.json: about.recipe is not the recipe of this network")

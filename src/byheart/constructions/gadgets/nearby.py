"""Tokens as (r, δ)-separated vectors, read so that every vector near a token is taken for it.

Without a radius asked for, :mod:`.cells` with two directions. With one, the smallest front that
reaches it: cells with more directions, or one indicator a token (:mod:`.indicators`).
"""

import math
import sys
from dataclasses import replace

import numpy as np

from byheart.constructions.gadgets import cells, indicators
from byheart.constructions.gadgets.demand import LookupDemand, different_tokens, select_keys
from byheart.constructions.gadgets.vectors import Points, Reader, VectorFront
from byheart.errors import BadInput, check_positive
from byheart.tasks import NextToken, SeqToSeq, separation, token_ids
from byheart.tasks.arrays import Floats, Ids
from byheart.tasks.distinct import distinct

MOST_DIRECTIONS = 8
"""Beyond these, another direction costs more than it gains."""
TYPICAL_SPREAD = 2.0
"""log₂(r/δ) of standard-normal data."""


def points_of(name: str, task: NextToken | SeqToSeq, *, positions: bool) -> Points:
    """The different vectors of ``task``, and which of them must be told apart; BadInput for token ids."""
    _check_vectors(name, task.vectors)
    assert task.vectors is not None
    n, d = task.vectors.shape[1:]
    tokens, ids = different_tokens(task, positions=positions), token_ids(task).ravel()
    of_token, places = ids[tokens.first], tokens.first % n if positions else 0
    first = np.unique(ids, return_index=True)[1]
    coded = np.unique(of_token[tokens.marked]) if isinstance(task, NextToken) else np.arange(1, len(first))
    marked = len(np.unique(of_token[tokens.marked]))
    r, delta = _separated(task, 1)
    return Points(
        points=task.vectors.reshape(-1, d)[first],
        blocks=1,
        r=r,
        delta=delta,
        coded=coded,
        pairs=_pairs(len(first), marked, 0 if isinstance(task, NextToken) else int(n)),
        apart=lambda numbers: tokens.apart(numbers[of_token] * n + places),
    )


def whole_points_of(name: str, task: NextToken) -> tuple[Points, Ids]:
    """The different sequences of ``task``, each one point, whose labels must be told apart; and which each is [N]."""
    _check_vectors(name, task.vectors)
    assert task.vectors is not None
    N, n, _ = task.vectors.shape
    found = distinct(task.vectors.reshape(N, -1))
    labels, (r, delta) = task.labels[found.first], _separated(task, n)
    # The points of one label need no code: they are what is read as 0. If there is no other, one point gets a code.
    different, counts = np.unique(labels, return_counts=True)
    uncommon = np.flatnonzero(labels != different[counts.argmax()])
    points = Points(
        points=task.vectors.reshape(N, -1)[found.first],
        blocks=n,
        r=r,
        delta=delta,
        coded=uncommon if len(uncommon) else np.arange(1),
        pairs=differing_pairs(N, task.size.labels),
        apart=lambda numbers: select_keys(numbers, labels) is not None,
    )
    return points, found.ids


def _separated(task: NextToken | SeqToSeq, together: int) -> tuple[float, float]:
    """Return r and δ of points that consist of this many tokens each; δ of a single token is as large as one likes."""
    apart = separation(task)
    r = apart.r if together == 1 else math.nextafter(math.sqrt(together) * apart.r, math.inf)
    if not math.isfinite(r):
        raise BadInput("some token is farther from 0 than the largest float: scale the vectors")
    return r, math.inf if apart.closest is None else min(apart.delta, sys.float_info.max)


def differing_pairs(points: int, labels: int) -> int:
    """At most this many pairs have different labels: (1 − 1/C)·K²/2, rounded up."""
    return -(-points * points * (labels - 1) // (2 * labels))


def _check_vectors(name: str, vectors: Floats | None) -> None:
    if vectors is None:
        raise BadInput(f"{name}: read=cells is about vectors that may move; the task has token ids")


def _pairs(vectors: int, marked: int, together: int) -> int:
    """Pairs of vectors with a marked one in them, or from one sequence; all pairs if those are fewer."""
    return min(vectors * (vectors - 1) // 2, (marked + together) * vectors)


def typical_front(worst: LookupDemand) -> VectorFront:
    """The front of the hardest task of a size, whose vectors are as separated as standard-normal ones."""
    size = worst.size
    assert size.dim is not None
    vectors, together = min(size.examples * size.length, size.vocab), size.length * (worst.setting == "seq-to-seq")
    pairs = _pairs(vectors, min(worst.marked, vectors), together)
    return typical_cells(size.dim, pairs)


def typical_cells(dim: int, pairs: int) -> VectorFront:
    """The default front for points as separated as standard-normal ones."""
    return cells.sizes(dim, pairs, TYPICAL_SPREAD, cells.DIRECTIONS)


def check_radius(radius: float | None, read: str) -> None:
    """BadInput unless ``radius`` is a distance, and asked of a network that reads cells."""
    if radius is None:
        return
    if read != "cells":
        raise BadInput(f"radius is {radius!r}, but read is {read!r}; a radius is for read=cells (--read cells)")
    check_positive("radius", radius)


def find_reader(points: Points, radius: float | None, rng: np.random.Generator) -> Reader:
    """The front for these points: by default two directions, else the smallest that reaches ``radius``."""
    reader: Reader
    if len(points.points) == 1:
        # A single point is as far from the others as one likes.
        far = min(2.0**20 * (radius or 0), sys.float_info.max)
        points = replace(points, delta=max(1.0, points.r, far))
    if radius is None:
        reader = cells.find_cells(points, cells.DIRECTIONS, rng)
        if reader.radius == 0:
            raise BadInput(f"tokens are δ = {points.delta!r} apart; no float is so small a radius: scale the vectors")
        return reader
    if radius >= points.delta / 2:
        half = "half of it is where the balls around two tokens meet"
        raise BadInput(f"radius is {radius!r}; the tokens are δ = {points.delta!r} apart, and {half}")
    found: list[Reader] = []
    for directions in range(1, MOST_DIRECTIONS + 1):
        if cells.widest(points, directions) > 2 * radius:
            reader = cells.find_cells(points, directions, rng)
            if reader.radius >= radius:
                found.append(reader)
                break
    cheapest = parameters(found[0].front) if found else None
    if len(points.points) > 1 and (cheapest is None or indicators.fewest(points) < cheapest):
        found += indicators.find_balls(points, float(radius), rng)
    if not found:
        raise BadInput(f"radius is {radius!r}, too close to half of δ = {points.delta!r} to be kept; ask for less")
    return min(found, key=lambda one: parameters(one.front))


def parameters(front: VectorFront) -> int:
    """What a front costs."""
    return sum(outputs * (inputs + 1) for _, outputs, inputs in front.shapes)

"""Readers of (r, δ)-separated vectors that read every vector near a token as that token.

If no radius is requested, the reader is :mod:`.cells` with two directions. If one is, the reader is the smallest that
reaches it: cells with more directions, or one indicator per token (:mod:`.indicators`).
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
"""Largest number of directions to try: another one would cost more than it gains."""
TYPICAL_SPREAD = 2.0
"""Typical log₂(r/δ) of standard-normal data."""


def points_of(name: str, task: NextToken | SeqToSeq, *, positions: bool) -> Points:
    """Return the different vectors of ``task``, and which of them must be told apart; BadInput for token ids."""
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
    """Return the different sequences of ``task`` as points, and each sequence's point [N]; BadInput for token ids.

    Points with different labels must be told apart.
    """
    _check_vectors(name, task.vectors)
    assert task.vectors is not None
    N, n, _ = task.vectors.shape
    sequences = distinct(task.vectors.reshape(N, -1))
    labels, (r, delta) = task.labels[sequences.first], _separated(task, n)
    # The points of the commonest label need no code: they are read as 0. If there is no other label, one point gets a
    # code.
    different, counts = np.unique(labels, return_counts=True)
    uncommon = np.flatnonzero(labels != different[counts.argmax()])
    points = Points(
        points=task.vectors.reshape(N, -1)[sequences.first],
        blocks=n,
        r=r,
        delta=delta,
        coded=uncommon if len(uncommon) else np.arange(1),
        pairs=differing_pairs(N, task.size.labels),
        apart=lambda numbers: select_keys(numbers, labels) is not None,
    )
    return points, sequences.ids


def _separated(task: NextToken | SeqToSeq, tokens: int) -> tuple[float, float]:
    """Return r and δ of points that consist of ``tokens`` tokens each; δ is infinite if all tokens are equal."""
    apart = separation(task)
    r = apart.r if tokens == 1 else math.nextafter(math.sqrt(tokens) * apart.r, math.inf)
    if not math.isfinite(r):
        raise BadInput("some token is farther from 0 than the largest float: scale the vectors")
    return r, math.inf if apart.closest is None else min(apart.delta, sys.float_info.max)


def differing_pairs(points: int, labels: int) -> int:
    """Bound the number of pairs with different labels: (1 − 1/C)·K²/2 for K points, rounded up."""
    return -(-points * points * (labels - 1) // (2 * labels))


def _check_vectors(name: str, vectors: Floats | None) -> None:
    if vectors is None:
        raise BadInput(f"{name}: read=cells is about vectors that may move; the task has token ids")


def _pairs(vectors: int, marked: int, length: int) -> int:
    """Bound the number of pairs that must be told apart: pairs with a marked vector, or from one sequence.

    ``length`` is that of a sequence, or 0 if only marked vectors matter.
    """
    return min(vectors * (vectors - 1) // 2, (marked + length) * vectors)


def typical_front(worst: LookupDemand) -> VectorFront:
    """Return the front for the hardest task of a size, with vectors as separated as standard-normal ones."""
    size = worst.size
    assert size.dim is not None
    vectors, length = min(size.examples * size.length, size.vocab), size.length * (worst.setting == "seq-to-seq")
    pairs = _pairs(vectors, min(worst.marked, vectors), length)
    return typical_cells(size.dim, pairs)


def typical_cells(dim: int, pairs: int) -> VectorFront:
    """Return the default front for points as separated as standard-normal ones."""
    return cells.sizes(dim, pairs, TYPICAL_SPREAD, cells.DIRECTIONS)


def check_radius(radius: float | None, read: str) -> None:
    """Raise BadInput unless ``radius`` is None, or positive and ``read`` is "cells"."""
    if radius is None:
        return
    if read != "cells":
        raise BadInput(f"radius is {radius!r}, but read is {read!r}; a radius is for read=cells (--read cells)")
    check_positive("radius", radius)


def find_reader(points: Points, radius: float | None, rng: np.random.Generator) -> Reader:
    """Return a reader of ``points``: cells with two directions, or the smallest reader that reaches ``radius``."""
    reader: Reader
    if len(points.points) == 1:
        # A single point has no others, so δ may be as large as the radius needs.
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
    readers: list[Reader] = []
    for directions in range(1, MOST_DIRECTIONS + 1):
        if cells.widest(points, directions) > 2 * radius:
            reader = cells.find_cells(points, directions, rng)
            if reader.radius >= radius:
                readers.append(reader)
                break
    cheapest = parameters(readers[0].front) if readers else None
    if len(points.points) > 1 and (cheapest is None or indicators.fewest(points) < cheapest):
        readers += indicators.find_balls(points, float(radius), rng)
    if not readers:
        raise BadInput(f"radius is {radius!r}, too close to half of δ = {points.delta!r} to be kept; ask for less")
    return min(readers, key=lambda reader: parameters(reader.front))


def parameters(front: VectorFront) -> int:
    """Count the parameters of a front."""
    return sum(outputs * (inputs + 1) for _, outputs, inputs in front.shapes)

"""A search for counterexamples to a radius: tasks whose vectors have moved. Right answers to them prove nothing.

Every vector moves nearly as far as the radius permits, on its own: in a random direction, along the weights of the
network's first layer, where its units change fastest, towards another token, or along an axis. The results are floats
inside the balls, which :func:`inside` checks exactly.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.networks.exact import ExactNetwork, FeedForward
from byheart.networks.exact.limbs import from_floats
from byheart.tasks import NextToken, SeqToSeq

Floats = NDArray[np.float64]
WAYS = ("random", "weights", "tokens", "axes")
"""Directions in which vectors move."""


def moved(
    network: ExactNetwork, task: NextToken | SeqToSeq, radius: float, count: int, rng: np.random.Generator
) -> NextToken | SeqToSeq:
    """Draw ``count`` sequences of ``task``, and move all vectors of each in one of the ways."""
    if task.vectors is None:
        raise BadInput("vectors can move; the task has token ids")
    rows = rng.integers(len(task.vectors), size=count)
    before = task.vectors[rows]
    ways = {way: _directions(way, network, task.vectors, before, rng) for way in WAYS}
    chosen = rng.integers(len(WAYS), size=(count, 1, 1))
    direction = np.select([chosen == way for way in range(len(WAYS))], list(ways.values()))
    # Sums are rounded by at most 2^−53 of themselves per coordinate. The step is shorter by that, and a little more.
    largest = np.abs(before).max(axis=2, keepdims=True) + radius
    length = np.maximum(0.0, radius * (1 - 2.0**-44) - 2.0**-52 * np.sqrt(before.shape[2]) * largest)
    return type(task)(vectors=before + length * direction, labels=task.labels[rows], label_count=task.size.labels)


def _directions(way: str, network: ExactNetwork, vectors: Floats, before: Floats, rng: np.random.Generator) -> Floats:
    """Return unit vectors (or zeros) of the shape of ``before`` [count, n, d]."""
    count, n, d = before.shape
    match way:
        case "random":
            steps = rng.standard_normal(before.shape)
        case "weights":
            rows = _first_weights(network, n, d)
            steps = rows[rng.integers(len(rows), size=count)] * rng.choice([-1.0, 1.0], size=(count, n, 1))
        case "tokens":
            flat = vectors.reshape(-1, d)
            steps = flat[rng.integers(len(flat), size=(count, n))] - before
        case _:
            steps = np.eye(d)[rng.integers(d, size=(count, n))] * rng.choice([-1.0, 1.0], size=(count, n, 1))
    # Scale twice: squares of very small or large entries are not floats.
    steps = steps / np.maximum(np.abs(steps).max(axis=2, keepdims=True), np.finfo(np.float64).tiny)
    return np.asarray(steps / np.maximum(np.linalg.norm(steps, axis=2, keepdims=True), np.finfo(np.float64).tiny))


def _first_weights(network: ExactNetwork, n: int, d: int) -> Floats:
    """Return the rows of the first layer with weights, as directions of all n tokens: [rows, n, d]."""
    W = next(layer.layers[0].W for layer in network.layers if isinstance(layer, FeedForward))
    top = max(abs(int(w)).bit_length() for w in W.ravel())
    scaled = np.array([[int(w) / (1 << top) for w in row] for row in W])
    return scaled.reshape(len(W), n, d) if W.shape[1] == n * d else np.repeat(scaled[:, None], n, axis=1)


def inside(before: Floats, after: Floats, radius: float) -> bool:
    """Return True if every vector of ``after`` [..., d] is within ``radius`` of that of ``before``, exactly."""
    d = before.shape[-1]
    both = from_floats(np.concatenate([before.reshape(-1, d), after.reshape(-1, d)]))
    x, y = np.split(both.numerators(), 2)
    farthest = max(((y - x) ** 2).sum(axis=1), default=0)
    return bool(farthest <= (Fraction(radius) * (1 << both.exponent)) ** 2)

"""The distance d_p of a network from a function, measured on random points with the network's own outputs.

d_p(f, g) = (∫ over [0, 1]^{n×d} of Σ_k |f(X)_k − g(X)_k|^p dX)^{1/p}. The integral is a mean over random points, whose
coordinates are multiples of 2^−40, so that floats hold them and the network's evaluation on them is exact. (A network
with softmax attention is enclosed in balls; the distance to the ball's far end counts.) The interval is the normal one
for the mean of Σ_k |·|^p, then the p-th root of its ends: an estimate, nothing is proved about f.
"""

from dataclasses import dataclass, replace

import numpy as np

from byheart.approximation.functions import Target
from byheart.certificates.verdict import doubling
from byheart.errors import BadInput
from byheart.networks.exact import ExactNetwork
from byheart.progress import Report
from byheart.tasks.arrays import Floats

Z95 = 1.96
"""Standard errors to either side of a mean for a 95 % interval."""
_FINE = 2**40
_LARGEST_P = 100.0
_FEWEST_BITS, _MOST_BITS, _SMALL = 256, 1 << 15, 2.0**-40
"""Bits with which softmax is enclosed, at first and at most, and how small all radii have to be."""


@dataclass(frozen=True)
class DistanceEstimate:
    """A distance d_p, estimated from ``samples`` points, and its interval."""

    error: float
    low: float
    high: float
    samples: int


def check_p(p: float) -> None:
    """Raise BadInput unless 1 ≤ p ≤ 100; beyond, |·|^p leaves the floats and weights have thousands of bits."""
    if not 1 <= p <= _LARGEST_P:
        raise BadInput(f"p is {p}; expected 1 to {_LARGEST_P:g}, the exponent of the distance d_p")


def check_samples(samples: int) -> None:
    """Raise BadInput for fewer points than a mean and its error need."""
    if samples < 2:
        raise BadInput(f"samples is {samples}; expected at least 2 random points, preferably thousands")


def random_points(samples: int, length: int, dim: int, rng: np.random.Generator) -> Floats:
    """Draw ``samples`` sequences, uniform on [0, 1]^{n×d}, whose coordinates are multiples of 2^−40."""
    check_samples(samples)
    return rng.integers(_FINE, size=(samples, length, dim), endpoint=True) / _FINE


def distance(differences: Floats, p: float, z: float = Z95) -> DistanceEstimate:
    """Estimate d_p from the differences [S, n] at random points, with ``z`` standard errors to either side.

    >>> distance(np.array([[3.0, 4.0], [3.0, 4.0]]), p=2)
    DistanceEstimate(error=5.0, low=5.0, high=5.0, samples=2)
    """
    scale = float(np.abs(differences).max())
    if scale == 0:
        return DistanceEstimate(0.0, 0.0, 0.0, len(differences))
    # Differences are scaled to 1 first, so that large p does not leave the floats.
    powers = ((np.abs(differences) / scale) ** p).sum(axis=1)
    mean, around = float(powers.mean()), z * float(powers.std(ddof=1)) / np.sqrt(len(powers))
    low, error, high = (float(scale * max(0.0, end) ** (1 / p)) for end in (mean - around, mean, mean + around))
    return DistanceEstimate(error, low, high, len(differences))


def measure(
    network: ExactNetwork,
    target: Target,
    *,
    p: float = 2.0,
    samples: int = 20_000,
    seed: int = 0,
    report: Report | None = None,
) -> DistanceEstimate:
    """Estimate d_p between ``network`` and ``target`` on ``samples`` random points; a seed fixes the points.

    >>> from byheart.approximation.functions import find
    >>> from byheart.approximation.approximate import quantise
    >>> constant = ExactNetwork((quantise(1, 1, 1),), inputs="vectors", outputs="every", length=2)
    >>> round(measure(constant, find("contrast"), p=1).error, 9)  # the contrasts of two tokens add up to 0
    2.0
    """
    check_p(p)
    points = random_points(samples, network.length, network.dim, np.random.default_rng(seed))
    values, radii = outputs(network, points, report=report)
    return distance(np.abs(values - target(points)) + radii, p)


def outputs(network: ExactNetwork, points: Floats, *, report: Report | None = None) -> tuple[Floats, Floats]:
    """Return the outputs [S, n] at ``points`` as floats, and how far the true ones may be off because of softmax.

    The first layer, which is token-wise, runs on every point, and the others once on every different sequence that it
    gives: there are many points in a cell, and the network is a composition, so nothing changes.
    """
    from byheart.networks.exact.evaluate import token_streams

    first = replace(network, layers=network.layers[:1])
    numerators, denominator, index = token_streams(first, points)
    # A cell number on a ramp has at most 53 bits (see RAMP_BITS in approximate.py): floats hold it exactly.
    streams = (numerators / denominator).astype(np.float64)
    rest = replace(network, layers=network.layers[1:], dim=streams.shape[1])
    flat, inverse = np.unique(streams[index].reshape(len(points), -1), axis=0, return_inverse=True)
    values, radii = _evaluated(rest, flat.reshape(len(flat), network.length, rest.dim), report)
    return values[inverse.ravel()], radii[inverse.ravel()]


def _evaluated(network: ExactNetwork, sequences: Floats, report: Report | None) -> tuple[Floats, Floats]:
    """Return outputs and radii: exact without softmax; with it, bits are doubled until the radii are small."""
    if network.rational:
        from byheart.networks.exact.evaluate import evaluate

        exact = evaluate(network, sequences, report=report)
        return exact.astype(np.float64), np.zeros(exact.shape)
    from byheart.networks.exact.enclose import enclose

    for bits in doubling(_FEWEST_BITS, _MOST_BITS):
        balls = enclose(network, sequences, bits=bits, report=report)
        values = np.array([float(ball.mid()) for ball in balls.ravel()])
        radii = np.array([float(ball.rad()) for ball in balls.ravel()])
        if radii.max() <= _SMALL:
            break
    return values.reshape(balls.shape), radii.reshape(balls.shape)

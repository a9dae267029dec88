"""The search for the best encoder: closed forms, starts, and the best of where they end."""

import numpy as np
from numpy.typing import ArrayLike

from byheart.constructions.gadgets.encoder.descent import EncoderPoint, descend, encode, plane
from byheart.constructions.gadgets.encoder.distributions import (
    FLOOR,
    ContextDistributions,
    divergence,
    log_probabilities,
)
from byheart.constructions.gadgets.encoder.judge import Encoder, balanced
from byheart.errors import BadInput
from byheart.progress import Report
from byheart.tasks.arrays import Floats

START_FLOOR = 1e-6
TINY = 1e-9
"""With a probability below, all cold starts go through all ridges."""
RIDGES = tuple(10.0**-k for k in range(3, 11))
ROUGHLY = (1e-5, 60)
"""Gradient at which to stop and most steps, for all ridges but the last."""
FULLY = (1e-9, 200)
"""The same for the last."""


def best_encoder(
    probabilities: ArrayLike,
    weights: ArrayLike,
    dim: int,
    *,
    rng: np.random.Generator,
    restarts: int = 8,
    report: Report | None = None,
) -> Encoder:
    """The best encoder of dimension ``dim`` that was reached, for probabilities [N, ω] and weights [N].

    Two starts are at the truncated SVD of the weighted, centred log-probabilities: through all ρ from 10⁻³ down, and
    with the last at once. ``restarts`` more are at random planes, in turn one way and the other. (With probabilities
    below 1e-9 all go the first way.) ``report`` is called with (starts done, starts in all).

    >>> P = np.eye(3) * 0.7 + 0.1
    >>> best = best_encoder(P, [1 / 3] * 3, dim=2, rng=np.random.default_rng(0))
    >>> best.W_U.shape, best.encodings.shape, best.divergence < 1e-15
    ((2, 3), (3, 2), True)
    >>> line = best_encoder(P, [1 / 3] * 3, dim=1, rng=np.random.default_rng(0))
    >>> round(line.divergence, 6), 0 < line.lower < line.divergence
    (0.185496, True)
    """
    contexts = ContextDistributions.checked(probabilities, weights)
    for name, value in (("dim", dim), ("restarts", restarts)):
        if value < 0:
            raise BadInput(f"{name} is {value}; expected at least 0")
    closed = _closed_form(contexts, dim)
    if closed is not None:
        return balanced(contexts, closed, dim)
    ways = [RIDGES] if contexts.P.min() < TINY else [RIDGES, RIDGES[-1:]]
    svd = _svd_plane(contexts, dim)
    starts = [(svd, way) for way in ways]
    starts += [(plane(rng.standard_normal(svd.shape)), ways[k % len(ways)]) for k in range(restarts)]
    ends = []
    for done, (W, ridges) in enumerate(starts, 1):
        ends.append(_follow(contexts, W, ridges))
        if report is not None:
            report(done, len(starts))
    values = [divergence(end.E @ end.W.T, contexts.P, contexts.pi) for end in ends]
    best = ends[int(np.argmin(values))]
    E = np.zeros((len(contexts.every), dim))
    E[contexts.asked] = best.E
    unasked = ~contexts.asked
    E[unasked] = encode(contexts.every[unasked], best.W, E[unasked], RIDGES[-1])[0]
    return balanced(contexts, E @ best.W.T, dim, tuple(sorted(values)))


def _follow(contexts: ContextDistributions, W: Floats, ridges: tuple[float, ...]) -> EncoderPoint:
    """From the plane W down, through smaller and smaller ridges; large ones smooth some local minima away."""
    E = np.zeros((len(contexts.P), W.shape[1]))
    for ridge in ridges[:-1]:
        point = descend(EncoderPoint.over(contexts, W, E, ridge), *ROUGHLY)
        W, E = point.W, point.E
    return descend(EncoderPoint.over(contexts, W, E, ridges[-1]), *FULLY)


def _closed_form(contexts: ContextDistributions, dim: int) -> Floats | None:
    """Logits [N, ω] of rank ≤ dim that are exact, if there are; 0 for dim = 0."""
    if dim == 0:
        return np.zeros_like(contexts.every)
    logs = log_probabilities(contexts.P, FLOOR)
    _, sizes, V = np.linalg.svd(logs, full_matrices=False)
    rank = min(int((sizes > 1e-13 * sizes[0]).sum()), len(contexts.P), contexts.P.shape[1] - 1)
    if rank > dim:
        return None
    result: Floats = log_probabilities(contexts.every, FLOOR) @ V[:rank].T @ V[:rank]
    result[contexts.asked] = logs
    return result


def _svd_plane(contexts: ContextDistributions, dim: int) -> Floats:
    logs = log_probabilities(contexts.P, START_FLOOR) * np.sqrt(contexts.pi)[:, None]
    return plane(np.linalg.svd(logs, full_matrices=False)[2][:dim].T)

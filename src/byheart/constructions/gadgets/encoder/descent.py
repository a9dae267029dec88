"""The search for the best encoder: closed forms, or Newton steps in a trust region down the Grassmannian.

The trust region's subproblem is solved by Steihaug's conjugate gradients; of several starts the best end is taken.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from byheart.constructions.gadgets.encoder.distributions import (
    FLOOR,
    ContextDistributions,
    covariance,
    divergence,
    log_probabilities,
    log_softmax,
)
from byheart.constructions.gadgets.encoder.judge import Encoder, balanced
from byheart.errors import BadInput
from byheart.progress import Report
from byheart.tasks.arrays import Floats

NOISE = 1e-14
"""Rounding of a divergence: a smaller decrease is not seen."""
MOST_STEPS = 60
MOST_HALVINGS = 30
MOST_IDLE = 3


@dataclass(frozen=True, eq=False)
class EncoderPoint:
    """Orthonormal W [ω, d] with its best encodings E [N, d], softmax S [N, ω], and the objective."""

    contexts: ContextDistributions
    W: Floats
    E: Floats
    S: Floats
    value: float
    ridge: float

    @classmethod
    def over(cls, contexts: ContextDistributions, W: Floats, E: Floats, ridge: float) -> "EncoderPoint":
        """The point of W, its encodings sought from E on."""
        E, S, loss = encode(contexts.P, W, E, ridge)
        return cls(contexts, W, E, S, float(contexts.pi @ loss), ridge)

    @cached_property
    def R(self) -> Floats:
        """S − P, [N, ω]: the gradient in the logits, without the weights."""
        return self.S - self.contexts.P

    @cached_property
    def inverse(self) -> Floats:
        """The inverses [N, d, d] of the contexts' Hessians."""
        return np.asarray(np.linalg.inv(_hessians(self.S, self.W, self.ridge)), dtype=np.float64)

    @cached_property
    def scale(self) -> Floats:
        """(Σ π e eᵀ)^(−1/2) [d, d]: in W + Y·scale, |Y| is the norm of the change of all logits √π_t L_t."""
        values, vectors = np.linalg.eigh((self.E.T * self.contexts.pi) @ self.E)
        values = np.maximum(values, 1e-8 * max(1e-8, values[-1]))
        return np.asarray((vectors / np.sqrt(values)) @ vectors.T, np.float64)

    @cached_property
    def steepest(self) -> Floats:
        """The gradient [ω, d] in Y."""
        return self.tangent(((self.R.T * self.contexts.pi) @ self.E) @ self.scale)

    def tangent(self, Y: Floats) -> Floats:
        """Y without what is constant over the tokens, or in the plane."""
        Y = Y - Y.mean(axis=0)
        return Y - self.W @ (self.W.T @ Y)

    def curved(self, Y: Floats) -> Floats:
        """The Hessian in Y times Y: the encodings follow the plane."""
        Z = Y @ self.scale
        A = self.E @ Z.T
        E_dot = -(self.inverse @ (covariance(self.S, A) @ self.W + self.R @ Z)[:, :, None])[:, :, 0]
        S_dot = covariance(self.S, A + E_dot @ self.W.T)
        pi = self.contexts.pi[:, None]
        G_dot = S_dot.T @ (pi * self.E) + self.R.T @ (pi * E_dot)
        return self.tangent(G_dot @ self.scale) + self.ridge * Y


def plane(columns: Floats) -> Floats:
    """An orthonormal basis [ω, d] of the span of the centred columns [ω, d]; completed at will if they depend."""
    return np.linalg.qr(np.hstack([np.ones((len(columns), 1)), columns]))[0][:, 1:]


def encode(P: Floats, W: Floats, E: Floats, ridge: float) -> tuple[Floats, Floats, Floats]:
    """The best encodings for orthonormal W [ω, d], from E [N, d] on: damped Newton steps, all contexts at once."""
    E = E.copy()
    for _ in range(MOST_STEPS):
        loss, S = _losses(P, W, E, ridge)
        G = (S - P) @ W + ridge * E
        rows = np.flatnonzero(np.linalg.norm(G, axis=1) > 1e-12 + 1e-15 * np.linalg.norm(E, axis=1))
        step = -np.linalg.solve(_hessians(S[rows], W, ridge), G[rows][:, :, None])[:, :, 0].astype(np.float64)
        slope = (G[rows] * step).sum(axis=1)
        length = _lengths(P[rows], W, E[rows], step, loss[rows], slope, ridge)
        E[rows] += length[:, None] * step
        if not length.any():
            break
    else:
        loss, S = _losses(P, W, E, ridge)
    return E, S, loss


def _hessians(S: Floats, W: Floats, ridge: float) -> Floats:
    """Wᵀ(diag s − s sᵀ)W + ridge·I for every context, [N, d, d]."""
    mean = S @ W
    result: Floats = (S[:, None, :] * W.T) @ W - mean[:, :, None] * mean[:, None, :]
    result += ridge * np.eye(W.shape[1])
    return result


def _losses(P: Floats, W: Floats, E: Floats, ridge: float) -> tuple[Floats, Floats]:
    """lse(We) − p·We + ridge·‖e‖²/2 [N] and the softmax [N, ω]."""
    log_S = log_softmax(E @ W.T)
    return -(P * log_S).sum(axis=1) + ridge / 2 * (E * E).sum(axis=1), np.exp(log_S)


def _lengths(P: Floats, W: Floats, E: Floats, step: Floats, loss: Floats, slope: Floats, ridge: float) -> Floats:
    """How far along its step each context goes: 1, ½, ¼, … until the loss decreases enough; 0 if it never does."""
    length = np.ones(len(E))
    for _ in range(MOST_HALVINGS):
        tried = _losses(P, W, E + length[:, None] * step, ridge)[0]
        bad = tried > loss + 1e-4 * length * slope + NOISE
        if not bad.any():
            return length
        length[bad] /= 2
    length[bad] = 0
    return length


def descend(point: EncoderPoint, small: float, most: int) -> EncoderPoint:
    """At most ``most`` steps, until the gradient is small or nothing decreases any more."""
    radius, idle = 1.0, 0
    for _ in range(most):
        if np.linalg.norm(point.steepest) <= small or idle == MOST_IDLE:
            break
        Y, predicted = _newton_step(point, radius)
        columns = point.W + Y @ point.scale
        W = plane(columns)
        trial = EncoderPoint.over(point.contexts, W, point.E @ (columns.T @ W), point.ridge)
        idle = idle + 1 if predicted <= NOISE else 0
        ratio = (point.value - trial.value + NOISE) / (predicted + NOISE)
        if ratio < 0.25:
            radius = np.linalg.norm(Y).item() / 4
        elif ratio > 0.75 and np.linalg.norm(Y) > 0.9 * radius:
            radius *= 3
        if ratio > 0.01:
            point = trial
    return point


def _newton_step(point: EncoderPoint, radius: float) -> tuple[Floats, float]:
    """The step Y [ω, d] with |Y| ≤ radius, and the decrease that the model predicts.

    A step of conjugate gradients is size/curvature long, or leads to the boundary if that is nearer. The two are
    compared as products: the curvature may be 0, negative, or so small that the quotient overflows.
    """
    Y, residual = np.zeros_like(point.W), -point.steepest
    along, curved_Y = residual, np.zeros_like(point.W)
    size = float((residual * residual).sum())
    enough = size * min(0.1, size**0.5)
    for _ in range(Y.size + 10):
        curved = point.curved(along)
        curvature, boundary = float((along * curved).sum()), _to_boundary(Y, along, radius)
        inside = size < boundary * curvature
        step = size / curvature if inside else boundary
        Y, curved_Y, residual = Y + step * along, curved_Y + step * curved, residual - step * curved
        size, before = float((residual * residual).sum()), size
        if not inside or size <= enough:
            break
        along = residual + size / before * along
    return Y, -float((point.steepest * Y).sum() + (Y * curved_Y).sum() / 2)


def _to_boundary(Y: Floats, along: Floats, radius: float) -> float:
    """The positive step with |Y + step·along| = radius."""
    a, b, c = float((along * along).sum()), float((Y * along).sum()), float((Y * Y).sum()) - radius**2
    return float((-b + np.sqrt(max(0.0, b * b - a * c))) / a)


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

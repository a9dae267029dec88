"""The best sequence encoder of Dana, Pydi & Chevaleyre 2025: how near rank-d logits can come to given distributions.

**Problem.** N contexts with weights π_t ask for the distributions p_t on ω tokens. A sequence encoder of dimension d
answers softmax(L_t) with L = E W_U, E ∈ R^{N×d}, W_U ∈ R^{d×ω}. No Transformer of embedding dimension d does better:

    min over L of rank ≤ d of Σ_t π_t KL(p_t ‖ softmax(L_t)),        in nats.

**Gauge.** Softmax ignores a constant in a row, and centring the rows (L J, J = I − 11ᵀ/ω) does not raise the rank; as a
projection it gives the smallest ‖L − c1ᵀ‖₂ over all c. Returned logits are centred, and balanced: L = UΣVᵀ is cut into
E = U√Σ, W_U = √ΣVᵀ.

**In closed form.** d = 0: the logits are 0, all answers uniform (no bias: the best constant answer needs d = 1).
Centred log p of rank ≤ d, hence always for d ≥ min(N, ω − 1): L = log p, divergence 0.

**In between** it is not convex. With the span of W_U fixed every context has a convex problem of its own, solved by
damped Newton steps; what is left is a function on the Grassmannian of d-planes in 1^⊥ ⊂ R^ω, minimised by Newton steps
in a trust region (Steihaug's conjugate gradients), from several starts. **The global minimum is not certified.** Known:

- ``encodings_gap``: with this W_U no encodings are better by more. Weak duality: if q ∈ simplex has W_U q = W_U p then
  for all e, lse(W_Uᵀe) − p·W_Uᵀe = lse(W_Uᵀe) − q·W_Uᵀe ≥ H(q). From s = softmax(W_Uᵀe) one Newton step gives such a q,
  q = s(1 + x) with x the step in the logits, where all x ≥ −1; tokens where x < −1 get q = 0 and the step is repeated.
- ``unembedding_gap``: with these encodings no W_U is better by more; the same with Σ_t π_t q_t e_tᵀ = Σ_t π_t p_t e_tᵀ.
- ``lower``: no encoder of this dimension has a smaller divergence; proved at :func:`lower_bound`. Usually weak.

All three in float64. The equations for q are checked: off by more than 10⁻¹² in an orthonormal basis, and q = p is
taken instead, which says only "divergence ≥ 0". So gaps are true for logits √π_t L_t of norm Λ up to 10⁻¹²·√(dω)·Λ.
``gradient`` and ``reached``, where every start ended, are evidence and no certificates.

**Zero probabilities** are allowed, though the infimum then need not be attained. While solving, W_U is orthonormal and
every context's loss has a term ρ‖e_t‖²/2, at last with ρ = 10⁻¹⁰; hence ‖e_t‖² ≤ 2·10¹⁰·log ω whatever p is. Closed
forms use log max(p, 10⁻¹⁵). ``divergence`` is always what the returned matrices have, without that term, and what the
last ρ costs is in ``encodings_gap``. Few dimensions and many zeros are hard: starts differ, and steps may run out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from byheart.errors import BadInput
from byheart.progress import Report

Reals = NDArray[np.float64]

FLOOR = 1e-15
START_FLOOR = 1e-6
TINY = 1e-9
"""With a probability below, all cold starts go through all ridges."""
RIDGES = tuple(10.0**-k for k in range(3, 11))
ROUGHLY = (1e-5, 60)
"""Gradient at which to stop and most steps, for all ridges but the last."""
FULLY = (1e-9, 200)
"""The same for the last."""
NOISE = 1e-14
"""Rounding of a divergence: a smaller decrease is not seen."""
MOST_IDLE = 3
MOST_INNER = 60
MOST_ROUNDS = 20
FEASIBLE = 1e-12
"""How far off the equations of a gap may be."""
NEAR = 1e-6
"""Two starts whose divergences differ by less have reached the same one."""


@dataclass(frozen=True, eq=False)
class Encoder:
    """An encoder with the divergence that it has, and what is known about how good it is."""

    W_U: Reals
    """[d, ω]"""
    encodings: Reals
    """[N, d]"""
    divergence: float
    """Σ_t π_t KL(p_t ‖ softmax(E_t W_U)), in nats."""
    norm: float
    """‖E W_U‖₂, rows centred."""
    lower: float
    """Proved: no encoder of this dimension has less."""
    encodings_gap: float
    """Certified: with this W_U no encodings have less than divergence − gap."""
    unembedding_gap: float
    """Certified: with these encodings no W_U has less than divergence − gap."""
    gradient: float
    """Norm of the gradient in the coordinates √π_t L_t, along the matrices of rank d."""
    reached: tuple[float, ...]
    """The divergences at which the starts ended, smallest first; one for a closed form."""

    @property
    def dim(self) -> int:
        """The dimension d."""
        return len(self.W_U)

    @property
    def logits(self) -> Reals:
        """[N, ω]"""
        return self.encodings @ self.W_U

    @property
    def agreeing(self) -> int:
        """How many starts ended within 1e-6 of the best."""
        return sum(value <= self.reached[0] + NEAR for value in self.reached)


def divergence(logits: ArrayLike, probabilities: ArrayLike, weights: ArrayLike) -> float:
    """Σ_t π_t KL(p_t ‖ softmax(L_t)) in nats, from logits [N, ω], probabilities [N, ω] and weights [N].

    Summed as p(r − 1 − log r) with r = q/p (q where p = 0): no term is negative, none cancels.

    >>> divergence([[0, 0]], [[1, 0]], [1]), np.log(2).item()
    (0.6931471805599453, 0.6931471805599453)
    """
    P, pi = np.asarray(probabilities, dtype=float), np.asarray(weights, dtype=float)
    log_q = _log_softmax(np.asarray(logits, dtype=float))
    log_r = log_q - np.log(np.where(P > 0, P, 1))
    terms = np.where(P > 0, P * (np.expm1(np.where(P > 0, log_r, 0)) - log_r), np.exp(log_q))
    return float(pi @ terms.sum(axis=1))


def best_encoder(
    probabilities: ArrayLike,
    weights: ArrayLike,
    dim: int,
    *,
    rng: np.random.Generator,
    restarts: int = 8,
    report: Report | None = None,
) -> Encoder:
    """The best encoder of dimension ``dim`` found, for probabilities [N, ω] and weights [N].

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
    task = _checked(probabilities, weights)
    _check_settings([dim], restarts)
    return _best(task, dim, [], rng, restarts, report)


def sweep(
    probabilities: ArrayLike,
    weights: ArrayLike,
    dims: Iterable[int],
    *,
    rng: np.random.Generator,
    restarts: int = 4,
    report: Report | None = None,
) -> dict[int, Encoder]:
    """The best encoders found for several dimensions, smallest first; no larger one is worse than a smaller one.

    Each also starts from its smaller neighbour, widened by the directions of steepest descent. ``report`` is called
    with (dimensions done, dimensions in all).

    >>> P = np.random.default_rng(0).dirichlet(np.ones(4), size=6)
    >>> found = sweep(P, np.full(6, 1 / 6), [0, 1, 2, 3], rng=np.random.default_rng(0))
    >>> [round(encoder.divergence, 3) for encoder in found.values()]
    [0.367, 0.163, 0.041, 0.0]
    """
    task, wanted = _checked(probabilities, weights), sorted(set(dims))
    _check_settings(wanted, restarts)
    found: dict[int, Encoder] = {}
    last: Encoder | None = None
    for done, dim in enumerate(wanted, 1):
        starts = [] if last is None else [_widened(task, last, dim)]
        encoder = _best(task, dim, starts, rng, restarts, None)
        if last is not None and encoder.divergence > last.divergence:
            encoder = _padded(task, last, encoder)
        found[dim] = last = encoder
        if report is not None:
            report(done, len(wanted))
    return found


def judged(probabilities: ArrayLike, weights: ArrayLike, W_U: ArrayLike, encodings: ArrayLike) -> Encoder:
    """Any encoder, W_U [d, ω] and encodings [N, d], with its divergence and what is known about it.

    Centred and balanced: gaps are those of the returned factors, without the directions that E or W_U leaves unused.

    >>> one = judged([[0.5, 0.5]], [1], W_U=[[1, -1]], encodings=[[0.1]])
    >>> one.divergence < 0.005, abs(one.divergence - one.encodings_gap) < 1e-4
    (True, True)
    """
    task = _checked(probabilities, weights)
    W, E = np.array(W_U, dtype=float), np.array(encodings, dtype=float)
    N, vocab = task.every.shape
    if W.ndim != 2 or W.shape[1] != vocab or E.shape != (N, len(W)):
        raise BadInput(f"W_U and encodings have shapes {W.shape} and {E.shape}; expected [d, {vocab}] and [{N}, d]")
    return _encoder(task, E @ W, len(W), ())


def lower_bound(probabilities: ArrayLike, weights: ArrayLike, dim: int) -> float:
    """No encoder of dimension ``dim`` has a divergence below this, in nats.

    Proof. Let Δ = L_t − log p_t and X = Δ − E_p Δ where p_t > 0. Then KL ≥ log E_p e^X (equal if p_t > 0 everywhere),
    and as e^x − 1 − x ≥ x²/(2 + |x|) that is at least log(1 + Σ p_i X_i²/(2 + |X_i|)). Take weights g of the tokens
    (sum 1) and v² = Var_g(Δ) ≤ Σ g_i X_i². The sum is concave in the X_i², so given v it is smallest with all of it on
    one token: KL ≥ h_t(v) = log(1 + min_i (p_i/g_i) v²/(2 + v/√g_i)), which grows with v and is concave in v². Centred
    under g and multiplied by √g, the rows L_t lie in a space of dimension ≤ d, the rows log p_t become M_t, and v is
    the distance between the two: at least that of M_t to the space, which is at most m_t = ‖M_t‖. By concavity h_t(v)
    ≥ v² h_t(m_t)/m_t² up to m_t. So the divergence is at least the sum of the squared distances of the rows M_t √(π_t
    h_t(m_t))/m_t to a space of dimension d, and that at least the sum of the squares of all but their d largest
    singular values (Eckart & Young). ∎

    Contexts with zero probabilities (where g > 0) have h_t = 0 and add nothing. The best of three g is taken: uniform,
    the mean of all p_t, and their geometric mean.

    >>> P = np.eye(3) * 0.7 + 0.1
    >>> [round(lower_bound(P, [1 / 3] * 3, dim), 3) for dim in (0, 1, 2)]
    [0.075, 0.038, 0.0]
    """
    task = _checked(probabilities, weights)
    _check_settings([dim], 0)
    return _lower(task, dim)


# What is given.


@dataclass(frozen=True, eq=False)
class _Task:
    """Distributions [N, ω] with weights [N]; ``asked`` are the contexts with positive weight."""

    every: Reals
    pi_every: Reals

    @cached_property
    def asked(self) -> NDArray[np.bool_]:
        return self.pi_every > 0

    @cached_property
    def P(self) -> Reals:
        return self.every[self.asked]

    @cached_property
    def pi(self) -> Reals:
        return self.pi_every[self.asked]


def _checked(probabilities: ArrayLike, weights: ArrayLike) -> _Task:
    P, pi = np.array(probabilities, dtype=float), np.array(weights, dtype=float)
    if P.ndim != 2 or 0 in P.shape:
        raise BadInput(f"probabilities have shape {P.shape}; expected [contexts, tokens], both at least 1")
    if pi.shape != P.shape[:1]:
        raise BadInput(f"weights have shape {pi.shape}; expected one for each of the {len(P)} contexts")
    wrong = np.flatnonzero(~((P >= 0).all(axis=1) & (np.abs(P.sum(axis=1) - 1) <= 1e-9)))
    if len(wrong):
        raise BadInput(
            f"probabilities[{wrong[0]}] has smallest entry {P[wrong[0]].min():g} and sum {P[wrong[0]].sum():.12g}; "
            "expected a distribution: no negative entry, sum 1 (divide each row by its sum)"
        )
    if not ((pi >= 0).all() and abs(pi.sum() - 1) <= 1e-9):
        raise BadInput(
            f"weights have smallest entry {pi.min():g} and sum {pi.sum():.12g}; "
            "expected no negative entry and sum 1 (divide them by their sum)"
        )
    return _Task(P / P.sum(axis=1, keepdims=True), pi / pi.sum())


def _check_settings(dims: list[int], restarts: int) -> None:
    if dims and min(dims) < 0:
        raise BadInput(f"dim is {min(dims)}; expected at least 0")
    if restarts < 0:
        raise BadInput(f"restarts is {restarts}; expected at least 0")


# Small pieces.


def _log_softmax(L: Reals) -> Reals:
    L = L - L.max(axis=1, keepdims=True)
    result: Reals = L - np.log(np.exp(L).sum(axis=1, keepdims=True))
    return result


def _centred(rows: Reals) -> Reals:
    result: Reals = rows - rows.mean(axis=1, keepdims=True)
    return result


def _log_probabilities(P: Reals, floor: float) -> Reals:
    return _centred(np.log(np.maximum(P, floor)))


def _covariance(S: Reals, A: Reals) -> Reals:
    """(diag s − s sᵀ)a for every row: what the softmax s changes by when its logits change by a."""
    result: Reals = S * (A - (S * A).sum(axis=1, keepdims=True))
    return result


def _plane(columns: Reals) -> Reals:
    """An orthonormal basis [ω, d] of the span of the centred columns [ω, d]; completed at will if they depend."""
    return np.linalg.qr(np.hstack([np.ones((len(columns), 1)), columns]))[0][:, 1:]


# A point on the Grassmannian: a plane, and the best encodings for it.


@dataclass(frozen=True, eq=False)
class _Point:
    """Orthonormal W [ω, d] with its best encodings E [N, d], softmax S [N, ω], and the objective."""

    task: _Task
    W: Reals
    E: Reals
    S: Reals
    value: float
    ridge: float

    @cached_property
    def R(self) -> Reals:
        """S − P, [N, ω]: the gradient in the logits, without the weights."""
        return self.S - self.task.P

    @cached_property
    def inverse(self) -> Reals:
        """The inverses [N, d, d] of the contexts' Hessians."""
        return np.asarray(np.linalg.inv(_hessians(self.S, self.W, self.ridge)), dtype=np.float64)

    @cached_property
    def scale(self) -> Reals:
        """(Σ π e eᵀ)^(−1/2) [d, d]: in W + Y·scale, |Y| is the norm of the change of all logits √π_t L_t."""
        values, vectors = np.linalg.eigh((self.E.T * self.task.pi) @ self.E)
        values = np.maximum(values, 1e-8 * max(1e-8, values[-1]))
        result: Reals = (vectors / np.sqrt(values)) @ vectors.T
        return result

    @cached_property
    def steepest(self) -> Reals:
        """The gradient [ω, d] in Y."""
        return self.tangent(((self.R.T * self.task.pi) @ self.E) @ self.scale)

    def tangent(self, Y: Reals) -> Reals:
        """Y without what is constant over the tokens, or in the plane."""
        Y = Y - Y.mean(axis=0)
        result: Reals = Y - self.W @ (self.W.T @ Y)
        return result

    def curved(self, Y: Reals) -> Reals:
        """The Hessian in Y times Y: the encodings follow the plane."""
        Z = Y @ self.scale
        A = self.E @ Z.T
        E_dot = -(self.inverse @ (_covariance(self.S, A) @ self.W + self.R @ Z)[:, :, None])[:, :, 0]
        S_dot = _covariance(self.S, A + E_dot @ self.W.T)
        pi = self.task.pi[:, None]
        G_dot = S_dot.T @ (pi * self.E) + self.R.T @ (pi * E_dot)
        return self.tangent(G_dot @ self.scale) + self.ridge * Y


def _hessians(S: Reals, W: Reals, ridge: float) -> Reals:
    """Wᵀ(diag s − s sᵀ)W + ridge·I for every context, [N, d, d]."""
    mean = S @ W
    result: Reals = (S[:, None, :] * W.T) @ W - mean[:, :, None] * mean[:, None, :]
    result += ridge * np.eye(W.shape[1])
    return result


def _losses(P: Reals, W: Reals, E: Reals, ridge: float) -> tuple[Reals, Reals]:
    """lse(We) − p·We + ridge·‖e‖²/2 [N] and the softmax [N, ω]."""
    log_S = _log_softmax(E @ W.T)
    return -(P * log_S).sum(axis=1) + ridge / 2 * (E * E).sum(axis=1), np.exp(log_S)


def _encode(P: Reals, W: Reals, E: Reals, ridge: float) -> tuple[Reals, Reals, Reals]:
    """The best encodings for orthonormal W [ω, d], from E [N, d] on: damped Newton steps, all contexts at once."""
    E = E.copy()
    for _ in range(MOST_INNER):
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


def _lengths(P: Reals, W: Reals, E: Reals, step: Reals, loss: Reals, slope: Reals, ridge: float) -> Reals:
    """How far along its step each context goes: 1, ½, ¼, … until the loss decreases enough; 0 if it never does."""
    length = np.ones(len(E))
    for _ in range(30):
        tried = _losses(P, W, E + length[:, None] * step, ridge)[0]
        bad = tried > loss + 1e-4 * length * slope + NOISE
        if not bad.any():
            return length
        length[bad] /= 2
    length[bad] = 0
    return length


def _point(task: _Task, W: Reals, E: Reals, ridge: float) -> _Point:
    E, S, loss = _encode(task.P, W, E, ridge)
    return _Point(task, W, E, S, float(task.pi @ loss), ridge)


def _descend(point: _Point, small: float, most: int) -> _Point:
    """Newton steps in a trust region, at most ``most``, until the gradient is small or nothing decreases any more."""
    radius, idle = 1.0, 0
    for _ in range(most):
        if np.linalg.norm(point.steepest) <= small or idle == MOST_IDLE:
            break
        Y, predicted = _newton_step(point, radius)
        columns = point.W + Y @ point.scale
        W = _plane(columns)
        trial = _point(point.task, W, point.E @ (columns.T @ W), point.ridge)
        idle = idle + 1 if predicted <= NOISE else 0
        ratio = (point.value - trial.value + NOISE) / (predicted + NOISE)
        if ratio < 0.25:
            radius = np.linalg.norm(Y).item() / 4
        elif ratio > 0.75 and np.linalg.norm(Y) > 0.9 * radius:
            radius *= 3
        if ratio > 0.01:
            point = trial
    return point


def _newton_step(point: _Point, radius: float) -> tuple[Reals, float]:
    """Steihaug's conjugate gradients: the step Y [ω, d] with |Y| ≤ radius, and the decrease that the model predicts."""
    Y, residual = np.zeros_like(point.W), -point.steepest
    along, curved_Y = residual, np.zeros_like(point.W)
    size = float((residual * residual).sum())
    enough = size * min(0.1, size**0.5)
    for _ in range(Y.size + 10):
        curved = point.curved(along)
        curvature = float((along * curved).sum())
        step = size / curvature if curvature > 0 else np.inf
        if curvature <= 0 or np.linalg.norm(Y + step * along) >= radius:
            step = _to_boundary(Y, along, radius)
            Y, curved_Y = Y + step * along, curved_Y + step * curved
            break
        Y, curved_Y, residual = Y + step * along, curved_Y + step * curved, residual - step * curved
        size, before = float((residual * residual).sum()), size
        if size <= enough:
            break
        along = residual + size / before * along
    return Y, -float((point.steepest * Y).sum() + (Y * curved_Y).sum() / 2)


def _to_boundary(Y: Reals, along: Reals, radius: float) -> float:
    """The positive step with |Y + step·along| = radius."""
    a, b, c = float((along * along).sum()), float((Y * along).sum()), float((Y * Y).sum()) - radius**2
    return float((-b + np.sqrt(max(0.0, b * b - a * c))) / a)


# Starts, and the best of them.


def _follow(task: _Task, W: Reals, ridges: tuple[float, ...]) -> _Point:
    """From the plane W down, through smaller and smaller ridges; large ones smooth some local minima away."""
    E = np.zeros((len(task.P), W.shape[1]))
    for ridge in ridges[:-1]:
        point = _descend(_point(task, W, E, ridge), *ROUGHLY)
        W, E = point.W, point.E
    return _descend(_point(task, W, E, ridges[-1]), *FULLY)


def _best(
    task: _Task, dim: int, warm: list[Reals], rng: np.random.Generator, restarts: int, report: Report | None
) -> Encoder:
    """The best end of all starts: the warm planes [ω, d], the SVD's, random ones."""
    closed = _closed_form(task, dim)
    if closed is not None:
        return _encoder(task, closed, dim, ())
    last, ways = RIDGES[-1:], [RIDGES] if task.P.min() < TINY else [RIDGES, RIDGES[-1:]]
    svd = _svd_plane(task, dim)
    starts = [*((W, last) for W in warm), *((svd, way) for way in ways)]
    starts += [(_plane(rng.standard_normal(svd.shape)), ways[k % len(ways)]) for k in range(restarts)]
    ends = []
    for done, (W, ridges) in enumerate(starts, 1):
        ends.append(_follow(task, W, ridges))
        if report is not None:
            report(done, len(starts))
    values = [divergence(end.E @ end.W.T, task.P, task.pi) for end in ends]
    best = ends[int(np.argmin(values))]
    E = np.zeros((len(task.every), dim))
    E[task.asked] = best.E
    E[~task.asked] = _encode(task.every[~task.asked], best.W, E[~task.asked], RIDGES[-1])[0]
    return _encoder(task, E @ best.W.T, dim, tuple(sorted(values)))


def _closed_form(task: _Task, dim: int) -> Reals | None:
    """Logits [N, ω] of rank ≤ dim that are exact, if there are; 0 for dim = 0."""
    if dim == 0:
        return np.zeros_like(task.every)
    logs = _log_probabilities(task.P, FLOOR)
    _, sizes, V = np.linalg.svd(logs, full_matrices=False)
    rank = min(int((sizes > 1e-13 * sizes[0]).sum()), len(task.P), task.P.shape[1] - 1)
    if rank > dim:
        return None
    result: Reals = _log_probabilities(task.every, FLOOR) @ V[:rank].T @ V[:rank]
    result[task.asked] = logs
    return result


def _svd_plane(task: _Task, dim: int) -> Reals:
    logs = _log_probabilities(task.P, START_FLOOR) * np.sqrt(task.pi)[:, None]
    return _plane(np.linalg.svd(logs, full_matrices=False)[2][:dim].T)


def _widened(task: _Task, encoder: Encoder, dim: int) -> Reals:
    """A plane of dimension ``dim`` around that of the encoder: the top singular vectors of its residual are added."""
    residual = np.exp(_log_softmax(encoder.logits[task.asked])) - task.P
    _, _, V = np.linalg.svd(residual * np.sqrt(task.pi)[:, None])
    inside = _plane(encoder.W_U.T) if encoder.dim else np.zeros((task.P.shape[1], 0))
    outside = V.T - V.T.mean(axis=0) - inside @ (inside.T @ V.T)
    return _plane(np.hstack([inside, outside[:, : dim - encoder.dim]]))


def _padded(task: _Task, smaller: Encoder, larger: Encoder) -> Encoder:
    """The smaller encoder with zeros added, at the dimension of the larger one."""
    return _encoder(task, smaller.logits, larger.dim, tuple(sorted([smaller.divergence, *larger.reached])))


# What is known about an encoder.


def _encoder(task: _Task, logits: Reals, dim: int, reached: tuple[float, ...]) -> Encoder:
    """Logits [N, ω] of rank ≤ dim, cut into balanced factors and judged."""
    U, sizes, V = np.linalg.svd(_centred(logits), full_matrices=False)
    kept = min(dim, int((sizes > 1e-14 * sizes[0]).sum()))
    E, W_U = np.zeros((len(logits), dim)), np.zeros((dim, logits.shape[1]))
    E[:, :kept] = U[:, :kept] * np.sqrt(sizes[:kept])
    W_U[:kept] = V[:kept] * np.sqrt(sizes[:kept])[:, None]
    L, E_asked = (E @ W_U)[task.asked], E[task.asked]
    has = divergence(L, task.P, task.pi)
    S = np.exp(_log_softmax(L))
    return Encoder(
        W_U=W_U,
        encodings=E,
        divergence=has,
        norm=float(sizes[0]) if dim else 0.0,
        lower=_lower(task, dim),
        encodings_gap=min(has, _encodings_gap(task, W_U.T, L, S)),
        unembedding_gap=min(has, _unembedding_gap(task, E_asked, L, S)),
        gradient=_gradient_norm(task, E_asked, W_U.T, S),
        reached=reached or (has,),
    )


def _basis(columns: Reals) -> Reals:
    """An orthonormal basis of the columns' span, up to rounding."""
    U, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return U[:, sizes > 1e-12 * max(sizes.max(initial=0), 1e-300)]


def _gradient_norm(task: _Task, E: Reals, W: Reals, S: Reals) -> float:
    root = np.sqrt(task.pi)[:, None]
    G, U, V = root * (S - task.P), _basis(root * E), _basis(W)
    inside = U @ (U.T @ G)
    return float(np.linalg.norm(inside + (G - inside) @ V @ V.T))


def _lower(task: _Task, dim: int) -> float:
    geometric = np.exp(task.pi @ np.log(np.maximum(task.P, FLOOR)))
    candidates = [np.full(task.P.shape[1], 1 / task.P.shape[1]), task.pi @ task.P, geometric / geometric.sum()]
    return max(_lower_under(task, g, dim) for g in candidates)


def _lower_under(task: _Task, g: Reals, dim: int) -> float:
    """The bound for one choice of the tokens' weights g [ω] (sum 1)."""
    P, g = task.P[:, g > 0], g[g > 0]
    P, pi = P[(P > 0).all(axis=1)], task.pi[(P > 0).all(axis=1)]
    logs = np.log(P)
    M = (logs - (logs @ g)[:, None]) * np.sqrt(g)
    m = np.linalg.norm(M, axis=1)
    h = np.log1p((P / g * (m * m)[:, None] / (2 + m[:, None] / np.sqrt(g))).min(axis=1))
    rows = M * (np.sqrt(pi * h) / np.where(m > 0, m, 1))[:, None]
    if not len(rows):
        return 0.0
    tail = np.linalg.svd(rows, compute_uv=False)[min(dim, len(rows), len(g) - 1) :]
    return float((tail * tail).sum()) if dim < min(len(rows), len(g) - 1) else 0.0


def _encodings_gap(task: _Task, W: Reals, L: Reals, S: Reals) -> float:
    """Σ π_t (lse − p·L − H(q_t)) with W q_t = W p_t for every context by itself; W is [ω, d]."""
    B = _basis(W)
    base, Q, open_rows = S.copy(), task.P.copy(), np.arange(len(S))
    for _ in range(MOST_ROUNDS):
        s, p = base[open_rows], task.P[open_rows]
        mean = s @ B
        H = (s[:, None, :] * B.T) @ B - mean[:, :, None] * mean[:, None, :]
        u = np.linalg.pinv(H, rcond=FLOOR, hermitian=True) @ ((p - s) @ B)[:, :, None]
        q = s + _covariance(s, u[:, :, 0] @ B.T)
        negative = q < 0
        done = ~negative.any(axis=1)
        Q[open_rows[done]] = q[done]
        base[open_rows] = np.where(negative, 0, s)
        base /= base.sum(axis=1, keepdims=True)
        open_rows = open_rows[~done]
        if not len(open_rows):
            break
    off = np.abs((Q - task.P) @ B).max(axis=1, initial=0) > FEASIBLE
    Q[off] = task.P[off]
    return _gap(task, L, Q)


def _unembedding_gap(task: _Task, E: Reals, L: Reals, S: Reals) -> float:
    """The same with Σ π_t q_t e_tᵀ = Σ π_t p_t e_tᵀ, one system for all contexts."""
    B = _basis(np.sqrt(task.pi)[:, None] * E) / np.sqrt(task.pi)[:, None]
    weighted = B * task.pi[:, None]
    base = S
    for _ in range(MOST_ROUNDS):
        Q = base + _joint_step(base, B, weighted, (task.P - base).T @ weighted)
        if (Q >= 0).all():
            break
        base = np.where(Q < 0, 0, base)
        base = base / base.sum(axis=1, keepdims=True)
    fine = (Q >= 0).all() and np.abs((Q - task.P).T @ weighted).max(initial=0) <= FEASIBLE
    return _gap(task, L, Q if fine else task.P)


def _joint_step(S: Reals, B: Reals, weighted: Reals, wanted: Reals) -> Reals:
    """Changes [N, ω] of the softmax S along logits B Uᵀ, with U [ω, r] such that changesᵀ weighted = wanted.

    Conjugate gradients, preconditioned by the tokens' own blocks [ω, r, r].
    """
    blocks = (S.T[:, None, :] * weighted.T) @ B
    inverse = np.linalg.pinv(blocks, rcond=FLOOR, hermitian=True)
    U, residual = np.zeros_like(wanted), wanted
    along = better = (inverse @ residual[:, :, None])[:, :, 0]
    size = float((residual * better).sum())
    for _ in range(2 * U.size):
        if np.abs(residual).max(initial=0) <= FEASIBLE / 100:
            break
        curved = _covariance(S, B @ along.T).T @ weighted
        curvature = float((along * curved).sum())
        if curvature <= 0:
            break
        U, residual = U + size / curvature * along, residual - size / curvature * curved
        better = (inverse @ residual[:, :, None])[:, :, 0]
        size, before = float((residual * better).sum()), size
        along = better + size / before * along
    return _covariance(S, B @ U.T)


def _gap(task: _Task, L: Reals, Q: Reals) -> float:
    """Σ π_t (lse(L_t) − p_t·L_t − H(q_t)), at least 0."""
    log_Q = np.log(np.where(Q > 0, Q, 1))
    return max(0.0, float(task.pi @ ((Q * log_Q).sum(axis=1) - (task.P * _log_softmax(L)).sum(axis=1))))

"""Find the best sequence encoder of Dana, Pydi & Chevaleyre 2025: rank-d logits close to N distributions.

**Problem.** N contexts with weights π_t have the target distributions p_t on ω tokens. A sequence encoder of dimension
d predicts softmax(L_t) with L = E W_U, E ∈ R^{N×d}, W_U ∈ R^{d×ω}. No Transformer of embedding dimension d does better:

    min over L of rank ≤ d of Σ_t π_t KL(p_t ‖ softmax(L_t)),        in nats.

**Gauge.** Softmax ignores a constant in a row, and centring the rows (L J, J = I − 11ᵀ/ω) does not raise the rank.
Returned logits are centred and balanced: L = UΣVᵀ is split into E = U√Σ and W_U = √ΣVᵀ.

**Closed forms.** For d = 0 the logits are 0 (there is no bias: the best constant prediction needs d = 1). If the
centred log p has rank ≤ d, as it always has for d ≥ min(N, ω − 1), then L = log p has divergence 0.

**All other cases** are not convex. With the span of W_U fixed, every context has its own convex problem, solved by
damped Newton steps. What remains is a function on the Grassmannian of d-planes in 1^⊥ ⊂ R^ω. It is minimized by Newton
steps in a trust region (Steihaug's conjugate gradients), and the best of several starts is taken. **The global minimum
is not certified.** The encoder states three bounds, computed in float64: ``encodings_gap`` and ``unembedding_gap`` for
either factor, and ``lower`` for all encoders.

**Zero probabilities** are allowed, though the infimum then need not be attained. While solving, W_U is orthonormal and
every context's loss has a term ρ‖e_t‖²/2, finally with ρ = 10⁻¹⁰; hence ‖e_t‖² ≤ 2·10¹⁰·log ω for any p. Closed forms
use log max(p, 10⁻¹⁵). ``divergence`` always belongs to the returned matrices, without that term, and ``encodings_gap``
includes the cost of the last ρ. Few dimensions and many zeros are hard: starts differ, and steps may run out.

**Duality** gives the gaps. If q is a distribution with W_U q = W_U p then for all e, lse(W_Uᵀe) − p·W_Uᵀe =
lse(W_Uᵀe) − q·W_Uᵀe ≥ H(q). With the encodings fixed the same holds for Σ_t π_t q_t e_tᵀ = Σ_t π_t p_t e_tᵀ, over all
contexts at once.

1. *Finding q.* From a distribution s one Newton step gives q = s(1 + x), where x is the step in the logits: of all q
   that solve the equations, the one with the least χ² = Σ s x². Tokens with x < −1 get s = 0, and the step is repeated.
   The first s is the softmax, raised to 10⁻¹⁵ where it is smaller. Any s will do, and from the 10⁻¹⁰⁰ that logits far
   apart have, it would take steps of 10¹⁰⁰.
2. *Checking q.* The equations, and the sums of q, may be off by 10⁻¹² in an orthonormal basis, and no entry may be
   negative. Otherwise q = p is taken, which only gives "divergence ≥ 0". So gaps are true for logits √π_t L_t of norm Λ
   up to 10⁻¹²·√(dω)·Λ, however the steps were rounded.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from byheart.errors import BadInput
from byheart.progress import Report
from byheart.tasks.arrays import Flags, Floats, as_distribution, as_distributions

FLOOR = 1e-15
"""Smallest probability of which a logarithm is taken; smaller ones are raised to it."""
FEASIBLE = 1e-12
"""Allowed error in the equations of a gap."""
MOST_ROUNDS = 20
"""Largest number of rounds until the equations of a gap have a solution without negative entries."""
NOISE = 1e-14
"""Rounding of a divergence: a smaller decrease is not noticed."""
MOST_STEPS, MOST_HALVINGS, MOST_IDLE = 60, 30, 3
"""Largest numbers of steps towards the best encodings, of halvings of a step, and of steps that decrease nothing."""
START_FLOOR, TINY = 1e-6, 1e-9
"""Smallest probability for the first plane, and the probability below which all starts go through all ridges."""
RIDGES = tuple(10.0**-k for k in range(3, 11))
ROUGHLY, FULLY = (1e-5, 60), (1e-9, 200)
"""Gradient at which to stop and largest number of steps, for all ridges but the last, and for the last."""


@dataclass(frozen=True, eq=False)
class ContextDistributions:
    """Distributions [N, ω] of contexts, and the contexts' weights [N]."""

    every: Floats
    pi_every: Floats

    @classmethod
    def checked(cls, probabilities: ArrayLike, weights: ArrayLike) -> "ContextDistributions":
        """Check that rows are distributions, and scale sums that are only nearly 1."""
        P = as_distributions("probabilities", probabilities, ("N", "C"))
        pi = as_distribution("weights", weights, len(P))
        return cls(P / P.sum(axis=1, keepdims=True), pi / pi.sum())

    @cached_property
    def weighted(self) -> Flags:
        """Flags [N] of the contexts with a weight above 0."""
        return self.pi_every > 0

    @cached_property
    def P(self) -> Floats:
        """Distributions of the weighted contexts."""
        return self.every[self.weighted]

    @cached_property
    def pi(self) -> Floats:
        """Weights of the weighted contexts."""
        return self.pi_every[self.weighted]


def divergence(logits: ArrayLike, probabilities: ArrayLike, weights: ArrayLike) -> float:
    """Return Σ_t π_t KL(p_t ‖ softmax(L_t)) in nats, from logits [N, ω], probabilities [N, ω] and weights [N].

    It is summed as p(r − 1 − log r) with r = q/p (q where p is 0, or so small that r might overflow): no term is
    negative, so none cancels.

    >>> divergence([[0, 0]], [[1, 0]], [1]), np.log(2).item()
    (0.6931471805599453, 0.6931471805599453)
    """
    P, pi = np.asarray(probabilities, dtype=float), np.asarray(weights, dtype=float)
    log_q = log_softmax(np.asarray(logits, dtype=float))
    positive = np.finfo(float).tiny <= P
    log_r = log_q - np.log(np.where(positive, P, 1))
    terms = np.where(positive, P * (np.expm1(np.where(positive, log_r, 0)) - log_r), np.exp(log_q))
    return float(pi @ terms.sum(axis=1))


def log_softmax(L: Floats) -> Floats:
    """Return the logarithm of the softmax of every row."""
    L = L - L.max(axis=1, keepdims=True)
    return np.asarray(L - np.log(np.exp(L).sum(axis=1, keepdims=True)), np.float64)


def centred(rows: Floats) -> Floats:
    """Subtract its mean from every row."""
    return np.asarray(rows - rows.mean(axis=1, keepdims=True), np.float64)


def log_probabilities(P: Floats, floor: float) -> Floats:
    """Return centred logits whose softmax is P, up to the effect of ``floor``."""
    return centred(np.log(np.maximum(P, floor)))


def covariance(S: Floats, A: Floats) -> Floats:
    """Return (diag s − s sᵀ)a for every row: the change of the softmax s if its logits change by a."""
    return np.asarray(S * (A - (S * A).sum(axis=1, keepdims=True)), np.float64)


def basis(columns: Floats) -> Floats:
    """Return an orthonormal basis of the columns' span, up to rounding."""
    U, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return U[:, sizes > 1e-12 * max(sizes.max(initial=0), 1e-300)]


def encodings_gap(contexts: ContextDistributions, W: Floats, L: Floats, S: Floats) -> float:
    """Return Σ π_t (lse − p·L − H(q_t)) where W q_t = W p_t for every context by itself; W is [ω, d]."""
    P, B = contexts.P, basis(W)
    base, Q, rows = _raised(S), P.copy(), np.arange(len(S))
    for _ in range(MOST_ROUNDS):
        s = base[rows]
        apart = B - (s @ B)[:, None, :]
        root = _inverse_root((s[:, :, None] * apart).mT @ apart)
        x = apart @ (root @ (root.mT @ ((P[rows] - s) @ B)[:, :, None]))
        q = s * (1 + x[:, :, 0])
        Q[rows] = q
        base[rows] = _supported(s, q)
        rows = rows[(q < 0).any(axis=1) & base[rows].any(axis=1)]
        if not len(rows):
            break
    solved = np.abs((Q - P) @ B).max(axis=1, initial=0) <= FEASIBLE
    return _gap(contexts, L, np.where((solved & _distributions(Q))[:, None], Q, P))


def unembedding_gap(contexts: ContextDistributions, E: Floats, L: Floats, S: Floats) -> float:
    """Return the same gap where Σ π_t q_t e_tᵀ = Σ π_t p_t e_tᵀ, one system for all contexts; E is [N, d]."""
    P, pi = contexts.P, contexts.pi[:, None]
    B = basis(np.sqrt(pi) * E) / np.sqrt(pi)
    base = _raised(S)
    for _ in range(MOST_ROUNDS):
        Q = base + _joint_step(base, B, pi * B, (P - base).T @ (pi * B))
        base = _supported(base, Q)
        if (Q >= 0).all() or not base.any(axis=1).all():
            break
    solved = np.abs((Q - P).T @ (pi * B)).max(initial=0) <= FEASIBLE
    return _gap(contexts, L, Q if solved and _distributions(Q).all() else P)


def _raised(S: Floats) -> Floats:
    S = np.maximum(S, FLOOR)
    return np.asarray(S / S.sum(axis=1, keepdims=True), np.float64)


def _distributions(Q: Floats) -> Flags:
    """Return flags of the rows that are distributions."""
    return np.asarray((Q >= 0).all(axis=1) & (np.abs(Q.sum(axis=1) - 1) <= FEASIBLE), np.bool_)


def _supported(base: Floats, Q: Floats) -> Floats:
    """Return the distributions ``base`` without the tokens where Q is negative; 0 where no token is left."""
    kept = np.where(Q < 0, 0, base)
    sums = kept.sum(axis=1, keepdims=True)
    return kept / np.where(sums > 0, sums, 1)


def _inverse_root(blocks: Floats) -> Floats:
    """Return R [., r, r] with R Rᵀ the inverse of positive semidefinite blocks ≤ 1; so R Rᵀ ≥ 1.

    Eigenvalues are raised to 10⁻¹⁵ of the largest, or of 10⁻¹⁵ if that is larger; so R Rᵀ ≤ 10³⁰.
    """
    values, vectors = np.linalg.eigh(blocks)
    values = np.maximum(values, FLOOR * np.maximum(values.max(axis=1, keepdims=True, initial=0), FLOOR))
    return np.asarray(vectors / np.sqrt(values)[:, None, :], np.float64)


def _joint_step(S: Floats, B: Floats, weighted: Floats, target: Floats) -> Floats:
    """Return changes [N, ω] of the softmax S along logits B Uᵀ, with U [ω, r] such that changesᵀ weighted = target.

    The method is conjugate gradients, preconditioned by the tokens' own blocks [ω, r, r]. Nothing overflows, whatever
    the rounding:

    1. In exact arithmetic the equations' matrix is between 0 and 1, and the energies of the steps, step²·curvature =
       step·size, sum to the χ² of the solution.
    2. For q with the support of s that is Σ π q²/s − 1 < 1/min s ≤ 2·10¹⁵, and residuals are at most its root and the
       first one. Beyond that there is no such q, or only rounding is left, so the steps end.
    3. Residuals from 10⁻¹⁴ to 10¹⁵ have sizes from 10⁻²⁸ to 10⁶⁰ and are improved to at most 10⁴⁵. Directions, sums of
       that times size/(an earlier size), stay below 10¹³³; steps, below 2·10¹⁵/size, under 10⁴⁴. (Times ωr.)
    """
    root = _inverse_root((S.T[:, None, :] * weighted.T) @ B)
    U, residual = np.zeros_like(target), target
    along, before = U, np.inf
    for _ in range(2 * U.size):
        if not FEASIBLE / 100 < np.abs(residual).max(initial=0) < 1 / FLOOR:
            break
        half = residual[:, None, :] @ root
        size = float((half * half).sum())
        along, before = (half @ root.mT)[:, 0] + size / before * along, size
        curved = covariance(S, B @ along.T).T @ weighted
        curvature = float((along * curved).sum())
        if size**2 >= 2 / FLOOR * curvature:
            break
        U, residual = U + size / curvature * along, residual - size / curvature * curved
    return covariance(S, B @ U.T)


def _gap(contexts: ContextDistributions, L: Floats, Q: Floats) -> float:
    """Return Σ π_t (lse(L_t) − p_t·L_t − H(q_t)), at least 0."""
    log_Q = np.log(np.where(Q > 0, Q, 1))
    return max(0.0, float(contexts.pi @ ((Q * log_Q).sum(axis=1) - (contexts.P * log_softmax(L)).sum(axis=1))))


def lower_bound(contexts: ContextDistributions, dim: int) -> float:
    """Return a number of nats below which no encoder of dimension ``dim`` has its divergence.

    Proof.

    1. Let Δ = L_t − log p_t and X = Δ − E_p Δ where p_t > 0. Then KL ≥ log E_p e^X (equal if p_t > 0 everywhere), and
       as e^x − 1 − x ≥ x²/(2 + |x|) that is at least log(1 + Σ p_i X_i²/(2 + |X_i|)).
    2. Take weights g of the tokens (sum 1) and v² = Var_g(Δ) ≤ Σ g_i X_i². The sum is concave in the X_i², so given v
       it is smallest with all of it on one token: KL ≥ h_t(v) = log(1 + min_i (p_i/g_i) v²/(2 + v/√g_i)), which grows
       with v and is concave in v².
    3. Centred under g and multiplied by √g, the rows L_t lie in a space of dimension ≤ d, the rows log p_t become M_t,
       and v is the distance between the two: at least that of M_t to the space, which is at most m_t = ‖M_t‖. By
       concavity h_t(v) ≥ v² h_t(m_t)/m_t² up to m_t.
    4. So the divergence is at least the sum of the squared distances of the rows M_t √(π_t h_t(m_t))/m_t to a space of
       dimension d, and that is at least the sum of the squares of all but their d largest singular values (Eckart &
       Young). ∎

    Contexts with zero probabilities (where g > 0) have h_t = 0 and add nothing. The best of three g is taken: uniform,
    the mean of all p_t, and their geometric mean.

    >>> contexts = ContextDistributions.checked(np.eye(3) * 0.7 + 0.1, [1 / 3] * 3)
    >>> [round(lower_bound(contexts, dim), 3) for dim in (0, 1, 2)]
    [0.075, 0.038, 0.0]
    """
    P, pi = contexts.P, contexts.pi
    geometric = np.exp(pi @ np.log(np.maximum(P, FLOOR)))
    candidates = [np.full(P.shape[1], 1 / P.shape[1]), pi @ P, geometric / geometric.sum()]
    return max(_lower_under(contexts, g, dim) for g in candidates)


def _lower_under(contexts: ContextDistributions, g: Floats, dim: int) -> float:
    """Return the bound for one choice of the tokens' weights g [ω] (sum 1)."""
    P, g = contexts.P[:, g > 0], g[g > 0]
    P, pi = P[(P > 0).all(axis=1)], contexts.pi[(P > 0).all(axis=1)]
    if dim >= min(len(P), len(g) - 1):
        return 0.0
    logs = np.log(P)
    M = (logs - (logs @ g)[:, None]) * np.sqrt(g)
    m = np.linalg.norm(M, axis=1)
    h = np.log1p((P / g * (m * m)[:, None] / (2 + m[:, None] / np.sqrt(g))).min(axis=1))
    rows = M * (np.sqrt(pi * h) / np.where(m > 0, m, 1))[:, None]
    tail = np.linalg.svd(rows, compute_uv=False)[dim:]
    return float((tail * tail).sum())


@dataclass(frozen=True, eq=False)
class Encoder:
    """An encoder with its divergence, and bounds on how much better another one can be."""

    W_U: Floats
    """Unembedding [d, ω]."""
    encodings: Floats
    """Encodings [N, d]."""
    divergence: float
    """Σ_t π_t KL(p_t ‖ softmax(E_t W_U)), in nats."""
    norm: float
    """‖E W_U‖₂, with centred rows."""
    lower: float
    """Proved: no encoder of this dimension has a smaller divergence. The bound is usually weak."""
    encodings_gap: float
    """Certified: with this W_U no encodings have a divergence below divergence − gap."""
    unembedding_gap: float
    """Certified: with these encodings no W_U has a divergence below divergence − gap."""

    @property
    def dim(self) -> int:
        """Dimension d."""
        return len(self.W_U)

    @property
    def logits(self) -> Floats:
        """Logits [N, ω] of all contexts."""
        return self.encodings @ self.W_U


def balanced(contexts: ContextDistributions, logits: Floats, dim: int) -> Encoder:
    """Cut logits [N, ω] of rank ≤ dim into balanced factors, and compute their divergence and its bounds.

    Gaps belong to the returned factors, without the directions that E or W_U leaves unused.

    >>> encoder = balanced(ContextDistributions.checked([[0.5, 0.5]], [1]), np.array([[0.1, -0.1]]), 1)
    >>> encoder.divergence < 0.005, abs(encoder.divergence - encoder.encodings_gap) < 1e-4
    (True, True)
    """
    U, sizes, V = np.linalg.svd(centred(logits), full_matrices=False)
    kept = min(dim, int((sizes > 1e-14 * sizes[0]).sum()))
    E, W_U = np.zeros((len(logits), dim)), np.zeros((dim, logits.shape[1]))
    E[:, :kept] = U[:, :kept] * np.sqrt(sizes[:kept])
    W_U[:kept] = V[:kept] * np.sqrt(sizes[:kept])[:, None]
    L = (E @ W_U)[contexts.weighted]
    reached, S = divergence(L, contexts.P, contexts.pi), np.exp(log_softmax(L))
    return Encoder(
        W_U=W_U,
        encodings=E,
        divergence=reached,
        norm=float(sizes[0]) if dim else 0.0,
        lower=lower_bound(contexts, dim),
        encodings_gap=min(reached, encodings_gap(contexts, W_U.T, L, S)),
        unembedding_gap=min(reached, unembedding_gap(contexts, E[contexts.weighted], L, S)),
    )


@dataclass(frozen=True, eq=False)
class EncoderPoint:
    """A point of the search: orthonormal W [ω, d], its best encodings E [N, d], softmax S [N, ω], and the objective."""

    contexts: ContextDistributions
    W: Floats
    E: Floats
    S: Floats
    value: float
    ridge: float

    @cached_property
    def R(self) -> Floats:
        """S − P [N, ω], the gradient in the logits without the weights."""
        return self.S - self.contexts.P

    @cached_property
    def inverse(self) -> Floats:
        """Inverses [N, d, d] of the contexts' Hessians."""
        return np.asarray(np.linalg.inv(_hessians(self.S, self.W, self.ridge)), dtype=np.float64)

    @cached_property
    def scale(self) -> Floats:
        """(Σ π e eᵀ)^(−1/2) [d, d]: in W + Y·scale, |Y| is the norm of the change of all logits √π_t L_t."""
        values, vectors = np.linalg.eigh((self.E.T * self.contexts.pi) @ self.E)
        values = np.maximum(values, 1e-8 * max(1e-8, values[-1]))
        return np.asarray((vectors / np.sqrt(values)) @ vectors.T, np.float64)

    @cached_property
    def steepest(self) -> Floats:
        """Gradient [ω, d] in Y."""
        return self._tangent(((self.R.T * self.contexts.pi) @ self.E) @ self.scale)

    def _tangent(self, Y: Floats) -> Floats:
        """Remove from Y the parts that are constant over the tokens, or in the plane."""
        Y = Y - Y.mean(axis=0)
        return Y - self.W @ (self.W.T @ Y)

    def curved(self, Y: Floats) -> Floats:
        """Multiply the Hessian in Y by Y; the encodings follow the plane."""
        Z = Y @ self.scale
        A = self.E @ Z.T
        E_dot = -(self.inverse @ (covariance(self.S, A) @ self.W + self.R @ Z)[:, :, None])[:, :, 0]
        S_dot = covariance(self.S, A + E_dot @ self.W.T)
        pi = self.contexts.pi[:, None]
        G_dot = S_dot.T @ (pi * self.E) + self.R.T @ (pi * E_dot)
        return self._tangent(G_dot @ self.scale) + self.ridge * Y


def _point(contexts: ContextDistributions, W: Floats, E: Floats, ridge: float) -> EncoderPoint:
    """Return the point of W, with the best encodings, starting from E."""
    E, S, loss = _encode(contexts.P, W, E, ridge)
    return EncoderPoint(contexts, W, E, S, float(contexts.pi @ loss), ridge)


def _plane(columns: Floats) -> Floats:
    """Return an orthonormal basis [ω, d] of the span of the centred columns [ω, d], completed if they depend."""
    return np.linalg.qr(np.hstack([np.ones((len(columns), 1)), columns]))[0][:, 1:]


def _encode(P: Floats, W: Floats, E: Floats, ridge: float) -> tuple[Floats, Floats, Floats]:
    """Return the best encodings for orthonormal W [ω, d] by damped Newton steps from E, with softmax and losses."""
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
    """Return Wᵀ(diag s − s sᵀ)W + ridge·I for every context, [N, d, d]."""
    mean = S @ W
    result: Floats = (S[:, None, :] * W.T) @ W - mean[:, :, None] * mean[:, None, :]
    result += ridge * np.eye(W.shape[1])
    return result


def _losses(P: Floats, W: Floats, E: Floats, ridge: float) -> tuple[Floats, Floats]:
    """Return lse(We) − p·We + ridge·‖e‖²/2 [N] and the softmax [N, ω]."""
    log_S = log_softmax(E @ W.T)
    return -(P * log_S).sum(axis=1) + ridge / 2 * (E * E).sum(axis=1), np.exp(log_S)


def _lengths(P: Floats, W: Floats, E: Floats, step: Floats, loss: Floats, slope: Floats, ridge: float) -> Floats:
    """Return each context's step length: the first of 1, ½, ¼, … that decreases the loss enough, or 0."""
    length = np.ones(len(E))
    for _ in range(MOST_HALVINGS):
        bad = _losses(P, W, E + length[:, None] * step, ridge)[0] > loss + 1e-4 * length * slope + NOISE
        if not bad.any():
            return length
        length[bad] /= 2
    length[bad] = 0
    return length


def _descend(point: EncoderPoint, small: float, most: int) -> EncoderPoint:
    """Take at most ``most`` steps, until the gradient is ``small`` or nothing decreases any more."""
    radius, idle = 1.0, 0
    for _ in range(most):
        if np.linalg.norm(point.steepest) <= small or idle == MOST_IDLE:
            break
        Y, predicted = _newton_step(point, radius)
        columns = point.W + Y @ point.scale
        W = _plane(columns)
        trial = _point(point.contexts, W, point.E @ (columns.T @ W), point.ridge)
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
    """Return the step Y [ω, d] with |Y| ≤ radius, and the decrease that the model predicts.

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
    """Return the positive step with |Y + step·along| = radius."""
    a, b, c = float((along * along).sum()), float((Y * along).sum()), float((Y * Y).sum()) - radius**2
    return float((-b + np.sqrt(max(0.0, b * b - a * c))) / a)


def best_encoder(
    probabilities: ArrayLike,
    weights: ArrayLike,
    dim: int,
    *,
    rng: np.random.Generator,
    restarts: int = 8,
    report: Report | None = None,
) -> Encoder:
    """Return the best encoder of dimension ``dim`` that a search reaches, for probabilities [N, ω] and weights [N].

    Two starts are at the truncated SVD of the weighted, centred log-probabilities: through all ρ from 10⁻³ down, and
    with the last at once. ``restarts`` more are at random planes, in turn one way and the other. (With probabilities
    below 1e-9 all go the first way.) ``report`` is called with the number of finished starts and of all starts.

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
    logs = log_probabilities(contexts.P, START_FLOOR) * np.sqrt(contexts.pi)[:, None]
    svd = _plane(np.linalg.svd(logs, full_matrices=False)[2][:dim].T)
    starts = [(svd, way) for way in ways]
    starts += [(_plane(rng.standard_normal(svd.shape)), ways[k % len(ways)]) for k in range(restarts)]
    ends = []
    for done, (W, ridges) in enumerate(starts, 1):
        ends.append(_follow(contexts, W, ridges))
        if report is not None:
            report(done, len(starts))
    best = min(ends, key=lambda end: divergence(end.E @ end.W.T, contexts.P, contexts.pi))
    E, unweighted = np.zeros((len(contexts.every), dim)), ~contexts.weighted
    E[contexts.weighted] = best.E
    E[unweighted] = _encode(contexts.every[unweighted], best.W, E[unweighted], RIDGES[-1])[0]
    return balanced(contexts, E @ best.W.T, dim)


def _follow(contexts: ContextDistributions, W: Floats, ridges: tuple[float, ...]) -> EncoderPoint:
    """Descend from the plane W through smaller and smaller ridges; large ones smooth some local minima away."""
    E = np.zeros((len(contexts.P), W.shape[1]))
    for ridge in ridges[:-1]:
        point = _descend(_point(contexts, W, E, ridge), *ROUGHLY)
        W, E = point.W, point.E
    return _descend(_point(contexts, W, E, ridges[-1]), *FULLY)


def _closed_form(contexts: ContextDistributions, dim: int) -> Floats | None:
    """Return exact logits [N, ω] of rank ≤ dim, or None if there are none; for dim = 0 return 0."""
    if dim == 0:
        return np.zeros_like(contexts.every)
    logs = log_probabilities(contexts.P, FLOOR)
    _, sizes, V = np.linalg.svd(logs, full_matrices=False)
    rank = min(int((sizes > 1e-13 * sizes[0]).sum()), len(contexts.P), contexts.P.shape[1] - 1)
    if rank > dim:
        return None
    result: Floats = log_probabilities(contexts.every, FLOOR) @ V[:rank].T @ V[:rank]
    result[contexts.weighted] = logs
    return result

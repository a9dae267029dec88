"""How much one factor of an encoder can gain while the other stays: certified, by weak duality.

**Duality.** If q is a distribution with W_U q = W_U p then for all e, lse(W_Uᵀe) − p·W_Uᵀe = lse(W_Uᵀe) − q·W_Uᵀe ≥
H(q). With the encodings fixed it is the same with Σ_t π_t q_t e_tᵀ = Σ_t π_t p_t e_tᵀ, over all contexts at once.

**Finding q.** From a distribution s one Newton step gives q = s(1 + x), x the step in the logits: of all q that solve
the equations the one with the least χ² = Σ s x². Where x < −1 tokens get s = 0, and the step is repeated. The first s
is the softmax, raised to 10⁻¹⁵ where it is smaller: any s will do, and from the 10⁻¹⁰⁰ that logits far apart have it
would take steps of 10¹⁰⁰.

**Checking q.** The equations, and the sums of q, may be off by 10⁻¹² in an orthonormal basis, and no entry may be
negative; else q = p is taken, which says only "divergence ≥ 0". So gaps are true for logits √π_t L_t of norm Λ up to
10⁻¹²·√(dω)·Λ, however the steps were rounded.
"""

import numpy as np

from byheart.constructions.gadgets.encoder.distributions import FLOOR, ContextDistributions, covariance, log_softmax
from byheart.tasks.arrays import Flags, Floats

FEASIBLE = 1e-12
"""How far off the equations of a gap may be."""
MOST_ROUNDS = 20


def basis(columns: Floats) -> Floats:
    """An orthonormal basis of the columns' span, up to rounding."""
    U, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return U[:, sizes > 1e-12 * max(sizes.max(initial=0), 1e-300)]


def encodings_gap(contexts: ContextDistributions, W: Floats, L: Floats, S: Floats) -> float:
    """Σ π_t (lse − p·L − H(q_t)) with W q_t = W p_t for every context by itself; W is [ω, d]."""
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
    """The same with Σ π_t q_t e_tᵀ = Σ π_t p_t e_tᵀ, one system for all contexts; E is [N, d]."""
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
    """Which rows are distributions."""
    return np.asarray((Q >= 0).all(axis=1) & (np.abs(Q.sum(axis=1) - 1) <= FEASIBLE), np.bool_)


def _supported(base: Floats, Q: Floats) -> Floats:
    """The distributions ``base`` without the tokens where Q is negative; 0 where none is left."""
    kept = np.where(Q < 0, 0, base)
    sums = kept.sum(axis=1, keepdims=True)
    return kept / np.where(sums > 0, sums, 1)


def _inverse_root(blocks: Floats) -> Floats:
    """R [., r, r] with R Rᵀ the inverse of positive semidefinite blocks ≤ 1; so R Rᵀ ≥ 1.

    Eigenvalues are raised to 10⁻¹⁵ of the largest, or of 10⁻¹⁵ if that is larger; so R Rᵀ ≤ 10³⁰.
    """
    values, vectors = np.linalg.eigh(blocks)
    values = np.maximum(values, FLOOR * np.maximum(values.max(axis=1, keepdims=True, initial=0), FLOOR))
    return np.asarray(vectors / np.sqrt(values)[:, None, :], np.float64)


def _joint_step(S: Floats, B: Floats, weighted: Floats, wanted: Floats) -> Floats:
    """Changes [N, ω] of the softmax S along logits B Uᵀ, with U [ω, r] such that changesᵀ weighted = wanted.

    Conjugate gradients, preconditioned by the tokens' own blocks [ω, r, r]. In exact arithmetic the equations' matrix
    is between 0 and 1, and the energies of the steps, step²·curvature = step·size, sum to the χ² of the solution. For q
    with the support of s that is Σ π q²/s − 1 < 1/min s ≤ 2·10¹⁵, and residuals are at most its root and the first one.
    Beyond, there is no such q, or rounding is all that is left: the steps end. So nothing overflows, whatever the
    rounding. Residuals from 10⁻¹⁴ to 10¹⁵ have sizes from 10⁻²⁸ to 10⁶⁰ and are improved to at most 10⁴⁵; directions,
    sums of that times size/(an earlier size), stay below 10¹³³; steps, below 2·10¹⁵/size, under 10⁴⁴. (Times ωr.)
    """
    root = _inverse_root((S.T[:, None, :] * weighted.T) @ B)
    U, residual = np.zeros_like(wanted), wanted
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
    """Σ π_t (lse(L_t) − p_t·L_t − H(q_t)), at least 0."""
    log_Q = np.log(np.where(Q > 0, Q, 1))
    return max(0.0, float(contexts.pi @ ((Q * log_Q).sum(axis=1) - (contexts.P * log_softmax(L)).sum(axis=1))))

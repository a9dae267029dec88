"""How good an encoder is: its divergence, certified gaps of either factor, and a bound that no encoder falls below.

**Duality.** If q is a distribution with W_U q = W_U p then for all e, lse(W_Uᵀe) − p·W_Uᵀe = lse(W_Uᵀe) − q·W_Uᵀe ≥
H(q). With the encodings fixed it is the same with Σ_t π_t q_t e_tᵀ = Σ_t π_t p_t e_tᵀ, over all contexts at once.

**Finding q.** From a distribution s one Newton step gives q = s(1 + x), x the step in the logits: of all q that solve
the equations the one with the least χ² = Σ s x². Tokens with x < −1 get s = 0, and the step is repeated. The first s is
the softmax, raised to 10⁻¹⁵ where it is smaller: any s will do, and from the 10⁻¹⁰⁰ that logits far apart have it would
take steps of 10¹⁰⁰.

**Checking q.** The equations, and the sums of q, may be off by 10⁻¹² in an orthonormal basis, and no entry may be
negative; else q = p is taken, which says only "divergence ≥ 0". So gaps are true for logits √π_t L_t of norm Λ up to
10⁻¹²·√(dω)·Λ, however the steps were rounded.
"""

from dataclasses import dataclass

import numpy as np

from byheart.constructions.gadgets.encoder.distributions import (
    FLOOR,
    ContextDistributions,
    centred,
    covariance,
    divergence,
    log_softmax,
)
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


def lower_bound(contexts: ContextDistributions, dim: int) -> float:
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

    >>> contexts = ContextDistributions.checked(np.eye(3) * 0.7 + 0.1, [1 / 3] * 3)
    >>> [round(lower_bound(contexts, dim), 3) for dim in (0, 1, 2)]
    [0.075, 0.038, 0.0]
    """
    P, pi = contexts.P, contexts.pi
    geometric = np.exp(pi @ np.log(np.maximum(P, FLOOR)))
    candidates = [np.full(P.shape[1], 1 / P.shape[1]), pi @ P, geometric / geometric.sum()]
    return max(_lower_under(contexts, g, dim) for g in candidates)


def _lower_under(contexts: ContextDistributions, g: Floats, dim: int) -> float:
    """The bound for one choice of the tokens' weights g [ω] (sum 1)."""
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
    """An encoder with the divergence that it has, and what is known about how good it is."""

    W_U: Floats
    """[d, ω]"""
    encodings: Floats
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
    def logits(self) -> Floats:
        """Logits [N, ω] of all contexts."""
        return self.encodings @ self.W_U


def balanced(contexts: ContextDistributions, logits: Floats, dim: int, reached: tuple[float, ...] = ()) -> Encoder:
    """Logits [N, ω] of rank ≤ dim as an encoder: cut into balanced factors, with their divergence and what is known.

    Gaps are those of the returned factors, without the directions that E or W_U leaves unused.

    >>> one = balanced(ContextDistributions.checked([[0.5, 0.5]], [1]), np.array([[0.1, -0.1]]), 1)
    >>> one.divergence < 0.005, abs(one.divergence - one.encodings_gap) < 1e-4
    (True, True)
    """
    U, sizes, V = np.linalg.svd(centred(logits), full_matrices=False)
    kept = min(dim, int((sizes > 1e-14 * sizes[0]).sum()))
    E, W_U = np.zeros((len(logits), dim)), np.zeros((dim, logits.shape[1]))
    E[:, :kept] = U[:, :kept] * np.sqrt(sizes[:kept])
    W_U[:kept] = V[:kept] * np.sqrt(sizes[:kept])[:, None]
    L, E_asked = (E @ W_U)[contexts.asked], E[contexts.asked]
    has = divergence(L, contexts.P, contexts.pi)
    S = np.exp(log_softmax(L))
    return Encoder(
        W_U=W_U,
        encodings=E,
        divergence=has,
        norm=float(sizes[0]) if dim else 0.0,
        lower=lower_bound(contexts, dim),
        encodings_gap=min(has, encodings_gap(contexts, W_U.T, L, S)),
        unembedding_gap=min(has, unembedding_gap(contexts, E_asked, L, S)),
        gradient=_gradient_norm(contexts, E_asked, W_U.T, S),
        reached=reached or (has,),
    )


def _gradient_norm(contexts: ContextDistributions, E: Floats, W: Floats, S: Floats) -> float:
    root = np.sqrt(contexts.pi)[:, None]
    G, U, V = root * (S - contexts.P), basis(root * E), basis(W)
    inside = U @ (U.T @ G)
    return float(np.linalg.norm(inside + (G - inside) @ V @ V.T))

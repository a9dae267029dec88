"""A divergence that no encoder of a dimension falls below."""

import numpy as np

from byheart.constructions.gadgets.encoder.distributions import FLOOR, ContextDistributions
from byheart.tasks.arrays import Floats


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

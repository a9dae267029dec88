"""What is known about an encoder."""

from dataclasses import dataclass

import numpy as np

from byheart.constructions.gadgets.encoder.distributions import ContextDistributions, centred, divergence, log_softmax
from byheart.constructions.gadgets.encoder.duality import basis, encodings_gap, unembedding_gap
from byheart.constructions.gadgets.encoder.lower import lower_bound
from byheart.tasks.arrays import Floats


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

"""Contexts that are not held: answer them no worse than uniformly, and measure the terms of Theorem 1's bound.

The theorem holds for almost every attention, but for random attention its constant C is large: with as many features as
held contexts, C depends on the inverse of a square random matrix. This module is ours, not part of the paper. From a
random draw it descends (L-BFGS, gradients through the linear system) on the divergence of the omitted contexts, until
they are answered as well as uniformly, or for a few hundred steps. Held contexts stay exact, for every attention.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from byheart.bounds.dana_2025 import almost_lookup, coherence, entropy_matched
from byheart.constructions.dana_2025.solving import DRAWN, Asked, Passed
from byheart.constructions.gadgets.encoder import Encoder, divergence, log_softmax
from byheart.networks.softmax import SoftmaxNetwork, evaluate
from byheart.tasks import NextTokenDistribution
from byheart.tasks.arrays import Floats, Ids
from byheart.tasks.distinct import distinct

MOST_STEPS, FEW_STEPS = 300, 100
"""Largest numbers of steps of a descent for at most ``FEW`` held contexts, and for more."""
FEW = 100
"""Number of held contexts up to which a descent may take ``MOST_STEPS`` steps."""
MOST_HELD = 1000
"""Largest number of held contexts for which a descent is tried: with more, every step takes seconds."""


def descended(drawn: SoftmaxNetwork, asked: Asked) -> SoftmaxNetwork:
    """Return the drawn network with an attention that answers the omitted contexts better."""
    from scipy.optimize import minimize

    others = asked.others
    logs = np.log(np.where(others.probabilities > 0, others.probabilities, 1))
    entropy = -float(others.likelihoods @ (others.probabilities * logs).sum(axis=1))

    def stop(intermediate_result: object) -> None:
        if getattr(intermediate_result, "fun", np.inf) - entropy <= others.uniform:
            raise StopIteration

    start = np.concatenate([getattr(drawn, name).ravel() for name in DRAWN])
    options = {"maxiter": MOST_STEPS if len(asked.tokens) <= FEW else FEW_STEPS}
    minimum = minimize(_loss, start, (drawn, asked), "L-BFGS-B", jac=True, callback=stop, options=options)
    return _with(drawn, minimum.x) if np.isfinite(minimum.x).all() else drawn


def _with(drawn: SoftmaxNetwork, flat: Floats) -> SoftmaxNetwork:
    """Return the network with the weights DRAWN taken from one flat array."""
    shapes = [getattr(drawn, name).shape for name in DRAWN]
    parts = np.split(flat, np.cumsum([np.prod(shape) for shape in shapes])[:-1])
    new: dict[str, Any] = {name: part.reshape(shape) for name, part, shape in zip(DRAWN, parts, shapes, strict=True)}
    return replace(drawn, **new)


def _loss(flat: Floats, drawn: SoftmaxNetwork, asked: Asked) -> tuple[float, Floats]:
    """Return the cross-entropy of the omitted contexts for the W of least norm, and its gradient.

    With F⁺ = QR⁻ᵀ from the factors Fᵀ = QR of the held contexts' features, W = F⁺Y, and a change dF changes W by
    −F⁺ dF W + (I − QQᵀ) dFᵀ (F⁺)ᵀW.
    """
    from scipy.linalg import solve_triangular

    held, others = len(asked.tokens), asked.others
    passed = Passed.through(_with(drawn, flat), np.vstack([asked.tokens, others.tokens]))
    F, rest = passed.features[:held], passed.features[held:]
    Q, R = np.linalg.qr(F.T)
    if not np.isfinite(R).all() or np.abs(np.diag(R)).min() < 1e-12 * np.abs(R).max():
        return np.inf, np.zeros_like(flat)
    W = Q @ solve_triangular(R, asked.targets, trans=1)
    logs = log_softmax(rest @ W @ asked.W_U)
    loss = -float(others.likelihoods @ (others.probabilities * logs).sum(axis=1))
    outputs = ((np.exp(logs) - others.probabilities) * others.likelihoods[:, None]) @ asked.W_U.T
    values = rest.T @ outputs
    through, along = solve_triangular(R, Q.T @ values), solve_triangular(R, Q.T @ W)
    slope = np.vstack([along @ (values - Q @ (Q.T @ values)).T - through @ W.T, outputs @ W.T])
    gradient = passed.back(np.asarray(slope, np.float64))
    return loss, np.concatenate([gradient[name].ravel() for name in DRAWN])


def shrunk(network: SoftmaxNetwork, task: NextTokenDistribution) -> tuple[SoftmaxNetwork, float]:
    """Return the network with W_U times the best factor from 0 to 1, and the factor; 1 unless uniform is better.

    The divergence is convex in the logits, and at factor 0 it is that of uniform answers. So the result is at most
    that, and at most the network's own.
    """
    from scipy.optimize import minimize_scalar

    assert task.tokens is not None
    assert network.W_U is not None
    logits = evaluate(network, (task.tokens, None))

    def diverges(factor: float) -> float:
        return divergence(factor * logits, task.probabilities, task.likelihoods)

    if diverges(1.0) <= diverges(0.0):
        return network, 1.0
    factor = float(minimize_scalar(diverges, bounds=(0, 1), method="bounded").x)
    factor = min((factor, 0.0), key=diverges)
    return network.with_tensor("W_U", factor * network.W_U), factor


@dataclass(frozen=True)
class Terms:
    """The measured terms of the bound on a distribution's divergence, in nats."""

    divergence: float
    """Divergence of the network, Σ_t π_t KL(p_t ‖ T_t) over all contexts."""
    uniform: float
    """Divergence of uniform answers."""
    encoder: float
    """Divergence of the best known sequence encoder; no network of this dimension is known to do better."""
    encoder_gap: float
    """γ: bound on the gain from better encodings for the encoder's unembedding, or from a better unembedding."""
    encoder_lower: float
    """Proved lower bound on the divergence of every encoder, and so every network, of this dimension. It is weak."""
    closed_bound: float
    """Our bound on the best encoder's divergence, with one λ for all contexts; useful for almost look-up tables."""
    theorem_2: float | None
    """The paper's bound on it, with one λ per context; None where it is void, up to d = 128 log(ω + 1)."""
    left_out: float
    """ε: probability of the omitted contexts."""
    norm: float
    """Largest singular value ‖WE‖₂ of the encoder's logits."""
    constant: float | None
    """Constant C of :class:`~byheart.constructions.dana_2025.solving.Spread`; None if nothing was omitted."""

    @property
    def excess(self) -> float:
        """Divergence of the network minus that of the encoder."""
        return self.divergence - self.encoder

    @property
    def stated(self) -> float | None:
        """Right-hand side of the theorem: encoder + C·ε·‖WE‖₂, with γ in the encoder's divergence."""
        return self._right_hand_side(1)

    @property
    def proved(self) -> float | None:
        """Right-hand side with √2 before the norm, which is always enough."""
        return self._right_hand_side(math.sqrt(2))

    @property
    def appendix(self) -> float | None:
        """Right-hand side with 2 before the norm, as in the appendix (equation 13)."""
        return self._right_hand_side(2)

    def _right_hand_side(self, factor: float) -> float | None:
        if self.constant is None:
            return None
        return self.encoder + factor * self.constant * self.left_out * self.norm

    def as_json(self) -> dict[str, object]:
        """Return the terms by name."""
        names = [field.name for field in fields(self)] + ["excess", "stated", "proved", "appendix"]
        return {name: None if (value := getattr(self, name)) is None else float(f"{value:.6g}") for name in names}


def terms(
    network: SoftmaxNetwork, task: NextTokenDistribution, encoder: Encoder, held: Ids, constant: float | None
) -> Terms:
    """Measure every term of the bound, in float64."""
    assert task.tokens is not None
    p, likelihoods = task.probabilities, task.likelihoods
    outside = ~np.isin(distinct(task.tokens).representatives, held)
    logits = evaluate(network, (task.tokens, None))
    closed, matched = closed_bounds(task, encoder.dim)
    return Terms(
        divergence=divergence(logits, p, likelihoods),
        uniform=divergence(np.zeros_like(p), p, likelihoods),
        encoder=encoder.divergence,
        encoder_gap=max(encoder.encodings_gap, encoder.unembedding_gap),
        encoder_lower=encoder.lower,
        closed_bound=closed,
        theorem_2=matched,
        left_out=float(likelihoods[outside].sum()),
        norm=encoder.norm,
        constant=constant,
    )


def closed_bounds(task: NextTokenDistribution, dim: int) -> tuple[float, float | None]:
    """Return our bound on the best encoder's divergence and the paper's (None if void), for almost look-up tables."""
    p, likelihoods = task.probabilities, task.likelihoods
    if p.shape[1] < 2 or dim < 1:
        return 0.0, None
    entropies = np.maximum(0, -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1))
    misses = np.clip(1 - p.max(axis=1), 0, 1)
    closed = almost_lookup(p.shape[1], dim, min(1.0, float(likelihoods @ misses)), float(likelihoods @ entropies))
    wrong = np.where(np.arange(p.shape[1]) == p.argmax(axis=1)[:, None], 0, p)
    spread = np.abs(wrong / np.where(misses > 0, misses, 1)[:, None] - 1 / (p.shape[1] - 1))
    uneven = (spread.sum(axis=1) - 1 / (p.shape[1] - 1)) / 2
    by_context = [
        entropy_matched(
            p.shape[1], 2 * coherence(p.shape[1], dim), float(miss), float(entropy), float(np.clip(tv, 0, 1))
        )
        for miss, entropy, tv in zip(misses, entropies, uneven, strict=True)
    ]
    matched = math.inf if math.inf in by_context else float(likelihoods @ np.array(by_context))
    return closed, matched if math.isfinite(matched) else None

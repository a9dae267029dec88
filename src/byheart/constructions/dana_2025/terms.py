"""Measure the terms of Theorem 1's bound."""

import math
from dataclasses import dataclass, fields

import numpy as np

from byheart.bounds.dana_2025 import almost_lookup, coherence, entropy_matched
from byheart.constructions.gadgets.encoder import Encoder, divergence
from byheart.networks.softmax import SoftmaxNetwork, evaluate
from byheart.tasks import NextTokenDistribution
from byheart.tasks.arrays import Ids
from byheart.tasks.distinct import distinct


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

"""The terms of Theorem 1's bound, measured."""

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
    """The terms of the bound on a distribution's divergence, as they are measured (in nats)."""

    divergence: float
    """Σ_t π_t KL(p_t ‖ T_t) of the network, over all contexts."""
    uniform: float
    """The same of uniform answers."""
    encoder: float
    """The same of the best sequence encoder known: no network of this dimension is known to do better."""
    encoder_gap: float
    """γ: with its unembedding no encodings, and with its encodings no unembedding, are better by more than this."""
    encoder_lower: float
    """Proved: no encoder of this dimension, and so no network, has a smaller divergence. Weak, but a theorem."""
    closed_bound: float
    """Some encoder of this dimension has at most this, useful for almost look-up tables: ours, by one λ for all."""
    theorem_2: float | None
    """The same as the paper has it, by one λ for each context; None where it says nothing, up to d = 128 log(ω + 1)."""
    left_out: float
    """ε: the probability of the contexts that were omitted."""
    norm: float
    """‖WE‖₂, the largest singular value of the encoder's logits."""
    constant: float | None
    """C, see :class:`~byheart.constructions.dana_2025.solving.Spread`; None where nothing was omitted."""

    @property
    def excess(self) -> float:
        """How much worse the network is than the encoder."""
        return self.divergence - self.encoder

    @property
    def stated(self) -> float | None:
        """The right-hand side as the theorem has it: encoder + C·ε·‖WE‖₂, the encoder's own γ in its divergence."""
        return self._right_hand_side(1)

    @property
    def proved(self) -> float | None:
        """The same with √2 before the norm, which is always enough."""
        return self._right_hand_side(math.sqrt(2))

    @property
    def appendix(self) -> float | None:
        """The same with 2, as the appendix has it (equation 13)."""
        return self._right_hand_side(2)

    def _right_hand_side(self, factor: float) -> float | None:
        if self.constant is None:
            return None
        return self.encoder + factor * self.constant * self.left_out * self.norm

    def as_json(self) -> dict[str, object]:
        """The terms by name."""
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
    """For almost look-up tables: our bound on the best encoder's divergence, and the paper's, None if it has none."""
    p, likelihoods = task.probabilities, task.likelihoods
    if p.shape[1] < 2 or dim < 1:
        return 0.0, None
    entropies = np.maximum(0, -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1))
    misses = np.clip(1 - p.max(axis=1), 0, 1)
    closed = almost_lookup(p.shape[1], dim, min(1.0, float(likelihoods @ misses)), float(likelihoods @ entropies))
    wrong = np.where(np.arange(p.shape[1]) == p.argmax(axis=1)[:, None], 0, p)
    spread = np.abs(wrong / np.where(misses > 0, misses, 1)[:, None] - 1 / (p.shape[1] - 1))
    uneven = (spread.sum(axis=1) - 1 / (p.shape[1] - 1)) / 2
    each = [
        entropy_matched(
            p.shape[1], 2 * coherence(p.shape[1], dim), float(miss), float(entropy), float(np.clip(tv, 0, 1))
        )
        for miss, entropy, tv in zip(misses, entropies, uneven, strict=True)
    ]
    matched = math.inf if math.inf in each else float(likelihoods @ np.array(each))
    return closed, matched if math.isfinite(matched) else None

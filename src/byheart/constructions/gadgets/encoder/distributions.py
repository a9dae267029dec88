"""What an encoder is asked: the distributions of contexts, with weights; and how far logits are from them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from byheart.tasks.arrays import Flags, Floats, as_distribution, as_distributions

FLOOR = 1e-15
"""Logarithms are of probabilities raised to this."""


@dataclass(frozen=True, eq=False)
class ContextDistributions:
    """Distributions [N, ω] with weights [N]; ``asked`` are the contexts with positive weight."""

    every: Floats
    pi_every: Floats

    @classmethod
    def checked(cls, probabilities: ArrayLike, weights: ArrayLike) -> "ContextDistributions":
        """Refuse rows that are not distributions; sums that are only nearly 1 become 1."""
        P = as_distributions("probabilities", probabilities, ("N", "C"))
        pi = as_distribution("weights", weights, len(P))
        return cls(P / P.sum(axis=1, keepdims=True), pi / pi.sum())

    @cached_property
    def asked(self) -> Flags:
        """Contexts with a probability above 0, as flags [N]."""
        return self.pi_every > 0

    @cached_property
    def P(self) -> Floats:
        """The distributions that are asked."""
        return self.every[self.asked]

    @cached_property
    def pi(self) -> Floats:
        """Their weights."""
        return self.pi_every[self.asked]


def divergence(logits: ArrayLike, probabilities: ArrayLike, weights: ArrayLike) -> float:
    """Σ_t π_t KL(p_t ‖ softmax(L_t)) in nats, from logits [N, ω], probabilities [N, ω] and weights [N].

    Summed as p(r − 1 − log r) with r = q/p (q where p is 0, or so small that r might overflow): no term is negative,
    none cancels.

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
    """The logarithm of the softmax of every row."""
    L = L - L.max(axis=1, keepdims=True)
    return np.asarray(L - np.log(np.exp(L).sum(axis=1, keepdims=True)), np.float64)


def centred(rows: Floats) -> Floats:
    """Every row without its mean."""
    return np.asarray(rows - rows.mean(axis=1, keepdims=True), np.float64)


def log_probabilities(P: Floats, floor: float) -> Floats:
    """Centred logits whose softmax is P, up to what the floor changes."""
    return centred(np.log(np.maximum(P, floor)))


def covariance(S: Floats, A: Floats) -> Floats:
    """(diag s − s sᵀ)a for every row: what the softmax s changes by when its logits change by a."""
    return np.asarray(S * (A - (S * A).sum(axis=1, keepdims=True)), np.float64)

"""Zero probabilities, where the infimum need not be attained."""

import numpy as np
import pytest

from byheart.constructions.gadgets.encoder import best_encoder

from .small import is_consistent, minimised, plain_divergence, rng, tensor


def test_zeros_with_enough_dimensions() -> None:
    P = np.array([[0.5, 0.5, 0, 0], [0, 0, 0, 1], [0.25, 0.25, 0.25, 0.25]])
    found = best_encoder(P, [0.5, 0.25, 0.25], 3, rng=rng())
    assert 0 < found.divergence < 1e-14
    assert found.norm < 100
    is_consistent(found, P, np.array([0.5, 0.25, 0.25]))


@pytest.mark.parametrize("dim", [2, 3])
def test_lookup_tables_come_near_zero(dim: int) -> None:
    """Tokens on a circle are the maximum each in its own direction: the infimum is 0, attained nowhere."""
    P, weights = np.eye(8), np.full(8, 1 / 8)
    found = best_encoder(P, weights, dim, rng=rng(), restarts=1)
    assert 0 < found.divergence < 1e-6
    assert np.isfinite(found.logits).all()
    assert (found.logits.argmax(axis=1) == np.arange(8)).all()
    is_consistent(found, P, weights)


def test_zeros_and_too_few_dimensions() -> None:
    P = np.array([[0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5], [0.5, 0, 0, 0.5], [0.5, 0, 0.5, 0]])
    weights = np.full(5, 0.2)
    found = best_encoder(P, weights, 1, rng=rng())
    assert found.divergence > 0.1
    assert found.lower == 0
    assert np.isfinite(found.logits).all()
    is_consistent(found, P, weights)
    smoothed = (P + 1e-7) / (1 + 4e-7)
    E, W = tensor(found.encodings * 0.01), tensor(found.W_U)
    other = minimised(lambda: plain_divergence(E @ W.detach(), smoothed, weights), [E])
    assert other >= found.divergence - found.encodings_gap - 1e-4

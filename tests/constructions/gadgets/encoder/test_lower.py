"""A bound that must be true of all encoders, and near for some."""

import numpy as np

from byheart.constructions.gadgets.encoder import best_encoder

from .small import random_task, rng


def test_lower_bound_is_true_of_many() -> None:
    """No encoder, however found, is below: random planes with their best encodings, and the best one."""
    for seed in range(30):
        P, weights = random_task(6, 4, seed, concentration=3.0)
        for dim in (1, 2):
            found = best_encoder(P, weights, dim, rng=rng(seed), restarts=0)
            assert 0 < found.lower <= found.divergence


def test_lower_bound_is_near_for_near_uniform_tasks() -> None:
    """Near uniform, KL is ‖Δ‖²/2ω and Eckart–Young is the answer; 2 + |x| in place of 2 costs little."""
    noise = rng().standard_normal((30, 6)) * 1e-3
    P = np.exp(noise) / np.exp(noise).sum(axis=1, keepdims=True)
    found = best_encoder(P, np.full(30, 1 / 30), 2, rng=rng(), restarts=0)
    assert 0.95 * found.divergence < found.lower < found.divergence

"""The best encoder: cases by hand and by grid, closed forms, invariances, zeros, and another optimiser."""

import math

import numpy as np
import pytest
import torch

from byheart.constructions.gadgets.encoder import ContextDistributions, best_encoder, divergence, lower_bound
from byheart.errors import BadInput

from .encoders import Reals, is_consistent, judged, minimised, plain_divergence, random_task, rng, tensor


def test_two_tokens_need_one_dimension() -> None:
    """ω = 2: the logits (e, −e)/2 with e = log p(0)/p(1) are exact; W_U and E are a balanced cut of them."""
    P = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
    found = best_encoder(P, [0.2, 0.3, 0.5], 1, rng=rng())
    assert found.logits == pytest.approx(np.log(P[:, :1] / P[:, 1:]) / 2 * [[1, -1]], abs=1e-14)
    assert found.divergence < 1e-30
    assert np.linalg.norm(found.W_U) == pytest.approx(np.linalg.norm(found.encodings))


def test_three_tokens_on_a_line() -> None:
    """p_t = 0.8 at token t, 0.1 elsewhere. The line is (1, −1, 0), up to symmetry.

    The third context gets e = 0, uniform: log 3 − H. The first two get s with s₀ − s₁ = 0.8 − 0.1 and s₀s₁ = s₂²: with
    a = s₁ that is (a + 0.7)a = (0.3 − 2a)², 3a² − 1.9a + 0.09 = 0, a = (1.9 − √2.53)/6.
    """
    a = (1.9 - math.sqrt(2.53)) / 6
    two = 0.8 * math.log(0.8 / (a + 0.7)) + 0.1 * math.log(0.1 / a) + 0.1 * math.log(0.1 / (0.3 - 2 * a))
    third = math.log(3) + 0.8 * math.log(0.8) + 0.2 * math.log(0.1)
    P = np.eye(3) * 0.7 + 0.1
    found = best_encoder(P, np.full(3, 1 / 3), 1, rng=rng())
    assert found.divergence == pytest.approx((2 * two + third) / 3, abs=1e-12)
    line = np.sort(np.abs(found.W_U[0] / np.abs(found.W_U).max()))
    assert line == pytest.approx([0, 1, 1], abs=1e-7)
    is_consistent(found, P, np.full(3, 1 / 3))


def best_line(P: Reals, weights: Reals, angles: int) -> float:
    """ω = 3, d = 1 by grid: all lines in 1^⊥, and on each every context's e by bisection of the monotone derivative."""
    theta = np.linspace(0, np.pi, angles, endpoint=False)
    basis = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    W = np.stack([np.cos(theta), np.sin(theta)], axis=1) @ basis
    low, high = np.full((angles, len(P)), -200.0), np.full((angles, len(P)), 200.0)
    for _ in range(70):
        e = (low + high) / 2
        S = np.exp(e[:, :, None] * W[:, None, :] - np.abs(e[:, :, None]))
        rising = (W[:, None, :] * (S / S.sum(axis=2, keepdims=True) - P)).sum(axis=2) > 0
        low, high = np.where(rising, low, e), np.where(rising, e, high)
    return min(divergence(e[k][:, None] * W[k], P, weights) for k in range(angles))


@pytest.mark.parametrize("seed", range(3))
def test_three_tokens_against_a_grid(seed: int) -> None:
    P, weights = random_task(4, 3, seed)
    found = best_encoder(P, weights, 1, rng=rng())
    grid = best_line(P, weights, angles=3000)
    assert found.divergence <= grid + 1e-12
    assert found.divergence == pytest.approx(grid, abs=1e-5)
    assert lower_bound(ContextDistributions.checked(P, weights), 1) < grid


def test_smallest_case() -> None:
    found = best_encoder([[0.25, 0.75]], [1], 1, rng=rng())
    assert found.divergence < 1e-30
    assert found.norm == pytest.approx(math.log(3) / math.sqrt(2))


def test_one_token() -> None:
    assert best_encoder([[1.0], [1.0]], [0.5, 0.5], 1, rng=rng()).divergence == 0


def test_dimension_zero_is_uniform() -> None:
    P, weights = random_task(7, 5)
    found = best_encoder(P, weights, 0, rng=rng())
    assert found.divergence == pytest.approx(math.log(5) + weights @ (P * np.log(P)).sum(axis=1), abs=1e-14)
    assert found.norm == 0
    is_consistent(found, P, weights)


@pytest.mark.parametrize(("contexts", "vocab", "dim"), [(9, 5, 4), (9, 5, 6), (3, 8, 3), (3, 8, 20)])
def test_enough_dimensions_are_exact(contexts: int, vocab: int, dim: int) -> None:
    P, weights = random_task(contexts, vocab)
    found = best_encoder(P, weights, dim, rng=rng())
    assert found.divergence < 1e-28
    assert found.lower == 0
    is_consistent(found, P, weights)


def test_low_rank_tasks_are_found_exact() -> None:
    draw = rng()
    L = draw.standard_normal((30, 3)) @ draw.standard_normal((3, 10))
    P = np.exp(L) / np.exp(L).sum(axis=1, keepdims=True)
    weights = np.full(30, 1 / 30)
    assert best_encoder(P, weights, 3, rng=rng()).divergence < 1e-25
    assert best_encoder(P, weights, 2, rng=rng()).divergence > 1e-2


def test_permutations_change_nothing() -> None:
    P, weights = random_task(12, 6, seed=3)
    contexts, tokens = rng(1).permutation(12), rng(2).permutation(6)
    one = best_encoder(P, weights, 2, rng=rng())
    other = best_encoder(P[contexts][:, tokens], weights[contexts], 2, rng=rng())
    assert one.divergence == pytest.approx(other.divergence, abs=1e-9)
    assert one.lower == pytest.approx(other.lower, abs=1e-12)
    same = judged(P[contexts][:, tokens], weights[contexts], one.W_U[:, tokens], one.encodings[contexts])
    assert same.divergence == pytest.approx(one.divergence, abs=1e-14)


def test_contexts_without_weight_and_doubled_ones() -> None:
    P, weights = random_task(10, 5, seed=4)
    one = best_encoder(P, weights, 2, rng=rng())
    more = np.vstack([P, P[:3], rng(9).dirichlet(np.ones(5), size=4)])
    split = np.concatenate([weights, weights[:3] / 3, np.zeros(4)])
    split[:3] *= 2 / 3
    other = best_encoder(more, split, 2, rng=rng())
    assert other.divergence == pytest.approx(one.divergence, abs=1e-9)
    assert other.encodings.shape == (17, 2)
    # Contexts without weight are encoded as well as this W_U can.
    alone = best_encoder(more, np.eye(17)[15], 5, rng=rng())
    assert alone.divergence < 1e-28
    unasked = divergence(other.logits[15:16], more[15:16], [1])
    target, W_U, e = more[15:16], torch.from_numpy(other.W_U), tensor(np.zeros((1, 2)))
    assert unasked == pytest.approx(minimised(lambda: plain_divergence(e @ W_U, target, np.ones(1)), [e]), abs=1e-9)


def test_same_seed_same_encoder() -> None:
    P, weights = random_task(10, 6)
    one, other = (best_encoder(P, weights, 2, rng=rng(5)) for _ in range(2))
    assert np.array_equal(one.logits, other.logits)


def test_report_counts_the_starts() -> None:
    P, weights = random_task(6, 4)
    calls: list[tuple[int, int]] = []
    best_encoder(P, weights, 1, rng=rng(), restarts=2, report=lambda *call: calls.append(call))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(("contexts", "vocab", "dim"), [(6, 4, 1), (8, 5, 2), (5, 7, 3)])
def test_another_optimiser_finds_nothing_better(contexts: int, vocab: int, dim: int) -> None:
    P, weights = random_task(contexts, vocab, seed=dim)
    found = best_encoder(P, weights, dim, rng=rng())
    ends, draw = [], rng(1)
    for _ in range(8):
        E, W = tensor(draw.standard_normal((contexts, dim))), tensor(draw.standard_normal((dim, vocab)))
        ends.append(minimised(lambda E=E, W=W: plain_divergence(E @ W, P, weights), [E, W]))
    assert found.divergence <= min(ends) + 1e-9
    assert found.divergence == pytest.approx(min(ends), abs=1e-6)
    assert found.lower < min(ends)


def test_refusals_of_settings() -> None:
    with pytest.raises(BadInput, match="restarts is -1"):
        best_encoder([[0.5, 0.5]], [1], 1, rng=rng(), restarts=-1)


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


def test_divergence_by_the_definition() -> None:
    P, weights = random_task(5, 4)
    L = rng(1).standard_normal((5, 4)) * 3
    assert divergence(L, P, weights) == pytest.approx(plain_divergence(torch.from_numpy(L), P, weights).item())
    assert divergence([[1000.0, 0.0]], [[1.0, 0.0]], [1.0]) == 0
    assert divergence([[0.0, 1000.0]], [[1.0, 0.0]], [1.0]) == pytest.approx(1000)


def test_divergence_of_the_smallest_probability() -> None:
    """q/p = 0.5/2⁻¹⁰⁷⁴ has no float64; the divergence of (2⁻¹⁰⁷⁴, 1) from a half each is log 2 all the same."""
    assert divergence([[0.0, 0.0]], [[2.0**-1074, 1.0]], [1.0]) == pytest.approx(math.log(2), abs=1e-15)


@pytest.mark.parametrize(
    ("probabilities", "weights", "dim", "message"),
    [
        ([[0.5, 0.5]], [0.9], 1, "weights sum to 0.9; expected 1"),
        ([[0.5, 0.5]] * 2, [1.5, -0.5], 1, r"weights\[1\] is -0.5; expected 0 or more"),
        ([[0.5, 0.5], [0.5, 0.6]], [0.5, 0.5], 1, r"probabilities\[1\] sums to 1.1; expected 1"),
        ([[1.5, -0.5]], [1], 1, r"probabilities\[0, 1\] is -0.5"),
        ([[np.nan, 1.0]], [1], 1, r"probabilities\[0, 0\] is nan"),
        ([0.5, 0.5], [1], 1, r"probabilities has shape \(2,\)"),
        ([[0.5, 0.5]], [0.5, 0.5], 1, r"weights has shape \(2,\); expected \[1\]"),
        ([[0.5, 0.5]], [1], -1, "dim is -1; expected at least 0"),
    ],
)
def test_refusals(probabilities: list[object], weights: list[float], dim: int, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        best_encoder(probabilities, weights, dim, rng=rng())

"""Gaps that must be true, against another optimiser and whatever the rounding; and a bound that all encoders obey."""

import numpy as np
import pytest
import torch

from byheart.constructions.gadgets import encoder as judge
from byheart.constructions.gadgets.encoder import best_encoder

from .encoders import Reals, judged, minimised, plain_divergence, random_task, rng, tensor


@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.03])
@pytest.mark.parametrize("seed", range(3))
def test_gaps_are_true(noise: float, seed: int) -> None:
    """With one factor fixed the other optimiser never goes below divergence − gap; and the gaps are not idle."""
    P, weights = random_task(9, 6, seed)
    found = best_encoder(P, weights, 2, rng=rng(), restarts=1)
    draw = rng(seed + 100)
    W_U = found.W_U + noise * draw.standard_normal(found.W_U.shape)
    encodings = found.encodings + noise * draw.standard_normal(found.encodings.shape)
    seen = judged(P, weights, W_U, encodings)
    E, W = tensor(seen.encodings), tensor(seen.W_U)
    best_E = minimised(lambda: plain_divergence(E @ W.detach(), P, weights), [E])
    E, W = tensor(seen.encodings), tensor(seen.W_U)
    best_W = minimised(lambda: plain_divergence(E.detach() @ W, P, weights), [W])
    for best, gap in ((best_E, seen.encodings_gap), (best_W, seen.unembedding_gap)):
        possible = seen.divergence - best
        assert possible <= gap + 1e-12
        assert gap <= 1.5 * possible + 1e-12


@pytest.mark.parametrize("rounds", [1, 20])
@pytest.mark.parametrize("seed", range(6))
def test_gaps_are_true_far_away(seed: int, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wild encoders: Newton's step leaves the simplex, and what is certified may be little, but is true."""
    monkeypatch.setattr(judge, "MOST_ROUNDS", rounds)
    P, weights = random_task(9, 6, seed, concentration=0.3)
    draw = rng(seed)
    seen = judged(P, weights, draw.standard_normal((2, 6)), draw.standard_normal((9, 2)) * 4.0**seed)
    E, W = tensor(np.zeros((9, 2))), torch.from_numpy(seen.W_U)
    assert minimised(lambda: plain_divergence(E @ W, P, weights), [E]) >= seen.divergence - seen.encodings_gap - 1e-10
    E, W = torch.from_numpy(seen.encodings), tensor(np.zeros((2, 6)))
    assert minimised(lambda: plain_divergence(E @ W, P, weights), [W]) >= seen.divergence - seen.unembedding_gap - 1e-10


@pytest.mark.parametrize("scale", [16.0, 256.0, 1024.0, 1e6])
@pytest.mark.parametrize(("contexts", "vocab", "dim"), [(9, 6, 2), (20, 12, 4), (8, 16, 6), (60, 16, 8)])
def test_steps_far_away_stay_finite(contexts: int, vocab: int, dim: int, scale: float) -> None:
    """Softmaxes of 10⁻¹⁰⁰ and of 0: no step overflows (a warning is an error), and no gap exceeds the divergence."""
    for seed in range(4):
        P, weights = random_task(contexts, vocab, seed, concentration=0.3)
        draw = rng(seed)
        W_U, encodings = draw.standard_normal((dim, vocab)), draw.standard_normal((contexts, dim)) * scale
        seen = judged(P, weights, W_U, encodings)
        assert 0 <= seen.encodings_gap <= seen.divergence
        assert 0 <= seen.unembedding_gap <= seen.divergence


@pytest.mark.parametrize(("small", "noise"), [(1, 0), (1e-300, 0), (1, 3.0)])
def test_steps_end_where_rounding_is_all_that_is_left(
    small: float, noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No solution; next to no curvature, so that steps are long; products that are all wrong. Nothing overflows."""
    draw, covariance = rng(), judge.covariance
    S = judge._raised(np.where(draw.random((30, 40)) < 0.5, 0, draw.random((30, 40))))
    B, wanted = judge.basis(draw.standard_normal((30, 10))) * np.sqrt(30), draw.standard_normal((40, 10))
    monkeypatch.setattr(
        judge, "covariance", lambda S, A: covariance(S, A) * (small + noise * draw.standard_normal(A.shape))
    )
    assert np.isfinite(judge._joint_step(S, B, B / 30, wanted)).all()


def test_distributions_and_what_is_left_of_them() -> None:
    Q = np.array([[0.5, 0.5], [0.5, 0.6], [1.5, -0.5], [-1.0, -1.0], [np.nan, 1.0]])
    assert judge._distributions(Q).tolist() == [True, False, False, False, False]
    base = np.full((3, 2), 0.5)
    assert judge._supported(base, Q[[0, 2, 3]]).tolist() == [[0.5, 0.5], [1, 0], [0, 0]]


@pytest.mark.parametrize("noise", [1e-16, 1e-9, 1e-2, 3.0])
@pytest.mark.parametrize("scale", [0.1, 4.0, 1024.0])
def test_gaps_are_true_whatever_the_rounding(noise: float, scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding far worse than any: what a step computes is off by random factors. What passes the checks is true."""
    P, weights = random_task(9, 6, concentration=0.3)
    draw = rng(1)
    W_U, encodings = draw.standard_normal((2, 6)), draw.standard_normal((9, 2)) * scale
    covariance, inverse_root = judge.covariance, judge._inverse_root

    def rounded(values: Reals) -> Reals:
        return values * (1 + noise * draw.standard_normal(values.shape))

    monkeypatch.setattr(judge, "covariance", lambda S, A: rounded(covariance(S, A)))
    monkeypatch.setattr(judge, "_inverse_root", lambda blocks: rounded(inverse_root(blocks)))
    seen = judged(P, weights, W_U, encodings)
    E, W = tensor(np.zeros((9, 2))), torch.from_numpy(seen.W_U)
    assert minimised(lambda: plain_divergence(E @ W, P, weights), [E]) >= seen.divergence - seen.encodings_gap - 1e-10
    E, W = torch.from_numpy(seen.encodings), tensor(np.zeros((2, 6)))
    assert minimised(lambda: plain_divergence(E @ W, P, weights), [W]) >= seen.divergence - seen.unembedding_gap - 1e-10


def test_unsolved_equations_certify_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    P, weights = random_task(9, 6)
    found = best_encoder(P, weights, 2, rng=rng(), restarts=0)
    W_U, encodings = found.W_U * 1.1, found.encodings
    seen = judged(P, weights, W_U, encodings)
    assert max(seen.encodings_gap, seen.unembedding_gap) < seen.divergence / 10
    monkeypatch.setattr(judge, "_inverse_root", np.zeros_like)
    blind = judged(P, weights, W_U, encodings)
    assert [blind.encodings_gap, blind.unembedding_gap] == pytest.approx([seen.divergence] * 2)


def test_gaps_say_something_with_zeros() -> None:
    counts = rng(2).integers(1, 4, size=(30, 6)) * (rng(3).random((30, 6)) < 0.4) + np.eye(6)[np.arange(30) % 6]
    P, weights = counts / counts.sum(axis=1, keepdims=True), np.full(30, 1 / 30)
    found = best_encoder(P, weights, 2, rng=rng(), restarts=1)
    assert found.divergence > 0.1
    assert found.encodings_gap < 0.02 * found.divergence
    assert found.unembedding_gap < 0.02 * found.divergence


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

"""Best sequence encoders: cases by hand and by grid, closed forms, another optimiser, and bounds that must be true."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from byheart.constructions.gadgets import encoder
from byheart.constructions.gadgets.encoder import Encoder, best_encoder, divergence, judged, lower_bound, sweep
from byheart.errors import BadInput

Reals = NDArray[np.float64]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def random_task(contexts: int, vocab: int, seed: int = 0, concentration: float = 1.0) -> tuple[Reals, Reals]:
    draw = rng(seed)
    return draw.dirichlet(np.full(vocab, concentration), size=contexts), draw.dirichlet(np.full(contexts, 5.0))


def plain_divergence(L: torch.Tensor, P: Reals, weights: Reals) -> torch.Tensor:
    """Σ π (Σ p log p − Σ p log softmax), as the definition says it; no zeros in P."""
    target = torch.from_numpy(P)
    return (torch.from_numpy(weights)[:, None] * target * (target.log() - L.log_softmax(dim=1))).sum()


def minimised(loss: Callable[[], torch.Tensor], tensors: list[torch.Tensor]) -> float:
    """Another optimiser: PyTorch's L-BFGS."""
    optimiser = torch.optim.LBFGS(
        tensors, max_iter=400, tolerance_grad=1e-9, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        value = loss()
        value.backward()
        return value

    optimiser.step(closure)
    return loss().item()


def tensor(values: object) -> torch.Tensor:
    return torch.tensor(np.array(values), dtype=torch.float64, requires_grad=True)


def is_consistent(found: Encoder, P: Reals, weights: Reals) -> None:
    """What an encoder says of itself, computed again."""
    assert found.encodings.shape == (len(P), found.dim)
    assert found.W_U.shape == (found.dim, P.shape[1])
    assert found.divergence == pytest.approx(divergence(found.logits, P, weights), abs=1e-14)
    assert found.logits.sum(axis=1) == pytest.approx(0, abs=1e-8 * max(1, found.norm))
    assert found.norm == pytest.approx(np.linalg.norm(found.logits, 2), rel=1e-9, abs=1e-12)
    assert 0 <= found.lower <= found.divergence + 1e-15
    assert 0 <= found.encodings_gap <= found.divergence
    assert 0 <= found.unembedding_gap <= found.divergence
    assert list(found.reached) == sorted(found.reached)
    assert found.divergence <= found.reached[0] + 1e-12


# By hand, and by grid.


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
    assert lower_bound(P, weights, 1) < grid


def test_smallest_case() -> None:
    found = best_encoder([[0.25, 0.75]], [1], 1, rng=rng())
    assert found.divergence < 1e-30
    assert found.norm == pytest.approx(math.log(3) / math.sqrt(2))


def test_one_token() -> None:
    assert best_encoder([[1.0], [1.0]], [0.5, 0.5], 1, rng=rng()).divergence == 0


# Closed forms.


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


# Properties.


def test_sweep_is_monotone_and_converged() -> None:
    P, weights = random_task(40, 8)
    found = sweep(P, weights, range(8), rng=rng())
    values = [found[dim].divergence for dim in range(8)]
    assert values == sorted(values, reverse=True)
    assert values[7] < 1e-28
    for one in found.values():
        is_consistent(one, P, weights)
        assert one.encodings_gap < 1e-13
        assert one.unembedding_gap < 1e-13
    assert all(found[dim].gradient < 1e-8 for dim in range(1, 8))
    assert all(found[dim].lower > 0 for dim in range(7))


def test_sweep_with_holes_and_sparse_rows() -> None:
    P = np.eye(6)[rng().integers(6, size=30)]
    found = sweep(P, np.full(30, 1 / 30), [5, 1, 3, 1], rng=rng(), restarts=1)
    assert list(found) == [1, 3, 5]
    assert found[1].divergence >= found[3].divergence >= found[5].divergence


def test_sweep_falls_back_on_the_smaller_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """From dimension 3 on all starts end badly: at no plane at all, with uniform answers."""
    P, weights = random_task(40, 8)

    def bad(*given: object) -> Reals:
        return np.eye(8)[:, :2] if given[-1] == 2 else np.zeros((8, 3))

    for name in ("_svd_plane", "_widened"):
        monkeypatch.setattr(encoder, name, bad)
    monkeypatch.setattr(encoder, "FULLY", (1e-9, 0))
    monkeypatch.setattr(encoder, "ROUGHLY", (1e-5, 0))
    alone = best_encoder(P, weights, 3, rng=rng(), restarts=0)
    found = sweep(P, weights, [2, 3], rng=rng(), restarts=0)
    assert alone.divergence > found[2].divergence
    assert found[3].divergence == pytest.approx(found[2].divergence, abs=1e-14)
    assert found[3].W_U.shape == (3, 8)
    is_consistent(found[3], P, weights)


def test_permutations_change_nothing() -> None:
    P, weights = random_task(12, 6, seed=3)
    contexts, tokens = rng(1).permutation(12), rng(2).permutation(6)
    one = best_encoder(P, weights, 2, rng=rng())
    other = best_encoder(P[contexts][:, tokens], weights[contexts], 2, rng=rng())
    assert one.divergence == pytest.approx(other.divergence, abs=1e-9)
    assert one.lower == pytest.approx(other.lower, abs=1e-12)
    same = judged(P[contexts][:, tokens], weights[contexts], one.W_U[:, tokens], one.encodings[contexts])
    assert same.divergence == pytest.approx(one.divergence, abs=1e-14)
    assert same.gradient == pytest.approx(one.gradient, abs=1e-12)


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
    assert one.reached == other.reached


def test_report_counts_the_starts() -> None:
    P, weights = random_task(6, 4)
    calls: list[tuple[int, int]] = []
    found = best_encoder(P, weights, 1, rng=rng(), restarts=2, report=lambda *call: calls.append(call))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert len(found.reached) == 4
    assert 1 <= found.agreeing <= 4


def test_sweep_beyond_what_is_needed() -> None:
    P, weights = random_task(9, 4)
    found = sweep(P, weights, [0, 2, 3, 4, 12], rng=rng(), restarts=0)
    assert found[12].W_U.shape == (12, 4)
    assert found[12].divergence <= found[4].divergence <= found[3].divergence < 1e-28
    assert not found[12].W_U[3:].any()


# Against another optimiser.


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


@pytest.mark.parametrize("seed", range(6))
def test_gaps_are_true_far_away(seed: int) -> None:
    """Wild encoders: Newton's step leaves the simplex, and what is certified may be little, but is true."""
    P, weights = random_task(9, 6, seed, concentration=0.3)
    draw = rng(seed)
    seen = judged(P, weights, draw.standard_normal((2, 6)), draw.standard_normal((9, 2)) * 4.0**seed)
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
    monkeypatch.setattr(np.linalg, "pinv", lambda H, **_: 0 * H)
    blind = judged(P, weights, W_U, encodings)
    assert [blind.encodings_gap, blind.unembedding_gap] == pytest.approx([seen.divergence] * 2)


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


# Zero probabilities.


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


def test_gaps_say_something_with_zeros() -> None:
    counts = rng(2).integers(1, 4, size=(30, 6)) * (rng(3).random((30, 6)) < 0.4) + np.eye(6)[np.arange(30) % 6]
    P, weights = counts / counts.sum(axis=1, keepdims=True), np.full(30, 1 / 30)
    found = best_encoder(P, weights, 2, rng=rng(), restarts=1)
    assert found.divergence > 0.1
    assert found.encodings_gap < 0.02 * found.divergence
    assert found.unembedding_gap < 0.02 * found.divergence


def test_divergence_by_the_definition() -> None:
    P, weights = random_task(5, 4)
    L = rng(1).standard_normal((5, 4)) * 3
    assert divergence(L, P, weights) == pytest.approx(plain_divergence(torch.from_numpy(L), P, weights).item())
    assert divergence([[1000.0, 0.0]], [[1.0, 0.0]], [1.0]) == 0
    assert divergence([[0.0, 1000.0]], [[1.0, 0.0]], [1.0]) == pytest.approx(1000)


# Refusals.


@pytest.mark.parametrize(
    ("probabilities", "weights", "dim", "message"),
    [
        ([[0.5, 0.5]], [0.9], 1, "sum 0.9; expected no negative entry and sum 1"),
        ([[0.5, 0.5]] * 2, [1.5, -0.5], 1, "smallest entry -0.5"),
        ([[0.5, 0.5], [0.5, 0.6]], [0.5, 0.5], 1, r"probabilities\[1\] has smallest entry 0.5 and sum 1.1"),
        ([[1.5, -0.5]], [1], 1, r"probabilities\[0\] has smallest entry -0.5"),
        ([[np.nan, 1.0]], [1], 1, r"probabilities\[0\]"),
        ([0.5, 0.5], [1], 1, "expected \\[contexts, tokens\\]"),
        ([[0.5, 0.5]], [0.5, 0.5], 1, "one for each of the 1 contexts"),
        ([[0.5, 0.5]], [1], -1, "dim is -1; expected at least 0"),
    ],
)
def test_refusals(probabilities: list[object], weights: list[float], dim: int, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        best_encoder(probabilities, weights, dim, rng=rng())
    with pytest.raises(BadInput, match=message):
        sweep(probabilities, weights, [2, dim], rng=rng())
    with pytest.raises(BadInput, match=message):
        lower_bound(probabilities, weights, dim)


def test_refusals_of_settings() -> None:
    with pytest.raises(BadInput, match="restarts is -1"):
        best_encoder([[0.5, 0.5]], [1], 1, rng=rng(), restarts=-1)
    with pytest.raises(BadInput, match=r"expected \[d, 2\] and \[1, d\]"):
        judged([[0.5, 0.5]], [1], [[1, 2, 3]], [[1]])

"""Theorem 1, ε > 0: likely contexts exact, all below the right-hand side, and never worse than uniform."""

import math
from typing import Any

import numpy as np
import pytest

import byheart
from byheart.constructions.dana_2025 import DanaSettings, associations, omitted
from byheart.constructions.dana_2025.associations import demand, shape_of
from byheart.constructions.dana_2025.solving import DRAWN, Asked, Spread, draw, features, fits
from byheart.constructions.gadgets.encoder import best_encoder, divergence
from byheart.constructions.gadgets.linear_system import factor
from byheart.networks.softmax import SoftmaxNetwork, evaluate
from byheart.tasks import NextTokenDistribution

from .small import Floats, built, distributions, network_of, number

SHAPES = [(16, 2, 4, 2), (36, 2, 6, 3), (36, 2, 6, 5), (30, 3, 5, 3), (30, 2, 8, 2)]
"""N, n, ω, d"""
FAST = 10


def each(logits: Floats, p: Floats) -> Floats:
    """KL(p ‖ softmax(logits)), context by context."""
    return np.array([divergence([row], [own], [1.0]) for row, own in zip(logits, p, strict=True)])


@pytest.mark.parametrize("seed", [s if s < FAST else pytest.param(s, marks=pytest.mark.slow) for s in range(50)])
def test_fifty_random_tasks(seed: int) -> None:
    """Five shapes, four ε and both ways to find W_O, in turn; the statement in balls, as measured in floats."""
    examples, length, vocab, d = SHAPES[seed % 5]
    epsilon, solve_by = (0.01, 0.03, 0.1, 0.3)[seed % 4], ("near", "svd")[seed % 2]
    task = distributions(examples, length, vocab, seed)
    made = built(task, seed, model_dim=d, epsilon=epsilon, solve_by=solve_by, restarts=1)
    has, uniform, stated = number(made, "divergence"), number(made, "uniform"), number(made, "stated")
    assert 0 < number(made, "left_out") <= epsilon
    assert has <= stated <= number(made, "proved") <= number(made, "appendix")
    assert has <= uniform
    assert byheart.certify(made.network, task, tolerance=min(stated, uniform) + 1e-9).certified
    assert not byheart.certify(made.network, task, tolerance=has * (1 - 1e-4)).certified
    if made.chosen["shrunk"] != 1.0:  # a descent may end elsewhere on another machine
        return
    encoder = best_encoder(task.probabilities, task.likelihoods, d, rng=np.random.default_rng(seed), restarts=1)
    likely = np.argsort(-task.likelihoods)[: int(number(made, "held"))]
    found = each(evaluate(network_of(made), (task.inputs, None)), task.probabilities)
    assert found[likely] == pytest.approx(each(encoder.logits, task.probabilities)[likely], abs=1e-6)


def test_the_terms_of_the_right_hand_side() -> None:
    task = distributions(36, 2, 6, 0)
    made = built(task, model_dim=3, epsilon=0.1)
    encoder, spread = number(made, "encoder"), number(made, "left_out") * number(made, "norm")
    for name, share in (("stated", 1), ("proved", math.sqrt(2)), ("appendix", 2)):
        assert number(made, name) == pytest.approx(encoder + share * number(made, "constant") * spread, rel=1e-4)
    assert number(made, "excess") == pytest.approx(number(made, "divergence") - encoder, rel=1e-4)
    exact = built(task, model_dim=3)
    assert [exact.chosen[name] for name in ("constant", "stated", "proved", "appendix")] == [None] * 4
    assert "shrunk" not in exact.chosen


def asked_of(task: NextTokenDistribution, **given: Any) -> tuple[Asked, SoftmaxNetwork]:
    """What a build asks for, and a draw."""
    chosen, rng = DanaSettings(restarts=1, **given), np.random.default_rng(0)
    kept = associations.held(task, chosen, rng)
    needs = demand(task, kept)
    shape = shape_of(needs, chosen)
    asked = associations.asked_contexts(task, kept, shape.d, chosen, rng)
    return asked, draw(asked.tokens, task.size, shape, asked.W_U, 4.0, rng)


@pytest.mark.parametrize("heads", [None, 12])
def test_the_paper_s_values_are_those_of_least_norm(heads: int | None) -> None:
    """On features projected on the span of those held there is one solution; and C² = 1 + ‖rest·held⁺‖²."""
    asked, drawn = asked_of(distributions(36, 2, 6, 1), model_dim=3, epsilon=0.1, heads=heads)
    held, rest = features(drawn, asked.tokens), features(drawn, asked.others.tokens)
    spread = Spread.of(factor(held), held, rest)
    assert spread is not None
    inverse = np.linalg.pinv(held)
    W = spread.solve(asked.targets)
    assert np.abs(W - inverse @ asked.targets).max() <= 1e-6 * np.abs(W).max()
    assert held @ W == pytest.approx(asked.targets, abs=1e-7)
    assert spread.constant == pytest.approx(math.sqrt(1 + np.linalg.norm(rest @ inverse, 2) ** 2), rel=1e-6)


def test_the_constant_by_hand_and_that_a_expectedbefore_it_is_needed() -> None:
    """One feature, 1 at the context held and 5 at the other: B = 5, C = √26.

    Two tokens, d = 1. The encoder gives the context held the logits −5y, and the other y, exact for p = (0.9, 0.1):
    y = (h, −h), h = ½ log 9. The network says −25y of the other: its KL is 0.9·50h − H(p) and more, 49.2 in all. But
    C·‖WE‖₂ = √26 · √26 · √2 h = 26·√2·h = 40.4. The factor √2 is always enough; 1 is not, for this W_O.
    """
    held, other = np.array([[1.0]]), np.array([[5.0]])
    spread = Spread.of(factor(held), held, other)
    assert spread is not None
    assert spread.constant == pytest.approx(math.sqrt(26))
    p, y = np.array([[0.9, 0.1]]), np.array([0.5, -0.5]) * math.log(9)
    W = spread.solve(np.array([[-5.0]]))
    says = (other @ W) * y
    assert says[0] == pytest.approx(-25 * y)
    excess, norm = divergence(says, p, [1.0]), np.linalg.norm(np.outer([-5, 1], y), 2)
    assert divergence([y], p, [1.0]) == pytest.approx(0, abs=1e-15)
    assert excess == pytest.approx(49.1, abs=0.1)
    assert spread.constant * norm == pytest.approx(40.4, abs=0.1)
    assert spread.constant * norm < excess <= math.sqrt(2) * spread.constant * norm


@pytest.mark.parametrize("heads", [None, 9])
@pytest.mark.parametrize("query_dim", [None, 1])
def test_the_gradient_of_the_descent(heads: int | None, query_dim: int | None) -> None:
    """Against differences, where there are as many features as contexts held, and where there are more."""
    asked, drawn = asked_of(distributions(36, 2, 6, 1), model_dim=3, epsilon=0.3, heads=heads, query_dim=query_dim)
    flat = np.concatenate([getattr(drawn, name).ravel() for name in DRAWN])
    direction = np.random.default_rng(1).standard_normal(len(flat))
    step = 1e-6
    ends = [omitted._loss(flat + way * step * direction, drawn, asked)[0] for way in (1, -1)]
    gradient = omitted._loss(flat, drawn, asked)[1]
    assert gradient @ direction == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4)


def test_a_descent_leads_below_uniform_and_leaves_what_is_held_exact() -> None:
    asked, drawn = asked_of(distributions(36, 2, 6, 2), model_dim=3, epsilon=0.3)
    *_, before = fits(drawn, factor(features(drawn, asked.tokens)), asked, np.random.default_rng(0))
    led = omitted.descended(drawn, asked)
    *_, after = fits(led, factor(features(led, asked.tokens)), asked, np.random.default_rng(0))
    assert asked.others.divergence(before.network) > asked.others.uniform >= asked.others.divergence(after.network)
    wanted = asked.targets @ asked.W_U
    assert evaluate(after.network, (asked.tokens, None)) == pytest.approx(wanted, abs=1e-6)


def test_without_a_descent_logits_are_shrunk_and_nothing_is_worse_than_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(associations, "MOST_HELD", 0)
    shrunk = [built(distributions(36, 2, 6, seed), seed, model_dim=3, epsilon=0.3, restarts=0) for seed in range(6)]
    assert all(number(made, "divergence") <= number(made, "uniform") for made in shrunk)
    assert any(0 < number(made, "shrunk") < 1 for made in shrunk)


def test_shrinking_by_hand() -> None:
    """p = (3/4, 1/4) everywhere. Logits (2L, 0), L = log 3, are best halved; (L, 0) stay; (0, L) are worth nothing."""
    task = NextTokenDistribution(tokens=[[0, 0], [1, 0]], probabilities=[[0.75, 0.25]] * 2)
    ones, zeros, L = np.ones((1, 1, 1)), np.zeros((1, 1, 1)), math.log(3)
    for row, expected in (([4 * L, 0.0], 0.25), ([L, 0.0], 1.0), ([0.0, L], 0.0)):
        network = SoftmaxNetwork(
            **dict.fromkeys(("W_Q", "W_K", "W_V"), ones),
            **{"W_O": zeros, "W_E": np.ones((2, 1)), "W_pos": np.zeros((2, 1)), "W_U": np.array([row])},
            skip=True,
        )
        small, found = omitted.shrunk(network, task)
        assert found == pytest.approx(expected, abs=1e-5)
        assert np.abs(small.W_U - expected * np.array([row])).max() < 1e-4


@pytest.mark.parametrize("solve_by", ["near", "svd"])
def test_fewer_contexts_are_held_than_there_are_dimensions(solve_by: str) -> None:
    """Three contexts have nearly all probability, d = 5: the change of basis is made regular by a little, part of γ."""
    task = distributions(36, 2, 6, 0)
    weights = np.full(36, 0.001)
    weights[[3, 8, 21]] = (1 - 0.033) / 3
    task = NextTokenDistribution(tokens=task.inputs, probabilities=task.probabilities, weights=weights)
    made = built(task, model_dim=5, epsilon=0.05, solve_by=solve_by)
    assert made.chosen["held"] == 3
    assert number(made, "divergence") <= min(number(made, "stated"), number(made, "uniform"))
    found = each(evaluate(network_of(made), (task.inputs, None)), task.probabilities)
    assert found[[3, 8, 21]] == pytest.approx(np.zeros(3), abs=1e-9)


def test_with_nothing_left_out_the_two_ways_are_one() -> None:
    """ε is less than any context's likelihood."""
    task = distributions(16, 2, 4, 0, skew=0)
    near, svd = (network_of(built(task, model_dim=2, epsilon=0.01, solve_by=way)) for way in ("near", "svd"))
    assert near.fingerprint == svd.fingerprint


def test_heads_to_spare_are_used_by_ours_and_not_by_the_paper_s() -> None:
    task = distributions(36, 2, 6, 0)
    near, svd = (built(task, model_dim=3, epsilon=0.1, heads=20, solve_by=way) for way in ("near", "svd"))
    assert number(near, "excess") < 1e-6 < number(svd, "excess")
    assert near.account.dense == svd.account.dense

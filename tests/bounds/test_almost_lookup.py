"""Closed bounds for almost look-up tables, ours and the paper's: against the encoders of their proofs, and by hand."""

import math

import numpy as np
import pytest

from byheart.bounds.dana_2025 import almost_lookup, coherence, entropy_matched
from byheart.errors import BadInput


def table(vocab: int, examples: int, miss: float, rng: np.random.Generator) -> np.ndarray:
    """Distributions [N, ω] with a token of probability about 1 − miss each."""
    rest = rng.dirichlet(np.full(vocab, 0.1), size=examples) * miss
    rest[np.arange(examples), rng.integers(vocab, size=examples)] += 1 - miss
    return rest


def entropies(p: np.ndarray) -> np.ndarray:
    return -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1)


@pytest.mark.parametrize(("vocab", "dim", "miss"), [(200, 100, 0.01), (200, 100, 0.1), (1000, 400, 0.02)])
def test_the_encoder_of_the_proof_stays_below(vocab: int, dim: int, miss: float) -> None:
    rng = np.random.default_rng(0)
    p = table(vocab, 300, miss, rng)
    signs = rng.choice([-1.0, 1.0], size=(vocab, dim)) / math.sqrt(dim)
    products = signs @ signs.T
    c = coherence(vocab, dim)
    assert np.abs(products - np.eye(vocab)).max() <= c
    eta, entropy = float((1 - p.max(axis=1)).mean()), float(entropies(p).mean())
    bound = almost_lookup(vocab, dim, eta, entropy)
    rho = eta * (1 + c) / (1 - c)
    scale = math.log((vocab - 1) * (1 - rho) / rho) / (1 - c)
    logits = scale * products[p.argmax(axis=1)]
    q = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    divergence = float((-(p * q).sum(axis=1) - entropies(p)).mean())
    assert 0 < divergence <= bound < math.log(vocab) - entropy


def test_without_coherence_it_is_fano() -> None:
    """As d grows the bound falls to h(η) + η log(ω − 1) − H, which is 0 where Fano's inequality is tight."""
    vocab, eta = 10, 0.2
    entropy = -(1 - eta) * math.log(1 - eta) - eta * math.log(eta / (vocab - 1))
    assert almost_lookup(vocab, 10**12, eta, entropy) == pytest.approx(0, abs=1e-4)


def test_a_true_table_costs_nothing_and_a_small_dimension_says_nothing() -> None:
    assert almost_lookup(vocab=50, dim=40, miss=0.0, entropy=0.0) == 0
    assert almost_lookup(vocab=50, dim=31, miss=0.01, entropy=0.05) == math.log(50) - 0.05


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocab": 1}, "vocab is 1 and dim is 40; expected at least 2 and 1"),
        ({"dim": 0}, "vocab is 50 and dim is 0; expected at least 2 and 1"),
        ({"miss": 1.5}, "miss is 1.5 and entropy 0.0; expected 0 ≤ miss ≤ 1 and an entropy of 0 or more"),
        ({"entropy": -1.0}, "miss is 0.0 and entropy -1.0"),
    ],
)
def test_refusals(change: dict[str, float], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        almost_lookup(**{"vocab": 50, "dim": 40, "miss": 0.0, "entropy": 0.0} | change)


def divergence(p: np.ndarray, logits: np.ndarray) -> float:
    """KL(p ‖ softmax(logits))."""
    log_q = logits - logits.max() - math.log(np.exp(logits - logits.max()).sum())
    return float(-(p @ log_q)) - float(entropies(p[None])[0])


def matching(entropy: float, products: np.ndarray) -> float:
    """λ, by bisection, with which softmax(λ·products) has this entropy."""
    low, high = 0.0, 1e3
    for _ in range(100):
        middle = (low + high) / 2
        q = np.exp(middle * (products - products.max()))
        low, high = (middle, high) if entropies(q[None] / q.sum())[0] > entropy else (low, middle)
    return low


@pytest.mark.parametrize(("vocab", "dim", "miss"), [(60, 300, 0.02), (60, 300, 0.3), (200, 400, 0.1), (100, 900, 0.6)])
@pytest.mark.parametrize("concentration", [0.05, 1.0, 20.0])
def test_theorem_2_holds_for_codes_that_were_drawn(vocab: int, dim: int, miss: float, concentration: float) -> None:
    """Codes of lengths that differ, c as it is; λ of the proof, and λ with exactly the entropy: both stay below."""
    rng = np.random.default_rng(0)
    codes = rng.choice([-1.0, 1.0], size=(dim, vocab)) / math.sqrt(dim) * np.sqrt(rng.uniform(0.9, 1.1, vocab))
    products = codes.T @ codes
    c = float(np.abs(products - np.eye(vocab)).max())
    assert 0.09 < c < 0.5
    for _ in range(10):
        answer = int(rng.integers(vocab))
        p = rng.dirichlet(np.full(vocab, concentration)) * miss
        p[answer] += 1 - miss
        wrong, entropy = np.delete(p, answer), float(entropies(p[None])[0])
        uneven = float(np.abs(wrong / wrong.sum() - 1 / (vocab - 1)).sum() / 2)
        bound = entropy_matched(vocab, c, float(wrong.sum()), entropy, uneven)
        proof = math.log((vocab - 1) / math.expm1(entropy)) / (1 - 2 * c)
        assert 0 <= divergence(p, proof * products[answer]) <= bound
        assert 0 <= divergence(p, matching(entropy, products[answer]) * products[answer]) <= bound


def test_theorem_2_by_hand() -> None:
    """ω = 3, p = (1/2, 1/4, 1/4): e^H = 2√2, so Λ = log(2/(2√2 − 1)) = 0.0896; times η = 1/2. The wrong are uniform."""
    entropy = 1.5 * math.log(2)
    assert entropy_matched(3, 0.0, 0.5, entropy, 0.0) == pytest.approx(0.5 * math.log(2 / (2 * math.sqrt(2) - 1)))
    quarter = entropy_matched(3, 0.25, 0.5, entropy, 0.0)
    assert quarter == pytest.approx(3 * entropy_matched(3, 0.0, 0.5, entropy, 0.0)), "(1 + 2c)/(1 − 2c) = 3"
    assert entropy_matched(3, 0.25, 0.5, entropy, 1.0) == pytest.approx(quarter * 1.75 / 1.5)


def test_where_theorem_2_says_nothing_or_all() -> None:
    """From c = 1/2 on nothing; of a true table 0; and 0 of the uniform distribution, which λ = 0 meets."""
    assert entropy_matched(50, 0.5, 0.1, 0.4, 0.0) == math.inf
    assert entropy_matched(50, 0.2, 0.0, 0.0, 0.0) == 0
    assert entropy_matched(50, 0.2, 0.98, math.log(50), 0.0) == pytest.approx(0, abs=1e-12)
    assert 2 * coherence(868, 866) >= 0.5 > 2 * coherence(869, 867), "of use, d < ω − 1, from ω = 869 on"


@pytest.mark.parametrize(
    "change", [{"vocab": 1}, {"c": -0.1}, {"miss": 1.5}, {"entropy": 4.0}, {"entropy": -1.0}, {"uneven": 1.1}]
)
def test_refusals_of_theorem_2(change: dict[str, float]) -> None:
    with pytest.raises(BadInput, match=r"expected at least 2, 0, numbers from 0 to 1, and an entropy from 0 to log ω$"):
        entropy_matched(**{"vocab": 50, "c": 0.1, "miss": 0.1, "entropy": 0.5, "uneven": 0.0} | change)

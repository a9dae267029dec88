"""The closed bound for almost look-up tables, against the encoder of its proof and against Fano's inequality."""

import math

import numpy as np
import pytest

from byheart.bounds.dana_2025 import almost_lookup, coherence
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

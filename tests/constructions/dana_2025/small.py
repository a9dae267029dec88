"""Tasks and networks of dana-2025, small enough to look at all of them."""

from typing import Any

import numpy as np
import numpy.typing as npt

import byheart
from byheart.constructions import Built
from byheart.constructions.dana_2025 import DanaSettings
from byheart.networks.softmax import SoftmaxNetwork
from byheart.tasks import NextToken, NextTokenDistribution

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


def contexts(examples: int, length: int, vocab: int, rng: np.random.Generator) -> Ids:
    """Different contexts in random order; of n = 2 and ω² examples, all."""
    drawn = rng.permutation(vocab**length)[:examples]
    return np.stack([drawn // vocab**place % vocab for place in range(length)], axis=1)


def distributions(
    examples: int, length: int, vocab: int, seed: int, *, skew: float = 3.0, zeros: float = 0.0
) -> NextTokenDistribution:
    """p uniform on the simplex, with a share of zeros; likelihoods the powers ``skew`` of uniform numbers."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(vocab), size=examples) * (rng.random((examples, vocab)) >= zeros)
    p[:, 0] += p.sum(axis=1) == 0
    weights = rng.random(examples) ** skew
    return NextTokenDistribution(
        tokens=contexts(examples, length, vocab, rng),
        probabilities=p / p.sum(axis=1, keepdims=True),
        weights=weights / weights.sum(),
    )


def labels(examples: int, length: int, vocab: int, seed: int) -> NextToken:
    """Random labels, as many as there are tokens."""
    rng = np.random.default_rng(seed)
    tokens = contexts(examples, length, vocab, rng)
    return NextToken(tokens=tokens, labels=rng.integers(vocab, size=examples), label_count=vocab, vocab=vocab)


def built(task: NextToken | NextTokenDistribution, seed: int = 0, **given: Any) -> Built:
    return byheart.build("dana-2025", task, seed=seed, settings=DanaSettings(**given))


def network_of(made: Built) -> SoftmaxNetwork:
    assert isinstance(made.network, SoftmaxNetwork)
    return made.network


def number(made: Built, name: str) -> float:
    found = made.chosen[name]
    assert isinstance(found, int | float)
    return float(found)

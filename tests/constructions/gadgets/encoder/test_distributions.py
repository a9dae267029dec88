"""The divergence, by its definition; and what are no distributions."""

import math

import numpy as np
import pytest
import torch

from byheart.constructions.gadgets.encoder import best_encoder, divergence
from byheart.errors import BadInput

from .small import plain_divergence, random_task, rng


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

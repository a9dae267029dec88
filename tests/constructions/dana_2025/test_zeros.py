"""Theorem 3: distributions with zeros, encoded after a little of the uniform one is mixed in."""

import math

import numpy as np
import pytest

import byheart
from byheart.constructions.gadgets.encoder import divergence
from byheart.errors import BadInput
from byheart.networks.softmax import evaluate
from byheart.tasks import NextTokenDistribution

from .small import built, distributions, labels, network_of, number


@pytest.mark.parametrize("smooth", [1e-2, 1e-4, 1e-6])
def test_logits_are_those_of_the_mixture(smooth: float) -> None:
    """d = ω − 1, ε = 0: softmax(logits) = (1 − δ)p + δ/ω; logits spread by log(ω/δ) at most, and p is nearly met."""
    task = distributions(36, 2, 6, 0, zeros=0.5)
    made = built(task, smooth=smooth)
    mixed = (1 - smooth) * task.probabilities + smooth / 6
    logits = evaluate(network_of(made), (task.inputs, None))
    raised = np.exp(logits)
    assert raised / raised.sum(axis=1, keepdims=True) == pytest.approx(mixed, rel=1e-5)
    assert np.ptp(logits, axis=1).max() <= math.log(6 / smooth) + 1e-6
    assert number(made, "divergence") == pytest.approx(divergence(np.log(mixed), task.probabilities, task.likelihoods))
    assert 0 < number(made, "divergence") <= -math.log1p(-smooth)
    assert byheart.certify(made.network, task, tolerance=-math.log1p(-smooth)).certified


def test_the_encoder_is_judged_by_the_distributions_as_they_are() -> None:
    """One context, p = (1, 0), δ = 1/2: (3/4, 1/4) is encoded, log 4/3 from p."""
    task = NextTokenDistribution(tokens=[[0, 1], [1, 1]], probabilities=[[1.0, 0.0], [1.0, 0.0]])
    made = built(task, smooth=0.5)
    assert number(made, "encoder") == pytest.approx(math.log(4 / 3))
    assert number(made, "divergence") == pytest.approx(math.log(4 / 3))
    assert number(made, "encoder_gap") == pytest.approx(math.log(4 / 3), rel=1e-3), "larger logits would be better"


def test_the_excess_shrinks_with_the_probability_left_out() -> None:
    task = distributions(36, 2, 6, 0, zeros=0.5)
    some = [built(task, epsilon=epsilon, smooth=epsilon) for epsilon in (0.2, 0.05, 0.01)]
    found = [number(made, "divergence") for made in some]
    assert found == sorted(found, reverse=True)
    assert all(number(made, "divergence") <= min(number(made, "stated"), number(made, "uniform")) for made in some)


@pytest.mark.parametrize("smooth", [-0.1, 1.0, math.nan])
def test_refusals(smooth: float) -> None:
    with pytest.raises(BadInput, match=f"^smooth is {smooth}; expected 0 ≤ δ < 1$"):
        built(distributions(16, 2, 4, 0), smooth=smooth)
    with pytest.raises(BadInput, match=f"^smooth is {smooth}; expected 0: only distributions are smoothed$"):
        built(labels(16, 2, 4, 0), smooth=smooth)

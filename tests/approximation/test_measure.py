"""Distances: by hand, against the integral, and of networks against the evaluation of the whole."""

from dataclasses import replace

import numpy as np
import pytest

from byheart.approximation import Target, approximate, find, measure
from byheart.approximation.approximate import quantise
from byheart.approximation.measure import check_p, distance, outputs, random_points
from byheart.errors import BadInput
from byheart.networks.exact.enclose import enclose
from byheart.networks.exact.evaluate import evaluate


@pytest.mark.parametrize(
    ("p", "expected"), [(1, 7.0), (2, 5.0), (3, 91 ** (1 / 3)), (100, 4.0)], ids=lambda value: f"{value:g}"
)
def test_by_hand(p: float, expected: float) -> None:
    found = distance(np.array([[3.0, -4.0]] * 5), p)
    assert found.error == pytest.approx(expected, rel=1e-9)
    assert found.low == found.error == found.high


def test_nothing() -> None:
    assert distance(np.zeros((3, 2)), 2).high == 0


@pytest.mark.parametrize("p", [1.0, 2.0, 5.0])
def test_the_interval_holds_the_integral(p: float) -> None:
    """∫|x|^p over [0, 1] is 1/(p + 1): about 95 of 100 intervals hold its root."""
    truth, rng = (1 / (p + 1)) ** (1 / p), np.random.default_rng(0)
    found = [distance(rng.random((2000, 1)), p) for _ in range(300)]
    assert 0.91 < np.mean([each.low <= truth <= each.high for each in found]) < 0.985


def test_large_p_stays_in_the_floats() -> None:
    found = distance(np.array([[1e90], [2e90]]), 100)
    assert 1.9e90 < found.error < 2e90 < found.high < 2.1e90


@pytest.mark.parametrize("p", [0.5, 0.0, -1.0, float("nan"), float("inf"), 101.0])
def test_refused_exponents(p: float) -> None:
    with pytest.raises(BadInput, match=r"p is .*; expected 1 to 100"):
        check_p(p)


def test_refused_samples() -> None:
    with pytest.raises(BadInput, match="samples is 1; expected at least 2"):
        random_points(1, 2, 1, np.random.default_rng(0))


@pytest.mark.parametrize("construction", ["kajitsuka-sato-2025", "interpolate"])
def test_outputs_are_those_of_the_whole_network(construction: str) -> None:
    """Cell by cell, or point by point; and on ramps, which are made wide for this."""
    result = approximate(find("contrast"), length=2, epsilon=0.2, construction=construction)
    points = random_points(300, 2, 1, np.random.default_rng(0))
    values, radii = outputs(result.network, points)
    assert (values == evaluate(result.network, points).astype(float)).all()
    assert not radii.any()
    wide = replace(result.network, layers=(quantise(result.design.cells, 1, 1), *result.network.layers[1:]))
    assert (outputs(wide, points)[0] == evaluate(wide, points).astype(float)).all()
    assert (outputs(wide, points)[0] != values).any()


def test_outputs_of_softmax_are_enclosed() -> None:
    """The balls of the whole network, point by point, hold what is found cell by cell; wide ramps included."""
    result = approximate(find("contrast"), length=2, epsilon=0.2)
    points = random_points(40, 2, 1, np.random.default_rng(0))
    for ramp_bits in (result.design.ramp_bits, 1):
        layers = (quantise(result.design.cells, 1, ramp_bits), *result.network.layers[1:])
        network = replace(result.network, layers=layers)
        values, radii = outputs(network, points)
        assert radii.max() < 1e-9
        balls = enclose(network, points, bits=512)
        assert all(
            abs(float(ball.mid()) - value) < 1e-9 for ball, value in zip(balls.ravel(), values.ravel(), strict=True)
        )


def test_a_network_is_far_from_another_function() -> None:
    """The negative control: what is close to one function is not close to another, nor to itself moved."""
    near = find("contrast")
    result = approximate(near, length=3, epsilon=0.1, construction="kajitsuka-sato-2025")
    assert measure(result.network, near, samples=2000, seed=5).high < 0.1
    for far in (find("rank"), find("wave"), Target("moved", lambda x: near(x) + 0.1)):
        found = measure(result.network, far, samples=2000, seed=5)
        assert found.low > 0.15, far.name
        assert not result.close(found)


def test_seeds() -> None:
    result = approximate(find("contrast"), length=2, epsilon=0.5, construction="interpolate")
    errors = [measure(result.network, result.target, samples=500, seed=seed).error for seed in (1, 1, 2)]
    assert errors[0] == errors[1] != errors[2]

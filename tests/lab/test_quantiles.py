"""Quantiles against numbers from tables, and against integrals that are done here, plainly."""

import math

import numpy as np
import pytest

from byheart.errors import BadInput
from byheart.lab.quantiles import (
    beta_quantile,
    f_tail,
    incomplete_beta,
    mean_interval,
    normal_quantile,
    student_quantile,
)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (0.5, 2), (3.5, 1.5), (8.5, 2.5), (40, 60), (300, 2)])
@pytest.mark.parametrize("x", [0.01, 0.2, 0.5, 0.77, 0.99])
def test_the_incomplete_beta_function_is_its_integral(a: float, b: float, x: float) -> None:
    """With u = sin² t the integrand has no poles: Gauss–Legendre on [0, asin √x]."""
    nodes, weights = np.polynomial.legendre.leggauss(400)
    end = math.asin(math.sqrt(x))
    t = end * (nodes + 1) / 2
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    values = 2 * np.exp(log + (2 * a - 1) * np.log(np.sin(t)) + (2 * b - 1) * np.log(np.cos(t)))
    assert incomplete_beta(x, a, b) == pytest.approx(end / 2 * float(weights @ values), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize(
    ("degrees", "level", "quantile"), [(1, 0.95, 12.7062), (4, 0.95, 2.77645), (10, 0.99, 3.16927), (30, 0.9, 1.69726)]
)
def test_student_as_in_the_tables(degrees: int, level: float, quantile: float) -> None:
    assert student_quantile(level, degrees) == pytest.approx(quantile, rel=2e-6)


def test_student_tends_to_the_normal_distribution() -> None:
    assert student_quantile(0.95, 10**6) == pytest.approx(normal_quantile(0.95), rel=1e-5)


def test_an_f_variable_with_one_degree_is_a_student_variable_squared() -> None:
    assert f_tail(student_quantile(0.95, 7) ** 2, 1, 7) == pytest.approx(0.05)
    assert f_tail(0.0, 3, 4) == 1


def test_quantiles_undo_the_distribution() -> None:
    for share in (1e-6, 0.025, 0.5, 0.9):
        assert incomplete_beta(beta_quantile(share, 2.5, 7), 2.5, 7) == pytest.approx(share, rel=1e-9)


def test_a_single_repetition_has_no_interval() -> None:
    assert mean_interval([1.25]) == (1.25, None, None)


def test_refusals() -> None:
    with pytest.raises(BadInput, match="no repetitions"):
        mean_interval([])
    with pytest.raises(BadInput, match="level is 95"):
        normal_quantile(95)
    with pytest.raises(BadInput, match="degrees of freedom are 0"):
        student_quantile(0.95, 0)

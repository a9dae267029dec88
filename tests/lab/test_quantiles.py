"""Quantiles against numbers from tables, and closed forms."""

import math
from statistics import NormalDist

import pytest

from byheart.errors import BadInput
from byheart.lab.fits import mean_interval, student_quantile


@pytest.mark.parametrize(
    ("degrees", "level", "quantile"), [(1, 0.95, 12.7062), (4, 0.95, 2.77645), (10, 0.99, 3.16927), (30, 0.9, 1.69726)]
)
def test_student_as_in_the_tables(degrees: int, level: float, quantile: float) -> None:
    assert student_quantile(level, degrees) == pytest.approx(quantile, rel=2e-6)


@pytest.mark.parametrize("level", [1e-6, 0.3, 0.95, 0.999999])
def test_one_and_two_degrees_have_closed_forms(level: float) -> None:
    assert student_quantile(level, 1) == pytest.approx(math.tan(math.pi * level / 2), rel=1e-9)
    assert student_quantile(level, 2) == pytest.approx(level * math.sqrt(2 / ((1 - level) * (1 + level))), rel=1e-9)


def test_student_tends_to_the_normal_distribution() -> None:
    assert student_quantile(0.95, 10**6) == pytest.approx(NormalDist().inv_cdf(0.975), rel=1e-5)


def test_a_single_repetition_has_no_interval() -> None:
    assert mean_interval([1.25]) == (1.25, None, None)


def test_refusals() -> None:
    with pytest.raises(BadInput, match="no repetitions"):
        mean_interval([])
    with pytest.raises(BadInput, match="level is 95"):
        mean_interval([1.0, 2.0], 95)
    with pytest.raises(BadInput, match="degrees of freedom are 0"):
        student_quantile(0.95, 0)

"""Fits recover what was planted, their intervals cover as often as they say, and a failed one has no numbers."""

from typing import Any

import numpy as np
import pytest

from byheart.errors import BadInput
from byheart.lab.fits import FAMILIES, Family, compare, fit, student_quantile

X = np.repeat(np.arange(1.0, 9.0), 3)
PLANTED: dict[Family, tuple[float, ...]] = {
    "linear": (1, 2),
    "quadratic": (1, 2, -0.3),
    "cubic": (1, 2, -0.3, 0.02),
    "power": (0.5, 1.7),
    "power+offset": (0.5, 1.3, 2),
}


def planted(family: Family, x: Any = X) -> Any:
    values = PLANTED[family]
    if family.startswith("power"):
        return values[0] * x ** values[1] + (values[2] if len(values) > 2 else 0)
    return sum(value * x**power for power, value in enumerate(values))


@pytest.mark.parametrize("family", FAMILIES)
def test_without_noise_the_planted_parameters_come_back(family: Family) -> None:
    law = fit(X, planted(family), family)
    assert law.status == "fitted"
    assert [estimate.value for estimate in law.estimates] == pytest.approx(PLANTED[family], rel=1e-5)
    assert law.leave_one_out == pytest.approx(0, abs=1e-5)
    np.testing.assert_allclose(law.at(X), planted(family), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_cover_at_the_nominal_rate(family: Family) -> None:
    """200 draws at 90 %: the count is binomial with deviation 4.2, and 4.5 deviations are left on either side."""
    rng = np.random.default_rng(7)
    covered = np.zeros(len(PLANTED[family]))
    on_curve = 0
    for _ in range(200):
        law = fit(X, planted(family) + 0.1 * rng.standard_normal(len(X)), family, level=0.9, held_out=False)
        pairs = zip(law.estimates, PLANTED[family], strict=True)
        covered += [estimate.low <= value <= estimate.high for estimate, value in pairs]
        low, high = law.band(4.5)
        on_curve += bool(low <= planted(family, 4.5) <= high)
    assert (np.abs(covered - 180) < 19).all(), covered
    assert abs(on_curve - 180) < 19


@pytest.mark.parametrize("family", ["linear", "quadratic", "power"])
def test_the_comparison_finds_the_planted_law(family: Family) -> None:
    rng = np.random.default_rng(3)
    comparison = compare(X, planted(family) + 0.05 * rng.standard_normal(len(X)), FAMILIES)
    assert comparison.by_aicc is not None
    assert comparison.by_aicc.family == family
    assert comparison.by_aicc.lack_of_fit is not None
    assert comparison.by_aicc.lack_of_fit > 0.01
    assert sum(comparison.weights.values()) == pytest.approx(1)
    wrong = next(each for each in comparison.fits if each.family == ("linear" if family != "linear" else "power"))
    assert wrong.lack_of_fit is not None
    assert wrong.lack_of_fit < 1e-6


def test_more_parameters_do_not_win_by_themselves() -> None:
    """The cubic always has the least residual; on lines it must lose nearly always, by both criteria together."""
    rng = np.random.default_rng(1)
    won = []
    for _ in range(40):
        comparison = compare(X, planted("linear") + 0.3 * rng.standard_normal(len(X)), ("linear", "cubic"))
        residuals = {each.family: each.noise * np.sqrt(len(X) - len(each.estimates)) for each in comparison.fits}
        assert residuals["cubic"] <= residuals["linear"]
        won.append(comparison.agreed and comparison.by_aicc is not None and comparison.by_aicc.family == "cubic")
    assert sum(won) <= 4


def test_least_squares_by_hand() -> None:
    """x = 0, 1, 2, y = 0, 1, 1: a = 1/6, b = 1/2, residuals −1/6, 1/3, −1/6, s² = 1/6, var b = s²/2."""
    law = fit([0, 1, 2], [0, 1, 1], "linear")
    assert law["a"].value == pytest.approx(1 / 6)
    assert law["b"].value == pytest.approx(1 / 2)
    assert law.noise == pytest.approx((1 / 6) ** 0.5)
    assert law["b"].high - law["b"].value == pytest.approx(12.7062 * (1 / 12) ** 0.5, rel=1e-5)
    assert law.aicc is None
    assert compare([0, 1, 2], [0, 1, 1], ("linear",)).weights == {}
    assert law.lack_of_fit is None
    # Without x = 0 the line through (1, 1), (2, 1); without 1 that through (0, 0), (2, 1); without 2 the diagonal.
    assert law.leave_one_out == pytest.approx(((1 + 0.25 + 1) / 3) ** 0.5)
    assert law.extrapolation == pytest.approx(1)


def test_the_f_test_by_hand() -> None:
    """Means 0, h, 0 at x = 0, 1, 2, scatter ±1: F = (4h²/3) / (6/3), with one degree Student's t squared."""
    h = student_quantile(0.95, 3) * 1.5**0.5
    law = fit([0, 0, 1, 1, 2, 2], [-1, 1, h - 1, h + 1, -1, 1], "linear")
    assert law.lack_of_fit == pytest.approx(0.05)


def test_akaikes_weights_by_hand() -> None:
    rng = np.random.default_rng(2)
    comparison = compare(X, planted("linear") + rng.standard_normal(len(X)), ("linear", "quadratic"))
    first, second = comparison.fits
    assert comparison.weights[first.family] / comparison.weights[second.family] == pytest.approx(
        np.exp((second.aicc - first.aicc) / 2)
    )


def test_units_of_x_do_not_matter() -> None:
    rng = np.random.default_rng(5)
    y = planted("power+offset") + 0.05 * rng.standard_normal(len(X))
    for family in FAMILIES:
        here, there = fit(X, y, family), fit(10_000 * X, y, family)
        assert here.aicc == pytest.approx(there.aicc, rel=1e-6)
        assert here.leave_one_out == pytest.approx(there.leave_one_out, rel=1e-5)
    assert fit(X, y, "power")["b"].high == pytest.approx(fit(10_000 * X, y, "power")["b"].high)


@pytest.mark.parametrize(
    ("x", "y", "family", "reason"),
    [
        ([1, 2], [1, 2], "linear", "2 points for 2 parameters"),
        ([1, 1, 1], [1, 2, 3], "linear", "1 different x"),
        ([1, 2, 2, 2], [1, 2, 3, 4], "quadratic", "2 different x"),
        ([-1, 2, 3], [1, 2, 3], "power", "expected x > 0"),
        ([1, 2, 3, 4], [0, 0, 0, 0], "power", "a is 0"),
        ([1, 1.001, 1.002, 1.003], [1, 9, 80, 900], "power", "runs beyond"),
    ],
)
def test_a_failed_fit_says_why_and_has_no_numbers(x: Any, y: Any, family: Family, reason: str) -> None:
    law = fit(x, y, family)
    assert law.status == "failed"
    assert reason in law.reason
    assert law.estimates == ()
    assert law.aicc is None
    assert law.row()["status"] == "failed"
    for ask in (law.at, law.band, law.__getitem__):
        with pytest.raises(BadInput, match=f"the {family} fit failed"):
            ask("a" if ask == law.__getitem__ else 1.0)


def test_exact_data_are_no_reason_to_fail_and_the_simplest_law_wins() -> None:
    for y in (np.zeros(len(X)), 3 * X + 1):
        comparison = compare(X, y, ("cubic", "linear"))
        assert comparison.by_aicc is not None
        assert comparison.by_aicc.family == "linear"


def test_a_logarithm_is_no_power_law_with_an_offset() -> None:
    law = fit(X, 3 * np.log(X) + 1, "power+offset")
    assert law.status == "failed"
    assert "logarithm" in law.reason


def test_failed_fits_come_last_and_are_never_preferred() -> None:
    comparison = compare([0, 1, 2, 3, 4, 5, 6], [0.1, 0.9, 2.1, 3, 3.9, 5.1, 5.9], ("power", "linear"))
    assert [each.status for each in comparison.fits] == ["fitted", "failed"]
    assert comparison.by_aicc is comparison.fits[0]
    assert "power" not in comparison.weights


def test_errors_at_held_out_points_are_omitted_on_demand() -> None:
    law = fit(X, planted("linear"), "linear", held_out=False)
    assert (law.leave_one_out, law.extrapolation) == (None, None)
    assert law.aicc == fit(X, planted("linear"), "linear").aicc


def test_a_row_of_a_table() -> None:
    row = fit(X, planted("linear"), "linear").row()
    assert row["family"] == "linear"
    assert row["points"] == 24
    assert {"a", "a_low", "a_high", "b", "b_low", "b_high", "aicc", "leave_one_out"} <= row.keys()


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [([], [], "at least one"), ([1, 2], [1], "y has shape"), ([1, np.nan], [1, 2], r"x\[1\] is nan")],
)
def test_points_that_are_none(x: Any, y: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        fit(x, y, "linear")


def test_an_unknown_family() -> None:
    with pytest.raises(BadInput, match="power has no parameter 'c'; expected a, b"):
        fit(X, planted("power"), "power")["c"]
    with pytest.raises(BadInput, match="'exponential'; expected one of linear"):
        fit([1, 2, 3], [1, 2, 3], "exponential")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="families is empty"):
        compare([1], [1], ())

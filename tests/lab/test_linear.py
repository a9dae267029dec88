"""Lines, how much they explain and how sure that is, and where curves flatten."""

import numpy as np
import pytest
from scipy.stats import linregress, t

from byheart.errors import BadInput
from byheart.lab.linear import flattening, line, r_squared_interval, unsaturated


def test_a_line_by_hand() -> None:
    """x = 0, 1, 2, y = 0, 1, 1: slope 1/2, residuals −1/6, 1/3, −1/6, so RSS = 1/6 of TSS = 2/3."""
    found = line([(0, 0), (1, 1), (2, 1)])
    assert found is not None
    assert found.slope.value == pytest.approx(1 / 2)
    assert found.r_squared.value == pytest.approx(3 / 4)
    assert found.points == 3
    assert found.lack_of_fit is None


def test_the_interval_over_seeds_by_hand() -> None:
    """y = x² at x = 0, 1, 2, each ± 0.1: the slope is 2, the scatter 6 · 0.01 over 3 degrees of freedom is 0.02, and
    (x − 1)² sums to 4, so its error is √(0.02/4), whatever the line misses; Student's quantile is 3.1824.
    """
    found = line([(x, x**2 + by) for x in (0, 1, 2) for by in (-0.1, 0.1)])
    assert found is not None
    assert found.over_seeds is not None
    assert found.over_seeds.value == found.slope.value == pytest.approx(2)
    assert found.over_seeds.high - 2 == pytest.approx(3.1824 * (0.02 / 4) ** 0.5, rel=1e-4)
    assert found.slope.high > found.over_seeds.high, "what bends counts in the other interval"
    once = line([(0, 0), (1, 1), (2, 1)])
    assert once is not None
    assert once.over_seeds is None, "one model at each x says nothing about seeds"


def test_the_interval_over_seeds_holds_the_slope_as_often_as_it_says_on_a_curve() -> None:
    """400 draws at 90 % of a parabola: the slope of the line through its means is 7; as above, within 4 deviations."""
    rng = np.random.default_rng(6)
    x = np.repeat(np.arange(8.0), 2)
    held = 0
    for _ in range(400):
        found = line([*zip(x, x**2 + 3 * rng.standard_normal(len(x)), strict=True)], level=0.9)
        assert found is not None
        assert found.over_seeds is not None
        held += found.over_seeds.low <= 7 <= found.over_seeds.high
    assert abs(held - 360) < 24


def test_a_line_is_that_of_scipy() -> None:
    rng = np.random.default_rng(7)
    x = np.repeat(np.arange(1.0, 7.0), 3)
    y = 0.1 * x + 0.05 * rng.standard_normal(len(x))
    found, theirs = line([*zip(x, y, strict=True)]), linregress(x, y)
    assert found is not None
    assert found.slope.value == pytest.approx(theirs.slope)
    assert found.r_squared.value == pytest.approx(theirs.rvalue**2)
    assert found.slope.high - found.slope.value == pytest.approx(theirs.stderr * t.ppf(0.975, len(x) - 2))


@pytest.mark.parametrize(
    "points",
    [
        [],
        [(1, 0.5), (2, 0.6)],
        [(1, 0.5), (1, 0.6), (1, 0.7)],
        [(1, 0.5), (2, 0.5), (3, 0.5)],
        [(1, 0.5), (1, 0.6), (2, 0.7), (2, 0.75)],
    ],
)
def test_points_that_determine_no_line_have_none(points: list[tuple[float, float]]) -> None:
    assert line(points) is None


def test_what_is_saturated_is_judged_by_means_not_by_runs() -> None:
    points = [(1, 0.85), (1, 0.93), (2, 0.88), (2, 0.94)]
    assert unsaturated(points) == points[:2]
    assert unsaturated(points, 0.95) == points


def test_the_interval_of_r_squared_holds_it_as_often_as_it_says() -> None:
    """400 draws at 90 %: the count is binomial with deviation 6, and 4 deviations are left on either side."""
    rng = np.random.default_rng(5)
    x = np.repeat(np.arange(1.0, 9.0), 2)
    noise = 1.5
    true = (signal := float(((x - x.mean()) ** 2).sum()) / noise**2) / (signal + len(x))
    held = 0
    for _ in range(400):
        found = line([*zip(x, x + noise * rng.standard_normal(len(x)), strict=True)], level=0.9)
        assert found is not None
        held += found.r_squared.low <= true <= found.r_squared.high
    assert abs(held - 360) < 24


def test_an_interval_of_r_squared_shrinks_with_the_points_and_ends_at_0_and_1() -> None:
    wide, narrow = r_squared_interval(0.9, 10), r_squared_interval(0.9, 100)
    assert wide[0] < narrow[0] < 0.9 < narrow[1] < 1
    assert r_squared_interval(0.01, 10)[0] == 0.0
    assert r_squared_interval(1.0, 10) == (1.0, 1.0)
    assert r_squared_interval(0.999999, 20)[1] < 1
    with pytest.raises(BadInput, match="level is 95"):
        r_squared_interval(0.5, 10, 95)


def bent(after: float, seed: int = 0) -> list[tuple[float, float]]:
    """Slope 0.02 up to x = 32, and another one beyond; noise of 0.02."""
    rng = np.random.default_rng(seed)
    xs = [x for x in (*range(10, 61, 5), 64) for _ in range(4)]
    return [(x, 0.02 * min(x, 32) + after * max(x - 32, 0) + 0.02 * rng.standard_normal()) for x in xs]


def test_a_curve_that_flattens_is_told_from_one_that_goes_on() -> None:
    flat, straight = flattening(bent(0.0), 32), flattening(bent(0.02), 32)
    assert flat is not None
    assert straight is not None
    assert flat.equal < 1e-6
    assert flat.beyond.slope.low < 0 < flat.beyond.slope.high
    assert flat.before.slope.low > 0
    assert straight.equal > 0.01
    assert straight.beyond.slope.low > 0


def test_equal_slopes_are_called_different_as_seldom_as_p_says() -> None:
    """200 straight curves: p below 0.1 in 20 of them, with deviation 4.2."""
    found = [flattening(bent(0.02, seed), 32) for seed in range(200)]
    assert sum(each is not None and each.equal < 0.1 for each in found) == pytest.approx(20, abs=17)


def test_one_side_is_not_enough() -> None:
    assert flattening(bent(0.0), 5) is None
    assert flattening([(x, 2.0 * x) for x in range(8)], 4) is None, "without noise there is nothing to test against"

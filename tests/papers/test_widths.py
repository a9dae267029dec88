"""The least m, where the excess crosses 1 %, and how it grows."""

import math

import pytest

from byheart.papers.madden_2024.madden_page import growth, widths


def row(hidden: int, excess: float | None, stories: int = 100) -> dict[str, float | int | None]:
    return {"stories": stories, "hidden": hidden, "relative_excess": excess, "contexts": 9, "vocab": 10}


def test_the_crossing_is_on_the_line_in_logarithms() -> None:
    (found,) = widths([row(8, 0.08), row(16, 0.00125)])  # from 8 times 1 % to an eighth of it: halfway
    assert found.crossing == pytest.approx(math.sqrt(8 * 16))
    (other,) = widths([row(8, 0.01 * 4**0.25), row(16, 0.01 / 4**0.75)])
    assert other.crossing == pytest.approx(8 * 2**0.25), "a quarter of the way"


def test_an_m_is_enough_if_every_run_is_and_a_run_without_a_number_is_not() -> None:
    (found,) = widths([row(4, 0.5), row(8, 0.004), row(8, 0.04), row(16, 0.004), row(32, None)])
    assert (found.least, found.tried, found.least_in_words) == (16, 32, "16")
    assert found.crossing == pytest.approx(8 * 2 ** (math.log(4) / math.log(10))), "from the worse run of m = 8"
    (none,) = widths([row(4, 0.5), row(8, None)])
    assert (none.least, none.crossing, none.parameters, none.least_in_words) == (None, None, None, "> 8")
    assert none.nearest == 0.5


def test_there_is_no_crossing_below_the_grid_or_beside_a_run_that_diverged() -> None:
    assert [one.crossing for one in widths([row(4, 0.001), row(8, 0.0001)])] == [None]
    assert [one.crossing for one in widths([row(4, None), row(8, 0.0001)])] == [None]


def test_a_loss_that_rounding_puts_below_the_entropy_has_a_crossing_too() -> None:
    (found,) = widths([row(4, 0.1), row(8, -1e-7)])
    assert found.crossing is not None
    assert 4 < found.crossing < 8


def test_a_power_law_is_found_and_two_points_are_none() -> None:
    rows = [row(m, 0.01 * (0.02 * n**1.5 / m) ** 2, n) for n in (100, 200, 300, 400) for m in (4, 16, 64, 256, 1024)]
    law = growth(widths(rows))
    assert (law["a"].value, law["b"].value) == (pytest.approx(0.02), pytest.approx(1.5))
    assert law["b"].low <= 1.5 + 1e-9
    assert growth(widths([one for one in rows if one["stories"] <= 200])).status == "failed"

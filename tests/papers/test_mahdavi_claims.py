"""Mahdavi's claims, recovered from tables in which they were planted."""

import math
from typing import Any

import pytest

from byheart.errors import BadInput
from byheart.papers.mahdavi_2024.mahdavi_claims import axis_of, beyond_length, growth, memorized, proved_growth


def row(accuracy: float | None = 0.5, **more: Any) -> dict[str, Any]:
    sizes = {"answers": "labels", "examples": 1000, "length": 32, "heads": 20, "head_dim": 64}
    return sizes | {"best_accuracy": accuracy} | more


def test_the_axis_is_what_varies() -> None:
    assert axis_of([row(), row(heads=5)]) == "heads"
    assert axis_of([row(), row(length=5)]) == "length"
    assert axis_of([row(), row(head_dim=5)]) == "head_dim"
    assert axis_of([row(), row(examples=5)]) is None


def test_slopes_are_those_that_were_planted_and_saturation_is_left_out() -> None:
    rows = [
        row(min(1.0, 40 * H / N + by), heads=H, examples=N)
        for H in (1, 5, 10, 20, 40)
        for N in (1000, 4000)
        for by in (0, 0.01)
    ]
    first, second = growth(rows, "heads")
    assert (first.examples, second.examples) == (1000, 4000)
    assert first.line is not None
    assert second.line is not None
    assert (first.line.points, second.line.points) == (8, 10)
    assert first.line.slope.low < 0.04 < first.line.slope.high
    assert second.line.slope.value == pytest.approx(0.01)
    assert second.line.r_squared.value > 0.99


def test_targets_count_by_the_variance_that_is_explained() -> None:
    rows = [row(answers="targets", best_loss=(1 - n / 100) / 12, length=n) for n in (1, 5, 10, 20)]
    (found,) = growth(rows, "length")
    assert found.line is not None
    assert found.line.slope.value == pytest.approx(0.01)
    assert memorized(row(answers="targets", best_loss=None)) is None


def test_beyond_the_length_of_the_contexts() -> None:
    dims = [d for d in (10, 15, 20, 25, 30, 35, 40, 50, 60) for _ in (0, 1)]
    rows = [row(0.02 * min(d, 32) + 0.005 * (k % 2), head_dim=d) for k, d in enumerate(dims)]
    (found,) = beyond_length([*rows, row(None, head_dim=5)])
    assert found.dimensions is not None
    assert (found.examples, found.dimensions.at, found.saturated) == (1000, 32, False)
    assert found.dimensions.before.slope.value == pytest.approx(0.02, rel=0.05)
    assert found.dimensions.beyond.slope.value == pytest.approx(0, abs=1e-3)
    assert found.dimensions.equal < 1e-6
    with pytest.raises(BadInput, match="no common length"):
        beyond_length([*rows, row(length=5)])


def test_too_few_points_are_no_line() -> None:
    (found,) = growth([row(heads=1), row(heads=5)], "heads")
    assert found.line is None
    (flat,) = beyond_length([row(head_dim=5), row(head_dim=10)])
    assert flat.dimensions is None
    assert flat.doublings is None
    assert not flat.saturated


def test_two_seeds_at_two_numbers_of_heads_are_no_line() -> None:
    """Four points, but any two means lie on a line: R² would say nothing."""
    rows = [row(0.1 * H + by, heads=H) for H in (1, 5, 9) for by in (0, 0.01)]
    assert growth(rows, "heads")[0].line is None, "at H = 9 the mean is above 0.9"
    assert growth([*rows, row(0.2, heads=2)], "heads")[0].line is not None


def test_right_answers_a_head_beside_what_is_proved_by_hand() -> None:
    """N = 4000 and 0.01 of accuracy a head: 40 right answers a head; the theorem has min(32, 64) − 1 = 31 more."""
    rows = [row(0.01 * H + by, heads=H, examples=4000) for H in (1, 5, 10, 20) for by in (0, 0.01)]
    (found,) = growth(rows, "heads")
    assert found.right is not None
    assert found.right.value == pytest.approx(40)
    assert found.right.low < 40 < found.right.high
    assert found.proved == 31
    assert proved_growth([row(length=n) for n in (1, 20)], "length") == 20, "H examples a token, where n < d_h"
    assert proved_growth([row(length=n) for n in (1, 128)], "length") == pytest.approx(20 * 63 / 127), "up to d_h"
    assert proved_growth([row(head_dim=d) for d in (40, 64)], "head_dim") == 0, "beyond n it does not grow"
    assert proved_growth([row()], "heads") is None
    assert proved_growth([{"heads": 1}, {"heads": 2}], "heads") is None, "without n and d_h nothing is known"


def test_targets_have_no_right_answers() -> None:
    rows = [row(answers="targets", best_loss=(1 - n / 100) / 12, length=n) for n in (1, 5, 10, 20)]
    assert growth(rows, "length")[0].right is None


def test_a_logarithm_flattens_a_dimension_and_not_a_doubling() -> None:
    dims = [d for d in (8, 12, 16, 24, 32, 36, 48, 64, 96, 128) for _ in (0, 1)]
    rows = [row(0.1 * math.log2(d) + 0.002 * (k % 2), head_dim=d) for k, d in enumerate(dims)]
    (found,) = beyond_length(rows)
    assert found.dimensions is not None
    assert found.doublings is not None
    assert found.dimensions.equal < 1e-4
    assert found.doublings.equal > 0.5
    assert found.doublings.before.slope.value == pytest.approx(0.1)
    assert found.doublings.beyond.slope.value == pytest.approx(0.1)


def test_what_is_flat_because_accuracy_ends_at_one_says_nothing_about_the_dimension() -> None:
    dims = [d for d in (10, 15, 20, 25, 30, 35, 40, 50, 60) for _ in (0, 1)]
    (found,) = beyond_length([row(min(0.95, 0.04 * d) - 0.002 * (k % 2), head_dim=d) for k, d in enumerate(dims)])
    assert found.saturated
    assert (found.dimensions, found.doublings) == (None, None)

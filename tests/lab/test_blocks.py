"""Mahdavi's claims, recovered from tables in which they were planted."""

from typing import Any

import pytest

from byheart.errors import BadInput
from byheart.lab.blocks import axis_of, beyond_length, growth, memorized


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
    assert found.slopes is not None
    assert (found.examples, found.slopes.at) == (1000, 32)
    assert found.slopes.before.slope.value == pytest.approx(0.02, rel=0.05)
    assert found.slopes.beyond.slope.value == pytest.approx(0, abs=1e-3)
    assert found.slopes.equal < 1e-6
    with pytest.raises(BadInput, match="no common length"):
        beyond_length([*rows, row(length=5)])


def test_too_few_points_are_no_line() -> None:
    (found,) = growth([row(heads=1), row(heads=5)], "heads")
    assert found.line is None
    (flat,) = beyond_length([row(head_dim=5), row(head_dim=10)])
    assert flat.slopes is None

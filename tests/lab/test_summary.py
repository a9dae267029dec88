"""Summaries: means over repetitions, axes that vary, and runs side by side."""

from typing import Any

import pytest

from byheart.errors import BadInput
from byheart.lab.rows import ResultRow, axes, compare, constants, difference, points


def row(accuracy: Any, status: Any = "done", **config: Any) -> ResultRow:
    return ResultRow("toy", "", config, status, {"accuracy": accuracy, "note": "x"}, 0.0, None)


def grid(steps: int, shift: float = 0.0, heads: tuple[int, ...] = (1, 2)) -> list[ResultRow]:
    """Two repetitions at every point, 0.2 apart."""
    return [row(H / 10 + seed / 5 + shift, heads=H, steps=steps, seed=seed) for H in heads for seed in (0, 1)]


def test_repetitions_become_means_and_deviations() -> None:
    first, second = points(grid(4))
    assert (first.settings, second.settings) == ({"heads": 1}, {"heads": 2})
    assert first.models == second.models == 2
    accuracy = first.metrics["accuracy"]
    assert (accuracy.mean, accuracy.deviation) == (pytest.approx(0.2), pytest.approx(0.02**0.5))
    assert [*first.metrics] == ["accuracy"], "texts have no mean"


def test_one_value_has_no_deviation_and_what_is_missing_is_left_out() -> None:
    (point,) = points([row(0.5, seed=0), row(None, seed=1), row(9, "failed", seed=2)])
    assert (point.models, point.metrics["accuracy"].mean, point.metrics["accuracy"].deviation) == (2, 0.5, None)
    assert point.metrics["accuracy"].models == 1


def test_axes_are_what_varies_and_constants_the_rest() -> None:
    rows = [row(0, heads=H, widths=[H], steps=4, seed=H) for H in (1, 2)]
    assert axes(rows) == ["heads", "widths"]
    assert constants(rows) == {"steps": 4}
    assert axes([]) == []
    assert constants([]) == {}


def test_runs_that_differ_in_a_constant_are_compared_point_by_point() -> None:
    metric, table = compare([grid(4), grid(8, shift=0.05, heads=(2, 3))])
    assert metric == "accuracy"
    assert [[point and point.settings["heads"] for point in pair] for pair in table] == [[1, None], [2, 2], [None, 3]]
    apart = difference(table, metric, 0, 1)
    assert (apart.points, apart.mean, apart.largest) == (1, pytest.approx(0.05), pytest.approx(0.05))


def test_the_largest_difference_keeps_its_sign() -> None:
    first, second = grid(4), [row(0.2, heads=1, steps=4, seed=0), row(0.0, heads=2, steps=4, seed=0)]
    apart = difference(compare([first, second])[1], "accuracy", 0, 1)
    assert (apart.points, apart.largest) == (2, pytest.approx(-0.3))


def test_runs_without_anything_in_common_say_so() -> None:
    _, table = compare([grid(4, heads=(1, 2)), grid(4, heads=(3, 4))])
    assert difference(table, "accuracy", 0, 1).points == 0
    with pytest.raises(BadInput, match="no metric in common"):
        compare([grid(4), []])

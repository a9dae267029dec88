"""What N examples need, recovered from curves in which it was planted."""

from typing import Any

import pytest

from byheart.papers.mahdavi_2024.mahdavi_claims import (
    NeededSize,
    examples_per_unit,
    first_saturated,
    needed,
    needed_line,
    same_step,
)

HEADS = (1, 5, 10, 20, 30, 40, 50, 60)


def rows(a_head: float = 500, sizes: tuple[int, ...] = (5000, 10_000, 15_000), **more: Any) -> list[dict[str, Any]]:
    """Two seeds that memorize 500 examples a head, the second 1 % less."""
    return [
        {"answers": "labels", "examples": N, "heads": H, "seed": seed}
        | {"best_accuracy": min(1.0, a_head * H / N * (1 - 0.01 * seed))}
        | more
        for N in sizes
        for H in HEADS
        for seed in (0, 1)
    ]


def test_what_is_read_off_a_curve_by_hand() -> None:
    assert first_saturated([(1, 0.5), (5, 0.8), (9, 1.0)]) == pytest.approx(7)
    assert first_saturated([(9, 1.0), (1, 0.5), (5, 0.8)]) == pytest.approx(7), "in any order"
    assert first_saturated([(1, 0.5), (5, 0.9)]) == 5
    assert first_saturated([(1, 0.8), (2, 1.0), (3, 0.8), (4, 1.0)]) == pytest.approx(1.5), "the first of several"
    assert first_saturated([(1, 0.95), (2, 0.5), (3, 1.0)]) is None, "it begins above"
    assert first_saturated([(1, 0.5), (2, 0.8)]) is None, "it never gets there"
    assert first_saturated([(1, 0.5)]) is None
    assert first_saturated([]) is None


def test_what_was_planted_is_found() -> None:
    """0.9 · N / 500 heads: 9, 18 and 27, so that 500/0.9 = 555.6 examples take a head; the second seed's are 1 % more,
    but where 1 cuts the curve off between two points.
    """
    found = needed(rows(), "heads")
    assert [each.examples for each in found] == [5000, 10_000, 15_000]
    assert [each.crossings[0] for each in found] == pytest.approx([9, 18, 27])
    assert found[0].crossings[1] == pytest.approx(9 / 0.99)
    through = needed_line(found)
    assert through is not None
    assert through.points == 6
    more = examples_per_unit(through)
    assert more is not None
    assert more.value == pytest.approx(500 / 0.9, rel=0.02)
    assert more.low < more.value < more.high


def test_seeds_that_say_nothing_are_counted_and_their_numbers_of_examples_left_out() -> None:
    found = needed(rows(sizes=(5000, 10_000, 15_000, 33_000, 10**6)), "heads")
    assert [(len(each.crossings), each.seeds) for each in found] == [(2, 2), (2, 2), (2, 2), (1, 2), (0, 2)]
    assert found[3].mean is None
    assert found[4].mean is None
    through = needed_line(found)
    assert through is not None
    assert through.points == 6


def test_what_is_crossed_within_one_step_says_nothing_of_growth() -> None:
    within = [NeededSize(10, (4.2, 5.0), 2), NeededSize(20, (4.6,), 2)]
    assert same_step(within, HEADS) == (1, 5)
    assert same_step([*within, NeededSize(30, (5.1,), 1)], HEADS) is None, "in the next step"
    assert same_step(needed(rows(), "heads"), HEADS) is None
    assert same_step([NeededSize(10, (), 2)], HEADS) is None


def test_means_have_intervals_over_seeds() -> None:
    """Mean 2 of 1 and 3: the deviation is √2, the error 1, Student's quantile for one degree of freedom 12.706."""
    mean = NeededSize(100, (1.0, 3.0), 2).mean
    assert mean is not None
    assert (mean.value, mean.high) == (2, pytest.approx(14.706, abs=1e-3))


def test_what_does_not_grow_takes_no_head_more() -> None:
    found = [NeededSize(N, (3.0 + by, 3.0 - by), 2) for N, by in ((10, 0.1), (20, 0.3), (30, 0.2))]
    through = needed_line(found)
    assert through is None or examples_per_unit(through) is None
    assert needed_line(found[:2]) is None, "two numbers of examples are no line"
    assert needed([{"answers": "labels", "best_accuracy": 0.5}], "heads") == []

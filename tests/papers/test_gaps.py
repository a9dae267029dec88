"""Gaps to published points: by hand, as often within noise as they say, and on what comes with Byheart."""

import math
from typing import Any

import numpy as np
import pytest

from byheart.errors import BadInput
from byheart.papers.dana_2025.dana_claims import Gap, Gaps, claims, gaps, published, record, shipped_tables

POINTS = published("dana-2025-1")


def run(point: dict[str, Any], reached: float | None, **more: Any) -> dict[str, Any]:
    uniform = None if reached is None else reached - 0.05
    return point | {"last_accuracy": reached, "accuracy": uniform} | more


def test_a_gap_by_hand() -> None:
    """Two runs 0.02 apart: s = 0.01·√2, and beside 5 published ones the gap's deviation is s·√(1/2 + 1/5)."""
    (found,) = gaps("x", [run(POINTS[0], POINTS[0]["last_accuracy"] + by) for by in (0.0, 0.02)]).points
    assert found.gap == pytest.approx(0.01)
    assert found.deviation == pytest.approx(0.01 * math.sqrt(2))
    assert found.noise == pytest.approx(0.01 * math.sqrt(2) * math.sqrt(0.7))
    assert found.uniform == pytest.approx(found.here - 0.05)
    assert found.within is True, "12.7 deviations are within noise, of which two runs say little"
    far = POINTS[0]["last_accuracy"] + 0.1
    (found,) = gaps("x", [run(POINTS[0], far + by) for by in (0.0, 0.001)]).points
    assert found.within is False


def test_all_gaps_of_an_experiment() -> None:
    told = gaps(
        "x", [run(point, point["last_accuracy"] + by) for point, by in zip(POINTS, (0.01, -0.03), strict=False)]
    )
    assert len(told.points) == 2
    assert told.mean == pytest.approx(-0.01)
    assert told.mean_absolute == pytest.approx(0.02)
    assert told.largest.gap == pytest.approx(-0.03)
    assert told.uniform == pytest.approx(-0.05)
    assert (told.deviation, told.expected, told.within) == (None, None, 0), "one run each has no noise"


def test_noise_explains_as_many_gaps_and_as_large_ones_as_it_says() -> None:
    """5 runs and a published mean of 5 around the same value, 2,000 times."""
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((2000, 10))
    points = [Gap({}, row[:5].mean(), 5, row[5:].mean(), float(row[5:].std(ddof=1)), 5, None) for row in drawn]
    found = Gaps("x", tuple(points))
    assert found.within == pytest.approx(1900, abs=50)
    assert found.expected == pytest.approx(found.mean_absolute, rel=0.05)
    assert found.expected == pytest.approx(math.sqrt(2 / math.pi * 0.4), rel=0.02)


def test_runs_that_diverged_are_left_out_and_nothing_published_is_refused() -> None:
    (found,) = gaps("x", [run(POINTS[0], 0.1), run(POINTS[0], None)]).points
    assert found.runs == 1
    with pytest.raises(BadInput, match="mine: no point of it was published"):
        gaps("mine", [{"heads": 1, "last_accuracy": 0.5}])
    with pytest.raises(BadInput, match="mine: no point of it was published"):
        gaps("mine", [run(POINTS[0], None)])


def test_the_whole_paper_is_within_noise_of_what_comes_with_byheart() -> None:
    """Mean |gap| at most 0.008 over all points; what noise alone would make is of the same size."""
    found, slopes, said = record(shipped_tables())
    everything = found[-1]
    assert (len(found), len(everything.points)) == (13, 239)
    assert everything.mean_absolute < 0.008
    assert abs(everything.mean) < 0.001
    assert everything.expected is not None
    assert everything.mean_absolute < 1.3 * everything.expected
    assert len(slopes) == 11 + 1 + 1 + 3 + 3 + 1 + 3 + 1 + 3 + 3 + 1 + 3
    assert all(each.here is not None and each.published is not None for each in slopes)
    fourth, sixth = said
    assert 2 < fourth.here.low < fourth.here.high < 3, "between quadratic and cubic"
    assert sixth.published.value == pytest.approx(1.51, abs=0.01)
    assert sixth.here.low < 1.51 < sixth.here.high


def test_claims_need_results_that_allow_them() -> None:
    assert claims({}) == []
    assert claims({"dana-2025-6": shipped_tables()["dana-2025-6"][:1]}) == []
    assert len(claims({"dana-2025-6": shipped_tables()["dana-2025-6"]})) == 1

"""Where success crosses one half: against a plain grid, with separated data, and as often right as it says."""

import math
from typing import Any

import numpy as np
import pytest

from byheart.errors import BadInput
from byheart.lab.crossing import Probe, crossing, crossings


def probes(xs: Any, successes: Any, tries: int) -> list[Probe]:
    return [Probe(float(x), int(k), tries) for x, k in zip(xs, successes, strict=True)]


def by_grid(x: Any, k: Any, n: Any, drop: float, cs: Any, slopes: Any) -> tuple[float, float, float]:
    """The maximum and the profile interval, from all (c, s) of a grid."""
    z = slopes[:, None, None] * (cs[None, :, None] - np.asarray(x))
    likelihood = -(np.asarray(k) * np.logaddexp(0, -z) + (np.asarray(n) - k) * np.logaddexp(0, z)).sum(axis=2)
    profile = likelihood.max(axis=0)
    inside = cs[profile >= profile.max() - drop]
    return float(cs[profile.argmax()]), float(inside[0]), float(inside[-1])


@pytest.mark.parametrize("k", [(9, 5, 2), (10, 6, 1), (7, 8, 1), (10, 10, 3), (10, 2, 0)])
def test_as_a_grid_finds_it(k: tuple[int, int, int]) -> None:
    x, cs, slopes = (1.0, 2.0, 3.0), np.linspace(0, 6, 1201), np.concatenate([[0.0], np.geomspace(1e-3, 200, 1500)])
    c, low, high = by_grid(x, k, 10, 3.841459 / 2, cs, slopes)
    half = crossing(probes(x, k, 10))
    assert half.low == pytest.approx(low, abs=0.011)
    assert half.high == pytest.approx(high, abs=0.011)
    if half.status == "found":
        assert half.x == pytest.approx(c, abs=0.011)


@pytest.mark.parametrize(("k", "n"), [((9, 5, 7, 2), 10), ((999_999, 999_990, 0, 1), 10**6), ((3, 3, 2, 3), 10**6)])
def test_the_estimate_solves_the_equations_of_the_likelihood(k: tuple[int, ...], n: int) -> None:
    """Successes are as many as expected, and in the mean at the same x; c may lie far outside."""
    x = np.array([1.0, 2.0, 4.0, 5.0])
    half = crossing(probes(x, k, n))
    assert half.x is not None
    assert half.slope is not None
    missed = np.array(k) - n / (1 + np.exp(-half.slope * (half.x - x)))
    assert [missed.sum(), missed @ x] == pytest.approx([0, 0], abs=1e-9 * sum(k))


@pytest.mark.slow
def test_the_interval_covers_at_the_nominal_rate() -> None:
    """At 20 tries a point; the level is asymptotic. 200 draws at 95 %: 190 ± 3.1."""
    rng, xs, covered = np.random.default_rng(0), np.linspace(0, 10, 6), 0
    for _ in range(200):
        c, s = rng.uniform(3, 7), rng.uniform(0.5, 1.5)
        half = crossing(probes(xs, rng.binomial(20, 1 / (1 + np.exp(-s * (c - xs)))), 20))
        covered += (half.low is None or half.low <= c) and (half.high is None or c <= half.high)
    assert 176 <= covered <= 199, covered


def test_perfectly_separated_data_know_the_gap_and_no_more() -> None:
    gap = crossing(probes([100, 200, 300, 400], [6, 6, 0, 0], 6))
    assert (gap.status, gap.x, gap.slope) == ("separated", 250.0, None)
    assert (gap.low, gap.high) == (pytest.approx(200), pytest.approx(300))


def test_few_tries_reach_beyond_the_gap() -> None:
    """One try a point cannot exclude much: the interval is open on both sides."""
    few = crossing(probes([100, 200], [1, 0], 1))
    assert (few.status, few.x, few.low, few.high) == ("separated", 150.0, None, None)
    more = crossing(probes([100, 200], [2, 0], 2))
    assert more.low is not None
    assert more.low < 100
    assert more.high is not None
    assert more.high > 200


def test_both_outcomes_at_one_x_only() -> None:
    """Below it all succeed and above it all fail: the crossing is there, and the slope is infinite."""
    jump = crossing(probes([1, 2, 3], [9, 2, 0], 9))
    assert (jump.status, jump.x, jump.slope) == ("separated", 2.0, None)
    assert jump.low is not None
    assert 1 < jump.low < 2
    assert jump.high is not None
    assert 2 <= jump.high < 2.2
    assert type(jump.low) is type(jump.high) is float


def test_all_fail_and_all_succeed_leave_one_end_open() -> None:
    none, every = crossing(probes([5, 6], [0, 0], 10)), crossing(probes([5, 6], [10, 10], 10))
    assert (none.status, none.x, none.low, none.high) == ("all fail", None, None, pytest.approx(5))
    assert (every.status, every.x, every.low, every.high) == ("all succeed", None, pytest.approx(6), None)
    assert crossing([Probe(5, 0, 2)]).high is None, "two tries exclude nothing at 95 %"


def test_without_a_trend_there_is_no_crossing() -> None:
    half = crossing(probes([1, 2, 3], [5, 5, 5], 10))
    assert (half.status, half.x, half.low, half.high) == ("no trend", None, None, None)
    often = crossing(probes([1, 2, 3], [8, 9, 10], 10))
    assert (often.status, often.x, often.high) == ("no trend", None, None)
    assert often.low is not None
    assert often.low > 2
    backwards = crossing(probes([1, 2, 3], [0, 5, 10], 10))
    assert (backwards.status, backwards.low, backwards.high) == ("no trend", None, None)
    mirrored = crossing(probes(np.arange(1, 11) / 3, [2, 1, 3, 0, 3, 3, 0, 3, 1, 2], 3))
    assert mirrored.status == "no trend", "of the slope only rounding is left"


def test_one_x_alone_tells_only_on_which_side_the_crossing_is() -> None:
    some = crossing([Probe(7, 3, 5)])
    assert (some.status, some.x, some.low, some.high) == ("no trend", None, None, None)
    most = crossing([Probe(7, 19, 20)])
    assert (most.status, most.x, most.low, most.high) == ("no trend", None, pytest.approx(7), None)


def test_rising_is_falling_turned_round() -> None:
    falls = crossing(probes([1, 2, 3, 4], [9, 8, 3, 1], 10))
    rises = crossing(probes([-1, -2, -3, -4], [9, 8, 3, 1], 10), rising=True)
    assert (rises.x, rises.low, rises.high) == pytest.approx((-falls.x, -falls.high, -falls.low))
    assert rises.slope == pytest.approx(falls.slope)


def test_a_logarithmic_scale() -> None:
    plain = crossing(probes([0, 1, 2, 3], [10, 8, 3, 0], 10))
    log = crossing(probes(np.exp([0, 1, 2, 3]), [10, 8, 3, 0], 10), scale="log")
    assert [math.log(end) for end in (log.x, log.low, log.high)] == pytest.approx([plain.x, plain.low, plain.high])
    assert log.slope == pytest.approx(plain.slope)
    with pytest.raises(BadInput, match="x > 0 on a logarithmic scale"):
        crossing([Probe(0, 1, 2)], scale="log")


def test_an_end_beyond_all_floats() -> None:
    """Success that falls from 90.01 to 89.99 %: log x has an end, and x has none that is a float."""
    flat = crossing(probes([1, 2, 3], [9001, 9000, 8999], 10_000), scale="log", level=0.01)
    assert flat.high == math.inf


def test_probes_may_be_given_one_by_one() -> None:
    single = [Probe(x, int(i < k), 1) for x, k in ((1, 9), (2, 5), (3, 2)) for i in range(10)]
    assert crossing(single) == crossing(probes([1, 2, 3], [9, 5, 2], 10))


def test_refusals() -> None:
    with pytest.raises(BadInput, match="successes are 3 of 2 tries"):
        Probe(1, 3, 2)
    with pytest.raises(BadInput, match="tries is 0"):
        Probe(1, 0, 0)
    with pytest.raises(BadInput, match="x is nan"):
        Probe(math.nan, 0, 1)
    with pytest.raises(BadInput, match="no probes"):
        crossing([])


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "the table has no rows"),
        ([{"heads": 1}], "the table has no column 'accuracy' in every row; expected one of heads"),
        ([{"heads": "many", "accuracy": 1.0}], "heads is 'many' in a row; expected numbers"),
        ([{"heads": 1, "accuracy": "high"}], "accuracy is 'high' in a row; expected numbers"),
    ],
)
def test_a_table_without_the_columns_is_refused(rows: list[dict[str, object]], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        crossings(rows, "heads", [], "accuracy")


def test_tries_without_a_number_have_failed() -> None:
    (found,) = crossings([{"heads": 1, "accuracy": accuracy} for accuracy in (1.0, None)], "heads", [], "accuracy")
    assert (found.tries, found.crossing.status) == (2, "no trend")

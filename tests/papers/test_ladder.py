"""The ladder: what it asks for, what comes out of training, and how seeds are put together."""

import math
from dataclasses import asdict
from typing import Any

import pytest

from byheart.errors import BadInput
from byheart.lab.models.gpt import gpt_with
from byheart.papers.capacity import Rung, even_batch, experiment, groups, held, ladder, plateaus, tunings, varied, work
from byheart.papers.results import table


def row(parameters: int, demand: float, bits: float | None, rate: float = 0.02) -> dict[str, Any]:
    return {
        "parameters": parameters,
        "examples": round(parameters * demand / 4),
        "demand": demand,
        "learning_rate": rate,
        "steps": 100,
        "bits_per_parameter": bits,
    }


def test_a_rung_asks_for_so_many_bits_a_parameter() -> None:
    rung = Rung(most_parameters=1200, demand=2.5, labels=32)
    assert rung.examples * math.log2(32) / 1200 == pytest.approx(2.5, abs=0.01)


def test_ladders_have_every_rung_once() -> None:
    rungs = ladder([500, 900], [1, 2, 3], seeds=2, learning_rates=(0.01, 0.02), steps=5).configs
    assert len(set(rungs)) == len(rungs) == 24
    assert {rung.steps for rung in rungs} == {5}
    jobs = groups(rungs)
    assert [len(job) for job in jobs] == [12] * 2, "three demands, two rates and two seeds of each size"
    assert sorted((rung for job in jobs for rung in job), key=repr) == sorted(rungs, key=repr)


def test_rungs_are_varied_one_setting_at_a_time() -> None:
    variations = varied([Rung(1000, 4, steps=100)], rates=[0.5, 2], times=[3])
    assert [(rung.learning_rate, rung.steps) for rung in variations] == [(0.01, 100), (0.04, 100), (0.02, 300)]


def test_batches_are_equal_and_as_few_as_possible() -> None:
    assert [even_batch(60, most=most) for most in (25, 60, 100)] == [20, 60, 60]


@pytest.mark.parametrize("scale", ["smoke", "short", "paper"])
def test_every_scale_is_an_experiment_with_repetitions_whose_networks_can_be_kept(scale: str) -> None:
    made = experiment(scale)
    assert (made.name, made.scale) == ("capacity", scale)
    assert len({rung.seed for rung in made.configs}) >= 2
    assert made.prepare is not None
    kept = made.prepare(made.configs[0])
    assert kept.task is not None
    assert len(kept.task.inputs) == made.configs[0].examples


@pytest.mark.slow
def test_a_tiny_network_is_trained_and_counted() -> None:
    rung = Rung(most_parameters=800, demand=0.2, seed=1, steps=150)
    (trained,) = work([rung], "cpu", None)
    assert trained["examples"] == 40
    assert 0 < trained["parameters"] <= 800
    assert trained["memorized_bits"] == pytest.approx(40 * (4 - trained["loss_bits"]))
    assert trained["bits_per_parameter"] == pytest.approx(trained["memorized_bits"] / trained["parameters"])
    assert trained["memorized_bits"] > 0.5 * 160, "forty labels are few for 800 parameters"
    (again,) = work([rung], "cpu", None)
    assert again["memorized_bits"] == trained["memorized_bits"]


def test_seeds_give_an_interval_and_the_best_is_the_plateau() -> None:
    rows = [row(1000, 2, bits) for bits in (1.0, 1.2)] + [row(1000, 4, bits) for bits in (1.5, 1.7)]
    rows += [row(1000, 6, bits) for bits in (1.4, 1.5)] + [row(2000, 2, 1.1)]
    first, second = plateaus(rows)
    assert (first.parameters, first.demand, first.examples, first.seeds, first.edge) == (1000, 4, 1000, 2, False)
    assert first.bits_per_parameter == pytest.approx(1.6)
    # Two values 0.2 apart: deviation 0.2/√2, of the mean 0.1, times t = 12.706.
    assert first.low == pytest.approx(1.6 - 1.2706, abs=1e-3)
    assert first.high == pytest.approx(1.6 + 1.2706, abs=1e-3)
    assert (second.parameters, second.low, second.high, second.edge) == (2000, None, None, True)


def test_learning_rates_compete_by_their_means() -> None:
    rows = [row(1000, 2, bits, 0.01) for bits in (1.0, 1.1)] + [row(1000, 2, bits, 0.02) for bits in (0.4, 1.3)]
    assert plateaus(rows)[0].learning_rate == 0.01


def test_runs_that_diverged_are_counted_and_not_averaged() -> None:
    (point,) = held([row(1000, 2, 1.0), row(1000, 2, None), row(1000, 2, math.nan), row(1000, 2, 1.2)])
    assert (point.seeds, point.lost) == (2, 2)
    assert point.bits_per_parameter == pytest.approx(1.1)
    assert held([row(1000, 2, None)]) == []


def test_steps_are_not_averaged_over() -> None:
    short, long = row(1000, 2, 1.0), row(1000, 2, 1.4) | {"steps": 200}
    assert [(point.steps, point.bits_per_parameter) for point in held([short, long])] == [(100, 1.0), (200, 1.4)]


def test_a_size_that_was_tried_more_often_does_not_look_better_for_it() -> None:
    rows = [row(1000, 2, 1.0), row(1000, 2, 1.4) | {"steps": 200}, row(1000, 2, 1.5, 0.04), row(2000, 2, 1.1)]
    assert [point.bits_per_parameter for point in plateaus(rows)] == [1.0, 1.1]
    apart = [row(1000, 2, 1.0), row(2000, 2, 1.1, 0.04)]
    assert [point.bits_per_parameter for point in plateaus(apart)] == [1.0, 1.1], "nothing is shared: all count"


def test_tuning_is_one_setting_varied_around_how_all_sizes_were_trained() -> None:
    rows = [row(1000, 2, bits, rate) for rate, bits in ((0.01, 1.1), (0.02, 1.3), (0.04, 1.2))]
    rows += [row(1000, 2, 1.25) | {"steps": 50}, row(1000, 2, 1.35) | {"steps": 200}]
    rows += [row(1000, 2, 9.0, 0.04) | {"steps": 200}, row(1000, 4, 1.2), row(2000, 2, 1.1)]
    rates, steps = tunings(rows)
    assert (rates.along, steps.along, rates.chosen, steps.chosen) == ("learning_rate", "steps", *[(0.02, 100)] * 2)
    assert [point.bits_per_parameter for point in rates.points] == [1.1, 1.3, 1.2]
    assert [point.bits_per_parameter for point in steps.points] == [1.25, 1.3, 1.35], "not that of another rate"
    assert tunings(rows[:2]) == tunings([]) == [], "two are too few"


def test_the_largest_ladder_has_five_sizes_three_seeds_and_tuning() -> None:
    rungs = experiment("paper").configs
    assert {rung.seed for rung in rungs} == {0, 1, 2}
    shapes = {gpt_with(rung.most_parameters, rung.vocab, rung.labels, rung.length) for rung in rungs}
    assert len(shapes) >= 5
    assert {shape.layers for shape in shapes} == {3}
    rows = [row(rung.most_parameters, rung.demand, 1.0, rung.learning_rate) | {"steps": rung.steps} for rung in rungs]
    found = tunings(rows)
    assert {point.along for point in found} == {"learning_rate", "steps"}
    assert min(len(point.points) for point in found) >= 3
    for job in groups(rungs):
        assert sum(rung.steps for rung in job) * job[0].most_parameters < 1.2e10, "two minutes on an H200"


def test_the_fields_of_a_point_are_plain_values() -> None:
    (point,) = held([row(1000, 2, 1.0)])
    assert all(value is None or isinstance(value, int | float) for value in asdict(point).values())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"demand": 0}, "demand is 0"),
        ({"demand": 1, "labels": 1}, "one label holds no bits"),
        ({"demand": 1, "steps": 0}, "steps is 0"),
    ],
)
def test_refusals(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Rung(most_parameters=1000, **settings)


@pytest.mark.parametrize(
    "change",
    [{"parameters": "many"}, {"examples": None}, {"demand": -1}, {"learning_rate": True}, {"parameters": 0},
     {"steps": 0}, {"bits_per_parameter": "3"}, {"examples": 10**18}],
    ids=str,
)  # fmt: skip
def test_rows_that_are_no_measurements(change: dict[str, Any]) -> None:
    """A run's folder may come from anywhere."""
    row = {"parameters": 100, "learning_rate": 0.01, "steps": 9, "examples": 50, "demand": 1, "bits_per_parameter": 0.5}
    assert len(held([row])) == 1
    with pytest.raises(BadInput, match=f"a row's {next(iter(change))} is .*; expected"):
        held([row | change])
    del row["bits_per_parameter"]
    assert held([row]) == []


def test_the_ladder_that_comes_with_byheart_holds_less_than_is_published_for_larger_networks() -> None:
    best = plateaus(table("capacity"))
    assert [point.parameters for point in best] == [7996, 13880, 24955, 44892, 79743]
    for point in best:
        assert point.seeds == 3
        assert point.low is not None
        assert point.high is not None
        assert 2.7 < point.low < point.bits_per_parameter < point.high < 3.6
    steps = [found for found in tunings(table("capacity")) if found.along == "steps"]
    for found in steps:  # twice as many steps bring no more than seeds differ by
        chosen, more = found.points[-2:]
        assert (chosen.steps, more.steps) == (12_000, 24_000)
        assert chosen.high is not None
        assert more.bits_per_parameter < chosen.high

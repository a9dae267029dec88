"""Measured seconds, of experiments that there are, with a command each; and what is estimated from them."""

import math
from dataclasses import dataclass

import pytest

from byheart.lab.experiment import SCALES
from byheart.papers.experiments import EXPERIMENTS, H200, TWO_CORES, Seconds, Timing, model_steps, seconds, timings


def test_every_figure_has_its_command_and_is_of_something_that_there_is() -> None:
    rows = timings()
    assert len({(one.experiment, one.scale, one.machine) for one in rows}) == len(rows), "nothing twice"
    for one in rows:
        assert one.scale in SCALES
        assert one.machine in (H200, TWO_CORES)
        assert 0 < one.seconds < math.inf
        assert 0 < one.models <= one.model_steps
        assert f"--scale {one.scale}" in one.command
        assert ("--device cuda" in one.command) == (one.machine == H200)
        assert any(name.startswith(one.experiment) for name in EXPERIMENTS)


def test_a_figure_is_of_the_models_that_an_experiment_has_today() -> None:
    for one in timings():
        if one.experiment not in EXPERIMENTS:
            continue
        configs = EXPERIMENTS[one.experiment](one.scale).configs
        found = seconds(one.experiment, one.scale, one.machine, configs)
        assert found is not None
        if any(flag in one.command for flag in ("--every", "--seeds", "--examples", "--steps")):
            assert one.model_steps < model_steps(configs)
            assert found.estimated
        else:
            assert (one.models, one.model_steps) == (len(configs), model_steps(configs))
            assert found == Seconds(one.seconds, estimated=False)
            more = seconds(one.experiment, one.scale, one.machine, [*configs, *configs])
            assert more == Seconds(pytest.approx(2 * one.seconds), estimated=True)
    assert seconds("dana-2025-1", "paper", "an abacus", EXPERIMENTS["dana-2025-1"]("paper").configs) is None


@dataclass(frozen=True)
class Model:
    steps: int


def test_estimates_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """10 model-steps took 5 s: half a second each, so that 3 models of 20 take 30 s; together, 100 took 10 s."""
    part = Timing("dana-2025-1", "paper", H200, 2, 10, 5.0, "")
    whole = Timing("dana-2025", "paper", H200, 9, 100, 10.0, "")
    monkeypatch.setattr("byheart.papers.experiments.timings", lambda: (whole, part))
    models = [Model(20)] * 3
    assert seconds("dana-2025-1", "paper", H200, models) == Seconds(30.0, estimated=True)
    assert seconds("dana-2025-1", "paper", H200, [Model(5)] * 2) == Seconds(5.0, estimated=False)
    assert seconds("dana-2025-2", "paper", H200, models) == Seconds(6.0, estimated=True)
    assert seconds("dana-2025-1-larger", "paper", H200, models) == Seconds(6.0, estimated=True), "not of dana-2025-1"
    assert seconds("dana-2025-1", "short", H200, models) is None, "another scale has other models"
    assert seconds("dana-2025-1", "paper", TWO_CORES, models) is None
    assert seconds("mahdavi-2024-saturation", "paper", H200, models) is None

"""Measured seconds: of experiments that there are, with a command each."""

import math

from byheart.lab.experiments import EXPERIMENTS, SCALES
from byheart.lab.timings import H200, TWO_CORES, seconds, timings


def test_every_figure_has_its_command_and_is_of_something_that_there_is() -> None:
    rows = timings()
    assert len({(one.experiment, one.scale, one.machine) for one in rows}) == len(rows), "nothing twice"
    for one in rows:
        assert one.scale in SCALES
        assert one.machine in (H200, TWO_CORES)
        assert 0 < one.seconds < math.inf
        assert f"--scale {one.scale}" in one.command
        assert ("--device cuda" in one.command) == (one.machine == H200)
        assert any(name.startswith(one.experiment) for name in EXPERIMENTS)


def test_a_figure_is_of_the_models_that_an_experiment_has_today() -> None:
    for one in timings():
        if one.experiment in EXPERIMENTS:
            assert one.models == len(EXPERIMENTS[one.experiment](one.scale).configs)
            assert seconds(one.experiment, one.scale, one.machine, one.models) == one.seconds
            assert seconds(one.experiment, one.scale, one.machine, one.models + 1) is None
    assert seconds("dana-2025-1", "paper", "an abacus", 385) is None

"""Runs that were written when a model's dimension was called dim, and its hidden units mlp_dim.

The folders beside this file were written by the version before the names changed.
"""

import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from byheart.lab import Run
from byheart.lab.experiment import formerly, key, renamed
from byheart.papers.experiments import EXPERIMENTS

FORMER = Path(__file__).parent / "former"


@pytest.mark.parametrize("name", ["dana", "capacity"])
def test_runs_of_before_are_read_under_todays_names(name: str) -> None:
    run = Run.open(FORMER / name)
    assert run.done == len(run.configs) > 0
    for row in run.table:
        assert {"model_dim", "hidden"} <= row.keys()
        assert not {"dim", "mlp_dim"} & row.keys()


def test_their_numbers_stay_with_their_names() -> None:
    first, last = Run.open(FORMER / "dana").table
    assert (first["model_dim"], first["hidden"], first["parameters"]) == (7, 0, 1190)
    assert (last["model_dim"], last["hidden"]) == (13, 2 * 13 * 30)


def test_runs_of_before_are_resumed(tmp_path: Path) -> None:
    """Keys are the same as they were, and so are the seeds that come from them."""
    shutil.copytree(FORMER / "dana", tmp_path / "run")
    experiment = EXPERIMENTS["dana-2025-5-mlp"]("smoke")
    with Run.resume(tmp_path / "run", experiment) as run:
        assert run.pending() == []
        assert run.configs == {key(config): asdict(config) for config in experiment.configs}
    assert key(EXPERIMENTS["dana-2025-1"]("paper").configs[0]) == "ff4d7284ef85a23c"


def test_a_task_of_vectors_has_a_dim_as_before() -> None:
    assert renamed({"dim": 64, "heads": 2}) == formerly({"dim": 64, "heads": 2}) == {"dim": 64, "heads": 2}
    settings = {"dim": 64, "model_dim": 8, "hidden": 3}
    assert formerly(settings) == settings, "two settings must not get one name"

"""The room as a whole."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_torch_and_numpy_are_enough_to_train_and_to_write_runs(tmp_path: Path) -> None:
    """It is to run on machines with a GPU where little is installed."""
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['scipy', 'numba', 'flint', 'rich', 'matplotlib']))\n"
        "import byheart.tasks\n"
        "from byheart.lab import Given, Local, Run, execute\n"
        "from byheart.papers import ladder\n"
        "experiment = ladder([800], [1], seeds=2, steps=5)\n"
        f"with Run.create({str(tmp_path / 'run')!r}, experiment) as run, Local(Given(experiment)) as executor:\n"
        "    assert execute(run, experiment, executor).done == len(run.table) == 2\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)

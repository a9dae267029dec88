"""The room as a whole."""

import subprocess
import sys


def test_torch_and_numpy_are_enough() -> None:
    """It is to run on machines with a GPU where little is installed."""
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['numba', 'flint', 'rich', 'tyro', 'matplotlib']));"
        "import byheart.lab, byheart.tasks"
    )
    subprocess.run([sys.executable, "-c", script], check=True)

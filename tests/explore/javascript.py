"""The page's scripts that touch no page, run by node; tests that need it are skipped where there is none."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import byheart.explore

TEMPLATES = Path(byheart.explore.__file__).parent / "templates"


def evaluated(script: str, expression: str, given: object = None) -> Any:
    """The value of a JavaScript expression over what ``script`` exports, and ``given``."""
    if (node := shutil.which("node")) is None:
        pytest.skip("there is no node to run the page's scripts with; the browser test compares them too")
    program = (
        f"const script = require({json.dumps(str(TEMPLATES / script))});"
        "const given = JSON.parse(require('fs').readFileSync(0));"
        f"process.stdout.write(JSON.stringify({expression}));"
    )
    done = subprocess.run([node, "-e", program], input=json.dumps(given), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)

"""The way in: the version, and whose mistake something is."""

import subprocess
import sys
from pathlib import Path

import pytest

import byheart

from .conftest import Run


def test_version(run: Run) -> None:
    said = run("--version")
    assert (said.code, said.out) == (0, f"byheart {byheart.__version__}\n")


def test_our_own_mistakes_are_told_apart(run: Run, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1 says that something is not true; a crash says nothing about it."""

    def crash(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("byheart.networks.load", crash)
    said = run("show", "net")
    assert said.code == 70
    assert "ZeroDivisionError: a bug" in said.err
    assert said.err.endswith("byheart: this is a mistake of Byheart's own, not of yours; please report it\n")


def test_stopped_while_importing() -> None:
    """No traceback, and the exit code of whatever is stopped by Ctrl-C."""
    script = (
        "import sys, runpy\n"
        "class Stop:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'byheart.cli.compare': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())\n"
        "runpy.run_module('byheart', run_name='__main__')\n"
    )
    found = subprocess.run([sys.executable, "-c", script, "--version"], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "")


def test_errors_do_not_command_the_terminal(run: Run, work: Path) -> None:
    assert run("show", "\x1b[2Jcertified").complaint.startswith(r"byheart: \x1b[2Jcertified/config.json: no such file")

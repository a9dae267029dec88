"""The way in: the version, and whose mistake something is."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
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
    assert said.err.splitlines()[-1].startswith("byheart: this is a bug in Byheart")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError("Unable to allocate 9.00 GiB"), "Unable to allocate 9.00 GiB"),
        (MemoryError(), "unknown purpose"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "DefaultCPUAllocator"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "CUDA out of memory"),
    ],
)
def test_too_little_memory_is_nobodys_mistake(
    run: Run, work: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("byheart.networks.load", fail)
    complaint = run("show", "net").complaint
    assert complaint.startswith("byheart: there is not enough memory (")
    assert told in complaint
    assert "close other programs" in complaint


def test_stopped_while_importing() -> None:
    """No traceback, and the exit code of whatever is stopped by Ctrl-C."""
    script = (
        "import sys, runpy\n"
        "class Stop:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'byheart.cli.main': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())\n"
        "runpy.run_module('byheart', run_name='__main__')\n"
    )
    found = subprocess.run([sys.executable, "-c", script, "--version"], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "")


def test_errors_do_not_command_the_terminal(run: Run, work: Path) -> None:
    assert run("show", "\x1b[2Jcertified").complaint.startswith(r"byheart: \x1b[2Jcertified/config.json: no such file")


def test_names_do_not_command_the_terminal(run: Run, work: Path) -> None:
    name = "\x1b[2J[a].npz"
    (work / "t.npz").rename(work / name)
    for command in ("show", "check"):
        said = run("task", command, name)
        assert said.code == 0
        assert "\x1b" not in said.out
        assert r"\x1b[2J[a].npz" in said.out


def shell(command: str) -> tuple[int, str]:
    """Exit code and stderr of a command line in which BYHEART stands for the command."""
    line = command.replace("BYHEART", f"{shlex.quote(sys.executable)} -m byheart")
    found = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=False)
    return found.returncode, found.stderr


needs_shell = pytest.mark.skipif(os.name != "posix", reason="pipes and devices as POSIX has them")


@needs_shell
def test_readers_that_stop_change_no_exit_code(work: Path) -> None:
    """Every reader here is gone before anything is written."""
    np.savez(work / "twins.npz", tokens=np.array([[0, 1], [1, 0]]), labels=np.array([0, 1]))
    for code, arguments in (
        (0, ["task", "show", "t.npz"]),
        (0, ["task", "show", "t.npz", "--json"]),
        (1, ["task", "check", "twins.npz"]),
        (1, ["task", "check", "twins.npz", "--json"]),
        (2, ["task", "show", "none.npz", "--json"]),
        (0, ["--help"]),
        (0, ["--version"]),
    ):
        reading, writing = os.pipe()
        os.close(reading)
        command = [sys.executable, "-m", "byheart", *arguments]
        found = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
        os.close(writing)
        assert found.returncode == code, arguments
        assert found.stderr.count("\n") == int(code == 2)


@pytest.mark.parametrize(("command", "code"), [("--version", 0), ("task show none.npz --json", 2), ("lab", 2)])
def test_the_program_ends_at_once_and_loses_nothing(work: Path, command: str, code: int) -> None:
    """The installed program, which ends without Python's own end, says all that ``python -m byheart`` says."""
    ends = "import atexit; from byheart.__main__ import {0}; atexit.register(print, 'the end'); {0}()"
    found, plain = (
        subprocess.run(
            [sys.executable, "-c", ends.format(name), *command.split()], capture_output=True, text=True, check=False
        )
        for name in ("program", "main")
    )
    assert (found.returncode, found.stdout, found.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert (found.returncode, found.stdout.splitlines()[-1]) == (code, "the end")


@needs_shell
@pytest.mark.parametrize("command", ["task show t.npz", "--version", "task show none.npz --json"])
def test_closed_stdout(work: Path, command: str) -> None:
    code, told = shell(f"BYHEART {command} >&-")
    assert (code, told) == (2, "byheart: stdout is closed; expected somewhere to write the results\n")


@needs_shell
def test_closed_stderr(work: Path) -> None:
    assert shell("BYHEART task show none.npz 2>&-") == (2, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("command", ["--version", "--help", "task show t.npz", "task show t.npz --json"])
def test_full_stdout(work: Path, command: str) -> None:
    code, told = shell(f"BYHEART {command} >/dev/full")
    assert code == 2
    assert told.startswith("byheart: ")
    assert told.count("\n") == 1
    assert "No space left on device" in told


def test_mistakes_that_nobody_can_be_told_of(run: Run, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full stderr, and a panic of a library, which is no Exception."""

    class Panic(BaseException):
        pass

    def crash(*_: object, **__: object) -> None:
        raise Panic

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("byheart.networks.load", crash)
    assert run("show", "net").code == 70
    monkeypatch.setattr("traceback.print_exc", full)
    assert run("show", "net").code == 70


def test_narrow_terminals() -> None:
    narrow = os.environ | {"COLUMNS": "1"}
    command = [sys.executable, "-m", "byheart", "--help"]
    found = subprocess.run(command, capture_output=True, text=True, env=narrow, timeout=60, check=True)
    assert "certify" in found.stdout

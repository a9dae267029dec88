"""Commands that are killed, or find the disk full, at any of their file operations."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SWEEP = Path(__file__).with_name("sweep.py")


def sweep(how: str, scenario: str, folder: Path, *more: str) -> int:
    """How many operations the command has; fails if after one of them something was not as it should be."""
    command = [sys.executable, str(SWEEP), how, scenario, str(folder), *more]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    operations: int = json.loads(found.stdout)["operations"]
    return operations


def test_a_build_killed_anywhere(tmp_path: Path) -> None:
    assert sweep("kill", "build", tmp_path) > 20


def test_a_build_on_a_disk_that_is_full_anywhere(tmp_path: Path) -> None:
    assert sweep("fail", "build", tmp_path) > 12


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["build-new", "compile", "edit", "certify", "certify-again", "task"])
def test_killed_anywhere(scenario: str, tmp_path: Path) -> None:
    assert sweep("kill", scenario, tmp_path) > 10


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["build", "certify", "task"])
def test_killed_anywhere_where_names_cannot_be_exchanged(scenario: str, tmp_path: Path) -> None:
    assert sweep("kill", scenario, tmp_path, "in-two") > 10


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["build-new", "compile", "certify", "certify-again", "task"])
def test_a_disk_that_is_full_anywhere(scenario: str, tmp_path: Path) -> None:
    assert sweep("fail", scenario, tmp_path) > 10


@pytest.mark.slow
def test_checking_again_writes_nothing(tmp_path: Path) -> None:
    """Its end is all there is to be killed at."""
    assert sweep("kill", "recheck", tmp_path) == 2


LIMITED = """
    import resource, sys
    from byheart.cli.main import main
    import byheart.certificates, byheart.constructions.reciting, byheart.networks.exact.store
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
    main(sys.argv[2:])
"""


@pytest.mark.slow
def test_files_that_the_system_does_not_let_grow(tmp_path: Path) -> None:
    """Every library's own way to fail in the middle of a file: safetensors, zip archives, JSON, pictures."""
    (tmp_path / "text.txt").write_text(" ".join(map(str, range(500))))
    sizes = ("--examples", "40", "--length", "3", "--vocab", "60", "--labels", "4")

    def run(size: int, *command: str) -> subprocess.CompletedProcess[str]:
        script = "\n".join(line.strip() for line in LIMITED.splitlines())
        arguments = [sys.executable, "-c", script, str(size), *command]
        return subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)

    for command in (
        ("task", "random", *sizes, "-o", "t.npz"),
        ("build", "interpolate", "--task", "t.npz", "-o", "net"),
        ("compile", "text.txt", "-o", "book"),
        ("recite", "book", "--all-to", "said"),  # what numba compiles is kept beside the source, in larger files
    ):
        assert run(10**9, *command).returncode == 0
    before = {str(path): path.read_bytes() if path.is_file() else b"" for path in tmp_path.rglob("*")}
    for command in (
        ("task", "random", *sizes, "--seed", "1", "-o", "t.npz"),
        ("task", "random", *sizes, "-o", "t.jsonl"),
        ("build", "interpolate", "--task", "t.npz", "-o", "net"),
        ("build", "interpolate", "--task", "t.npz", "-o", "new/net"),
        ("compile", "text.txt", "-o", "book"),
        ("compile", "text.txt", "--layout", "uniform", "-o", "book"),
        ("recite", "book", "-o", "said.txt"),
        ("recite", "book", "--all-to", "."),
    ):
        found = run(100, *command)
        if command[-1] == ".":
            assert found.returncode == 0, "what is there already is not written"
            continue
        assert found.returncode == 2, (command, found)
        assert found.stderr.startswith(f"byheart: {command[-1]}: cannot be written: "), (command, found)
        assert "File too large" in found.stderr
        assert found.stderr.count("\n") == 1
    assert {str(path): path.read_bytes() if path.is_file() else b"" for path in tmp_path.rglob("*")} == before

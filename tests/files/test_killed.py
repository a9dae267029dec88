"""Commands that are killed, or find the disk full, at any of their file operations."""

import json
import os
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
import json, os, resource, sys
from byheart.cli.main import main
import byheart.certificates, byheart.compiler, byheart.networks.exact.exact_network

def run(size, command):
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(tell, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            main(command)
        except SystemExit as ended:
            sys.stderr.flush()
            os._exit(ended.code or 0)
    os.close(tell)
    with os.fdopen(told) as said:
        words = said.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), words

print(json.dumps([run(int(sys.argv[1]), command) for command in json.loads(sys.argv[2])]))
"""
"""Each command in a child of one process, which has imported what they need; its exit code, and what it said."""


@pytest.mark.slow
def test_files_that_the_system_does_not_let_grow(tmp_path: Path) -> None:
    """Every library's own way to fail in the middle of a file: safetensors, zip archives, JSON, pictures."""
    (tmp_path / "text.txt").write_text(" ".join(map(str, range(500))))
    sizes = ("--examples", "40", "--length", "3", "--vocab", "60", "--labels", "4")

    def run(size: int, *commands: tuple[str, ...]) -> list[tuple[int, str]]:
        arguments = [sys.executable, "-c", LIMITED, str(size), json.dumps(commands)]
        alone = os.environ | {"OMP_NUM_THREADS": "1"}  # threads do not survive a fork
        done = subprocess.run(arguments, cwd=tmp_path, env=alone, capture_output=True, text=True, check=True)
        return [(code, said) for code, said in json.loads(done.stdout)]

    first = (
        ("task", "random", *sizes, "-o", "t.npz"),
        ("build", "interpolate", "--task", "t.npz", "-o", "net"),
        ("compile", "text.txt", "-o", "book"),
        ("recite", "book", "--all-to", "said"),  # what numba compiles is kept beside the source, in larger files
    )
    assert [code for code, _ in run(10**9, *first)] == [0] * len(first)
    before = {str(path): path.read_bytes() if path.is_file() else b"" for path in tmp_path.rglob("*")}
    commands = (
        ("task", "random", *sizes, "--seed", "1", "-o", "t.npz"),
        ("task", "random", *sizes, "-o", "t.jsonl"),
        ("build", "interpolate", "--task", "t.npz", "-o", "net"),
        ("build", "interpolate", "--task", "t.npz", "-o", "new/net"),
        ("compile", "text.txt", "-o", "book"),
        ("compile", "text.txt", "--layout", "uniform", "-o", "book"),
        ("recite", "book", "-o", "said.txt"),
        ("recite", "book", "--all-to", "."),
    )
    for command, (code, said) in zip(commands, run(100, *commands), strict=True):
        if command[-1] == ".":
            assert code == 0, "what is there already is not written"
            continue
        assert code == 2, (command, said)
        assert said.startswith(f"byheart: {command[-1]}: cannot be written: "), (command, said)
        assert "File too large" in said
        assert said.count("\n") == 1
    assert {str(path): path.read_bytes() if path.is_file() else b"" for path in tmp_path.rglob("*")} == before

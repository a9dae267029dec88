"""docs/clusters.md: its scripts are run as they stand there, two nodes at a time, with the variables set by hand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from byheart.lab.runs import Run

PAGE = (Path(__file__).parents[1] / "docs" / "clusters.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def both(script: str, variables: list[dict[str, str]], folder: Path) -> None:
    """Run a script on two nodes, which are two processes here."""
    command = folder / "bin" / "byheart"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m byheart "$@"\n')
    command.chmod(0o755)
    everywhere = os.environ | {"PATH": f"{command.parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    everywhere |= {"EXPERIMENT": "dana-2025-1", "SCALE": "smoke", "RUNS": str(folder / "runs")}
    nodes = [subprocess.Popen(["sh", "-euc", script], env=everywhere | own, cwd=folder) for own in variables]
    assert [node.wait(timeout=300) for node in nodes] == [0, 0]


def done(folder: Path) -> dict[str, int]:
    return {path.name: Run.open(path).done for path in sorted(folder.iterdir())}


@pytest.mark.slow
def test_the_array_of_slurm_does_its_parts(tmp_path: Path) -> None:
    script = next(text for kind, text in BLOCKS if kind == "sh" and "--array" in text)
    both(script, [{"SLURM_ARRAY_TASK_ID": k, "SLURM_ARRAY_TASK_COUNT": "2"} for k in "12"], tmp_path)
    assert done(tmp_path / "runs") == {"part-1": 1, "part-2": 1}


@pytest.mark.slow
def test_the_indexed_job_of_kubernetes_does_its_parts(tmp_path: Path) -> None:
    manifest = next(text for kind, text in BLOCKS if kind == "yaml")
    completions = re.search(r"completions: (\d+)", manifest)
    script = re.search(r"- (byheart lab run .*)", manifest)
    assert completions is not None
    assert script is not None
    assert f"))/{completions[1]}" in script[1], "as many parts as completions"
    both(script[1].replace(f"))/{completions[1]}", "))/2"), [{"JOB_COMPLETION_INDEX": k} for k in "01"], tmp_path)
    assert done(tmp_path / "runs") == {"part-0": 1, "part-1": 1}


def test_compile_and_certify_take_the_flags_on_the_page() -> None:
    from byheart.cli.parsing import parse

    lines = re.findall(r"byheart ((?:compile|certify) [^#`\n]*--executor[^#`\n]*)", PAGE)
    assert len(lines) == 3
    for line in lines:
        parse(line.split())


@pytest.mark.parametrize("line", sorted({*re.findall(r"byheart lab (\w+ [^#`\n]*?)(?:  |\n|`)", PAGE)}))
def test_every_flag_on_the_page_is_one(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    from byheart.cli.main import main

    with pytest.raises(SystemExit):
        main(["lab", line.split(maxsplit=1)[0], "--help"])
    known = capsys.readouterr().out
    for flag in re.findall(r"(?<!\S)--?[a-z][a-z-]*", line):
        assert flag in known, flag

"""Help is quick, shows an example, and loads nothing heavy."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byheart.constructions import CONSTRUCTIONS

from ..exact import EXACT, SOFTMAX

Run = Callable[..., Any]
COMMANDS = [
    ["task"],
    ["task", "random"],
    ["task", "text"],
    ["task", "embed"],
    ["task", "confused"],
    ["task", "show"],
    ["task", "check"],
    ["bounds"],
    ["build"],
    *(["build", name] for name in CONSTRUCTIONS),
    ["certify"],
    ["compare"],
    ["approximate"],
    ["compile"],
    ["recite"],
    ["edit"],
    ["show"],
    ["collapse"],
    ["explore"],
    ["lab"],
    ["lab", "run"],
    ["lab", "list"],
    ["lab", "show"],
    ["lab", "compare"],
    ["lab", "merge"],
    ["lab", "crossing"],
    ["lab", "search"],
    ["lab", "capacity"],
    ["lab", "plot"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_help_has_an_example(run: Run, command: list[str]) -> None:
    said = run(*command, "--help")
    assert said.code == 0
    assert "Example" in said.out
    assert f"byheart {' '.join(command)}" in " ".join(said.out.split())


@pytest.mark.parametrize(
    "command",
    [["build", "vardi-2022"], ["certify"], ["task", "random"], ["compile"], ["recite"], ["edit"], ["show"]],
    ids=" ".join,
)
def test_every_option_is_explained(run: Run, command: list[str]) -> None:
    said = " ".join(run(*command, "--help").out.replace("│", " ").split())
    for option in {
        "build": ["--task", "--out", "--seed", "--bits", "--depth", "--json"],
        "certify": ["--controls"],
        "compile": [
            "--task",
            "--out",
            "--precision",
            "--words",
            "--tokenizer",
            "--vocab",
            "--window",
            "--seed",
            "--json",
        ],
        "recite": ["--text", "--prompt", "--tokens", "--out", "--all-to", "--threads"],
        "edit": ["--set", "--files", "--task", "--out", "--json"],
        "show": ["--plot", "--json"],
    }.get(command[0], ["--examples"]):
        assert option in said


def test_the_help_of_build_lists_all_constructions(run: Run) -> None:
    said = run("build", "--help")
    assert {name for name in CONSTRUCTIONS if name in said.out} == {*EXACT, *SOFTMAX}


@pytest.mark.parametrize("command", [["build", "folding"], ["bounds"], ["compare"], ["task", "check"]], ids=" ".join)
def test_constructions_of_ones_own_are_offered(run: Run, command: list[str]) -> None:
    assert "--construction MINE.PY" in run(*command, "--help").out


def test_the_main_help_lists_all_commands(run: Run) -> None:
    said = run("--help")
    assert said.code == 0
    for command in {command[0] for command in COMMANDS}:
        assert command in said.out


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["build", "kajitsuka-sato-2025"],
        ["build", "mahdavi-2024"],
        ["build", "staircase", "--construction", str(Path(__file__).parents[2] / "examples" / "own_construction.py")],
        ["certify"],
        ["compare"],
        ["compile"],
        ["show"],
        ["explore"],
    ],
    ids=" ".join,
)
def test_help_loads_nothing_heavy(command: list[str]) -> None:
    script = (
        "import sys\n"
        "from byheart.cli.main import main\n"
        "try:\n"
        f"    main({[*command, '--help']!r})\n"
        "except SystemExit as stopped:\n"
        "    loaded = [m for m in ('torch', 'numba', 'matplotlib', 'safetensors.torch') if m in sys.modules]\n"
        "    print('code', stopped.code, 'loaded', loaded)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] in ("code 0 loaded []", "code None loaded []")

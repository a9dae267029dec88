"""Help is quick, shows an example, and loads nothing heavy."""

import subprocess
import sys
from ast import literal_eval
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byheart.cli.commands import every_command
from byheart.constructions import CONSTRUCTIONS
from byheart.constructions.registry import BUILT_IN

from ..exact import EXACT, SOFTMAX

Run = Callable[..., Any]
COMMANDS = [list(words) for words, _ in every_command()]
HEAVY = ("torch", "numba", "scipy", "matplotlib", "transformers", "tokenizers", "safetensors.torch", "rich")


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_every_command_is_listed() -> None:
    """The list that the tests below go through is that of the menus, with their subcommands."""
    assert ["compile"] in COMMANDS
    assert ["lab", "run"] in COMMANDS
    assert ["build", "folding"] in COMMANDS
    assert len(COMMANDS) == 19 + 7 + 10 + len(CONSTRUCTIONS)


@pytest.mark.parametrize("command", [[], *COMMANDS], ids=" ".join)
def test_every_help_has_an_example(run: Run, command: list[str]) -> None:
    said = run(*command, "--help")
    assert said.code == 0
    assert said.out.startswith("usage: byheart")
    assert "Example" in said.out
    assert " ".join(["byheart", *command]) in said.out.partition("Example")[2]


@pytest.mark.parametrize("command", [[], *COMMANDS], ids=" ".join)
def test_help_is_plain_and_fits(run: Run, command: list[str]) -> None:
    said = run(*command, "--help").out
    assert [line for line in said.splitlines() if len(line) > 80] == []
    for odd in ("{None}", "(default: )", "(default: None)", "(default: False)", "[[", "]]", "{fixed}"):
        assert odd not in said


def test_what_is_optional_takes_no_none(run: Run) -> None:
    """None is written where a default is to be undone, and nowhere else."""
    assert "--dim INT " in run("task", "random", "--help").out
    assert "--vocab INT|None" in run("task", "random", "--help").out
    assert run("recite", "net", "--tokens", "None").code == 2


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["recit", "net"], "no command is called 'recit'; did you mean 'recite'"),
        (["lab", "rnu"], "no command is called 'rnu'; did you mean 'run'?"),
        (["task", "randm"], "no command is called 'randm'; did you mean 'random'?"),
        (["build", "foldng"], "no construction is called 'foldng'; did you mean 'folding'?"),
        (["lab", "run", "dana-2025-11"], "no experiment is called 'dana-2025-11'; did you mean 'dana-2025-1'"),
        (
            ["task", "check", "t.npz", "--theorem", "kim-2022"],
            "did you mean 'kim-2023'",
        ),
        (["theorems", "--brief", "foldng"], "did you mean 'folding'?"),
        (["approximate", "--function", "rnak"], "did you mean 'rank'?"),
        (["---help"], "no command is called '---help'"),
    ],
    ids=" ".join,
)
def test_what_was_probably_meant(run: Run, work: Path, words: list[str], meant: str) -> None:
    assert meant in run(*words).complaint


def test_options_that_were_probably_meant(run: Run, work: Path) -> None:
    """Also where something else is missing; and of this command only."""
    build = ("build", "vardi-2022", "-o", "net")
    assert run(*build, "--tsk", "t.npz").complaint.endswith(
        "build vardi-2022 has no option --tsk; did you mean '--task'?"
    )
    assert "did you mean '--depth'" in run(*build, "--task", "t.npz", "--dpeth=3").complaint
    assert (
        run(*build, "--task", "t.npz", "--dpeth=3", "--json").json["error"].startswith("byheart build vardi-2022 has")
    )
    assert "there are --" in run("task", "show", "t.npz", "--layout", "uniform").complaint
    assert run("build", "folding", "--task", "t.npz").err.count("--out") == 1, "one that is missing is no unknown one"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("build folding", "build folding: expected --task PATH and --out PATH, got none; as in: byheart build folding"),
        ("certify --count", "certify: expected PATH (network folder), got none; as in: byheart certify net --task"),
        ("certify net --task", "certify: --task: expected a value, got none; as in: "),
        ("compare --task t.npz --plot a b", "compare: expected no more words, got b; as in: "),
        ("bounds --examples many", "bounds: --examples: expected a whole number, in digits, got 'many'; as in: "),
        ("certify net --radius wide", "certify: --radius: expected a number, got 'wide'; as in: "),
        (
            "compile a -o b --precision float3",
            "compile: --precision: expected one of float32, float64, bfloat16; got 'float3'; as in: byheart compile",
        ),
    ],
)
@pytest.mark.parametrize("columns", ["20", "80"])
def test_what_is_missing_or_wrong_is_said_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, columns: str, words: str, complaint: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert run(*words.split()).complaint.startswith(f"byheart: {complaint}")
    assert run(*words.split(), "--json").json["error"].startswith(complaint)


@pytest.mark.parametrize("words", [["help"], ["help", "recite"], ["help", "lab", "run"]], ids=" ".join)
def test_help_in_a_word(run: Run, words: list[str]) -> None:
    assert run(*words) == run(*words[1:], "--help")


def test_no_words_at_all(run: Run) -> None:
    said = run()
    assert (said.code, said.out) == (2, "")
    assert said.err == run("--help").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_all_commands(run: Run, work: Path, shell: str) -> None:
    assert run("--tyro-write-completion", shell, "byheart.complete").code == 0
    script = (work / "byheart.complete").read_text()
    for command in COMMANDS:
        assert command[-1] in script
    assert "--layout" in script


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


def test_help_loads_nothing_heavy() -> None:
    """Not even for all commands one after the other, a construction of one's own among them."""
    own = str(Path(__file__).parents[2] / "examples" / "own_construction.py")
    commands = [[], *COMMANDS, ["build", "staircase", "--construction", own]]
    script = (
        "import sys\n"
        "from byheart.cli.main import main\n"
        f"for command in {commands!r}:\n"
        "    try:\n"
        "        main([*command, '--help'])\n"
        "    except SystemExit as stopped:\n"
        f"        loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "        assert not stopped.code and not loaded, (command, stopped.code, loaded)\n"
        "print('all of them')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "all of them"


@pytest.mark.parametrize(
    ("command", "loaded"),
    [(["build", "folding", "--help"], {"folding"}), (["build", "foldng"], set()), (["build", "--help"], set(BUILT_IN))],
    ids=["one", "none", "all"],
)
def test_the_help_of_a_construction_loads_no_other(command: list[str], loaded: set[str]) -> None:
    script = (
        "import sys\n"
        "from byheart.cli.main import main\n"
        "try:\n"
        f"    main({command!r})\n"
        "except SystemExit:\n"
        "    print([name for name in sys.modules if name.startswith('byheart.constructions.')])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = literal_eval(done.stdout.splitlines()[-1])
    assert {name for name in BUILT_IN if f"byheart.constructions.{name}" in modules} == loaded


def test_the_first_help_loads_nothing_at_all() -> None:
    """Neither numpy nor tyro: it takes no longer than Python's start."""
    script = (
        "import sys, byheart.__main__\n"
        "sys.argv = ['byheart', '--help']\n"
        "try:\n"
        "    byheart.__main__.main()\n"
        "except SystemExit:\n"
        "    print([name for name in ('numpy', 'tyro', 'rich') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"

"""Help is quick, shows an example, and loads nothing heavy."""

import shlex
import shutil
import subprocess
import sys
from ast import literal_eval
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from byheart.cli.arguments import fill
from byheart.cli.commands import every_command
from byheart.cli.menu import About
from byheart.cli.parsing import parse
from byheart.constructions import CONSTRUCTIONS
from byheart.constructions.registry import BUILT_IN
from byheart.errors import BadInput

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
    assert run(*build, "--tsk", "t.npz").complaint.startswith("byheart: build vardi-2022: ")
    assert run(*build, "--tsk", "t.npz").complaint.endswith("--tsk; did you mean '--task'?")
    assert "did you mean '--depth'" in run(*build, "--task", "t.npz", "--dpeth=3").complaint
    assert run(*build, "--task", "t.npz", "--dpeth=3", "--json").json["error"].startswith("build vardi-2022: ")
    assert "there are --" in run("task", "show", "t.npz", "--layout", "uniform").complaint
    assert run("build", "folding", "--task", "t.npz").err.count("--out") == 1, "one that is missing is no unknown one"


@pytest.mark.parametrize(
    ("words", "data"),
    [
        ("build folding", ["--task", "--out", "as in: byheart build folding --task t.npz"]),
        ("certify --count", ["NETWORK", "as in: byheart certify net --task"]),
        ("certify net --task", ["--task", "as in: byheart certify net"]),
        ("compare --task t.npz --plot a b", [": b;", "as in: byheart compare --task"]),
        ("bounds --examples many", ["--examples: expected a whole number, in digits, got 'many'; as in: byheart bou"]),
        ("bounds --bits none", ["--bits: expected a whole number, in digits, got 'none'"]),
        ("certify net --radius wide", ["--radius: expected a number, got 'wide'; as in: byheart certify net"]),
        ("compile a --columns b -o c", ["--columns", "2", "as in: byheart compile"]),
        ("recite net --prompt -x", ["--prompt", "as in: byheart recite"]),
        ("recite net -x", ["-x", "as in: byheart recite"]),
        ("bounds --json=yes", ["--json", "'yes'", "as in: byheart bounds"]),
        ("compile a -o b --precision 3", ["--precision: expected one of float32, float64, bfloat16; got '3'; as in: "]),
        ("compile a -o b --precision float3", ["one of float32, float64, bfloat16; got", "did you mean 'float32'?"]),
    ],
)
@pytest.mark.parametrize("columns", ["20", "80"])
def test_what_is_missing_or_wrong_is_said_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, columns: str, words: str, data: list[str]
) -> None:
    """The line begins with the command, and ends with an example or a suggestion."""
    monkeypatch.setenv("COLUMNS", columns)
    command = " ".join(words.split()[: 1 + (words.split(maxsplit=1)[0] == "build")])
    complaint = run(*words.split()).complaint
    assert complaint.startswith(f"byheart: {command}: ")
    assert [part for part in data if part not in complaint] == []
    assert run(*words.split(), "--json").json["error"] == complaint.removeprefix("byheart: ")


def test_options_and_other_words_may_be_mixed() -> None:
    command = parse(["compile", "-o", "net", "a.txt", "--facts", "f.csv", "b.txt", "--facts=g.csv", "--", "-c.txt"])
    assert command.files == (Path("a.txt"), Path("b.txt"), Path("-c.txt"))
    assert command.facts == (Path("f.csv"), Path("g.csv"))
    command = parse(["certify", "--at_least", "3", "net", "--columns", "p", "q", "--radius", "-1"])
    assert (command.network, command.files, command.at_least, command.radius) == (Path("net"), (), 3, -1.0)
    assert command.columns == ("p", "q")
    assert parse(["size", "--bits", "8", "16"]).bits == (8, 16)
    assert parse(["bounds", "--bits", "None", "--head-dim", "3"]).letters.bits is None


def test_settings_of_all_types_become_options() -> None:
    @dataclass(frozen=True)
    class Inner:
        """Not shown, because it is no module's class."""

        level: Literal[1, 2] = 2

    @dataclass(frozen=True)
    class Outer:
        share: float
        inner: Inner = field(default_factory=Inner)
        exact: bool = True

    about = About("Try it.", ("try --share 0.5",))
    assert fill(Outer, "try", about, ["--share", "0.5", "--level=1", "--no-exact"]) == Outer(0.5, Inner(1), False)
    assert fill(Outer, "try", about, ["--share", "1"]) == Outer(1.0)
    with pytest.raises(BadInput, match="expected one of 1, 2; got '3'"):
        fill(Outer, "try", about, ["--share", "1", "--level", "3"])
    with pytest.raises(BadInput, match="complex"):
        fill(make_dataclass("Strange", [("number", complex, 1j)]), "try", about, [])


@pytest.mark.parametrize("words", [["help"], ["help", "recite"], ["help", "lab", "run"]], ids=" ".join)
def test_help_in_a_word(run: Run, words: list[str]) -> None:
    assert run(*words) == run(*words[1:], "--help")


def test_no_words_at_all(run: Run) -> None:
    said = run()
    assert (said.code, said.out) == (2, "")
    assert said.err == run("--help").out


def test_completion_knows_all_commands(run: Run) -> None:
    for command in [[], *COMMANDS]:
        completed = run("--complete", *command).out.splitlines()
        below = {words[-1] for words in COMMANDS if words[:-1] == command}
        assert set(completed) == below if below else {"--json", "--help", "-h"} <= set(completed)


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("cer", {"certify"}),
        ("lab c", {"compare", "crossing", "capacity"}),
        ("build fold", {"folding"}),
        ("build folding --fe", {"--fewest"}),
        ("build folding --fewest in", {"in-all"}),
        ("compile a.txt --lay", {"--layout"}),
        ("compile a.txt --layout ", {"rectangular", "uniform", "experts"}),
        ("compile a.txt -o net --exec", {"--executor"}),
        ("compile a.t", set()),
        ("nonsense ", set()),
    ],
)
@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_completion_in_bash(run: Run, work: Path, words: str, completed: set[str]) -> None:
    assert run("--write-completion", "bash", "byheart.sh").code == 0
    byheart = f'byheart() {{ {shlex.quote(sys.executable)} -m byheart "$@"; }}'
    line = f"COMP_WORDS=(byheart {words}{chr(39) * 2 * words.endswith(' ')}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))"
    command = f"{byheart}; source ./byheart.sh; {line}; _byheart; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == completed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run: Run, work: Path, shell: str) -> None:
    assert run("--write-completion", shell, "byheart.complete") == run("--tyro-write-completion", shell, "0.1")
    script = (work / "byheart.complete").read_text()
    assert "byheart --complete" in script
    assert (work / "0.1").read_text() == script == run("--print-completion", shell).out


def test_completion_scripts_that_there_are_not(run: Run, work: Path) -> None:
    assert "bash, zsh, fish" in run("--print-completion", "csh").complaint
    assert "bash, zsh, fish" in run("--print-completion").complaint
    assert "FILE" in run("--write-completion", "bash").complaint
    assert "missing/file" in run("--write-completion", "bash", "missing/file").complaint


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
    """Neither numpy nor argparse: it takes no longer than Python's start."""
    script = (
        "import sys, byheart.__main__\n"
        "sys.argv = ['byheart', '--help']\n"
        "try:\n"
        "    byheart.__main__.main()\n"
        "except SystemExit:\n"
        "    print([name for name in ('numpy', 'argparse', 'rich') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"

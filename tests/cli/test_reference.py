"""The reference has every command; the examples in every help are commands that the parser takes."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

from byheart.cli.commands import every_command
from byheart.cli.parsing import parse
from byheart.constructions import CONSTRUCTIONS
from byheart.errors import BadInput

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS = [words for words, _ in every_command()]


def test_every_command_is_there() -> None:
    assert {("task", "random"), ("certify",), ("lab", "save"), *(("build", name) for name in CONSTRUCTIONS)} <= {
        *COMMANDS
    }
    written = runpy.run_path(str(DOCS / "conf.py"))["page"]()
    for command in COMMANDS:
        assert f"# byheart {' '.join(command)}\n" in written
        assert f"usage: byheart {' '.join(command)} " in written
    assert "\x1b" not in written


def test_the_table_of_commands_has_all() -> None:
    table = (DOCS / "cli.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `byheart (\w+)([^`]*)`", table, flags=re.MULTILINE)
    told = {(name, *more) for name, rest in rows for more in ([()] + [(word,) for word in re.findall(r"[a-z]+", rest)])}
    assert {command for command in COMMANDS if command[0] != "build"} <= told
    assert all(name in table for name in CONSTRUCTIONS)


@pytest.mark.slow
def test_examples_are_commands() -> None:
    for words, entry in every_command():
        assert entry.about.examples, words
        for line in entry.about.examples:
            assert parse(shlex.split(line.partition(" # ")[0])[1:])


def test_an_example_that_is_none_is_found() -> None:
    with pytest.raises((SystemExit, BadInput)):
        parse(shlex.split("certify net --tusk t.npz"))

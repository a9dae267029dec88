"""The help of every command, as a page in Markdown: generated from the program, so it cannot be out of date.

``docs/conf.py`` appends it to docs/cli.md when the site is built; :func:`examples` are the examples in it, which a test
holds against the parser.
"""

import io
import os
import re
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from functools import cache
from unittest.mock import patch

from byheart.cli.main import main

_SUBCOMMAND = re.compile(r"^[│ ]+• (\S+)", flags=re.MULTILINE)
_EXAMPLE = re.compile(r"^Examples?:  (.*?)\n\n", flags=re.MULTILINE | re.DOTALL)


@cache
def help_of(command: tuple[str, ...], columns: int = 80) -> str:
    """What ``byheart COMMAND --help`` prints on a terminal of so many columns, without colours."""
    said = io.StringIO()
    terminal = {"COLUMNS": str(columns), "NO_COLOR": "1"}
    with patch.dict(os.environ, terminal), redirect_stdout(said), suppress(SystemExit):
        main([*command, "--help"])
    return said.getvalue()


def commands(start: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command and subcommand, each before its own: ("task",), ("task", "random"), …"""
    for name in _SUBCOMMAND.findall(help_of(start)):
        yield (*start, name)
        yield from commands((*start, name))


def examples(command: tuple[str, ...]) -> list[str]:
    """The command lines in the example of a command's help."""
    found = _EXAMPLE.search(help_of(command, columns=1000))
    return re.findall(r"byheart .*?(?=    |$)", " ".join(found[1].split("\n"))) if found else []


def page() -> str:
    """A section with its help for every command."""
    return "\n".join(_section(command) for command in ((), *commands()))


def _section(command: tuple[str, ...]) -> str:
    title = " ".join(("byheart", *command))
    return f"{'#' * min(2 + len(command), 4)} {title}\n\n```text\n{help_of(command).strip()}\n```\n"

"""From the words of a command line to a command that runs.

The words lead through the menus to one command, and only that command is imported. The help of a menu imports no
library at all.
"""

import sys
from pathlib import Path
from typing import Any

from byheart.cli.commands import BYHEART, COMMANDS
from byheart.cli.menu import entry_in, overview
from byheart.errors import BadInput

HELP = ("-h", "--help")
COMPLETION = ("--print-completion", "--write-completion", "--tyro-print-completion", "--tyro-write-completion")
"""Flags for a completion script: on stdout, or into a file. The names that start with --tyro are those of 0.1."""
OWN = "--construction"
WITH_OWN = (["bounds"], ["build"], ["compare"], ["task", "check"])
"""Commands that take ``--construction FILE``: the user's own constructions get a command, flags and help as others."""


def parse(words: list[str]) -> Any:
    """Return the command that the words ask for, ready to run.

    Raise SystemExit after printing help, and BadInput for words that lead to no command.
    """
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if words[:1] and words[0] in COMPLETION:
        _complete(words)
    words = _without_own(words)
    path, about, menu, of = ["byheart"], BYHEART, COMMANDS, "command"
    for place, word in enumerate(words):
        if word in HELP:
            sys.stdout.write(f"{overview(path, about, menu, of)}\n")
            sys.exit(0)
        entry = entry_in(menu, word, of)
        path, about, of = [*path, word], entry.about, entry.of
        if not of:
            from byheart.cli.arguments import fill

            return fill(entry.load(), " ".join(path), about, words[place + 1 :])
        menu = entry.load()
    sys.stderr.write(f"{overview(path, about, menu, of)}\n")
    sys.exit(2)


def _without_own(words: list[str]) -> list[str]:
    """Register the constructions in the files after ``--construction``, and return the other words."""
    if not any(words[: len(command)] == command for command in WITH_OWN):
        return words
    others, rest = [], iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        file = "" if flag != OWN else value if equals else next(rest, "")
        if file:
            from byheart.constructions.registry import from_file, register

            register(from_file(Path(file)))
        else:
            others.append(word)
    return others


def _complete(words: list[str]) -> None:
    """Print or write a shell's completion script, and exit."""
    from byheart.cli.completion import SHELLS, script
    from byheart.files.writing import write_text

    flag, shell, *files = [*words, ""][: len(words) + (len(words) < 2)]
    if shell not in SHELLS:
        raise BadInput(f"{flag}: expected one of {', '.join(SHELLS)}, got {shell!r}")
    if len(files) != ("write" in flag):
        raise BadInput(f"expected {flag} {shell}{' FILE' * ('write' in flag)}, got {len(files)} files")
    if files:
        write_text(Path(files[0]), script(shell))
    else:
        sys.stdout.write(script(shell))
    sys.exit(0)

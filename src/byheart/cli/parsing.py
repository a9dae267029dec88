"""The parser: the words of a command line lead through the menus to one command, and only that one is imported.

The help of a menu imports no library at all.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from byheart.cli.commands import BYHEART, COMMANDS
from byheart.cli.menu import entry_in, overview
from byheart.errors import BadInput

HELP = ("-h", "--help")
SCRIPTS = {
    "bash": """_byheart() {
    local words=$(byheart --complete "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2> /dev/null)
    COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _byheart byheart
""",
    "zsh": """#compdef byheart
compadd -- ${(f)"$(byheart --complete "${(@)words[2,CURRENT-1]}" 2> /dev/null)"}
_files
""",
    "fish": "complete -c byheart -a '(byheart --complete (commandline -opc)[2..-1] 2> /dev/null)'\n",
}
"""Completion scripts by shell. Each asks ``byheart --complete WORDS`` what may follow; the shell adds files."""
SCRIPT_FLAGS = ("--print-completion", "--write-completion", "--tyro-print-completion", "--tyro-write-completion")
"""Flags that print or write a completion script. The last two are their names in version 0.1."""
OWN = "--construction"
WITH_OWN = (["bounds"], ["build"], ["compare"], ["task", "check"])
"""Commands that take ``--construction FILE``, a file with a construction of the user's own."""


def parse(words: list[str]) -> Any:
    """Return the command that the words ask for, ready to run.

    Raise SystemExit after printing help, and BadInput for words that lead to no command.
    """
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if words[:1] and (words[0] in SCRIPT_FLAGS or words[0] == "--complete"):
        sys.stdout.write(_script(*words) if words[0] in SCRIPT_FLAGS else "\n".join(_completions(words[1:])))
        sys.exit(0)
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
    """Register the constructions in the files after ``--construction``, and return the other words.

    A registered construction has a command, options and help, as the built-in ones have.
    """
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


def _completions(words: list[str]) -> Iterable[str]:
    """Return what may follow the words: commands, flags, or the values of the last flag."""
    menu = COMMANDS
    for word in _without_own(words):
        if word not in menu:
            return []
        entry = menu[word]
        if not entry.of:
            from byheart.cli.arguments import arguments_of

            flags = {name: item for item in arguments_of(entry.load()) if not item.is_positional for name in item.names}
            return flags[words[-1]].choices if words[-1] in flags else [*flags, *HELP]
        menu = entry.load()
    return menu


def _script(flag: str, shell: str = "", *files: str) -> str:
    """Return the completion script of a shell to be printed, or write it into a file and return an empty text."""
    if shell not in SCRIPTS:
        raise BadInput(f"{flag}: expected one of {', '.join(SCRIPTS)}, got {shell!r}")
    if len(files) != ("write" in flag):
        raise BadInput(f"{flag} {shell}: expected {int('write' in flag)} FILE, got {len(files)}")
    if not files:
        return SCRIPTS[shell]
    from byheart.files.writing import write_text

    write_text(Path(files[0]), SCRIPTS[shell])
    return ""

"""From words to a command that runs: through the menus to one command, then its options.

Nothing is imported for commands that are not asked for, and no library for the help of a menu.
"""

import sys
from typing import Any

from byheart.cli.commands import BYHEART, COMMANDS
from byheart.cli.menu import entry_in, overview

HELP = ("-h", "--help")
COMPLETION = ("--tyro-print-completion", "--tyro-write-completion")


def parse(given: list[str]) -> Any:
    """The command that the words ask for, to be run; SystemExit after help, BadInput if they ask for none."""
    if given[:1] == ["help"]:
        given = [*given[1:], "--help"]
    if given[:1] and given[0] in COMPLETION:
        from byheart.cli.options import everything, filled

        return filled(everything(COMMANDS), "byheart", BYHEART, given)
    words, said, menu, of = ["byheart"], BYHEART, COMMANDS, "command"
    for place, word in enumerate(given):
        if word in HELP:
            sys.stdout.write(f"{overview(words, said, menu, of)}\n")
            sys.exit(0)
        entry = entry_in(menu, word, of)
        words, said, of = [*words, word], entry.about, entry.of
        if not of:
            from byheart.cli.options import filled

            return filled(entry.load(), " ".join(words), said, given[place + 1 :])
        menu = entry.load()
    sys.stderr.write(f"{overview(words, said, menu, of)}\n")
    sys.exit(2)

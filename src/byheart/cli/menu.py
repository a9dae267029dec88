"""Menus of commands, and the layout of their help.

A menu imports a command only when the command or its help is asked for, so ``byheart --help`` takes no longer than
Python's start.
"""

import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from textwrap import wrap
from typing import Any

from byheart.errors import BadInput, did_you_mean

WIDEST = 80
"""Largest number of columns of help: longer lines are hard to read."""
NARROWEST = 20
"""Smallest number of columns of help, however narrow the terminal is."""


@dataclass(frozen=True)
class About:
    """The purpose of a command, with examples."""

    text: str
    examples: tuple[str, ...]
    """Command lines, each with an optional remark after " # "."""

    @property
    def first(self) -> str:
        """The first sentence, without its full stop."""
        return self.text.partition(". ")[0].rstrip(".")

    def __str__(self) -> str:
        """Return the text and the examples in lines that fit the terminal."""
        heading = "Example:" if len(self.examples) == 1 else "Examples:"
        return "\n".join([*prose(self.text), "", heading, *map(_pasted, self.examples)])


def about(text: str, *examples: str) -> About:
    """Return a purpose with any number of examples."""
    return About(text, examples)


@dataclass(frozen=True)
class Entry:
    """A line of a menu: a command, or another menu."""

    about: About
    load: Callable[[], Any]
    """Function that imports and returns the command's dataclass, or the other menu."""
    of: str = ""
    """Noun for an entry of the other menu, "command" or "construction"; empty for a command."""
    section: str = ""
    """Heading above the entry; empty if the menu has no headings."""


Menu = Mapping[str, Entry]


def menu_of(commands: Mapping[str, tuple[Any, *tuple[str, ...]]]) -> Menu:
    """Return a menu of commands by name: classes, whose docstrings are their purpose, each with examples."""
    return {
        name: Entry(about(" ".join(command.__doc__.split()), *examples), partial(_self, command))
        for name, (command, *examples) in commands.items()
    }


def _self(command: Any) -> Any:
    return command


def columns() -> int:
    """Return the width of help: that of the terminal, within limits."""
    return max(NARROWEST, min(shutil.get_terminal_size().columns, WIDEST))


def prose(text: str, indent: str = "") -> list[str]:
    """Break a paragraph into lines, and indent all but the first."""
    return wrap(text, columns(), subsequent_indent=indent, break_on_hyphens=False)


def _pasted(example: str) -> str:
    r"""Format an example to be pasted into a shell, broken with backslashes if it is too long.

    >>> print(_pasted("byheart lab search dana-2025-2 --scale short --where head_dim=10 --learning-rates 0.001 0.003"))
      byheart lab search dana-2025-2 --scale short --where head_dim=10 \
          --learning-rates 0.001 0.003
    """
    command, _, remark = example.partition(" # ")
    words = [shlex.quote(word) if any(letter in word for letter in " '!") else word for word in shlex.split(command)]
    lines = [f"  {words[0]}"]
    for group in _kept_together(words[1:]):
        if len(lines[-1]) + len(group) + 3 > columns():
            lines[-1] += " \\"
            lines.append(f"      {group}")
        else:
            lines[-1] += f" {group}"
    return "\n".join(([f"  # {remark}:"] if remark else []) + lines)


def _kept_together(words: list[str]) -> list[str]:
    """Join every option with its values, so that no line break comes between them."""
    groups: list[str] = []
    for word in words:
        if groups and not word.startswith("-") and groups[-1].startswith("-"):
            groups[-1] += f" {word}"
        else:
            groups.append(word)
    return groups


def overview(words: list[str], about: About, menu: Menu, of: str) -> str:
    """Return the help of a menu: its entries under their headings, each with the first sentence of its purpose."""
    prog = " ".join(words)
    lines = [f"usage: {prog} {of.upper()} ...", "", *str(about).splitlines()]
    widest = max(map(len, menu))
    heading = None
    for name, entry in menu.items():
        if entry.section != heading or heading is None:
            heading = entry.section
            lines += ["", f"{heading or f'{of}s'.capitalize()}:"]
        lines += prose(f"  {name:{widest}}  {entry.about.first}", " " * (widest + 4))
    lines += ["", f"{prog} {of.upper()} --help says more about each."]
    return "\n".join(lines)


def entry_in(menu: Menu, name: str, of: str) -> Entry:
    """Return an entry of the menu, or raise BadInput with the closest name.

    >>> entry_in({"build": Entry(about("Build."), object)}, "biuld", "command")
    Traceback (most recent call last):
    byheart.errors.BadInput: no command is called 'biuld'; did you mean 'build'?
    """
    if name not in menu:
        raise BadInput(f"no {of} is called {name!r}; {did_you_mean(name, menu)}")
    return menu[name]

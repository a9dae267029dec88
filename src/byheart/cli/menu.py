"""The menu of commands: what there is, what was meant, and how a page of help is laid out.

A command is imported when it is asked for, or its help is: the menu itself imports nothing of Byheart but errors, so
that ``byheart --help`` takes no longer than Python's start.
"""

import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from byheart.errors import BadInput, did_you_mean

WIDEST = 80
"""Columns that prose and examples take at most."""
NARROWEST = 20
"""Columns that help is laid out for at least: with a few less, laying it out does not end."""


@dataclass(frozen=True)
class About:
    """What a command is for, and examples of it: each is one command line, with a remark after " # " if need be."""

    text: str
    examples: tuple[str, ...]

    @property
    def first(self) -> str:
        """The first sentence."""
        return self.text.partition(". ")[0].rstrip(".")

    def __str__(self) -> str:
        """The text with its examples, for people and within their columns."""
        heading = "Example:" if len(self.examples) == 1 else "Examples:"
        return "\n".join([*prose(self.text), "", heading, *map(_pasted, self.examples)])


def about(text: str, *examples: str) -> About:
    """What a command is for, with examples."""
    return About(text, examples)


@dataclass(frozen=True)
class Entry:
    """A line of a menu: a command, whose class is loaded when needed, or a menu of its own."""

    about: About
    load: Callable[[], Any]
    """The dataclass that is filled from the command line and run; for a group, the menu below it."""
    of: str = ""
    """What the menu below lists, a "command" or a "construction"; empty if this is a command itself."""
    section: str = ""
    """The heading that it stands under in the first help."""


Menu = Mapping[str, Entry]


def columns() -> int:
    """How wide help is: as the terminal, but neither too narrow nor wider than a line is read well."""
    return max(NARROWEST, min(shutil.get_terminal_size().columns, WIDEST))


def prose(text: str, indent: str = "") -> list[str]:
    """A paragraph in lines; all but the first are indented."""
    return wrap(text, columns(), subsequent_indent=indent, break_on_hyphens=False)


def _pasted(example: str) -> str:
    r"""A command line to be pasted into a shell, broken with backslashes where it is too long.

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
    """Options with their values, which no line should part."""
    groups: list[str] = []
    for word in words:
        if groups and not word.startswith("-") and groups[-1].startswith("-"):
            groups[-1] += f" {word}"
        else:
            groups.append(word)
    return groups


def overview(words: list[str], said: About, menu: Menu, of: str) -> str:
    """The help of a menu: what there is, a line each, under headings if the menu has some."""
    prog = " ".join(words)
    lines = [f"usage: {prog} {of.upper()} ...", "", *str(said).splitlines()]
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
    """A line of the menu; BadInput says which was probably meant.

    >>> entry_in({"build": Entry(about("Build."), object)}, "biuld", "command")
    Traceback (most recent call last):
    byheart.errors.BadInput: no command is called 'biuld'; did you mean 'build'?
    """
    if name not in menu:
        raise BadInput(f"no {of} is called {name!r}; {did_you_mean(name, menu)}")
    return menu[name]

"""Results of commands: one object that is printed as JSON for programs, or as tables and lines for people.

A command returns a :class:`Result`. :func:`show` is the only function that prints one.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byheart.cli.output import hush, say, visible

if TYPE_CHECKING:
    from byheart.certificates import Certificate


@dataclass(frozen=True)
class Styled:
    """A text with a style of rich, such as "dim" or "bold green"."""

    text: str
    style: str


Part = str | Styled
Cell = Part | float | None
"""Content of a cell: numbers are shown with thousands separators, None as a dash, and bools as yes or no."""


@dataclass(frozen=True)
class Table:
    """A table for people. Columns whose name starts with ">" are aligned to the right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    total: Sequence[Cell] = ()
    """A last row, below a line."""


Block = Table | Part | tuple[Part, ...]
"""A table, or a line of one part or several."""


class Result:
    """The result of a command: a frozen dataclass whose fields are the keys of its JSON, except ``command``."""

    def as_json(self) -> Mapping[str, Any]:
        """Return the values for ``--json``, by key. Dataclasses and paths may stand in them as they are."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "command"}  # type: ignore[arg-type]

    def rows(self) -> Iterable[Block]:
        """Return what is printed for people, in order."""
        raise NotImplementedError

    @property
    def is_true(self) -> bool:
        """False if a claim was found not to be true, or could not be proved: exit code 1."""
        return True


def show(result: Result, *, as_json: bool) -> None:
    """Print a result to stdout."""
    if as_json:
        print_json(result.as_json())
        return
    out = _console()
    for block in result.rows():
        out.print(_table(block) if isinstance(block, Table) else _line(block))


def verdict_rows(certificate: "Certificate", before: str = "") -> Iterator[Block]:
    """Yield the lines that say what a certificate states, beginning with ``before``."""
    verdict = Styled("certified", "bold green") if certificate.certified else Styled("not certified", "bold red")
    yield (before + certificate.what, verdict, f": {certificate.summary}")
    yield from certificate.others


def print_json(value: object) -> None:
    """Print one JSON object to stdout; a terminal gets no unprintable characters, which may command it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    if sys.stdout.isatty():
        text = "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)
    say(text)


def _plain(value: Any) -> Any:
    """Return a value in the types of JSON, one level deep."""
    if hasattr(value, "as_json"):
        return value.as_json()
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} has no form in JSON")


def _console() -> Any:
    """Return a rich console on stdout, as wide as a table needs if stdout is no terminal.

    A reader that stops early does not stop the command.
    """
    from rich.console import Console

    class Safe(Console):
        def on_broken_pipe(self) -> None:
            hush()

    return Safe(highlight=False) if sys.stdout.isatty() else Safe(highlight=False, width=144, soft_wrap=True)


def _line(parts: Part | tuple[Part, ...]) -> Any:
    """Return a line for rich. Nothing in it is markup."""
    from rich.text import Text

    parts = parts if isinstance(parts, tuple) else (parts,)
    pairs = ((part.text, part.style) if isinstance(part, Styled) else (part, "") for part in parts)
    return Text.assemble(*((visible(text), style) for text, style in pairs))


def _table(table: Table) -> Any:
    """Return a table for rich. Nothing in it is markup."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    style: dict[str, Any] = {"title_justify": "left", "title_style": "bold", "box": SIMPLE_HEAD, "pad_edge": False}
    header = any(name.strip(">") for name in table.columns)
    drawn = RichTable(title=_line(Styled(table.title, "bold")), padding=(0, 1, 0, 0), show_header=header, **style)
    for index, name in enumerate(table.columns):
        justify: Any = "right" if name.startswith(">") else "left"
        drawn.add_column(_line(name.removeprefix(">")), justify=justify, no_wrap=index == 0)
    for row in table.rows:
        drawn.add_row(*map(_cell, row))
    if table.total:
        drawn.add_section()
        drawn.add_row(*map(_cell, table.total))
    return drawn


def _cell(value: Cell) -> Any:
    if isinstance(value, bool):
        return _line(yes_or_no(value))
    return _line(value if isinstance(value, str | Styled) else number(value))


def yes_or_no(is_good: bool, yes: str = "yes", no: str = "no") -> Styled:
    """Return ``yes`` in green, or ``no`` in red."""
    return Styled(yes, "green") if is_good else Styled(no, "red")


def dim(text: str) -> Styled:
    """Return a remark, in grey."""
    return Styled(text, "dim")


def number(value: float | None) -> str:
    """Format a number for people: thousands separated, floats short, "–" for None.

    >>> number(12345), number(0.12345), number(1234.5), number(None)
    ('12,345', '0.123', '1,234', '–')
    """
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def amount(count: int, noun: str) -> str:
    """Count things in words.

    >>> amount(1, "fact"), amount(2345, "fact")
    ('1 fact', '2,345 facts')
    """
    return f"{count:,} {noun}" + "s" * (count != 1)

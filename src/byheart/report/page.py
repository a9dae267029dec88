"""One self-contained HTML page: which paper, which question, what came out; figures and tables. Nothing is loaded.

The pages' texts are in ``templates/``. Figures are inline SVG with their text as text, in the colours of a light or a
dark page, whichever the reader has; each is drawn twice, wide and narrow (panels below each other), and the page shows
what the window has room for.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from byheart.errors import BadInput
from byheart.exhibits import Lead, Table
from byheart.files.writing import check_file, write_text
from byheart.report.style import check_matplotlib, narrow
from byheart.report.svg import inline, palette

MOST_ROWS = 400
"""That a table shows; the others are counted. All of them are in the run's own files."""
MISSING = "–"
"""What stands where there is no value."""


@dataclass(frozen=True)
class Picture:
    """An SVG for wide windows, one for narrow ones, and what they show."""

    wide: str
    narrow: str
    caption: str


@dataclass(frozen=True)
class Checked:
    """What a certificate says, the command that checks it again, where it lies, and what else was ``tried``."""

    says: str
    command: str
    link: str
    tried: Sequence[str] = ()


@dataclass(frozen=True)
class Section:
    """A part of a page: what came out, by which commands, in how many seconds; then all that there is to see."""

    title: str
    finding: str
    seconds: float | None = None
    commands: Sequence[str] = ()
    text: Sequence[str] = ()
    quote: str = ""
    """Some text as it is."""
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    certificates: Sequence[Checked] = ()
    links: Sequence[tuple[str, str]] = ()
    """Words, and where they lead."""


@dataclass(frozen=True)
class HtmlPage:
    """All that a page shows, in its order; ``pages`` are others, by name, with where they are and what came out.

    Its ``sections`` are listed first, with what came out, and follow after the page's own pictures and tables.
    """

    title: str
    lead: Lead = field(default_factory=Lead)
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    pages: Sequence[tuple[str, str, Sequence[str]]] = ()
    sections: Sequence[Section] = ()


def picture_of(draw: Callable[[Path], None], caption: str) -> Picture:
    """What a drawing function draws, as SVGs whose text is text; the same drawing gives the same ones."""
    check_matplotlib()
    from matplotlib import rc_context

    drawn: list[str] = []
    with tempfile.TemporaryDirectory() as folder, rc_context({"svg.fonttype": "none", "svg.hashsalt": "byheart"}):
        path = Path(folder) / "figure.svg"
        for width in (nullcontext(), narrow()):
            with width:
                draw(path)
            drawn.append(path.read_text(encoding="utf-8"))
    wide, slim = drawn
    return Picture(wide, slim, caption)


def html_of(page: HtmlPage) -> str:
    """The page's text.

    >>> text = html_of(HtmlPage("A run", tables=[Table("Results", [{"heads": 1, "accuracy": 0.125}])]))
    >>> '<td class="n">0.125</td>' in text, "<script" in text
    (True, False)
    """
    numbers, colours = count(), set[str]()
    parts = vars(page) | _drawn(page, numbers, colours)
    parts["sections"] = [vars(section) | _drawn(section, numbers, colours) for section in page.sections]
    return str(_templates().get_template("page.html").render(**parts, palette=palette(colours)))


def check_page(path: Path) -> None:
    """BadInput if no page can be written to ``path``; worth checking before long work."""
    if path.suffix not in (".html", ".htm"):
        raise BadInput(f"{path}: expected the name of a page, .html")
    if not path.parent.is_dir():
        raise BadInput(f"{path}: its folder does not exist; expected one to write into")
    check_file(path)


def write_page(path: Path, text: str) -> None:
    """Write a page to a file whose name ends in .html."""
    check_page(path)
    write_text(path, text)


@cache
def _templates() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    templates = Environment(loader=PackageLoader("byheart.report"), autoescape=True, undefined=StrictUndefined)
    templates.globals |= {
        "cell": _cell,
        "td": lambda cell: Markup('<td class="n">{}</td>' if cell[1] else "<td>{}</td>").format(cell[0]),
        "th": lambda cell: Markup('<th class="n">{}</th>' if cell[1] else "<th>{}</th>").format(cell[0]),
    }
    return templates


def _drawn(part: HtmlPage | Section, numbers: Iterator[int], colours: set[str]) -> dict[str, Any]:
    """Pictures and tables as the template takes them; the pictures are numbered, and their colours noted."""
    pictures = []
    for picture, number in zip(part.pictures, numbers, strict=False):
        drawn = []
        for kind, svg in (("wide", picture.wide), ("narrow", picture.narrow)):
            element, found = inline(svg, f"{kind[0]}{number}-", picture.caption)
            drawn.append((kind, element))
            colours |= found
        pictures.append({"drawn": drawn, "caption": picture.caption})
    return {"pictures": pictures, "tables": [_shown(table) for table in part.tables]}


def _shown(table: Table) -> dict[str, Any]:
    """A table as the template takes it: columns, cells, and how many rows are left out.

    A column of numbers is one from its name to where a number is missing.
    """
    names = list(dict.fromkeys(name for row in table.rows for name in row))
    rows = table.rows[:MOST_ROWS]
    columns = []
    for name in names:
        cells = [_cell(row.get(name)) for row in rows]
        numbers = all(number or text == MISSING for text, number in cells) and any(number for _, number in cells)
        columns.append([(text, number or numbers) for text, number in ((name, False), *cells)])
    heads, *cells_of_rows = zip(*columns, strict=True) if columns else [()]
    return {"title": table.title, "columns": heads, "cells": cells_of_rows, "more": len(table.rows) - len(rows)}


def _cell(value: Any) -> tuple[str, bool]:
    """What stands in a cell, and whether it is a number.

    >>> _cell(12345), _cell(0.123456), _cell(None), _cell([1, 2])
    (('12,345', True), ('0.1235', True), ('–', False), ('[1, 2]', False))
    """
    if value is None:
        return MISSING, False
    if isinstance(value, bool) or not isinstance(value, int | float):
        return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)), False
    large = isinstance(value, int) or (abs(value) >= 1000 and abs(value) < 1e15)
    return f"{value:,.0f}" if large else f"{value:.4g}", True

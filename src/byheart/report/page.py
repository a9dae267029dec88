"""One self-contained HTML page: the paper, its question, the findings, figures and tables. It loads no other file.

The pages' texts are in ``templates/``. Figures are inline SVG with their text as text, in the colours of a light or a
dark page, whichever the reader has. Each is drawn twice, wide and narrow (panels below each other), and the page shows
the one that fits the window.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

from byheart.errors import BadInput
from byheart.exhibits import DataTable, Lead, ResultsPage
from byheart.files.writing import check_file, make_folder, write_text
from byheart.progress import Report
from byheart.report import drawing
from byheart.report.style import check_matplotlib, narrow
from byheart.report.svg import inline, palette

MOST_ROWS = 400
"""Number of rows shown in a table; the rest are only counted. All of them are in the run's own files."""
MISSING = "–"
"""Text of a cell without a value."""


@dataclass(frozen=True)
class Picture:
    """An SVG for wide windows, one for narrow ones, and what they show."""

    wide: str
    narrow: str
    caption: str


@dataclass(frozen=True)
class Checked:
    """A certificate on a page: statement, command that checks it again, file, and what else was ``tried``."""

    says: str
    command: str
    link: str
    tried: Sequence[str] = ()


@dataclass(frozen=True)
class Section:
    """A part of a page: the finding, the commands that led to it with their seconds, then texts, figures and tables."""

    title: str
    finding: str
    seconds: float | None = None
    commands: Sequence[str] = ()
    text: Sequence[str] = ()
    quote: str = ""
    """Text that is shown unchanged, line by line."""
    pictures: Sequence[Picture] = ()
    tables: Sequence[DataTable] = ()
    certificates: Sequence[Checked] = ()
    links: Sequence[tuple[str, str]] = ()
    """Texts of links, and their addresses."""


@dataclass(frozen=True)
class HtmlPage:
    """The contents of a page, in their order; ``pages`` are other pages: name, address and findings.

    The ``sections`` are listed first, with their findings, and follow after the page's own pictures and tables.
    """

    title: str
    lead: Lead = field(default_factory=Lead)
    pictures: Sequence[Picture] = ()
    tables: Sequence[DataTable] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    pages: Sequence[tuple[str, str, Sequence[str]]] = ()
    sections: Sequence[Section] = ()


def picture_of(draw: Callable[[Path], None], caption: str) -> Picture:
    """Return what a drawing function draws as SVGs whose text is text; equal drawings give equal files."""
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
    """Return the page's text.

    >>> text = html_of(HtmlPage("A run", tables=[DataTable("Results", [{"heads": 1, "accuracy": 0.125}])]))
    >>> '<td class="n">0.125</td>' in text, "<script" in text
    (True, False)
    """
    numbers, colours = count(), set[str]()
    parts = vars(page) | _drawn(page, numbers, colours)
    parts["sections"] = [vars(section) | _drawn(section, numbers, colours) for section in page.sections]
    return str(_templates().get_template("page.html").render(**parts, palette=palette(colours)))


def check_page(path: Path) -> None:
    """Raise BadInput if no page can be written to ``path``, which is worth checking before long work."""
    if path.suffix not in (".html", ".htm"):
        raise BadInput(f"{path}: expected the name of a page, .html")
    if not path.parent.is_dir():
        raise BadInput(f"{path}: its folder does not exist; expected one to write into")
    check_file(path)


def write_page(path: Path, text: str) -> None:
    """Write a page to a file whose name ends in .html."""
    check_page(path)
    write_text(path, text)


def write_results_page(
    page: ResultsPage, out: Path, suffix: str, report: Report | None = None
) -> tuple[list[Path], list[str]]:
    """Draw the figures of a page into a folder, and write the page; return the files, and why figures are missing."""
    files, pictures, missing = [], [], []
    with make_folder(out):
        for index, available in enumerate(page.figures):
            if report is not None:
                report(index, len(page.figures), available.name)
            try:
                figure = available.make()
            except BadInput as reason:  # a run that is not complete may have too little for one figure
                missing.append(f"{available.name} is not drawn: {reason}")
                continue
            pictures.append(picture_of(partial(drawing.draw, figure), available.caption))
            files.append(out / f"{available.name}.{suffix}")
            drawing.draw(figure, files[-1])
        contents = HtmlPage(page.name, page.lead, pictures, page.tables, page.about, "; ".join(missing))
        write_page(out / "index.html", html_of(contents))
    return [*files, out / "index.html"], missing


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
    """Return numbered pictures and tables as the template takes them, and add the pictures' colours to ``colours``."""
    pictures = []
    for picture, number in zip(part.pictures, numbers, strict=False):
        drawn = []
        for kind, svg in (("wide", picture.wide), ("narrow", picture.narrow)):
            element, used = inline(svg, f"{kind[0]}{number}-", picture.caption)
            drawn.append((kind, element))
            colours |= used
        pictures.append({"drawn": drawn, "caption": picture.caption})
    return {"pictures": pictures, "tables": [_shown(table) for table in part.tables]}


def _shown(table: DataTable) -> dict[str, Any]:
    """Return a table as the template takes it: columns, cells, and how many rows are left out.

    In a column of numbers the name and cells without a number are aligned as numbers, too.
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
    """Return the text of a cell, and True if it is a number.

    >>> _cell(12345), _cell(0.123456), _cell(None), _cell([1, 2])
    (('12,345', True), ('0.1235', True), ('–', False), ('[1, 2]', False))
    """
    if value is None:
        return MISSING, False
    if isinstance(value, bool) or not isinstance(value, int | float):
        return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)), False
    large = isinstance(value, int) or (abs(value) >= 1000 and abs(value) < 1e15)
    return f"{value:,.0f}" if large else f"{value:.4g}", True

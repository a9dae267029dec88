"""One self-contained HTML page: what was run, figures, tables. No scripts, no links; readable light and dark.

Figures are inline SVG as matplotlib writes it, with its text as text. Two pictures in one page would share the names of
their parts (clip paths, markers), so every picture's names get a prefix of their own.
"""

import html
import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byheart.errors import BadInput
from byheart.files.writing import write_text
from byheart.report.style import check_matplotlib

MOST_ROWS = 400
"""That a table shows; the others are counted. All of them are in the run's own files."""

_STYLE = """
:root { color-scheme: light dark; --ink: #222; --quiet: #666; --paper: #fff; --line: #ddd; --head: #f5f5f5; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e4e4; --quiet: #a5a5a5; --paper: #17181a; --line: #3a3b3e; --head: #222427; }
  figure svg { filter: invert(.92) hue-rotate(180deg); }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 70rem; padding: 0 1.2rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p, figcaption { color: var(--quiet); }
figure { margin: 1.2rem 0 2rem; overflow-x: auto; }
figure svg { background: #fff; border-radius: 6px; padding: 10px; width: 100%; min-width: 44rem; height: auto;
  box-sizing: border-box; }
.wide { overflow-x: auto; max-height: 36rem; overflow-y: auto; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { background: var(--head); position: sticky; top: 0; }
td.n { text-align: right; }
""".strip()


@dataclass(frozen=True)
class Table:
    """Rows of plain values under a heading; columns are those of all rows, in the order of first appearance."""

    title: str
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Picture:
    """An SVG and what it shows."""

    svg: str
    caption: str


def picture_of(draw: Callable[[Path], None], caption: str) -> Picture:
    """What a drawing function draws, as an SVG whose text is text; the same drawing gives the same SVG."""
    check_matplotlib()
    from matplotlib import rc_context

    with tempfile.TemporaryDirectory() as folder, rc_context({"svg.fonttype": "none", "svg.hashsalt": "byheart"}):
        path = Path(folder) / "figure.svg"
        draw(path)
        return Picture(path.read_text(encoding="utf-8"), caption)


def page(
    title: str, about: Mapping[str, Any], tables: Sequence[Table] = (), pictures: Sequence[Picture] = (), note: str = ""
) -> str:
    """The page's text: ``about`` as a table of two columns, then pictures, then tables.

    >>> text = page("A run", {"scale": "smoke"}, [Table("Results", [{"heads": 1, "accuracy": 0.125}])])
    >>> "<td>smoke</td>" in text, '<td class="n">0.125</td>' in text, "<script" in text
    (True, True, False)
    """
    body = [f"<h1>{html.escape(title)}</h1>"]
    body += [f"<p>{html.escape(note)}</p>"] if note else []
    body += [_about(about)] if about else []
    body += [_figure(picture, index) for index, picture in enumerate(pictures)]
    body += [_table(table) for table in tables]
    head = [
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{html.escape(title)}</title>",
        f"<style>\n{_STYLE}\n</style>",
    ]
    parts = ["<!DOCTYPE html>", '<html lang="en">', "<head>", *head, "</head>", "<body>", *body, "</body>", "</html>"]
    return "\n".join(parts) + "\n"


def write_page(path: Path, text: str) -> None:
    """Write a page to a file whose name ends in .html."""
    if path.suffix not in (".html", ".htm"):
        raise BadInput(f"{path}: expected the name of a page, .html")
    if not path.parent.is_dir():
        raise BadInput(f"{path}: its folder does not exist; expected one to write into")
    write_text(path, text)


def _about(about: Mapping[str, Any]) -> str:
    rows = "\n".join(f"<tr><th>{html.escape(name)}</th>{_cell(value)}</tr>" for name, value in about.items())
    return f'<div class="wide"><table>\n{rows}\n</table></div>'


def _table(table: Table) -> str:
    columns = list(dict.fromkeys(name for row in table.rows for name in row))
    names = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    shown = table.rows[:MOST_ROWS]
    rows = "\n".join("<tr>" + "".join(_cell(row.get(name)) for name in columns) + "</tr>" for row in shown)
    more = len(table.rows) - len(shown)
    left = f"<p>… and {more:,} more rows, in the run's own files.</p>" if more else ""
    inside = f"<thead><tr>{names}</tr></thead>\n<tbody>\n{rows}\n</tbody>"
    return f'<h2>{html.escape(table.title)}</h2>\n<div class="wide"><table>{inside}</table></div>{left}'


def _cell(value: Any) -> str:
    if value is None:
        return "<td>–</td>"
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return f"<td>{html.escape(text)}</td>"
    large = isinstance(value, int) or (abs(value) >= 1000 and abs(value) < 1e15)
    return f'<td class="n">{value:,.0f}</td>' if large else f'<td class="n">{value:.4g}</td>'


def _figure(picture: Picture, index: int) -> str:
    caption = html.escape(picture.caption)
    return f"<figure>\n{inline(picture.svg, f'f{index}-', caption)}\n<figcaption>{caption}</figcaption>\n</figure>"


def inline(svg: str, prefix: str, label: str) -> str:
    """An SVG file as an element of a page: no prolog, no metadata, no name spaces, all names with a prefix.

    >>> inline('<?xml version="1.0"?><svg xmlns="x" width="9"><path id="a"/><use xlink:href="#a"/></svg>', "f0-", "A")
    '<svg role="img" aria-label="A" width="9"><path id="f0-a"/><use href="#f0-a"/></svg>'
    """
    start = svg.find("<svg")
    if start < 0:
        raise BadInput("the picture is not an SVG; expected one to embed in the page")
    element = re.sub(r"<metadata>.*?</metadata>\s*", "", svg[start:].strip(), flags=re.DOTALL)
    element = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", element)
    element = re.sub(r'\bid="', f'id="{prefix}', element)
    element = re.sub(r'(?:xlink:)?href="#', f'href="#{prefix}', element).replace("url(#", f"url(#{prefix}")
    return element.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)

"""``byheart lab compare --shipped``: all that comes with Byheart against what the papers published.

Of Dana's paper every number. Of the others, whose numbers were not published, what their figures show, in the words and
the tables of the page that ``byheart lab plot --shipped PAPER`` writes: of Mahdavi's linear in H, growing in n, flat in
d_h beyond n; of Madden's the least m; of the ladder bits a parameter, beside the 3.6 of Morris et al.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

from byheart.cli.output import DONE
from byheart.cli.result import console, number, print_json, table

if TYPE_CHECKING:
    from byheart.lab.fits import Estimate
    from byheart.papers.dana_2025.dana_claims import PublishedNumber, Slope
    from byheart.papers.dana_2025.gaps import Gaps

NOISE = """gap: the mean of our runs minus the published mean; noise alone: the mean |gap| that there would be if the
published runs scattered as ours do (run s.d.) around the same values; within noise: how many gaps that explains (95 %
are expected to be); uniform gap: accuracy over all contexts, each counted once, minus that over the sample, here"""
LINES = """slope: of the line, with the interval that all it misses makes; over seeds: the interval that other seeds
would make; lack of fit: probability of such a fit if the curve were straight; right: right answers a head, or a token;
proved: what H(min(n, d_h) − 1) + 1 grows by; equal: probability of such slopes if they were the same on either side of
n; saturated: accuracy reaches 0.9, and says nothing about d_h"""

WIDTHS = """least hidden: the fewest hidden neurons m within 1 % of the entropy; crossing: where the excess is 1 %,
between two m; needed by any N: N(ω − 1), which N contexts with any distributions take"""
HELD = """low, high: 95 % over seeds; lost: runs without a number; edge: no more was asked for, so it may not be full;
weight bits: of the largest weight of a network that is built"""
LEGENDS = {"mahdavi-2024": LINES, "madden-2024": WIDTHS, "capacity": HELD}

NAMED = ("experiment", "name")
"""Columns of names, which stand on the left."""

Paper = Literal["dana-2025", "mahdavi-2024", "madden-2024", "capacity"]


def compare_shipped(paper: Paper | None, *, as_json: bool) -> int:
    """The tables of one paper, or of all of which results are there."""
    from byheart.papers.pages import names

    there = names()
    chosen: list[Paper] = [name for name in get_args(Paper) if name in there] if paper is None else [paper]
    absent = [] if paper else [name for name in get_args(Paper) if name not in chosen]
    if as_json:
        found: dict[str, Any] = {}
        for name in chosen:
            found |= _dana_json() if name == "dana-2025" else _page_json(name)
        print_json(found if paper else found | {"absent": absent})
        return DONE
    for name in chosen:
        if name == "dana-2025":
            _print_dana()
        else:
            _print_page(name)
    if absent:
        console().print(f"no results come with Byheart of {', '.join(absent)}", style="dim", markup=False)
    return DONE


def _dana_json() -> dict[str, Any]:
    from byheart.papers.dana_2025.dana_claims import gap_cells, point_cells, record, shipped_tables

    found, slopes, claims = record(shipped_tables())
    points = [{"experiment": each.name} | point_cells(point) for each in found[:-1] for point in each.points]
    lines = {"slopes": [each.cells() for each in slopes], "claims": [each.cells() for each in claims]}
    return {"gaps": [gap_cells(each) for each in found], "points": points, **lines}


def _print_dana() -> None:
    """Gaps of each experiment, slopes of each curve, and what the paper reports of them."""
    from byheart.papers.dana_2025.dana_claims import record, shipped_tables

    found, slopes, claims = record(shipped_tables())
    out = console()
    for title, listed in (
        ("Dana, Pydi & Chevaleyre 2025: training accuracy, here minus published", [_gaps(each) for each in found]),
        ("slopes of accuracy below 0.9 (95 % intervals)", [_slope(each) for each in slopes]),
        ("what the paper reports (95 % intervals)", [_claim(each) for each in claims]),
    ):
        rows = table(title, *(_column(name, value) for name, value in listed[0].items()))
        for cells in listed:
            rows.add_row(*(_said(name, value) for name, value in cells.items()))
        out.print(rows)
    out.print(NOISE, style="dim", markup=False)


def _page_json(name: Paper) -> dict[str, Any]:
    from byheart.papers.pages import results_page

    page = results_page(name)
    tables = [{"title": each.title, "rows": each.rows} for each in page.tables]
    return {name: {"findings": page.lead.findings, "tables": tables}}


def _print_page(name: Paper) -> None:
    """What came out, and the tables that say so; single models and fitted laws are for the page."""
    from byheart.papers.pages import ALL_MODELS, results_page

    page, out = results_page(name), console()
    out.print(f"{page.lead.paper}: {page.lead.question}", style="bold", markup=False)
    for finding in page.lead.findings:
        out.print(f"- {finding}", markup=False)
    for each in page.tables:
        if each.title == ALL_MODELS or "family" in each.rows[0]:
            continue
        listed = [_folded(row) for row in each.rows]
        columns = dict.fromkeys(column for cells in listed for column in cells)
        rows = table(each.title, *(column if column in NAMED else f">{column}" for column in columns))
        for cells in listed:
            rows.add_row(*(cells.get(column, "–") for column in columns))
        out.print(rows)
    out.print(LEGENDS[name], style="dim", markup=False)


def _folded(row: Mapping[str, Any]) -> dict[str, str]:
    """A row for people: a number and its interval in one cell.

    >>> _folded({"examples": 10000, "slope": 0.5, "slope_low": 0.25, "slope_high": 0.75, "r": None})
    {'examples': '10,000', 'slope': '0.5 (0.25 to 0.75)', 'r': '–'}
    """
    found = {}
    for name, value in row.items():
        of = name.removesuffix("_low").removesuffix("_high")
        if of == name or (of not in row and name.endswith("_low")):
            ends = (row.get(f"{of}_low"), row.get(f"{of}_high"))
            interval = f"{_short_number(ends[0])} to {_short_number(ends[1])}" if None not in ends else ""
            told = (_short_number(value), f"({interval})") if of == name and interval else (interval,)
            found[of.replace("_", " ")] = " ".join(told) if interval else _short_number(value)
    return found


def _short_number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}".replace("-", "−")
    return number(value) if isinstance(value, int | None) and not isinstance(value, bool) else str(value)


def _column(name: str, value: Any) -> str:
    title = {"mean_absolute_gap": "mean |gap|", "run_deviation": "run s.d."}.get(name, name.replace("_", " "))
    return title if isinstance(value, str) else f">{title}"


def _gaps(found: "Gaps") -> dict[str, Any]:
    from byheart.papers.dana_2025.dana_claims import gap_cells

    return gap_cells(found) | {"experiment": _short(found.name)}


def _short(name: str) -> str:
    return name.removeprefix("dana-2025-")


def _slope(slope: "Slope") -> dict[str, str]:
    lines = {"here": slope.here, "published": slope.published}
    shown = {side: "–" if line is None else _interval(line.slope) for side, line in lines.items()}
    squares = {f"R² {side}": "–" if line is None else f"{line.r_squared.value:.3f}" for side, line in lines.items()}
    return {
        "experiment": _short(slope.experiment),
        "curve": slope.of or "all",
        "along": slope.letter,
        **shown,
        **squares,
    }


def _claim(claim: "PublishedNumber") -> dict[str, str]:
    sides = {"its points give": _interval(claim.published), "ours give": _interval(claim.here)}
    return {"what": claim.what, "the paper says": claim.reported, **sides}


def _interval(found: "Estimate") -> str:
    return f"{found.value:.3g} ({found.low:.3g} to {found.high:.3g})"


def _said(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:+.4f}" if name.endswith("gap") and "absolute" not in name else f"{value:.4f}"
    return str(value)

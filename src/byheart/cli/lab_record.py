"""``byheart lab compare --shipped``: all that comes with Byheart against what the papers published.

Of Dana's paper every number; of Mahdavi's, which has none, what its figures show: linear in H, growing in n, flat in
d_h beyond n, in the tables and the words of the page that ``byheart lab plot --shipped mahdavi-2024`` writes.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from byheart.cli.output import DONE, console, number, print_json, table

if TYPE_CHECKING:
    from byheart.lab.fits import Estimate
    from byheart.lab.gaps import Gaps
    from byheart.report.lab.record import Claim, Slope

NOISE = """gap: the mean of our runs minus the published mean; noise alone: the mean |gap| that there would be if the
published runs scattered as ours do (run s.d.) around the same values; within noise: how many gaps that explains (95 %
are expected to be); uniform gap: accuracy over all contexts, each counted once, minus that over the sample, here"""
LINES = """slope: of the line, with the interval that all it misses makes; over seeds: the interval that other seeds
would make; lack of fit: probability of such a fit if the curve were straight; right: right answers a head, or a token;
proved: what H(min(n, d_h) − 1) + 1 grows by; equal: probability of such slopes if they were the same on either side of
n; saturated: accuracy reaches 0.9, and says nothing about d_h"""

Paper = Literal["dana-2025", "mahdavi-2024"]


def compare_shipped(paper: Paper | None, *, as_json: bool) -> int:
    """The tables of one paper, or of both."""
    papers = {"dana-2025": (_dana_json, _print_dana), "mahdavi-2024": (_mahdavi_json, _print_mahdavi)}
    chosen = [both for name, both in papers.items() if paper in (None, name)]
    if as_json:
        found: dict[str, Any] = {}
        for told, _ in chosen:
            found |= told()
        print_json(found)
    else:
        for _, show in chosen:
            show()
    return DONE


def _dana_json() -> dict[str, Any]:
    from byheart.report.lab.record import gap_cells, point_cells, record, shipped

    found, slopes, claims = record(shipped())
    points = [{"experiment": each.name} | point_cells(point) for each in found[:-1] for point in each.points]
    lines = {"slopes": [each.cells() for each in slopes], "claims": [each.cells() for each in claims]}
    return {"gaps": [gap_cells(each) for each in found], "points": points, **lines}


def _print_dana() -> None:
    """Gaps of each experiment, slopes of each curve, and what the paper reports of them."""
    from byheart.report.lab.record import record, shipped

    found, slopes, claims = record(shipped())
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


def _mahdavi_json() -> dict[str, Any]:
    from byheart.report.lab.shipped import shown

    page = shown("mahdavi-2024")
    tables = [{"title": each.title, "rows": each.rows} for each in page.tables]
    return {"mahdavi-2024": {"findings": page.lead.findings, "tables": tables}}


def _print_mahdavi() -> None:
    """What came out, and the tables that say so."""
    from byheart.report.lab.shipped import shown

    page, out = shown("mahdavi-2024"), console()
    out.print(f"{page.lead.paper}: {page.lead.question}", style="bold", markup=False)
    for finding in page.lead.findings:
        out.print(f"- {finding}", markup=False)
    for each in page.tables:
        listed = [_folded(row) for row in each.rows]
        rows = table(each.title, *(name if name == "experiment" else f">{name}" for name in listed[0]))
        for cells in listed:
            rows.add_row(*cells.values())
        out.print(rows)
    out.print(LINES, style="dim", markup=False)


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
    from byheart.report.lab.record import gap_cells

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


def _claim(claim: "Claim") -> dict[str, str]:
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

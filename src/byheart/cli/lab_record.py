"""``byheart lab compare --shipped``: compare the results that come with Byheart with what the papers published.

Dana's paper published every number. Of the others, whose numbers were not published, the tables show what their figures
show, as the page that ``byheart lab plot --shipped PAPER`` writes: Mahdavi's growth, linear in H, with n, and flat in
d_h beyond n; Madden's least m; the ladder's bits per parameter beside the 3.6 of Morris et al.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from byheart.cli.result import Block, Cell, Result, Styled, Table, dim, number

if TYPE_CHECKING:  # torch is slow to import
    from byheart import exhibits
    from byheart.lab.fits import Estimate
    from byheart.papers.dana_2025.dana_claims import Gaps, PublishedNumber, Slope

NOISE = """gap: the mean of our runs minus the published mean; noise alone: the mean |gap| that there would be if the
published runs scattered as ours do (run s.d.) around the same values; within noise: how many gaps that explains (95 %
are expected to be); uniform gap: accuracy over all contexts, each counted once, minus that over the sample, here"""
LINES = """slope: of the line, with the interval that all it misses makes; over seeds: the interval that other seeds
would make; lack of fit: probability of such a fit if the curve were straight; right: right answers per head, or per
token; proved: what H(min(n, d_h) − 1) + 1 grows by; equal: probability of such slopes if they were the same on either
side of n; saturated: accuracy reaches 0.9, and says nothing about d_h"""

WIDTHS = """least hidden: the fewest hidden neurons m within 1 % of the entropy; crossing: where the excess is 1 %,
between two m; needed by any N: N(ω − 1), which N contexts with any distributions take"""
HELD = """low, high: 95 % over seeds; lost: runs without a number; edge: no more was asked for, so it may not be full;
weight bits: of the largest weight of a network that is built"""
LEGENDS = {"mahdavi-2024": LINES, "madden-2024": WIDTHS, "capacity": HELD}

NAMED = ("experiment", "name")
"""Columns of names, which stand on the left."""
TITLES = {"mean_absolute_gap": "mean |gap|", "run_deviation": "run s.d."}
"""Titles of columns that differ from their keys."""

Paper = Literal["dana-2025", "mahdavi-2024", "madden-2024", "capacity"]


@dataclass(frozen=True)
class ShippedComparison(Result):
    """Shipped results of the ``papers`` beside published ones; ``absent`` papers have none."""

    papers: list[Paper]
    absent: list[Paper]
    is_of_all: bool
    """True if no single paper was chosen."""

    def as_json(self) -> dict[str, Any]:
        """Return everything that can be compared for each paper."""
        values: dict[str, Any] = {}
        for name in self.papers:
            values |= _dana_json() if name == "dana-2025" else _page_json(name)
        return values | {"absent": self.absent} if self.is_of_all else values

    def rows(self) -> Iterator[Block]:
        """Yield the tables of each paper, with what their columns mean."""
        for name in self.papers:
            yield from _dana_rows() if name == "dana-2025" else _page_rows(name)
        if self.absent:
            yield dim(f"no results come with Byheart of {', '.join(self.absent)}")


def compare_shipped(paper: Paper | None) -> ShippedComparison:
    """Compare the results of one paper, or of all papers with shipped results."""
    from byheart.papers.pages import names

    if paper is not None:
        return ShippedComparison([paper], [], is_of_all=False)
    shipped = names()
    chosen: list[Paper] = [name for name in get_args(Paper) if name in shipped]
    return ShippedComparison(chosen, [name for name in get_args(Paper) if name not in chosen], is_of_all=True)


def _dana_json() -> dict[str, Any]:
    from byheart.papers.dana_2025.dana_claims import record, shipped_tables

    gaps, slopes, claims = record(shipped_tables())
    points = [{"experiment": each.name} | point.cells() for each in gaps[:-1] for point in each.points]
    lines = {"slopes": [slope.cells() for slope in slopes], "claims": [claim.cells() for claim in claims]}
    return {"gaps": [each.cells() for each in gaps], "points": points, **lines}


def _dana_rows() -> Iterator[Block]:
    """Yield gaps of each experiment, slopes of each curve, and the numbers that the paper reports."""
    from byheart.papers.dana_2025.dana_claims import record, shipped_tables

    gaps, slopes, claims = record(shipped_tables())
    for title, rows in (
        ("Dana, Pydi & Chevaleyre 2025: training accuracy, here minus published", [_gap_cells(each) for each in gaps]),
        ("slopes of accuracy below 0.9 (95 % intervals)", [_slope_cells(slope) for slope in slopes]),
        ("what the paper reports (95 % intervals)", [_claim_cells(claim) for claim in claims]),
    ):
        cells = [[_text(name, value) for name, value in row.items()] for row in rows]
        yield Table(title, [_column(name, value) for name, value in rows[0].items()], cells)
    yield dim(NOISE)


def _page_json(name: Paper) -> dict[str, Any]:
    from byheart.papers.pages import results_page

    page = results_page(name)
    tables = [{"title": table.title, "rows": table.rows} for table in page.tables]
    return {name: {"findings": page.lead.findings, "tables": tables}}


def _page_rows(name: Paper) -> Iterator[Block]:
    """Yield the findings of a paper's page and its tables, without those of single models and fitted laws."""
    from byheart.papers.pages import ALL_MODELS, results_page

    page = results_page(name)
    yield Styled(f"{page.lead.paper}: {page.lead.question}", "bold")
    for finding in page.lead.findings:
        yield f"- {finding}"
    for table in page.tables:
        if table.title != ALL_MODELS and "family" not in table.rows[0]:
            yield _folded_table(table)
    yield dim(LEGENDS[name])


def _folded_table(table: "exhibits.DataTable") -> Table:
    rows = [_folded(row) for row in table.rows]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = [name if name in NAMED else f">{name}" for name in names]
    return Table(table.title, columns, [[row.get(name, "–") for name in names] for row in rows])


def _folded(row: Mapping[str, Any]) -> dict[str, str]:
    """Return a row for people: a number and its interval in one cell.

    >>> _folded({"examples": 10000, "slope": 0.5, "slope_low": 0.25, "slope_high": 0.75, "r": None})
    {'examples': '10,000', 'slope': '0.5 (0.25 to 0.75)', 'r': '–'}
    """
    cells = {}
    for name, value in row.items():
        stem = name.removesuffix("_low").removesuffix("_high")
        if stem == name or (stem not in row and name.endswith("_low")):
            ends = (row.get(f"{stem}_low"), row.get(f"{stem}_high"))
            interval = f"{_short_number(ends[0])} to {_short_number(ends[1])}" if None not in ends else ""
            texts = (_short_number(value), f"({interval})") if stem == name and interval else (interval,)
            cells[stem.replace("_", " ")] = " ".join(texts) if interval else _short_number(value)
    return cells


def _short_number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}".replace("-", "−")
    return number(value) if isinstance(value, int | None) and not isinstance(value, bool) else str(value)


def _column(name: str, value: Any) -> str:
    title = TITLES.get(name, name.replace("_", " "))
    return title if isinstance(value, str) else f">{title}"


def _gap_cells(gaps: "Gaps") -> dict[str, Any]:
    return gaps.cells() | {"experiment": _short_name(gaps.name)}


def _short_name(experiment: str) -> str:
    return experiment.removeprefix("dana-2025-")


def _slope_cells(slope: "Slope") -> dict[str, str]:
    lines = {"here": slope.here, "published": slope.published}
    slopes = {side: "–" if line is None else _interval(line.slope) for side, line in lines.items()}
    squares = {f"R² {side}": "–" if line is None else f"{line.r_squared.value:.3f}" for side, line in lines.items()}
    names = {"experiment": _short_name(slope.experiment), "curve": slope.of or "all", "along": slope.letter}
    return {**names, **slopes, **squares}


def _claim_cells(claim: "PublishedNumber") -> dict[str, str]:
    sides = {"its points give": _interval(claim.published), "ours give": _interval(claim.here)}
    return {"what": claim.what, "the paper says": claim.reported, **sides}


def _interval(estimate: "Estimate") -> str:
    return f"{estimate.value:.3g} ({estimate.low:.3g} to {estimate.high:.3g})"


def _text(name: str, value: Any) -> Cell:
    """Return a number with four digits, and gaps with their sign."""
    if isinstance(value, float):
        return f"{value:+.4f}" if name.endswith("gap") and "absolute" not in name else f"{value:.4f}"
    return "–" if value is None else str(value)

"""``byheart lab plot | compare``: results as figures and pages, and beside those of other runs and of papers.

Dana's paper published every number. Of the others, whose numbers were not published, the tables of ``--shipped`` show
what their figures show, as the page that ``byheart lab plot --shipped PAPER`` writes: Mahdavi's growth, linear in H,
with n, and flat in d_h beyond n; Madden's least m; the ladder's bits per parameter beside the 3.6 of Morris et al.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from byheart.cli.lab_results import mean, report_half_lines, run_state, setting
from byheart.cli.options import Arg, Json, Positional
from byheart.cli.output import steps
from byheart.cli.result import Block, Result, Styled, Table, dim, number
from byheart.errors import BadInput

if TYPE_CHECKING:  # torch is slow to import
    from byheart.exhibits import DataTable, ResultsPage
    from byheart.lab.rows import Difference, ResultRow, SummaryPoint
    from byheart.lab.runs import Run


@dataclass(frozen=True)
class LabPlot:
    """Draw a run's figures, with bounds and published numbers in them, and write one page with everything."""

    folders: Positional[tuple[Path, ...]] = ()
    """Folders of one or more runs; several are drawn as one table."""
    shipped: str | None = None
    """Instead of a folder: results that come with Byheart, of an experiment (dana-2025-1, …), a paper (dana-2025, …),
    or all: a folder for each, and a page with links to them."""
    out: Annotated[Path | None, Arg(aliases=("-o",))] = None
    """Folder for pictures and page (default: figures, in the first run's folder if there is one)."""
    format: Literal["png", "svg"] = "png"
    """Format of the pictures; those in the page are SVG."""
    json: Json = False

    def run(self) -> "PlotResult":
        """Read the results, draw their figures, and write the page."""
        from byheart.report.style import check_matplotlib

        check_matplotlib()
        return self._draw_runs() if self.shipped is None else self._draw_shipped(self.shipped)

    def _draw_runs(self) -> "PlotResult":
        from byheart.lab.runs import Run
        from byheart.papers.pages import page_of_runs

        if not self.folders:
            raise BadInput("no folder given; expected one or more runs, or --shipped NAME")
        runs = [Run.open(folder) for folder in self.folders]
        report_half_lines(*self.folders)
        with steps("building", quiet=self.json) as report:
            page = page_of_runs(runs, report)
        if self.out is None:
            _check_links(self.folders[0] / "figures")
        files, missing = self._write(self.out or self.folders[0] / "figures", page)
        return PlotResult(files, sum(run.done for run in runs), missing)

    def _draw_shipped(self, name: str) -> "PlotResult":
        from byheart.papers.pages import PAGES, absent, names, results_page
        from byheart.report.page import HtmlPage, html_of, write_page

        if self.folders:
            raise BadInput("--shipped takes no folder; expected one or the other")
        out, is_all = self.out or Path("figures"), name == "all"
        pages = [results_page(each) for each in (names() if is_all else [name])]
        written = [self._write(out / page.name if is_all else out, page) for page in pages]
        files = [path for paths, _ in written for path in paths]
        missing = [reason for _, reasons in written for reason in reasons]
        if is_all:
            links = [(page.name, f"{page.name}/index.html", page.lead.findings) for page in pages]
            note = _absent_in_words(absent()) if absent() else ""
            write_page(out / "index.html", html_of(HtmlPage("Results that come with Byheart", note=note, pages=links)))
            files.append(out / "index.html")
        # A model of an experiment's page is in its paper's page too.
        models = sum(page.about["models"] for page in pages if not is_all or page.name not in PAGES)
        return PlotResult(files, models, missing, absent() if is_all else [])

    def _write(self, out: Path, page: "ResultsPage") -> tuple[list[Path], list[str]]:
        from byheart.report.page import write_results_page

        with steps("drawing", quiet=self.json) as report:
            return write_results_page(page, out, self.format, report)


@dataclass(frozen=True)
class PlotResult(Result):
    """Files that were written, why figures are missing, and experiments without results."""

    files: list[Path]
    models: int
    missing: list[str]
    absent: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the files, the number of models, and what is missing."""
        return {"files": self.files, "rows": self.models, "missing": self.missing, "absent": self.absent}

    def rows(self) -> Iterator[Block]:
        """Yield what is missing, and the files."""
        yield from self.missing
        yield from (f"wrote {path}" for path in self.files)
        if self.absent:
            yield _absent_in_words(self.absent)


def _absent_in_words(absent: Sequence[str]) -> str:
    """Say which experiments cannot be drawn, and how to train them."""
    how = "byheart lab run NAME --scale paper trains one, and byheart lab plot draws it"
    return f"No results come with Byheart of {', '.join(absent)}; {how}."


def _check_links(figures: Path) -> None:
    """Raise BadInput if the folder, or a file in it, is a link: links in a run of unknown origin may lead anywhere."""
    for path in (figures, *(figures.iterdir() if figures.is_dir() else ())):
        if path.is_symlink():
            raise BadInput(f"{path}: is a link, which is not written through here; remove it, or choose a folder (-o)")


NOISE = """gap: the mean of our runs minus the published mean; noise alone: the mean |gap| that there would be if the
published runs scattered as ours do (run deviation) around the same values; within noise: how many gaps that explains
(95 % are expected to be); uniform gap: accuracy over all contexts, each counted once, minus that over the sample"""
LINES = """slope: of the line, with the interval that all it misses makes; over seeds: the interval that other seeds
would make; lack of fit: probability of such a fit if the curve were straight; right: right answers per head, or per
token; proved: what H(min(n, d_h) − 1) + 1 grows by; equal: probability of such slopes if they were the same on either
side of n; saturated: accuracy reaches 0.9, and says nothing about d_h"""
WIDTHS = """least hidden: the fewest hidden neurons m within 1 % of the entropy; crossing: where the excess is 1 %,
between two m; needed by any N: N(ω − 1), which N contexts with any distributions take"""
HELD = """low, high: 95 % over seeds; lost: runs without a number; edge: no more was asked for, so it may not be full;
weight bits: of the largest weight of a network that is built"""
LEGENDS = {"dana-2025": NOISE, "mahdavi-2024": LINES, "madden-2024": WIDTHS, "capacity": HELD}

Paper = Literal["dana-2025", "mahdavi-2024", "madden-2024", "capacity"]
NAMED = ("experiment", "name", "what")
"""Columns of names, which are aligned to the left."""


@dataclass(frozen=True)
class CompareRuns:
    """Compare runs point by point; one run with the results that come with Byheart; these with the published ones."""

    folders: Positional[tuple[Path, ...]] = ()
    """Folders of runs. One alone is compared with the results of its experiment that come with Byheart."""
    shipped: bool = False
    """Instead of folders: compare the results that come with Byheart with what their papers published."""
    paper: Paper | None = None
    """Compare the results of this paper only, with --shipped."""
    metric: str | None = None
    """Metric to compare (default: accuracy if all runs have it)."""
    json: Json = False

    def run(self) -> "CompareRunsResult | ShippedComparison":
        """Read the runs and match their points."""
        from byheart.lab.rows import compare, constants, difference
        from byheart.lab.runs import Run

        self._check()
        if self.shipped:
            return compare_shipped(self.paper)
        runs = [Run.open(folder) for folder in self.folders]
        report_half_lines(*self.folders)
        rows = [[row for row in run.rows if row.status == "done"] for run in runs]
        if len(runs) == 1:
            rows.append(_shipped_rows(runs[0]))
        metric, table = compare(rows, self.metric)
        if len(runs) == 1:
            table = [points for points in table if points[0] is not None]
        if not any(point is not None and metric in point.metrics for points in table for point in points):
            raise BadInput(f"no run has a metric {metric!r}; byheart lab show DIR lists the metrics of a run")
        differences = [difference(table, metric, 0, other) for other in range(1, len(rows))]
        unlike = _unlike(*map(constants, rows)) if len(runs) == 1 else ""
        return CompareRunsResult(self, runs, metric, table, differences, unlike)

    def _check(self) -> None:
        """Raise BadInput if options do not go together."""
        if self.shipped and (self.folders or self.metric):
            raise BadInput("--shipped takes neither folders nor --metric; expected one or the other")
        if self.paper is not None and not self.shipped:
            raise BadInput("--paper chooses among the results that come with Byheart; expected --shipped before it")
        if not self.folders and not self.shipped:
            raise BadInput("no folders given; expected those of runs, or --shipped")


def _shipped_rows(run: "Run") -> "list[ResultRow]":
    """Return the results of a run's experiment that come with Byheart, at the settings that the run has too."""
    from byheart.lab.rows import ResultRow
    from byheart.papers.paper import shipped_rows

    known = {name for row in run.rows for name in row.config}
    rows = [
        ResultRow(
            run.name,
            str(number),
            {name: value for name, value in row.items() if name in known},
            "done",
            {name.removeprefix("metric_"): value for name, value in row.items() if name not in known},
            0.0,
            None,
        )
        for number, row in enumerate(shipped_rows(run.name))
    ]
    if not rows:
        raise BadInput(f"{run.folder}: no results of {run.name} come with Byheart; expected two or more runs")
    return rows


@dataclass(frozen=True)
class CompareRunsResult(Result):
    """Runs side by side: for each choice of settings, one point per run, or None."""

    command: CompareRuns
    runs: "list[Run]"
    metric: str
    points: "Sequence[Sequence[SummaryPoint | None]]"
    differences: "list[Difference]"
    unlike: str = ""
    """Settings of a run that is compared with shipped results, where they differ."""

    def as_json(self) -> dict[str, Any]:
        """Return the metric, the states of the runs, its values point by point, and the differences."""
        points = [
            {"settings": _settings(row), "runs": [point and point.metrics.get(self.metric) for point in row]}
            for row in self.points
        ]
        states = [run_state(run) for run in self.runs]
        found = {"metric": self.metric, "runs": states, "points": points, "differences": self.differences}
        return found | ({"unlike": self.unlike} if self.unlike else {})

    def rows(self) -> Iterator[Block]:
        """Yield a table of all points, and each run's differences from the first one."""
        first, *others = self.command.folders if len(self.runs) > 1 else (*self.command.folders, Path("shipped"))
        names = [*_settings(self.points[0])] if self.points else []
        rows = [
            (
                *map(setting, _settings(row).values()),
                *(mean(point.metrics.get(self.metric) if point else None) for point in row),
            )
            for row in self.points
        ]
        columns = [f">{name}" for name in (*names, first, *others)]
        yield Table(f"{self.metric}, mean ± standard deviation", columns, rows)
        for folder, value in zip(others, self.differences, strict=True):
            apart = f"mean {value.mean:+.4g}, largest {value.largest:+.4g}" if value.points else "nothing to compare"
            yield f"{folder} − {first}: {apart} ({value.points} points in both)"
        if self.unlike:
            yield f"but the run has {self.unlike}"


def _unlike(own: Mapping[str, Any], shipped: Mapping[str, Any]) -> str:
    """Return the settings that are the same in all rows of either side, and differ between the two.

    >>> _unlike({"batch": 64, "layers": 1}, {"batch": 256, "layers": 1})
    'batch 64, and not 256'
    """
    both = [name for name in own if name in shipped and setting(own[name]) != setting(shipped[name])]
    return "; ".join(f"{name} {setting(own[name])}, and not {setting(shipped[name])}" for name in both)


def _settings(points: "Sequence[SummaryPoint | None]") -> dict[str, Any]:
    return next(point.settings for point in points if point is not None)


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
        """Yield the findings and tables of each paper, with what their columns mean."""
        for name in self.papers:
            yield from _page_rows(name)
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


def _folded_table(table: "DataTable") -> Table:
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

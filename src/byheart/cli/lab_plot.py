"""``byheart lab plot``: draw the figures of runs, and write a page with everything."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from byheart.cli.lab_output import report_half_lines
from byheart.cli.menu import about
from byheart.cli.options import Arg, Json, Positional
from byheart.cli.output import steps
from byheart.cli.result import Block, Result
from byheart.errors import BadInput
from byheart.files.writing import make_folder

if TYPE_CHECKING:  # torch is slow to import
    from byheart.exhibits import AvailableFigure, DataTable, ResultsPage
    from byheart.lab.runs import Run
    from byheart.papers.capacity.beside import Beside
    from byheart.progress import Report

Rows = list[dict[str, Any]]
Written = tuple[list[Path], list[str]]
"""Files that were written, and why figures are missing among them."""

PLOT = about(
    "Draw a run's figures, with bounds and published numbers in them, and write one page with everything.",
    "byheart lab plot runs/dana-2025-1-paper",
    "byheart lab plot --shipped all # what comes with Byheart",
)


@dataclass(frozen=True)
class PlotResult(Result):
    """Files that were written, why figures are missing, and experiments without results."""

    command: "LabPlot"
    files: list[Path]
    models: int
    missing: list[str]
    absent: list[str]

    def as_json(self) -> dict[str, Any]:
        """Return the files, the number of models, and what is missing."""
        files = [str(path) for path in self.files]
        return {"files": files, "rows": self.models, "missing": self.missing, "absent": self.absent}

    def rows(self) -> Iterator[Block]:
        """Yield what is missing, and the files."""
        yield from self.missing
        for path in self.files:
            yield f"wrote {path}"
        if self.absent:
            yield _absent_in_words(self.absent)


@dataclass(frozen=True)
class LabPlot:
    """Draw the figures of a run, or of several runs of one paper together, and write a page."""

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

    def run(self) -> PlotResult:
        """Read the results, draw their figures, and write the page."""
        from byheart.report.style import check_matplotlib

        check_matplotlib()
        return self._draw_runs() if self.shipped is None else self._draw_shipped(self.shipped)

    def _draw_runs(self) -> PlotResult:
        from byheart.exhibits import ResultsPage
        from byheart.lab.runs import Run
        from byheart.papers.capacity.beside import beside_in_words, beside_table
        from byheart.papers.pages import lead_of

        if not self.folders:
            raise BadInput("no folder given; expected one or more runs, or --shipped NAME")
        runs = [Run.open(folder) for folder in self.folders]
        report_half_lines(*self.folders)
        rows = [row for run in runs for row in run.table]
        if not rows:
            raise BadInput(f"{self.folders[0]}: no model is done yet; expected results to draw")
        _check_one_paper(runs)
        with steps("building", quiet=self.json) as report:
            beside = _beside(runs[0], rows, report)
        title = ", ".join(dict.fromkeys(f"{run.name}, {run.about['scale']}" for run in runs))
        if self.out is None:
            _check_links(self.folders[0] / "figures")
        out = self.out or self.folders[0] / "figures"
        lead = lead_of(runs[0].name, rows, beside_in_words(beside))
        tables = [*_tables(runs), *beside_table(beside)]
        page = ResultsPage(title, lead, _figures(runs[0], rows, beside), tables, _about(runs))
        files, missing = self._write(out, page)
        return PlotResult(self, files, len(rows), missing, [])

    def _draw_shipped(self, name: str) -> PlotResult:
        from byheart.papers.pages import PAGES, absent, names, results_page
        from byheart.report.page import HtmlPage, html_of, write_page

        if self.folders:
            raise BadInput("--shipped takes no folder; expected one or the other")
        out, is_all = self.out or Path("figures"), name == "all"
        pages = [results_page(each) for each in (names() if is_all else [name])]
        written = [self._write(out / page.name if is_all else out, page) for page in pages]
        files = [path for some, _ in written for path in some]
        missing = [reason for _, some in written for reason in some]
        if is_all:
            links = [(page.name, f"{page.name}/index.html", page.lead.findings) for page in pages]
            note = _absent_in_words(absent()) if absent() else ""
            write_page(out / "index.html", html_of(HtmlPage("Results that come with Byheart", note=note, pages=links)))
            files.append(out / "index.html")
        # A model of an experiment's page is in its paper's page too.
        counted = [page for page in pages if not is_all or page.name not in PAGES]
        models = sum(page.about["models"] for page in counted)
        return PlotResult(self, files, models, missing, absent() if is_all else [])

    def _write(self, out: Path, page: "ResultsPage") -> Written:
        """Draw the figures and the page into a folder; return the files, and why figures are missing."""
        from byheart.report.drawing import draw
        from byheart.report.page import HtmlPage, html_of, picture_of, write_page

        files, pictures, missing = [], [], []
        with make_folder(out), steps("drawing", quiet=self.json) as report:
            for index, available in enumerate(page.figures):
                if report is not None:
                    report(index, len(page.figures), available.name)
                try:
                    figure = available.make()
                except BadInput as reason:  # a run that is not complete may have too little for one figure
                    missing.append(f"{available.name} is not drawn: {reason}")
                    continue
                pictures.append(picture_of(partial(draw, figure), available.caption))
                files.append(out / f"{available.name}.{self.format}")
                draw(figure, files[-1])
            html = HtmlPage(page.name, page.lead, pictures, page.tables, page.about, "; ".join(missing))
            write_page(out / "index.html", html_of(html))
        return [*files, out / "index.html"], missing


def _absent_in_words(absent: Sequence[str]) -> str:
    """Say which experiments cannot be drawn, and how to train them."""
    how = "byheart lab run NAME --scale paper trains one, and byheart lab plot draws it"
    return f"No results come with Byheart of {', '.join(absent)}; {how}."


def _check_links(figures: Path) -> None:
    """Raise BadInput if the folder, or a file in it, is a link: links in a run of unknown origin may lead anywhere."""
    for path in (figures, *(figures.iterdir() if figures.is_dir() else ())):
        if path.is_symlink():
            raise BadInput(f"{path}: is a link, which is not written through here; remove it, or choose a folder (-o)")


def _check_one_paper(runs: "list[Run]") -> None:
    papers = {_paper(run) for run in runs}
    if len(papers) > 1:
        raise BadInput(f"the runs are of {', '.join(sorted(papers))}; expected runs of one paper in one picture")


def _paper(run: "Run") -> str:
    return run.name.split("-", maxsplit=1)[0]


def _beside(run: "Run", rows: Rows, report: "Report | None") -> "list[Beside]":
    """Return networks built for the labels of a ladder; none for other experiments."""
    from byheart.papers.capacity.beside import build_beside, labels_of

    return build_beside(labels_of(rows), report) if _paper(run) == "capacity" else []


def _figures(run: "Run", rows: Rows, beside: "list[Beside]") -> "list[AvailableFigure]":
    from byheart.papers.pages import figures_of, own_figures

    settings = [*next(iter(run.configs.values()))]
    return figures_of(run.name, rows, beside) or own_figures(run.name, rows, settings)


def _about(runs: "list[Run]") -> dict[str, Any]:
    """Return what was run, where, and with which versions."""
    about: dict[str, Any] = {}
    for run in runs:
        prefix = f"{run.folder.name}: " if len(runs) > 1 else ""
        about[f"{prefix}experiment"] = run.name
        about[f"{prefix}scale"] = run.about["scale"]
        about[f"{prefix}models"] = f"{run.done:,} done, {run.failed:,} failed, {len(run.configs):,} in all"
        for index, session in enumerate(run.about["sessions"]):
            about[f"{prefix}session {index + 1}"] = ", ".join(f"{name} {value}" for name, value in session.items())
    return about


def _tables(runs: "list[Run]") -> "list[DataTable]":
    """Return tables of constants, fitted laws, means over repetitions, and failures."""
    from byheart.exhibits import DataTable
    from byheart.lab.rows import constants, points
    from byheart.papers.pages import tables_of

    rows = [row for run in runs for row in run.rows]
    means = []
    for point in points(rows):
        cells: dict[str, Any] = dict(point.settings) | {"models": point.models}
        for name, value in point.metrics.items():
            cells[name] = value.mean
            if value.deviation:
                cells[f"{name} ±"] = value.deviation
        means.append(cells)
    fitted = tables_of(runs[0].name, [row for run in runs for row in run.table])
    tables = [*fitted, DataTable("Means over repetitions (± standard deviation)", means)]
    fixed = constants(rows)
    if fixed:
        tables.insert(0, DataTable("Everywhere", [fixed]))
    failed = [{"key": row.key, "error": row.error} | row.config for row in rows if row.status == "failed"]
    return [*tables, DataTable("Failed", failed)] if failed else tables

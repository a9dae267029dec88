"""Pages about results: one for each experiment, and one for each paper, with what no single experiment shows.

Dana's page holds all published points against ours; Mahdavi's, all sweeps of labels and of targets in the arrangement
of the paper's study; Madden's, both settings. The last two say how many of the paper's models there are.
"""

from collections.abc import Callable, Sequence
from typing import Any

from byheart.errors import BadInput
from byheart.exhibits import AvailableFigure, DataTable, Lead, ResultsPage
from byheart.lab.rows import constants, points
from byheart.lab.runs import Run
from byheart.papers import results
from byheart.papers.capacity.beside import (
    Beside,
    beside_in_words,
    beside_table,
    build_beside,
    labels_of,
    shipped_beside,
)
from byheart.papers.capacity.capacity_page import CAPACITY
from byheart.papers.curves import Rows, check_numbers, values
from byheart.papers.dana_2025 import dana_page
from byheart.papers.dana_2025.dana_page import AGAINST_MLP, DANA, PARTNERS
from byheart.papers.experiments import EXPERIMENTS
from byheart.papers.madden_2024 import madden_page
from byheart.papers.mahdavi_2024 import mahdavi_page
from byheart.papers.own_figure import own_figures
from byheart.papers.paper import Paper
from byheart.progress import Report

ALL_MODELS = "All models"
PAPERS = {"dana": DANA, "mahdavi": mahdavi_page.MAHDAVI, "madden": madden_page.MADDEN, "capacity": CAPACITY}
"""The papers, by the first word of their experiments' names."""
PAGES: dict[str, Callable[[str], ResultsPage]] = {
    "dana-2025": dana_page.paper_page,
    "mahdavi-2024": mahdavi_page.paper_page,
    "madden-2024": madden_page.paper_page,
}
"""The pages about whole papers."""


def paper_of(experiment: str) -> Paper | None:
    """Return the paper of an experiment; None for a user's own."""
    return PAPERS.get(experiment.split("-", maxsplit=1)[0])


def figures_of(experiment: str, rows: Rows, beside: Sequence[Beside] = ()) -> list[AvailableFigure]:
    """Return the figures that an experiment's results allow, by its name and by what varies in them."""
    paper = paper_of(experiment)
    if paper is None or not rows:
        return []
    check_numbers(rows)
    return paper.figures(experiment, rows, beside)


def tables_of(experiment: str, rows: Rows) -> list[DataTable]:
    """Return the tables that an experiment's results allow, by its name and by what varies in them."""
    paper = paper_of(experiment)
    return [] if paper is None else paper.tables(experiment, rows)


def findings_of(experiment: str, rows: Rows) -> list[str]:
    """Return what the results say about their paper's question; an empty list if there are too few."""
    paper = paper_of(experiment)
    return paper.findings(experiment, rows) if paper is not None and rows else []


def lead_of(experiment: str, rows: Rows, more: Sequence[str] = ()) -> Lead:
    """Return the beginning of an experiment's page with ``more`` findings; without a paper for a user's own."""
    paper = paper_of(experiment)
    findings = [*findings_of(experiment, rows), *more]
    return Lead(findings=findings) if paper is None else Lead(paper.title, paper.question, findings)


def names() -> list[str]:
    """Return the names of all pages: papers with results first, then experiments.

    >>> names()[:2]
    ['dana-2025', 'mahdavi-2024']
    """
    shipped = results.names()
    return [*(paper for paper in PAGES if any(name.startswith(paper) for name in shipped)), *shipped]


def results_page(name: str) -> ResultsPage:
    """Return the page about a paper, or about one experiment, whose results come with Byheart."""
    results.check_there(name, names(), f"there are those of {names()[0]}, say, and all")
    if name in PAGES:
        return PAGES[name](name)
    rows = results.table(name)
    beside = shipped_beside(rows) if name == "capacity" else []
    figures = figures_of(name, rows, beside)
    if name in PARTNERS:
        both = figures_of(name, [*rows, *results.table(PARTNERS[name])])
        figures = [each for each in both if each.name == AGAINST_MLP] + [f for f in figures if f.name != AGAINST_MLP]
    tables = [*tables_of(name, rows), *beside_table(beside), DataTable(ALL_MODELS, rows)]
    shared = {column: values(rows, column)[0] for column in rows[0] if len(values(rows, column)) == 1}
    about = {"models": len(rows), "results": "come with Byheart", **shared}
    return ResultsPage(name, lead_of(name, rows, [*beside_in_words(beside), *_missing(name)]), figures, tables, about)


def absent() -> list[str]:
    """Return the experiments of which no results come with Byheart."""
    shipped = results.names()
    return [name for name in EXPERIMENTS if name not in shipped]


def _missing(name: str) -> list[str]:
    """Say how much of the experiment is there, unless all of it is."""
    part = results.presence(name) if name in EXPERIMENTS else None
    return [f"At the paper's scale here are {part}."] if part and part.models < part.planned else []


def page_of_runs(runs: Sequence[Run], report: Report | None = None) -> ResultsPage:
    """Return the page about runs of one paper, drawn as one table, with networks built beside those of a ladder."""
    rows = [row for run in runs for row in run.table]
    if not rows:
        raise BadInput(f"{runs[0].folder}: no model is done yet; expected results to draw")
    papers = {run.name.split("-", maxsplit=1)[0] for run in runs}
    if len(papers) > 1:
        raise BadInput(f"the runs are of {', '.join(sorted(papers))}; expected runs of one paper in one picture")
    name, settings = runs[0].name, [*next(iter(runs[0].configs.values()))]
    beside = build_beside(labels_of(rows), report) if papers == {"capacity"} else []
    title = ", ".join(dict.fromkeys(f"{run.name}, {run.about['scale']}" for run in runs))
    figures = figures_of(name, rows, beside) or own_figures(name, rows, settings)
    tables = [*_tables(runs, tables_of(name, rows)), *beside_table(beside)]
    return ResultsPage(title, lead_of(name, rows, beside_in_words(beside)), figures, tables, _sessions(runs))


def _sessions(runs: Sequence[Run]) -> dict[str, str]:
    """Return what was run, where, and with which versions."""
    about = {}
    for run in runs:
        prefix = f"{run.folder.name}: " if len(runs) > 1 else ""
        about[f"{prefix}experiment"] = run.name
        about[f"{prefix}scale"] = run.about["scale"]
        about[f"{prefix}models"] = f"{run.done:,} done, {run.failed:,} failed, {len(run.configs):,} in all"
        for index, session in enumerate(run.about["sessions"]):
            about[f"{prefix}session {index + 1}"] = ", ".join(f"{name} {value}" for name, value in session.items())
    return about


def _tables(runs: Sequence[Run], fitted: Sequence[DataTable]) -> list[DataTable]:
    """Return tables of constants, ``fitted`` laws, means over repetitions, and failures."""
    rows = [row for run in runs for row in run.rows]
    means = []
    for point in points(rows):
        cells: dict[str, Any] = dict(point.settings) | {"models": point.models}
        for name, value in point.metrics.items():
            cells[name] = value.mean
            if value.deviation:
                cells[f"{name} ±"] = value.deviation
        means.append(cells)
    failed = [{"key": row.key, "error": row.error} | row.config for row in rows if row.status == "failed"]
    fixed = constants(rows)
    return [
        *([DataTable("Everywhere", [fixed])] if fixed else []),
        *fitted,
        DataTable("Means over repetitions (± standard deviation)", means),
        *([DataTable("Failed", failed)] if failed else []),
    ]

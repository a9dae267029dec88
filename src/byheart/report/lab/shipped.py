"""The results that come with Byheart as pages: one for each experiment, and one for each paper, with all of it.

A paper's page holds what no single experiment shows: of Dana's, all published points against ours; of Mahdavi's, the
blocks of labels and of targets, each side by side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

from byheart.errors import BadInput
from byheart.lab import results
from byheart.report.lab.beside import shipped_beside
from byheart.report.lab.findings import PAPERS, QUESTIONS, findings_of
from byheart.report.lab.mahdavi import draw_blocks
from byheart.report.lab.menu import AGAINST_MLP, Drawing, figures_of
from byheart.report.lab.record import draw_record, gap_cells, record, shipped, summary
from byheart.report.lab.series import Rows, values
from byheart.report.lab.tables import tables_of
from byheart.report.page import Lead, Table

PARTNERS = {
    "dana-2025-5-attention": "dana-2025-5-mlp",
    "dana-2025-5-mlp": "dana-2025-5-attention",
    "dana-2025-5-larger": "dana-2025-1-larger",
    "dana-2025-5-deeper": "dana-2025-1-deeper",
}
"""Whose results stand in the same figure of the paper: heads against an MLP."""


@dataclass(frozen=True)
class Shown:
    """What a page about results holds; ``about`` is what was run."""

    name: str
    lead: Lead
    drawings: Sequence[Drawing]
    tables: Sequence[Table]
    about: Mapping[str, Any]


def names() -> list[str]:
    """Of all pages: the papers', then the experiments'.

    >>> names()[:2]
    ['dana-2025', 'mahdavi-2024']
    """
    return [*PAGES, *results.names()]


def shown(name: str) -> Shown:
    """The page about a paper or about one experiment."""
    if name in PAGES:
        return PAGES[name](name)
    if name not in results.names():
        near = get_close_matches(name, names(), cutoff=0.5) or names()[:1]
        raise BadInput(
            f"no results of {name!r} come with Byheart; there are those of {' or '.join(near)}, say, and all"
        )
    rows = results.table(name)
    drawings = figures_of(name, rows, shipped_beside(rows) if name == "capacity" else ())
    if name in PARTNERS:
        both = [each for each in figures_of(name, [*rows, *results.table(PARTNERS[name])]) if each.name == AGAINST_MLP]
        drawings = [*both, *(each for each in drawings if each.name != AGAINST_MLP)]
    tables = [*tables_of(name, rows), Table("All models", rows)]
    same = {column: values(rows, column)[0] for column in rows[0] if len(values(rows, column)) == 1}
    return Shown(name, lead_of(name, rows), drawings, tables, _about(len(rows)) | same)


def lead_of(experiment: str, rows: Rows) -> Lead:
    """What a page about an experiment says first; nothing about one of a user's own."""
    paper = experiment.split("-", maxsplit=1)[0]
    return Lead(PAPERS.get(paper, ""), QUESTIONS.get(paper, ""), findings_of(experiment, rows))


def _dana(name: str) -> Shown:
    tables = shipped()
    gaps, slopes, claims = record(tables)
    drawing = Drawing("published", "All published points: ours against theirs.", partial(draw_record, gaps[:-1]))
    findings = [summary(gaps[-1]), *(f"{each.name.removeprefix(f'{name}-')}: {summary(each)}" for each in gaps[:-1])]
    listed = [
        Table("Gaps by experiment: training accuracy, here minus published", [gap_cells(each) for each in gaps]),
        Table("What the paper reports (95 %)", [claim.cells() for claim in claims]),
        Table("Slopes of accuracy below 0.9 (95 %)", [slope.cells() for slope in slopes]),
    ]
    return Shown(name, _lead("dana", findings), [drawing], listed, _about(sum(map(len, tables.values()))))


def _mahdavi(name: str) -> Shown:
    found = {each: results.table(each) for each in results.names() if each.startswith(name) and "-short" not in each}
    drawings, tables, findings = [], [], []
    for kind, answers in (("classification", "labels"), ("regression", "targets")):
        blocks = [rows for each, rows in found.items() if each.startswith(f"{name}-{kind}")]
        if blocks:
            caption = f"Memorizing {answers}: what the heads, the context and the heads' dimension bring."
            drawings.append(Drawing(kind, caption, partial(draw_blocks, blocks)))
    for each, rows in found.items():
        block = each.removeprefix(f"{name}-")
        findings += [f"{block}: {finding}" for finding in findings_of(each, rows)]
        tables += [Table(f"{block}: {table.title}", table.rows) for table in tables_of(each, rows)[:1]]
        if block == "saturation":
            drawings += figures_of(each, rows)
    return Shown(name, _lead("mahdavi", findings), drawings, tables, _about(sum(map(len, found.values()))))


def _about(models: int) -> dict[str, Any]:
    return {"models": models, "results": "come with Byheart"}


def _lead(paper: str, findings: Sequence[str]) -> Lead:
    return Lead(PAPERS[paper], QUESTIONS[paper], findings)


PAGES = {"dana-2025": _dana, "mahdavi-2024": _mahdavi}
"""Of whole papers."""

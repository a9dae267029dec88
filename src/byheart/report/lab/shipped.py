"""The results that come with Byheart as pages: one for each experiment, and one for each paper, with all of it.

A paper's page holds what no single experiment shows: of Dana's, all published points against ours; of Mahdavi's, the
blocks of labels and of targets, each in the arrangement of the paper's study: a column for heads, context and d_h each,
a row for random contexts and one for a fixed one, where what is not there yet keeps its place; of Madden's, both
settings. The last two say how many of the paper's models there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from byheart.papers import results
from byheart.papers.built import built
from byheart.papers.experiments import EXPERIMENTS
from byheart.papers.madden_2024.madden_experiments import EXPERIMENTS as MADDEN_2024
from byheart.papers.mahdavi_2024.mahdavi_experiments import EXPERIMENTS as MAHDAVI_2024
from byheart.papers.results import Presence
from byheart.report.lab.beside import beside_in_words, beside_table, shipped_beside
from byheart.report.lab.findings import PAPERS, QUESTIONS, findings_of
from byheart.report.lab.held import draw_held, held_of, spoken_of
from byheart.report.lab.madden import draw_settings
from byheart.report.lab.mahdavi import GridPanel, draw_blocks
from byheart.report.lab.menu import AGAINST_MLP, AvailableFigure, figures_of
from byheart.report.lab.record import draw_record, gap_cells, record, shipped, summary
from byheart.report.lab.series import Rows, values
from byheart.report.lab.tables import claimed, tables_of
from byheart.report.page import Lead, Table

ALL_MODELS = "All models"
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
    drawings: Sequence[AvailableFigure]
    tables: Sequence[Table]
    about: Mapping[str, Any]


def names() -> list[str]:
    """Of all pages: those of papers of which results are there, then the experiments'.

    >>> names()[:2]
    ['dana-2025', 'mahdavi-2024']
    """
    there = results.names()
    return [*(paper for paper in PAGES if any(name.startswith(paper) for name in there)), *there]


def shown(name: str) -> Shown:
    """The page about a paper or about one experiment."""
    results.check_there(name, names(), f"there are those of {names()[0]}, say, and all")
    if name in PAGES:
        return PAGES[name](name)
    rows = results.table(name)
    beside = shipped_beside(rows) if name == "capacity" else []
    drawings = figures_of(name, rows, beside)
    if name in PARTNERS:
        both = [each for each in figures_of(name, [*rows, *results.table(PARTNERS[name])]) if each.name == AGAINST_MLP]
        drawings = [*both, *(each for each in drawings if each.name != AGAINST_MLP)]
    tables = [*tables_of(name, rows), *beside_table(beside), Table(ALL_MODELS, rows)]
    same = {column: values(rows, column)[0] for column in rows[0] if len(values(rows, column)) == 1}
    more = [*beside_in_words(beside), *_not_whole(name)]
    return Shown(name, lead_of(name, rows, more), drawings, tables, _about(len(rows)) | same)


def lead_of(experiment: str, rows: Rows, more: Sequence[str] = ()) -> Lead:
    """What a page about an experiment says first, and ``more`` findings; nothing about one of a user's own."""
    paper = experiment.split("-", maxsplit=1)[0]
    return Lead(PAPERS.get(paper, ""), QUESTIONS.get(paper, ""), [*findings_of(experiment, rows), *more])


def absent() -> list[str]:
    """The experiments of which nothing comes with Byheart."""
    there = results.names()
    return [name for name in EXPERIMENTS if name not in there]


def _not_whole(name: str) -> list[str]:
    """How much of the experiment is there, if not all."""
    there = results.presence(name) if name in EXPERIMENTS else None
    return [f"At the paper's scale here are {there}."] if there and there.models < there.planned else []


def _dana(name: str) -> Shown:
    tables = shipped()
    gaps, slopes, claims = record(tables)
    drawing = AvailableFigure(
        "published", "All published points: ours against theirs.", partial(draw_record, gaps[:-1])
    )
    rows = built("held")
    held = held_of(rows)
    caption = "Associations held by networks that were trained, each answer proved, beside what the theorem promises."
    drawings = [drawing, AvailableFigure("held", caption, partial(draw_held, rows))]
    findings = [summary(gaps[-1]), spoken_of(held).in_words()]
    findings += [f"{each.name.removeprefix(f'{name}-')}: {summary(each)}" for each in gaps[:-1]]
    listed = [
        Table("Gaps by experiment: training accuracy, here minus published", [gap_cells(each) for each in gaps]),
        Table("What the paper reports (95 %)", [claim.cells() for claim in claims]),
        Table("Slopes of accuracy below 0.9 (95 %)", [slope.cells() for slope in slopes]),
        Table("How many associations are held: single runs, each answer proved", [each.cells() for each in held]),
    ]
    return Shown(name, _lead("dana", findings), drawings, listed, _about(sum(map(len, tables.values()))))


def _mahdavi(name: str) -> Shown:
    """Every block of the paper in its place, those too of which nothing is there yet, and the saturated heads."""
    blocks = {each: _rows(each) for each in sorted(MAHDAVI_2024, key=_place)}
    there = {each: results.presence(each) for each in blocks}
    drawings, tables, findings = [], [], [_how_much(name, there)]
    for kind, answers in (("classification", "labels"), ("regression", "targets")):
        panels = [_panel(each, rows, there[each]) for each, rows in blocks.items() if f"-{kind}-" in each]
        caption = f"Memorizing {answers}: what the heads, the context and the heads' dimension bring."
        drawings.append(AvailableFigure(kind, caption, partial(draw_blocks, kind.capitalize(), panels)))
    for each, rows in blocks.items():
        block = each.removeprefix(f"{name}-")
        findings += [f"{block}: {finding}" for finding in findings_of(each, rows)]
        tables += [Table(f"{block}: {table.title}", table.rows) for table in (claimed(rows) if rows else [])]
    drawings += figures_of(f"{name}-saturation", blocks[f"{name}-saturation"])
    tables.append(_presences(there))
    return Shown(name, _lead("mahdavi", findings), drawings, tables, _about(sum(map(len, blocks.values()))))


def _place(name: str) -> tuple[int, ...]:
    """Where an experiment stands in the paper's study: labels first, then by what is swept, random contexts first."""
    orders = (("classification", "regression", "saturation"), ("heads", "context", "head-dim"), ("random", "fixed"))
    words = f"{name}-"
    return tuple(next((k for k, word in enumerate(order) if f"-{word}-" in words), 0) for order in orders)


def _rows(name: str) -> Rows:
    return results.table(name) if name in results.names() else []


def _panel(name: str, rows: Rows, there: Presence) -> GridPanel:
    return GridPanel([vars(config) for config in MAHDAVI_2024[name]("paper").configs], rows, there)


def _presences(there: Mapping[str, Presence]) -> Table:
    """How much of each experiment is there."""
    rows = [{"experiment": name, **_presence_cells(each)} for name, each in there.items()]
    return Table("How much of each experiment comes with Byheart", rows)


def _presence_cells(there: Presence) -> dict[str, Any]:
    state = "whole" if there.models == there.planned else "partial" if there.models else "none"
    seeds = {"seeds": there.seeds, "seeds_planned": there.planned_seeds}
    return {"models": there.models, "planned": there.planned, **seeds, "shipped": state}


def _how_much(paper: str, there: Mapping[str, Presence]) -> str:
    """How many of the paper's models are there, in a sentence."""
    models, planned = sum(each.models for each in there.values()), sum(each.planned for each in there.values())
    missing = [name.removeprefix(f"{paper}-") for name, each in there.items() if not each.models]
    nothing = f"; nothing yet of {', '.join(missing)}" if missing else ""
    many = f"All {planned:,}" if models == planned else f"{models:,} of the {planned:,}"
    return f"{many} models of the paper are here{nothing}."


def _madden(name: str) -> Shown:
    """Both settings, with the pages' own drawings and tables behind what compares them."""
    there = {each: results.presence(each) for each in sorted(MADDEN_2024)}
    found = {each: results.table(each) for each in there if there[each].models}
    caption = "The fewest hidden neurons within 1 % of the entropy in both settings, and their parameters."
    drawings = [AvailableFigure("settings", caption, partial(draw_settings, list(found.values())))]
    tables, findings = [], [_how_much(name, there)]
    for each, rows in found.items():
        setting = each.removeprefix(f"{name}-")
        drawings += [AvailableFigure(f"{setting}-{one.name}", one.caption, one.draw) for one in figures_of(each, rows)]
        tables += [Table(f"{setting}: {table.title}", table.rows) for table in tables_of(each, rows)]
        findings += [f"{setting}: {finding}" for finding in findings_of(each, rows)]
    tables.append(_presences(there))
    return Shown(name, _lead("madden", findings), drawings, tables, _about(sum(map(len, found.values()))))


def _about(models: int) -> dict[str, Any]:
    return {"models": models, "results": "come with Byheart"}


def _lead(paper: str, findings: Sequence[str]) -> Lead:
    return Lead(PAPERS[paper], QUESTIONS[paper], findings)


PAGES = {"dana-2025": _dana, "mahdavi-2024": _mahdavi, "madden-2024": _madden}
"""Of whole papers."""

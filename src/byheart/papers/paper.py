"""The interface of a paper's folder: its question, and the figures, tables and findings that results allow."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from byheart.exhibits import AvailableFigure, DataTable, Lead, ResultsPage
from byheart.papers import results
from byheart.papers.capacity.beside import Beside
from byheart.papers.curves import Rows

Figures: TypeAlias = Callable[[str, Rows, Sequence[Beside]], list[AvailableFigure]]
Tables: TypeAlias = Callable[[str, Rows], list[DataTable]]


@dataclass(frozen=True)
class Paper:
    """A paper; ``figures``, ``tables`` and ``findings`` take an experiment's name and its table of results.

    ``figures`` also takes networks that were built for the same labels; only the ladder of capacity has some.
    """

    title: str
    question: str
    figures: Figures
    tables: Tables
    findings: Callable[[str, Rows], list[str]]

    def page(
        self,
        name: str,
        findings: Sequence[str],
        figures: Sequence[AvailableFigure],
        tables: Sequence[DataTable],
        models: int,
    ) -> ResultsPage:
        """Return a page about shipped results of ``models`` models."""
        about = {"models": models, "results": "come with Byheart"}
        return ResultsPage(name, Lead(self.title, self.question, findings), figures, tables, about)

    def page_of_all(
        self, name: str, rows_of: Mapping[str, Rows], figures: Sequence[AvailableFigure], tables: Tables
    ) -> ResultsPage:
        """Return the page about all experiments of the paper, and about how much of each comes with Byheart.

        Findings and ``tables`` of each experiment with results have the experiment's short name before them.
        """
        parts = {each: results.presence(each) for each in rows_of}
        findings, listed = [_presence_in_words(name, parts)], []
        for each, rows in rows_of.items():
            short = each.removeprefix(f"{name}-")
            findings += [f"{short}: {finding}" for finding in self.findings(each, rows)] if rows else []
            listed += [DataTable(f"{short}: {table.title}", table.rows) for table in tables(each, rows)] if rows else []
        shares = [{"experiment": each, **_presence_cells(part)} for each, part in parts.items()]
        listed.append(DataTable("How much of each experiment comes with Byheart", shares))
        return self.page(name, findings, figures, listed, sum(map(len, rows_of.values())))


def shipped_rows(name: str) -> Rows:
    """Return the shipped results of an experiment; an empty table if there are none."""
    return results.table(name) if name in results.names() else []


def _presence_cells(part: results.Presence) -> dict[str, int | str]:
    state = "whole" if part.models == part.planned else "partial" if part.models else "none"
    seeds = {"seeds": part.seeds, "seeds_planned": part.planned_seeds}
    return {"models": part.models, "planned": part.planned, **seeds, "shipped": state}


def _presence_in_words(paper: str, parts: Mapping[str, results.Presence]) -> str:
    """Say how many of the paper's models come with Byheart."""
    models, planned = sum(part.models for part in parts.values()), sum(part.planned for part in parts.values())
    missing = [name.removeprefix(f"{paper}-") for name, part in parts.items() if not part.models]
    nothing = f"; nothing yet of {', '.join(missing)}" if missing else ""
    number = f"All {planned:,}" if models == planned else f"{models:,} of the {planned:,}"
    return f"{number} models of the paper are here{nothing}."

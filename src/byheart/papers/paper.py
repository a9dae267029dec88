"""The interface of a paper's folder: its question, and the figures, tables and findings that results allow."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from byheart.exhibits import AvailableFigure, DataTable, Lead, ResultsPage
from byheart.papers import results
from byheart.papers.capacity.beside import Beside
from byheart.papers.curves import Rows
from byheart.papers.results import Presence

Figures: TypeAlias = Callable[[str, Rows, Sequence[Beside]], list[AvailableFigure]]


@dataclass(frozen=True)
class Paper:
    """A paper; ``figures``, ``tables`` and ``findings`` take an experiment's name and its table of results.

    ``figures`` also takes networks that were built for the same labels; only the ladder of capacity has some.
    """

    title: str
    question: str
    figures: Figures
    tables: Callable[[str, Rows], list[DataTable]]
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


def shipped_rows(name: str) -> Rows:
    """Return the shipped results of an experiment; an empty table if there are none."""
    return results.table(name) if name in results.names() else []


def presence_table(parts: Mapping[str, Presence]) -> DataTable:
    """Return a table of how much of each experiment comes with Byheart."""
    rows = [{"experiment": name, **_presence_cells(part)} for name, part in parts.items()]
    return DataTable("How much of each experiment comes with Byheart", rows)


def _presence_cells(part: Presence) -> dict[str, Any]:
    state = "whole" if part.models == part.planned else "partial" if part.models else "none"
    seeds = {"seeds": part.seeds, "seeds_planned": part.planned_seeds}
    return {"models": part.models, "planned": part.planned, **seeds, "shipped": state}


def presence_in_words(paper: str, parts: Mapping[str, Presence]) -> str:
    """Say how many of the paper's models come with Byheart."""
    models, planned = sum(part.models for part in parts.values()), sum(part.planned for part in parts.values())
    missing = [name.removeprefix(f"{paper}-") for name, part in parts.items() if not part.models]
    nothing = f"; nothing yet of {', '.join(missing)}" if missing else ""
    number = f"All {planned:,}" if models == planned else f"{models:,} of the {planned:,}"
    return f"{number} models of the paper are here{nothing}."

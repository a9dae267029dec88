"""``byheart lab crossing``: find where the probability of success is one half."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from byheart.cli.lab_output import report_half_lines, setting
from byheart.cli.menu import about
from byheart.cli.options import Json, Positional
from byheart.cli.result import Block, Cell, Result, Table
from byheart.errors import BadInput

if TYPE_CHECKING:  # torch is slow to import
    from byheart.lab.crossing import CrossingEstimate

CROSSING = about(
    "Find where along a setting the probability of success crosses one half, with an interval, from a run's results.",
    "byheart lab crossing --shipped mahdavi-2024-classification-heads-fixed --along heads --metric best_accuracy "
    "--at-least 0.95 --rising",
)


@dataclass(frozen=True)
class LabCrossing:
    """Find where success crosses one half: a capacity from the results of many tries."""

    along: str
    """Setting along which success is lost or gained: heads, examples, …"""
    folder: Positional[Path | None] = None
    """Folder of a run."""
    shipped: str | None = None
    """Instead of a folder: results that come with Byheart, by the name of the experiment."""
    metric: str = "accuracy"
    """Metric that decides success. A try without a number has failed."""
    at_least: float = 1.0
    """Smallest value of the metric for success."""
    by: tuple[str, ...] = ()
    """Settings to keep apart, one line per choice (default: all others that vary, except the seed)."""
    rising: bool = False
    """Success is gained, not lost, as the setting grows."""
    log: bool = False
    """Fit on a logarithmic scale of the setting."""
    level: float = 0.95
    """Confidence level of the interval."""
    json: Json = False

    def run(self) -> "CrossingsResult":
        """Read the table and fit a crossing for each choice of settings."""
        from byheart.lab.crossing import crossings

        rows, settings = self._table()
        by = self.by or tuple(name for name in settings if name not in (self.along, "seed") and _varies(rows, name))
        scale: Literal["linear", "log"] = "log" if self.log else "linear"
        options: dict[str, Any] = {"rising": self.rising, "scale": scale, "level": self.level}
        estimates = crossings(rows, self.along, by, self.metric, at_least=self.at_least, **options)
        return CrossingsResult(self, self.along, self.metric, self.at_least, estimates)

    def _table(self) -> tuple[Sequence[Mapping[str, Any]], list[str]]:
        """Return rows, and the names of the columns that are settings."""
        if (self.folder is None) == (self.shipped is None):
            raise BadInput("expected either the folder of a run or --shipped NAME")
        if self.shipped is not None:
            from byheart.papers import results

            return results.table(self.shipped), results.settings(self.shipped)
        from byheart.lab.runs import Run

        assert self.folder is not None
        run = Run.open(self.folder)
        report_half_lines(self.folder)
        return run.table, [*next(iter(run.configs.values()))]


@dataclass(frozen=True)
class CrossingsResult(Result):
    """Crossings ``along`` one setting, one for each choice of other settings."""

    command: LabCrossing
    along: str
    metric: str
    at_least: float
    crossings: "list[CrossingEstimate]"

    def rows(self) -> Iterator[Block]:
        """Yield a table of crossings."""
        title = f"{self.along} at which {self.metric} ≥ {self.at_least:g} has probability ½"
        settings = self.command.by or [*self.crossings[0].settings]
        names = [f">{name}" for name in (*settings, "tries", self.along, f"{100 * self.command.level:g} % interval")]
        yield Table(title, [*names, ""], [_cells(estimate) for estimate in self.crossings])


def _cells(estimate: "CrossingEstimate") -> list[Cell]:
    crossing = estimate.crossing
    interval = f"{_end(crossing.low, '−∞')} to {_end(crossing.high, '∞')}"
    remark = "" if crossing.status == "found" else crossing.status
    return [*map(setting, estimate.settings.values()), estimate.tries, _end(crossing.x, "–"), interval, remark]


def _end(value: float | None, missing: str) -> str:
    return missing if value is None else f"{value:.4g}"


def _varies(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return len({repr(row.get(name)) for row in rows}) > 1

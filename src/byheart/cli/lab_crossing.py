"""``byheart lab crossing``: where the probability of success is one half."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byheart.cli.lab_output import literal, say_half_lines, setting
from byheart.cli.menu import about
from byheart.cli.options import Json, Positional
from byheart.cli.output import DONE
from byheart.cli.result import console, number, print_json, table
from byheart.errors import BadInput

if TYPE_CHECKING:
    from byheart.lab.crossing import CrossingEstimate

CROSSING = about(
    "Where along a setting the probability of success crosses one half, with an interval, from a run's results.",
    "byheart lab crossing --shipped mahdavi-2024-classification-heads-fixed --along heads --metric best_accuracy "
    "--at-least 0.95 --rising",
)


@dataclass(frozen=True)
class LabCrossing:
    """Where success crosses one half: capacity, read off the results of many tries."""

    along: str
    """The setting along which success is lost, or gained: heads, examples, …"""
    folder: Positional[Path | None] = None
    """Folder of a run."""
    shipped: str | None = None
    """Instead of a folder: results that come with Byheart, by the experiment's name."""
    metric: str = "accuracy"
    """What a try is judged by. One without a number has failed."""
    at_least: float = 1.0
    """From where on a try has succeeded."""
    by: tuple[str, ...] = ()
    """A line for each choice of these settings; if not given, of all others that vary, the seed aside."""
    rising: bool = False
    """Success is gained as the setting grows, not lost."""
    log: bool = False
    """The setting is counted on a logarithmic scale."""
    level: float = 0.95
    """Of the interval."""
    json: Json = False

    def run(self) -> int:
        """Read, fit, print."""
        from byheart.lab.crossing import crossings

        rows, settings = self._table()
        by = self.by or tuple(name for name in settings if name not in (self.along, "seed") and _varies(rows, name))
        scale = "log" if self.log else "linear"
        how: dict[str, Any] = {"rising": self.rising, "scale": scale, "level": self.level}
        found = crossings(rows, self.along, by, self.metric, at_least=self.at_least, **how)
        if self.json:
            told = {"along": self.along, "metric": self.metric, "at_least": self.at_least}
            print_json({**told, "crossings": [asdict(one) for one in found]})
            return DONE
        console().print(self._shown(found, by))
        return DONE

    def _table(self) -> tuple[Sequence[Mapping[str, Any]], list[str]]:
        """Rows, and which of their columns are settings."""
        if (self.folder is None) == (self.shipped is None):
            raise BadInput("expected either the folder of a run or --shipped NAME")
        if self.shipped is not None:
            from byheart.papers import results

            return results.table(self.shipped), results.settings(self.shipped)
        from byheart.lab.runs import Run

        assert self.folder is not None
        run = Run.open(self.folder)
        say_half_lines(self.folder)
        return run.table, [*next(iter(run.configs.values()))]

    def _shown(self, found: "Sequence[CrossingEstimate]", by: Sequence[str]) -> Any:
        title = f"{self.along} at which {self.metric} ≥ {self.at_least:g} has probability ½"
        level = f">{100 * self.level:g} % interval"
        rows = table(title, *(f">{name}" for name in literal(*by)), ">tries", f">{literal(self.along)[0]}", level, "")
        for one in found:
            where = one.crossing
            ends = f"{_end(where.low, '−∞')} to {_end(where.high, '∞')}"
            told = "" if where.status == "found" else where.status
            place = "–" if where.x is None else f"{where.x:.4g}"
            rows.add_row(*literal(*map(setting, one.settings.values())), number(one.tries), place, ends, told)
        return rows


def _end(value: float | None, beyond: str) -> str:
    return beyond if value is None else f"{value:.4g}"


def _varies(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return len({repr(row.get(name)) for row in rows}) > 1

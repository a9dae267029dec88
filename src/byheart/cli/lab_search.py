"""``byheart lab search``: find the best learning rate of a grid."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from byheart.cli.lab_output import mean, setting, state
from byheart.cli.lab_run import TrainingCommand, TrainingResult, flag_words
from byheart.cli.menu import about
from byheart.cli.options import Arg
from byheart.cli.result import Block, Cell, Table
from byheart.errors import BadInput

if TYPE_CHECKING:  # torch is slow to import
    from byheart.lab.jobs import Part, Progress
    from byheart.lab.runs import Run
    from byheart.lab.search import Tried
    from byheart.lab.sources import Source

SEARCH = about(
    "Train configs of an experiment with each learning rate of a grid, and mark the best one.",
    "byheart lab search dana-2025-2 --scale short --where head_dim=10 --learning-rates 0.001 0.003 0.01 0.03",
)


def settings_in(where: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the names and values of ``--where``.

    >>> settings_in(("heads=20",))
    (('heads', '20'),)
    """
    for word in where:
        if "=" not in word:
            raise BadInput(f"--where has {word!r}; expected NAME=VALUE, as heads=20")
    pairs = (word.partition("=") for word in where)
    return tuple((name, value) for name, _, value in pairs)


@dataclass(frozen=True)
class LabSearch(TrainingCommand):
    """Find the best learning rate of a grid for configs of an experiment. All tries are kept in a run."""

    experiment: Annotated[str, Arg(metavar="NAME|FILE.py", positional=True)]
    """Name of an experiment (byheart lab list), or a Python file of your own, whose configs have a learning_rate."""
    learning_rates: tuple[float, ...]
    """Learning rates of the grid, two or more."""
    where: tuple[str, ...] = ()
    """Search only configs with these settings, such as heads=20 head_dim=10."""
    metric: str = "accuracy"
    """Metric to compare by its mean over the seeds."""
    lowest: bool = False
    """Prefer the lowest mean, as for a loss."""

    def _source(self) -> "Source":
        from byheart.lab.search import Search
        from byheart.lab.sources import load
        from byheart.papers.experiments import check_metric, source

        searched = source(self.experiment, self.scale)
        origin = Search(searched, self.learning_rates, settings_in(self.where))
        load(origin)
        check_metric(searched, self.metric)
        return origin

    def result(self, run: "Run", progress: "Progress", part: "Part | None") -> "SearchResult":
        """Return the rates that were tried, with the best one marked."""
        from byheart.lab.search import tried

        rates = tried(run.rows, self.metric, lowest=self.lowest) if run.done else []
        return SearchResult(self, run, progress, part, rates)

    @property
    def command(self) -> list[str]:
        """Words of the command that have no flag, or a required one."""
        return ["byheart", "lab", "search", self.experiment, "--learning-rates", *flag_words(self.learning_rates)]


@dataclass(frozen=True)
class SearchResult(TrainingResult):
    """Learning rates of a run, with the best one marked."""

    command: LabSearch
    rates: "list[Tried]"

    def as_json(self) -> dict[str, Any]:
        """Return the state of the run, and all rates that were tried."""
        rates = {"metric": self.command.metric, "tried": self.rates}
        return {**state(self.run), "left": self.progress.left, **rates}

    def rows(self) -> Iterator[Block]:
        """Yield a table of the rates, and the progress of the run."""
        metric, rates = self.command.metric, self.rates
        if rates:
            names = [f">{name}" for name in (*rates[0].settings, "learning_rate", metric, "models")]
            yield Table(f"learning rates by {metric}", [*names, ""], [_cells(rate) for rate in rates])
        yield from super().rows()


def _cells(rate: "Tried") -> list[Cell]:
    remark = "best, at the end of the grid: try beyond" if rate.edge else "best" if rate.best else ""
    models = None if rate.measured is None else rate.measured.models
    values = map(setting, (*rate.settings.values(), rate.learning_rate))
    return [*values, mean(rate.measured), models, remark]

"""``byheart lab search``: which learning rate is best?"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from byheart.cli.lab_output import literal, mean, setting, state
from byheart.cli.lab_run import TrainingCommand, given
from byheart.cli.menu import about
from byheart.cli.options import Arg
from byheart.cli.result import console, number, print_json, table
from byheart.errors import BadInput

if TYPE_CHECKING:
    from byheart.lab.jobs import Part, Progress
    from byheart.lab.runs import Run
    from byheart.lab.search import Tried
    from byheart.lab.sources import Source

SEARCH = about(
    "Train configs of an experiment with each learning rate of a grid, and say which is the best.",
    "byheart lab search dana-2025-2 --scale short --where head_dim=10 --learning-rates 0.001 0.003 0.01 0.03",
)


def settings_in(where: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Names and values of a ``--where``.

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
    """The best learning rate of a grid, for configs of an experiment; all tries are kept in a run."""

    experiment: Annotated[str, Arg(metavar="NAME|FILE.py", positional=True)]
    """Name of an experiment (byheart lab list), or a Python file of your own, whose configs have a learning_rate."""
    learning_rates: tuple[float, ...]
    """The grid, two or more."""
    where: tuple[str, ...] = ()
    """Only configs with these settings, as heads=20 head_dim=10."""
    metric: str = "accuracy"
    """What is best; its mean over the seeds counts."""
    lowest: bool = False
    """The lowest is the best, as for a loss."""

    def _source(self) -> "Source":
        from byheart.lab.search import Search
        from byheart.lab.sources import load
        from byheart.papers.experiments import check_metric, source

        searched = source(self.experiment, self.scale)
        origin = Search(searched, self.learning_rates, settings_in(self.where))
        load(origin)
        check_metric(searched, self.metric)
        return origin

    def show(self, run: "Run", reached: "Progress", part: "Part | None") -> None:
        """Print the learning rates with the best one marked, then the progress of the run."""
        from byheart.lab.search import tried

        found = tried(run.rows, self.metric, lowest=self.lowest) if run.done else []
        if self.json:
            print_json({**state(run), "left": reached.left, "metric": self.metric, "tried": [asdict(t) for t in found]})
            return
        if found:
            console().print(self._shown(found))
        super().show(run, reached, part)

    def _shown(self, found: "list[Tried]") -> Any:
        names = [f">{name}" for name in literal(*found[0].settings)]
        rows = table(f"learning rates by {self.metric}", *names, ">learning_rate", f">{self.metric}", ">models", "")
        for one in found:
            told = "best, at the end of the grid: try beyond" if one.edge else "best" if one.best else ""
            counted = number(None if one.measured is None else one.measured.models)
            settings = literal(*map(setting, one.settings.values()))
            rows.add_row(*settings, setting(one.learning_rate), mean(one.measured), counted, told)
        return rows

    @property
    def command(self) -> list[str]:
        """The words of the command that have no flag, or one that has to be there."""
        return ["byheart", "lab", "search", self.experiment, "--learning-rates", *given(self.learning_rates)]

"""``byheart lab``: the menu, and ``byheart lab list``."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byheart.cli.lab_figures import CompareRuns, LabPlot
from byheart.cli.lab_results import SCALES, LabCrossing, LabMerge, LabShow, Scale, run_state
from byheart.cli.lab_training import LabCapacity, LabRun, LabSave, LabSearch
from byheart.cli.menu import Menu, menu_of
from byheart.cli.options import Json, Positional
from byheart.cli.result import Block, Cell, Result, Table, dim, number

if TYPE_CHECKING:  # torch is slow to import
    from byheart.papers.experiments import Timing

TIMES: "dict[str, tuple[str, Scale]]" = {
    "h200_paper_seconds": ("H200", "paper"),
    "two_cores_paper_seconds": ("2 cores", "paper"),
    "two_cores_short_seconds": ("2 cores", "short"),
    "two_cores_smoke_seconds": ("2 cores", "smoke"),
}
"""Columns of seconds: machine, as :mod:`byheart.papers.experiments` calls it, and scale."""
COUNTS = ("done", "failed", "models")
"""Columns of numbers in the table of runs."""
TITLE = "experiments: models at each scale, how much of the paper's comes with Byheart, seconds"
NOTE = """seconds: wall time on one H200; processor time of one thread on a CPU of 2 cores; ≈ marks an estimate from the
model-steps per second of a part, as if no model stopped early; – where nothing was measured"""


@dataclass(frozen=True)
class ListResult(Result):
    """Experiments, measurements of several of them together, and the runs in a folder."""

    command: "LabList"
    experiments: list[dict[str, Any]]
    together: "list[Timing]"
    runs: list[dict[str, Any]]

    def rows(self) -> Iterator[Block]:
        """Yield a table of experiments with notes, and a table of runs."""
        names = [*(f">{scale}" for scale in SCALES), ">shipped", ">seeds"]
        names += [f">{machine}, {scale}" for machine, scale in TIMES.values()]
        yield Table(TITLE, ["experiment", *names], [_cells(experiment) for experiment in self.experiments])
        yield dim(NOTE)
        for experiment in self.experiments:
            if experiment["absent"]:
                yield dim(f"{experiment['experiment']} is shipped without {' and without '.join(experiment['absent'])}")
        for timing in self.together:
            title = f"{timing.experiment}, all {number(timing.models)} models at scale {timing.scale} together"
            yield dim(f"{title}: {number(timing.seconds)} s on an {timing.machine} ({timing.command})")
        yield self._run_table() if self.runs else dim(f"no runs in {self.command.folder}")

    def _run_table(self) -> Table:
        keys = ("experiment", "scale", "done", "failed", "models", "state", "began")
        rows = [[Path(run["run"]).name, *("" if run[k] is None else run[k] for k in keys)] for run in self.runs]
        return Table(f"runs in {self.command.folder}", ["run", *(f">{k}" if k in COUNTS else k for k in keys)], rows)


@dataclass(frozen=True)
class LabList:
    """List the experiments, how much of each is shipped, how long they take, and the runs in a folder."""

    folder: Positional[Path] = Path("runs")
    """Folder whose subfolders are runs."""
    json: Json = False

    def run(self) -> ListResult:
        """List experiments and runs."""
        from byheart.lab.runs import runs_in
        from byheart.papers.experiments import EXPERIMENTS, timings

        together = [timing for timing in timings() if timing.experiment not in EXPERIMENTS]
        return ListResult(self, _experiments(), together, [run_state(run) for run in runs_in(self.folder)])


def _experiments() -> list[dict[str, Any]]:
    """Return, for each experiment, models by scale, shipped models and seeds, and seconds, measured or estimated."""
    from byheart.papers import results
    from byheart.papers.experiments import EXPERIMENTS, seconds

    experiments: list[dict[str, Any]] = []
    for name, make in EXPERIMENTS.items():
        configs = {scale: make(scale).configs for scale in SCALES}
        models: dict[str, int] = {scale: len(members) for scale, members in configs.items()}
        presence = results.presence(name)
        shipped = {"shipped": presence.models, "seeds": presence.seeds, "seeds_planned": presence.planned_seeds}
        times = {column: seconds(name, scale, machine, configs[scale]) for column, (machine, scale) in TIMES.items()}
        values = {column: time.value if time else None for column, time in times.items()}
        estimated = [column for column, time in times.items() if time and time.estimated]
        absent = list(presence.absent)
        shares = {**models, **shipped, "absent": absent}
        experiments.append({"experiment": name, **shares, **values, "estimated": estimated})
    return experiments


def _cells(experiment: dict[str, Any]) -> list[Cell]:
    models = [experiment[scale] for scale in SCALES]
    shipped = _share(experiment["shipped"], experiment["paper"])
    seeds = _share(experiment["seeds"], experiment["seeds_planned"])
    return [experiment["experiment"], *models, shipped, seeds, *(_time(experiment, column) for column in TIMES)]


def _share(shipped: int, planned: int) -> str:
    """Return how many of the planned models or seeds are shipped.

    >>> _share(64, 192), _share(12, 12), _share(0, 80)
    ('64 of 192', 'all 12', '–')
    """
    if not shipped:
        return "–"
    return f"all {number(planned)}" if shipped == planned else f"{number(shipped)} of {number(planned)}"


def _time(experiment: dict[str, Any], column: str) -> str:
    """Return seconds; an estimate has two digits and a mark."""
    if column not in experiment["estimated"]:
        return number(experiment[column])
    return f"≈ {number(float(f'{experiment[column]:.2g}'))}"


def menu() -> Menu:
    """Return the commands of the lab."""
    return menu_of(
        {
            "run": (
                LabRun,
                "byheart lab run dana-2025-1 --scale short -o runs/dana",
                "byheart lab run dana-2025-1 --scale short -o runs/dana --resume # after any interruption",
            ),
            "list": (LabList, "byheart lab list runs"),
            "show": (LabShow, "byheart lab show runs/dana --csv dana.csv"),
            "compare": (
                CompareRuns,
                "byheart lab compare runs/dana",
                "byheart lab compare runs/dana runs/dana-paper",
                "byheart lab compare --shipped --paper mahdavi-2024",
            ),
            "merge": (
                LabMerge,
                "byheart lab merge runs/dana-2025-1-paper-*-of-4 -o runs/dana",
                "byheart lab run dana-2025-1 --scale paper -o runs/dana --resume # then the missing models",
            ),
            "crossing": (
                LabCrossing,
                "byheart lab crossing --shipped mahdavi-2024-classification-heads-fixed --along heads "
                "--metric best_accuracy --at-least 0.95 --rising",
            ),
            "search": (
                LabSearch,
                "byheart lab search dana-2025-2 --scale short --where head_dim=10 "
                "--learning-rates 0.001 0.003 0.01 0.03",
            ),
            "save": (
                LabSave,
                "byheart lab save dana-2025-2 --scale short --where head_dim=9 -o net",
                "byheart certify net --task net/task.npz --count",
            ),
            "capacity": (
                LabCapacity,
                "byheart lab capacity --parameters 1000 2000 4000 --steps 2000 -o runs/ladder --plot ladder.png",
            ),
            "plot": (
                LabPlot,
                "byheart lab plot runs/dana-2025-1-paper",
                "byheart lab plot --shipped all # what comes with Byheart",
            ),
        }
    )

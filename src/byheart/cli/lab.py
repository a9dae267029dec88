"""``byheart lab run | list | show | compare | merge | crossing | search | save | capacity | plot``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byheart.cli.lab_capacity import CAPACITY, LabCapacity
from byheart.cli.lab_crossing import CROSSING, LabCrossing
from byheart.cli.lab_list import LIST, LabList
from byheart.cli.lab_merge import MERGE, LabMerge
from byheart.cli.lab_output import failures, mean, report_half_lines, setting, state
from byheart.cli.lab_plot import PLOT, LabPlot
from byheart.cli.lab_record import Paper, ShippedComparison, compare_shipped
from byheart.cli.lab_run import RUN, RunExperiment
from byheart.cli.lab_save import SAVE, LabSave
from byheart.cli.lab_search import SEARCH, LabSearch
from byheart.cli.menu import Entry, Menu, about
from byheart.cli.options import Json, Positional
from byheart.cli.result import Block, Cell, Result, Table, dim, number
from byheart.errors import BadInput
from byheart.files.writing import check_apart

if TYPE_CHECKING:  # torch is slow to import
    from byheart.lab.rows import Difference, SummaryPoint
    from byheart.lab.runs import Run


@dataclass(frozen=True)
class ShowResult(Result):
    """The summarized results of a run, with the chosen metrics."""

    command: "ShowRun"
    run: "Run"
    points: "Sequence[SummaryPoint]"
    metrics: list[str]

    def as_json(self) -> dict[str, Any]:
        """Return the state of the run, its points, and its failures."""
        failed = [{"key": row.key, "config": row.config, "error": row.error} for row in self.run.failures]
        return {**state(self.run), "points": self.points, "failures": failed}

    def rows(self) -> Iterator[Block]:
        """Yield a table of all points, the settings that do not vary, and the failures."""
        from byheart.lab.rows import constants

        run, values = self.run, state(self.run)
        title = f"{run.folder}: {run.name}, {values['scale']}, {values['state']}"
        title += f", {number(values['done'])} of {number(values['models'])} models done"
        names = [*self.points[0].settings] if self.points else []
        rows = [self._cells(point) for point in self.points]
        yield Table(title, [f">{name}" for name in (*names, "models", *self.metrics)], rows)
        fixed = ", ".join(f"{name} {setting(value)}" for name, value in constants(run.rows).items())
        if fixed:
            yield dim(f"everywhere: {fixed}")
        yield from failures(run)
        if self.command.csv is not None:
            yield dim(f"wrote {self.command.csv}")

    def _cells(self, point: "SummaryPoint") -> list[Cell]:
        means = (mean(point.metrics.get(name)) for name in self.metrics)
        return [*map(setting, point.settings.values()), point.models, *means]

    @property
    def is_true(self) -> bool:
        """False if models failed."""
        return not self.run.failed


@dataclass(frozen=True)
class ShowRun:
    """A run's results: means over repetitions (models that differ in their seed only), and failures."""

    folder: Positional[Path]
    """Folder of a run."""
    metric: tuple[str, ...] = ()
    """Metrics to show (default: all)."""
    csv: Path | None = None
    """CSV file into which all rows, not averaged, are also written."""
    json: Json = False

    def run(self) -> ShowResult:
        """Read and summarize the run."""
        from byheart.lab.rows import points
        from byheart.lab.runs import OWN, Run

        run = Run.open(self.folder)
        report_half_lines(self.folder)
        check_apart(self.csv, *(self.folder / name for name in OWN))
        summary = points(run.rows)
        metrics = self._chosen_metrics(summary)
        if self.csv is not None:
            run.write_csv(self.csv)
        chosen = [
            replace(point, metrics={name: value for name, value in point.metrics.items() if name in metrics})
            for point in summary
        ]
        return ShowResult(self, run, chosen, metrics)

    def _chosen_metrics(self, points: "Sequence[SummaryPoint]") -> list[str]:
        """Return the metrics to show. Raise BadInput if the run does not have one of them."""
        names = list(dict.fromkeys(name for point in points for name in point.metrics))
        for name in self.metric:
            if name not in names:
                expected = f"expected {', '.join(names)}" if names else "the run has no results yet"
                raise BadInput(f"{self.folder}: no metric {name!r}; {expected}")
        return [*self.metric] or names


@dataclass(frozen=True)
class CompareRunsResult(Result):
    """Runs side by side: for each choice of settings, one point per run, or None."""

    command: "Compare"
    runs: "list[Run]"
    metric: str
    points: "Sequence[Sequence[SummaryPoint | None]]"
    differences: "list[Difference]"

    def as_json(self) -> dict[str, Any]:
        """Return the metric, the states of the runs, its values point by point, and the differences."""
        points = [
            {"settings": _settings(row), "runs": [point and point.metrics.get(self.metric) for point in row]}
            for row in self.points
        ]
        states = [state(run) for run in self.runs]
        return {"metric": self.metric, "runs": states, "points": points, "differences": self.differences}

    def rows(self) -> Iterator[Block]:
        """Yield a table of all points, and each run's differences from the first one."""
        first, *others = self.command.folders
        names = [*_settings(self.points[0])] if self.points else []
        rows = [
            (
                *map(setting, _settings(row).values()),
                *(mean(point.metrics.get(self.metric) if point else None) for point in row),
            )
            for row in self.points
        ]
        columns = [f">{name}" for name in (*names, first, *others)]
        yield Table(f"{self.metric}, mean ± standard deviation", columns, rows)
        for folder, value in zip(others, self.differences, strict=True):
            apart = f"mean {value.mean:+.4g}, largest {value.largest:+.4g}" if value.points else "nothing to compare"
            yield f"{folder} − {first}: {apart} ({value.points} points in both)"


def _settings(points: "Sequence[SummaryPoint | None]") -> dict[str, Any]:
    return next(point.settings for point in points if point is not None)


@dataclass(frozen=True)
class Compare:
    """Runs side by side, point by point, and their differences from the first one."""

    folders: Positional[tuple[Path, ...]] = ()
    """Folders of two or more runs."""
    shipped: bool = False
    """Instead of folders: compare the results that come with Byheart with what their papers published."""
    paper: Paper | None = None
    """Compare the results of this paper only, with --shipped."""
    metric: str | None = None
    """Metric to compare (default: accuracy if all runs have it)."""
    json: Json = False

    def run(self) -> CompareRunsResult | ShippedComparison:
        """Read the runs and match their points."""
        from byheart.lab.rows import compare, difference
        from byheart.lab.runs import Run

        self._check()
        if self.shipped:
            return compare_shipped(self.paper)
        runs = [Run.open(folder) for folder in self.folders]
        report_half_lines(*self.folders)
        rows = [[row for row in run.rows if row.status == "done"] for run in runs]
        metric, table = compare(rows, self.metric)
        if not any(point is not None and metric in point.metrics for points in table for point in points):
            raise BadInput(f"no run has a metric {metric!r}; byheart lab show DIR lists the metrics of a run")
        differences = [difference(table, metric, 0, other) for other in range(1, len(runs))]
        return CompareRunsResult(self, runs, metric, table, differences)

    def _check(self) -> None:
        """Raise BadInput if options do not go together."""
        if self.shipped and (self.folders or self.metric):
            raise BadInput("--shipped takes neither folders nor --metric; expected one or the other")
        if self.paper is not None and not self.shipped:
            raise BadInput("--paper chooses among the results that come with Byheart; expected --shipped before it")
        if len(self.folders) < 2 and not self.shipped:
            raise BadInput(f"{len(self.folders)} folders given; expected two or more runs, or --shipped")


_SHOW = about("A run's results, means over repetitions, and failures.", "byheart lab show runs/dana --csv dana.csv")
_COMPARE = about(
    "Runs side by side, point by point; or the results that come with Byheart beside the published ones.",
    "byheart lab compare runs/dana runs/dana-paper",
    "byheart lab compare --shipped --paper mahdavi-2024",
)


def menu() -> Menu:
    """Return the commands of the lab."""
    return {
        "run": Entry(RUN, lambda: RunExperiment),
        "list": Entry(LIST, lambda: LabList),
        "show": Entry(_SHOW, lambda: ShowRun),
        "compare": Entry(_COMPARE, lambda: Compare),
        "merge": Entry(MERGE, lambda: LabMerge),
        "crossing": Entry(CROSSING, lambda: LabCrossing),
        "search": Entry(SEARCH, lambda: LabSearch),
        "save": Entry(SAVE, lambda: LabSave),
        "capacity": Entry(CAPACITY, lambda: LabCapacity),
        "plot": Entry(PLOT, lambda: LabPlot),
    }

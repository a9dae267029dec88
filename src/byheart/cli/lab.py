"""``byheart lab run | list | show | compare | merge | crossing | search | save | capacity | plot``."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byheart.cli.lab_capacity import CAPACITY, LabCapacity
from byheart.cli.lab_crossing import CROSSING, LabCrossing
from byheart.cli.lab_list import LIST, LabList
from byheart.cli.lab_merge import MERGE, LabMerge
from byheart.cli.lab_output import literal, mean, print_failures, say_half_lines, setting, state
from byheart.cli.lab_plot import PLOT, LabPlot
from byheart.cli.lab_record import Paper, compare_shipped
from byheart.cli.lab_run import RUN, RunExperiment
from byheart.cli.lab_save import SAVE, LabSave
from byheart.cli.lab_search import SEARCH, LabSearch
from byheart.cli.menu import Entry, Menu, about
from byheart.cli.options import Json, Positional
from byheart.cli.output import DONE, NOT_TRUE
from byheart.cli.result import console, number, print_json, table
from byheart.errors import BadInput
from byheart.files.writing import check_apart

if TYPE_CHECKING:
    from byheart.lab.runs import Run
    from byheart.lab.summary import Difference, SummaryPoint


@dataclass(frozen=True)
class ShowRun:
    """A run's results: means over repetitions (models that differ in their seed only), and failures."""

    folder: Positional[Path]
    """Folder of a run."""
    metric: tuple[str, ...] = ()
    """Metrics to show; all if not given."""
    csv: Path | None = None
    """Also write all rows, not averaged, into this CSV file."""
    json: Json = False

    def run(self) -> int:
        """Read and print; exit code 1 if models failed."""
        from byheart.lab.runs import OWN, Run
        from byheart.lab.summary import points

        run = Run.open(self.folder)
        say_half_lines(self.folder)
        check_apart(self.csv, *(self.folder / name for name in OWN))
        found = points(run.rows)
        metrics = _chosen(found, self.metric, self.folder)
        if self.csv is not None:
            run.write_csv(self.csv)
        failures = [row for row in run.rows if row.status == "failed"]
        if self.json:
            listed = [{**asdict(point), "metrics": _only(point, metrics)} for point in found]
            failed = [{"key": row.key, "config": row.config, "error": row.error} for row in failures]
            print_json({**state(run), "points": listed, "failures": failed})
        else:
            self._print(run, found, metrics)
        return NOT_TRUE if failures else DONE

    def _print(self, run: "Run", found: "Sequence[SummaryPoint]", metrics: list[str]) -> None:
        from byheart.lab.summary import constants

        known, out = state(run), console()
        title = f"{run.folder}: {run.name}, {known['scale']}, {known['state']}"
        title += f", {number(known['done'])} of {number(known['models'])} models done"
        names = [*found[0].settings] if found else []
        settings, measures = ([f">{name}" for name in literal(*some)] for some in (names, metrics))
        rows = table(title, *settings, ">models", *measures)
        for point in found:
            measured = (mean(point.metrics.get(name)) for name in metrics)
            rows.add_row(*literal(*map(setting, point.settings.values())), number(point.models), *measured)
        out.print(rows)
        fixed = ", ".join(f"{name} {setting(value)}" for name, value in constants(run.rows).items())
        if fixed:
            out.print(f"everywhere: {fixed}", style="dim", markup=False)
        print_failures(run)
        if self.csv is not None:
            out.print(f"wrote {self.csv}", style="dim", markup=False)


@dataclass(frozen=True)
class Compare:
    """Runs side by side, point by point, and how far the others are from the first."""

    folders: Positional[tuple[Path, ...]] = ()
    """Folders of two or more runs."""
    shipped: bool = False
    """Instead of folders: the results that come with Byheart, against what their papers published."""
    paper: Paper | None = None
    """With --shipped: the results of this paper only."""
    metric: str | None = None
    """What to compare; accuracy if all runs have it."""
    json: Json = False

    def run(self) -> int:
        """Read, match and print."""
        from byheart.lab.runs import Run
        from byheart.lab.summary import compare, difference

        self._check()
        if self.shipped:
            return compare_shipped(self.paper, as_json=self.json)
        runs = [Run.open(folder) for folder in self.folders]
        say_half_lines(*self.folders)
        rows = [[row for row in run.rows if row.status == "done"] for run in runs]
        metric, found = compare(rows, self.metric)
        if not any(point is not None and metric in point.metrics for points in found for point in points):
            raise BadInput(f"no run has a metric {metric!r}; byheart lab show DIR shows what there is")
        differences = [difference(found, metric, 0, other) for other in range(1, len(runs))]
        if self.json:
            listed = [
                {"settings": _settings(points), "runs": [_measured(point, metric) for point in points]}
                for points in found
            ]
            states = [state(run) for run in runs]
            told = [asdict(value) for value in differences]
            print_json({"metric": metric, "runs": states, "points": listed, "differences": told})
        else:
            self._print(metric, found, differences)
        return DONE

    def _check(self) -> None:
        """BadInput if options do not go together."""
        if self.shipped and (self.folders or self.metric):
            raise BadInput("--shipped takes neither folders nor --metric; expected one or the other")
        if self.paper is not None and not self.shipped:
            raise BadInput("--paper chooses among what comes with Byheart; expected --shipped before it")
        if len(self.folders) < 2 and not self.shipped:
            raise BadInput(f"{len(self.folders)} folders given; expected two or more runs, or --shipped")

    def _print(
        self, metric: str, found: "Sequence[Sequence[SummaryPoint | None]]", differences: "Sequence[Difference]"
    ) -> None:
        out = console()
        names = [*_settings(found[0])] if found else []
        columns = (f">{name}" for name in literal(*names, *map(str, self.folders)))
        shown = table(f"{metric}, mean ± standard deviation", *columns)
        for points in found:
            means = (mean(point.metrics.get(metric) if point else None) for point in points)
            shown.add_row(*literal(*map(setting, _settings(points).values())), *means)
        out.print(shown)
        for folder, value in zip(self.folders[1:], differences, strict=True):
            apart = f"mean {value.mean:+.4g}, largest {value.largest:+.4g}" if value.points else "nothing to compare"
            out.print(f"{folder} − {self.folders[0]}: {apart} ({value.points} points in both)", markup=False)


def _settings(points: "Sequence[SummaryPoint | None]") -> dict[str, Any]:
    return next(point.settings for point in points if point is not None)


def _measured(point: "SummaryPoint | None", metric: str) -> dict[str, Any] | None:
    return None if point is None or metric not in point.metrics else asdict(point.metrics[metric])


def _only(point: "SummaryPoint", metrics: list[str]) -> dict[str, Any]:
    return {name: asdict(found) for name, found in point.metrics.items() if name in metrics}


def _chosen(found: "Sequence[SummaryPoint]", wanted: tuple[str, ...], folder: Path) -> list[str]:
    names = list(dict.fromkeys(name for point in found for name in point.metrics))
    for name in wanted:
        if name not in names:
            raise BadInput(
                f"{folder}: no metric {name!r}; expected {', '.join(names) or 'results, which there are none of'}"
            )
    return [*wanted] or names


_SHOW = about("A run's results, means over repetitions, and failures.", "byheart lab show runs/dana --csv dana.csv")
_COMPARE = about(
    "Runs side by side, point by point; or the results that come with Byheart beside what was published.",
    "byheart lab compare runs/dana runs/dana-paper",
    "byheart lab compare --shipped --paper mahdavi-2024",
)


def menu() -> Menu:
    """The commands of the lab."""
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

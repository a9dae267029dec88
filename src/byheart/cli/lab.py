"""``byheart lab run | list | show | compare | capacity | plot``."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg, subcommand

from byheart.cli.lab_capacity import CAPACITY, LabCapacity, check_device
from byheart.cli.lab_plot import PLOT, LabPlot
from byheart.cli.lab_record import compare_shipped
from byheart.cli.output import DONE, NOT_TRUE, Json, console, number, print_json, steps, table, with_example
from byheart.errors import BadInput
from byheart.files.writing import check_apart

if TYPE_CHECKING:
    from byheart.lab.jobs import Executor, Progress
    from byheart.lab.runs import Row, Run
    from byheart.lab.sources import Source
    from byheart.lab.summary import Measured, Point
    from byheart.progress import Report

Scale = Literal["smoke", "short", "paper"]
SECONDS_A_LINE = 30.0  # of progress, where nobody looks at a terminal
MOST_FAILURES_SHOWN = 10


@dataclass(frozen=True)
class RunExperiment:
    """Run an experiment: train all its models, and keep every result in a folder as soon as it is there."""

    experiment: Annotated[Positional[str], arg(metavar="NAME|FILE.py")]
    """Name of an experiment (byheart lab list), or a Python file of your own: it defines CONFIGS, a list of configs."""
    scale: Scale = "smoke"
    """smoke: a few steps, to see that it runs. short: minutes, the shape of the results. paper: as it was published."""
    out: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Folder of the run; runs/NAME-SCALE if not given."""
    resume: bool = False
    """Continue the run in the folder: what is done stays, what failed is tried again. Without one there, begin."""
    executor: Literal["local", "processes", "ray"] = "local"
    """local: here. processes: one a CPU core. ray: a Ray cluster, that at RAY_ADDRESS or else one on this machine."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where models are trained."""
    jobs: int | None = None
    """So many jobs at a time, for processes and ray; as many as there are cores (or GPUs) if not given."""
    json: Json = False

    def run(self) -> int:
        """Run it; exit code 1 if models failed."""
        from byheart.lab.jobs import execute
        from byheart.lab.runs import Run
        from byheart.lab.sources import load, source

        origin = source(self.experiment, self.scale)
        experiment = load(origin)
        folder = self.out or Path("runs") / f"{experiment.name}-{experiment.scale}"
        begin = Run.resume if self.resume else Run.create
        with self._executor(origin) as executor, begin(folder, experiment, origin.text) as run:
            before = run.done
            try:
                with _progress(experiment.name, quiet=self.json) as report:
                    reached = execute(run, experiment, executor, report)
            except KeyboardInterrupt:
                sys.stderr.write(f"stopped with {run.done} of {len(run.configs)} models done; {self._again(folder)}\n")
                raise
        self._say(run, reached, before)
        return NOT_TRUE if reached.failed else DONE

    def _executor(self, source: "Source") -> "Executor":
        from byheart.lab.jobs import Local
        from byheart.lab.on_ray import Ray
        from byheart.lab.processes import Processes

        if self.jobs is not None and self.jobs < 1:
            raise BadInput(f"--jobs is {self.jobs}; expected at least 1")
        if self.executor == "ray":
            return Ray(source, self.device, self.jobs)
        check_device(self.device)
        if self.executor == "processes":
            return Processes(source, self.device, self.jobs)
        if self.jobs is not None:
            raise BadInput("--jobs is for --executor processes or ray; omit it")
        return Local(source, self.device)

    def _say(self, run: "Run", reached: "Progress", before: int) -> None:
        rates = {"models_per_second": reached.models_per_second, "steps_per_second": reached.steps_per_second}
        if self.json:
            print_json({**_state(run), "done_before": before, "seconds": reached.seconds, **rates})
            return
        earlier = f" ({number(before)} of them earlier)" if before else ""
        rate = f"{rates['models_per_second']:.3g} models/s" if reached.now else "nothing was left to do"
        if reached.steps:
            rate += f", {number(round(rates['steps_per_second']))} steps/s"
        done = f"{number(run.done)} of {number(reached.models)} models done{earlier}"
        out = console()
        out.print(f"{run.name}, {run.about['scale']}: {done}, {reached.seconds:.1f} s, {rate}", markup=False)
        _print_failures(run)
        out.print(f"saved in {run.folder}; see it with:  byheart lab show {run.folder}", style="dim", markup=False)
        if reached.failed:
            out.print(f"for the failed ones, {self._again(run.folder)}", style="dim", markup=False)

    def _again(self, folder: Path) -> str:
        command = f"byheart lab run {self.experiment} --scale {self.scale} --out {folder} --resume"
        return f"go on with:  {command}"


@dataclass(frozen=True)
class List:
    """The experiments that there are, and the runs in a folder."""

    folder: Positional[Path] = Path("runs")
    """Folder whose subfolders are runs."""
    json: Json = False

    def run(self) -> int:
        """List both."""
        from byheart.lab.experiments import EXPERIMENTS
        from byheart.lab.runs import runs_in

        scales: tuple[Scale, ...] = ("smoke", "short", "paper")
        models = {name: [len(make(scale).configs) for scale in scales] for name, make in EXPERIMENTS.items()}
        runs = runs_in(self.folder)
        if self.json:
            known = [{"experiment": name, **dict(zip(scales, found, strict=True))} for name, found in models.items()]
            print_json({"experiments": known, "runs": [_state(run) for run in runs]})
            return DONE
        out = console()
        rows = table("experiments: models at each scale", "experiment", *(f">{scale}" for scale in scales))
        for name, found in models.items():
            rows.add_row(name, *(number(count) for count in found))
        out.print(rows)
        if not runs:
            out.print(f"no runs in {self.folder}", style="dim", markup=False)
            return DONE
        columns = ("run", "experiment", "scale", ">done", ">failed", ">models", "state", "began")
        rows = table(f"runs in {self.folder}", *columns)
        for run in runs:
            state = _state(run)
            counts = (number(state[name]) for name in ("done", "failed", "models"))
            told = _literal(run.folder.name, run.name, state["scale"])
            rows.add_row(*told, *counts, state["state"], *_literal(state["began"] or ""))
        out.print(rows)
        return DONE


@dataclass(frozen=True)
class Show:
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
        check_apart(self.csv, *(self.folder / name for name in OWN))
        found = points(run.rows)
        metrics = _chosen(found, self.metric, self.folder)
        if self.csv is not None:
            run.write_csv(self.csv)
        failures = [row for row in run.rows if row.status == "failed"]
        if self.json:
            listed = [{**asdict(point), "metrics": _only(point, metrics)} for point in found]
            failed = [{"key": row.key, "config": row.config, "error": row.error} for row in failures]
            print_json({**_state(run), "points": listed, "failures": failed})
        else:
            self._print(run, found, metrics)
        return NOT_TRUE if failures else DONE

    def _print(self, run: "Run", found: "Sequence[Point]", metrics: list[str]) -> None:
        from byheart.lab.summary import constants

        state, out = _state(run), console()
        title = f"{run.folder}: {run.name}, {state['scale']}, {state['state']}"
        title += f", {number(state['done'])} of {number(state['models'])} models done"
        names = [*found[0].settings] if found else []
        settings, measures = ([f">{name}" for name in _literal(*some)] for some in (names, metrics))
        rows = table(title, *settings, ">models", *measures)
        for point in found:
            measured = (_mean(point.metrics.get(name)) for name in metrics)
            rows.add_row(*_literal(*map(_setting, point.settings.values())), number(point.models), *measured)
        out.print(rows)
        fixed = ", ".join(f"{name} {_setting(value)}" for name, value in constants(run.rows).items())
        if fixed:
            out.print(f"everywhere: {fixed}", style="dim", markup=False)
        _print_failures(run)
        if self.csv is not None:
            out.print(f"wrote {self.csv}", style="dim", markup=False)


@dataclass(frozen=True)
class Compare:
    """Runs side by side, point by point, and how far the others are from the first."""

    folders: Positional[tuple[Path, ...]] = ()
    """Folders of two or more runs."""
    shipped: bool = False
    """Instead of folders: the results that come with Byheart, against the numbers that their paper published."""
    metric: str | None = None
    """What to compare; accuracy if all runs have it."""
    json: Json = False

    def run(self) -> int:
        """Read, match and print."""
        from byheart.lab.runs import Run
        from byheart.lab.summary import compare, difference

        if self.shipped:
            if self.folders or self.metric:
                raise BadInput("--shipped takes neither folders nor --metric; expected one or the other")
            return compare_shipped(as_json=self.json)
        if len(self.folders) < 2:
            raise BadInput(f"{len(self.folders)} folders given; expected two or more runs, or --shipped")
        runs = [Run.open(folder) for folder in self.folders]
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
            states = [_state(run) for run in runs]
            told = [asdict(value) for value in differences]
            print_json({"metric": metric, "runs": states, "points": listed, "differences": told})
            return DONE
        out = console()
        names = [*_settings(found[0])] if found else []
        columns = (f">{name}" for name in _literal(*names, *map(str, self.folders)))
        shown = table(f"{metric}, mean ± standard deviation", *columns)
        for points in found:
            means = (_mean(point.metrics.get(metric) if point else None) for point in points)
            shown.add_row(*_literal(*map(_setting, _settings(points).values())), *means)
        out.print(shown)
        for folder, value in zip(self.folders[1:], differences, strict=True):
            apart = f"mean {value.mean:+.4g}, largest {value.largest:+.4g}" if value.points else "nothing to compare"
            out.print(f"{folder} − {self.folders[0]}: {apart} ({value.points} points in both)", markup=False)
        return DONE


def _state(run: "Run") -> dict[str, Any]:
    state = "running" if run.running else "complete" if run.done == len(run.configs) else "stopped"
    sessions = run.about["sessions"]
    return {
        "run": str(run.folder),
        "experiment": run.name,
        "scale": run.about["scale"],
        "models": len(run.configs),
        "done": run.done,
        "failed": run.failed,
        "state": state,
        "began": sessions[0]["started"] if sessions else None,
    }


def _print_failures(run: "Run") -> None:
    failures = [row for row in run.rows if row.status == "failed"]
    if not failures:
        return
    rows = table(f"failed: {number(len(failures))} models", "key", "config", "error")
    for row in failures[:MOST_FAILURES_SHOWN]:
        rows.add_row(*_literal(row.key, _words(row), row.error or ""))
    out = console()
    out.print(rows)
    if len(failures) > MOST_FAILURES_SHOWN:
        out.print(f"… and {number(len(failures) - MOST_FAILURES_SHOWN)} more; --csv FILE writes them all", style="dim")


def _literal(*texts: str) -> list[str]:
    """Cells that say what a run's folder says, which may be anything: nothing in them is markup."""
    from rich.markup import escape

    return [escape(text) for text in texts]


def _words(row: "Row") -> str:
    return ", ".join(f"{name} {_setting(value)}" for name, value in row.config.items())


def _setting(value: object) -> str:
    """A setting as it is written on the command line: exact, without thousands' separators."""
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _settings(points: "Sequence[Point | None]") -> dict[str, Any]:
    return next(point.settings for point in points if point is not None)


def _mean(found: "Measured | None") -> str:
    if found is None:
        return "–"
    mean = f"{found.mean:.4g}" if abs(found.mean) < 1000 else f"{found.mean:,.0f}"
    return f"{mean} ± {found.deviation:.2g}" if found.deviation else mean


def _measured(point: "Point | None", metric: str) -> dict[str, Any] | None:
    return None if point is None or metric not in point.metrics else asdict(point.metrics[metric])


def _only(point: "Point", metrics: list[str]) -> dict[str, Any]:
    return {name: asdict(found) for name, found in point.metrics.items() if name in metrics}


def _chosen(found: "Sequence[Point]", wanted: tuple[str, ...], folder: Path) -> list[str]:
    names = list(dict.fromkeys(name for point in found for name in point.metrics))
    for name in wanted:
        if name not in names:
            raise BadInput(
                f"{folder}: no metric {name!r}; expected {', '.join(names) or 'results, which there are none of'}"
            )
    return [*wanted] or names


@contextmanager
def _progress(title: str, *, quiet: bool) -> "Iterator[Report | None]":
    """A bar; a line now and then where there is no terminal."""
    with steps(title, quiet=quiet) as bar:
        yield bar if bar is not None or quiet else _Lines(title)


class _Lines:
    """Progress as lines on stderr, not too many of them."""

    def __init__(self, title: str) -> None:
        self.title, self.said = title, time.monotonic()

    def __call__(self, done: int, total: int, note: str = "", /) -> None:
        if time.monotonic() - self.said >= SECONDS_A_LINE:
            self.said = time.monotonic()
            sys.stderr.write(f"{self.title}: {number(done)} of {number(total)} models{f', {note}' if note else ''}\n")


_RUN = with_example(
    "Run an experiment: train all its models, and keep every result in a folder as soon as it is there.",
    "byheart lab run dana-2025-1 --scale short -o runs/dana    and, after whatever happened, once more with --resume",
)
_LIST = with_example("The experiments that there are, and the runs in a folder.", "byheart lab list runs")
_SHOW = with_example(
    "A run's results, means over repetitions, and failures.", "byheart lab show runs/dana --csv dana.csv"
)
_COMPARE = with_example(
    "Runs side by side, point by point; or the results that come with Byheart beside the published numbers.",
    "byheart lab compare runs/dana runs/dana-paper --metric accuracy    or:  byheart lab compare --shipped",
)


@dataclass(frozen=True)
class LabCommand:
    """Train small Transformers by the thousand: run, list, show, compare and draw experiments; measure capacity."""

    command: Annotated[
        Annotated[RunExperiment, subcommand("run", description=_RUN)]
        | Annotated[List, subcommand("list", description=_LIST)]
        | Annotated[Show, subcommand("show", description=_SHOW)]
        | Annotated[Compare, subcommand("compare", description=_COMPARE)]
        | Annotated[LabCapacity, subcommand("capacity", description=CAPACITY)]
        | Annotated[LabPlot, subcommand("plot", description=PLOT)],
        arg(name=""),
    ]

    def run(self) -> int:
        """Run the chosen command."""
        return self.command.run()

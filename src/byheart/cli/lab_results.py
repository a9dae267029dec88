"""``byheart lab show | merge | crossing``: the results of runs."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from byheart.cli.options import Arg, Json, Positional
from byheart.cli.result import Block, Cell, Result, Table, dim, number
from byheart.errors import BadInput
from byheart.files.writing import check_apart

if TYPE_CHECKING:  # torch is slow to import
    from byheart.lab.crossing import CrossingEstimate
    from byheart.lab.rows import MetricSummary, ResultRow, SummaryPoint
    from byheart.lab.runs import Run

Scale = Literal["smoke", "short", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
MAX_FAILURES_SHOWN = 10
"""Largest number of failed models in a table; the rest are only counted."""


def run_state(run: "Run") -> dict[str, Any]:
    """Return what a run is about and how far it is, as ``--json`` prints it."""
    sessions = run.about["sessions"]
    return {
        "run": str(run.folder),
        "experiment": run.name,
        "scale": run.about["scale"],
        "models": len(run.configs),
        "done": run.done,
        "failed": run.failed,
        "state": "running" if run.running else "complete" if run.done == len(run.configs) else "stopped",
        "began": sessions[0]["started"] if sessions else None,
    }


def report_half_lines(*folders: Path) -> None:
    """Write a line to stderr for every run whose results end in half a line, which is ignored."""
    from byheart.lab.rows import has_half_a_line
    from byheart.lab.runs import RESULTS

    for folder in (folder for folder in folders if has_half_a_line(folder / RESULTS)):
        cause = "the process that wrote it was stopped, or is still writing"
        sys.stderr.write(f"{folder / RESULTS}: half a line at the end is left out: {cause}\n")


def failures(run: "Run") -> Iterator[Block]:
    """Yield a table of the first failures, and the number of the others."""
    rows = run.failures
    if rows:
        cells = [(row.key, _config_text(row), row.error or "") for row in rows[:MAX_FAILURES_SHOWN]]
        yield Table(f"failed: {number(len(rows))} models", ("key", "config", "error"), cells)
    if len(rows) > MAX_FAILURES_SHOWN:
        yield dim(f"… and {number(len(rows) - MAX_FAILURES_SHOWN)} more; --csv FILE writes them all")


def _config_text(row: "ResultRow") -> str:
    return ", ".join(f"{name} {setting(value)}" for name, value in row.config.items())


def setting(value: object) -> str:
    """Return a setting as the command line takes it: exact, without thousands separators."""
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def mean(summary: "MetricSummary | None") -> str:
    """Return a mean and its standard deviation, if there is one."""
    if summary is None:
        return "–"
    text = f"{summary.mean:.4g}" if abs(summary.mean) < 1000 else f"{summary.mean:,.0f}"
    return f"{text} ± {summary.deviation:.2g}" if summary.deviation else text


@dataclass(frozen=True)
class RunResult(Result):
    """The summarized results of a run, with the chosen metrics."""

    command: "LabShow"
    run: "Run"
    points: "Sequence[SummaryPoint]"
    metrics: list[str]

    def as_json(self) -> dict[str, Any]:
        """Return the state of the run, its points, and its failures."""
        failed = [{"key": row.key, "config": row.config, "error": row.error} for row in self.run.failures]
        return {**run_state(self.run), "points": self.points, "failures": failed}

    def rows(self) -> Iterator[Block]:
        """Yield a table of all points, the settings that do not vary, and the failures."""
        from byheart.lab.rows import constants

        run, values = self.run, run_state(self.run)
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
class LabShow:
    """Show a run's results: means over repetitions (models that differ in their seed only), and failures."""

    folder: Positional[Path]
    """Folder of a run."""
    metric: tuple[str, ...] = ()
    """Metrics to show (default: all)."""
    csv: Path | None = None
    """CSV file into which all rows, not averaged, are also written."""
    json: Json = False

    def run(self) -> RunResult:
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
        return RunResult(self, run, chosen, metrics)

    def _chosen_metrics(self, points: "Sequence[SummaryPoint]") -> list[str]:
        """Return the metrics to show. Raise BadInput if the run does not have one of them."""
        names = list(dict.fromkeys(name for point in points for name in point.metrics))
        for name in self.metric:
            if name not in names:
                expected = f"expected {', '.join(names)}" if names else "the run has no results yet"
                raise BadInput(f"{self.folder}: no metric {name!r}; {expected}")
        return [*self.metric] or names


@dataclass(frozen=True)
class MergeResult(Result):
    """The joined run. Models that are left to train are no failure."""

    command: "LabMerge"
    run: "Run"

    def as_json(self) -> dict[str, Any]:
        """Return the state of the run, and the numbers of joined runs and of models left."""
        return {**run_state(self.run), "merged": len(self.command.folders), "left": len(self.run.pending())}

    def rows(self) -> Iterator[Block]:
        """Yield a summary, and the command that trains the models left."""
        from byheart.lab.runs import SOURCE

        run, left = self.run, len(self.run.pending())
        done = f"{number(run.done)} of {number(len(run.configs))} models done"
        yield f"{run.name}, {run.about['scale']}: {len(self.command.folders)} runs, {done}, {run.folder}"
        if left:
            experiment = f"{run.name}.py" if (run.folder / SOURCE).exists() else run.name
            more = f"byheart lab run {experiment} --scale {run.about['scale']} --out {run.folder} --resume"
            yield dim(f"{number(left)} are left; go on with:  {more}")


@dataclass(frozen=True)
class LabMerge:
    """Join runs of one experiment, parts of which several machines executed: nothing twice, and none that disagree."""

    folders: Positional[tuple[Path, ...]]
    """Folders of two or more runs of the same experiment and scale."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """Folder of the new run."""
    json: Json = False

    def run(self) -> MergeResult:
        """Join the runs."""
        from byheart.lab.merging import merge

        run = merge(self.folders, self.out)
        report_half_lines(*self.folders)
        return MergeResult(self, run)


@dataclass(frozen=True)
class LabCrossing:
    """Find where along a setting the probability of success crosses one half, from a run's results."""

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

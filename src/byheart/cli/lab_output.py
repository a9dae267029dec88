"""Output that several lab commands share: the state of a run, its failures, and progress."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from byheart.cli.output import steps
from byheart.cli.result import Block, Table, dim, number
from byheart.progress import Report

if TYPE_CHECKING:  # torch is slow to import
    from byheart.lab.rows import MetricSummary, ResultRow
    from byheart.lab.runs import Run

Scale = Literal["smoke", "short", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
SECONDS_PER_LINE = 30.0
"""Seconds between lines of progress if stderr is no terminal."""
MAX_FAILURES_SHOWN = 10
"""Largest number of failed models in a table; the rest are only counted."""


def state(run: "Run") -> dict[str, Any]:
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


@contextmanager
def progress(title: str, *, quiet: bool) -> Iterator[Report | None]:
    """Show a progress bar, or a line every :data:`SECONDS_PER_LINE` if stderr is no terminal."""
    with steps(title, quiet=quiet) as bar:
        yield bar if bar is not None or quiet else _ProgressLines(title)


class _ProgressLines:
    """Progress as lines on stderr, at most one per :data:`SECONDS_PER_LINE`."""

    def __init__(self, title: str) -> None:
        self.title, self.written_at = title, time.monotonic()

    def __call__(self, done: int, total: int, note: str = "", /) -> None:
        if time.monotonic() - self.written_at >= SECONDS_PER_LINE:
            self.written_at = time.monotonic()
            sys.stderr.write(f"{self.title}: {number(done)} of {number(total)} models{f', {note}' if note else ''}\n")

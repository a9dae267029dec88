"""What the commands of the lab share: a run in words, its failures, and progress."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from byheart.cli.output import steps
from byheart.cli.result import console, number, table

if TYPE_CHECKING:
    from pathlib import Path

    from byheart.lab.rows import ResultRow
    from byheart.lab.runs import Run
    from byheart.lab.summary import MetricSummary
    from byheart.progress import Report

Scale = Literal["smoke", "short", "paper"]
SECONDS_A_LINE = 30.0  # of progress, where nobody looks at a terminal
MOST_FAILURES_SHOWN = 10


def state(run: "Run") -> dict[str, Any]:
    """What a run is of, and how far it is."""
    found = "running" if run.running else "complete" if run.done == len(run.configs) else "stopped"
    sessions = run.about["sessions"]
    return {
        "run": str(run.folder),
        "experiment": run.name,
        "scale": run.about["scale"],
        "models": len(run.configs),
        "done": run.done,
        "failed": run.failed,
        "state": found,
        "began": sessions[0]["started"] if sessions else None,
    }


def say_half_lines(*folders: "Path") -> None:
    """A line on stderr for every run whose results end in half a line, which is left out."""
    from byheart.lab.rows import has_half_a_line
    from byheart.lab.runs import RESULTS

    for folder in (folder for folder in folders if has_half_a_line(folder / RESULTS)):
        what = "half a line at the end is left out: whoever wrote it was stopped, or is writing still"
        sys.stderr.write(f"{folder / RESULTS}: {what}\n")


def print_failures(run: "Run") -> None:
    """The first of those that failed, and how many more there are."""
    failures = [row for row in run.rows if row.status == "failed"]
    if not failures:
        return
    rows = table(f"failed: {number(len(failures))} models", "key", "config", "error")
    for row in failures[:MOST_FAILURES_SHOWN]:
        rows.add_row(*literal(row.key, _words(row), row.error or ""))
    out = console()
    out.print(rows)
    if len(failures) > MOST_FAILURES_SHOWN:
        out.print(f"… and {number(len(failures) - MOST_FAILURES_SHOWN)} more; --csv FILE writes them all", style="dim")


def literal(*texts: str) -> list[str]:
    """Cells that say what a run's folder says, which may be anything: nothing in them is markup."""
    from rich.markup import escape

    return [escape(text) for text in texts]


def _words(row: "ResultRow") -> str:
    return ", ".join(f"{name} {setting(value)}" for name, value in row.config.items())


def setting(value: object) -> str:
    """A setting as it is written on the command line: exact, without thousands' separators."""
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def mean(found: "MetricSummary | None") -> str:
    """A mean and its standard deviation, if there is one."""
    if found is None:
        return "–"
    shown = f"{found.mean:.4g}" if abs(found.mean) < 1000 else f"{found.mean:,.0f}"
    return f"{shown} ± {found.deviation:.2g}" if found.deviation else shown


@contextmanager
def progress(title: str, *, quiet: bool) -> "Iterator[Report | None]":
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

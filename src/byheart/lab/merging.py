"""Merge runs of one experiment, parts of which several machines executed, into one run without duplicates.

The runs must have the same experiment, scale and configs, and the same program if it is a user's own. If a config is
done in several runs, its results must be equal: numbers are compared exactly, except for seconds. A done row replaces a
failed one, and the last of several failed rows counts.

The result is a run like any other: configs that no machine has finished are pending in it, and resuming trains them. It
does not record which machine a row comes from. It has the sessions of all runs, in the order in which they began, and
the checkpoints of unfinished jobs; if several runs have one for the same job, the one with the most seconds.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any

from byheart.errors import BadInput
from byheart.files.untrusted import read_text
from byheart.files.writing import check_apart
from byheart.lab.checkpoints import CHECKPOINTS, files_in, job_of
from byheart.lab.rows import ResultRow, Value
from byheart.lab.runs import SOURCE, Run, write_run

SECONDS = "seconds"
"""Name of the only metric that differs each time."""


def merge(folders: Sequence[Path | str], out: Path | str) -> Run:
    """Write the runs in ``folders`` as one new run to ``out``. Raise BadInput if they disagree.

    The runs are read as they are at this moment; other processes may still be writing them.
    """
    runs = [Run.open(folder) for folder in folders]
    if len(runs) < 2:
        raise BadInput(f"{len(runs)} folders given; expected two or more runs")
    for run, other in combinations(runs, 2):
        if run.folder.samefile(other.folder):
            raise BadInput(f"{run.folder} and {other.folder} are the same run; expected different ones")
    check_apart(Path(out), *(run.folder for run in runs))
    first = runs[0]
    for other in runs[1:]:
        _check_same(first, other)
    sessions = {repr(session): session for run in runs for session in run.about["sessions"]}
    about = first.about | {"sessions": sorted(sessions.values(), key=lambda session: str(session["started"]))}
    rows = _rows(runs)
    done = {row.key for row in rows if row.status == "done"}
    write_run(Path(out), about, rows, _source(runs), _checkpoints(runs, first.configs.keys() - done))
    return Run.open(out)


def _check_same(first: Run, other: Run) -> None:
    experiments = [(run.name, run.about["scale"]) for run in (first, other)]
    if experiments[0] != experiments[1]:
        names = " and ".join(f"{name} at scale {scale}" for name, scale in experiments)
        raise BadInput(f"{first.folder} and {other.folder} are runs of {names}; expected one experiment and scale")
    if first.configs != other.configs:
        apart = len(first.configs.keys() ^ other.configs.keys())
        message = f"{first.folder} and {other.folder} have different configs ({apart} are in one of them only)"
        raise BadInput(f"{message}; expected runs of the same configs")


def _source(runs: Sequence[Run]) -> str | None:
    """Return the text of the program that the runs come from, if it is a user's own."""
    programs: dict[str, Run] = {}
    for run in runs:
        if (run.folder / SOURCE).exists():
            programs.setdefault(read_text(run.folder / SOURCE), run)
    if len(programs) > 1:
        first, other, *_ = (run.folder / SOURCE for run in programs.values())
        raise BadInput(f"{first} and {other} differ; expected one program (if both do the same, copy one to the other)")
    return next(iter(programs), None)


def _rows(runs: Sequence[Run]) -> list[ResultRow]:
    """Return one row for every config that has any, in the order of the configs."""
    latest: dict[str, tuple[Run, ResultRow]] = {}
    for run in runs:
        for row in run.rows:
            earlier = latest.get(row.key, (run, row))
            if earlier[1].status == row.status == "done":
                _check_equal(earlier, (run, row))
            latest[row.key] = (run, row) if earlier[1].status == "failed" else earlier
    _check_kinds(list(latest.values()))
    return [latest[key][1] for key in runs[0].configs if key in latest]


def _checkpoints(runs: Sequence[Run], pending: Collection[str]) -> dict[str, Path]:
    """Return the checkpoints whose configs are all pending, by their names in a run."""
    longest: dict[str, tuple[float, Path]] = {}
    for path in (path for run in runs for path in files_in(run.folder / CHECKPOINTS)):
        with suppress(BadInput, OSError):  # resuming its own run will tell what is wrong with it
            job, seconds = job_of(path)
            if set(job) <= set(pending):
                longest[path.name] = max(longest.get(path.name, (-1.0, path)), (seconds, path))
    return {f"{CHECKPOINTS}/{name}": path for name, (_, path) in longest.items()}


def _check_equal(first: tuple[Run, ResultRow], other: tuple[Run, ResultRow]) -> None:
    """Raise BadInput that names both runs and a metric that differs."""
    ours, theirs = (_results(row.metrics) for _, row in (first, other))
    if ours == theirs:
        return
    name = min(name for name, _ in ours.items() ^ theirs.items())
    place = f"{first[0].folder} and {other[0].folder} disagree about {first[1].key} ({_words(first[1].config)})"
    values = f"{name} is {ours.get(name)!r} and {theirs.get(name)!r}"
    raise BadInput(f"{place}: {values}; expected equal results: leave one of the runs out, or remove one of the rows")


def _check_kinds(rows: Sequence[tuple[Run, ResultRow]]) -> None:
    """Raise BadInput that names both runs if a metric is a text in one and a number in the other."""
    kinds: dict[str, tuple[bool, Run]] = {}
    for run, row in rows:
        for name, value in row.metrics.items():
            if value is None:
                continue
            text, first = kinds.setdefault(name, (isinstance(value, str), run))
            if text != isinstance(value, str):
                message = f"{name} is a text in one of them, and a number in the other"
                raise BadInput(f"{first.folder} and {run.folder}: {message}; expected runs of one program")


def _results(metrics: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in metrics.items() if name != SECONDS}


def _words(config: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in config.items())

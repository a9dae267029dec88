"""Runs of one experiment that several machines did parts of, put together into one run, with nothing in it twice.

The runs have to be of the same experiment, scale and configs, and of the same program where it is a user's own. A
config that is done in several of them must have come out the same: numbers are compared exactly, only the seconds that
it took may differ. Where one run has done what failed in another, the done row counts; of failures the last.

What is merged is a run like any other: what no machine has done is pending in it, and resuming does it. Which machine a
row comes from is not kept; the sessions of all runs are, in the order in which they began. Checkpoints of jobs that no
run has ended come along, of those of one job the one that more time was spent on.
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
"""The one metric that is another one each time."""


def merge(folders: Sequence[Path | str], out: Path | str) -> Run:
    """The runs in ``folders`` as one new run in ``out``, which must not be there yet; BadInput where they disagree.

    The runs are read as they are at this moment; somebody may still be writing them.
    """
    runs = [Run.open(folder) for folder in folders]
    if len(runs) < 2:
        raise BadInput(f"{len(runs)} folders given; expected two or more runs")
    for one, other in combinations(runs, 2):
        if one.folder.samefile(other.folder):
            raise BadInput(f"{one.folder} and {other.folder} are the same run; expected different ones")
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
    what = [(run.name, run.about["scale"]) for run in (first, other)]
    if what[0] != what[1]:
        told = " and ".join(f"{name} at scale {scale}" for name, scale in what)
        raise BadInput(f"{first.folder} and {other.folder} are runs of {told}; expected one experiment and scale")
    if first.configs != other.configs:
        apart = len(first.configs.keys() ^ other.configs.keys())
        found = f"{first.folder} and {other.folder} have other configs ({apart} are in one of them only)"
        raise BadInput(f"{found}; expected runs of the same ones")


def _source(runs: Sequence[Run]) -> str | None:
    """The text of the program that the runs come from, if it is a user's own."""
    known: dict[str, Run] = {}
    for run in runs:
        if (run.folder / SOURCE).exists():
            known.setdefault(read_text(run.folder / SOURCE), run)
    if len(known) > 1:
        first, other, *_ = (run.folder / SOURCE for run in known.values())
        raise BadInput(f"{first} and {other} differ; expected one program (if both do the same, copy one to the other)")
    return next(iter(known), None)


def _rows(runs: Sequence[Run]) -> list[ResultRow]:
    """One row for every config that has any, in the order of the configs."""
    found: dict[str, tuple[Run, ResultRow]] = {}
    for run in runs:
        for row in run.rows:
            before, known = found.get(row.key, (run, row))
            if known.status == row.status == "done":
                _check_equal((before, known), (run, row))
            found[row.key] = (run, row) if known.status == "failed" else (before, known)
    _check_kinds(list(found.values()))
    return [found[key][1] for key in runs[0].configs if key in found]


def _checkpoints(runs: Sequence[Run], pending: Collection[str]) -> dict[str, Path]:
    """Those that are of pending configs alone, by their names in a run."""
    found: dict[str, tuple[float, Path]] = {}
    for path in (path for run in runs for path in files_in(run.folder / CHECKPOINTS)):
        with suppress(BadInput, OSError):  # the run that it is in can still be resumed, and says what is wrong with it
            job, seconds = job_of(path)
            if set(job) <= set(pending):
                found[path.name] = max(found.get(path.name, (-1.0, path)), (seconds, path))
    return {f"{CHECKPOINTS}/{name}": path for name, (_, path) in found.items()}


def _check_equal(first: tuple[Run, ResultRow], other: tuple[Run, ResultRow]) -> None:
    """BadInput that names both runs and a metric that differs."""
    ours, theirs = (_results(row.metrics) for _, row in (first, other))
    if ours == theirs:
        return
    name = min(name for name, _ in ours.items() ^ theirs.items())
    where = f"{first[0].folder} and {other[0].folder} disagree about {first[1].key} ({_words(first[1].config)})"
    values = f"{name} is {ours.get(name)!r} and {theirs.get(name)!r}"
    raise BadInput(f"{where}: {values}; expected equal results: leave one of the runs out, or remove one of the rows")


def _check_kinds(found: Sequence[tuple[Run, ResultRow]]) -> None:
    """BadInput that names both runs if a metric is a text in one of them and a number in the other: no run has both."""
    kinds: dict[str, tuple[bool, Run]] = {}
    for run, row in found:
        for name, value in row.metrics.items():
            if value is None:
                continue
            text, first = kinds.setdefault(name, (isinstance(value, str), run))
            if text != isinstance(value, str):
                what = f"{name} is a text in one of them, and a number in the other"
                raise BadInput(f"{first.folder} and {run.folder}: {what}; expected runs of one program")


def _results(metrics: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in metrics.items() if name != SECONDS}


def _words(config: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in config.items())

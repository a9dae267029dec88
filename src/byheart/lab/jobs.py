"""Execute a run: hand its jobs to an executor, and write the results in one place.

A job is a group of configs that are trained together. Its worker gets the source of the experiment
(:mod:`byheart.lab.sources`) and the keys of the job's configs, and returns metrics. Only :func:`execute`, in the
process that holds the run, writes them, so a config that has a done row is never handed out again. A job whose process
or machine died leaves nothing behind but its checkpoint (:mod:`byheart.lab.checkpoints`), from which it continues.

A job that fails is split in two, again and again, until the failing configs are alone. So one bad config spoils no
other row, and a group too large for the memory is trained in parts. A config that fails alone becomes a failed row;
resuming the run tries it again.

The executors are those of :mod:`byheart.executors`; their workers share the source. Machines that share nothing execute
one :class:`Part` of the jobs each, in a run of its own, and :mod:`byheart.lab.merging` joins the runs.
"""

import os
import time
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any

from byheart.errors import BadInput
from byheart.executors import Executor, Job
from byheart.lab import checkpoints
from byheart.lab.checkpoints import JobKeys, Keeping, Stopped, kept
from byheart.lab.experiment import Experiment, key
from byheart.lab.rows import ResultRow, Value, metrics_of
from byheart.lab.runs import Run, keyed
from byheart.lab.sources import Source, load
from byheart.progress import Report


@dataclass(frozen=True)
class JobResult:
    """The end of a job: metrics of each of its configs, or an error, or ``stopped`` because the time was over.

    ``notes`` are messages about its checkpoints.
    """

    metrics: tuple[dict[str, Value], ...]
    seconds: float
    error: str | None = None
    stopped: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Progress:
    """The progress of a run, or of a part of it: ``done`` of its ``models``.

    ``failed``, ``now`` (done or failed), ``steps`` and ``seconds`` are those of this session. ``under_way`` counts the
    models of jobs that the session stopped and kept. ``notes`` are messages about checkpoints that could not be used.
    """

    models: int
    done: int
    failed: int
    now: int = 0
    steps: int = 0
    seconds: float = 0.0
    under_way: int = 0
    notes: tuple[str, ...] = ()

    @property
    def models_per_second(self) -> float:
        """Models finished per second of this session."""
        return self.now / self.seconds if self.seconds else 0.0

    @property
    def earlier(self) -> int:
        """Number of models that were done before this session."""
        return self.done - (self.now - self.failed)

    @property
    def left(self) -> int:
        """Number of models not yet trained to the end."""
        return self.models - self.done - self.failed

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds until the end, at the speed of this session; None before the first model is finished."""
        return self.left / self.models_per_second if self.now else None

    @property
    def steps_per_second(self) -> float:
        """Training steps per second of this session, summed over all finished models."""
        return self.steps / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        """Return rates and the time left, or an empty string before the first model is finished.

        >>> str(Progress(models=100, done=60, failed=5, now=25, steps=1000, seconds=5.0))
        '5 models/s, 200 steps/s, 0:00:07 left'
        """
        if self.seconds_left is None:
            return ""
        steps = f", {self.steps_per_second:,.0f} steps/s" if self.steps else ""
        return f"{self.models_per_second:.3g} models/s{steps}, {timedelta(seconds=round(self.seconds_left))} left"


@dataclass(frozen=True)
class Part:
    """The ``number``-th of ``of`` parts of an experiment: every ``of``-th of its jobs, counted from 1.

    A part is cut from all jobs of the experiment, done or not, so it is the same on every machine and after every stop.
    If there are fewer jobs than parts, jobs are split.
    """

    number: int
    of: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise BadInput(f"part is {self}; expected K/M with K from 1 to M")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def keys(self, experiment: Experiment) -> list[str]:
        """Return the keys of the configs in this part."""
        configs = keyed(experiment)
        jobs = spread(_group(experiment, configs, list(configs)), self.of)
        return [name for job in jobs[self.number - 1 :: self.of] for name in job]


def execute(
    run: Run,
    experiment: Experiment,
    executor: Executor,
    report: Report | None = None,
    *,
    device: str = "cpu",
    part: Part | None = None,
    seconds: float | None = None,
    checkpoint_every: float = checkpoints.EVERY,
) -> Progress:
    """Execute the pending jobs of a run, or of a part of it, write their rows, and return the progress at the end.

    Jobs under way are kept in the run's folder every ``checkpoint_every`` seconds. When the run is resumed, they
    continue from there, wherever the folder has been moved. After ``seconds`` no job is started any more, and the jobs
    under way are kept and stopped. A job cannot be kept if its work does not use :func:`~byheart.lab.ensemble.train`,
    or if its worker does not see the folder: such a job is waited for, however long it takes.

    ``report`` hears how many models have ended, done or failed, whenever a job ends or reports its own progress. The
    workers of ``executor`` share the source of the experiment, and the caller uses it as a context manager::

        origin = source("my_experiment.py", "smoke")
        with Local(origin) as executor, Run.resume("runs/mine", load(origin), origin.text) as run:
            execute(run, load(origin), executor)
    """
    with checkpoints.session(run.folder, checkpoint_every, seconds) as keeping:
        sweep = _Sweep(run, experiment, executor.workers, report, part, keeping)
        while True:
            while sweep.waiting and sweep.started < executor.slots and not keeping.is_over:
                keys = sweep.waiting.popleft()
                executor.start(Job(keys, perform, (keys, device, keeping), divisible=len(keys) > 1))
                sweep.started += 1
            if not sweep.started:
                break
            job, outcome = executor.wait(sweep.hear)
            if outcome.error is not None:
                raise outcome.error
            lost = JobResult((), outcome.seconds, outcome.lost)
            sweep.take(job.arguments[0], outcome.value if outcome.lost is None else lost)
        if not run.pending():
            checkpoints.remove(keeping.folder)
        return sweep.progress


class _Sweep:
    """The jobs that are left of a run, or of a part of it, and the progress so far."""

    def __init__(
        self,
        run: Run,
        experiment: Experiment,
        workers: int,
        report: Report | None,
        part: Part | None,
        keeping: Keeping,
    ) -> None:
        self.run, self.report, self.keeping, self.start = run, report, keeping, time.perf_counter()
        configs = keyed(experiment)
        chosen = configs.keys() if part is None else set(part.keys(experiment))
        pending = [name for name in run.pending() if name in chosen]
        begun, notes = _find_begun(experiment, configs, pending, keeping)
        resumed = {name for job in begun for name in job}
        fresh = _group(experiment, configs, [name for name in pending if name not in resumed])
        self.waiting = deque([*begun, *spread(fresh, workers - len(begun))])
        self.started = 0
        self.progress = Progress(len(chosen), done=len(chosen) - len(pending), failed=0, notes=tuple(notes))
        self.tell()

    def tell(self, job: str = "") -> None:
        """Report the progress, and what a ``job`` says about its own."""
        self.progress = replace(self.progress, seconds=time.perf_counter() - self.start)
        if self.report is not None:
            note = "; ".join(filter(None, (str(self.progress), job)))
            self.report(self.progress.done + self.progress.failed, self.progress.models, note)

    def hear(self, done: int, total: int, note: str = "", /) -> None:
        """Forward the progress that a job reports."""
        self.tell(f"in a job: {done:,} of {total:,}{f', {note}' if note else ''}")

    def take(self, job: JobKeys, result: JobResult) -> None:
        """Write the rows of a job, split it if it failed, or leave it for the next session if it was stopped."""
        self.started -= 1
        self.progress = replace(self.progress, notes=(*self.progress.notes, *result.notes))
        if result.stopped:
            under_way = len(job) if checkpoints.files_in(self.keeping.folder, job) else 0
            self.progress = replace(self.progress, under_way=self.progress.under_way + under_way)
            return
        if result.error is not None and len(job) > 1:
            checkpoints.remove(self.keeping.folder, job)
            self.waiting.extendleft(reversed(_halve(job)))
            return
        rows = _rows_of(self.run, job, result)
        self.run.append(rows)
        checkpoints.remove(self.keeping.folder, job)
        failed = sum(row.status == "failed" for row in rows)
        self.progress = replace(
            self.progress,
            done=self.progress.done + len(rows) - failed,
            failed=self.progress.failed + failed,
            now=self.progress.now + len(rows),
            steps=self.progress.steps + sum(_steps_of(row) for row in rows),
        )
        self.tell()


def spread(jobs: Sequence[JobKeys], workers: int) -> list[JobKeys]:
    """Split jobs, the largest first, until every worker has one or every job is a single config.

    >>> spread([("a", "b", "c"), ("d",)], workers=3)
    [('a', 'b'), ('c',), ('d',)]
    """
    parts = list(jobs)
    while 0 < len(parts) < workers and (largest := max(parts, key=len)) and len(largest) > 1:
        index = parts.index(largest)
        parts[index : index + 1] = _halve(largest)
    return parts


def _halve(job: JobKeys) -> list[JobKeys]:
    middle = (len(job) + 1) // 2
    return [job[:middle], job[middle:]]


def _group(experiment: Experiment, configs: Mapping[str, Any], keys: Sequence[str]) -> list[JobKeys]:
    """Return the keys in the groups that the experiment asks for."""
    if not keys:
        return []
    groups = [tuple(map(key, group)) for group in experiment.groups([configs[name] for name in keys])]
    if sorted(name for group in groups for name in group) != sorted(keys):
        raise BadInput(f"{experiment.name}: groups do not hold every config once; expected a partition of the configs")
    return [group for group in groups if group]


def _find_begun(
    experiment: Experiment, configs: Mapping[str, Any], pending: Sequence[str], keeping: Keeping
) -> tuple[list[JobKeys], list[str]]:
    """Return the jobs that have a usable checkpoint, as they were cut then, and notes about the other checkpoints.

    A job may have been cut for other workers, or after a failure. It stays one job if the experiment trains its configs
    together and all of them are pending. A job without any pending config belongs to another part.
    """
    jobs, notes = checkpoints.jobs_in(keeping.folder)
    remaining, begun = set(pending), list[JobKeys]()
    for job in jobs:
        if remaining >= set(job) and _group(experiment, configs, job) == [job]:
            begun.append(job)
            remaining -= set(job)
        elif remaining & set(job):
            names = " and ".join(path.name for path in checkpoints.files_in(keeping.folder, job))
            notes.append(f"{keeping.folder / names}: not used, its models are in other jobs now, which begin anew")
    return begun, notes


def _rows_of(run: Run, job: JobKeys, result: JobResult) -> list[ResultRow]:
    """Return the rows of a job, done or failed. Each config gets an equal share of the job's seconds."""
    share = result.seconds / len(job)
    if result.error is not None:
        return [ResultRow(run.name, name, run.configs[name], "failed", {}, share, result.error) for name in job]
    return [
        ResultRow(run.name, name, run.configs[name], "done", metrics, share, None)
        for name, metrics in zip(job, result.metrics, strict=True)
    ]


def _steps_of(row: ResultRow) -> int:
    steps = row.metrics.get("steps")
    return steps if isinstance(steps, int) else 0


def perform(
    source: Source, job: JobKeys, device: str, keeping: Keeping | None = None, *, report: Report | None = None
) -> JobResult:
    """Train the configs of a job in this process, with checkpoints as ``keeping`` says, and return errors as results.

    A job that had to wait until the time was over is returned as stopped.
    """
    if keeping is not None and keeping.is_over:
        return JobResult((), 0.0, stopped=True)
    start = time.perf_counter()
    metrics: tuple[dict[str, Value], ...] = ()
    error, stopped = None, False
    with kept(keeping, job, source.text) as keeper:
        try:
            configs = _configs_of(source)
            if not configs.keys() >= set(job):
                raise BadInput("the experiment has other configs each time it is read; expected the same ones")
            rows = load(source).work([configs[name] for name in job], device, report)
            if len(rows) != len(job):
                expected = f"{len(job)} configs; expected one per config, in order"
                raise BadInput(f"work returned {len(rows)} rows for {expected}")
            metrics = tuple(metrics_of(row) for row in rows)
        except Stopped:
            stopped = True
        except (Exception, SystemExit) as failure:
            error = _describe(failure)
    seconds = time.perf_counter() - start
    if keeper is None:
        return JobResult(metrics, seconds, error)
    return JobResult(metrics, keeper.earlier + seconds, error, stopped, tuple(keeper.notes))


@cache
def _configs_of(source: Source) -> dict[str, Any]:
    return keyed(load(source))


def _describe(error: BaseException) -> str:
    """Return an error in one line, with the place where it was raised."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    message = " ".join(str(error).encode(errors="backslashreplace").decode().split())
    return f"{type(error).__name__}: {message} ({os.path.basename(place.filename)}:{place.lineno})"

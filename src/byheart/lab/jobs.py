"""Doing a run's work: jobs go out, here, to processes or to Ray; results are written in one place only.

A job is a group of configs that are trained together. Workers are told where the experiment comes from
(:mod:`byheart.lab.sources`) and the keys of a job's configs, and give back metrics; :func:`execute`, in the process
that holds the run, writes them. So a config that has a done row is never given out again. A job whose process or
machine died has left nothing behind but its checkpoint (:mod:`byheart.lab.checkpoints`), from which it goes on.

A job that fails is cut in two, and so on, until the failing configs are alone: one bad config spoils nobody's row, and
a group too large for the memory is done in parts. What fails alone becomes a failed row; resuming tries it again.

Executors are those of :mod:`byheart.executors`, with jobs for tasks: :class:`Local` here,
:class:`~byheart.lab.processes.Processes`, :class:`~byheart.lab.on_ray.Ray`. Machines that share nothing take a
:class:`Part` of the jobs each, in a run of its own; :mod:`byheart.lab.merging` puts the runs together.
"""

import os
import time
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any, Protocol, Self

from byheart import executors
from byheart.errors import BadInput
from byheart.lab import checkpoints
from byheart.lab.checkpoints import Job, Keeping, Stopped, kept
from byheart.lab.experiments.experiment import Experiment, key
from byheart.lab.rows import Row, Value, metrics_of
from byheart.lab.runs import Run, keyed
from byheart.lab.sources import Source, load
from byheart.progress import Report


@dataclass(frozen=True)
class Result:
    """What came of a job: metrics for each of its configs, or an error; or it was ``stopped`` when the time was over.

    ``notes`` is what there is to say about its checkpoints.
    """

    metrics: tuple[dict[str, Value], ...]
    seconds: float
    error: str | None = None
    stopped: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Progress:
    """How far a run, or a part of one, is: ``done`` of all its ``models``; ``failed``, ``now`` (done or failed),
    ``steps`` and ``seconds`` are of this session. ``under_way`` are the models of jobs that it stopped and kept;
    ``notes`` is what there is to say about checkpoints that were of no use.
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
        """Models of this session."""
        return self.now / self.seconds if self.seconds else 0.0

    @property
    def earlier(self) -> int:
        """Models that were done before this session."""
        return self.done - (self.now - self.failed)

    @property
    def left(self) -> int:
        """Models that were not come to, or not to the end."""
        return self.models - self.done - self.failed

    @property
    def seconds_left(self) -> float | None:
        """If the rest goes as fast as what was done in this session."""
        return self.left / self.models_per_second if self.now else None

    @property
    def steps_per_second(self) -> float:
        """Training steps of this session's finished models, all models together."""
        return self.steps / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        """Rates and the time left, once there is something to tell them from.

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

    It is taken of all the experiment's jobs, done or not, so that it is the same on every machine and after every stop.
    Where there are fewer jobs than parts, jobs are cut.
    """

    number: int
    of: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise BadInput(f"part is {self}; expected K/M with K from 1 to M")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def keys(self, experiment: Experiment) -> list[str]:
        """The keys of its configs."""
        configs = keyed(experiment)
        jobs = spread(_jobs(experiment, configs, list(configs)), self.of)
        return [name for job in jobs[self.number - 1 :: self.of] for name in job]


class Executor(AbstractContextManager["Executor"], Protocol):
    """Where jobs are done: ``workers`` at a time."""

    workers: int

    @property
    def at_once(self) -> int:
        """How many may be given out by now."""
        ...

    def start(self, job: Job, keeping: Keeping | None = None) -> None:
        """Give a job out, and say where it is kept while it is under way."""

    def finished(self, report: Report) -> tuple[Job, Result]:
        """Wait for one of the jobs that were given out; ``report`` what they tell meanwhile, where it can be heard."""


def execute(
    run: Run,
    experiment: Experiment,
    executor: Executor,
    report: Report | None = None,
    *,
    part: Part | None = None,
    seconds: float | None = None,
    checkpoint_every: float = checkpoints.EVERY,
) -> Progress:
    """Do what is pending in a run, or in a part of it, and write it, job by job; what has been reached at the end.

    Jobs under way are kept in the run's folder every ``checkpoint_every`` seconds, and go on from there when the run is
    resumed, wherever the folder has been carried. After this many ``seconds`` no job is begun any more, and those under
    way are kept and stopped. What cannot be kept, since its work does not go through
    :func:`~byheart.lab.ensemble.train` or its worker does not see the folder, is waited for, however long it takes.

    ``report`` hears how many models have ended, done or failed, whenever a job ends or tells how far it is itself.
    The executor has to be one for this experiment, and is used as a context manager by whoever calls::

        origin = source("my_experiment.py", "smoke")
        with Local(origin) as executor, Run.resume("runs/mine", load(origin), origin.text) as run:
            execute(run, load(origin), executor)
    """
    with checkpoints.session(run.folder, checkpoint_every, seconds) as keeping:
        sweep = _Sweep(run, experiment, executor.workers, report, part, keeping)
        while True:
            while sweep.waiting and sweep.given < executor.at_once and not keeping.is_over:
                executor.start(sweep.waiting.popleft(), keeping)
                sweep.given += 1
            if not sweep.given:
                break
            sweep.take(*executor.finished(sweep.hear))
        if not run.pending():
            checkpoints.remove(keeping.folder)
        return sweep.progress


class _Sweep:
    """What is left of a run, or of a part of it, and how far it is."""

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
        wanted = configs.keys() if part is None else set(part.keys(experiment))
        pending = [name for name in run.pending() if name in wanted]
        begun, notes = _begun(experiment, configs, pending, keeping)
        held = {name for job in begun for name in job}
        fresh = _jobs(experiment, configs, [name for name in pending if name not in held])
        self.waiting = deque([*begun, *spread(fresh, workers - len(begun))])
        self.given = 0
        self.progress = Progress(len(wanted), done=len(wanted) - len(pending), failed=0, notes=tuple(notes))
        self.tell()

    def tell(self, job: str = "") -> None:
        """Say how far it is, and how far a job is."""
        self.progress = replace(self.progress, seconds=time.perf_counter() - self.start)
        if self.report is not None:
            note = "; ".join(filter(None, (str(self.progress), job)))
            self.report(self.progress.done + self.progress.failed, self.progress.models, note)

    def hear(self, done: int, total: int, note: str = "", /) -> None:
        """What a job tells of itself."""
        self.tell(f"in a job: {done:,} of {total:,}{f', {note}' if note else ''}")

    def take(self, job: Job, result: Result) -> None:
        """Write what came of a job, or cut it in two; or leave it for the next session."""
        self.given -= 1
        self.progress = replace(self.progress, notes=(*self.progress.notes, *result.notes))
        if result.stopped:
            under_way = len(job) if checkpoints.files_in(self.keeping.folder, job) else 0
            self.progress = replace(self.progress, under_way=self.progress.under_way + under_way)
            return
        if result.error is not None and len(job) > 1:
            checkpoints.remove(self.keeping.folder, job)
            self.waiting.extendleft(reversed(_halves(job)))
            return
        rows = _rows(self.run, job, result)
        self.run.append(rows)
        checkpoints.remove(self.keeping.folder, job)
        failed = sum(row.status == "failed" for row in rows)
        self.progress = replace(
            self.progress,
            done=self.progress.done + len(rows) - failed,
            failed=self.progress.failed + failed,
            now=self.progress.now + len(rows),
            steps=self.progress.steps + sum(_steps(row) for row in rows),
        )
        self.tell()


def spread(jobs: Sequence[Job], workers: int) -> list[Job]:
    """Jobs cut so that every worker has one, the largest first, as far as there are configs.

    >>> spread([("a", "b", "c"), ("d",)], workers=3)
    [('a', 'b'), ('c',), ('d',)]
    """
    found = list(jobs)
    while 0 < len(found) < workers and (largest := max(found, key=len)) and len(largest) > 1:
        place = found.index(largest)
        found[place : place + 1] = _halves(largest)
    return found


def _halves(job: Job) -> list[Job]:
    middle = (len(job) + 1) // 2
    return [job[:middle], job[middle:]]


def _jobs(experiment: Experiment, configs: Mapping[str, Any], keys: Sequence[str]) -> list[Job]:
    """The keys in groups, as the experiment wants them."""
    if not keys:
        return []
    groups = [tuple(map(key, group)) for group in experiment.groups([configs[name] for name in keys])]
    if sorted(name for group in groups for name in group) != sorted(keys):
        raise BadInput(f"{experiment.name}: groups do not hold every config once; expected a partition of the configs")
    return [group for group in groups if group]


def _begun(
    experiment: Experiment, configs: Mapping[str, Any], pending: Sequence[str], keeping: Keeping
) -> tuple[list[Job], list[str]]:
    """Jobs that have a checkpoint, as they were cut then; and what there is to say about those that are of no use.

    A job may have been cut for other workers, or after a failure: it stays one if the experiment trains its configs
    together, and if all of them are pending. One of which nothing is pending now belongs to another part.
    """
    found, notes = checkpoints.jobs_in(keeping.folder)
    left, begun = set(pending), list[Job]()
    for job in found:
        if left >= set(job) and _jobs(experiment, configs, job) == [job]:
            begun.append(job)
            left -= set(job)
        elif left & set(job):
            names = " and ".join(path.name for path in checkpoints.files_in(keeping.folder, job))
            notes.append(f"{keeping.folder / names}: not used, its models are in other jobs now, which begin anew")
    return begun, notes


def _rows(run: Run, job: Job, result: Result) -> list[Row]:
    share = result.seconds / len(job)
    if result.error is not None:
        return [Row(run.name, name, run.configs[name], "failed", {}, share, result.error) for name in job]
    return [
        Row(run.name, name, run.configs[name], "done", metrics, share)
        for name, metrics in zip(job, result.metrics, strict=True)
    ]


def _steps(row: Row) -> int:
    steps = row.metrics.get("steps")
    return steps if isinstance(steps, int) else 0


def perform(
    source: Source, job: Job, device: str, report: Report | None = None, keeping: Keeping | None = None
) -> Result:
    """Do a job, here; whatever goes wrong in it is a result too. It is kept as ``keeping`` says, and stopped then."""
    if keeping is not None and keeping.is_over:  # it has waited for a place until now
        return Result((), 0.0, stopped=True)
    start = time.perf_counter()
    with kept(keeping, job, source.text) as keeper:
        try:
            metrics, error, stopped = _worked(source, job, device, report), None, False
        except Stopped:
            metrics, error, stopped = (), None, True
        except (Exception, SystemExit) as failure:
            metrics, error, stopped = (), _in_a_line(failure), False
    seconds = time.perf_counter() - start
    if keeper is None:
        return Result(metrics, seconds, error)
    return Result(metrics, keeper.earlier + seconds, error, stopped, tuple(keeper.notes))


def _worked(source: Source, job: Job, device: str, report: Report | None) -> tuple[dict[str, Value], ...]:
    configs = _configs(source)
    if not configs.keys() >= set(job):
        raise BadInput("the experiment has other configs each time it is read; expected the same ones")
    found = load(source).work([configs[name] for name in job], device, report)
    if len(found) != len(job):
        raise BadInput(f"work returned {len(found)} rows for {len(job)} configs; expected one per config, in order")
    return tuple(metrics_of(row) for row in found)


@cache
def _configs(source: Source) -> dict[str, Any]:
    return keyed(load(source))


def _in_a_line(error: BaseException) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    message = " ".join(str(error).encode(errors="backslashreplace").decode().split())
    return f"{type(error).__name__}: {message} ({os.path.basename(place.filename)}:{place.lineno})"


class Jobs:
    """Jobs as tasks of an executor whose workers share the source and the device."""

    def __init__(self, tasks: executors.Executor) -> None:
        self._tasks, self.workers = tasks, tasks.workers

    @property
    def at_once(self) -> int:
        """How many may be given out by now."""
        return self._tasks.at_once

    def start(self, job: Job, keeping: Keeping | None = None) -> None:
        """Give it out."""
        self._tasks.start(executors.Task(job, _performed, (job, keeping), divisible=len(job) > 1))

    def finished(self, report: Report) -> tuple[Job, Result]:
        """Wait for one; one that is lost is a failed one."""
        task, outcome = self._tasks.finished(report)
        if outcome.error is not None:
            raise outcome.error
        lost = Result((), outcome.seconds, outcome.lost)
        return task.arguments[0], lost if outcome.lost is not None else outcome.value

    def __enter__(self) -> Self:
        self._tasks.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._tasks.__exit__(*exception)


def _performed(source: Source, device: str, job: Job, keeping: Keeping | None, *, report: Report | None) -> Result:
    return perform(source, job, device, report, keeping)


class Local(Jobs):
    """One job after the other, in this process."""

    def __init__(self, source: Source, device: str = "cpu") -> None:
        super().__init__(executors.Local(source, device))

"""An executor that runs jobs on a Ray cluster: several machines, or several GPUs (extra ``ray``).

The cluster is the one at RAY_ADDRESS, or one that ``ray start`` has started on this machine. If there is none, one is
started here for as long as the work takes. Byheart has to be installed on all machines of the cluster, or has to come
with the runtime environment.

**Lost jobs.** Ray retries a task that its memory monitor killed for ever, unless the task may not be retried at all:
these retries are not counted by ``max_retries``, but there are none if ``max_retries`` is 0 (Ray's documentation,
"Out-of-memory prevention"). The task would not fit the next time either. So Ray retries nothing, and this module
decides:

- A job that was killed for memory (OutOfMemoryError) is lost. So is a divisible job whose process died, which happens
  if the system's own killer took it. The caller may split a lost job in two.
- A job whose machine died is started again as it is, up to ``retries`` times. So is an indivisible job whose process
  died, because that may be a dying machine too.

**Bounded.** Twice as many jobs are handed out as there are places: one runs and one waits per place. A cluster that
grows when tasks wait can therefore double, and its new machines get jobs.

A cluster that is started here has no dashboard and reports nothing to Ray's makers (RAY_USAGE_STATS_ENABLED is 0 unless
it is set). A cluster started by ``ray start`` reports unless it was told not to. Even then it reports once that it does
not report, to the address in RAY_USAGE_STATS_REPORT_URL.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from byheart.errors import BadInput, missing_package
from byheart.executors.job import RETRIES, Job, JobOutcome, run_job
from byheart.executors.processes import make_sendable, use_one_thread
from byheart.progress import Report

JOBS_PER_PLACE = 2
"""Number of jobs handed out per place: one runs, one waits."""


@dataclass(frozen=True)
class _StartedJob:
    """A job that was handed out: when it began, and how often it was lost before."""

    job: Job
    began: float
    losses: int = 0


class Ray:
    """An executor that runs up to ``workers`` jobs at a time as Ray tasks (default: as many as there is room for).

    A job takes one CPU, or ``gpus``, a share of one GPU. Jobs that share a GPU do not know of each other: each takes
    the memory that it finds. ``shared`` is put into Ray's object store once. ``runtime_env`` is Ray's runtime
    environment: a dictionary of what its machines have to provide.
    """

    memory: int | None = None

    def __init__(
        self,
        *shared: Any,
        workers: int | None = None,
        gpus: float | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        retries: int = RETRIES,
    ) -> None:
        if gpus is not None and not 0 < gpus <= 1:
            raise BadInput(f"a job's share of a GPU is {gpus}; expected more than 0, and at most 1")
        self._ray = _import_ray()
        self._workers, self._retries = workers, retries
        self._owns_cluster = not self._ray.is_initialized()
        if self._owns_cluster:
            _start_cluster(self._ray, runtime_env)
        elif runtime_env is not None:
            raise BadInput("Ray runs in this process already; expected its runtime_env to be given to ray.init")
        self._resource, self._share = ("CPU", 1.0) if gpus is None else ("GPU", gpus)
        if not self._count_places():
            raise BadInput(f"the Ray cluster has no {self._resource}; expected one or more")
        self.workers = min(self._count_places(), workers or self._count_places())
        needs = {"num_cpus": 1} if gpus is None else {"num_gpus": gpus}
        self._task = self._ray.remote(max_retries=0, **needs)(_run_with_one_thread)
        self._shared = self._ray.put(shared)
        self._started: dict[Any, _StartedJob] = {}

    @property
    def slots(self) -> int:
        """Number of jobs to hand out: ``workers``, or twice the places that the cluster has now."""
        return self._workers or JOBS_PER_PLACE * max(1, self._count_places())

    def _count_places(self) -> int:
        """Return the number of jobs that the cluster has room for. A job's share of a GPU is a share of one GPU."""
        return int(self._ray.cluster_resources().get(self._resource, 0)) * int(1 / self._share)

    def start(self, job: Job) -> None:
        """Hand a job to the cluster."""
        if job.memory is not None:
            self._check_memory(job.key, job.memory)
        self._submit(_StartedJob(job, time.perf_counter()))

    def _check_memory(self, key: object, needed: int) -> None:
        """Raise BadInput if no machine has ``needed`` bytes, because Ray would wait for one for ever."""
        largest = max((node["Resources"].get("memory", 0) for node in self._ray.nodes() if node["Alive"]), default=0)
        if needed > largest:
            raise BadInput(
                f"{key} would take {needed:,} bytes of memory; the largest machine of Ray has {largest:,.0f}"
            )

    def _submit(self, started: _StartedJob) -> None:
        job = started.job
        remote = self._task if job.memory is None else self._task.options(memory=job.memory)
        self._started[remote.remote(self._shared, job)] = started

    def wait(self, report: Report | None) -> tuple[Job, JobOutcome]:
        """Wait until a job ends, without progress reports. A job that is not started again is reported as lost."""
        while True:
            (reference, *_), _rest = self._ray.wait([*self._started], num_returns=1)
            started = self._started.pop(reference)
            try:
                outcome = self._ray.get(reference)
            except self._ray.exceptions.RuntimeEnvSetupError as error:
                raise BadInput(f"the runtime environment cannot be set up: {error}") from error
            except self._ray.exceptions.RayError as error:
                if self._is_worth_repeating(started, error):
                    self._submit(replace(started, losses=started.losses + 1))
                    continue
                seconds = time.perf_counter() - started.began
                return started.job, JobOutcome(lost=f"lost: {type(error).__name__}", seconds=seconds)
            assert isinstance(outcome, JobOutcome)
            return started.job, outcome

    def _is_worth_repeating(self, started: _StartedJob, error: Exception) -> bool:
        """Return True if a lost job may end as it is, because nothing shows that it was to blame."""
        errors = self._ray.exceptions
        if started.losses == self._retries or isinstance(error, errors.OutOfMemoryError | errors.RayTaskError):
            return False
        return not started.job.divisible or not isinstance(error, errors.WorkerCrashedError)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for reference in self._started:
            self._ray.cancel(reference, force=True)
        if self._owns_cluster:
            self._ray.shutdown()


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise BadInput(missing_package("ray", "the executor ray", "ray")) from error
    return ray


def _start_cluster(ray: Any, runtime_env: Mapping[str, Any] | None) -> None:
    options = {} if runtime_env is None else {"runtime_env": dict(runtime_env)}
    try:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="error", **options)
    except (OSError, RuntimeError, ValueError) as error:
        address = os.environ.get("RAY_ADDRESS", "none")
        raise BadInput(f"no Ray cluster (RAY_ADDRESS: {address}): {error}") from error


def _run_with_one_thread(shared: tuple[Any, ...], job: Job) -> JobOutcome:
    """Run a job as a Ray task. Several tasks share a machine, so each is limited to one thread."""
    use_one_thread()
    return make_sendable(run_job(job, shared, None))

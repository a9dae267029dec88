"""Jobs on a Ray cluster: several machines, or several GPUs (extra ``ray``).

The cluster is the one at RAY_ADDRESS (or one that ``ray start`` has started on this machine); without any, one is
started here, for as long as the run takes. Byheart has to be installed on all its machines, or come with the runtime
environment; a user's own file need not be there.

**Lost jobs.** A task that Ray's memory monitor kills is retried by Ray for ever, unless it may not be retried at all:
the counter is another one than that of ``max_retries``, and infinite, but 0 where ``max_retries`` is 0 (Ray's
documentation, "Out-of-memory prevention"). As it is, the job will not fit the next time either. So Ray retries nothing,
and what is lost is decided here:

- killed for memory (OutOfMemoryError), or its process died, as when the system's own killer took it: the job is cut in
  two, as a job that fails anywhere is. A single config that was killed for memory has failed;
- its machine died, or the process of a single config did, which may be a dying machine too: once more as it is, up to
  ``RETRIES`` times.

**Bounded.** Twice as many jobs are handed out as there are places: one at work and one waiting in each. A cluster that
grows when something waits can so double, and its new machines get theirs.

A cluster that is started here has no dashboard and reports nothing to Ray's makers (RAY_USAGE_STATS_ENABLED is 0 unless
it is set). One that ``ray start`` starts reports unless it is told so there; and told so, it still says once that it
does not report, to wherever RAY_USAGE_STATS_REPORT_URL points.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from byheart.errors import BadInput, missing
from byheart.lab.checkpoints import Job, Keeping
from byheart.lab.jobs import Result, perform
from byheart.lab.sources import Source
from byheart.progress import Report

RETRIES = 3
HANDED_OUT = 2  # jobs for each place


@dataclass(frozen=True)
class _Given:
    """A job that is out: since when, and how often it was lost before."""

    job: Job
    keeping: Keeping | None
    began: float
    lost: int = 0


class Ray:
    """Jobs as tasks of Ray, up to ``jobs`` at a time, or as many as there is room for.

    A task takes one CPU; on a GPU also ``gpus_per_job``, a share of one: tasks that share a GPU know nothing of each
    other, and each takes what memory it finds. ``runtime_env`` is what Ray calls so: a dictionary that says what its
    machines have to provide.
    """

    def __init__(
        self,
        source: Source,
        device: str = "cpu",
        jobs: int | None = None,
        *,
        gpus_per_job: float = 1.0,
        runtime_env: Mapping[str, Any] | None = None,
    ) -> None:
        if not 0 < gpus_per_job <= 1:
            raise BadInput(f"gpus_per_job is {gpus_per_job}; expected more than 0, and at most 1")
        self._ray = _import_ray()
        self._source, self._device, self._jobs = source, device, jobs
        self._ours = not self._ray.is_initialized()
        if self._ours:
            _begin(self._ray, runtime_env)
        elif runtime_env is not None:
            raise BadInput("Ray runs in this process already; expected its runtime_env to be given to ray.init")
        self._kind, self._share = ("GPU", gpus_per_job) if device.startswith("cuda") else ("CPU", 1.0)
        if not self._places():
            raise BadInput(f"the Ray cluster has no {self._kind}; expected one or more for --device {device}")
        self.workers = min(self._places(), jobs or self._places())
        needs = {"num_gpus": gpus_per_job} if self._kind == "GPU" else {"num_cpus": 1}
        self._task = self._ray.remote(max_retries=0, **needs)(_perform_alone)
        self._given: dict[Any, _Given] = {}

    @property
    def at_once(self) -> int:
        """As many as were asked for, or else as the cluster, as it is now, has room for and may get."""
        return self._jobs or HANDED_OUT * max(1, self._places())

    def _places(self) -> int:
        """Jobs that the cluster has room for: a job's share of a GPU is one GPU's."""
        return int(self._ray.cluster_resources().get(self._kind, 0)) * int(1 / self._share)

    def start(self, job: Job, keeping: Keeping | None = None) -> None:
        """Give it to the cluster."""
        self._give(_Given(job, keeping, time.perf_counter()))

    def _give(self, given: _Given) -> None:
        self._given[self._task.remote(self._source, given.job, self._device, given.keeping)] = given

    def finished(self, report: Report) -> tuple[Job, Result]:
        """Wait for one, in silence; one that is lost and not tried again is a failed one."""
        while True:
            (task, *_), _rest = self._ray.wait([*self._given], num_returns=1)
            given = self._given.pop(task)
            try:
                result = self._ray.get(task)
            except self._ray.exceptions.RuntimeEnvSetupError as error:
                raise BadInput(f"the runtime environment cannot be set up: {error}") from error
            except self._ray.exceptions.RayError as error:
                if self._is_worth_repeating(given, error):
                    self._give(replace(given, lost=given.lost + 1))
                    continue
                seconds = time.perf_counter() - given.began
                return given.job, Result((), seconds, f"lost: {type(error).__name__}")
            assert isinstance(result, Result)
            return given.job, result

    def _is_worth_repeating(self, given: _Given, error: Exception) -> bool:
        """Whether a lost job may come to its end as it is: it was not to blame, as far as can be told."""
        errors = self._ray.exceptions
        if given.lost == RETRIES or isinstance(error, errors.OutOfMemoryError | errors.RayTaskError):
            return False
        return len(given.job) == 1 or not isinstance(error, errors.WorkerCrashedError)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._given:
            self._ray.cancel(task, force=True)
        if self._ours:
            self._ray.shutdown()


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise BadInput(missing("ray", "the executor ray", "ray")) from error
    return ray


def _begin(ray: Any, runtime_env: Mapping[str, Any] | None) -> None:
    given = {} if runtime_env is None else {"runtime_env": dict(runtime_env)}
    try:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="error", **given)
    except (OSError, RuntimeError, ValueError) as error:
        address = os.environ.get("RAY_ADDRESS", "none")
        raise BadInput(f"no Ray cluster (RAY_ADDRESS: {address}): {error}") from error


def _perform_alone(source: Source, job: Job, device: str, keeping: Keeping | None) -> Result:
    """A Ray task: several share a machine, so each keeps to one thread."""
    import torch

    torch.set_num_threads(1)
    return perform(source, job, device, keeping=keeping)

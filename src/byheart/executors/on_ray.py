"""Tasks on a Ray cluster: several machines, or several GPUs (extra ``ray``).

The cluster is the one at RAY_ADDRESS (or one that ``ray start`` has started on this machine); without any, one is
started here, for as long as the work takes. Byheart has to be installed on all its machines, or come with the runtime
environment.

**Lost tasks.** A task that Ray's memory monitor kills is retried by Ray for ever, unless it may not be retried at all:
the counter is another one than that of ``max_retries``, and infinite, but 0 where ``max_retries`` is 0 (Ray's
documentation, "Out-of-memory prevention"). As it is, the task will not fit the next time either. So Ray retries
nothing, and what is lost is decided here:

- killed for memory (OutOfMemoryError), or, if it is divisible, its process died, as when the system's own killer took
  it: it is lost, and whoever gave it out may cut it in two;
- its machine died, or the process of one that is not divisible did, which may be a dying machine too: once more as it
  is, up to ``retries`` times.

**Bounded.** Twice as many tasks are handed out as there are places: one at work and one waiting in each. A cluster that
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
from byheart.executors.processes import one_thread, sendable
from byheart.executors.task import RETRIES, Outcome, Task, performed
from byheart.progress import Report

HANDED_OUT = 2  # tasks for each place


@dataclass(frozen=True)
class _Given:
    """A task that is out: since when, and how often it was lost before."""

    task: Task
    began: float
    lost: int = 0


class Ray:
    """Tasks of Ray, up to ``workers`` at a time, or as many as there is room for.

    A task takes one CPU; or else ``gpus``, a share of one: tasks that share a GPU know nothing of each other, and each
    takes what memory it finds. ``shared`` is put into Ray's object store once. ``runtime_env`` is what Ray calls so: a
    dictionary that says what its machines have to provide.
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
        self._ray = _import_ray()
        self._workers, self._retries = workers, retries
        self._ours = not self._ray.is_initialized()
        if self._ours:
            _begin(self._ray, runtime_env)
        elif runtime_env is not None:
            raise BadInput("Ray runs in this process already; expected its runtime_env to be given to ray.init")
        self._kind, self._share = ("CPU", 1.0) if gpus is None else ("GPU", gpus)
        if not self._places():
            raise BadInput(f"the Ray cluster has no {self._kind}; expected one or more")
        self.workers = min(self._places(), workers or self._places())
        needs = {"num_cpus": 1} if gpus is None else {"num_gpus": gpus}
        self._task = self._ray.remote(max_retries=0, **needs)(_performed_alone)
        self._shared = self._ray.put(shared)
        self._given: dict[Any, _Given] = {}

    @property
    def at_once(self) -> int:
        """As many as were asked for, or else as the cluster, as it is now, has room for and may get."""
        return self._workers or HANDED_OUT * max(1, self._places())

    def _places(self) -> int:
        """Tasks that the cluster has room for: a task's share of a GPU is one GPU's."""
        return int(self._ray.cluster_resources().get(self._kind, 0)) * int(1 / self._share)

    def start(self, task: Task) -> None:
        """Give it to the cluster."""
        if task.memory is not None:
            self._check_memory(task.key, task.memory)
        self._give(_Given(task, time.perf_counter()))

    def _check_memory(self, key: object, needed: int) -> None:
        """BadInput if no machine has so much: Ray would wait for one for ever."""
        most = max((node["Resources"].get("memory", 0) for node in self._ray.nodes() if node["Alive"]), default=0)
        if needed > most:
            raise BadInput(f"{key} would take {needed:,} bytes of memory; the largest machine of Ray has {most:,.0f}")

    def _give(self, given: _Given) -> None:
        task = given.task
        remote = self._task if task.memory is None else self._task.options(memory=task.memory)
        self._given[remote.remote(self._shared, task)] = given

    def finished(self, report: Report | None) -> tuple[Task, Outcome]:
        """Wait for one, in silence; one that is not tried again is lost."""
        while True:
            (reference, *_), _rest = self._ray.wait([*self._given], num_returns=1)
            given = self._given.pop(reference)
            try:
                outcome = self._ray.get(reference)
            except self._ray.exceptions.RuntimeEnvSetupError as error:
                raise BadInput(f"the runtime environment cannot be set up: {error}") from error
            except self._ray.exceptions.RayError as error:
                if self._is_worth_repeating(given, error):
                    self._give(replace(given, lost=given.lost + 1))
                    continue
                seconds = time.perf_counter() - given.began
                return given.task, Outcome(lost=f"lost: {type(error).__name__}", seconds=seconds)
            assert isinstance(outcome, Outcome)
            return given.task, outcome

    def _is_worth_repeating(self, given: _Given, error: Exception) -> bool:
        """Whether a lost task may come to its end as it is: it was not to blame, as far as can be told."""
        errors = self._ray.exceptions
        if given.lost == self._retries or isinstance(error, errors.OutOfMemoryError | errors.RayTaskError):
            return False
        return not given.task.divisible or not isinstance(error, errors.WorkerCrashedError)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for reference in self._given:
            self._ray.cancel(reference, force=True)
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


def _performed_alone(shared: tuple[Any, ...], task: Task) -> Outcome:
    """A Ray task: several share a machine, so each keeps to one thread."""
    one_thread()
    return sendable(performed(task, shared, None))

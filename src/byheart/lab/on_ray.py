"""Jobs on a Ray cluster: several machines, or several GPUs (extra ``ray``).

The cluster is the one at RAY_ADDRESS (or one that ``ray start`` has started on this machine); without any, one is
started here, for as long as the run takes. Byheart has to be installed on all its machines; a user's own file need not
be there.

A cluster that is started here has no dashboard and reports nothing to Ray's makers (RAY_USAGE_STATS_ENABLED is 0 unless
it is set). One that ``ray start`` starts reports unless it is told so there; and told so, it still says once that it
does not report, to wherever RAY_USAGE_STATS_REPORT_URL points.
"""

import os
import time
from typing import Any, Self

from byheart.errors import BadInput, missing
from byheart.lab.jobs import Job, Result, perform
from byheart.lab.sources import Source
from byheart.progress import Report

RETRIES = 3  # of a job whose machine died; what the work itself raises is a result, and not tried again
MANY = 10_000  # jobs handed out at once: Ray finds places for them, on machines that join later, too


class Ray:
    """Jobs as tasks of Ray, up to ``jobs`` at a time, or as many as there is room for.

    A task takes one CPU, or one GPU. When its machine dies Ray gives the task to another.
    """

    def __init__(self, source: Source, device: str = "cpu", jobs: int | None = None) -> None:
        self._ray = _import_ray()
        self._source, self._device = source, device
        self._ours = not self._ray.is_initialized()
        if self._ours:
            _begin(self._ray)
        kind = "GPU" if device.startswith("cuda") else "CPU"
        places = int(self._ray.cluster_resources().get(kind, 0))
        if not places:
            raise BadInput(f"the Ray cluster has no {kind}; expected one or more for --device {device}")
        self.workers = min(places, jobs or places)
        self.at_once = jobs or MANY
        needs = {"num_gpus": 1} if kind == "GPU" else {"num_cpus": 1}
        self._task = self._ray.remote(max_retries=RETRIES, **needs)(_perform_alone)
        self._given: dict[Any, tuple[Job, float]] = {}

    def start(self, job: Job) -> None:
        """Give it to the cluster."""
        self._given[self._task.remote(self._source, job, self._device)] = job, time.perf_counter()

    def finished(self, report: Report) -> tuple[Job, Result]:
        """Wait for one, in silence; one that Ray has given up is a failed one."""
        (task, *_), _rest = self._ray.wait([*self._given], num_returns=1)
        job, began = self._given.pop(task)
        try:
            result = self._ray.get(task)
        except self._ray.exceptions.RayError as error:
            return job, Result((), time.perf_counter() - began, f"lost: {type(error).__name__}")
        assert isinstance(result, Result)
        return job, result

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


def _begin(ray: Any) -> None:
    try:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
    except (OSError, RuntimeError, ValueError) as error:
        address = os.environ.get("RAY_ADDRESS", "none")
        raise BadInput(f"no Ray cluster (RAY_ADDRESS: {address}): {error}") from error


def _perform_alone(source: Source, job: Job, device: str) -> Result:
    """A Ray task: several share a machine, so each keeps to one thread."""
    import torch

    torch.set_num_threads(1)
    return perform(source, job, device)

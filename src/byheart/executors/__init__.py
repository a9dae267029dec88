"""Executors run independent jobs: in this process, in several processes of this machine, or on a Ray cluster.

A :class:`Job` is a key, a function, its arguments and the memory that it takes. An :class:`Executor` runs jobs and
returns their outcomes one by one to the process that started them; it writes nothing anywhere. All executors return the
same values, because the functions do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from byheart.errors import BadInput, check_threads
from byheart.executors.job import Executor, Job, JobOutcome, Local, run_jobs
from byheart.executors.on_ray import Ray
from byheart.executors.processes import Processes
from byheart.files.memory import format_bytes, peak_memory

__all__ = ["NAMES", "Executor", "Job", "JobOutcome", "Local", "Processes", "Ray", "Workplace", "run_jobs"]

Name: TypeAlias = Literal["local", "processes", "ray"]
NAMES: tuple[Name, ...] = get_args(Name)


@dataclass(frozen=True)
class Workplace:
    """An executor by name: ``local`` (this process), ``processes`` (one per core, or ``workers``), or ``ray``."""

    name: Name = "local"
    workers: int | None = None
    runtime_env: Mapping[str, Any] | None = None
    peaks: list[int] = field(default_factory=list, compare=False, repr=False)
    """Peak memory of the jobs' processes, in bytes, one entry per job."""

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise BadInput(f"executor is {self.name!r}; expected {', '.join(NAMES)}")
        if self.workers is not None:
            if self.name == "local":
                raise BadInput("workers are for the executors processes and ray; expected one of them too")
            check_threads(self.workers, "workers")
        if self.runtime_env is not None and self.name != "ray":
            raise BadInput("runtime_env is for the executor ray; expected that, or no runtime_env")

    @property
    def memory(self) -> dict[str, int | None]:
        """Peak memory of this process and of its largest worker, in bytes, as ``--json`` prints it."""
        return {"peak_memory": peak_memory(), "peak_memory_worker": self._worker_peak}

    @property
    def memory_text(self) -> str:
        """Peak memory of this process and of its largest worker, in words."""
        return format_bytes(peak_memory()) + (
            f", a worker {format_bytes(self._worker_peak)}" if self._worker_peak is not None else ""
        )

    @property
    def _worker_peak(self) -> int | None:
        return None if self.name == "local" else max(self.peaks, default=None)

    def open(self, *shared: Any) -> Executor:
        """Return the executor for jobs that share these arguments; as a context manager it stops its workers."""
        if self.name == "local":
            return Local(*shared)
        if self.name == "processes":
            return Processes(*shared, workers=self.workers)
        return Ray(*shared, workers=self.workers, runtime_env=self.runtime_env)

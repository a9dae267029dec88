"""Which executor somebody chose, before it is known what its workers will share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from byheart.errors import BadInput, check_threads
from byheart.executors.local import Local
from byheart.executors.on_ray import Ray
from byheart.executors.processes import Processes
from byheart.executors.task import Executor
from byheart.files.memory import peak, told

Name: TypeAlias = Literal["local", "processes", "ray"]
NAMES: tuple[Name, ...] = get_args(Name)


@dataclass(frozen=True)
class Workplace:
    """``local``: here. ``processes``: one a core, or this many ``workers``. ``ray``: a cluster (extra ``ray``)."""

    name: Name = "local"
    workers: int | None = None
    runtime_env: Mapping[str, Any] | None = None
    peaks: list[int] = field(default_factory=list, compare=False, repr=False)
    """Bytes that the processes of tasks have taken, for whoever wants to tell the most."""

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
        """Bytes that this process, and the largest of its workers, have taken at most, as ``--json`` prints them."""
        return {"peak_memory": peak(), "peak_memory_worker": self._worker}

    @property
    def memory_told(self) -> str:
        """The same for people."""
        return told(peak()) + (f", a worker {told(self._worker)}" if self._worker is not None else "")

    @property
    def _worker(self) -> int | None:
        return None if self.name == "local" else max(self.peaks, default=None)

    def open(self, *shared: Any) -> Executor:
        """The executor, for tasks that share so much; its workers begin and end with it, as a context manager."""
        if self.name == "local":
            return Local(*shared)
        if self.name == "processes":
            return Processes(*shared, workers=self.workers)
        return Ray(*shared, workers=self.workers, runtime_env=self.runtime_env)

"""Jobs on a Ray cluster: several machines, or several GPUs (extra ``ray``).

A user's own file need not be on its machines: the source goes with the jobs. What becomes of those that are lost is
said in :mod:`byheart.executors.on_ray`; a job of several configs is cut in two where one of a single config is tried
again.
"""

from collections.abc import Mapping
from typing import Any

from byheart import executors
from byheart.errors import BadInput
from byheart.lab.jobs import Jobs
from byheart.lab.sources import Source


class Ray(Jobs):
    """Jobs as tasks of Ray, up to ``jobs`` at a time, or as many as there is room for.

    On a GPU a job takes ``gpus_per_job``, a share of one. ``runtime_env`` is what Ray calls so: a dictionary that says
    what its machines have to provide.
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
        gpus = gpus_per_job if device.startswith("cuda") else None
        super().__init__(executors.Ray(source, device, workers=jobs, gpus=gpus, runtime_env=runtime_env))

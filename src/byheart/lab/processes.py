"""Jobs in several processes of this machine, each with one thread, for several CPU cores."""

from byheart import executors
from byheart.errors import BadInput
from byheart.lab.jobs import Jobs
from byheart.lab.sources import Source


class Processes(Jobs):
    """Processes, one job at a time in each; as many as there are cores if not said otherwise.

    A job whose process died has failed: a single config that kills its process would kill the next one too.
    """

    def __init__(self, source: Source, device: str = "cpu", jobs: int | None = None) -> None:
        if device != "cpu":
            raise BadInput(f"executor processes with device {device}; expected cpu (for several GPUs: --executor ray)")
        super().__init__(executors.Processes(source, device, workers=jobs, retries=0))

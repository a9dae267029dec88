"""``byheart lab save``: train one network of an experiment and save it, so that it can be certified."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from byheart.cli.lab_capacity import check_device
from byheart.cli.lab_output import Scale, progress
from byheart.cli.lab_search import settings_in
from byheart.cli.menu import about
from byheart.cli.options import Arg, Json
from byheart.cli.output import typed
from byheart.cli.result import Block, Result, dim, number
from byheart.networks.folders import TASK, replacing

if TYPE_CHECKING:  # torch is slow to import
    from byheart.lab.saving import Kept

SAVE = about(
    "Train one network of an experiment and save it with its task in a folder, to show, share or certify.",
    "byheart lab save dana-2025-2 --scale short --where head_dim=9 -o net",
    "byheart certify net --task net/task.npz --count",
)


@dataclass(frozen=True)
class SaveResult(Result):
    """A trained network that was saved, and the time that it took."""

    command: "LabSave"
    trained: "Kept"
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return the files, what the network says about itself, its size, and the command that checks it."""
        network, out = self.trained.network, self.command.out
        sizes = {"parameters": network.account.dense, "seconds": self.seconds, "check": self._check()}
        return {"network": out, "task": out / TASK, **network.about, **sizes}

    def rows(self) -> Iterator[Block]:
        """Yield the size, the metrics, and the command that checks the network."""
        about, parameters = self.trained.network.about, self.trained.network.account.dense
        title = f"{about['experiment']}, {about['scale']}: {number(parameters)} parameters"
        yield f"{title}, trained in {self.seconds:.1f} s"
        metrics = self.trained.metrics.items()
        values = (f"{name} {value if isinstance(value, str) else number(value)}" for name, value in metrics)
        yield f"measured: {', '.join(values)}"
        yield dim(f"saved in {self.command.out}; check it with:  {self._check()}")

    def _check(self) -> str:
        """Return the command that certifies the network on its task."""
        from byheart.lab.saving import to_ask_for

        claim = to_ask_for(self.trained.network, self.trained.task)
        options = "".join(f" --{name}" + f" {value}" * (value is not True) for name, value in claim.items())
        return f"byheart certify {typed(self.command.out)} --task {typed(self.command.out / TASK)}{options}"


@dataclass(frozen=True)
class LabSave:
    """Train one network of an experiment and save it together with its task."""

    experiment: Annotated[str, Arg(metavar="NAME|FILE.py", positional=True)]
    """Name of an experiment (byheart lab list), or a Python file of your own."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """Network folder to write. The task goes into it as task.npz."""
    where: tuple[str, ...] = ()
    """Settings of the config, such as head_dim=10 seed=0; name enough of them to single out one config."""
    scale: Scale = "smoke"
    """smoke: a few steps, to see that it runs. short: fewer steps than the paper's. paper: as it was published."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Device that trains the network."""
    json: Json = False

    def run(self) -> SaveResult:
        """Train the network and write it together with its task."""
        from byheart.lab.saving import kept
        from byheart.lab.sources import load
        from byheart.papers.experiments import source

        check_device(self.device)
        experiment, where = load(source(self.experiment, self.scale)), settings_in(self.where)
        began = time.perf_counter()
        with replacing(self.out) as new:
            with progress(experiment.name, quiet=self.json) as report:
                trained = kept(experiment, dict(where), device=self.device, report=report)
            trained.write(new)
        return SaveResult(self, trained, time.perf_counter() - began)

"""``byheart lab save``: one network of an experiment, trained and kept, to be certified."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from byheart.cli.lab_capacity import check_device
from byheart.cli.lab_output import Scale, progress
from byheart.cli.lab_search import settings_in
from byheart.cli.menu import about
from byheart.cli.options import Arg, Json
from byheart.cli.output import DONE, typed
from byheart.cli.result import console, number, print_json
from byheart.networks.folders import TASK, replacing

if TYPE_CHECKING:
    from byheart.lab.saving import Kept

SAVE = about(
    "Train one network of an experiment and keep it, with its task, in a folder: to show, to share, to certify.",
    "byheart lab save dana-2025-2 --scale short --where head_dim=9 -o net",
    "byheart certify net --task net/task.npz --count",
)


@dataclass(frozen=True)
class LabSave:
    """Train one network of an experiment and keep it, together with its task."""

    experiment: Annotated[str, Arg(metavar="NAME|FILE.py", positional=True)]
    """Name of an experiment (byheart lab list), or a Python file of your own."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """Network folder to write; its task is in it, as task.npz."""
    where: tuple[str, ...] = ()
    """The config with these settings, as head_dim=10 seed=0: so many that there is one."""
    scale: Scale = "smoke"
    """smoke: a few steps, to see that it runs. short: fewer steps than the paper's. paper: as it was published."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where it is trained."""
    json: Json = False

    def run(self) -> int:
        """Train, write, print."""
        from byheart.lab.saving import kept
        from byheart.lab.sources import load
        from byheart.papers.experiments import source

        check_device(self.device)
        experiment, where = load(source(self.experiment, self.scale)), settings_in(self.where)
        began = time.perf_counter()
        with replacing(self.out) as new:
            with progress(experiment.name, quiet=self.json) as report:
                made = kept(experiment, dict(where), device=self.device, report=report)
            made.write(new)
        self._print(made, time.perf_counter() - began)
        return DONE

    def _print(self, made: "Kept", seconds: float) -> None:
        about, parameters, check = made.network.about, made.network.account.dense, self._check(made)
        if self.json:
            written = {"network": str(self.out), "task": str(self.out / TASK)}
            print_json({**written, **about, "parameters": parameters, "seconds": seconds, "check": check})
            return
        out = console()
        title = f"{about['experiment']}, {about['scale']}: {number(parameters)} parameters, trained in {seconds:.1f} s"
        out.print(title, markup=False)
        measured = (
            f"{name} {number(value) if not isinstance(value, str) else value}" for name, value in made.metrics.items()
        )
        out.print(f"measured: {', '.join(measured)}", markup=False)
        out.print(f"saved in {self.out}; check it with:  {check}", style="dim", markup=False)

    def _check(self, made: "Kept") -> str:
        from byheart.lab.saving import to_ask_for

        asked = to_ask_for(made.network, made.task)
        options = "".join(f" --{name}" + f" {value}" * (value is not True) for name, value in asked.items())
        return f"byheart certify {typed(self.out)} --task {typed(self.out / TASK)}{options}"

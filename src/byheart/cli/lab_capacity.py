"""``byheart lab capacity``: train a ladder of GPTs and report how many bits they hold, beside built networks."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from byheart.cli.menu import about
from byheart.cli.options import Arg, Json
from byheart.cli.output import steps
from byheart.cli.result import Block, Cell, Result, Table, dim
from byheart.errors import BadInput

if TYPE_CHECKING:  # torch is slow to import
    from byheart.lab.experiment import Experiment
    from byheart.lab.runs import Run
    from byheart.papers.capacity import CapacityEstimate, Rung
    from byheart.papers.capacity.beside import Beside

CAPACITY = about(
    "Train a ladder of GPTs on random labels: how many bits per parameter they hold, with intervals over seeds.",
    "byheart lab capacity --parameters 1000 2000 4000 --steps 2000 -o runs/ladder --plot ladder.png",
)
TRAINED = (">parameters", ">N", ">asked for", ">rate", ">bits per parameter", "95 % interval", ">seeds", ">lost")
BUILT = ("network", ">N", ">parameters", ">bits per parameter", ">bits of a weight, at most")


@dataclass(frozen=True)
class CapacityResult(Result):
    """The most bits that trained networks of each size hold, and networks built for the same labels."""

    command: "LabCapacity"
    ladder: "Run"
    plateaus: "list[CapacityEstimate]"
    built: "list[Beside]"

    @property
    def errors(self) -> list[str]:
        """Errors of networks that failed."""
        return [f"{row.key}: {row.error}" for row in self.ladder.rows if row.status == "failed"]

    @property
    def is_true(self) -> bool:
        """False if networks failed, or none has a number."""
        return not self.ladder.failed and bool(self.plateaus)

    def as_json(self) -> dict[str, Any]:
        """Return the run with its progress and errors, the plateaus, and the built networks."""
        run = {"run": self.ladder.folder, "done": self.ladder.done, "failed": self.ladder.failed, "errors": self.errors}
        return {**run, "plateaus": self.plateaus, "built": self.built}

    def rows(self) -> Iterator[Block]:
        """Yield tables of trained and of built networks, errors, and where the run is."""
        title = f"trained: the most over N, {self.ladder.done} of {len(self.ladder.configs)} networks done"
        yield Table(title, TRAINED, [_trained_cells(point) for point in self.plateaus])
        if self.built:
            title = "built, for the labels of the first seed; every answer checked"
            yield Table(title, BUILT, [_built_cells(network) for network in self.built])
        if any(point.edge for point in self.plateaus):
            yield dim("the most was held where the most was asked for: larger --demands may show more")
        for error in self.errors:
            yield f"failed: {error}"
        yield dim(f"saved in {self.ladder.folder}; draw it with:  byheart lab plot {self.ladder.folder}")
        if self.command.plot is not None and self.plateaus:
            yield f"drew {self.command.plot}"


def _trained_cells(point: "CapacityEstimate") -> list[Cell]:
    interval = "–" if point.low is None else f"{point.low:.2f} to {point.high:.2f}"
    training = f"{point.demand:g}", f"{point.learning_rate:g}"
    bits = f"{point.bits_per_parameter:.2f}"
    return [point.parameters, point.examples, *training, bits, interval, point.seeds, point.lost]


def _built_cells(network: "Beside") -> list[Cell]:
    bits = f"{network.bits_per_parameter:.2f}"
    return [network.name, network.examples, network.parameters, bits, network.weight_bits]


@dataclass(frozen=True)
class LabCapacity:
    """Train a ladder of GPTs on random labels and report how many bits per parameter they hold."""

    scale: Literal["smoke", "short", "paper"] = "smoke"
    """The ladder to start from; options below replace its own. smoke: seconds. paper: for a GPU."""
    parameters: tuple[int, ...] = ()
    """Sizes of the ladder: largest numbers of parameters, all counted."""
    demands: tuple[float, ...] = ()
    """Bits of labels asked for per parameter; the most that is held over all of them counts."""
    learning_rates: tuple[float, ...] = ()
    """Largest learning rates to try; the best counts."""
    seeds: int | None = None
    """Repetitions, each with its own task and its own training."""
    steps: int | None = None
    """Training steps of each network."""
    labels: int | None = None
    """Number of labels, C."""
    vocab: int | None = None
    """Number of different tokens."""
    length: int | None = None
    """Number of tokens of a context, n."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Device that trains the networks."""
    out: Annotated[Path | None, Arg(aliases=("-o",))] = None
    """Folder of the run (default: runs/capacity-SCALE)."""
    resume: bool = False
    """Continue the run in the folder."""
    alone: bool = False
    """Do not build networks for the same labels."""
    plot: Path | None = None
    """Picture to draw (.png or .svg)."""
    json: Json = False

    def run(self) -> CapacityResult:
        """Train the ladder, build networks for the same labels, and draw both."""
        from byheart.lab.runs import Run
        from byheart.papers.capacity import plateaus
        from byheart.papers.capacity.beside import build_beside, labels_of
        from byheart.report.style import check_picture

        if self.plot is not None:
            check_picture(self.plot)
        experiment = self._experiment()
        folder = self.out or Path("runs") / f"capacity-{experiment.scale}"
        begin = Run.resume if self.resume else Run.create
        with begin(folder, experiment) as run:
            self._train(run, experiment)
        best = plateaus(run.table)
        with steps("building", quiet=self.json) as report:
            beside = [] if self.alone else build_beside(labels_of(run.table), report)
        if self.plot is not None and best:
            from byheart.papers.capacity.capacity_page import capacity_figure
            from byheart.report.drawing import draw

            draw(capacity_figure(run.table, beside), self.plot)
        return CapacityResult(self, run, best, beside)

    def _experiment(self) -> "Experiment":
        """Return the scale's ladder if no option changes it, or else one with these options.

        All that the options leave open is as the scale has it, with the training of its largest size.
        """
        from byheart.papers.capacity import experiment, ladder

        whole = experiment(self.scale)
        own = {name: getattr(self, name) for name in ("steps", "labels", "vocab", "length")}
        options = (self.parameters, self.demands, self.learning_rates, self.seeds, *own.values())
        if all(value is None or value == () for value in options):
            return whole
        sizes: list[int] = sorted({rung.most_parameters for rung in whole.configs})
        largest: list[Rung] = [rung for rung in whole.configs if rung.most_parameters == sizes[-1]]
        fixed = {name: getattr(largest[0], name) if value is None else value for name, value in own.items()}
        return ladder(
            self.parameters or sizes,
            self.demands or sorted({rung.demand for rung in largest}),
            self.seeds if self.seeds is not None else 1 + max(rung.seed for rung in largest),
            learning_rates=self.learning_rates or sorted({rung.learning_rate for rung in largest}),
            batch=largest[0].batch,
            **fixed,
        )

    def _train(self, run: "Run", experiment: "Experiment") -> None:
        from byheart.executors import Local
        from byheart.lab.jobs import execute
        from byheart.lab.sources import Given

        check_device(self.device)
        with steps("training", quiet=self.json) as report, Local(Given(experiment)) as executor:
            progress = execute(run, experiment, executor, report, device=self.device)
        for note in progress.notes:
            sys.stderr.write(f"{note}\n")


def check_device(device: str) -> None:
    """Raise BadInput if this machine has no such device."""
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise BadInput("--device cuda: PyTorch finds no GPU here; expected cpu")

"""``byheart lab capacity``: how many bits trained networks hold, by size, and built ones beside them."""

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from byheart.cli.menu import about
from byheart.cli.options import Arg, Json
from byheart.cli.output import DONE, NOT_TRUE, steps
from byheart.cli.result import console, number, print_json, table
from byheart.errors import BadInput

if TYPE_CHECKING:
    from byheart.lab.experiment import Experiment
    from byheart.lab.runs import Run
    from byheart.papers.capacity.beside import Beside
    from byheart.papers.capacity.ladder import CapacityEstimate, Rung

CAPACITY = about(
    "Train a ladder of GPTs on random labels: how many bits per parameter they hold, with intervals over seeds.",
    "byheart lab capacity --parameters 1000 2000 4000 --steps 2000 -o runs/ladder --plot ladder.png",
)


@dataclass(frozen=True)
class LabCapacity:
    """Train a ladder of GPTs on random labels, and say how many bits per parameter they hold."""

    scale: Literal["smoke", "short", "paper"] = "smoke"
    """The ladder to start from; what is given below replaces its own. smoke: seconds. paper: for a GPU."""
    parameters: tuple[int, ...] = ()
    """Sizes of the ladder: at most so many parameters, all counted."""
    demands: tuple[float, ...] = ()
    """Bits of labels asked for per parameter; the most that is held over all of them counts."""
    learning_rates: tuple[float, ...] = ()
    """Largest learning rates to try; the best counts."""
    seeds: int | None = None
    """Repetitions, each with its own task and its own training."""
    steps: int | None = None
    """Training steps of each network."""
    labels: int | None = None
    """Labels in all, C."""
    vocab: int | None = None
    """Tokens in all."""
    length: int | None = None
    """Tokens of a context, n."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where networks are trained."""
    out: Annotated[Path | None, Arg(aliases=("-o",))] = None
    """Folder of the run; runs/capacity-SCALE if not given."""
    resume: bool = False
    """Continue the run in the folder."""
    alone: bool = False
    """Build no networks for the same labels, to stand beside."""
    plot: Path | None = None
    """Draw it into this picture (.png or .svg)."""
    json: Json = False

    def run(self) -> int:
        """Train, build, print, draw; exit code 1 if networks failed."""
        from byheart.lab.runs import Run
        from byheart.papers.capacity.beside import build_beside, labels_of
        from byheart.papers.capacity.ladder import plateaus
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
            from byheart.papers.capacity.capacity_figures import capacity_figure
            from byheart.report.drawing import draw

            draw(capacity_figure(run.table, beside), self.plot)
        self._say(run, best, beside)
        return NOT_TRUE if run.failed or not best else DONE

    def _experiment(self) -> "Experiment":
        """The scale's ladder; or, if anything is given, its sizes as its largest is trained, with that in place."""
        from byheart.papers.capacity.ladder import experiment, ladder

        whole = experiment(self.scale)
        own = {name: getattr(self, name) for name in ("steps", "labels", "vocab", "length")}
        given = (self.parameters, self.demands, self.learning_rates, self.seeds, *own.values())
        if all(value is None or value == () for value in given):
            return whole
        sizes: list[int] = sorted({rung.most_parameters for rung in whole.configs})
        known: list[Rung] = [rung for rung in whole.configs if rung.most_parameters == sizes[-1]]
        fixed = {name: getattr(known[0], name) if value is None else value for name, value in own.items()}
        return ladder(
            self.parameters or sizes,
            self.demands or sorted({rung.demand for rung in known}),
            self.seeds if self.seeds is not None else 1 + max(rung.seed for rung in known),
            learning_rates=self.learning_rates or sorted({rung.learning_rate for rung in known}),
            batch=known[0].batch,
            **fixed,
        )

    def _train(self, run: "Run", experiment: "Experiment") -> None:
        from byheart.executors import Local
        from byheart.lab.jobs import execute
        from byheart.lab.sources import Given

        check_device(self.device)
        with steps("training", quiet=self.json) as report, Local(Given(experiment)) as executor:
            reached = execute(run, experiment, executor, report, device=self.device)
        for note in reached.notes:
            sys.stderr.write(f"{note}\n")

    def _say(self, run: "Run", best: "list[CapacityEstimate]", beside: "list[Beside]") -> None:
        errors = [f"{row.key}: {row.error}" for row in run.rows if row.status == "failed"]
        if self.json:
            shown: dict[str, Any] = {"run": str(run.folder), "done": run.done, "failed": run.failed, "errors": errors}
            print_json(shown | {"plateaus": [asdict(b) for b in best], "built": [asdict(b) for b in beside]})
            return
        out = console()
        out.print(_trained_table(run, best))
        if beside:
            out.print(_built_table(beside))
        if any(point.edge for point in best):
            out.print("the most was held where the most was asked for: larger --demands may show more", style="dim")
        for error in errors:
            out.print(f"failed: {error}", markup=False)
        out.print(f"saved in {run.folder}; draw it with:  byheart lab plot {run.folder}", style="dim", markup=False)
        if self.plot is not None and best:
            out.print(f"drew {self.plot}", markup=False)


def _trained_table(run: "Run", best: "list[CapacityEstimate]") -> Any:
    columns = (">parameters", ">N", ">asked for", ">rate", ">bits per parameter", "95 % interval", ">seeds", ">lost")
    rows = table(f"trained: the most over N, {run.done} of {len(run.configs)} networks done", *columns)
    for point in best:
        interval = "–" if point.low is None else f"{point.low:.2f} to {point.high:.2f}"
        numbers = (number(point.parameters), number(point.examples), f"{point.demand:g}", f"{point.learning_rate:g}")
        rows.add_row(*numbers, f"{point.bits_per_parameter:.2f}", interval, number(point.seeds), number(point.lost))
    return rows


def _built_table(beside: "list[Beside]") -> Any:
    columns = ("network", ">N", ">parameters", ">bits per parameter", ">bits of a weight, at most")
    rows = table("built, for the labels of the first seed; every answer checked", *columns)
    for each in beside:
        sizes = number(each.examples), number(each.parameters)
        rows.add_row(each.name, *sizes, f"{each.bits_per_parameter:.2f}", number(each.weight_bits))
    return rows


def check_device(device: str) -> None:
    """BadInput if there is no such device here."""
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise BadInput("--device cuda: PyTorch finds no GPU here; expected cpu")

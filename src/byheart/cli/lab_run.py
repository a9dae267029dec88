"""``byheart lab run``, and what all commands that train have in common."""

import sys
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

from byheart.cli.lab_capacity import check_device
from byheart.cli.lab_output import Scale, print_failures, progress, state
from byheart.cli.menu import about
from byheart.cli.options import Arg, Json
from byheart.cli.output import DONE, NOT_TRUE
from byheart.cli.result import console, number, print_json
from byheart.errors import BadInput
from byheart.files.untrusted import read_json

if TYPE_CHECKING:
    from byheart.executors import Executor
    from byheart.lab.jobs import Part, Progress
    from byheart.lab.runs import Run
    from byheart.lab.sources import Source

RUN = about(
    "Run an experiment: train all its models, and keep every result in a folder as soon as it is there.",
    "byheart lab run dana-2025-1 --scale short -o runs/dana",
    "byheart lab run dana-2025-1 --scale short -o runs/dana --resume # after whatever happened",
)


@dataclass(frozen=True, kw_only=True)
class TrainingCommand:
    """Where models are trained, for how long, and where results go."""

    scale: Scale = "smoke"
    """smoke: a few steps, to see that it runs. short: minutes, the shape of the results. paper: as it was published."""
    out: Annotated[Path | None, Arg(aliases=("-o",))] = None
    """Folder of the run; runs/NAME-SCALE if not given."""
    resume: bool = False
    """Continue the run in the folder: what is done stays, what failed is tried again. Without one there, begin."""
    time_limit: Annotated[float | None, Arg(metavar="SECONDS")] = None
    """Stop after so many seconds: jobs under way are kept as they are, and --resume goes on with them."""
    checkpoint_every: Annotated[float, Arg(metavar="SECONDS")] = 60.0
    """How often jobs under way are kept in the folder: what is killed loses no more than that."""
    executor: Literal["local", "processes", "ray"] = "local"
    """local: here. processes: one a CPU core. ray: a Ray cluster, that at RAY_ADDRESS or else one on this machine."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where models are trained."""
    jobs: int | None = None
    """So many jobs at a time, for processes and ray; as many as there are cores (or GPUs) if not given."""
    gpus_per_job: float | None = None
    """For ray with --device cuda: the share of a GPU that a job takes; 1 if not given."""
    runtime_env: Annotated[Path | None, Arg(metavar="FILE.json")] = None
    """For ray: what its machines have to provide, as Ray's runtime environments say it."""
    json: Json = False

    def run(self) -> int:
        """Train the pending models of the folder's run, and print the results; exit code 1 if models failed."""
        from byheart.lab.jobs import execute
        from byheart.lab.runs import Run
        from byheart.lab.sources import load

        source, part = self._source(), self._part()
        experiment = load(source)
        suffix = "" if part is None else f"-{part.number}-of-{part.of}"
        folder = self.out or Path("runs") / f"{experiment.name}-{experiment.scale}{suffix}"
        if self.time_limit is not None and not self.time_limit > 0:
            raise BadInput(f"--time-limit is {self.time_limit:g}; expected more than 0 seconds")
        if not self.checkpoint_every > 0:
            raise BadInput(f"--checkpoint-every is {self.checkpoint_every:g}; expected more than 0 seconds")
        begin = Run.resume if self.resume else Run.create
        with self._executor(source) as executor, begin(folder, experiment, source.text) as run:
            try:
                with progress(experiment.name, quiet=self.json) as report:
                    reached = execute(
                        run,
                        experiment,
                        executor,
                        report,
                        device=self.device,
                        part=part,
                        seconds=self.time_limit,
                        checkpoint_every=self.checkpoint_every,
                    )
            except KeyboardInterrupt:
                sys.stderr.write(f"stopped with {run.done} of {len(run.configs)} models done; {self.again(folder)}\n")
                raise
        self.show(run, reached, part)
        return NOT_TRUE if reached.failed else DONE

    def _source(self) -> "Source":
        """Return where the experiment comes from."""
        raise NotImplementedError

    def _part(self) -> "Part | None":
        """Return the part of the experiment to execute; None for all of it."""
        return None

    def _executor(self, source: "Source") -> "Executor":
        from byheart import executors

        if self.jobs is not None and self.jobs < 1:
            raise BadInput(f"--jobs is {self.jobs}; expected at least 1")
        if self.executor == "ray":
            return self._ray(source)
        for flag in ("gpus_per_job", "runtime_env"):
            if getattr(self, flag) is not None:
                raise BadInput(f"--{flag.replace('_', '-')} is for --executor ray; omit it")
        check_device(self.device)
        if self.executor == "processes":
            if self.device != "cpu":
                what = f"executor processes with device {self.device}"
                raise BadInput(f"{what}; expected cpu (for several GPUs: --executor ray)")
            return executors.Processes(source, workers=self.jobs, retries=0)
        if self.jobs is not None:
            raise BadInput("--jobs is for --executor processes or ray; omit it")
        return executors.Local(source)

    def _ray(self, source: "Source") -> "Executor":
        from byheart import executors

        if self.gpus_per_job is not None and self.device != "cuda":
            raise BadInput("--gpus-per-job is for --device cuda; omit it")
        share = 1.0 if self.gpus_per_job is None else self.gpus_per_job
        gpus = share if self.device == "cuda" else None
        environment = None if self.runtime_env is None else read_json(self.runtime_env)
        return executors.Ray(source, workers=self.jobs, gpus=gpus, runtime_env=environment)

    def show(self, run: "Run", reached: "Progress", part: "Part | None") -> None:
        """Print the progress of the run, and what to do next."""
        rates = {"models_per_second": reached.models_per_second, "steps_per_second": reached.steps_per_second}
        if self.json:
            left = {"left": reached.left, "under_way": reached.under_way, "notes": reached.notes}
            times = {"done_before": reached.earlier, **left, "seconds": reached.seconds}
            print_json({**state(run), "part": None if part is None else str(part), **times, **rates})
            return
        earlier = f" ({number(reached.earlier)} of them earlier)" if reached.earlier else ""
        ended = "nothing came to its end" if reached.under_way else "nothing was begun"
        none = ended if reached.left else "nothing was left to do"
        rate = f"{rates['models_per_second']:.3g} models/s" if reached.now else none
        if reached.steps:
            rate += f", {number(round(rates['steps_per_second']))} steps/s"
        done = f"{number(reached.done)} of {number(reached.models)} models done{earlier}"
        what = f"{run.name}, {run.about['scale']}{'' if part is None else f', part {part}'}"
        out = console()
        out.print(f"{what}: {done}, {reached.seconds:.1f} s, {rate}", markup=False)
        print_failures(run)
        out.print(f"saved in {run.folder}; see it with:  byheart lab show {run.folder}", style="dim", markup=False)
        for note in reached.notes:
            out.print(note, style="dim", markup=False)
        if reached.left:
            kept = f", {number(reached.under_way)} of them under way and kept" if reached.under_way else ""
            over = f"the time is over with {number(reached.left)} models left{kept}"
            out.print(f"{over}; {self.again(run.folder)}", style="dim", markup=False)
        elif reached.failed:
            out.print(f"for the failed ones, {self.again(run.folder)}", style="dim", markup=False)

    def again(self, folder: Path) -> str:
        """The command that goes on in the folder."""
        words = [*self.command, "--scale", self.scale, "--out", str(folder), "--resume"]
        told = ("scale", "out", "resume", "json")
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in told and field.default is not MISSING and value != field.default:
                words += [f"--{field.name.replace('_', '-')}", *given(value)]
        return f"go on with:  {' '.join(map(quote, words))}"

    @property
    def command(self) -> list[str]:
        """The words of the command that have no flag."""
        raise NotImplementedError


def given(value: object) -> list[str]:
    """A flag's value as it is given on the command line, exactly.

    >>> given((0.1, 100.0)), given(True)
    (['0.1', '100'], [])
    """
    if isinstance(value, tuple):
        return [word for item in value for word in given(item)]
    return [] if value is True else [str(value).removesuffix(".0") if isinstance(value, float) else str(value)]


@dataclass(frozen=True)
class RunExperiment(TrainingCommand):
    """Run an experiment: train all its models, and keep every result in a folder as soon as it is there."""

    experiment: Annotated[str, Arg(metavar="NAME|FILE.py", positional=True)]
    """Name of an experiment (byheart lab list), or a Python file of your own: it defines CONFIGS, a list of configs."""
    part: Annotated[str | None, Arg(metavar="K/M")] = None
    """Only the K-th of M parts, in a folder of its own (runs/NAME-SCALE-K-of-M); byheart lab merge unites them."""

    def _source(self) -> "Source":
        from byheart.papers.experiments import source

        return source(self.experiment, self.scale)

    def _part(self) -> "Part | None":
        from byheart.lab.jobs import Part

        if self.part is None:
            return None
        place, _, of = self.part.partition("/")
        if not (place.isdecimal() and of.isdecimal()):
            raise BadInput(f"--part is {self.part!r}; expected K/M, as 2/8 for the second of eight parts")
        return Part(int(place), int(of))

    @property
    def command(self) -> list[str]:
        """The words of the command that have no flag."""
        return ["byheart", "lab", "run", self.experiment]

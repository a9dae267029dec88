"""``byheart lab run``, and the base of all commands that train."""

import sys
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

from byheart.cli.lab_capacity import check_device
from byheart.cli.lab_output import Scale, failures, progress, state
from byheart.cli.menu import about
from byheart.cli.options import Arg, Json
from byheart.cli.result import Block, Result, dim, number
from byheart.errors import BadInput
from byheart.files.untrusted import read_json

if TYPE_CHECKING:  # torch is slow to import
    from byheart.executors import Executor
    from byheart.lab.jobs import Part, Progress
    from byheart.lab.runs import Run
    from byheart.lab.sources import Source

RUN = about(
    "Train all models of an experiment, and keep every result in a folder as soon as it is there.",
    "byheart lab run dana-2025-1 --scale short -o runs/dana",
    "byheart lab run dana-2025-1 --scale short -o runs/dana --resume # after any interruption",
)


@dataclass(frozen=True, kw_only=True)
class TrainingCommand:
    """Options of training: the place, the time, and the folder of the results."""

    scale: Scale = "smoke"
    """smoke: a few steps, to see that it runs. short: minutes, for the shape of the results. paper: as published."""
    out: Annotated[Path | None, Arg(aliases=("-o",))] = None
    """Folder of the run (default: runs/NAME-SCALE)."""
    resume: bool = False
    """Continue the run in the folder: done models stay, failed ones are tried again. If there is no run, begin one."""
    time_limit: Annotated[float | None, Arg(metavar="SECONDS")] = None
    """Stop after this time. Jobs under way are kept as they are, and --resume continues them."""
    checkpoint_every: Annotated[float, Arg(metavar="SECONDS")] = 60.0
    """Time between checkpoints of jobs under way; a killed job loses no more than this."""
    executor: Literal["local", "processes", "ray"] = "local"
    """local: this process. processes: one per CPU core. ray: the Ray cluster at RAY_ADDRESS, or one on this machine."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Device that trains the models."""
    jobs: int | None = None
    """Number of jobs at a time, for processes and ray (default: the number of cores or GPUs)."""
    gpus_per_job: float | None = None
    """Share of a GPU that a job takes, for ray with --device cuda (default: 1)."""
    runtime_env: Annotated[Path | None, Arg(metavar="FILE.json")] = None
    """Ray runtime environment, for ray: what its machines have to provide."""
    json: Json = False

    def run(self) -> "TrainingResult":
        """Train the pending models of the run in the folder."""
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
                sys.stderr.write(
                    f"stopped with {run.done} of {len(run.configs)} models done; {self.resume_hint(folder)}\n"
                )
                raise
        return self.result(run, reached, part)

    def _source(self) -> "Source":
        """Return the source of the experiment."""
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
                message = f"executor processes with device {self.device}"
                raise BadInput(f"{message}; expected cpu (for several GPUs: --executor ray)")
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

    def result(self, run: "Run", progress: "Progress", part: "Part | None") -> "TrainingResult":
        """Return the result to print."""
        return TrainingResult(self, run, progress, part)

    def resume_hint(self, folder: Path) -> str:
        """Return the command that continues the run in the folder."""
        words = [*self.command, "--scale", self.scale, "--out", str(folder), "--resume"]
        for field in fields(self):
            value = getattr(self, field.name)
            is_repeated = field.name not in ("scale", "out", "resume", "json") and field.default is not MISSING
            if is_repeated and value != field.default:
                words += [f"--{field.name.replace('_', '-')}", *flag_words(value)]
        return f"go on with:  {' '.join(map(quote, words))}"

    @property
    def command(self) -> list[str]:
        """Words of the command that have no flag, or a required one."""
        raise NotImplementedError


@dataclass(frozen=True)
class TrainingResult(Result):
    """A run, and the progress that a session made on it or on a part of it."""

    command: TrainingCommand
    run: "Run"
    progress: "Progress"
    part: "Part | None"

    def as_json(self) -> dict[str, Any]:
        """Return the state of the run, and the progress and the speed of the session."""
        progress = self.progress
        left = {"left": progress.left, "under_way": progress.under_way, "notes": progress.notes}
        times = {"done_before": progress.earlier, **left, "seconds": progress.seconds}
        rates = {"models_per_second": progress.models_per_second, "steps_per_second": progress.steps_per_second}
        return {**state(self.run), "part": None if self.part is None else str(self.part), **times, **rates}

    def rows(self) -> Iterator[Block]:
        """Yield the progress, the failures, and what to do next."""
        run, progress, hint = self.run, self.progress, self.command.resume_hint(self.run.folder)
        earlier = f" ({number(progress.earlier)} of them earlier)" if progress.earlier else ""
        done = f"{number(progress.done)} of {number(progress.models)} models done{earlier}"
        part = "" if self.part is None else f", part {self.part}"
        yield f"{run.name}, {run.about['scale']}{part}: {done}, {progress.seconds:.1f} s, {self._speed()}"
        yield from failures(run)
        yield dim(f"saved in {run.folder}; see it with:  byheart lab show {run.folder}")
        yield from map(dim, progress.notes)
        if progress.left:
            kept = f", {number(progress.under_way)} of them under way and kept" if progress.under_way else ""
            yield dim(f"the time is over with {number(progress.left)} models left{kept}; {hint}")
        elif progress.failed:
            yield dim(f"for the failed ones, {hint}")

    def _speed(self) -> str:
        """Return the speed of the session, or why it finished no model."""
        progress = self.progress
        if progress.now:
            speed = f"{progress.models_per_second:.3g} models/s"
        elif progress.left:
            speed = "no model was finished" if progress.under_way else "no model was started"
        else:
            speed = "nothing was left to do"
        return speed + (f", {number(round(progress.steps_per_second))} steps/s" if progress.steps else "")

    @property
    def is_true(self) -> bool:
        """False if models failed."""
        return not self.progress.failed


def flag_words(value: object) -> list[str]:
    """Return the words that give a flag this value on the command line, exactly.

    >>> flag_words((0.1, 100.0)), flag_words(True)
    (['0.1', '100'], [])
    """
    if isinstance(value, tuple):
        return [word for item in value for word in flag_words(item)]
    return [] if value is True else [str(value).removesuffix(".0") if isinstance(value, float) else str(value)]


@dataclass(frozen=True)
class RunExperiment(TrainingCommand):
    """Train all models of an experiment, and keep every result in a folder as soon as it is there."""

    experiment: Annotated[str, Arg(metavar="NAME|FILE.py", positional=True)]
    """Name of an experiment (byheart lab list), or your own Python file, which defines CONFIGS, a list of configs."""
    part: Annotated[str | None, Arg(metavar="K/M")] = None
    """Train only the K-th of M parts, in its own folder (runs/NAME-SCALE-K-of-M); byheart lab merge joins parts."""

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
        """Words of the command that have no flag."""
        return ["byheart", "lab", "run", self.experiment]

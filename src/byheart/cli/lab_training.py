"""``byheart lab run | search | save | capacity``: training."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from byheart.cli.arguments import words_of
from byheart.cli.lab_results import Scale, failures, mean, run_state, setting
from byheart.cli.options import Arg, Json
from byheart.cli.output import steps, typed
from byheart.cli.result import Block, Cell, Result, Table, dim, number
from byheart.errors import BadInput
from byheart.files.untrusted import read_json
from byheart.networks.folders import TASK, replacing
from byheart.progress import Report

if TYPE_CHECKING:  # torch is slow to import
    from byheart.executors import Executor
    from byheart.lab.experiment import Experiment
    from byheart.lab.jobs import Part, Progress
    from byheart.lab.runs import Run
    from byheart.lab.saving import Kept
    from byheart.lab.search import Tried
    from byheart.lab.sources import Source
    from byheart.papers.capacity.beside import Beside
    from byheart.papers.capacity.ladder import CapacityEstimate

SECONDS_PER_LINE = 30.0
"""Seconds between lines of progress if stderr is no terminal."""

TRAINED = (">parameters", ">N", ">asked for", ">rate", ">bits per parameter", "95 % interval", ">seeds", ">lost")
BUILT = ("network", ">N", ">parameters", ">bits per parameter", ">bits of a weight, at most")


@contextmanager
def progress(title: str, *, quiet: bool) -> Iterator[Report | None]:
    """Show a progress bar, or a line every :data:`SECONDS_PER_LINE` if stderr is no terminal."""
    with steps(title, quiet=quiet) as bar:
        yield bar if bar is not None or quiet else _ProgressLines(title)


class _ProgressLines:
    """Progress as lines on stderr, at most one per :data:`SECONDS_PER_LINE`."""

    def __init__(self, title: str) -> None:
        self.title, self.written_at = title, time.monotonic()

    def __call__(self, done: int, total: int, note: str = "", /) -> None:
        if time.monotonic() - self.written_at >= SECONDS_PER_LINE:
            self.written_at = time.monotonic()
            sys.stderr.write(f"{self.title}: {number(done)} of {number(total)} models{f', {note}' if note else ''}\n")


def check_device(device: str) -> None:
    """Raise BadInput if this machine has no such device."""
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise BadInput("--device cuda: PyTorch finds no GPU here; expected cpu")


@dataclass(frozen=True, kw_only=True)
class TrainingCommand:
    """Options of training: the place, the time, and the folder of the results."""

    verb: ClassVar[str]
    """The command's name in the menu of the lab."""
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
        for flag, value in (("--time-limit", self.time_limit), ("--checkpoint-every", self.checkpoint_every)):
            if value is not None and not value > 0:
                raise BadInput(f"{flag} is {value:g}; expected more than 0 seconds")
        begin = Run.resume if self.resume else Run.create
        with self._executor(source) as executor, begin(folder, experiment, source.text) as run:
            limits: dict[str, Any] = {"seconds": self.time_limit, "checkpoint_every": self.checkpoint_every}
            try:
                with progress(experiment.name, quiet=self.json) as report:
                    reached = execute(run, experiment, executor, report, device=self.device, part=part, **limits)
            except KeyboardInterrupt:
                done = f"stopped with {run.done} of {len(run.configs)} models done"
                sys.stderr.write(f"{done}; {self.resume_hint(folder)}\n")
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

        is_on_gpu = self.device == "cuda"
        if self.jobs is not None and self.jobs < 1:
            raise BadInput(f"--jobs is {self.jobs}; expected at least 1")
        if self.executor == "ray":
            if self.gpus_per_job is not None and not is_on_gpu:
                raise BadInput("--gpus-per-job is for --device cuda; omit it")
            share = 1.0 if self.gpus_per_job is None else self.gpus_per_job
            environment = None if self.runtime_env is None else read_json(self.runtime_env)
            gpus = share if is_on_gpu else None
            return executors.Ray(source, workers=self.jobs, gpus=gpus, runtime_env=environment)
        for flag in ("gpus_per_job", "runtime_env"):
            if getattr(self, flag) is not None:
                raise BadInput(f"--{flag.replace('_', '-')} is for --executor ray; omit it")
        check_device(self.device)
        if self.executor == "processes":
            if is_on_gpu:
                problem = f"executor processes with device {self.device}"
                raise BadInput(f"{problem}; expected cpu (for several GPUs: --executor ray)")
            return executors.Processes(source, workers=self.jobs, retries=0)
        if self.jobs is not None:
            raise BadInput("--jobs is for --executor processes or ray; omit it")
        return executors.Local(source)

    def result(self, run: "Run", progress: "Progress", part: "Part | None") -> "TrainingResult":
        """Return the result to print."""
        return TrainingResult(self, run, progress, part)

    def resume_hint(self, folder: Path) -> str:
        """Return the command that continues the run in the folder."""
        required = [field.name for field in fields(self) if field.default is MISSING]
        options = [name for name in vars(self) if name not in (*required, "scale", "out", "resume", "json")]
        place = f"--scale {self.scale} --out {typed(folder)} --resume"
        words = (f"byheart lab {self.verb}", words_of(self, *required), place, words_of(self, *options))
        return f"go on with:  {' '.join(filter(None, words))}"


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
        return {**run_state(self.run), "part": None if self.part is None else str(self.part), **times, **rates}

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


@dataclass(frozen=True)
class LabRun(TrainingCommand):
    """Train all models of an experiment, and keep every result in a folder as soon as it is there."""

    verb = "run"
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


def settings_in(where: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the names and values of ``--where``.

    >>> settings_in(("heads=20",))
    (('heads', '20'),)
    """
    for word in where:
        if "=" not in word:
            raise BadInput(f"--where has {word!r}; expected NAME=VALUE, as heads=20")
    pairs = (word.partition("=") for word in where)
    return tuple((name, value) for name, _, value in pairs)


@dataclass(frozen=True)
class LabSearch(TrainingCommand):
    """Train configs of an experiment with each learning rate of a grid, and mark the best one."""

    verb = "search"
    experiment: Annotated[str, Arg(metavar="NAME|FILE.py", positional=True)]
    """Name of an experiment (byheart lab list), or a Python file of your own, whose configs have a learning_rate."""
    learning_rates: tuple[float, ...]
    """Learning rates of the grid, two or more."""
    where: tuple[str, ...] = ()
    """Search only configs with these settings, such as heads=20 head_dim=10."""
    metric: str = "accuracy"
    """Metric to compare by its mean over the seeds."""
    lowest: bool = False
    """Prefer the lowest mean, as for a loss."""

    def _source(self) -> "Source":
        from byheart.lab.search import Search
        from byheart.lab.sources import load
        from byheart.papers.experiments import check_metric, source

        searched = source(self.experiment, self.scale)
        origin = Search(searched, self.learning_rates, settings_in(self.where))
        load(origin)
        check_metric(searched, self.metric)
        return origin

    def result(self, run: "Run", progress: "Progress", part: "Part | None") -> "SearchResult":
        """Return the rates that were tried, with the best one marked."""
        from byheart.lab.search import tried

        rates = tried(run.rows, self.metric, lowest=self.lowest) if run.done else []
        return SearchResult(self, run, progress, part, rates)


@dataclass(frozen=True)
class SearchResult(TrainingResult):
    """Learning rates of a run, with the best one marked."""

    command: LabSearch
    rates: "list[Tried]"

    def as_json(self) -> dict[str, Any]:
        """Return the state of the run, and all rates that were tried."""
        rates = {"metric": self.command.metric, "tried": self.rates}
        return {**run_state(self.run), "left": self.progress.left, **rates}

    def rows(self) -> Iterator[Block]:
        """Yield a table of the rates, and the progress of the run."""
        metric, rates = self.command.metric, self.rates
        if rates:
            names = [f">{name}" for name in (*rates[0].settings, "learning_rate", metric, "models")]
            yield Table(f"learning rates by {metric}", [*names, ""], [_cells(rate) for rate in rates])
        yield from super().rows()


def _cells(rate: "Tried") -> list[Cell]:
    remark = "best, at the end of the grid: try beyond" if rate.edge else "best" if rate.best else ""
    models = None if rate.measured is None else rate.measured.models
    values = map(setting, (*rate.settings.values(), rate.learning_rate))
    return [*values, mean(rate.measured), models, remark]


@dataclass(frozen=True)
class LabSave:
    """Train one network of an experiment and save it with its task in a folder, to show, share or certify."""

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

    def run(self) -> "SaveResult":
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


@dataclass(frozen=True)
class SaveResult(Result):
    """A trained network that was saved, and the time that it took."""

    command: LabSave
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
class LabCapacity:
    """Train a ladder of GPTs on random labels: how many bits per parameter they hold, with intervals over seeds."""

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

    def run(self) -> "CapacityResult":
        """Train the ladder, build networks for the same labels, and draw both."""
        from byheart.lab.runs import Run
        from byheart.papers.capacity.beside import build_beside, labels_of
        from byheart.papers.capacity.ladder import ladder_like, plateaus
        from byheart.report.style import check_picture

        if self.plot is not None:
            check_picture(self.plot)
        sizes = {name: getattr(self, name) for name in ("steps", "labels", "vocab", "length")}
        experiment = ladder_like(self.scale, self.parameters, self.demands, self.learning_rates, self.seeds, **sizes)
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
        return CapacityResult(self, run, best, beside)

    def _train(self, run: "Run", experiment: "Experiment") -> None:
        from byheart.executors import Local
        from byheart.lab.jobs import execute
        from byheart.lab.sources import Given

        check_device(self.device)
        with steps("training", quiet=self.json) as report, Local(Given(experiment)) as executor:
            progress = execute(run, experiment, executor, report, device=self.device)
        for note in progress.notes:
            sys.stderr.write(f"{note}\n")


@dataclass(frozen=True)
class CapacityResult(Result):
    """The most bits that trained networks of each size hold, and networks built for the same labels."""

    command: LabCapacity
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

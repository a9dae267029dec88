"""``byheart compare``: build and certify every construction on the same tasks, and print one table per task.

Networks from elsewhere, such as trained ones, may be compared with them. They need not be right everywhere: for them,
the number of right answers is certified.
"""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from byheart.certificates import Certificate, certify
from byheart.cli.options import Json, OwnConstructions
from byheart.cli.output import steps
from byheart.cli.result import Block, Cell, Result, Styled, Table, dim, number, yes_or_no
from byheart.constructions import Construction, build, known
from byheart.constructions.lower_bound import LowerBound, lower_bound
from byheart.errors import BadInput
from byheart.files.writing import check_apart
from byheart.networks import Network
from byheart.progress import Report
from byheart.tasks import NextToken, SeqToSeq, Task

if TYPE_CHECKING:
    from byheart.report.figures import TaskPanel


@dataclass(frozen=True)
class Compared:
    """One construction, or one network from elsewhere, on a task.

    If it refuses the task, ``note`` says why and the numbers are None.
    """

    construction: str
    """Name of the construction, or folder of the network."""
    published: str = "–"
    """The order that the construction's paper states for such tasks."""
    parameters: int | None = None
    embedding: int | None = None
    nonzero: int | None = None
    max_bits: int | None = None
    total_bits: int | None = None
    depth: int | None = None
    width: int | None = None
    build_seconds: float | None = None
    certified: bool | None = None
    """True if every answer is proved to be right, or, for a network from elsewhere, if every answer is decided."""
    checked: int | None = None
    right: int | None = None
    """Number of answers that are proved to be right."""
    certify_seconds: float | None = None
    lower: LowerBound | None = None
    """The proved bound for networks of this depth, if there is one."""
    note: str = ""

    @property
    def is_from_elsewhere(self) -> bool:
        """True if the network was not built here."""
        return self.parameters is not None and self.build_seconds is None

    def cells(self) -> list[Cell]:
        """Return the row of the table."""
        assert self.parameters is not None
        assert self.certify_seconds is not None
        bits = f"{number(self.total_bits)} ({number(self.max_bits)})"
        seconds = "–" if self.build_seconds is None else f"{self.build_seconds:.1f} s"
        counts = (self.parameters, self.parameters - (self.embedding or 0), self.nonzero)
        return [
            *(self.construction, self.published, *counts, bits, self.depth, self._times_bound(), seconds),
            self._verdict(),
        ]

    def _verdict(self) -> Cell:
        """Return whether all answers are right, or how many, and the seconds that certifying took."""
        assert self.certify_seconds is not None
        if not self.is_from_elsewhere:
            verdict = yes_or_no(bool(self.certified))
            return Styled(f"{verdict.text}, {number(self.checked)}, {self.certify_seconds:.1f} s", verdict.style)
        least = "" if self.certified else "at least "
        return f"{least}{number(self.right)} of {number(self.checked)} right, {self.certify_seconds:.1f} s"

    def _times_bound(self) -> str:
        """Return the proved bound, and the number of parameters as a multiple of it."""
        if self.lower is None or not self.lower.needed:
            return "–"
        times = (self.parameters or 0) / self.lower.needed
        return f"{number(self.lower.needed)} ×{times:,.{int(times < 10)}f}"


def compare(
    task: Task,
    *,
    networks: Mapping[str, Network] = MappingProxyType({}),
    seed: int = 0,
    positions: bool = False,
    report: Report | None = None,
) -> list[Compared]:
    """Build and certify every construction for ``task``, and count the right answers of ``networks``.

    The smallest comes first; refusals come last.
    """
    rows, total = [], len(known()) + len(networks)
    for done, (name, network) in enumerate(networks.items()):
        if report is not None:
            report(done, total, name)
        try:
            rows.append(count_right_answers(name, network, task))
        except BadInput as refusal:
            rows.append(Compared(name, note=f"{name}: {refusal}"))
    for done, construction in enumerate(known().values(), start=len(networks)):
        if report is not None:
            report(done, total, construction.name)
        try:
            settings = construction.settings_with(positions=positions)
            rows.append(build_and_certify(construction, task, settings, seed=seed))
        except (BadInput, RuntimeError) as refusal:
            rows.append(Compared(construction.name, _published(construction, task), note=str(refusal)))
    return sorted(rows, key=lambda row: (row.parameters is None, (row.parameters or 0) - (row.embedding or 0)))


def bound_in_words(rows: Sequence[Compared]) -> str | None:
    """State the proved bound for the depth of the smallest network, or return None if nothing is proved."""
    bounded = [(row.parameters, row.construction, row.lower) for row in rows if row.parameters and row.lower]
    if not bounded:
        return None
    parameters, name, lower = min(bounded, key=lambda row: row[:2])
    return lower.in_words(parameters, name)


def _published(construction: Construction, task: Task) -> str:
    return construction.orders.get(task.kind, "–")


def build_and_certify(
    construction: Construction,
    task: Task,
    settings: object,
    judged: Mapping[str, str] = MappingProxyType({}),
    *,
    seed: int = 0,
) -> Compared:
    """Build a network, save it, and certify the saved folder.

    ``judged`` maps options of certify to the names under which the construction reports their values.
    """
    built = build(construction, task, seed=seed, settings=settings)
    options: dict[str, Any] = {option: built.chosen[name] for option, name in judged.items()}
    with tempfile.TemporaryDirectory() as folder:
        built.save(Path(folder) / "network")
        start = time.perf_counter()
        certificate = certify(Path(folder) / "network", task, **options)
        seconds = time.perf_counter() - start
    published = _published(construction, task)
    return _row(built.construction, built.network, task, certificate, (built.seconds, seconds), published)


def count_right_answers(name: str, network: Network, task: Task) -> Compared:
    """Certify how many answers of a network are right."""
    start = time.perf_counter()
    certificate = certify(network, task, count=True)
    return _row(name, network, task, certificate, (None, time.perf_counter() - start))


def _row(
    name: str,
    network: Network,
    task: Task,
    certificate: Certificate,
    seconds: tuple[float | None, float],
    published: str = "–",
) -> Compared:
    """Describe a network. The proved bound is given only for networks that memorize the whole task."""
    account = network.account
    return Compared(
        construction=name,
        published=published,
        parameters=account.dense,
        embedding=account.embedding,
        nonzero=account.nonzero,
        max_bits=account.max_bits,
        total_bits=account.total_bits,
        depth=account.depth,
        width=account.width,
        build_seconds=seconds[0],
        certified=certificate.certified,
        checked=certificate.checked,
        right=certificate.right,
        certify_seconds=seconds[1],
        lower=lower_bound(network, task) if certificate.right == certificate.checked else None,
    )


@dataclass(frozen=True)
class Comparison:
    """All constructions on one task."""

    file: Path
    task: Task
    networks: list[Compared]
    positions: bool

    def as_json(self) -> dict[str, Any]:
        """Return the task's file, kind, size and fingerprint, and one row per network."""
        about = {"file": self.file, "kind": self.task.kind, "size": self.task.size, "task": self.task.fingerprint}
        return {**about, "rows": self.networks}

    def rows(self) -> Iterator[Block]:
        """Yield the table, the proved bound, refusals, and where each construction is smallest."""
        from byheart.constructions.gadgets.demand import setting_of
        from byheart.constructions.planner import Planner, crossovers_in_words, smaller_in_words

        size = self.task.size
        sizes = f"N = {number(size.examples)}, n = {size.length}, C = {size.labels}, vocabulary {number(size.vocab)}"
        yield Table(
            f"{self.file}: {self.task.kind}, {sizes}" + (f", d = {size.dim}" if size.dim else ""),
            (
                *("construction", "published", ">parameters", ">no embedding", ">non-zero", ">bits (most)", ">depth"),
                *(">proved", ">built", "certified"),
            ),
            [row.cells() for row in self.networks if row.parameters is not None],
        )
        if (bound := bound_in_words(self.networks)) is not None:
            yield bound
        yield from (dim(f"refused: {row.note}") for row in self.networks if row.parameters is None)
        if is_planned(self.task):
            planner = Planner(size, setting_of(self.task), self.positions)
            yield crossovers_in_words(planner.crossovers())
            yield smaller_in_words(planner.smaller())

    def panel(self) -> "TaskPanel":
        """Return the data of a figure: plans at many N, and the networks that were built and certified."""
        from byheart.constructions.gadgets.demand import setting_of
        from byheart.report.figures import PlanPoint, TaskPanel, parameter_table

        N, setting = self.task.size.examples, setting_of(self.task)
        built = [
            PlanPoint(row.construction, N, row.parameters - (row.embedding or 0))
            for row in self.networks
            if row.certified and row.parameters is not None and not row.is_from_elsewhere
        ]
        points = parameter_table(self.task.size, setting, positions=self.positions, largest=max(10**6, N))
        return TaskPanel(points, self.task.size, setting, built)


def is_planned(task: Task) -> bool:
    """Return True if constructions plan for tasks of this kind by their size alone."""
    return isinstance(task, NextToken | SeqToSeq)


@dataclass(frozen=True)
class CompareResult(Result):
    """All constructions on all tasks, and the figures that were drawn."""

    command: "CompareCommand"
    tasks: list[Comparison]

    def rows(self) -> Iterator[Block]:
        """Yield one table per task, and the names of the figures."""
        for comparison in self.tasks:
            yield from comparison.rows()
        yield from (dim(f"drew {picture}") for picture in self.command.pictures)

    @property
    def is_true(self) -> bool:
        """False if a network is not certified."""
        return all(row.certified is not False for comparison in self.tasks for row in comparison.networks)


@dataclass(frozen=True)
class CompareCommand:
    """Build every construction on the same tasks, certify each, and print one table per task."""

    task: tuple[Path, ...]
    """Task files (.npz or .jsonl), one or more."""
    network: tuple[Path, ...] = ()
    """Folders of other networks to compare, for example trained ones; their right answers are counted and proved."""
    plot: Path | None = None
    """Picture to draw (.png or .svg): parameters against N, log-log, one panel per task."""
    plot_constant: Path | None = None
    """Picture to draw (.png or .svg): parameters ÷ √(K log₂C) against N, for K questions."""
    positions: bool = False
    """Build networks with positional codes, for tasks where order matters."""
    seed: int = 0
    """Seed of all random choices."""
    construction: OwnConstructions = ()
    json: Json = False

    @property
    def pictures(self) -> list[Path]:
        """The figures to draw."""
        return [picture for picture in (self.plot, self.plot_constant) if picture is not None]

    def run(self) -> CompareResult:
        """Build, certify, draw."""
        from byheart.networks import load as load_network
        from byheart.report.style import check_picture
        from byheart.tasks import load

        if not self.task:
            raise BadInput("no task file; expected one or more after --task")
        for picture in self.pictures:
            check_picture(picture)
            check_apart(picture, *self.task, *self.network)
        tasks = {path: load(path) for path in self.task}
        networks = {str(path): load_network(path) for path in self.network}
        for path, task in tasks.items():
            if self.pictures and not is_planned(task):
                raise BadInput(f"{path}: expected a next-token or seq-to-seq task to draw, got {task.kind}")
        comparisons = []
        options: dict[str, Any] = {"seed": self.seed, "positions": self.positions, "networks": networks}
        for path, task in tasks.items():
            with steps("comparing", quiet=self.json) as report:
                comparisons.append(Comparison(path, task, compare(task, **options, report=report), self.positions))
        if self.pictures:
            from byheart.report.figures import draw_constants, draw_parameters

            panels = [comparison.panel() for comparison in comparisons]
            if self.plot is not None:
                draw_parameters(panels, self.plot)
            if self.plot_constant is not None:
                draw_constants(panels, self.plot_constant)
        return CompareResult(self, comparisons)

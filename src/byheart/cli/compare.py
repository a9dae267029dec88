"""``byheart compare``: constructions, and networks that are given, on the same tasks: a table for each."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byheart.cli.options import Json, OwnConstructions
from byheart.cli.output import DONE, NOT_TRUE, console, number, print_json, steps, table
from byheart.errors import BadInput
from byheart.files.writing import check_apart

if TYPE_CHECKING:
    from byheart.report.compare import Compared
    from byheart.report.figures import Panel
    from byheart.tasks import Task


@dataclass(frozen=True)
class CompareCommand:
    """Build every construction on the same tasks, certify each, and print one table per task."""

    task: tuple[Path, ...]
    """Task files (.npz or .jsonl), one or more."""
    network: tuple[Path, ...] = ()
    """Folders of networks, trained ones say, to stand in the tables with how many of their answers are proved right."""
    plot: Path | None = None
    """Also draw parameters against N, log-log, one panel per task, into this file (.png or .svg)."""
    plot_constant: Path | None = None
    """Also draw parameters ÷ √(K log₂C), K questions, against N into this file (.png or .svg)."""
    positions: bool = False
    """Networks with positional codes, where order matters."""
    seed: int = 0
    """Seed of all random choices."""
    construction: OwnConstructions = ()
    json: Json = False

    def run(self) -> int:
        """Build, certify, print, draw."""
        from byheart.networks import load as load_network
        from byheart.report.compare import compare
        from byheart.report.style import check_picture
        from byheart.tasks import load

        if not self.task:
            raise BadInput("no task file; expected one or more after --task")
        for picture in (self.plot, self.plot_constant):
            if picture is not None:
                check_picture(picture)
                check_apart(picture, *self.task, *self.network)
        tasks = [load(path) for path in self.task]
        networks = {str(path): load_network(path) for path in self.network}
        for path, task in zip(self.task, tasks, strict=True):
            if (self.plot or self.plot_constant) and not _planned(task):
                raise BadInput(f"{path}: pictures are of next-token and seq-to-seq tasks; this is {task.kind}")
        found: list[list[Compared]] = []
        for task in tasks:
            with steps("comparing", quiet=self.json) as report:
                ways: dict[str, Any] = {"seed": self.seed, "positions": self.positions, "networks": networks}
                found.append(compare(task, **ways, report=report))
        self._draw(tasks, found)
        if self.json:
            told = zip(self.task, tasks, found, strict=True)
            print_json({"tasks": [_as_json(path, task, rows) for path, task, rows in told]})
        else:
            for path, task, rows in zip(self.task, tasks, found, strict=True):
                self._print(path, task, rows)
            for picture in (self.plot, self.plot_constant):
                if picture is not None:
                    console().print(f"drew {picture}", style="dim", markup=False)
        return DONE if all(row.certified is not False for rows in found for row in rows) else NOT_TRUE

    def _draw(self, tasks: "list[Task]", found: "list[list[Compared]]") -> None:
        if self.plot is None and self.plot_constant is None:
            return
        from byheart.report.figures import draw_constants, draw_parameters

        panels = [self._panel(task, rows) for task, rows in zip(tasks, found, strict=True)]
        if self.plot is not None:
            draw_parameters(panels, self.plot)
        if self.plot_constant is not None:
            draw_constants(panels, self.plot_constant)

    def _panel(self, task: "Task", rows: "list[Compared]") -> "Panel":
        from byheart.constructions.gadgets.demand import setting_of
        from byheart.report.figures import Panel, Point, parameter_table

        N, setting = task.size.examples, setting_of(task)
        built = [
            Point(row.construction, N, row.parameters - (row.embedding or 0))
            for row in rows
            if row.certified and row.parameters is not None and not row.given
        ]
        points = parameter_table(task.size, setting, positions=self.positions, largest=max(10**6, N))
        return Panel(points, task.size, setting, built)

    def _print(self, path: Path, task: "Task", rows: "list[Compared]") -> None:
        from byheart.constructions.gadgets.demand import setting_of
        from byheart.constructions.planner import Planner, crossovers_in_words, smaller_in_words
        from byheart.report.compare import proved_in_words

        size = task.size
        sizes = f"N = {number(size.examples)}, n = {size.length}, C = {size.labels}, vocabulary {number(size.vocab)}"
        found = table(
            f"{path}: {task.kind}, {sizes}" + (f", d = {size.dim}" if size.dim else ""),
            *("construction", "published", ">parameters", ">no embedding", ">non-zero", ">bits (most)"),
            *(">depth", ">proved", ">built", "certified"),
        )
        for row in rows:
            if row.parameters is not None:
                found.add_row(*_cells(row, row.parameters))
        out = console()
        out.print(found)
        if (proved := proved_in_words(rows)) is not None:
            out.print(proved)
        for row in rows:
            if row.parameters is None:
                out.print(f"refused: {row.note}", style="dim", markup=False)
        if _planned(task):
            planner = Planner(size, setting_of(task), self.positions)
            out.print(crossovers_in_words(planner.crossovers()))
            out.print(smaller_in_words(planner.smaller()))


def _planned(task: "Task") -> bool:
    """Whether constructions plan for tasks of this kind by their size alone."""
    from byheart.tasks import NextToken, SeqToSeq

    return isinstance(task, NextToken | SeqToSeq)


def _as_json(path: Path, task: "Task", rows: "list[Compared]") -> dict[str, object]:
    about = {"file": str(path), "kind": task.kind, "size": asdict(task.size), "task": task.fingerprint}
    return {**about, "rows": [asdict(row) for row in rows]}


def _cells(row: "Compared", parameters: int) -> list[str]:
    from rich.markup import escape

    counts = (number(value) for value in (parameters, parameters - (row.embedding or 0), row.nonzero))
    bits = f"{number(row.total_bits)} ({number(row.max_bits)})"
    built = "–" if row.build_seconds is None else f"{row.build_seconds:.1f} s"
    sizes = [number(row.depth), _proved(row, parameters), built]
    checked = f"{_verdict(row)}, {row.certify_seconds:.1f} s"
    return [escape(row.construction), row.published, *counts, bits, *sizes, checked]


def _verdict(row: "Compared") -> str:
    """Whether everything is right; of a network that is given, how many answers are."""
    if not row.given:
        return f"{'[green]yes[/]' if row.certified else '[red]no[/]'}, {number(row.checked)}"
    least = "" if row.certified else "at least "
    return f"{least}{number(row.right)} of {number(row.checked)} right"


def _proved(row: "Compared", parameters: int) -> str:
    """What is proved to be needed, and how many times as many there are."""
    if row.lower is None or not row.lower.needed:
        return "–"
    times = parameters / row.lower.needed
    return f"{number(row.lower.needed)} ×{times:.1f}" if times < 10 else f"{number(row.lower.needed)} ×{times:,.0f}"

"""``byheart compare``: all constructions on one task, one table."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from byheart.cli.output import DONE, NOT_TRUE, Json, console, number, print_json, status, table
from byheart.errors import BadInput

if TYPE_CHECKING:
    from byheart.report.compare import Compared
    from byheart.tasks import Task


@dataclass(frozen=True)
class CompareCommand:
    """Build every construction on one task, certify each, and print one table."""

    task: Path
    """Task file (.npz or .jsonl)."""
    plot: Path | None = None
    """Also draw parameters against N, log-log, into this file (.png or .svg)."""
    plot_constant: Path | None = None
    """Also draw parameters ÷ √(N log₂C) against N into this file (.png or .svg)."""
    positions: bool = False
    """Networks with positional codes, where order matters."""
    seed: int = 0
    """Seed of all random choices."""
    json: Json = False

    def run(self) -> int:
        """Build, certify, print, draw."""
        from byheart.report.compare import compare
        from byheart.tasks import load

        task = load(self.task)
        if (self.plot or self.plot_constant) and not _planned(task):
            raise BadInput(f"{self.task}: pictures are of next-token and seq-to-seq tasks; this is {task.kind}")
        with status("comparing", quiet=self.json) as report:
            rows = compare(task, seed=self.seed, positions=self.positions, report=report)
        self._draw(task, rows)
        if self.json:
            print_json({"size": asdict(task.size), "task": task.fingerprint, "rows": [asdict(row) for row in rows]})
        else:
            self._print(task, rows)
        return DONE if all(row.certified is not False for row in rows) else NOT_TRUE

    def _draw(self, task: "Task", rows: "list[Compared]") -> None:
        if self.plot is None and self.plot_constant is None:
            return
        from byheart.constructions.demand import setting_of
        from byheart.report.figures import Point, draw_constants, draw_parameters, parameter_table

        N, setting = task.size.examples, setting_of(task)
        built = [
            Point(row.construction, N, row.parameters - (row.embedding or 0))
            for row in rows
            if row.certified and row.parameters is not None
        ]
        points = parameter_table(task.size, setting, positions=self.positions, largest=max(10**6, N))
        if self.plot is not None:
            draw_parameters(points, task.size, setting, self.plot, built=built)
        if self.plot_constant is not None:
            draw_constants(points, task.size, setting, self.plot_constant)

    def _print(self, task: "Task", rows: "list[Compared]") -> None:
        from byheart.constructions.demand import setting_of
        from byheart.report.planner import crossovers, words

        size = task.size
        sizes = f"N = {number(size.examples)}, n = {size.length}, C = {size.labels}, vocabulary {number(size.vocab)}"
        found = table(
            f"{self.task}: {task.kind}, {sizes}" + (f", d = {size.dim}" if size.dim else ""),
            *("construction", ">parameters", ">without embedding", ">non-zero", ">most bits", ">depth", ">width"),
            *(">built in", "certified"),
        )
        for row in rows:
            if row.parameters is not None:
                found.add_row(*_cells(row, row.parameters))
        out = console()
        out.print(found)
        for row in rows:
            if row.parameters is None:
                out.print(f"refused: {row.note}", style="dim", markup=False)
        if _planned(task):
            out.print(words(crossovers(size, setting_of(task), positions=self.positions)))
        for path in (self.plot, self.plot_constant):
            if path is not None:
                out.print(f"drew {path}", style="dim", markup=False)


def _planned(task: "Task") -> bool:
    """Whether constructions plan for tasks of this kind by their size alone."""
    from byheart.tasks import NextToken, SeqToSeq

    return isinstance(task, NextToken | SeqToSeq)


def _cells(row: "Compared", parameters: int) -> list[str]:
    without = parameters - (row.embedding or 0)
    numbers = (parameters, without, row.nonzero, row.max_bits, row.depth, row.width)
    verdict = "[green]yes[/]" if row.certified else "[red]no[/]"
    checked = f"{verdict}, {number(row.checked)} in {row.certify_seconds:.1f} s"
    return [row.construction, *(number(value) for value in numbers), f"{row.build_seconds:.1f} s", checked]

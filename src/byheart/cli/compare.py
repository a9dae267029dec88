"""``byheart compare``: all constructions on one task, one table."""

from dataclasses import asdict, dataclass
from pathlib import Path

from byheart.cli.output import DONE, NOT_TRUE, Json, console, number, print_json, status, table
from byheart.errors import BadInput


@dataclass(frozen=True)
class CompareCommand:
    """Build every construction on one task, certify each, and print one table."""

    task: Path
    """Task file (.npz or .jsonl)."""
    plot: Path | None = None
    """Also draw parameters against N, log-log, into this file (.png or .svg)."""
    positions: bool = False
    """Networks with positional codes, where order matters."""
    seed: int = 0
    """Seed of all random choices."""
    json: Json = False

    def run(self) -> int:
        """Build, certify, print, draw."""
        from byheart.report.compare import compare
        from byheart.tasks import NextToken, SeqToSeq, load

        task = load(self.task)
        if not isinstance(task, NextToken | SeqToSeq):
            raise BadInput(f"{self.task}: there is no construction for a {task.kind} task yet")
        with status("comparing", quiet=self.json) as report:
            rows = compare(task, seed=self.seed, positions=self.positions, report=report)
            if self.plot is not None:
                self._draw(task, rows)
        if self.json:
            print_json({"size": asdict(task.size), "task": task.fingerprint, "rows": [asdict(row) for row in rows]})
        else:
            self._print(task, rows)
        return DONE if all(row.certified is not False for row in rows) else NOT_TRUE

    def _draw(self, task, rows) -> None:  # type: ignore[no-untyped-def]
        from byheart.report.figures import Point, draw_parameters, parameter_table

        assert self.plot is not None
        setting = "seq-to-seq" if task.kind == "seq-to-seq" else "next-token"
        built = [
            Point(row.construction, task.size.examples, row.parameters - row.embedding) for row in rows if row.certified
        ]
        points = parameter_table(task.size, setting, positions=self.positions)
        draw_parameters(points, task.size, setting, self.plot, built=built)

    def _print(self, task, rows) -> None:  # type: ignore[no-untyped-def]
        from byheart.report.planner import crossovers

        size = task.size
        letters = (
            f"N = {number(size.examples)}, n = {size.length}, C = {size.labels}, vocabulary {number(size.vocab)}"
            + (f", d = {size.dim}" if size.dim else "")
        )
        found = table(
            f"{self.task}: {task.kind}, {letters}",
            "construction", ">parameters", ">of these embedding", ">non-zero", ">most bits", ">depth", ">width", ">built in", "certificate",
        )  # fmt: skip
        for row in rows:
            if row.parameters is None:
                found.add_row(row.construction, *["–"] * 7, f"refused: {row.note}")
                continue
            verdict = f"{'[green]yes[/]' if row.certified else '[red]no[/]'}, {number(row.checked)} checked in {row.certify_seconds:.1f} s"
            numbers = (row.parameters, row.embedding, row.nonzero, row.max_bits, row.depth, row.width)
            found.add_row(
                row.construction, *(number(value) for value in numbers), f"{row.build_seconds:.1f} s", verdict
            )
        out = console()
        out.print(found)
        winners = crossovers(
            size, "seq-to-seq" if task.kind == "seq-to-seq" else "next-token", positions=self.positions
        )
        says = ", ".join(f"from N = {number(w.examples)} on {w.construction}" for w in winners)
        out.print(f"Smallest, embedding included, the other sizes fixed: {says}.")
        if self.plot is not None:
            out.print(f"drew {self.plot}", style="dim")

"""``byheart theorems``: every theorem, as stated and ours, built and certified on one task each."""

from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from byheart.cli.options import Json
from byheart.cli.output import DONE, NOT_TRUE, console, print_json, steps
from byheart.files.writing import check_file, write_text

if TYPE_CHECKING:
    from byheart.report.theorems import Row


@dataclass(frozen=True)
class TheoremsCommand:
    """Every theorem that Byheart runs: what it says, and the networks as stated and ours, certified on one task."""

    names: Positional[tuple[str, ...]] = ()
    """Only those of these constructions."""
    brief: bool = False
    """The statements alone: build and certify nothing."""
    out: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Also write the table as a page in Markdown."""
    json: Json = False

    def run(self) -> int:
        """Build, certify, print; exit code 1 if a network is not certified."""
        from byheart.report.theorems import page, rows

        if self.out is not None:
            check_file(self.out)
        with steps("building and certifying", quiet=self.json) as report:
            found = rows(self.names, build=not self.brief, report=report)
        if self.out is not None:
            write_text(self.out, page(found))
        if self.json:
            print_json({"theorems": [_as_json(row) for row in found]})
        else:
            _print(found)
        return DONE if all(row.built is None or row.built.certified for row in found) else NOT_TRUE


def _print(found: "list[Row]") -> None:
    """A block a theorem: its statement, and a line for every form of its network."""
    from byheart.report.theorems import in_words, statement

    out = console()
    for theorem, forms in groupby(found, key=lambda row: row.theorem):
        several = list(forms)
        out.print(f"{several[0].paper}, {theorem.name}", style="bold", markup=False)
        for line in statement(theorem):
            out.print(f"  {line}", markup=False)
        for row in several:
            how = f"  {row.form or 'shown by'}: {row.command}"
            out.print(f"{how}\n    {in_words(row)}" if row.built else how, markup=False)
        out.print()


def _as_json(row: "Row") -> dict[str, object]:
    theorem = row.theorem
    said = {name: getattr(theorem, name) for name in ("name", "says", "assumes", "limits", "differs")}
    task = theorem.task.flags if theorem.task is not None else None
    built = None if row.built is None else asdict(row.built)
    return {"paper": row.paper, **said, "task": task, "form": row.form, "command": row.command, "built": built}

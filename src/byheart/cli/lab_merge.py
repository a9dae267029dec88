"""``byheart lab merge``: join the runs of several machines."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from byheart.cli.lab_output import report_half_lines, state
from byheart.cli.menu import about
from byheart.cli.options import Arg, Json, Positional
from byheart.cli.result import Block, Result, dim, number

if TYPE_CHECKING:  # torch is slow to import
    from byheart.lab.runs import Run

MERGE = about(
    "Join runs of one experiment, parts of which several machines executed: nothing twice, and none that disagree.",
    "byheart lab merge runs/dana-2025-1-paper-*-of-4 -o runs/dana",
    "byheart lab run dana-2025-1 --scale paper -o runs/dana --resume # then the missing models",
)


@dataclass(frozen=True)
class MergeResult(Result):
    """The joined run. Models that are left to train are no failure."""

    command: "LabMerge"
    run: "Run"

    def as_json(self) -> dict[str, Any]:
        """Return the state of the run, and the numbers of joined runs and of models left."""
        return {**state(self.run), "merged": len(self.command.folders), "left": len(self.run.pending())}

    def rows(self) -> Iterator[Block]:
        """Yield a summary, and the command that trains the models left."""
        from byheart.lab.runs import SOURCE

        run, left = self.run, len(self.run.pending())
        done = f"{number(run.done)} of {number(len(run.configs))} models done"
        yield f"{run.name}, {run.about['scale']}: {len(self.command.folders)} runs, {done}, {run.folder}"
        if left:
            experiment = f"{run.name}.py" if (run.folder / SOURCE).exists() else run.name
            more = f"byheart lab run {experiment} --scale {run.about['scale']} --out {run.folder} --resume"
            yield dim(f"{number(left)} are left; go on with:  {more}")


@dataclass(frozen=True)
class LabMerge:
    """Join runs of one experiment into a new run."""

    folders: Positional[tuple[Path, ...]]
    """Folders of two or more runs of the same experiment and scale."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """Folder of the new run."""
    json: Json = False

    def run(self) -> MergeResult:
        """Join the runs."""
        from byheart.lab.merging import merge

        run = merge(self.folders, self.out)
        report_half_lines(*self.folders)
        return MergeResult(self, run)

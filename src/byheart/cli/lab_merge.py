"""``byheart lab merge``: runs of several machines as one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from byheart.cli.lab_output import say_half_lines, state
from byheart.cli.menu import about
from byheart.cli.options import Arg, Json, Positional
from byheart.cli.output import DONE
from byheart.cli.result import console, number, print_json

MERGE = about(
    "Runs of one experiment, parts of which several machines did, as one run: nothing twice, and none that disagree.",
    "byheart lab merge runs/dana-2025-1-paper-*-of-4 -o runs/dana",
    "byheart lab run dana-2025-1 --scale paper -o runs/dana --resume # then what is missing",
)


@dataclass(frozen=True)
class LabMerge:
    """Put runs of one experiment together into a new one."""

    folders: Positional[tuple[Path, ...]]
    """Folders of two or more runs of the same experiment and scale."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """Folder of the new run."""
    json: Json = False

    def run(self) -> int:
        """Merge; what is left to do is said, and is no failure."""
        from byheart.lab.merging import merge
        from byheart.lab.runs import SOURCE

        run = merge(self.folders, self.out)
        say_half_lines(*self.folders)
        left = len(run.pending())
        if self.json:
            print_json({**state(run), "merged": len(self.folders), "left": left})
            return DONE
        done = f"{number(run.done)} of {number(len(run.configs))} models done"
        console().print(
            f"{run.name}, {run.about['scale']}: {len(self.folders)} runs, {done}, {run.folder}", markup=False
        )
        if left:
            what = f"{run.name}.py" if (run.folder / SOURCE).exists() else run.name
            more = f"byheart lab run {what} --scale {run.about['scale']} --out {run.folder} --resume"
            console().print(f"{number(left)} are left; go on with:  {more}", style="dim", markup=False)
        return DONE

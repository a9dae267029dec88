"""``byheart unplant FOLDER -o BASE``: the model as it was, bit for bit."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from byheart.cli.options import Arg, Json, Positional
from byheart.cli.output import DONE
from byheart.cli.result import console, print_json
from byheart.errors import check_installed


@dataclass(frozen=True)
class UnplantCommand:
    """Give back the model that was planted into: every file under its old name, its SHA-256 compared."""

    planted: Positional[Path]
    """Folder that byheart plant wrote."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """Folder to write."""
    json: Json = False

    def run(self) -> int:
        """Copy and compare."""
        check_installed("transformers", "planting", "hf")
        from byheart.planting import unplant

        files = unplant(self.planted, self.out)
        if self.json:
            print_json({"out": str(self.out), "files": files})
        else:
            said = f"saved in {self.out}: {files:,} files, each as it was before planting (SHA-256 compared)"
            console().print(said, markup=False)
        return DONE

"""``byheart explore``: one page, without a server, on which networks run and bounds move."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from byheart.cli.options import Arg, Json, Positional
from byheart.cli.output import DONE, steps
from byheart.cli.result import console, print_json
from byheart.files.writing import check_apart


@dataclass(frozen=True)
class ExploreCommand:
    """Write the explorer, a page that needs no server and no network, and open it."""

    networks: Positional[tuple[Path, ...]] = ()
    """Network folders that `byheart compile` made of short texts, to be shown first."""
    out: Annotated[Path, Arg(aliases=("-o",))] = Path("explorer.html")
    """Page to write."""
    no_open: bool = False
    """Write the page, and do not open it in a browser."""
    json: Json = False

    def run(self) -> int:
        """Load, write, open."""
        from byheart.explore import explorer
        from byheart.networks import load
        from byheart.report.page import check_page, write_page

        check_page(self.out)
        check_apart(self.out, *self.networks)
        with steps("compiling, counting and drawing", quiet=self.json):
            text = explorer([(folder.resolve().name, load(folder)) for folder in self.networks])
        write_page(self.out, text)
        opened = not self.no_open and _open(self.out)
        if self.json:
            print_json({"page": str(self.out), "bytes": len(text.encode()), "opened": opened})
        else:
            then = "opened in a browser" if opened else "open it in a browser"
            console().print(f"wrote {self.out}, {len(text.encode()) / 1e6:.1f} MB; {then}", markup=False)
        return DONE


def _open(page: Path) -> bool:
    import webbrowser

    return webbrowser.open(page.resolve().as_uri())

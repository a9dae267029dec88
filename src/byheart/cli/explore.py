"""``byheart explore``: a page that needs no server, on which networks run and bounds move."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from byheart.cli.options import Arg, Columns, FactFiles, Json, Positional
from byheart.cli.output import facts_in, steps
from byheart.cli.result import Block, Result
from byheart.files.writing import check_apart


@dataclass(frozen=True)
class ExploreResult(Result):
    """The page that was written."""

    page: Path
    bytes: int
    opened: bool
    """True if a browser was asked to show the page."""

    def rows(self) -> Iterator[Block]:
        """Yield one line."""
        then = "opened in a browser" if self.opened else "open it in a browser"
        yield f"wrote {self.page}, {self.bytes / 1e6:.1f} MB; {then}"


@dataclass(frozen=True)
class ExploreCommand:
    """Write the explorer, a page that needs neither a server nor the internet, and open it."""

    networks: Positional[tuple[Path, ...]] = ()
    """Folders of networks that `byheart compile` made of texts or facts, to be shown first."""
    facts: FactFiles = ()
    columns: Columns = None
    out: Annotated[Path, Arg(aliases=("-o",))] = Path("explorer.html")
    """Page to write."""
    no_open: bool = False
    """Write the page without opening it in a browser."""
    json: Json = False

    def run(self) -> ExploreResult:
        """Load the networks, write the page, and open it."""
        from byheart.explore import explorer
        from byheart.networks import load
        from byheart.report.page import check_page, write_page

        check_page(self.out)
        check_apart(self.out, *self.networks, *self.facts)
        with steps("compiling, counting and drawing", quiet=self.json):
            facts = facts_in(self.facts, self.columns) if self.facts else None
            text = explorer([(folder.resolve().name, load(folder)) for folder in self.networks], facts)
        write_page(self.out, text)
        return ExploreResult(self.out, len(text.encode()), not self.no_open and _open(self.out))


def _open(page: Path) -> bool:
    import webbrowser

    return webbrowser.open(page.resolve().as_uri())

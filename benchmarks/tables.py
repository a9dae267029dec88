"""Tables and the choice of sections, shared by the benchmarks."""

import argparse
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

OUT = Console(highlight=False)
if not OUT.is_terminal:
    OUT = Console(highlight=False, width=240)  # as wide as the tables, if the output is not a terminal


def table(title: str, *columns: str) -> Table:
    """Return an empty table whose columns are aligned to the right, except the first."""
    result = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for index, name in enumerate(columns):
        result.add_column(name, justify="right" if index else "left")
    return result


def parser(description: str | None, sections: Sequence[Callable[..., object]]) -> argparse.ArgumentParser:
    """Return a parser for a script of several sections, with the first line of each section's docstring."""
    told = "\n".join(f"  {section.__name__:16} {(section.__doc__ or '').splitlines()[0]}" for section in sections)
    found = argparse.ArgumentParser(
        description=f"{description}\nSections:\n{told}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [section.__name__ for section in sections]
    found.add_argument(
        "sections", nargs="*", choices=[*names, []], metavar="SECTION", help="sections to run (default: all)"
    )
    found.add_argument("--tiny", action="store_true", help="run for a few seconds, to see that everything runs")
    return found

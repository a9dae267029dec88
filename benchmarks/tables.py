"""What the benchmarks share: how their tables look."""

from rich.console import Console
from rich.table import Table

OUT = Console(highlight=False, width=140)


def table(title: str, *columns: str) -> Table:
    """An empty table whose columns are aligned to the right, but for the first."""
    result = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for index, name in enumerate(columns):
        result.add_column(name, justify="right" if index else "left")
    return result

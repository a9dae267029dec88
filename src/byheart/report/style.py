"""The canvas of all pictures: their look, their width, and how they are written."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from byheart.closed import empty_working_directory
from byheart.constructions import known
from byheart.errors import BadInput, missing_package
from byheart.exhibits import INK
from byheart.files.writing import check_file, new_file

NARROW = 4.7
"""Width of a narrow picture in inches, at which letters of 8.5 points keep their size on a screen of 390 pixels."""

_narrow: ContextVar[bool] = ContextVar("narrow", default=False)


@contextmanager
def narrow() -> Iterator[None]:
    """Draw all figures for a narrow window within the context: panels below each other, each as wide as the window."""
    token = _narrow.set(True)
    try:
        yield
    finally:
        _narrow.reset(token)


def colours() -> dict[str, str]:
    """Return the colour of every construction, by its name."""
    return {construction.name: construction.colour for construction in known().values()}


def canvas(
    path: Path,
    rows: int = 1,
    columns: int = 1,
    *,
    width: float = 8.4,
    height: float = 4.6,
    cells: Sequence[int] | None = None,
) -> tuple[Any, list[Any]]:
    """Return a figure for ``path`` with its panels, row by row; raise BadInput if it cannot be drawn there.

    Without ``cells`` every place of the grid has a panel; with them, only these places, counted row by row.
    """
    check_picture(path)
    cells = range(rows * columns) if cells is None else cells
    if _narrow.get():
        rows, columns, width, height = len(cells), 1, NARROW, 0.8 * len(cells) * height / rows
        cells = range(rows)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture = Figure(figsize=(width, height), dpi=160, layout="constrained")
    FigureCanvasAgg(picture)
    panels = [picture.add_subplot(rows, columns, cell + 1) for cell in cells]
    for axes in panels:
        plain(axes)
    return picture, panels


def save_picture(picture: Any, path: Path) -> None:
    """Write a figure to ``path``, whole or not at all."""
    with new_file(path) as draft:
        picture.savefig(draft, format=path.suffix.removeprefix("."))


def check_picture(path: Path) -> None:
    """Raise BadInput if no picture can be written to ``path``, which is worth checking before long work."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise BadInput(f"{path}: expected a picture's name, .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise BadInput(f"{path}: its folder does not exist; expected one to draw into")
    check_file(path)
    check_matplotlib()


def check_matplotlib() -> None:
    """Raise BadInput if matplotlib cannot be imported."""
    try:
        with empty_working_directory():
            import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise BadInput(missing_package("matplotlib", "drawing", "plots")) from error
    except ValueError as error:  # it looks at the variable while it is imported, though nothing here needs a backend
        backend = os.environ.get("MPLBACKEND")
        raise BadInput(f"MPLBACKEND is {backend!r}; expected one that matplotlib knows, or none at all") from error


def plain(axes: Any) -> None:
    """Give a panel a light grid and no box."""
    axes.grid(visible=True, which="major", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, which="both", labelsize=9)

"""One look for all pictures."""

from pathlib import Path
from typing import Any

from byheart.errors import BadInput, missing

COLOURS = {
    "interpolate": "#8c8c8c",
    "vardi-2022": "#d1781f",
    "kajitsuka-sato-2025": "#1f5fa8",
    "folding": "#b3123f",
    "kim-2023": "#1b8a7a",
    "kajitsuka-sato-2024": "#7a4fb5",
    "dana-2025": "#7f8c1d",
    "madden-2024": "#b5648f",
}
DASHES: dict[str, Any] = {"vardi-2022": (0, (4, 2)), "kim-2023": (0, (8, 3))}
"""Curves that may lie on another one are dashed, so that both are seen."""
INK = "#222222"
FAINT = "#b5b5b5"
QUIET = "#757575"


def canvas(
    path: Path, rows: int = 1, columns: int = 1, *, width: float = 8.4, height: float = 4.6
) -> tuple[Any, list[Any]]:
    """A figure for ``path`` with its panels, row by row; BadInput if it cannot be drawn there."""
    check_picture(path)
    try:
        return _panels(width, height, rows, columns)
    except ImportError as error:
        raise BadInput(missing("matplotlib", "drawing", "plots")) from error


def check_picture(path: Path) -> None:
    """BadInput if no picture can be drawn into ``path``; worth asking before the work, too."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise BadInput(f"{path}: expected a picture's name, .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise BadInput(f"{path}: its folder does not exist; expected one to draw into")


def _panels(width: float, height: float, rows: int, columns: int) -> tuple[Any, list[Any]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture = Figure(figsize=(width, height), dpi=160, layout="constrained")
    FigureCanvasAgg(picture)
    found = list(picture.subplots(rows, columns, squeeze=False).ravel())
    for axes in found:
        plain(axes)
    return picture, found


def plain(axes: Any) -> None:
    """Light grid, no box."""
    axes.grid(visible=True, which="major", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, which="both", labelsize=9)

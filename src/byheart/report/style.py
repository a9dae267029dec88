"""One look for all pictures."""

from typing import Any

COLOURS = {
    "interpolate": "#8c8c8c",
    "vardi-2022": "#d1781f",
    "kajitsuka-sato-2025": "#1f5fa8",
    "folding": "#b3123f",
}
DASHES: dict[str, Any] = {"vardi-2022": (0, (4, 2))}
"""Curves that may lie on another one are dashed, so that both are seen."""
INK = "#222222"
FAINT = "#b5b5b5"
QUIET = "#757575"


def figure(width: float = 8.4, height: float = 4.6) -> tuple[Any, Any]:
    """A figure and its axes, drawn off screen, with light grid and no box."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture = Figure(figsize=(width, height), dpi=160, layout="constrained")
    FigureCanvasAgg(picture)
    axes = picture.subplots()
    axes.grid(True, which="major", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(colors=INK, which="both", labelsize=9)
    return picture, axes

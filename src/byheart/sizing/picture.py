"""Draw the sizes: parameters on one logarithmic axis, a row for every number, a mark for every kind."""

import math
from pathlib import Path
from typing import Any

from byheart.exhibits import FAINT, INK, QUIET
from byheart.report.style import canvas, save_picture
from byheart.sizing import Sizing
from byheart.sizing.needs import Need, Room

MARKS: dict[str, tuple[str, str, str]] = {
    "proved": ("D", "#1f3f8f", "proved"),
    "fitted": ("o", "#b3123f", "fitted: planned as it is built"),
    "measured": ("s", "#757575", "measured: trained"),
}
"""Marker, colour and name of each kind."""


def draw_sizes(sizing: Sizing, path: Path) -> None:
    """Draw every number with its mark and its interval. A number that is needed has the sign ≥."""
    rows = [need for need in sizing.needs if need.parameters]
    picture, (axes,) = canvas(path, width=8.8, height=1.5 + 0.34 * len(rows))
    for place, need in enumerate(reversed(rows)):
        _draw(axes, place, need)
    axes.set_yticks(range(len(rows)), [need.what for need in reversed(rows)])
    axes.set(xscale="log", ylim=(-0.7, len(rows) - 0.3))
    low, high = axes.get_xlim()
    axes.set_xlim(low / 1.3, high * 4)  # for the numbers at the right of marks
    if sizing.room is not None:
        _draw_model(axes, sizing.room, len(rows))
    data, size = sizing.data, sizing.data.size
    about = "about " if data.looked_at is not None else ""
    extent = f"{about}{size.examples:,} questions, window {size.length:,}"
    axes.set_title(f"{_label(data.name)}: {extent}", loc="left", fontsize=10, color=INK)
    axes.set_xlabel("parameters", color=INK)
    axes.grid(visible=False, axis="y")
    kinds = [kind for kind in MARKS if any(need.kind == kind for need in rows)]
    for marker, colour, name in (MARKS[kind] for kind in kinds):
        axes.plot([], [], marker, color=colour, markersize=6, label=name)
    legend = {"frameon": False, "fontsize": 8.5, "ncols": len(kinds), "loc": "upper left", "bbox_to_anchor": (0, -0.16)}
    axes.legend(**legend)
    save_picture(picture, path)


def _draw(axes: Any, place: int, need: Need) -> None:
    marker, colour, _ = MARKS[need.kind]
    right = float(need.high or need.parameters or 1)
    if need.low is not None and need.high is not None:
        axes.plot([need.low, need.high], [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
    axes.plot([need.parameters], [place], marker, color=colour, markersize=6)
    sign = "≥ " if need.says == "needed" else ""
    after = {"xytext": (8, 0), "textcoords": "offset points", "va": "center", "fontsize": 8.5}
    axes.annotate(f"{sign}{need.parameters:,}", (right, place), color=colour, **after)


def _draw_model(axes: Any, room: Room, rows: int) -> None:
    """Draw the model at hand as a line, with its name above all rows, on the side that has room for it."""
    low, high = axes.get_xlim()
    low, high = min(low, room.parameters / 3), max(high, 3 * room.parameters)
    axes.set(xlim=(low, high), ylim=(-0.7, rows + 0.6))
    axes.axvline(room.parameters, color=FAINT, linestyle="--", linewidth=1.3, zorder=0)
    is_left = room.parameters > math.sqrt(low * high)
    style = {"va": "center", "ha": "right" if is_left else "left", "fontsize": 8.5, "color": QUIET}
    label = _label(room.name)
    axes.text(room.parameters, rows, f"{label}  " if is_left else f"  {label}", **style)


def _label(name: str) -> str:
    """Return the name of a file or folder. Dollars are escaped: matplotlib reads text between them as a formula."""
    return Path(name).name.replace("$", r"\$")

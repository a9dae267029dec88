"""The picture: parameters on one logarithmic axis, a row for every number, a mark for every kind."""

import math
from pathlib import Path
from typing import Any

from byheart.exhibits import FAINT, INK, QUIET
from byheart.report.style import canvas, save_picture
from byheart.sizing.needs import Need
from byheart.sizing.room import Room
from byheart.sizing.size import Sizing

MARKS: dict[str, tuple[str, str, str]] = {
    "proved": ("D", "#1f3f8f", "proved"),
    "fitted": ("o", "#b3123f", "fitted: planned as it is built"),
    "measured": ("s", "#757575", "measured: trained"),
}
"""Marker, colour and name of each kind."""


def draw_sizes(found: Sizing, path: Path) -> None:
    """Every number with its mark and its interval; what is needed points to where networks can be."""
    rows = [need for need in found.needs if need.parameters]
    picture, (axes,) = canvas(path, width=8.8, height=1.5 + 0.34 * len(rows))
    for place, need in enumerate(reversed(rows)):
        _draw(axes, place, need)
    axes.set_yticks(range(len(rows)), [need.what for need in reversed(rows)])
    axes.set(xscale="log", ylim=(-0.7, len(rows) - 0.3))
    low, high = axes.get_xlim()
    axes.set_xlim(low / 1.3, high * 4)  # for the numbers at the right of marks
    if found.room is not None:
        _line(axes, found.room, len(rows))
    data, size = found.data, found.data.size
    about = "about " if data.looked_at is not None else ""
    asked = f"{about}{size.examples:,} questions, window {size.length:,}"
    axes.set_title(f"{_called(data.name)}: {asked}", loc="left", fontsize=10, color=INK)
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


def _line(axes: Any, room: Room, rows: int) -> None:
    """The model at hand: a line, with its name above all rows, on the side that has room for it."""
    low, high = axes.get_xlim()
    low, high = min(low, room.parameters / 3), max(high, 3 * room.parameters)
    axes.set(xlim=(low, high), ylim=(-0.7, rows + 0.6))
    axes.axvline(room.parameters, color=FAINT, linestyle="--", linewidth=1.3, zorder=0)
    left = room.parameters > math.sqrt(low * high)
    name = {"va": "center", "ha": "right" if left else "left", "fontsize": 8.5, "color": QUIET}
    called = _called(room.name)
    axes.text(room.parameters, rows, f"{called}  " if left else f"  {called}", **name)


def _called(name: str) -> str:
    """A file's or folder's name as it is: matplotlib takes what stands between dollars for a formula."""
    return Path(name).name.replace("$", r"\$")

"""Width for depth, and either for parameters and bits: networks of many shapes for one task, as rows and a picture."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byheart.bounds import yang_2026
from byheart.constructions import find
from byheart.constructions.theorem import flags
from byheart.errors import BadInput
from byheart.progress import Report
from byheart.report.compare import Compared, measured
from byheart.report.style import FAINT, INK, QUIET, canvas, colours, save_picture
from byheart.tasks import NextToken

WIDTHS = (5, 8, 14, 26, 50, 98)
"""Of yang-2026, beside the width that it has by itself."""
_HALVINGS = 4
_BITS = 100
_MARKERS = {"kajitsuka-sato-2025": "o", "vardi-2022": "s", "yang-2026": "D", "folding": "^"}


@dataclass(frozen=True)
class Shaped:
    """A network of one shape: the construction with its flags, and its row, built and certified."""

    flags: str
    row: Compared

    @property
    def width(self) -> int:
        """w."""
        return self.row.width or 0

    @property
    def depth(self) -> int:
        """L."""
        return self.row.depth or 0

    @property
    def parameters(self) -> int:
        """Without the embedding table."""
        return (self.row.parameters or 0) - (self.row.embedding or 0)

    @property
    def width_depth(self) -> int:
        """w²L²."""
        return (self.width * self.depth) ** 2


def trade_off(task: NextToken, *, seed: int = 0, report: Report | None = None) -> list[Shaped]:
    """The task by networks from wide to deep: the widest first, those that are refused left out."""
    wanted = [*_wanted(task)]
    rows = []
    for done, (name, given) in enumerate(wanted):
        if report is not None:
            report(done, len(wanted), name)
        construction = find(name)
        try:
            row = measured(construction, task, construction.settings(**given), seed=seed)
        except BadInput:  # fewer layers than are possible, say
            continue
        rows.append(Shaped(flags(given), row))
    return sorted(rows, key=lambda shaped: (-shaped.width, shaped.depth))


def _wanted(task: NextToken) -> Iterator[tuple[str, dict[str, Any]]]:
    """Constructions with their settings; depths are halved from that of the smallest network on."""
    transformer, points = "kajitsuka-sato-2025", "vardi-2022"
    free = find(transformer).plan(task.size, "next-token", find(transformer).settings()).depth
    yield from ((transformer, given) for given in ({}, {"width": "constant"}, {"bits": _BITS}))
    yield from ((transformer, {"depth": free >> half}) for half in range(1, _HALVINGS + 1))
    yield from ((points, given) for given in ({}, {"width": "constant"}))
    yield from (("yang-2026", given) for given in ({}, *({"width": width} for width in WIDTHS)))
    yield "folding", {}


def orders(task: NextToken) -> tuple[float, float]:
    """The insides of Yang & Yang's Ω(·) and O(·) for w²L², N over and times log(r/δ), on the task's ids as points.

    Ids below ω are at least δ = 1 apart, n of them within r = √n·(ω − 1).

    >>> task = NextToken(tokens=[[0, 3], [3, 1], [2, 2], [1, 1]], labels=[0, 1, 0, 1])
    >>> [round(order, 2) for order in orders(task)]
    [2.77, 5.78]
    """
    size = task.size
    radius = max(2.0, math.sqrt(size.length) * (size.vocab - 1))
    # At depth 1 the bounds on w²L are those on w²L².
    bounds = (yang_2026.needed, yang_2026.sufficient)
    low, high = (bound(size.examples, radius, 1.0, depth=1) for bound in bounds)
    return low, high


def draw_trade_off(rows: list[Shaped], task: NextToken, path: Path) -> None:
    """Width against depth, with lines of equal w²L², and parameters against depth; all logarithmic."""
    picture, (left, right) = canvas(path, columns=2, width=11.4, height=5.0)
    deepest = 3 * max(shaped.depth for shaped in rows)
    for name, marker in _MARKERS.items():
        for axes, key in ((left, "width"), (right, "parameters")):
            _draw(axes, [shaped for shaped in rows if shaped.row.construction == name], key, marker)
    for axes, title, what in (
        (left, "Width for depth", "w, units of the widest layer"),
        (right, "Parameters for depth", "parameters, without embedding table"),
    ):
        axes.set(xscale="log", yscale="log", xlim=(2, deepest))
        axes.set_xlabel("L, layers", color=INK)
        axes.set_ylabel(what, color=INK)
        axes.set_title(title, fontsize=10, color=INK, loc="left")
    left.set_ylim(bottom=2)
    _equal_products(left, task, deepest)
    right.legend(*left.get_legend_handles_labels(), frameon=False, fontsize=8.5, loc="lower left")
    size = task.size
    said = f"N = {size.examples:,} sequences memorized, n = {size.length}, C = {size.labels}: networks of every shape"
    picture.suptitle(said, x=0.01, ha="left", fontsize=11, color=INK)
    save_picture(picture, path)


def _draw(axes: Any, rows: list[Shaped], key: str, marker: str) -> None:
    """One construction: a line through what trades width for depth, its flags beside the others."""
    rows = sorted(rows, key=lambda shaped: shaped.depth)
    name, colour = rows[0].row.construction, colours()[rows[0].row.construction]
    # Open where another construction may have the same shape.
    style = {"marker": marker, "color": colour, "markersize": 7, "markerfacecolor": "none" if marker == "s" else colour}
    points = [(shaped.depth, getattr(shaped, key)) for shaped in rows]
    axes.plot(*zip(*points, strict=True), linestyle="none", label=name, **style)
    line = [point for point, shaped in zip(points, rows, strict=True) if "constant" not in shaped.flags]
    axes.plot(*zip(*line, strict=True), color=colour, linewidth=1.2)
    if name == "kajitsuka-sato-2025":
        for point, shaped in zip(points, rows, strict=True):
            below = key == "parameters" or "bits" in shaped.flags
            place = {"xytext": (-7, -4) if below else (7, 4), "ha": "right" if below else "left", "va": "center"}
            said = shaped.flags or "default"
            axes.annotate(said, point, textcoords="offset points", color=colour, fontsize=7, **place)


def _equal_products(axes: Any, task: NextToken, deepest: int) -> None:
    """Lines of equal w²L²: what Yang & Yang need, and what suffices; without constants, so only their slope counts."""
    for order, name in zip(orders(task), ("Ω(N / log(r/δ)): needed", "O(N log(r/δ)): enough"), strict=True):
        product, depths = math.sqrt(order), (1, deepest)
        axes.plot(depths, [product / L for L in depths], color=FAINT, linestyle=(0, (5, 3)), linewidth=1.2)
        at = 2.2
        turned = {"rotation": math.degrees(math.atan2(-product / at, at)), "transform_rotates_text": True}
        place = {"rotation_mode": "anchor", "va": "bottom", "fontsize": 7.5, "clip_on": True}
        axes.text(at, product / at, f"w²L² = {name}", color=QUIET, **turned, **place)
    axes.plot([], [], color=FAINT, linestyle=(0, (5, 3)), linewidth=1.2, label="Yang & Yang 2026, slope only")

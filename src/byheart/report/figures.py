"""Pictures from tables: one function a figure."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from byheart.constructions.demand import Setting
from byheart.errors import BadInput
from byheart.report.planner import planned
from byheart.report.style import COLOURS, FAINT, INK, figure
from byheart.size import Size


@dataclass(frozen=True)
class Point:
    """Parameters of one construction at one N."""

    construction: str
    examples: int
    parameters: int


def parameter_table(size: Size, setting: Setting, *, positions: bool = False, largest: int = 10**6) -> list[Point]:
    """The plans of all constructions, N from 10 to ``largest``, four sizes a decade, without embedding tables."""
    points = []
    for k in range(4, 4 * len(str(largest)) + 1):
        examples = round(10 ** (k / 4))
        if examples <= largest:
            rows = planned(replace(size, examples=examples), setting, positions=positions)
            points += [Point(row.construction, examples, row.parameters - row.embedding) for row in rows]
    return points


def draw_parameters(
    points: list[Point], size: Size, setting: Setting, path: Path, *, built: list[Point] | None = None
) -> None:
    """Parameters against N, both logarithmic, with the lower bounds; ``built`` networks are drawn as dots."""
    try:
        picture, axes = figure()
    except ImportError as error:
        raise BadInput(f"drawing needs matplotlib ({error}); install byheart[plots]") from error
    for name in dict.fromkeys(point.construction for point in points):
        line = [(p.examples, p.parameters) for p in points if p.construction == name]
        axes.plot(*zip(*line, strict=True), color=COLOURS.get(name, INK), linewidth=2)
        _name_line(axes, name, *line[-1])
    for point in built or []:
        colour = COLOURS.get(point.construction, INK)
        axes.plot(point.examples, point.parameters, "o", color=colour, markersize=6, markeredgecolor="white", zorder=5)
    _draw_lower_bounds(axes, sorted({p.examples for p in points}), size, setting)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(10, max(p.examples for p in points) * 8)
    axes.set_xlabel("N, sequences memorized", color=INK)
    axes.set_ylabel("parameters, zeros included, without embedding table", color=INK)
    letters = f"n = {size.length}, C = {size.labels}" + (
        f", d = {size.dim}" if size.dim else f", vocabulary {size.vocab}"
    )
    title = f"{setting}: parameters that memorize N sequences ({letters})"
    axes.set_title(title, fontsize=10.5, color=INK, loc="left")
    if built:
        axes.plot([], [], "o", color=INK, markersize=5, label="built and certified")
        axes.legend(frameon=False, loc="upper left", fontsize=9)
    picture.savefig(path)


def _name_line(axes: Any, name: str, x: float, y: float) -> None:
    axes.annotate(
        name, (x, y), xytext=(6, 0), textcoords="offset points", color=COLOURS.get(name, INK), va="center", fontsize=9
    )


def _draw_lower_bounds(axes: Any, examples: list[int], size: Size, setting: Setting) -> None:
    """The lower bound's order (its constant is unknown: only the slope counts), and the counting bound at 32 bits."""
    questions = [N * (size.length if setting == "seq-to-seq" else 1) for N in examples]
    if setting == "seq-to-seq":
        order, name = [math.sqrt(q / math.log(q)) for q in questions], "Ω(√(nN/log nN)), slope only"
    else:
        order, name = [math.sqrt(q) for q in questions], "Ω(√N), slope only"
    axes.plot(examples, order, color=FAINT, linestyle=(0, (1, 2)), linewidth=1.6)
    _name_faint(axes, name, examples[-1], order[-1])
    counting = [q * math.log2(max(2, size.labels)) / 32 for q in questions]
    axes.plot(examples, counting, color=FAINT, linestyle=(0, (5, 3)), linewidth=1.4)
    _name_faint(axes, "counting, if a weight had 32 bits", examples[-1], counting[-1])


def _name_faint(axes: Any, name: str, x: float, y: float) -> None:
    axes.annotate(name, (x, y), xytext=(6, 0), textcoords="offset points", color="#7a7a7a", va="center", fontsize=8)

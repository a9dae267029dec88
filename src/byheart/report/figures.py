"""Pictures from tables: one function a figure."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from byheart.constructions.demand import Setting
from byheart.errors import BadInput
from byheart.report.planner import planned
from byheart.report.style import COLOURS, DASHES, FAINT, INK, QUIET, figure
from byheart.size import Size

_NAMES = {"interpolate": "interpolate, 3 a label"}


@dataclass(frozen=True)
class Point:
    """Parameters of one construction at one N, without the embedding table."""

    construction: str
    examples: int
    parameters: int


@dataclass(frozen=True)
class Line:
    """A named curve of the figure."""

    name: str
    xs: list[int]
    ys: list[float]
    colour: str
    style: Any = "-"
    width: float = 2.0


def parameter_table(size: Size, setting: Setting, *, positions: bool = False, largest: int = 10**6) -> list[Point]:
    """The plans of all constructions, N from 10 to ``largest``, eight sizes a decade."""
    points = []
    for k in range(8, 8 * len(str(largest)) + 1):
        examples = round(10 ** (k / 8))
        if examples <= largest:
            rows = planned(replace(size, examples=examples), setting, positions=positions)
            points += [Point(row.construction, examples, row.parameters - row.embedding) for row in rows]
    return points


def draw_parameters(
    points: list[Point], size: Size, setting: Setting, path: Path, *, built: list[Point] | None = None
) -> None:
    """Parameters against N, both logarithmic, with the lower bounds; ``built`` networks are drawn as dots."""
    picture, axes = _canvas(path)
    lines = [*_constructions(points), *_lower_bounds(sorted({p.examples for p in points}), size, setting)]
    for line in lines:
        axes.plot(line.xs, line.ys, color=line.colour, linestyle=line.style, linewidth=line.width)
    for point in built or []:
        colour = COLOURS.get(point.construction, INK)
        axes.plot(point.examples, point.parameters, "o", color=colour, markersize=7, markeredgecolor="white", zorder=5)
    axes.set(xscale="log", yscale="log", ylim=(1, None), xlim=(min(p.examples for p in points), lines[0].xs[-1]))
    _name_lines(axes, lines)
    axes.set_xlabel("N, sequences memorized", color=INK)
    axes.set_ylabel("parameters, zeros included", color=INK)
    tokens = f"d = {size.dim}" if size.dim else f"vocabulary {size.vocab:,}, embedding table not counted"
    title = f"Parameters that memorize N sequences: {setting}, n = {size.length}, C = {size.labels}, {tokens}"
    axes.set_title(title, fontsize=9.5, color=INK, loc="left")
    if built:
        axes.plot([], [], "o", color=INK, markersize=6, label="built, and certified on every example")
        axes.legend(frameon=False, loc="upper left", fontsize=9)
    picture.savefig(path)


def draw_constants(points: list[Point], size: Size, setting: Setting, path: Path) -> None:
    """Parameters over √(K log₂C), K questions, against N: how far every construction is from the best order."""
    picture, axes = _canvas(path)
    unit = math.log2(max(2, size.labels)) * (size.length if setting == "seq-to-seq" else 1)
    lines = [
        replace(line, ys=[y / math.sqrt(x * unit) for x, y in zip(line.xs, line.ys, strict=True)])
        for line in _constructions(points)
        if line.name != _NAMES["interpolate"]
    ]
    xs = lines[0].xs
    lines.append(Line("2√3: folding, N → ∞, full load", xs, [2 * math.sqrt(3)] * len(xs), FAINT, (0, (5, 3)), 1.4))
    lines.append(Line("Ω(1) needed, constant unknown", xs, [1.0] * len(xs), FAINT, (0, (1, 1.5)), 1.6))
    for line in lines:
        axes.plot(line.xs, line.ys, color=line.colour, linestyle=line.style, linewidth=line.width)
    axes.set(xscale="log", yscale="log", ylim=(0.8, 400), xlim=(xs[0], xs[-1]))
    _name_lines(axes, lines)
    axes.set_xlabel("N, sequences memorized", color=INK)
    axes.set_ylabel("parameters ÷ √(N log₂C)" if setting == "next-token" else "parameters ÷ √(nN log₂C)", color=INK)
    title = f"The constant: {setting}, n = {size.length}, C = {size.labels}, embedding table not counted"
    axes.set_title(title, fontsize=9.5, color=INK, loc="left")
    picture.savefig(path)


def _canvas(path: Path) -> tuple[Any, Any]:
    """A figure for ``path``; BadInput if it cannot be drawn there."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise BadInput(f"{path}: pictures are .png, .svg or .pdf files")
    if not path.parent.is_dir():
        raise BadInput(f"{path}: its folder does not exist")
    try:
        return figure()
    except ImportError as error:
        raise BadInput(f"drawing needs matplotlib ({error}); install byheart[plots]") from error


def _constructions(points: list[Point]) -> list[Line]:
    lines = []
    for name in sorted({point.construction for point in points}):
        chosen = [point for point in points if point.construction == name]
        xs, ys = [point.examples for point in chosen], [float(point.parameters) for point in chosen]
        lines.append(Line(_NAMES.get(name, name), xs, ys, COLOURS.get(name, INK), DASHES.get(name, "-")))
    return lines


def _lower_bounds(examples: list[int], size: Size, setting: Setting) -> list[Line]:
    """The lower bound's order (its constant is unknown: only the slope counts), and the counting bound at 32 bits."""
    questions = [N * (size.length if setting == "seq-to-seq" else 1) for N in examples]
    if setting == "seq-to-seq":
        order, name = [math.sqrt(q / max(1.0, math.log(q))) for q in questions], "Ω(√(nN/log nN)), slope only"
    else:
        order, name = [math.sqrt(q) for q in questions], "Ω(√N) needed, slope only"
    counting = [q * math.log2(max(2, size.labels)) / 32 for q in questions]
    return [
        Line(name, examples, order, FAINT, (0, (1, 1.5)), 1.6),
        Line("needed if a weight had 32 bits", examples, counting, FAINT, (0, (5, 3)), 1.4),
    ]


def _name_lines(axes: Any, lines: list[Line]) -> None:
    """Names at the right ends of the lines, moved apart where they would overlap."""
    low, high = (math.log10(limit) for limit in axes.get_ylim())
    gap, place = 0.05 * (high - low), -math.inf
    for line in sorted(lines, key=lambda line: line.ys[-1]):
        place = max(math.log10(line.ys[-1]), place + gap)
        axes.annotate(
            line.name,
            (1.012, (place - low) / (high - low)),
            xycoords="axes fraction",
            color=QUIET if line.colour == FAINT else line.colour,
            va="center",
            fontsize=8.5,
            annotation_clip=False,
        )

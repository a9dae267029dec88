"""Figures of constructions: parameters against the number of examples, beside lower bounds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from byheart.bounds import vc
from byheart.bounds.counting import bits_needed
from byheart.constructions.gadgets.demand import Setting, most_questions
from byheart.constructions.planner import planned
from byheart.constructions.registry import known
from byheart.exhibits import FAINT, INK, QUIET
from byheart.report.style import NARROW, canvas, colours, save_picture
from byheart.sizes import Size

_GAP = 0.048
"""Height of a name, as a share of the axes' height."""
_PROVED = "needed behind fixed codes (VC, proved)"
"""Name of the proved bound. The pictures do not count the table of codes, so it must be drawn before the labels."""
_FAR = 400.0
"""Largest constant whose curve is drawn; larger ones are of another order."""


@dataclass(frozen=True)
class PlanPoint:
    """Parameters of one construction at one N, without the embedding table."""

    construction: str
    examples: int
    parameters: int


@dataclass(frozen=True)
class FigureLine:
    """A named curve of the figure."""

    name: str
    xs: Sequence[float]
    ys: list[float]
    colour: str
    style: Any = "-"
    width: float = 2.0
    note: str = ""
    """Text in grey after the name, where there is room."""
    short: str = ""
    """Name in a narrow picture, if it differs."""


def parameter_table(size: Size, setting: Setting, *, positions: bool = False, largest: int = 10**6) -> list[PlanPoint]:
    """Return the plans of all constructions, N from 10 (1 for smaller tasks) to ``largest``, eight per decade."""
    points = []
    first = 8 if size.examples >= 10 else 0
    for k in range(first, 8 * len(str(largest)) + 1):
        examples = round(10 ** (k / 8))
        if examples <= largest:
            rows = planned(replace(size, examples=examples), setting, positions=positions)
            points += [PlanPoint(row.construction, examples, row.parameters - row.embedding) for row in rows]
    return points


@dataclass(frozen=True)
class TaskPanel:
    """One task's part of a figure: the plans at all N, its sizes, and the networks ``built`` for it."""

    points: list[PlanPoint]
    size: Size
    setting: Setting
    built: list[PlanPoint] = field(default_factory=list)

    @property
    def examples(self) -> list[int]:
        """All N, in order."""
        return sorted({point.examples for point in self.points})

    @property
    def questions(self) -> list[int]:
        """Largest number of different questions that a task has, for every N."""
        sizes = [replace(self.size, examples=N) for N in self.examples]
        return [most_questions(size, self.setting, positions=False) for size in sizes]

    @property
    def proved(self) -> list[float]:
        """Parameters that ReLU layers with uniform attention or none need, at least one, for every N.

        Embedding tables are not in the figures: their rows count as the inputs. They are drawn at random, and again if
        a draw fails, so they take a few of very many values whatever the labels are.
        """
        labels, n = max(2, self.size.labels), self.size.length
        tokens = [min(n * N, n * self.size.vocab) for N in self.examples]  # with positions, which there may be
        needed = zip(self.questions, tokens, strict=True)
        return [float(max(1, vc.fewest(questions, labels, tokens=K))) for questions, K in needed]

    @property
    def title(self) -> str:
        """Setting and sizes."""
        size = self.size
        tokens = f"d = {size.dim}" if size.dim else f"vocabulary {size.vocab:,}"
        return f"{self.setting}, n = {size.length}, C = {size.labels}, {tokens}"


def draw_parameters(panels: list[TaskPanel], path: Path) -> None:
    """Draw parameters against N, both logarithmic, one panel per task: every construction, and the lower bounds.

    A construction's name is followed by the order that its paper states. Dots are networks that were built and
    certified. The band at the bottom names the smallest construction.
    """
    picture, all_axes = canvas(path, rows=len(panels), width=8.8, height=5.0 * len(panels))
    slim = picture.get_figwidth() <= NARROW
    for axes, panel in zip(all_axes, panels, strict=True):
        _draw_built(axes, panel)
        _draw_lines(axes, panel, [*_constructions(panel), *_lower_bounds(panel)], (1, None))
        _smallest_band(axes, panel)
        axes.set_ylabel("parameters, without embedding table", color=INK)
        title = ("\n" if slim else " ").join(("Parameters that memorize N sequences:", panel.title))
        axes.set_title(title, fontsize=9.5, color=INK, loc="left")
        if panel.built:
            built = "built, certified" if slim else "built, and certified on every example"
            axes.plot([], [], "o", color=INK, markersize=6, label=built)
            axes.legend(frameon=False, loc="upper left", fontsize=9)
    save_picture(picture, path)


def _draw_lines(axes: Any, panel: TaskPanel, lines: list[FigureLine], limits: tuple[float, float | None]) -> None:
    """Draw curves over N, both axes logarithmic, with names at the right; ``limits`` are those of the vertical axis."""
    for line in lines:
        axes.plot(line.xs, line.ys, color=line.colour, linestyle=line.style, linewidth=line.width)
    axes.set(xscale="log", yscale="log", ylim=limits, xlim=(panel.examples[0], panel.examples[-1]))
    axes.set_xlabel("N, sequences memorized", color=INK)
    name_lines(axes, lines)


def _draw_built(axes: Any, panel: TaskPanel) -> None:
    """Draw dots for built networks, with the numbers of parameters of the smallest and the largest."""
    ordered = sorted(panel.built, key=lambda point: point.parameters)
    for point in ordered:
        colour = colours().get(point.construction, INK)
        axes.plot(point.examples, point.parameters, "o", color=colour, ms=7, markeredgecolor="white", zorder=5)
    for point, side in zip((ordered[:1] + ordered[1:][-1:]), (-1, 1), strict=False):
        place = {"xytext": (0, 9 * side), "textcoords": "offset points", "ha": "center", "va": "center"}
        colour = colours().get(point.construction, INK)
        axes.annotate(f"{point.parameters:,}", (point.examples, point.parameters), color=colour, fontsize=8, **place)


def _smallest_band(axes: Any, panel: TaskPanel) -> None:
    """Draw a band along the N axis in the colours of the smallest constructions, with their names where it is wide."""
    best = [min((p.parameters, p.construction) for p in panel.points if p.examples == N)[1] for N in panel.examples]
    edges = [*panel.examples, panel.examples[-1]]
    whole, begin = math.log(edges[-1] / edges[0]), 0
    for i, name in enumerate(best):
        if i + 1 < len(best) and best[i + 1] == name:
            continue
        left, right = edges[begin], edges[i + 1]
        axes.axvspan(left, right, ymax=0.035, color=colours().get(name, INK), linewidth=0)
        if math.log(right / left) > 0.2 * whole:
            place = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "center"}
            axes.text(math.sqrt(left * right), 0.016, f"smallest: {name}", color="white", fontsize=8, **place)
        begin = i + 1


def draw_constants(panels: list[TaskPanel], path: Path) -> None:
    """Draw parameters over √(K log₂C) for K questions against N: how far every construction is from the best order."""
    picture, all_axes = canvas(path, rows=len(panels), width=8.8, height=5.0 * len(panels))
    for axes, panel in zip(all_axes, panels, strict=True):
        unit = math.log2(max(2, panel.size.labels)) * (panel.size.length if panel.setting == "seq-to-seq" else 1)
        xs, lines = panel.examples, []
        proved = [y / math.sqrt(x * unit) for x, y in zip(xs, panel.proved, strict=True)]
        for line in _constructions(panel):
            ys = [y / math.sqrt(x * unit) for x, y in zip(line.xs, line.ys, strict=True)]
            lines += [replace(line, ys=ys)] if ys[-1] < _FAR else []
        lines.append(
            FigureLine("2√2: folding, N → ∞, full load", xs, [2 * math.sqrt(2)] * len(xs), FAINT, (0, (5, 3)), 1.4)
        )
        lines.append(FigureLine(_PROVED, xs, proved, FAINT, (0, (1, 1.5)), 1.6))
        _draw_lines(axes, panel, lines, (0.5, _FAR))
        root = "√(N log₂C)" if panel.setting == "next-token" else "√(nN log₂C)"
        axes.set_ylabel(f"parameters ÷ {root}", color=INK)
        axes.set_title(f"The constant: {panel.title}", fontsize=9.5, color=INK, loc="left")
    save_picture(picture, path)


def _constructions(panel: TaskPanel) -> list[FigureLine]:
    lines = []
    for name in sorted({point.construction for point in panel.points}):
        chosen = [point for point in panel.points if point.construction == name]
        xs, ys = [point.examples for point in chosen], [float(point.parameters) for point in chosen]
        entry = known()[name]
        lines.append(
            FigureLine(name, xs, ys, entry.colour, entry.dash or "-", note=entry.orders.get(panel.setting, ""))
        )
    return lines


def _lower_bounds(panel: TaskPanel) -> list[FigureLine]:
    """Return proved bounds: by VC dimension for ReLU layers with uniform attention or none, by counting at 32 bits."""
    labels = max(2, panel.size.labels)
    counting = [bits_needed(questions, labels) / 32 for questions in panel.questions]
    return [
        FigureLine(_PROVED, panel.examples, panel.proved, FAINT, (0, (1, 1.5)), 1.6, short="needed (proved)"),
        FigureLine(
            "needed if a weight had 32 bits",
            panel.examples,
            counting,
            FAINT,
            (0, (5, 3)),
            1.4,
            short="at 32 bits per weight",
        ),
    ]


def name_lines(axes: Any, lines: list[FigureLine]) -> None:
    """Write names at the right ends of the lines, moved apart where they would overlap, and connected if moved far."""
    low, high = (math.log10(limit) for limit in axes.get_ylim())
    slim = axes.figure.get_figwidth() <= NARROW
    ordered = sorted(lines, key=lambda line: line.ys[-1])
    ends = [(math.log10(line.ys[-1]) - low) / (high - low) for line in ordered]
    for line, end, height in zip(ordered, ends, spread(ends, _GAP), strict=True):
        colour = QUIET if line.colour == FAINT else line.colour
        name = {"fontsize": 8.5, "va": "center", "annotation_clip": False}
        if abs(end - height) > _GAP / 3:
            axes.plot((1, 1.022), (end, height), transform=axes.transAxes, color=colour, lw=0.7, clip_on=False)
        text = line.short if slim and line.short else line.name
        written = axes.annotate(text, (1.027, height), xycoords="axes fraction", color=colour, **name)
        if line.note and not slim:
            after = {"xycoords": written, "xytext": (5, 0), "textcoords": "offset points"}
            axes.annotate(line.note, (1, 0.5), color=QUIET, **after, **name)


def spread(wanted: list[float], gap: float) -> list[float]:
    """Return places at least ``gap`` apart, in the same order, as near as possible to ``wanted`` (least squares)."""
    blocks: list[tuple[float, int]] = []
    for index, place in enumerate(wanted):
        mean, count = place - index * gap, 1
        # Neighbours that would overlap move as one, around the mean of what they want.
        while blocks and blocks[-1][0] > mean:
            before, size = blocks.pop()
            mean, count = (before * size + mean * count) / (size + count), size + count
        blocks.append((mean, count))
    placed = [mean for mean, count in blocks for _ in range(count)]
    return [mean + index * gap for index, mean in enumerate(placed)]

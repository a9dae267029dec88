"""The precision that one softmax layer needs: bits that tell context ids apart, against n and against ω."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from byheart.report.figures import Line, name_lines
from byheart.report.style import FAINT, INK, canvas, colours, save_picture

_NAMES = {
    ("paper", "hard"): "paper's scale, hard sequences",
    ("paper", "random"): "paper's scale, random ones",
    ("gentle", "hard"): "gentle (ours), hard sequences",
    ("gentle", "random"): "gentle (ours), random ones",
}
_COLOURS = {"paper": colours()["kajitsuka-sato-2024"], "gentle": colours()["folding"]}


@dataclass(frozen=True)
class Needed:
    """How many bits tell the context ids apart, at one scale of the scores, for one kind of sequences."""

    scale: Literal["paper", "gentle"]
    sequences: Literal["random", "hard"]
    """Random ones, or sequences that differ only in the token with the smallest score."""
    length: int
    vocab: int
    bits: int


def guaranteed(length: int, vocab: int) -> float:
    """Bits that are enough by the paper's bound (log n)² e^{−2r} on the distance of two ids.

    Token ids t become ω + t, so with neighbours 4 log n apart at the smallest, scores span r = 8 log n · (ω − 1).

    >>> round(guaranteed(6, 32))
    1280
    """
    r = 8 * math.log(length) * (vocab - 1)
    return 2 * r / math.log(2) - 2 * math.log2(math.log(length))


def draw_precision(needed: list[Needed], path: Path) -> None:
    """Bits against n, and against ω: the paper's scores and gentle ones, and what floats have."""
    picture, (left, right) = canvas(path, columns=2, width=10.4, height=4.4)
    vocab = _most_frequent([row.vocab for row in needed])
    length = _most_frequent([row.length for row in needed])
    top = 3 * max(guaranteed(row.length, row.vocab) for row in needed)
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", ylim=(8, top))
        axes.minorticks_off()
    _panel(left, [row for row in needed if row.vocab == vocab], "length")
    ends = _panel(right, [row for row in needed if row.length == length], "vocab")
    name_lines(right, ends)
    left.set_xlabel(f"n, tokens in a sequence (ω = {vocab})", color=INK)
    right.set_xlabel(f"ω, different tokens (n = {length})", color=INK)
    left.set_ylabel("bits that tell context ids apart", color=INK)
    picture.suptitle("One softmax layer: the precision it needs", x=0.01, ha="left", fontsize=11, color=INK)
    save_picture(picture, path)


def _most_frequent(values: list[int]) -> int:
    return max(set(values), key=values.count)


def _panel(axes: Any, needed: list[Needed], key: str) -> list[Line]:
    """One panel's lines, drawn."""
    sizes = sorted({(row.length, row.vocab) for row in needed})
    xs = [vocab if key == "vocab" else length for length, vocab in sizes]
    limits = [guaranteed(*size) for size in sizes]
    lines = []
    for (scale, sequences), name in _NAMES.items():
        bits = {(row.length, row.vocab): row.bits for row in needed if (row.scale, row.sequences) == (scale, sequences)}
        ys = [float(bits[size]) for size in sizes]
        lines.append(Line(name, xs, ys, _COLOURS[scale], "-" if sequences == "hard" else (0, (4, 2)), 1.6))
    lines.append(Line("enough by the paper's bound", xs, limits, _COLOURS["paper"], (0, (1, 1.5)), 1.4))
    for mantissa, name in ((24, "float32"), (53, "float64")):
        lines.append(Line(name, xs, [float(mantissa)] * len(xs), FAINT, (0, (5, 3)), 1.2))
    for line in lines:
        look = {"color": line.colour, "linestyle": line.style, "linewidth": line.width, "markersize": 4}
        axes.plot(line.xs, line.ys, marker="o" if line.name in _NAMES.values() else "", **look)
    axes.set_xticks(xs, labels=[f"{x:,}" for x in xs])
    return lines

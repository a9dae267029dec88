"""Figures of the benchmarks: bits per parameter, growth, precision and robustness."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from byheart.bounds.kim_moon_yun_2025 import needed, sufficient
from byheart.errors import BadInput
from byheart.exhibits import FAINT, INK, QUIET
from byheart.report.figures import FigureLine, name_lines
from byheart.report.style import canvas, colours, save_picture

BAR_COLOURS = {"compiled": "#b3123f", "stock": "#1f5fa8", "trained": "#8c8c8c", "quoted": "#ffffff"}
FLOAT_BITS = 32


@dataclass(frozen=True)
class Bar:
    """The bits per parameter of one network, which was compiled or trained here, or is quoted."""

    name: str
    bits: float
    kind: Literal["compiled", "stock", "trained", "quoted"]


def draw_bits(bars: list[Bar], path: Path) -> None:
    """Draw horizontal bars, fewest bits first, and the limit of float32."""
    if not bars:
        raise BadInput("there is nothing to draw; expected at least one bar")
    ordered = sorted(bars, key=lambda bar: bar.bits)
    picture, (axes,) = canvas(path, height=1.3 + 0.42 * len(ordered))
    for index, bar in enumerate(ordered):
        edge = QUIET if bar.kind == "quoted" else BAR_COLOURS[bar.kind]
        axes.barh([index], [bar.bits], color=BAR_COLOURS[bar.kind], edgecolor=edge, height=0.66)
        axes.text(bar.bits + 0.3, index, f"{bar.bits:.1f}", va="center", color=INK, fontsize=9)
    axes.axvline(FLOAT_BITS, color=FAINT, linestyle="--", linewidth=1.2)
    limit = {"ha": "right", "va": "bottom", "color": QUIET, "fontsize": 9}
    axes.text(FLOAT_BITS - 0.3, len(ordered) - 0.45, f"float32: {FLOAT_BITS}", **limit)
    axes.set_yticks(range(len(ordered)), [bar.name for bar in ordered])
    axes.set(xlim=(0, FLOAT_BITS * 1.02), ylim=(-0.6, len(ordered)))
    axes.set_title("Bits of random labels per parameter (every parameter counted)", loc="left", fontsize=11)
    axes.grid(visible=False, axis="y")
    save_picture(picture, path)


CURVE_COLOURS = ("#b3123f", "#1f5fa8", "#8c8c8c")


@dataclass(frozen=True)
class GrowthCurve:
    """Seconds and memory that one method took for several numbers of questions."""

    name: str
    questions: tuple[int, ...]
    seconds: tuple[float, ...]
    gibibytes: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """Exponent p of the law N^p that fits the seconds best: the slope on logarithmic axes.

        >>> round(GrowthCurve("squares", (10, 100, 1000), (1, 100, 10_000), (1, 1, 1)).exponent, 6)
        2.0
        """
        if len(self.questions) < 2:
            raise BadInput(f"{self.name}: a single point has no slope; expected at least two numbers of questions")
        return float(np.polyfit(np.log(self.questions), np.log(self.seconds), 1)[0])


def draw_growth(curves: Sequence[GrowthCurve], path: Path) -> None:
    """Draw seconds with their exponents on the left, on logarithmic axes, and gibibytes on the right, from 0."""
    if not curves or len(curves) > len(CURVE_COLOURS):
        raise BadInput(f"got {len(curves)} curves; expected 1 to {len(CURVE_COLOURS)}")
    picture, (time, memory) = canvas(path, columns=2, height=3.4)
    for curve, colour in zip(curves, CURVE_COLOURS, strict=False):
        time.plot(curve.questions, curve.seconds, "o-", color=colour, label=f"{curve.name}: as N^{curve.exponent:.2f}")
        memory.plot(curve.questions, curve.gibibytes, "o-", color=colour, label=curve.name)
    for axes, title in ((time, "CPU seconds to compile"), (memory, "GiB, at most")):
        axes.set(xscale="log", xlabel="questions N")
        axes.set_title(title, loc="left", fontsize=11)
    time.set_yscale("log")
    time.yaxis.set_major_formatter("{x:g}")
    memory.set_ylim(bottom=0)
    time.legend(frameon=False, fontsize=9)
    save_picture(picture, path)


PRECISION_NAMES = {
    ("paper", "hard"): "paper's scale, hard sequences",
    ("paper", "random"): "paper's scale, random ones",
    ("gentle", "hard"): "gentle (ours), hard sequences",
    ("gentle", "random"): "gentle (ours), random ones",
}
SCALE_COLOURS = {"paper": colours()["kajitsuka-sato-2024"], "gentle": colours()["folding"]}


@dataclass(frozen=True)
class NeededBits:
    """Number of bits that tell context ids apart, at one scale of the scores, for one kind of sequences."""

    scale: Literal["paper", "gentle"]
    sequences: Literal["random", "hard"]
    """Random sequences, or hard ones, which differ only in the token with the smallest score."""
    length: int
    vocab: int
    bits: int


def guaranteed(length: int, vocab: int) -> float:
    """Return the bits that suffice by the paper's bound (log n)² e^{−2r} on the distance of two ids.

    Token ids t become ω + t, so with neighbours 4 log n apart at the smallest, scores span r = 8 log n · (ω − 1).

    >>> round(guaranteed(6, 32))
    1280
    """
    r = 8 * math.log(length) * (vocab - 1)
    return 2 * r / math.log(2) - 2 * math.log2(math.log(length))


def draw_precision(measured: list[NeededBits], path: Path) -> None:
    """Draw bits against n and against ω, for the paper's scores and gentle ones, beside the bits of floats."""
    picture, (left, right) = canvas(path, columns=2, width=10.4, height=4.4)
    vocab = _most_frequent([row.vocab for row in measured])
    length = _most_frequent([row.length for row in measured])
    top = 3 * max(guaranteed(row.length, row.vocab) for row in measured)
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", ylim=(8, top))
        axes.minorticks_off()
    _panel(left, [row for row in measured if row.vocab == vocab], "length")
    ends = _panel(right, [row for row in measured if row.length == length], "vocab")
    name_lines(right, ends)
    left.set_xlabel(f"n, tokens in a sequence (ω = {vocab})", color=INK)
    right.set_xlabel(f"ω, different tokens (n = {length})", color=INK)
    left.set_ylabel("bits that tell context ids apart", color=INK)
    picture.suptitle("One softmax layer: the precision it needs", x=0.01, ha="left", fontsize=11, color=INK)
    save_picture(picture, path)


def _most_frequent(values: list[int]) -> int:
    return max(set(values), key=values.count)


def _panel(axes: Any, measured: list[NeededBits], key: str) -> list[FigureLine]:
    """Draw and return the lines of one panel."""
    sizes = sorted({(row.length, row.vocab) for row in measured})
    xs = [vocab if key == "vocab" else length for length, vocab in sizes]
    limits = [guaranteed(*size) for size in sizes]
    lines = []
    for (scale, sequences), name in PRECISION_NAMES.items():
        bits = {
            (row.length, row.vocab): row.bits for row in measured if (row.scale, row.sequences) == (scale, sequences)
        }
        ys = [float(bits[size]) for size in sizes]
        lines.append(FigureLine(name, xs, ys, SCALE_COLOURS[scale], "-" if sequences == "hard" else (0, (4, 2)), 1.6))
    lines.append(FigureLine("enough by the paper's bound", xs, limits, SCALE_COLOURS["paper"], (0, (1, 1.5)), 1.4))
    for mantissa, name in ((24, "float32"), (53, "float64")):
        lines.append(FigureLine(name, xs, [float(mantissa)] * len(xs), FAINT, (0, (5, 3)), 1.2))
    for line in lines:
        look = {"color": line.colour, "linestyle": line.style, "linewidth": line.width, "markersize": 4}
        axes.plot(line.xs, line.ys, marker="o" if line.name in PRECISION_NAMES.values() else "", **look)
    axes.set_xticks(xs, labels=[f"{x:,}" for x in xs])
    return lines


Front = Literal["cells", "balls"]
FRONT_MARKERS = {"cells": "s", "balls": "o"}
CURVE_STEPS = 100
"""Number of steps of the curves."""


@dataclass(frozen=True)
class Robust:
    """A network that was built and certified to be right within a radius."""

    robustness: float
    """The paper's ρ = radius / (δ/2)."""
    parameters: int
    front: Front


def draw_robustness(networks: list[Robust], examples: int, dim: int, path: Path) -> None:
    """Draw parameters against ρ on logarithmic axes, beside the orders of Kim, Moon & Yun 2025 without constants."""
    picture, (axes,) = canvas(path, width=9.2, height=4.8)
    ordered = sorted(networks, key=lambda network: network.robustness)
    first, last = ordered[0].robustness, ordered[-1].robustness
    xs = [first * (last / first) ** (k / CURVE_STEPS) for k in range(CURVE_STEPS + 1)]
    enough, least = ([bound(examples, dim, x) for x in xs] for bound in (sufficient, needed))
    ours = [network.robustness for network in ordered], [float(network.parameters) for network in ordered]
    lines = [
        FigureLine("vardi-2022, read=cells", *ours, colours()["vardi-2022"], "-", 1.6, "certified"),
        FigureLine("Õ(Nd²)", xs, [float(examples * dim**2)] * len(xs), FAINT, (0, (5, 3)), 1.4, "enough, order only"),
        FigureLine("Õ(max(√N, Nd^¼ρ^½, Nd²ρ⁴))", xs, enough, FAINT, "-", 1.4, "enough, order only"),
        FigureLine("Ω((ρ²min(N, d) + 1)d + …√N)", xs, least, FAINT, (0, (1, 1.5)), 1.6, "needed, order only"),
    ]
    for line in lines:
        axes.plot(line.xs, line.ys, color=line.colour, linestyle=line.style, linewidth=line.width)
    for front, marker in FRONT_MARKERS.items():
        chosen = [network for network in ordered if network.front == front]
        look = {"color": colours()["vardi-2022"], "markeredgecolor": "white", "markersize": 7}
        label = {"cells": "cells along a few directions", "balls": "one indicator per point"}[front]
        points = [network.robustness for network in chosen], [network.parameters for network in chosen]
        axes.plot(*points, marker, label=label, zorder=5, **look)
    axes.set(xscale="log", yscale="log", xlim=(first / 1.3, 1.0), ylim=(10, 20 * examples * dim**2))
    axes.set_xlabel("ρ: the radius over half the separation of the points", color=INK)
    axes.set_ylabel("parameters", color=INK)
    title = f"Right on the whole ball around every point: N = {examples:,} points, d = {dim}"
    axes.set_title(title, fontsize=9.5, color=INK, loc="left")
    axes.legend(frameon=False, loc="upper left", fontsize=9)
    name_lines(axes, lines)
    save_picture(picture, path)

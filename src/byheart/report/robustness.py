"""What being right near every point costs: parameters against the radius, and what is known about them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from byheart.bounds.kim_moon_yun_2025 import needed, sufficient
from byheart.report.figures import Line, name_lines
from byheart.report.style import FAINT, INK, canvas, colours, save_picture

Front = Literal["cells", "balls"]
_MARKERS = {"cells": "s", "balls": "o"}
_STEPS = 100
"""Of the curves."""


@dataclass(frozen=True)
class Robust:
    """A network that was built and certified."""

    robustness: float
    """ρ = radius / (δ/2), as in the paper."""
    parameters: int
    front: Front


def draw_robustness(networks: list[Robust], examples: int, dim: int, path: Path) -> None:
    """Parameters against ρ, both logarithmic: networks, and the orders of Kim, Moon & Yun 2025 (constants omitted)."""
    picture, (axes,) = canvas(path, width=9.2, height=4.8)
    ordered = sorted(networks, key=lambda network: network.robustness)
    first, last = ordered[0].robustness, ordered[-1].robustness
    xs = [first * (last / first) ** (k / _STEPS) for k in range(_STEPS + 1)]
    enough, least = ([bound(examples, dim, x) for x in xs] for bound in (sufficient, needed))
    ours = [network.robustness for network in ordered], [float(network.parameters) for network in ordered]
    lines = [
        Line("vardi-2022, read=cells", *ours, colours()["vardi-2022"], "-", 1.6, "certified"),
        Line("Õ(Nd²)", xs, [float(examples * dim**2)] * len(xs), FAINT, (0, (5, 3)), 1.4, "enough, order only"),
        Line("Õ(max(√N, Nd^¼ρ^½, Nd²ρ⁴))", xs, enough, FAINT, "-", 1.4, "enough, order only"),
        Line("Ω((ρ²min(N, d) + 1)d + …√N)", xs, least, FAINT, (0, (1, 1.5)), 1.6, "needed, order only"),
    ]
    for line in lines:
        axes.plot(line.xs, line.ys, color=line.colour, linestyle=line.style, linewidth=line.width)
    for front, marker in _MARKERS.items():
        chosen = [network for network in ordered if network.front == front]
        look = {"color": colours()["vardi-2022"], "markeredgecolor": "white", "markersize": 7}
        said = {"cells": "cells along a few directions", "balls": "one indicator a point"}[front]
        points = [network.robustness for network in chosen], [network.parameters for network in chosen]
        axes.plot(*points, marker, label=said, zorder=5, **look)
    axes.set(xscale="log", yscale="log", xlim=(first / 1.3, 1.0), ylim=(10, 20 * examples * dim**2))
    axes.set_xlabel("ρ: the radius over half the separation of the points", color=INK)
    axes.set_ylabel("parameters", color=INK)
    title = f"Right on the whole ball around every point: N = {examples:,} points, d = {dim}"
    axes.set_title(title, fontsize=9.5, color=INK, loc="left")
    axes.legend(frameon=False, loc="upper left", fontsize=9)
    name_lines(axes, lines)
    save_picture(picture, path)

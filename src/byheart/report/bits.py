"""Bits per parameter: what compiled and trained networks hold, beside what a format could hold at most."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from byheart.errors import BadInput
from byheart.report.style import FAINT, INK, QUIET, canvas, save_picture

_COLOURS = {"compiled": "#b3123f", "stock": "#1f5fa8", "trained": "#8c8c8c", "quoted": "#ffffff"}


@dataclass(frozen=True)
class Bar:
    """One network: what to call it, its bits per parameter, and whether we compiled it, trained it or only quote it."""

    name: str
    bits: float
    kind: Literal["compiled", "stock", "trained", "quoted"]


def draw_bits(bars: list[Bar], path: Path, *, limit: int = 32) -> None:
    """Horizontal bars, the fewest bits first, and the format's limit."""
    if not bars:
        raise BadInput("there is nothing to draw; expected at least one bar")
    ordered = sorted(bars, key=lambda bar: bar.bits)
    picture, (axes,) = canvas(path, height=1.3 + 0.42 * len(ordered))
    for index, bar in enumerate(ordered):
        edge = QUIET if bar.kind == "quoted" else _COLOURS[bar.kind]
        axes.barh([index], [bar.bits], color=_COLOURS[bar.kind], edgecolor=edge, height=0.66)
        axes.text(bar.bits + 0.3, index, f"{bar.bits:.1f}", va="center", color=INK, fontsize=9)
    axes.axvline(limit, color=FAINT, linestyle="--", linewidth=1.2)
    axes.text(limit - 0.3, len(ordered) - 0.45, f"float32: {limit}", ha="right", va="bottom", color=QUIET, fontsize=9)
    axes.set_yticks(range(len(ordered)), [bar.name for bar in ordered])
    axes.set(xlim=(0, limit * 1.02), ylim=(-0.6, len(ordered)))
    axes.set_title("Bits of random labels per parameter (every parameter counted)", loc="left", fontsize=11)
    axes.grid(visible=False, axis="y")
    save_picture(picture, path)

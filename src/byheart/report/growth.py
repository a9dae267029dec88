"""How time and memory grow with the number of questions: a line for each way of doing the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from byheart.errors import BadInput
from byheart.report.style import canvas, save_picture

_COLOURS = ("#b3123f", "#1f5fa8", "#8c8c8c")


@dataclass(frozen=True)
class Growth:
    """One way of doing it: for some numbers of questions, what it took."""

    name: str
    questions: tuple[int, ...]
    seconds: tuple[float, ...]
    gibibytes: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """p, if seconds grow as N^p: the slope of the line that fits best, both axes logarithmic.

        >>> round(Growth("squares", (10, 100, 1000), (1, 100, 10_000), (1, 1, 1)).exponent, 6)
        2.0
        """
        if len(self.questions) < 2:
            raise BadInput(f"{self.name}: a single point has no slope; expected at least two numbers of questions")
        return float(np.polyfit(np.log(self.questions), np.log(self.seconds), 1)[0])


def draw_growth(ways: Sequence[Growth], path: Path) -> None:
    """Seconds on the left, on logarithmic axes, with how they grow; gibibytes on the right, from 0."""
    if not ways or len(ways) > len(_COLOURS):
        raise BadInput(f"got {len(ways)} ways; expected 1 to {len(_COLOURS)}")
    picture, (time, memory) = canvas(path, columns=2, height=3.4)
    for way, colour in zip(ways, _COLOURS, strict=False):
        time.plot(way.questions, way.seconds, "o-", color=colour, label=f"{way.name}: as N^{way.exponent:.2f}")
        memory.plot(way.questions, way.gibibytes, "o-", color=colour, label=way.name)
    for axes, title in ((time, "CPU seconds to compile"), (memory, "GiB, at most")):
        axes.set(xscale="log", xlabel="questions N")
        axes.set_title(title, loc="left", fontsize=11)
    time.set_yscale("log")
    time.yaxis.set_major_formatter("{x:g}")
    memory.set_ylim(bottom=0)
    time.legend(frameon=False, fontsize=9)
    save_picture(picture, path)

"""The true counts of our constructions on a grid of sizes: what the sliders of the explorer move over.

The planner is no formula that a page could evaluate: a plan is a search among layers. So the counts are taken at every
point of the grid beforehand, and the sliders stop at the grid's points only. Nothing is interpolated.

``counts.json`` is made, in a few minutes, by

    python -c "from byheart.explore import counts; counts.write()"
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal

from byheart.constructions.planner import planned
from byheart.constructions.registry import find
from byheart.errors import BadInput
from byheart.sizes import Size

Setting = Literal["next-token", "seq-to-seq"]
Counts = dict[str, list[int | None]]
"""Numbers of parameters without the embedding table, by construction, for every point of the grid in order."""
SETTINGS: tuple[Setting, ...] = ("next-token", "seq-to-seq")
GRID = {
    "length": [4, 16, 64, 256],
    "vocab": [16, 256, 4096, 65536],
    "labels": [2, 16, 256, 4096],
    "examples": [round(10 ** (k / 4)) for k in range(4, 25)],
}
"""Values of every size; the last size changes fastest."""
BITS = [16, 32, 64, 128, 256]
"""Bits per weight that ``LIMITED`` is also planned for."""
LIMITED = "kajitsuka-sato-2025"
FILE = Path(__file__).with_name("counts.json")


@cache
def counts() -> dict[Setting, Counts]:
    """Read ``counts.json``."""
    found: dict[Setting, Counts] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def sizes() -> Iterator[Size]:
    """Yield every point of the grid in order."""
    for values in product(*GRID.values()):
        yield Size(**dict(zip(GRID, values, strict=True)))


def counts_at(size: Size, setting: Setting) -> dict[str, int]:
    """Return the counts at one point, by construction; for ``LIMITED`` also those for every entry of ``BITS``.

    >>> found = counts_at(Size(examples=1000, length=4, labels=2, vocab=16), "next-token")
    >>> found["folding"], found["kajitsuka-sato-2025"], found["kajitsuka-sato-2025, 32 bits"]
    (261, 2431, 3246)
    """
    found = {plan.construction: plan.without_embedding for plan in planned(size, setting)}
    construction = find(LIMITED)
    for bits in BITS:
        settings: Any = replace(construction.settings_with(positions=False), bits=bits)
        try:
            plan = construction.plan(size, setting, settings)
        except BadInput:  # a weight needs more bits
            continue
        found[named(bits)] = plan.dense - plan.embedding
    return found


def named(bits: int) -> str:
    """Name ``LIMITED`` with weights of at most ``bits`` bits.

    >>> named(16)
    'kajitsuka-sato-2025, 16 bits'
    """
    return f"{LIMITED}, {bits} bits"


def sampled(setting: Setting) -> Counts:
    """Return the counts on the whole grid; None where a construction does not allow the sizes."""
    rows = [counts_at(size, setting) for size in sizes()]
    names = sorted({name for row in rows for name in row})
    return {name: [row.get(name) for row in rows] for name in names}


def write() -> None:
    """Make ``counts.json`` anew."""
    FILE.write_text(json.dumps({setting: sampled(setting) for setting in SETTINGS}) + "\n", encoding="utf-8")

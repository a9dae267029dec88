"""Bounds and true counts for the explorer's sliders: everything but the formulas, which ``bounds.js`` has once more.

A test holds the two against each other. Bounds that need more than the sliders give (a dimension, the number of
relations) have no formula there: the page says what they need, as ``byheart bounds`` does.

A construction's count is no formula: a plan is a search among layers. So ``counts.json`` has the counts at every point
of a grid of sizes, at which the sliders stop. It is made, in a few minutes, by

    python -c "from byheart.explore import bounds; bounds.write()"
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal

from byheart.bounds import Bound, bounds_for
from byheart.constructions.planner import planned
from byheart.constructions.registry import find, known
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


def shown() -> dict[str, Any]:
    """Return sliders, bounds and true counts, as JSON for the page."""
    size = next(sizes())
    expected = {plan.construction for setting in SETTINGS for plan in planned(size, setting) if plan.expected}
    return {
        "grid": GRID,
        "bits": BITS,
        "limited": LIMITED,
        "bounds": {setting: [_bound(bound) for bound in bounds_for(setting)] for setting in SETTINGS},
        "counts": counts(),
        "colours": {name: construction.colour for name, construction in known().items()},
        "expected": sorted(expected),  # constructions whose count is not proved for every task
    }


def _bound(bound: Bound) -> dict[str, Any]:
    names = ("name", "paper", "source", "side", "kind", "expression", "hypotheses")
    missing = [name for name in bound.needs if name not in (*GRID, "bits")]
    return {name: getattr(bound, name) for name in names} | {"missing": missing}


@cache
def counts() -> dict[Setting, Counts]:
    """Read ``counts.json``."""
    by_setting: dict[Setting, Counts] = json.loads(FILE.read_text(encoding="utf-8"))
    return by_setting


def sizes() -> Iterator[Size]:
    """Yield every point of the grid in order."""
    for values in product(*GRID.values()):
        yield Size(**dict(zip(GRID, values, strict=True)))


def counts_at(size: Size, setting: Setting) -> dict[str, int]:
    """Return the counts at one point, by construction; for ``LIMITED`` also those for every entry of ``BITS``.

    >>> at = counts_at(Size(examples=1000, length=4, labels=2, vocab=16), "next-token")
    >>> at["folding"], at["kajitsuka-sato-2025"], at["kajitsuka-sato-2025, 32 bits"]
    (261, 2431, 3246)
    """
    parameters = {plan.construction: plan.without_embedding for plan in planned(size, setting)}
    construction = find(LIMITED)
    for bits in BITS:
        settings: Any = replace(construction.settings_with(positions=False), bits=bits)
        try:
            plan = construction.plan(size, setting, settings)
        except BadInput:  # a weight needs more bits
            continue
        parameters[f"{LIMITED}, {bits} bits"] = plan.dense - plan.embedding
    return parameters


def write() -> None:
    """Make ``counts.json`` anew; a count is null where a construction does not allow the sizes."""
    by_setting = {}
    for setting in SETTINGS:
        rows = [counts_at(size, setting) for size in sizes()]
        names = sorted({name for row in rows for name in row})
        by_setting[setting] = {name: [row.get(name) for row in rows] for name in names}
    FILE.write_text(json.dumps(by_setting) + "\n", encoding="utf-8")

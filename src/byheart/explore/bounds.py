"""Data of the explorer about the bounds: everything but the formulas, which ``bounds.js`` has once more.

A test holds the two against each other. Bounds that need more than the sliders give (a dimension, the number of
relations) have no formula there: the page says what they need, as ``byheart bounds`` does.
"""

from typing import Any

from byheart.bounds import Bound, bounds_for
from byheart.constructions.planner import planned
from byheart.constructions.registry import known
from byheart.explore.counts import BITS, GRID, LIMITED, SETTINGS, counts, sizes

GIVEN = {*GRID, "bits"}
"""Values that the sliders set."""


def shown() -> dict[str, Any]:
    """Sliders, bounds and true counts, as JSON for the page."""
    return {
        "grid": GRID,
        "bits": BITS,
        "limited": LIMITED,
        "bounds": {setting: [_bound(bound) for bound in bounds_for(setting)] for setting in SETTINGS},
        "counts": counts(),
        "colours": {name: construction.colour for name, construction in known().items()},
        "expected": _expected(),
    }


def _expected() -> list[str]:
    """Return the constructions whose count is not proved for every task."""
    size = next(sizes())
    return sorted({plan.construction for setting in SETTINGS for plan in planned(size, setting) if plan.expected})


def _bound(bound: Bound) -> dict[str, Any]:
    names = ("name", "paper", "source", "side", "kind", "expression", "hypotheses")
    missing = [name for name in bound.needs if name not in GIVEN]
    return {name: getattr(bound, name) for name in names} | {"missing": missing}

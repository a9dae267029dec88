"""How many parameters every construction takes at given sizes, and which one is smallest from where on.

The counts are *true*: each is the plan of a network that ``byheart build`` would build for the hardest task of that
size.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

from byheart.constructions import CONSTRUCTIONS
from byheart.constructions.demand import Setting
from byheart.errors import BadInput
from byheart.size import Size


@dataclass(frozen=True)
class Planned:
    """One construction at one size: parameters, zeros included; the embedding table among them; depth and width."""

    construction: str
    parameters: int
    embedding: int
    depth: int
    width: int


@dataclass(frozen=True)
class Crossover:
    """From ``examples`` on, ``construction`` is the smallest."""

    examples: int
    construction: str


def planned(size: Size, setting: Setting, *, positions: bool = False) -> list[Planned]:
    """All constructions that cover ``setting``, at their default settings, smallest first.

    Smallest without the embedding table, which is a cost of the vocabulary and not of what is memorized.

    >>> size = Size(examples=10_000, length=32, labels=2, vocab=1000)
    >>> [p.construction for p in planned(size, "next-token")]
    ['folding', 'kajitsuka-sato-2025', 'vardi-2022', 'interpolate', 'dana-2025']
    """
    rows = []
    for construction in CONSTRUCTIONS.values():
        if setting in construction.settings_for:
            names = {field for field in construction.settings.__dataclass_fields__ if field == "positions"}
            settings = construction.settings(**dict.fromkeys(names, positions))
            try:
                plan = construction.plan_size(size, setting, settings)
            except BadInput:  # the construction is for other sizes
                continue
            rows.append(Planned(construction.name, plan.dense, plan.embedding, plan.depth, plan.width))
    return sorted(rows, key=lambda row: row.parameters - row.embedding)


def crossovers(size: Size, setting: Setting, *, positions: bool = False, largest: int = 10**7) -> list[Crossover]:
    """Which construction is smallest from which N on, other sizes fixed, for N up to ``largest``.

    Found on a grid of 12 sizes a decade and then by bisection, so a construction that is smallest only between two
    neighbours of the grid is not seen.
    """

    def smallest(examples: int) -> str:
        return planned(replace(size, examples=examples), setting, positions=positions)[0].construction

    grid = sorted({round(10 ** (k / 12)) for k in range(12 * len(str(largest))) if 10 ** (k / 12) <= largest})
    found = [Crossover(grid[0], smallest(grid[0]))]
    for before, after in pairwise(grid):
        winner = smallest(after)
        if winner != found[-1].construction:
            low, high = before, after
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if smallest(middle) == found[-1].construction else (low, middle)
            found.append(Crossover(high, winner))
    return found


def words(winners: list[Crossover]) -> str:
    """The crossovers as one sentence.

    >>> words([Crossover(1, "interpolate"), Crossover(700, "vardi-2022")])
    'Smallest without embedding table, other sizes fixed: from N = 1 on interpolate, from N = 700 on vardi-2022.'
    """
    says = ", ".join(f"from N = {winner.examples:,} on {winner.construction}" for winner in winners)
    return f"Smallest without embedding table, other sizes fixed: {says}."


def check_size(size: Size) -> Size:
    """Refuse sizes that no task can have."""
    for name in ("examples", "length", "labels", "vocab"):
        if getattr(size, name) < 1:
            raise BadInput(f"{name} is {getattr(size, name)}; expected at least 1")
    if size.dim is not None and size.dim < 1:
        raise BadInput(f"dim is {size.dim}; expected at least 1")
    return size

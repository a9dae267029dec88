"""How many parameters every construction takes at given sizes, and which one is smallest from where on.

The counts are *true*: each is the plan of a network that ``byheart build`` would build for the hardest task of that
size.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from byheart.constructions import CONSTRUCTIONS
from byheart.constructions.gadgets.demand import Setting
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

    @property
    def without_embedding(self) -> int:
        """Parameters but for the embedding table."""
        return self.parameters - self.embedding


@dataclass(frozen=True)
class Crossover:
    """From ``examples`` on, ``construction`` is the smallest."""

    examples: int
    construction: str


def planned(size: Size, setting: Setting, *, positions: bool = False) -> list[Planned]:
    """All constructions that cover ``setting``, at their default settings, smallest first.

    Smallest without the embedding table, which is a cost of the vocabulary and not of what is memorized.

    >>> size = Size(examples=10_000, length=32, labels=2, vocab=1000)
    >>> [p.construction for p in planned(size, "next-token")][:5]
    ['folding', 'kajitsuka-sato-2025', 'vardi-2022', 'kim-2023', 'interpolate']
    """
    return list(_planned(size, setting, positions))


@lru_cache(maxsize=1024)
def _planned(size: Size, setting: Setting, positions: bool) -> tuple[Planned, ...]:
    rows = []
    for construction in CONSTRUCTIONS.values():
        if setting in construction.settings_for:
            try:
                plan = construction.plan_size(size, setting, construction.settings_with(positions=positions))
            except BadInput:  # the construction is for other sizes
                continue
            rows.append(Planned(construction.name, plan.dense, plan.embedding, plan.depth, plan.width))
    return tuple(sorted(rows, key=lambda row: row.without_embedding))


def _grid(largest: int) -> list[int]:
    """Twelve sizes a decade, up to ``largest``, and that."""
    powers = {round(10 ** (k / 12)) for k in range(12 * len(str(largest))) if 10 ** (k / 12) <= largest}
    return sorted(powers | {largest})


def crossovers(size: Size, setting: Setting, *, positions: bool = False, largest: int = 10**7) -> list[Crossover]:
    """Which construction is smallest from which N on, other sizes fixed, for N up to ``largest``.

    Found on a grid of 12 sizes a decade and then by bisection, so a construction that is smallest only between two
    neighbours of the grid is not seen.
    """

    def smallest(examples: int) -> str:
        return planned(replace(size, examples=examples), setting, positions=positions)[0].construction

    grid = _grid(largest)
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


@dataclass(frozen=True)
class Range:
    """From ``first`` to ``last`` examples; ``last`` is None where nothing speaks of an end."""

    first: int
    last: int | None


def smaller(
    size: Size, setting: Setting, *, than: str = "interpolate", positions: bool = False, largest: int = 10**7
) -> dict[str, Range | None]:
    """For which N every construction is smaller than ``than``, up to ``largest``: the last such range; None: never.

    Without embedding tables, on the same grid as :func:`crossovers`, and then by bisection.

    >>> found = smaller(Size(examples=1, length=8, labels=10, vocab=64), "seq-to-seq", largest=1000)
    >>> found["folding"], found["kajitsuka-sato-2024"]
    (Range(first=17, last=None), None)
    """

    def wins(name: str, examples: int) -> bool:
        rows = {row.construction: row for row in _planned(replace(size, examples=examples), setting, positions)}
        return name in rows and rows[name].without_embedding < rows[than].without_embedding

    def edge(name: str, low: int, high: int) -> int:
        """Where ``wins`` changes between two sizes: the first that is like ``high``."""
        after = wins(name, high)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if wins(name, middle) == after else (middle, high)
        return high

    found: dict[str, Range | None] = {}
    grid = _grid(largest)
    for name in (row.construction for row in _planned(replace(size, examples=largest), setting, positions)):
        won = [i for i, examples in enumerate(grid) if wins(name, examples)]
        if name == than or not won:
            found |= {} if name == than else {name: None}
            continue
        end = won[-1]
        begin = max((i + 1 for i in range(end) if i not in won), default=0)
        first = edge(name, grid[begin - 1], grid[begin]) if begin else grid[0]
        found[name] = Range(first, None if end == len(grid) - 1 else edge(name, grid[end], grid[end + 1]) - 1)
    return found


def crossovers_in_words(winners: list[Crossover]) -> str:
    """The crossovers as one sentence.

    >>> crossovers_in_words([Crossover(1, "interpolate"), Crossover(700, "vardi-2022")])
    'Smallest without embedding table, other sizes fixed: from N = 1 on interpolate, from N = 700 on vardi-2022.'
    """
    says = ", ".join(f"from N = {winner.examples:,} on {winner.construction}" for winner in winners)
    return f"Smallest without embedding table, other sizes fixed: {says}."


def smaller_in_words(found: dict[str, Range | None], than: str = "interpolate") -> str:
    """What :func:`smaller` found, as a sentence.

    >>> smaller_in_words({"folding": Range(17, None), "kajitsuka-sato-2024": Range(1, 40), "dana-2025": None})
    'Smaller than interpolate: kajitsuka-sato-2024 up to N = 40, folding from N = 17 on; never dana-2025.'
    """
    some = sorted((r.first, r.last or 0, name) for name, r in found.items() if r is not None)
    never = ", ".join(name for name, r in found.items() if r is None)
    says = ", ".join(f"{name} {_range(first, last)}" for first, last, name in some)
    return f"Smaller than {than}: " + "; ".join(part for part in (says, f"never {never}" * bool(never)) if part) + "."


def _range(first: int, last: int) -> str:
    if not last:
        return f"from N = {first:,} on"
    return f"up to N = {last:,}" if first == 1 else f"from N = {first:,} to {last:,}"


def check_size(size: Size) -> Size:
    """Refuse sizes that no task can have."""
    for name in ("examples", "length", "labels", "vocab"):
        if getattr(size, name) < 1:
            raise BadInput(f"{name} is {getattr(size, name)}; expected at least 1")
    if size.dim is not None and size.dim < 1:
        raise BadInput(f"dim is {size.dim}; expected at least 1")
    return size

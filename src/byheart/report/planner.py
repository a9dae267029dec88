"""How many parameters every construction takes at given sizes, and which one is smallest from where on.

The counts are *true*: each is the plan of a network that ``byheart build`` would build for the hardest task of that
size.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
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


def smaller_from(
    size: Size, setting: Setting, *, than: str = "interpolate", positions: bool = False, largest: int = 10**7
) -> dict[str, int | None]:
    """From which N on every construction is smaller than ``than`` and stays so up to ``largest``; None: never.

    Without embedding tables, on the same grid as :func:`crossovers`, and then by bisection.

    >>> smaller_from(Size(examples=1, length=8, labels=10, vocab=64), "seq-to-seq", largest=1000)["kajitsuka-sato-2024"]
    """

    def smaller(name: str, examples: int) -> bool:
        rows = {row.construction: row for row in _planned(replace(size, examples=examples), setting, positions)}
        return name in rows and rows[name].without_embedding < rows[than].without_embedding

    found: dict[str, int | None] = {}
    grid = _grid(largest)
    for name in (row.construction for row in _planned(replace(size, examples=largest), setting, positions)):
        if name == than:
            continue
        last = max((i for i, examples in enumerate(grid) if not smaller(name, examples)), default=-1)
        if last == len(grid) - 1:
            found[name] = None
            continue
        low, high = (grid[last] if last >= 0 else 0), grid[last + 1]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if smaller(name, middle) else (middle, high)
        found[name] = high
    return found


def crossovers_in_words(winners: list[Crossover]) -> str:
    """The crossovers as one sentence.

    >>> crossovers_in_words([Crossover(1, "interpolate"), Crossover(700, "vardi-2022")])
    'Smallest without embedding table, other sizes fixed: from N = 1 on interpolate, from N = 700 on vardi-2022.'
    """
    says = ", ".join(f"from N = {winner.examples:,} on {winner.construction}" for winner in winners)
    return f"Smallest without embedding table, other sizes fixed: {says}."


def smaller_in_words(found: dict[str, int | None], than: str = "interpolate") -> str:
    """What :func:`smaller_from` found, as a sentence.

    >>> smaller_in_words({"folding": 17, "kim-2023": 1200, "dana-2025": None})
    'Smaller than interpolate: folding from N = 17 on, kim-2023 from N = 1,200 on; never dana-2025.'
    """
    some = sorted((examples, name) for name, examples in found.items() if examples is not None)
    never = ", ".join(name for name, examples in found.items() if examples is None)
    says = ", ".join(f"{name} from N = {examples:,} on" for examples, name in some)
    return (
        f"Smaller than {than}: " + "; ".join(part for part in (says, f"never {never}" if never else "") if part) + "."
    )


def check_size(size: Size) -> Size:
    """Refuse sizes that no task can have."""
    for name in ("examples", "length", "labels", "vocab"):
        if getattr(size, name) < 1:
            raise BadInput(f"{name} is {getattr(size, name)}; expected at least 1")
    if size.dim is not None and size.dim < 1:
        raise BadInput(f"dim is {size.dim}; expected at least 1")
    return size

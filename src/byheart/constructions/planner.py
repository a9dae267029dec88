"""Parameter counts of all constructions at given sizes, and the sizes from which each one is smallest.

The counts are *true*: each is the plan of a network that ``byheart build`` would build for the hardest task of that
size. A count that is not proved for every task is marked as expected.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Literal, get_args

from byheart.constructions.construction import Construction
from byheart.constructions.gadgets.demand import Setting
from byheart.constructions.registry import known
from byheart.errors import BadInput
from byheart.progress import Report
from byheart.sizes import Size

PLAIN = "interpolate"
"""Baseline of the comparison: the construction that gives every question weights of its own."""
LARGEST = 10**7
"""Largest N for which the planner looks for the smallest construction."""
MOST = 10**12
"""Largest size that is planned: a plan lists about √N layers."""
MOST_TOKENS = 10**14
"""Largest number of different tokens, summed over the examples: each may need a label."""
Fewest = Literal["without-embedding", "in-all"]
"""Count to minimize: the parameters without the embedding table, which is a cost of the vocabulary rather than of
memorization, or all of them. A construction that can be built for either (``--fewest``) is planned for both."""


@dataclass(frozen=True)
class PlannedSize:
    """The plan of one construction at one size. ``parameters`` includes zeros and the embedding table.

    ``expected`` means that some task may take more. ``fewest`` is the count that the construction minimizes, or None if
    it does not leave that open.
    """

    construction: str
    parameters: int
    embedding: int
    depth: int
    width: int
    expected: bool = False
    fewest: Fewest | None = None

    @property
    def without_embedding(self) -> int:
        """Number of parameters outside the embedding table."""
        return self.parameters - self.embedding

    def counted(self, fewest: Fewest) -> int:
        """Return the number of parameters that ``fewest`` counts."""
        return self.parameters if fewest == "in-all" else self.without_embedding


@dataclass(frozen=True)
class Crossover:
    """A number of examples from which ``construction`` is the smallest."""

    examples: int
    construction: str


@dataclass(frozen=True)
class Range:
    """A range of numbers of examples, from ``first`` to ``last``; ``last`` is None if no end was found."""

    first: int
    last: int | None


def planned(
    size: Size, setting: Setting, *, positions: bool = False, fewest: Fewest = "without-embedding"
) -> list[PlannedSize]:
    """Plan all constructions that cover ``setting``, smallest first, with default settings except ``fewest``.

    >>> size = Size(examples=10_000, length=32, labels=2, vocab=1000)
    >>> [p.construction for p in planned(size, "next-token")][:5]
    ['folding', 'kajitsuka-sato-2025', 'vardi-2022', 'kim-2023', 'interpolate']
    >>> [(p.construction, p.parameters) for p in planned(size, "next-token", fewest="in-all")][:2]
    [('folding', 1629), ('vardi-2022', 9192)]
    """
    return ranked(plans(size, setting, positions=positions), fewest)


def plans(size: Size, setting: Setting, *, positions: bool = False) -> list[PlannedSize]:
    """Plan all constructions that cover ``setting``, and those that leave ``fewest`` open once for each value of it."""
    rows = []
    for construction in known().values():
        if setting in construction.covers:
            for fewest in _choices(construction):
                choices = {"positions": positions} if fewest is None else {"positions": positions, "fewest": fewest}
                try:
                    plan = construction.plan(size, setting, construction.settings_with(**choices))
                except BadInput:  # the construction is for other sizes
                    continue
                numbers = (plan.dense, plan.embedding, plan.depth, plan.width)
                rows.append(PlannedSize(construction.name, *numbers, expected=plan.expected, fewest=fewest))
    return rows


def _choices(construction: Construction) -> tuple[Fewest | None, ...]:
    """Return the values of the setting ``fewest``, or only None if the construction has no such setting."""
    return get_args(Fewest) if getattr(construction.settings, "fewest", None) in get_args(Fewest) else (None,)


def ranked(rows: Iterable[PlannedSize], fewest: Fewest) -> list[PlannedSize]:
    """Keep the smallest plan of each construction, and sort them with the smallest first."""
    best: dict[str, PlannedSize] = {}
    for row in sorted(rows, key=lambda row: row.counted(fewest)):
        best.setdefault(row.construction, row)
    return list(best.values())


@dataclass(frozen=True, eq=False)
class Planner:
    """Plans of all constructions for any number N of examples; the other sizes (``size`` without its N) are fixed."""

    size: Size
    setting: Setting
    positions: bool = False
    largest: int = LARGEST
    rows: dict[int, list[PlannedSize]] = field(default_factory=dict, repr=False)
    """Plans made so far, by N."""

    def at(self, examples: int, fewest: Fewest = "without-embedding") -> list[PlannedSize]:
        """Return the plans for ``examples`` examples, smallest first."""
        if examples not in self.rows:
            size = replace(self.size, examples=examples)
            self.rows[examples] = plans(size, self.setting, positions=self.positions)
        return ranked(self.rows[examples], fewest)

    @property
    def grid(self) -> list[int]:
        """Sizes to compare at: twelve per decade up to the largest, and the largest itself."""
        powers = (round(10 ** (k / 12)) for k in range(12 * len(str(self.largest))))
        return sorted({N for N in powers if self.largest >= N} | {self.largest})

    def crossovers(self, report: Report | None = None, fewest: Fewest = "without-embedding") -> list[Crossover]:
        """Find the N from which each construction is smallest, on the grid and then by bisection.

        A construction that is smallest only between two neighbours of the grid is missed.
        """

        def smallest(examples: int) -> str:
            return self.at(examples, fewest)[0].construction

        grid = self.grid
        winners = [Crossover(grid[0], smallest(grid[0]))]
        for done, (before, after) in enumerate(pairwise(grid), start=1):
            if report is not None:
                report(done, len(grid))
            winner = smallest(after)
            if winner != winners[-1].construction:
                first = _first(lambda N: smallest(N) != winners[-1].construction, before, after)
                winners.append(Crossover(first, winner))
        return winners

    def smaller(self, report: Report | None = None) -> dict[str, Range | None]:
        """Find the last range of N in which each construction is smaller than :data:`PLAIN`; None: never.

        Embedding tables do not count. The search uses the grid and then bisection.

        >>> planner = Planner(Size(examples=1, length=8, labels=10, vocab=64), "seq-to-seq", largest=1000)
        >>> ranges = planner.smaller()
        >>> ranges["folding"], ranges["kajitsuka-sato-2024"]
        (Range(first=11, last=None), None)
        """
        names = [row.construction for row in self.at(self.largest) if row.construction != PLAIN]
        ranges = {}
        for done, name in enumerate(names, start=1):
            ranges[name] = self._range(name)
            if report is not None:
                report(done, len(names), name)
        return ranges

    def _range(self, name: str) -> Range | None:
        def wins(examples: int) -> bool:
            rows = {row.construction: row.without_embedding for row in self.at(examples)}
            return name in rows and rows[name] < rows[PLAIN]

        grid = self.grid
        won = [wins(examples) for examples in grid]
        if not any(won):
            return None
        end = max(i for i, win in enumerate(won) if win)
        begin = max((i + 1 for i in range(end) if not won[i]), default=0)
        first = _first(wins, grid[begin - 1], grid[begin]) if begin else grid[0]
        at_end = end == len(grid) - 1
        return Range(first, None if at_end else _first(lambda N: not wins(N), grid[end], grid[end + 1]) - 1)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Find by bisection the first size at which ``holds`` is true, given that it fails at ``low``, not at ``high``."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def crossovers_in_words(winners: list[Crossover], fewest: Fewest = "without-embedding") -> str:
    """Describe the crossovers in one sentence.

    >>> crossovers_in_words([Crossover(1, "interpolate"), Crossover(700, "vardi-2022")])
    'Smallest without embedding table, other sizes fixed: from N = 1 on interpolate, from N = 700 on vardi-2022.'
    """
    winning = ", ".join(f"from N = {winner.examples:,} on {winner.construction}" for winner in winners)
    counted = "in all" if fewest == "in-all" else "without embedding table"
    return f"Smallest {counted}, other sizes fixed: {winning}."


def smaller_in_words(ranges: dict[str, Range | None]) -> str:
    """Describe the result of :meth:`Planner.smaller` in a sentence.

    >>> smaller_in_words({"folding": Range(17, None), "kajitsuka-sato-2024": Range(1, 40), "dana-2025": None})
    'Smaller than interpolate: kajitsuka-sato-2024 up to N = 40, folding from N = 17 on; never dana-2025.'
    """
    bounded = sorted((r.first, r.last or 0, name) for name, r in ranges.items() if r is not None)
    never = ", ".join(name for name, r in ranges.items() if r is None)
    smaller = ", ".join(f"{name} {_range(first, last)}" for first, last, name in bounded)
    clauses = [clause for clause in (smaller, f"never {never}" * bool(never)) if clause]
    return f"Smaller than {PLAIN}: {'; '.join(clauses)}."


def _range(first: int, last: int) -> str:
    if not last:
        return f"from N = {first:,} on"
    return f"up to N = {last:,}" if first == 1 else f"from N = {first:,} to {last:,}"


def check_size(size: Size) -> Size:
    """Raise BadInput for sizes that no task can have, and for sizes too large to plan layer by layer."""
    for name, value in asdict(size).items():
        if value is not None and value < 1:
            raise BadInput(f"{name} is {value}; expected at least 1")
        if value is not None and value > MOST:
            raise BadInput(f"{name} is {value}; expected at most {MOST}")
    if (tokens := size.examples * min(size.length, size.vocab)) > MOST_TOKENS:
        raise BadInput(f"examples with {tokens} different tokens in all; expected at most {MOST_TOKENS}")
    return size

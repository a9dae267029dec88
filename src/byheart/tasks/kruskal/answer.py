"""What is known of a Kruskal rank: bounds with their reasons, an estimate, and verdicts."""

from dataclasses import dataclass, replace
from typing import Literal

from byheart.tasks.checks import count


@dataclass(frozen=True)
class Sampled:
    """Random subsets of one size, each of them decided exactly: an estimate, not a proof.

    >>> print(Sampled(32, 100))
    none of 100 random subsets of size 32 is dependent (an estimate, not a proof)
    """

    size: int
    tried: int
    dependent: tuple[int, ...] | None = None
    """The first dependent subset met, at which sampling stopped; ``None`` if all were independent."""

    def __str__(self) -> str:
        if self.dependent is not None:
            return f"number {self.tried:,} of the random subsets of size {self.size} is dependent"
        return f"none of {self.tried:,} random subsets of size {self.size} is dependent (an estimate, not a proof)"


@dataclass(frozen=True)
class IndependenceVerdict:
    """Whether every k of the vectors are independent, and why, or why that is open."""

    k: int
    answer: Literal["holds", "fails", "undecided"]
    why: str

    def __str__(self) -> str:
        return f"every {self.k} independent: {self.answer}; {self.why}"


@dataclass(frozen=True)
class Kruskal:
    """What is known of the Kruskal rank of N vectors: ``lower`` ≤ the Kruskal rank ≤ ``upper``, both proved."""

    vectors: int
    """N."""
    lower: int
    lower_by: str
    """What certifies the lower bound, in words."""
    upper: int
    circuit: tuple[int, ...] | None = None
    """Dependent vectors, ``upper`` + 1 of them, verified exactly; ``None`` if ``upper`` is N."""
    sampled: Sampled | None = None
    """The estimate; ``None`` if nothing was left to sample."""

    @property
    def exact(self) -> bool:
        """Whether the bounds meet."""
        return self.lower == self.upper

    @property
    def upper_by(self) -> str:
        """What certifies the upper bound, in words."""
        if self.circuit is None:
            return f"there are {self.vectors} vectors"
        if self.upper == 0:
            return f"vector {self.circuit[0]} is zero"
        return f"vectors {_listed(self.circuit)} are dependent"

    def refuted(self, circuit: tuple[int, ...] | None) -> "Kruskal":
        """With the upper bound from a circuit, if that is better."""
        if circuit is None or len(circuit) > self.upper:
            return self
        assert self.lower < len(circuit), "a set proved independent is dependent; please report this"
        return replace(self, upper=len(circuit) - 1, circuit=circuit)

    def proved(self, lower: int, by: str) -> "Kruskal":
        """With a lower bound, if that is better."""
        if lower <= self.lower:
            return self
        assert lower <= self.upper, "a dependent set was proved independent; please report this"
        return replace(self, lower=lower, lower_by=by)

    def verdict(self, k: int) -> IndependenceVerdict:
        """Whether every ``k`` of the vectors are independent.

        >>> print(Kruskal(9, 2, "no two are parallel", 5, (0, 1, 2, 3, 4, 5), Sampled(4, 100)).verdict(4))
        every 4 independent: undecided; none of 100 random subsets of size 4 is dependent (an estimate, not a proof)
        """
        count("k", k)
        if k <= self.lower:
            return IndependenceVerdict(k, "holds", self.lower_by)
        if k > self.upper:
            return IndependenceVerdict(k, "fails", self.upper_by)
        if self.sampled is None or self.sampled.dependent is not None or self.sampled.size < k:
            return IndependenceVerdict(
                k, "undecided", f"proved for {self.lower}, refuted for {self.upper + 1}, not sampled"
            )
        return IndependenceVerdict(k, "undecided", str(self.sampled))

    def __str__(self) -> str:
        if self.exact:
            return f"Kruskal rank {self.lower}: {self.lower_by}; {self.upper_by}"
        claim = f"Kruskal rank at least {self.lower} ({self.lower_by}) and at most {self.upper} ({self.upper_by})"
        return claim if self.sampled is None else f"{claim}; {self.sampled}"


def _listed(indices: tuple[int, ...]) -> str:
    """The first few indices in words.

    >>> _listed((3, 5)), _listed(tuple(range(20)))
    ('3 and 5', '0, 1, 2, 3, 4, 5, … and 19 (20 of them)')
    """
    if len(indices) <= 8:
        return f"{', '.join(map(str, indices[:-1]))} and {indices[-1]}"
    return f"{', '.join(map(str, indices[:6]))}, … and {indices[-1]} ({len(indices)} of them)"

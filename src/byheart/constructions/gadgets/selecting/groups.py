"""What every selection is given, and how steps are written down."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from byheart.tasks.arrays import Ids

Count = TypeVar("Count", int, Ids)
Shapes: TypeAlias = list[tuple[str, int, int]]
"""Layers as (role, outputs, inputs)."""
READ = 4
"""Units behind any selection: e, relu(e − 1), relu(e − C) and q."""


class SelectionSizes(Protocol):
    """What a selection has to know of the lookup that it is a part of."""

    @property
    def labels(self) -> int:
        """C."""

    @property
    def largest(self) -> int:
        """P: keys are 0 to P."""

    @property
    def top(self) -> int:
        """The groups' integers are at most 2^top."""

    @property
    def own_bits(self) -> int:
        """Not 0 where the key is passed on."""

    @property
    def slots(self) -> int:
        """Entries of a group behind its first one."""

    @property
    def fold_bits(self) -> int:
        """Bits that a layer folds away."""


@dataclass(frozen=True)
class Groups:
    """The groups of one task: where all but the first begin, the κ of their first entries, and their integers."""

    thresholds: list[int]
    first: list[int]
    packed: list[int]


def step_biases(thresholds: Iterable[int]) -> list[int]:
    """The biases of relu(z − t + 1) and relu(z − t), threshold by threshold."""
    return [one - t for t in thresholds for one in (1, 0)]


def of_steps(coefficients: Iterable[int]) -> list[int]:
    """Σ_i c_i·[z ≥ t_i], as a row over these pairs of units.

    >>> of_steps([5, -2])
    [5, -5, -2, 2]
    """
    return [entry for c in coefficients for entry in (c, -c)]

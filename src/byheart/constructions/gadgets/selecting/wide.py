"""All steps in one layer, and two sums of them in the next: 8 parameters a group, width 2g − 1."""

from dataclasses import dataclass
from itertools import pairwise

from byheart.constructions.gadgets.selecting.groups import (
    READ,
    Count,
    Groups,
    SelectionSizes,
    Shapes,
    of_steps,
    step_biases,
)
from byheart.networks.exact import Affine, integers


@dataclass(frozen=True)
class Wide:
    """All groups in one layer: the fewest parameters."""

    def spare_bits(self, sizes: SelectionSizes) -> int:
        """No weight has more bits than ``top`` and these, sign included."""
        return 3

    def depth(self, groups: Count) -> Count:
        """Layers for this many groups, in front of *read*."""
        return 0 * groups + 2

    def unpacking(self, sizes: SelectionSizes) -> int:
        """Layers that unpack words: there are none."""
        return 0

    def shapes(self, sizes: SelectionSizes, groups: int) -> Shapes:
        """The layers."""
        steps = 2 * (groups - 1) + 1
        return [("steps", steps, 1), ("groups", 2, steps), ("read", READ, 2)]

    def layers(self, sizes: SelectionSizes, groups: Groups) -> list[Affine]:
        """From z to e, relu(e − 1), relu(e − C) and q."""
        return [_steps(groups.thresholds), _groups(sizes, groups), _read(sizes)]


def _steps(thresholds: list[int]) -> Affine:
    """z itself, and a pair of units for every threshold."""
    biases = [0, *step_biases(thresholds)]
    return Affine(integers([[1]] * len(biases)), integers(biases), role="steps")


def _groups(sizes: SelectionSizes, groups: Groups) -> Affine:
    """e = relu(C·z + C − κ of the group's first entry) and q = the group's integer (+ z where the key is passed on)."""
    e_row = [sizes.labels, *of_steps(before - after for before, after in pairwise(groups.first))]
    q_row = [1 if sizes.own_bits else 0, *of_steps(after - before for before, after in pairwise(groups.packed))]
    biases = [sizes.labels - groups.first[0], groups.packed[0]]
    return Affine(integers([e_row, q_row]), integers(biases), role="groups")


def _read(sizes: SelectionSizes) -> Affine:
    """e, relu(e − 1), relu(e − C) and q: what the spike needs, for the group's first entry."""
    return Affine(integers([[1, 0], [1, 0], [1, 0], [0, 1]]), integers([0, -1, -sizes.labels, 0]), role="read")

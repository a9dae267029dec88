"""Constant width: group after group in a chain of narrow layers.

A layer has k steps and an accumulator; 2k + 1 units. Its thresholds are reached from relu(z − t), t being the last one
of the layer before, since relu(relu(z − t) − (t' − t)) = relu(z − t') for t' ≥ t: z itself need not be kept. The
accumulator is X (:mod:`.words`) for the groups seen so far, w_0 + Σ_j (w_j − w_(j−1))·[z ≥ t_j] + 2^(top+1)·C(z + 1):
that of the last of them that is reached, never negative, so its ReLU does nothing. With k = 1 a layer has three units,
12 parameters a group.
"""

from dataclasses import dataclass
from itertools import pairwise

from byheart.constructions.gadgets.selecting import words
from byheart.constructions.gadgets.selecting.groups import Count, Groups, SelectionSizes, Shapes, of_steps, step_biases
from byheart.networks.exact import Affine, integers


@dataclass(frozen=True)
class Chain:
    """Group after group, ``steps`` of them a layer: width 2·steps + 1, and 4 behind it."""

    steps: int = 1

    @property
    def groups_a_layer(self) -> float:
        """When there are many groups."""
        return self.steps

    def spare_bits(self, sizes: SelectionSizes) -> int:
        """No weight has more bits than ``top`` and these, sign included."""
        return words.spare_bits(sizes)

    def depth(self, groups: Count) -> Count:
        """Layers for this many groups, in front of those that unpack."""
        return -(-(groups - 1) // self.steps)

    def unpacking(self, sizes: SelectionSizes) -> int:
        """Layers that unpack words."""
        return words.unpacking(sizes)

    def shapes(self, sizes: SelectionSizes, groups: int) -> Shapes:
        """The layers."""
        shapes, inputs = [], 1
        for done in range(0, groups - 1, self.steps):
            units = 2 * min(self.steps, groups - 1 - done) + 1
            shapes.append(("step", units, inputs))
            inputs = units
        return [*shapes, *words.unpack_shapes(sizes, inputs)]

    def layers(self, sizes: SelectionSizes, groups: Groups) -> list[Affine]:
        """From z to e, relu(e − 1), relu(e − C) and q."""
        of_groups = words.words(sizes, groups)
        jumps = [after - before for before, after in pairwise(of_groups)]
        factor, bias = words.of_key(sizes)
        layers: list[Affine] = []
        # In front of the first layer there is z alone; later the last unit but one is relu(z − reached).
        X, bias, place, reached = [factor], bias + of_groups[0], [1], 0
        for i in range(0, len(jumps), self.steps):
            thresholds = groups.thresholds[i : i + self.steps]
            biases = step_biases(t - reached for t in thresholds)
            layers.append(Affine(integers([*[place] * len(biases), X]), integers([*biases, bias]), role="step"))
            X, bias = [*of_steps(jumps[i : i + self.steps]), 1], 0
            place, reached = [*[0] * (len(X) - 2), 1, 0], thresholds[-1]
        return [*layers, *words.unpack(sizes, X, bias)]

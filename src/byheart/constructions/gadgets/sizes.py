"""How large every part of an FFN · uniform attention · FFN network is, from the task's demand alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from byheart.constructions.gadgets import grid, hashing
from byheart.constructions.gadgets.demand import Demand
from byheart.constructions.plan import Shape
from byheart.networks.exact import Affine, Integers
from byheart.tasks.checks import Ids

Mixing = Literal["attention", "sum"]


class Stage(Protocol):
    """A token-wise network from one key to one label: its shape before it is built, its layers afterwards."""

    @property
    def shape(self) -> Shape:
        """Roles and widths."""

    def layers(self, keys: Ids, labels: Integers) -> list[Affine]:
        """The layers that answer ``labels`` [K] on ``keys`` [K]."""


@dataclass(frozen=True)
class Engine:
    """How keys become labels. Both stages are functions of (keys, labels, largest key[, own bits])."""

    label_stage: Callable[[int, int, int], Stage]
    token_stage: Callable[[int, int, int, int], Stage]
    fold_labels: bool
    """Whether the label stage wants its keys folded into a small range first."""
    mixing: Mixing = "attention"
    """What tells a token of all others: uniform attention, or a plain sum."""


@dataclass(frozen=True)
class Sizes:
    """Every size of the network, from the demand alone."""

    demand: Demand
    engine: Engine

    @property
    def label_modulus(self) -> int:
        """Smallest Q for the questions."""
        return hashing.question_modulus(self.demand.questions, self.demand.size.labels)

    @property
    def token_modulus(self) -> int:
        """Smallest Q for the tokens: the marked must not meet any other, nor those of one sequence in seq-to-seq."""
        d = self.demand
        pairs = d.marked * d.tokens if d.setting == "next-token" else 2 * d.marked * d.tokens + d.size.length * d.tokens
        smallest = hashing.SMALLEST_ALONE if d.size.dim == 1 else hashing.SMALLEST
        return max(smallest, 2 * d.tokens + 1, pairs // 2)

    @property
    def own_bits(self) -> int:
        """B: room for the token's own hash below its code; 0 where it is not passed on."""
        passed_on = self.demand.coded and self.demand.setting == "seq-to-seq"
        return hashing.largest_key(self.token_modulus).bit_length() if passed_on else 0

    @property
    def label_ratio(self) -> int:
        """The stream behind the attention is at most this many times Q."""
        return (2 * self.demand.size.length + 1) << self.own_bits

    @property
    def label_folds(self) -> int:
        """Folds in front of the label stage."""
        wide = self.label_ratio * hashing.largest_modulus(self.label_modulus) >= 1 << 62
        return hashing.folds_needed(self.label_ratio) if self.engine.fold_labels or wide else 0

    @property
    def token_folds(self) -> int:
        """Folds in front of the token stage: of W_E + W_pos, or of the hash of a vector, which may have W_pos added."""
        size, bits = self.demand.size, self.demand.grid_bits
        return hashing.folds_needed((1 if size.dim is None else grid.ratio(size.dim, bits)) + self.demand.positions)

    @property
    def label_stage(self) -> Stage:
        """Keys to labels."""
        Q = hashing.largest_modulus(self.label_modulus)
        largest = Q // 2 if self.label_folds else self.label_ratio * Q
        return self.engine.label_stage(self.demand.questions, self.demand.size.labels, largest)

    @property
    def token_stage(self) -> Stage:
        """Marked tokens to codes below Q."""
        codes, largest = hashing.largest_modulus(self.label_modulus), hashing.largest_key(self.token_modulus)
        return self.engine.token_stage(self.demand.marked, codes, largest, self.own_bits)

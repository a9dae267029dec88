"""How large every part of an FFN · uniform attention · FFN network is, from the task's demand alone."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

from byheart.constructions.gadgets import grid, modular_hash
from byheart.constructions.gadgets.demand import LookupDemand
from byheart.constructions.plan import TokenwiseShape
from byheart.errors import BadInput
from byheart.networks.exact import Affine, Integers
from byheart.tasks.arrays import Ids

Mixing = Literal["attention", "sum"]


class LookupStage(Protocol):
    """A token-wise network from one key to one label: its shape before it is built, its layers afterwards."""

    @property
    def shape(self) -> TokenwiseShape:
        """Roles and widths."""

    def layers(self, keys: Ids, labels: Integers) -> list[Affine]:
        """The layers that answer ``labels`` [K] on ``keys`` [K]."""


@dataclass(frozen=True)
class Engine:
    """How keys become labels. Both stages are functions of (keys, labels, largest key[, own bits], most layers)."""

    label_stage: Callable[[int, int, int, int | None], LookupStage]
    token_stage: Callable[[int, int, int, int, int | None], LookupStage]
    fold_labels: bool
    """Whether the label stage wants its keys folded into a small range first."""
    depth: int | None = None
    """At most this many layers of the whole network."""
    shallowest: int = 0
    """Layers of a stage at least, where ``depth`` is given."""
    mixing: Mixing = "attention"
    """What tells a token of all others: uniform attention, or a plain sum."""


@dataclass(frozen=True)
class LookupSizes:
    """Every size of the network, from the demand alone."""

    demand: LookupDemand
    engine: Engine

    @property
    def label_modulus(self) -> int:
        """Smallest Q for the questions."""
        return modular_hash.question_modulus(self.demand.questions, self.demand.size.labels)

    @property
    def token_modulus(self) -> int:
        """Smallest Q for the tokens: the marked must not meet any other, nor those of one sequence in seq-to-seq."""
        d = self.demand
        pairs = d.marked * d.tokens if d.setting == "next-token" else 2 * d.marked * d.tokens + d.size.length * d.tokens
        smallest = modular_hash.SMALLEST_ALONE if d.size.dim == 1 else modular_hash.SMALLEST
        return max(smallest, 2 * d.tokens + 1, pairs // 2)

    @property
    def own_bits(self) -> int:
        """B: room for the token's own hash below its code; 0 where it is not passed on."""
        passed_on = self.demand.coded and self.demand.setting == "seq-to-seq"
        return modular_hash.largest_key(self.token_modulus).bit_length() if passed_on else 0

    @property
    def label_ratio(self) -> int:
        """The stream behind the attention is at most this many times Q."""
        return (2 * self.demand.size.length + 1) << self.own_bits

    @property
    def label_folds(self) -> int:
        """Folds in front of the label stage."""
        wide = self.label_ratio * modular_hash.largest_modulus(self.label_modulus) >= 1 << 62
        return modular_hash.folds_needed(self.label_ratio) if self.engine.fold_labels or wide else 0

    @property
    def token_folds(self) -> int:
        """Folds in front of the token stage: of W_E + W_pos, or of the hash of a vector, which may have W_pos added."""
        size, bits, front = self.demand.size, self.demand.grid_bits, self.demand.front
        ratio = 1 if size.dim is None else front.ratio if front is not None else grid.ratio(size.dim, bits)
        return modular_hash.folds_needed(ratio + self.demand.positions)

    @property
    def projection(self) -> TokenwiseShape:
        """From a vector to its hash."""
        front = self.demand.front
        return TokenwiseShape((("hash", 1, self.demand.size.dim or 1),) if front is None else front.shapes)

    @property
    def fold_layers(self) -> int:
        """Layers in front of both stages that fold."""
        token_folds = self.token_folds if self.demand.coded else 0
        return sum(len(modular_hash.fold_shapes(1, folds)) for folds in (token_folds, self.label_folds))

    @property
    def label_stage(self) -> LookupStage:
        """Keys to labels."""
        return self._stages[-1]

    @property
    def token_stage(self) -> LookupStage:
        """Marked tokens to codes below Q."""
        return self._stages[0]

    @cached_property
    def _stages(self) -> list[LookupStage]:
        """Token stage, where there is one, and label stage, within the depth that the engine allows."""
        coded, depth = self.demand.coded, self.engine.depth
        free = [*([self._token_stage(None)] if coded else []), self._label_stage(None)]
        if depth is None:
            return free
        # Besides the stages and folds there are the embedding or projection, and the attention.
        layers = depth - 1 - len(self.projection.layers) - self.fold_layers
        if sum(_depth(stage) for stage in free) <= layers:
            return free
        if layers < (least := len(free) * self.engine.shallowest):
            raise BadInput(f"this task needs at least {depth - layers + least} layers; got depth={depth}")
        return self._divided(layers) if coded else [self._label_stage(layers)]

    def _divided(self, layers: int) -> list[LookupStage]:
        """Both stages with this many layers together: the fewest parameters among about a hundred divisions."""
        least = self.engine.shallowest
        divided = []
        for most in range(least, layers - least + 1, 1 + (layers - 2 * least) // _DIVISIONS):
            token = self._token_stage(most)
            divided.append([token, self._label_stage(layers - _depth(token))])
        return min(divided, key=lambda stages: sum(stage.shape.dense for stage in stages))

    def _label_stage(self, layers: int | None) -> LookupStage:
        Q = modular_hash.largest_modulus(self.label_modulus)
        largest = Q // 2 if self.label_folds else self.label_ratio * Q
        return self.engine.label_stage(self.demand.questions, self.demand.size.labels, largest, layers)

    def _token_stage(self, layers: int | None) -> LookupStage:
        codes, largest = modular_hash.largest_modulus(self.label_modulus), modular_hash.largest_key(self.token_modulus)
        return self.engine.token_stage(self.demand.marked, codes, largest, self.own_bits, layers)


_DIVISIONS = 100


def _depth(stage: LookupStage) -> int:
    return len(stage.shape.layers)

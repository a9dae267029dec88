"""What a construction will cost, known before anything is built."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeAlias

from byheart.files.memory import check_memory
from byheart.networks import Account

TAKES = 64
"""Bytes of memory for every parameter: a few copies, or an integer of any size in a list and an array."""
Named: TypeAlias = tuple[str, tuple[int, ...]]
"""A tensor's name and its shape."""


@dataclass(frozen=True)
class TokenwiseShape:
    """A token-wise network as roles and widths: ``layers`` holds (role, outputs, inputs)."""

    layers: tuple[tuple[str, int, int], ...]

    @cached_property
    def dense(self) -> int:
        """Σ (inputs + 1) · outputs."""
        return sum(outputs * (inputs + 1) for _, outputs, inputs in self.layers)

    @property
    def depth(self) -> int:
        """Layers."""
        return len(self.layers)

    @cached_property
    def width(self) -> int:
        """Units of the widest layer."""
        return max(outputs for _, outputs, _ in self.layers)

    def tensors(self) -> Iterable[Named]:
        """The tensors of a feed-forward network of this shape, as the network itself will name them."""
        for index, (role, outputs, inputs) in enumerate(self.layers):
            yield f"{index}.{role}.W", (outputs, inputs)
            yield f"{index}.{role}.b", (outputs,)


@dataclass(frozen=True)
class Blocks:
    """A chain of residual blocks as (role, d_ff, d_model)."""

    blocks: tuple[tuple[str, int, int], ...]

    @cached_property
    def dense(self) -> int:
        """Σ (2·d_model + 1) · d_ff."""
        return sum(d_ff * (2 * d_model + 1) for _, d_ff, d_model in self.blocks)

    @property
    def depth(self) -> int:
        """Layers: two a block."""
        return 2 * len(self.blocks)

    @cached_property
    def width(self) -> int:
        """Hidden units of the widest block; 0 if there is none."""
        return max((d_ff for _, d_ff, _ in self.blocks), default=0)

    def tensors(self) -> Iterable[Named]:
        """The tensors of such a chain, as the network itself will name them."""
        for index, (role, d_ff, d_model) in enumerate(self.blocks):
            yield f"{index}.{role}.W_in", (d_ff, d_model)
            yield f"{index}.{role}.b_in", (d_ff,)
            yield f"{index}.{role}.W_out", (d_model, d_ff)


Part: TypeAlias = tuple[str, TokenwiseShape | Blocks | tuple[Named, ...]]
"""A layer's name with its shape: that of a feed-forward network or of blocks, or the named shapes of its tensors."""


@dataclass(frozen=True)
class Plan:
    """The shape of every tensor of a network that a construction is going to build, part by part.

    Constructions whose sizes follow from the task's sizes alone plan exactly: ``plan.agrees_with(account)`` holds for
    the network that they build, and :func:`byheart.build` checks it every time.
    """

    parts: tuple[Part, ...]
    depth: int
    width: int
    expected: bool = False
    """Of plans for sizes alone: whether this is what tasks took so far, and not proved to be enough for every task."""

    @property
    def tensors(self) -> tuple[Named, ...]:
        """Every tensor. Networks may have millions, so all that is counted below is counted without naming them."""
        named: list[Named] = []
        for name, part in self.parts:
            given = part if isinstance(part, tuple) else part.tensors()
            named += [(f"{name}.{key}", shape) for key, shape in given]
        return tuple(named)

    @cached_property
    def dense(self) -> int:
        """Entries of all tensors, zeros included."""
        return sum(_dense(part) for part in self.parts)

    @property
    def embedding(self) -> int:
        """Entries of token embedding tables."""
        return sum(_dense(part) for part in self.parts if part[0].startswith("embedding"))

    def check_memory(self, name: str) -> None:
        """BadInput if a network of these sizes, and what it takes to find its weights, would not fit into memory."""
        check_memory(TAKES * self.dense, f"{name}: a network of {self.dense:,} parameters")

    def agrees_with(self, account: Account) -> bool:
        """Whether the account of a built network has exactly these tensors, this depth and this width."""
        built = tuple((item.name, item.shape) for item in account.items)
        return built == self.tensors and (account.depth, account.width) == (self.depth, self.width)


def _dense(part: Part) -> int:
    shape = part[1]
    return sum(prod(sizes) for _, sizes in shape) if isinstance(shape, tuple) else shape.dense


def plan_of(parts: Iterable[Part], *, input_width: int, extra_depth: int) -> Plan:
    """Put the parts of a network together; ``extra_depth`` is that of layers that are neither Shape nor Blocks."""
    parts, depth, width = tuple(parts), extra_depth, input_width
    for _, part in parts:
        if not isinstance(part, tuple):
            depth, width = depth + part.depth, max(width, part.width)
    return Plan(parts, depth, width)

"""Plans: the tensors of a network, and so its cost, known before anything is built; and the network of built layers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

from byheart.files.memory import check_memory
from byheart.networks import Account
from byheart.networks.exact import ExactNetwork, Layer
from byheart.tasks import NextToken, SeqToSeq

BYTES_PER_PARAMETER = 64
"""Bytes of memory per parameter while building: a few copies, or an integer of any size in a list and an array."""
Named: TypeAlias = tuple[str, tuple[int, ...]]
"""A tensor's name and its shape."""


@dataclass(frozen=True)
class TokenwiseShape:
    """Shape of a token-wise network: ``layers`` holds (role, outputs, inputs)."""

    layers: tuple[tuple[str, int, int], ...]

    @cached_property
    def dense(self) -> int:
        """Number of parameters, Σ (inputs + 1) · outputs."""
        return sum(outputs * (inputs + 1) for _, outputs, inputs in self.layers)

    @property
    def depth(self) -> int:
        """Number of layers."""
        return len(self.layers)

    @cached_property
    def width(self) -> int:
        """Number of units of the widest layer."""
        return max(outputs for _, outputs, _ in self.layers)

    def tensors(self) -> Iterable[Named]:
        """Yield the tensors of a feed-forward network of this shape, under the names that the network gives them."""
        for index, (role, outputs, inputs) in enumerate(self.layers):
            yield f"{index}.{role}.W", (outputs, inputs)
            yield f"{index}.{role}.b", (outputs,)


@dataclass(frozen=True)
class Blocks:
    """Shape of a chain of residual blocks: ``blocks`` holds (role, d_ff, d_model)."""

    blocks: tuple[tuple[str, int, int], ...]

    @cached_property
    def dense(self) -> int:
        """Number of parameters, Σ (2·d_model + 1) · d_ff."""
        return sum(d_ff * (2 * d_model + 1) for _, d_ff, d_model in self.blocks)

    @property
    def depth(self) -> int:
        """Number of layers: two per block."""
        return 2 * len(self.blocks)

    @cached_property
    def width(self) -> int:
        """Number of hidden units of the widest block; 0 without blocks."""
        return max((d_ff for _, d_ff, _ in self.blocks), default=0)

    def tensors(self) -> Iterable[Named]:
        """Yield the tensors of the chain, under the names that the network gives them."""
        for index, (role, d_ff, d_model) in enumerate(self.blocks):
            yield f"{index}.{role}.W_in", (d_ff, d_model)
            yield f"{index}.{role}.b_in", (d_ff,)
            yield f"{index}.{role}.W_out", (d_model, d_ff)


Part: TypeAlias = tuple[str, TokenwiseShape | Blocks | tuple[Named, ...]]
"""Layer name and shape: that of a feed-forward network or of blocks, or the named shapes of the layer's tensors."""


@dataclass(frozen=True)
class Plan:
    """The shape of every tensor of a network that a construction will build, part by part.

    ``plan.agrees_with(account)`` holds for the built network, and :func:`byheart.build` checks it every time.
    """

    parts: tuple[Part, ...]
    depth: int
    width: int
    expected: bool = False
    """True if a plan for sizes alone extrapolates from tasks seen so far and is not proved for every task."""

    @property
    def tensors(self) -> tuple[Named, ...]:
        """All tensors. A network may have millions, so the counts below do not list them."""
        named: list[Named] = []
        for name, part in self.parts:
            tensors = part if isinstance(part, tuple) else part.tensors()
            named += [(f"{name}.{key}", shape) for key, shape in tensors]
        return tuple(named)

    @cached_property
    def dense(self) -> int:
        """Number of entries of all tensors, zeros included."""
        return sum(_dense(part) for part in self.parts)

    @property
    def embedding(self) -> int:
        """Number of entries of token embedding tables."""
        return sum(_dense(part) for part in self.parts if part[0].startswith("embedding"))

    def check_memory(self, name: str) -> None:
        """Raise BadInput if a network of these sizes, and the search for its weights, would not fit into memory."""
        check_memory(BYTES_PER_PARAMETER * self.dense, f"{name}: a network of {self.dense:,} parameters")

    def agrees_with(self, account: Account) -> bool:
        """Return True if the account of a built network has exactly these tensors, this depth and this width."""
        built = tuple((item.name, item.shape) for item in account.items)
        return built == self.tensors and (account.depth, account.width) == (self.depth, self.width)


def _dense(part: Part) -> int:
    shape = part[1]
    return sum(prod(sizes) for _, sizes in shape) if isinstance(shape, tuple) else shape.dense


def plan_of(parts: Iterable[Part], *, input_width: int, extra_depth: int) -> Plan:
    """Combine parts into a plan; ``extra_depth`` is the depth of layers that are neither feed-forward nor blocks."""
    parts, depth, width = tuple(parts), extra_depth, input_width
    for _, part in parts:
        if not isinstance(part, tuple):
            depth, width = depth + part.depth, max(width, part.width)
    return Plan(parts, depth, width)


def network_for(
    task: NextToken | SeqToSeq, layers: Sequence[Layer], about: Mapping[str, Any] | None = None
) -> ExactNetwork:
    """Return a network of ``layers`` that reads the task's tokens and answers at its labels; ``about`` is recorded.

    >>> from byheart.networks.exact import Embedding, integers
    >>> task = SeqToSeq(tokens=[[0, 1]], labels=[[1, 0]])
    >>> network = network_for(task, [Embedding(integers([[1], [0]]))])
    >>> network.inputs, network.outputs, network.length
    ('tokens', 'every', 2)
    """
    size = task.size
    return ExactNetwork(
        tuple(layers),
        inputs="tokens" if size.dim is None else "vectors",
        outputs="last" if isinstance(task, NextToken) else "every",
        length=size.length,
        dim=size.dim or 1,
        about=about or {},
    )

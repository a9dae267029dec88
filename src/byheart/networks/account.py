"""The one counter: how many parameters a network has, in every way of counting that a reader may want.

``dense`` is what the papers count: every entry of every matrix and bias, zeros included. Beside it stand the non-zero
entries, the entries that were really chosen (``free``: within a tensor, the different values other than 0 and ±1), and
the bits. Every number of parameters that Byheart prints comes from here.
"""

from dataclasses import dataclass

import numpy as np

from byheart.networks.exact.integers import Integers, bits
from byheart.networks.exact.layers import (
    Embedding,
    ExactNetwork,
    FeedForward,
    Flatten,
    HardmaxAttention,
    Residual,
    SoftmaxAttention,
    UniformAttention,
)


@dataclass(frozen=True)
class Item:
    """One tensor: its name, shape, entries, non-zero entries, distinct entries beyond 0 and ±1, and bits."""

    name: str
    shape: tuple[int, ...]
    dense: int
    nonzero: int
    free: int
    max_bits: int
    total_bits: int


@dataclass(frozen=True)
class Account:
    """All tensors of a network, and the totals."""

    items: tuple[Item, ...]
    depth: int
    width: int

    @property
    def dense(self) -> int:
        """Entries of all tensors, zeros included."""
        return sum(item.dense for item in self.items)

    @property
    def nonzero(self) -> int:
        """Entries that are not zero."""
        return sum(item.nonzero for item in self.items)

    @property
    def free(self) -> int:
        """Different values other than 0 and ±1, counted within each tensor."""
        return sum(item.free for item in self.items)

    @property
    def max_bits(self) -> int:
        """Bits of the largest entry, sign included."""
        return max((item.max_bits for item in self.items), default=0)

    @property
    def total_bits(self) -> int:
        """Bits of all entries, sign included; a zero takes one."""
        return sum(item.total_bits for item in self.items)

    @property
    def embedding(self) -> int:
        """Entries of token embedding tables, which some authors do not count."""
        return sum(item.dense for item in self.items if item.name.startswith("embedding"))

    def as_json(self) -> dict[str, object]:
        """The account as the object that ``--json`` prints."""
        keys = ("name", "shape", "dense", "nonzero", "max_bits")
        return {
            "dense": self.dense,
            "nonzero": self.nonzero,
            "free": self.free,
            "max_bits": self.max_bits,
            "total_bits": self.total_bits,
            "depth": self.depth,
            "width": self.width,
            "items": [{key: getattr(item, key) for key in keys} for item in self.items],
        }


def _item(name: str, tensor: Integers) -> Item:
    flat = tensor.ravel().tolist()
    sizes = [bits(value) for value in flat]
    return Item(
        name=name,
        shape=tensor.shape,
        dense=len(flat),
        nonzero=int(np.count_nonzero(tensor)),
        free=len(set(flat) - {-1, 0, 1}),
        max_bits=max(sizes, default=0),
        total_bits=sum(sizes),
    )


def count(network: ExactNetwork) -> Account:
    """Count every tensor of ``network``.

    Depth is the number of weight layers on the way from input to output (an affine map, an embedding and an attention
    layer are one each, a residual block is two; positional codes are added on the way and are none); width is the
    widest of them.

    >>> from byheart.networks.exact import Affine, FeedForward, ExactNetwork, integers
    >>> square = Affine(W=integers([[1, 0], [0, 7]]), b=integers([0, 0]))
    >>> account = count(ExactNetwork((FeedForward((square,)),), inputs="vectors", outputs="last", length=1, dim=2))
    >>> account.dense, account.nonzero, account.free, account.depth, account.width
    (6, 2, 1, 1, 2)
    """
    depth, stream, width = 0, network.dim, network.dim
    for layer in network.layers:
        match layer:
            case FeedForward(layers=chain):
                depth += len(chain)
                stream = chain[-1].W.shape[0]
                width = max(width, *(affine.W.shape[0] for affine in chain))
            case Residual(blocks=blocks):
                depth += 2 * len(blocks)
                width = max(width, *(len(block.W_in) for block in blocks))
            case Embedding(W_E=table):
                depth += 1
                stream = table.shape[1]
            case UniformAttention() | HardmaxAttention() | SoftmaxAttention():
                depth += 1
            case Flatten():
                stream *= network.length
        width = max(width, stream)
    return Account(tuple(_item(name, tensor) for name, tensor in network.tensors()), depth=depth, width=width)

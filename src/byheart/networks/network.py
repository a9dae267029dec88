"""What every network answers to, whatever it is made of."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from numpy.typing import NDArray

from byheart.networks.account import Account, item
from byheart.networks.folders import NAMES


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Network(ABC):
    """Tensors with names, and how deep and how wide they stand.

    ``about`` and ``files`` are what lies beside the weights in a folder. They say where a network comes from and how to
    talk to it, and the fingerprint does not cover them. A certificate that rests on one of them says so.
    """

    kind: ClassVar[str]
    """"exact", "softmax", "trained", "transformer" or "stock": the key of all that is registered for such networks."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What whoever built the network noted: construction, settings, texts."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Other files of its folder, by name: those of a tokenizer."""

    @abstractmethod
    def tensors(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Every weight with its name, in order."""

    @abstractmethod
    def entry_bits(self, name: str) -> int | None:
        """Bits that an entry of a tensor takes; None if it holds integers, each of its own size."""

    @property
    @abstractmethod
    def depth(self) -> int:
        """Weight layers on the way from input to output.

        An affine map, an embedding and an attention layer are one each, a feed-forward block with hidden units is two;
        what is only added on the way is none.
        """

    @property
    @abstractmethod
    def width(self) -> int:
        """Entries of the widest layer."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 over all that the answers depend on: the same for a network and for its reloaded copy."""

    @property
    def title(self) -> str:
        """What it is, in words."""
        return NAMES[self.kind]

    def part(self, name: str) -> str:
        """The part of the network that a tensor belongs to: the first word of its name."""
        return name.split(".", maxsplit=1)[0]

    @property
    def padded(self) -> int:
        """Parameters if every layer read and wrote the whole stream, as in a stock Transformer."""
        return self.account.dense

    def is_named(self, fingerprint: str) -> bool:
        """Whether a certificate with this fingerprint is about this network."""
        return fingerprint == self.fingerprint

    @cached_property
    def account(self) -> Account:
        """Its parameters, counted."""
        return count(self)

    def __repr__(self) -> str:
        account = self.account
        sizes = f"{account.dense:,} parameters, depth {account.depth}, width {account.width}"
        return f"<{type(self).__name__}: {sizes}>"

    def _repr_html_(self) -> str:
        return self.account._repr_html_()


def count(network: Network) -> Account:
    """Count every tensor of ``network``; the one counter.

    >>> from byheart.networks.exact import Affine, ExactNetwork, FeedForward, integers
    >>> square = Affine(W=integers([[1, 0], [0, 7]]), b=integers([0, 0]))
    >>> account = count(ExactNetwork((FeedForward((square,)),), inputs="vectors", outputs="last", length=1, dim=2))
    >>> account.dense, account.nonzero, account.free, account.depth, account.width
    (6, 2, 1, 1, 2)
    """
    tensors = ((name, tensor, network.entry_bits(name), network.part(name)) for name, tensor in network.tensors())
    return Account(tuple(item(*tensor) for tensor in tensors), depth=network.depth, width=network.width)

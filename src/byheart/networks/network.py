"""The interface that every network implements, and the count of its parameters."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from numpy.typing import NDArray

from byheart.networks.account import Account, item
from byheart.networks.folders import NAMES


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Network(ABC):
    """A network: named tensors, and how they are stored.

    ``about`` and ``files`` lie beside the weights in a folder. They say where a network comes from and how to query
    it. The fingerprint does not cover them; a certificate that rests on one of them says so.
    """

    kind: ClassVar[str]
    """Key of the network's loader and judge: "exact", "softmax", "trained", "transformer" or "stock"."""
    metadata: ClassVar[dict[str, str]] = {}
    """Metadata of its safetensors files."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Notes of the builder: construction, settings, texts."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Tokenizer files of the folder, by name."""

    @abstractmethod
    def tensors(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the name and the entries of every tensor, in order."""

    @abstractmethod
    def entry_bits(self, name: str) -> int | None:
        """Return the number of bits per entry of a tensor, or None if each integer has its own size."""

    @property
    @abstractmethod
    def depth(self) -> int:
        """Number of weight layers from input to output.

        An affine map, an embedding and an attention layer count one each, a feed-forward block with hidden units
        counts two. Layers that only add a constant count nothing.
        """

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of entries of the widest layer."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 of all that determines the outputs. A reloaded copy has the same fingerprint."""

    @abstractmethod
    def as_config(self) -> dict[str, Any]:
        """Return the entries of config.json, without ``about``."""

    @abstractmethod
    def write_tensors(self, folder: Path) -> None:
        """Write the weights into ``folder``."""

    def side_files(self) -> dict[str, bytes]:
        """Return the files, besides weights and tokenizer, with which other programs run the network, by name."""
        return {}

    @classmethod
    @abstractmethod
    def read(cls, config: dict[str, Any], folder: Path, **beside: Any) -> Self:
        """Return the network that ``config`` describes, with the weights in ``folder``.

        ``beside`` holds ``about`` and ``files``.
        """

    @property
    def title(self) -> str:
        """Kind of the network in words, with an article."""
        return NAMES[self.kind]

    def part(self, name: str) -> str:
        """Return the part of the network that a tensor belongs to: the first word of its name."""
        return name.split(".", maxsplit=1)[0]

    @property
    def padded(self) -> int:
        """Number of parameters if every layer read and wrote the whole stream, as in a stock Transformer."""
        return self.account.dense

    def is_named(self, fingerprint: str) -> bool:
        """Return True if a certificate with this fingerprint is about this network."""
        return fingerprint == self.fingerprint

    @cached_property
    def account(self) -> Account:
        """Count of the parameters, tensor by tensor."""
        return count(self)

    def __repr__(self) -> str:
        account = self.account
        sizes = f"{account.dense:,} parameters, depth {account.depth}, width {account.width}"
        return f"<{type(self).__name__}: {sizes}>"

    def _repr_html_(self) -> str:
        return self.account._repr_html_()


def count(network: Network) -> Account:
    """Count the entries of every tensor of ``network``.

    >>> from byheart.networks.exact import Affine, ExactNetwork, FeedForward, integers
    >>> square = Affine(W=integers([[1, 0], [0, 7]]), b=integers([0, 0]))
    >>> account = count(ExactNetwork((FeedForward((square,)),), inputs="vectors", outputs="last", length=1, dim=2))
    >>> account.dense, account.nonzero, account.free, account.depth, account.width
    (6, 2, 1, 1, 2)
    """
    tensors = ((name, tensor, network.entry_bits(name), network.part(name)) for name, tensor in network.tensors())
    return Account(tuple(item(*tensor) for tensor in tensors), depth=network.depth, width=network.width)


class HasNetwork(Protocol):
    """The result of a construction."""

    @property
    def network(self) -> Network:
        """The network that was built."""

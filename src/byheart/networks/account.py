"""The one counter: the number of parameters of a network, in every way of counting that a reader may want.

``dense`` is what the papers count: every entry of every matrix and bias, zeros included. Beside it stand the non-zero
entries, the entries that were really chosen (``free``: within a tensor, the different values other than 0 and ±1), and
the bits. Every number of parameters that Byheart prints comes from here.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Item:
    """One tensor: its name, shape, entries, non-zero entries, distinct entries beyond 0 and ±1, bits, and its part."""

    name: str
    shape: tuple[int, ...]
    dense: int
    nonzero: int
    free: int
    max_bits: int
    total_bits: int
    part: str = ""


@dataclass(frozen=True)
class Account:
    """All tensors of a network, and the totals."""

    items: tuple[Item, ...]
    depth: int
    width: int

    def __repr__(self) -> str:
        size = f"{self.dense:,} parameters in {len(self.items):,} tensors"
        return f"<Account: {size}, depth {self.depth:,}, width {self.width:,}>"

    @property
    def dense(self) -> int:
        """Number of entries of all tensors, zeros included."""
        return sum(item.dense for item in self.items)

    @property
    def nonzero(self) -> int:
        """Number of entries that are not zero."""
        return sum(item.nonzero for item in self.items)

    @property
    def free(self) -> int:
        """Number of different values other than 0 and ±1, counted within each tensor."""
        return sum(item.free for item in self.items)

    @property
    def max_bits(self) -> int:
        """Number of bits of the largest entry, sign included."""
        return max((item.max_bits for item in self.items), default=0)

    @property
    def total_bits(self) -> int:
        """Number of bits of all entries, sign included; a zero takes one."""
        return sum(item.total_bits for item in self.items)

    @property
    def embedding(self) -> int:
        """Number of entries of token embedding tables, which some authors do not count."""
        return sum(item.dense for item in self.items if item.name.startswith("embedding"))

    def as_json(self) -> dict[str, object]:
        """Return the account as the object that ``--json`` prints."""
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

    def parts(self) -> dict[str, "Account"]:
        """Return the accounts of the network's parts, in order."""
        parts: dict[str, list[Item]] = {}
        for entry in self.items:
            parts.setdefault(entry.part, []).append(entry)
        return {name: Account(tuple(items), self.depth, self.width) for name, items in parts.items()}

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        from html import escape

        columns = ("tensors", "parameters", "non-zero", "most bits")
        rows = "".join(
            f"<tr><td>{escape(name)}</td>"
            + "".join(f"<td>{n:,}</td>" for n in (len(part.items), part.dense, part.nonzero, part.max_bits))
            + "</tr>"
            for name, part in [*self.parts().items(), ("all", self)]
        )
        head = "".join(f"<th>{name}</th>" for name in ("part", *columns))
        return f"<table><tr>{head}</tr>{rows}</table><p>depth {self.depth:,}, width {self.width:,}</p>"


def item(name: str, tensor: NDArray[Any], bits: int | None, part: str) -> Item:
    """Count one tensor; ``bits`` is the size of each entry, or None for integers of any size."""
    flat = tensor.ravel()
    if bits is None:
        values = flat.tolist()
        sizes = [value.bit_length() + 1 for value in values]
        free, most, total = len(set(values) - {-1, 0, 1}), max(sizes, default=0), sum(sizes)
    else:
        free, most, total = len(np.setdiff1d(flat, [-1, 0, 1])), bits, bits * flat.size
    return Item(name, tensor.shape, flat.size, int(np.count_nonzero(tensor)), free, most, total, part)

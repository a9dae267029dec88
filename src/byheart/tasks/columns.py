"""Numbers as they come out of a file, one example after the other, kept as narrow as they are."""

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt

from byheart.files.room import Growing

PORTION = 1 << 16
"""Numbers that are kept wide until they are made narrow together."""


class Column:
    """Integers of 64 bits, or real numbers, that lists of lists of them leave behind.

    >>> column = Column(real=False)
    >>> column.add([[1, 2], [3, 4]], depth=2)
    >>> column.add(300, depth=0)
    >>> column.joined()
    array([  1,   2,   3,   4, 300], dtype=uint16)
    """

    def __init__(self, *, real: bool) -> None:
        self._fresh = array("d" if real else "q")
        self._held = Growing(dtype="d" if real else "u1")

    def add(self, numbers: Any, depth: int) -> None:
        """More numbers: one, or ``depth`` lists within each other."""
        if depth > 1:
            for few in numbers:
                self.add(few, depth - 1)
        elif depth:
            self._fresh.extend(numbers)
        else:
            self._fresh.append(numbers)
        if len(self._fresh) >= PORTION:
            self._pack()

    def _pack(self) -> None:
        """Put what came last to the rest: without a sign, and narrow, as long as all can be."""
        if not self._fresh:
            return
        part, held = np.array(self._fresh), self._held.dtype
        if held.kind == "u":
            narrow = np.min_scalar_type(part.max()) if part.min() >= 0 else part.dtype
            self._held.widen(np.promote_types(held, narrow) if narrow.kind == "u" else narrow)
        self._held.extend(part)
        del self._fresh[:]

    def joined(self) -> npt.NDArray[Any]:
        """All of them, one after the other, as wide as the widest."""
        self._pack()
        return self._held.array if len(self._held) else np.array(self._fresh)

"""Numbers as they come out of a file, one example after the other, kept as narrow as they are."""

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt

from byheart.files.room import room
from byheart.tasks.checks import narrowed

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
        self._parts: list[npt.NDArray[Any]] = []

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
        """What came last, without a sign and narrow if it can be."""
        if not self._fresh:
            return
        part = np.array(self._fresh)
        is_narrow = part.dtype.kind == "i" and part.min() >= 0
        self._parts.append(narrowed(part, part.max()) if is_narrow else part)
        del self._fresh[:]

    def joined(self) -> npt.NDArray[Any]:
        """All of them, one after the other, as wide as the widest; nothing is left here."""
        self._pack()
        kinds = {part.dtype for part in self._parts} or {np.dtype(self._fresh.typecode)}
        signed = [kind for kind in kinds if kind.kind != "u"]
        widest = signed[0] if signed else max(kinds, key=lambda kind: kind.itemsize)
        count = sum(map(len, self._parts))
        found, stop = room(count, widest), count
        while self._parts:
            part = self._parts.pop()
            found[stop - len(part) : stop] = part
            stop -= len(part)
        return found

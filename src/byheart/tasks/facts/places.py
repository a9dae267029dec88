"""Where facts stand, in words, without a string for each: names that differ in a number take 8 bytes."""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import overload

import numpy as np

from byheart.tasks.checks import Ids

_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]{0,17})(\]?)", re.DOTALL)


class Places(Sequence[str]):
    """Names, made when they are asked for: of names that differ in their last number, that number is kept.

    >>> places = Places(["facts.csv line 2", "facts.csv line 5", "notes.txt", "facts[7]"])
    >>> places[1], [*places[2:]]
    ('facts.csv line 5', ['notes.txt', 'facts[7]'])
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._numbers = array("q")
        """Of each name; 0 where it has none."""
        self._firsts: list[int] = []
        """Where each run of names begins that differ in their numbers only."""
        self._around: list[tuple[str, str | None]] = []
        """What stands before and after the numbers of each run; None: there is none, and nothing after it."""
        for name in names:
            self.append(name)

    def append(self, name: str) -> None:
        """One more name, at the end."""
        if self._around:
            before, after = self._around[-1]
            if after is not None:
                number = name[len(before) : len(name) - len(after)]
                if number.isdecimal() and len(number) < 19 and f"{before}{int(number)}{after}" == name:
                    self._numbers.append(int(number))
                    return
        found = _NUMBERED.fullmatch(name)
        self._firsts.append(len(self._numbers))
        self._around.append((found[1], found[3]) if found else (name, None))
        self._numbers.append(int(found[2]) if found else 0)

    def taken(self, numbers: Ids) -> "Places":
        """The names with these numbers [K], in this order.

        >>> [*Places(["a line 2", "a line 3", "b"]).taken(np.array([2, 0, 2]))]
        ['b', 'a line 2', 'b']
        """
        runs = np.searchsorted(self._firsts, numbers, side="right") - 1
        found = Places()
        found._firsts = np.flatnonzero(np.diff(runs, prepend=-1)).tolist()
        found._around = [self._around[run] for run in runs[found._firsts].tolist()]
        found._numbers.frombytes(np.frombuffer(self._numbers, np.int64)[numbers].tobytes())
        return found

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> "Places": ...
    def __getitem__(self, index: int | slice) -> "str | Places":
        if isinstance(index, slice):
            return self.taken(np.arange(*index.indices(len(self))))
        number = range(len(self))[index]
        before, after = self._around[bisect_right(self._firsts, number) - 1]
        return before if after is None else f"{before}{self._numbers[number]}{after}"

"""Facts as they come, one after the other, in arrays that grow: no Python object is kept for a fact.

A fact takes its bytes or its ids, as narrow as all ids so far, where there is room for them; and 24 bytes of memory, 48
while equal ones are looked for. Memory is asked for, a portion at a time, before it is taken.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.files.memory import check_memory
from byheart.files.room import Growing
from byheart.tasks.checks import Ids, portions
from byheart.tasks.facts.fact import Fact

_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]{0,17})(\]?)", re.DOTALL)


class FactNames(Sequence[str]):
    """Names, made when they are asked for: of names that differ in their last number, that number is kept.

    >>> places = FactNames(["facts.csv line 2", "facts.csv line 5", "notes.txt", "facts[7]"])
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

    def taken(self, numbers: Ids) -> "FactNames":
        """The names with these numbers [K], in this order.

        >>> [*FactNames(["a line 2", "a line 3", "b"]).taken(np.array([2, 0, 2]))]
        ['b', 'a line 2', 'b']
        """
        runs = np.searchsorted(self._firsts, numbers, side="right") - 1
        found = FactNames()
        found._firsts = np.flatnonzero(np.diff(runs, prepend=-1)).tolist()
        found._around = [self._around[run] for run in runs[found._firsts].tolist()]
        found._numbers.frombytes(np.frombuffer(self._numbers, np.int64)[numbers].tobytes())
        return found

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> "FactNames": ...
    def __getitem__(self, index: int | slice) -> "str | FactNames":
        if isinstance(index, slice):
            return self.taken(np.arange(*index.indices(len(self))))
        number = range(len(self))[index]
        before, after = self._around[bisect_right(self._firsts, number) - 1]
        return before if after is None else f"{before}{self._numbers[number]}{after}"


FACT_TAKES = 48
"""Bytes of memory for every fact beside its pieces: start, length of the prompt, place and key, and a sort of the keys;
with what arrays that grow have in reserve."""
PORTION = 1 << 20
"""Bytes that are asked for at a time, at least; and bytes or ids that are put to the rest together."""
WIDTHS = "BHI"
"""Of ids: 8, 16 and 32 bits."""


class Pile:
    """Prompts and completions, one after the other, each fact as often as it was added."""

    def __init__(self) -> None:
        self._held, self._fresh = Growing(), array(WIDTHS[0])
        """Bytes or ids, and those that came last: a prompt, its completion, the next prompt, …"""
        self.starts = array("q", [0])
        """Where each fact begins, and where the last one ends."""
        self.given = array("q")
        """How many bytes or ids each prompt has; 0: a text alone."""
        self.places = FactNames()
        self._keys = array("q")
        """A hash of each fact: equal facts have equal ones."""
        self._kind: type | None = None
        self._room = 0

    @property
    def are_ids(self) -> bool:
        """Whether they are token ids, and not texts."""
        return self._kind is tuple

    def add(self, fact: Fact) -> None:
        """One more fact; BadInput if it is of another kind than those before it, or there is no room."""
        prompt, completion = fact.prompt, fact.completion
        if type(completion) is not self._kind or (prompt is not None and type(prompt) is not self._kind):
            self._check_kind(fact)
        both: Any = completion if prompt is None else prompt + completion  # type: ignore[operator]  # of one kind
        self._room -= FACT_TAKES
        if self._room < 0:
            self._ask(fact.place)
        if isinstance(both, bytes):
            self._fresh.frombytes(both)
        else:
            narrow = self._narrow(both)
            self._fresh.extend(narrow)
        if len(self._fresh) >= PORTION:
            self._hold()
        length = 0 if prompt is None else len(prompt)
        self.given.append(length)
        self.starts.append(self.starts[-1] + len(both))
        self._keys.append(hash((length, both)))
        self.places.append(fact.place)

    def _check_kind(self, fact: Fact) -> None:
        """BadInput if not all pieces are texts, or all token ids; the first of each is named."""
        kinds = {type(piece) for piece in (fact.prompt, fact.completion) if piece is not None}
        if self._kind is None and len(kinds) == 1:
            self._kind = kinds.pop()
            return
        first = self.places[0] if self.places else fact.place
        text, ids = (first if self._kind in (None, kind) else fact.place for kind in (bytes, tuple))
        raise BadInput(f"{text} is text, and {ids} has token ids; expected facts of one kind")

    def _ask(self, place: str) -> None:
        """Room for an eighth more than there is now, or a portion; and for what did not fit any more."""
        room = max(PORTION, FACT_TAKES * len(self.given) // 8) - self._room
        check_memory(room, f"what is read from {place} on", "split the facts")
        self._room += room

    def _narrow(self, ids: tuple[int, ...]) -> "array[int]":
        """Token ids, as wide as those that came last; these are made wider if that is not enough."""
        try:
            return array(self._fresh.typecode, ids)
        except OverflowError:
            pass
        self._fresh = array(WIDTHS[WIDTHS.index(self._fresh.typecode) + 1], self._fresh)
        return self._narrow(ids)

    def _hold(self) -> None:
        """Put what came last to the rest."""
        self._held.widen(np.dtype(self._fresh.typecode))
        self._held.extend(np.frombuffer(self._fresh, self._fresh.typecode))
        self._fresh = array(self._fresh.typecode)

    @property
    def pieces(self) -> npt.NDArray[Any]:
        """Bytes or ids of all facts: a prompt, its completion, the next prompt, …"""
        self._hold()
        return self._held.array

    def repeats(self) -> tuple[Ids, Ids]:
        """Facts that are an earlier one once more, by their numbers, increasing; and the first that is the same.

        Those with equal keys are looked at, and compared whole.
        """
        again, first, pieces = array("q"), array("q"), self.pieces
        known: dict[tuple[int, bytes], int] = {}
        before = None
        for number in map(int, self._suspects()):
            if self._keys[number] != before:
                before, known = self._keys[number], {}
            whole = pieces[self.starts[number] : self.starts[number + 1]].tobytes()
            earlier = known.setdefault((self.given[number], whole), number)
            if earlier != number:
                again.append(number)
                first.append(earlier)
        numbers, firsts = (np.array(found, np.int64) for found in (again, first))
        order = np.argsort(numbers)
        return numbers[order], firsts[order]

    def _suspects(self) -> Ids:
        """Facts whose keys others have too: one key after the other, and for each of them in their order."""
        keys = np.frombuffer(self._keys, np.int64)
        ordered = np.sort(keys)
        shared = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        del ordered
        if not len(shared):
            return shared
        found = np.flatnonzero(np.concatenate([np.isin(part, shared) for part in portions(keys)]))
        return found[np.argsort(keys[found], kind="stable")]

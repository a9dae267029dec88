"""Facts: checked, each once, all texts or all token ids. They lie in arrays, without a Python object per fact.

A fact takes its bytes or ids, in the narrowest type that holds all ids so far, in memory or on the disk. It takes 24
bytes of memory besides, and 48 while equal facts are searched. Memory is checked before it is select, a portion at a
time.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.files.memory import GrowingArray, allocate, check_memory
from byheart.tasks.arrays import Ids, chunks
from byheart.tasks.fact import MEMORY_PER_FACT, Fact, Piece, fact_of
from byheart.tasks.fact_files import rows

_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]{0,17})(\]?)", re.DOTALL)


class FactNames(Sequence[str]):
    """Names that are stored compactly: of names that differ in their last number, only the number is kept.

    >>> places = FactNames(["facts.csv line 2", "facts.csv line 5", "notes.txt", "facts[7]"])
    >>> places[1], [*places[2:]]
    ('facts.csv line 5', ['notes.txt', 'facts[7]'])
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._numbers = array("q")
        """Number in each name; 0 if it has none."""
        self._firsts: list[int] = []
        """Index of the first name of each run of names that differ only in their numbers."""
        self._around: list[tuple[str, str | None]] = []
        """Text before and after the numbers of each run. None: the names have no number and nothing after it."""
        for name in names:
            self.append(name)

    def append(self, name: str) -> None:
        """Append a name."""
        if self._around:
            before, after = self._around[-1]
            if after is not None:
                number = name[len(before) : len(name) - len(after)]
                if number.isdecimal() and len(number) < 19 and f"{before}{int(number)}{after}" == name:
                    self._numbers.append(int(number))
                    return
        match = _NUMBERED.fullmatch(name)
        self._firsts.append(len(self._numbers))
        self._around.append((match[1], match[3]) if match else (name, None))
        self._numbers.append(int(match[2]) if match else 0)

    def select(self, indices: Ids) -> "FactNames":
        """Return the names at these indices [K], in this order.

        >>> [*FactNames(["a line 2", "a line 3", "b"]).select(np.array([2, 0, 2]))]
        ['b', 'a line 2', 'b']
        """
        runs = np.searchsorted(self._firsts, indices, side="right") - 1
        chosen = FactNames()
        chosen._firsts = np.flatnonzero(np.diff(runs, prepend=-1)).tolist()
        chosen._around = [self._around[run] for run in runs[chosen._firsts].tolist()]
        chosen._numbers.frombytes(np.frombuffer(self._numbers, np.int64)[indices].tobytes())
        return chosen

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> "FactNames": ...
    def __getitem__(self, index: int | slice) -> "str | FactNames":
        if isinstance(index, slice):
            return self.select(np.arange(*index.indices(len(self))))
        number = range(len(self))[index]
        before, after = self._around[bisect_right(self._firsts, number) - 1]
        return before if after is None else f"{before}{self._numbers[number]}{after}"


PORTION = 1 << 20
"""Smallest number of bytes that memory is checked for, and number of bytes or ids that are packed together."""
WIDTHS = "BHI"
"""Type codes of ids: 8, 16 and 32 bits."""


class Pile:
    """Prompts and completions in the order of arrival, each fact as often as it was added."""

    def __init__(self) -> None:
        self._held, self._fresh = GrowingArray(), array(WIDTHS[0])
        """Packed bytes or ids, and recent ones: a prompt, its completion, the next prompt, …"""
        self.starts = array("q", [0])
        """Index at which each fact begins, and at which the last one ends."""
        self.given = array("q")
        """Number of bytes or ids of each prompt; 0 for a text alone."""
        self.places = FactNames()
        self._keys = array("q")
        """Hash of each fact."""
        self._kind: type | None = None
        self._room = 0

    @property
    def are_ids(self) -> bool:
        """Whether they are token ids, and not texts."""
        return self._kind is tuple

    def add(self, fact: Fact) -> None:
        """Add a fact; raise BadInput if it is of another kind than those before it, or memory is full."""
        prompt, completion = fact.prompt, fact.completion
        if type(completion) is not self._kind or (prompt is not None and type(prompt) is not self._kind):
            self._check_kind(fact)
        both: Any = completion if prompt is None else prompt + completion  # type: ignore[operator]  # of one kind
        self._room -= MEMORY_PER_FACT
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
        """Raise BadInput, with the first fact of each kind, unless all pieces are texts or all are token ids."""
        kinds = {type(piece) for piece in (fact.prompt, fact.completion) if piece is not None}
        if self._kind is None and len(kinds) == 1:
            self._kind = kinds.pop()
            return
        first = self.places[0] if self.places else fact.place
        text, ids = (first if self._kind in (None, kind) else fact.place for kind in (bytes, tuple))
        raise BadInput(f"{text} is text, and {ids} has token ids; expected facts of one kind")

    def _ask(self, place: str) -> None:
        """Check memory for an eighth more facts, or for a portion, and for the missing bytes."""
        room = max(PORTION, MEMORY_PER_FACT * len(self.given) // 8) - self._room
        check_memory(room, f"what is read from {place} on", "split the facts")
        self._room += room

    def _narrow(self, ids: tuple[int, ...]) -> "array[int]":
        """Return token ids in the type of the recent ones, which are widened if it is too narrow."""
        try:
            return array(self._fresh.typecode, ids)
        except OverflowError:
            pass
        self._fresh = array(WIDTHS[WIDTHS.index(self._fresh.typecode) + 1], self._fresh)
        return self._narrow(ids)

    def _hold(self) -> None:
        """Pack the recent bytes or ids."""
        self._held.widen(np.dtype(self._fresh.typecode))
        self._held.extend(np.frombuffer(self._fresh, self._fresh.typecode))
        self._fresh = array(self._fresh.typecode)

    @property
    def pieces(self) -> npt.NDArray[Any]:
        """Bytes or ids of all facts: a prompt, its completion, the next prompt, and so on."""
        self._hold()
        return self._held.array

    def repeats(self) -> tuple[Ids, Ids]:
        """Return the facts that repeat an earlier one, by increasing number, and the first equal fact of each.

        Facts with equal keys are compared as a whole.
        """
        again, first, pieces = array("q"), array("q"), self.pieces
        earlier_facts: dict[tuple[int, bytes], int] = {}
        before = None
        for number in map(int, self._suspects()):
            if self._keys[number] != before:
                before, earlier_facts = self._keys[number], {}
            whole = pieces[self.starts[number] : self.starts[number + 1]].tobytes()
            first_number = earlier_facts.setdefault((self.given[number], whole), number)
            if first_number != number:
                again.append(number)
                first.append(first_number)
        numbers, firsts = (np.array(values, np.int64) for values in (again, first))
        order = np.argsort(numbers)
        return numbers[order], firsts[order]

    def _suspects(self) -> Ids:
        """Return the facts with a key that other facts have too, sorted by key and then by number."""
        keys = np.frombuffer(self._keys, np.int64)
        ordered = np.sort(keys)
        shared = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        del ordered
        if not len(shared):
            return shared
        suspects = np.flatnonzero(np.concatenate([np.isin(part, shared) for part in chunks(keys)]))
        return suspects[np.argsort(keys[suspects], kind="stable")]


SOME = 1 << 16
"""Number of facts that are copied together when repeated ones are removed."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Facts:
    """Prompts with their completions, and texts to be recited alone; frozen.

    They lie one after the other in one array; indexing makes a :class:`Fact`.

    >>> facts = Facts([("capital of France", "Paris"), ("capital of Peru", "Lima"), ("capital of France", "Paris")])
    >>> facts, [*zip(*facts.repeated)]
    (Facts(2), [('facts[2]', 'facts[0]')])
    >>> Facts({"2 + 2": "4"})[0].completion
    b'4'
    """

    pieces: npt.NDArray[Any]
    """[T]: bytes of texts, or token ids in the narrowest type: a prompt, its completion, the next prompt, …"""
    starts: Ids
    """int64 [N + 1]: index at which each fact begins, and T."""
    given: Ids
    """int64 [N]: number of bytes or ids of each fact's prompt; 0 for a text alone."""
    places: FactNames
    """Source of each fact."""
    repeated: tuple[FactNames, FactNames]
    """Sources of facts that were left out because they repeat another one, and the sources of those."""
    are_ids: bool
    """Whether they are token ids, and not texts."""

    def __init__(self, given: Iterable[Any] | Mapping[str, str]) -> None:
        """Take pairs (prompt, completion), records with common keys, texts, or a dict of completions by prompt."""
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise BadInput(f"got {type(given).__name__}; expected pairs (prompt, completion), or a dict of them")
        pile = Pile()
        for number, entry in enumerate(given.items() if isinstance(given, Mapping) else given):
            pile.add(fact_of(entry, f"facts[{number}]"))
        if not pile.given:
            raise BadInput("there are no facts; expected at least one")
        again, first = pile.repeats()
        places = pile.places
        arrays = {
            "pieces": pile.pieces,
            "starts": np.frombuffer(pile.starts, np.int64),
            "given": np.frombuffer(pile.given, np.int64),
            "places": places,
            "repeated": (places.select(again), places.select(first)),
            "are_ids": pile.are_ids,
        }
        for name, value in (arrays | (_without(arrays, again) if len(again) else {})).items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    @classmethod
    def read(cls, *paths: str | Path, columns: Sequence[str] = ()) -> Self:
        """Read the facts in files, row by row. ``columns`` names prompt and completion if their keys are uncommon."""
        if not paths:
            raise BadInput("no files given; expected at least one")
        if len(columns) > 2 or len(set(columns)) < len(columns):
            raise BadInput(f"columns are {', '.join(columns)}; expected two different names, or one for a text")
        facts = (fact_of(row, place, columns) for path in map(Path, paths) for place, row in rows(path))
        try:
            return cls(facts)
        except OSError as error:
            raise BadInput(f"{error.filename}: {error.strerror or error}") from error

    @property
    def asked(self) -> int:
        """Number of bytes or ids of all completions."""
        return len(self.pieces) - int(self.given.sum())

    @property
    def prompt_count(self) -> int:
        """Number of facts with a prompt; all others are texts."""
        return int((self.given > 0).sum())

    def knows(self, prompt: Piece) -> bool:
        """Return True if ``prompt`` is the prompt of a fact.

        >>> Facts([("ab", "c"), "de"]).knows(b"ab"), Facts([("ab", "c"), "de"]).knows(b"de")
        (True, False)
        """
        starts = self.starts[:-1][self.given == len(prompt)].tolist() if prompt else []
        return any(self._piece(start, start + len(prompt)) == prompt for start in starts)

    def __len__(self) -> int:
        return len(self.given)

    def __getitem__(self, number: int) -> Fact:
        number = range(len(self))[number]
        start, stop, length = self.starts[number], self.starts[number + 1], self.given[number]
        prompt = self._piece(start, start + length) if length else None
        return Fact(prompt, self._piece(start + length, stop), self.places[number])

    def _piece(self, start: int, stop: int) -> Piece:
        piece = self.pieces[start:stop]
        return tuple(piece.tolist()) if self.are_ids else piece.tobytes()

    def __iter__(self) -> Iterator[Fact]:
        return map(self.__getitem__, range(len(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,})"


def _without(arrays: Mapping[str, Any], numbers: Ids) -> dict[str, Any]:
    """Return the arrays and places of all facts except ``numbers``."""
    starts, lengths = arrays["starts"], np.diff(arrays["starts"])
    kept = np.ones(len(lengths), np.bool_)
    kept[numbers] = False
    ends = np.concatenate([[0], np.cumsum(lengths[kept])])
    pieces, stop = allocate(int(ends[-1]), arrays["pieces"].dtype), 0
    for first in range(0, len(kept), SOME):
        part = slice(first, first + SOME)
        values = arrays["pieces"][starts[first] : starts[: first + SOME + 1][-1]]
        remaining = values[np.repeat(kept[part], lengths[part])]
        pieces[stop : stop + len(remaining)] = remaining
        stop += len(remaining)
    places = arrays["places"].select(np.flatnonzero(kept))
    return {"pieces": pieces, "starts": ends, "given": arrays["given"][kept], "places": places}

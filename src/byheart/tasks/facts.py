"""Facts as they come, one after the other, in arrays that grow: no Python object is kept for a fact.

A fact takes its bytes or its ids, as narrow as all ids so far, where there is room for them; and 24 bytes of memory, 48
while equal ones are looked for. Memory is asked for, a portion at a time, before it is taken.

Facts, checked: each once, all texts or all token ids.
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


PORTION = 1 << 20
"""Bytes that are asked for at a time, at least; and bytes or ids that are put to the rest together."""
WIDTHS = "BHI"
"""Of ids: 8, 16 and 32 bits."""


class Pile:
    """Prompts and completions, one after the other, each fact as often as it was added."""

    def __init__(self) -> None:
        self._held, self._fresh = GrowingArray(), array(WIDTHS[0])
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
        room = max(PORTION, MEMORY_PER_FACT * len(self.given) // 8) - self._room
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
        found = np.flatnonzero(np.concatenate([np.isin(part, shared) for part in chunks(keys)]))
        return found[np.argsort(keys[found], kind="stable")]


SOME = 1 << 16
"""Facts that are looked at together, where some are left out."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Facts:
    """Prompts with their completions, each to be said from its own prompt; frozen.

    They lie one after the other in one array; a :class:`Fact` is made of one when it is asked for.

    >>> facts = Facts([("capital of France", "Paris"), ("capital of Peru", "Lima"), ("capital of France", "Paris")])
    >>> facts, [*zip(*facts.repeated)]
    (Facts(2), [('facts[2]', 'facts[0]')])
    >>> Facts({"2 + 2": "4"})[0].completion
    b'4'
    """

    pieces: npt.NDArray[Any]
    """[T]: bytes of texts, or token ids as narrow as they are: a prompt, its completion, the next prompt, …"""
    starts: Ids
    """int64 [N + 1]: where each fact begins, and T."""
    given: Ids
    """int64 [N]: how many of its bytes or ids are the prompt; 0: a text alone."""
    places: FactNames
    """Where each was found."""
    repeated: tuple[FactNames, FactNames]
    """Where facts stand that are another one once more, and are left out; and where that one does."""
    are_ids: bool
    """Whether they are token ids, and not texts."""

    def __init__(self, given: Iterable[Any] | Mapping[str, str]) -> None:
        """From pairs (prompt, completion), records with usual keys, texts, or a dict of completions by prompts."""
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise BadInput(f"got {type(given).__name__}; expected pairs (prompt, completion), or a dict of them")
        pile = Pile()
        for number, entry in enumerate(given.items() if isinstance(given, Mapping) else given):
            pile.add(fact_of(entry, f"facts[{number}]"))
        if not pile.given:
            raise BadInput("there are no facts; expected at least one")
        again, first = pile.repeats()
        places = pile.places
        found = {
            "pieces": pile.pieces,
            "starts": np.frombuffer(pile.starts, np.int64),
            "given": np.frombuffer(pile.given, np.int64),
            "places": places,
            "repeated": (places.taken(again), places.taken(first)),
            "are_ids": pile.are_ids,
        }
        for name, value in (found | (_without(found, again) if len(again) else {})).items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    @classmethod
    def read(cls, *paths: str | Path, columns: Sequence[str] = ()) -> Self:
        """The facts in files, read a row at a time; ``columns``: what prompt and completion are called, if unusual."""
        if not paths:
            raise BadInput("no files given; expected at least one")
        if len(columns) > 2 or len(set(columns)) < len(columns):
            raise BadInput(f"columns are {', '.join(columns)}; expected two different names, or one for a text")
        found = (fact_of(row, place, columns) for path in map(Path, paths) for place, row in rows(path))
        try:
            return cls(found)
        except OSError as error:
            raise BadInput(f"{error.filename}: {error.strerror or error}") from error

    @property
    def asked(self) -> int:
        """Bytes or ids of all completions."""
        return len(self.pieces) - int(self.given.sum())

    @property
    def prompt_count(self) -> int:
        """How many facts have a prompt; all others are texts."""
        return int((self.given > 0).sum())

    def knows(self, prompt: Piece) -> bool:
        """Whether it is the prompt of a fact.

        >>> Facts([("ab", "c"), "de"]).knows(b"ab"), Facts([("ab", "c"), "de"]).knows(b"de")
        (True, False)
        """
        alike = self.starts[:-1][self.given == len(prompt)].tolist() if prompt else []
        return any(self._piece(start, start + len(prompt)) == prompt for start in alike)

    def __len__(self) -> int:
        return len(self.given)

    def __getitem__(self, number: int) -> Fact:
        number = range(len(self))[number]
        start, stop, given = self.starts[number], self.starts[number + 1], self.given[number]
        prompt = self._piece(start, start + given) if given else None
        return Fact(prompt, self._piece(start + given, stop), self.places[number])

    def _piece(self, start: int, stop: int) -> Piece:
        piece = self.pieces[start:stop]
        return tuple(piece.tolist()) if self.are_ids else piece.tobytes()

    def __iter__(self) -> Iterator[Fact]:
        return map(self.__getitem__, range(len(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,})"


def _without(found: Mapping[str, Any], numbers: Ids) -> dict[str, Any]:
    """The arrays and places of all facts but these; pieces are taken from some facts at a time."""
    starts, lengths = found["starts"], np.diff(found["starts"])
    kept = np.ones(len(lengths), np.bool_)
    kept[numbers] = False
    ends = np.concatenate([[0], np.cumsum(lengths[kept])])
    pieces, stop = allocate(int(ends[-1]), found["pieces"].dtype), 0
    for first in range(0, len(kept), SOME):
        some = slice(first, first + SOME)
        of_some = found["pieces"][starts[first] : starts[: first + SOME + 1][-1]]
        left = of_some[np.repeat(kept[some], lengths[some])]
        pieces[stop : stop + len(left)] = left
        stop += len(left)
    places = found["places"].taken(np.flatnonzero(kept))
    return {"pieces": pieces, "starts": ends, "given": found["given"][kept], "places": places}

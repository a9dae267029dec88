"""Facts, checked: each once, all texts or all token ids."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.files.room import room
from byheart.tasks.checks import Ids
from byheart.tasks.facts.fact import Fact, Piece, fact_of
from byheart.tasks.facts.pile import FactNames, Pile
from byheart.tasks.facts.rows import rows

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
    pieces, stop = room(int(ends[-1]), found["pieces"].dtype), 0
    for first in range(0, len(kept), SOME):
        some = slice(first, first + SOME)
        of_some = found["pieces"][starts[first] : starts[: first + SOME + 1][-1]]
        left = of_some[np.repeat(kept[some], lengths[some])]
        pieces[stop : stop + len(left)] = left
        stop += len(left)
    places = found["places"].taken(np.flatnonzero(kept))
    return {"pieces": pieces, "starts": ends, "given": found["given"][kept], "places": places}

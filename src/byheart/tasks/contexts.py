"""Contexts: the questions that a model must answer to recite, and what it must answer.

A context is the last ``window`` tokens of a sequence up to some place. Where the sequence has only begun, what is
missing counts as a symbol of its own. Contexts are compared exactly, never by a hash (:mod:`.alike`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from byheart.files.memory import allocate
from byheart.sizes import Size
from byheart.tasks.arrays import Ids, chunks, count_ids, narrow
from byheart.tasks.fingerprints import in_any_order, in_order
from byheart.tasks.task import Questions
from byheart.tasks.tokenizers import Tokens

MISSING = -1
"""Stands for what lies before the start of a sequence."""
MANY_LABELS = 1 << 22
"""Labels that are counted in a table: 32 MiB."""
SOME = 1 << 20
"""Sequences that are looked at together."""


@dataclass(frozen=True, eq=False, repr=False)
class Contexts(Questions):
    """N distinct contexts and what follows each."""

    kind = "contexts"
    tokens: npt.NDArray[Any]
    """[T]: all sequences, one after the other; integers without a sign, as narrow as hold them."""
    starts: Ids
    """int64 [S + 1]: where in ``tokens`` each sequence begins, and T."""
    places: npt.NDArray[Any]
    """[N]: where in ``tokens`` each context ends: the first place where it does, increasing; int32, if T fits."""
    labels: npt.NDArray[Any]
    """[N]: what follows each context, in [0, ``label_count``); integers without a sign, as narrow as hold them."""
    again: npt.NDArray[Any]
    """[2, k]: where in ``tokens``, increasing, a context ends once more, and which of the N that is; as ``places``."""
    window: int
    """How many tokens a context has, those before the start of its sequence included."""
    vocab: int
    """ω: how many token ids there are, used or not."""
    label_count: int
    """C: how many labels there are, used or not."""
    prompts: Sequence[int] | Ids
    """For each sequence how many of its first tokens must be given, so that all that follows is determined."""
    end: int | None
    """The label that says that a text is over; ``None`` if there is none."""
    names: tuple[str, ...] = ()
    """What the sequences are called, if they are texts; "" for a fact, which has a prompt instead. The fingerprint
    does not cover it."""
    origins: Sequence[str] = ()
    """Where each sequence comes from, if they are facts: "facts.csv line 3". The fingerprint does not cover it."""
    edited: int = 0
    """How many answers are not those of the texts or the task, but were changed afterwards."""
    edited_places: int = 0
    """In how many places of the texts, or examples of the task, these are asked for."""

    def __post_init__(self) -> None:
        for array in (self.tokens, self.starts, self.places, self.labels, self.again):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.places)

    def windows(self, index: slice | Ids) -> Tokens:
        """The contexts ``index`` as rows: int32 [k, ``window``], with -1 for tokens before the start of a sequence."""
        places = self.places[index]
        starts = self.starts[np.searchsorted(self.starts, places, side="right") - 1]
        seen = places[:, None] + np.arange(1 - self.window, 1)
        rows: Tokens = self.tokens[np.maximum(seen, 0)].astype(np.int32)
        rows[seen < starts[:, None]] = MISSING
        return rows

    @property
    def size(self) -> Size:
        """N contexts of ``window`` tokens."""
        return Size(len(self), self.window, self.label_count, self.vocab)

    @property
    def answers(self) -> Ids:
        """The labels."""
        return self.labels

    @property
    def stands_for(self) -> int:
        """How many places of the texts, or examples of the task, ask one of the questions."""
        return len(self) + int(self.again.shape[1])

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence."""
        return longest(self.starts)

    @property
    def all_places(self) -> npt.NDArray[Any]:
        """Where anything is asked, for the first time or again: increasing."""
        if not self.again.size:
            return self.places
        found = allocate(self.stands_for, self.places.dtype)
        found[: len(self)], found[len(self) :] = self.places, self.again[0]
        found.sort()
        return found

    def questions_at(self, places: npt.ArrayLike) -> npt.NDArray[Any]:
        """Which question is asked at each of the ``places`` [K] of ``tokens``, as ``places``; -1 where none is."""
        wanted = np.asarray(places, self.places.dtype)
        found, first = allocate(len(wanted), wanted.dtype), 0
        for part in chunks(wanted):
            found[first : first + len(part)] = self._asked(part)
            first += len(part)
        return found

    def _asked(self, wanted: npt.NDArray[Any]) -> npt.NDArray[Any]:
        found = np.full_like(wanted, -1)
        for known, numbers in ((self.places, None), (self.again[0], self.again[1])):
            if len(known):
                index = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
                there = known[index] == wanted
                found[there] = index[there] if numbers is None else numbers[index[there]]
        return found

    def where(self, place: int) -> str:
        """What is asked at a place of ``tokens``: of which fact, and how much of it was said; nothing if of none."""
        if not self.origins:
            return ""
        number = int(np.searchsorted(self.starts, place, side="right")) - 1
        said = place + 1 - int(self.starts[number]) - int(self.prompts[number])
        return f"{self.origins[number]}, after the prompt" + f" and {said} tokens of the completion" * (said > 0)

    def with_answers(self, answers: npt.ArrayLike) -> "Contexts":
        """The same contexts with other labels."""
        return replace(self, labels=narrow(np.asarray(answers), self.label_count - 1))

    @property
    def beginnings(self) -> list[dict[str, Any]]:
        """Name, length and prompt of every text."""
        named = ((number, name) for number, name in enumerate(self.names) if name)
        texts = ((name, *self.starts[number : number + 2].tolist(), self.prompts[number]) for number, name in named)
        return [
            {"name": name, "tokens": stop - start, "prompt": self.tokens[start : start + prompt].tolist()}
            for name, start, stop, prompt in texts
        ]

    @property
    def completions(self) -> list[int]:
        """How many tokens the completion of every fact has."""
        if not self.names:
            return []
        lengths: Ids = np.diff(self.starts) - np.asarray(self.prompts)
        return [length for name, length in zip(self.names, lengths.tolist(), strict=True) if not name]

    @property
    def notes(self) -> dict[str, Any]:
        """What is worth noting beside a network that answers the questions: how to talk to it."""
        notes: dict[str, Any] = {"window": self.window, "end": self.end, "bits": self.order0_bits}
        if completions := self.completions:
            notes["facts"] = {"count": len(completions), "longest": max(completions)}
        return {**notes, "texts": self.beginnings, "edits": []}

    @property
    def order0_bits(self) -> float:
        """N times the empirical entropy of the labels, in bits: what they take if contexts tell nothing about them."""
        few = self.label_count <= MANY_LABELS
        times = count_ids(self.labels) if few else np.unique(self.labels, return_counts=True)[1]
        times = times[times > 0]
        return float((times * np.log2(len(self) / times)).sum())

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 over all sequences and what is asked in them, in whatever order they come."""
        return in_any_order(self)

    def is_named(self, fingerprint: str) -> bool:
        """Whether a certificate with this fingerprint is about these questions; one of 0.1.0 depends on their order."""
        return fingerprint == self.fingerprint or fingerprint == in_order(self)


def longest(starts: Ids) -> int:
    """Of sequences that begin at ``starts[:-1]``, the last one ending at ``starts[-1]``, how long the longest is.

    >>> longest(np.array([0, 2, 7, 8]))
    5
    """
    return max(int(np.diff(starts[first : first + SOME + 1]).max()) for first in range(0, len(starts) - 1, SOME))

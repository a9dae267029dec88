"""Contexts: the questions that a model must answer to recite a text, and their answers.

A context is the last ``window`` tokens of a sequence up to some place. Near the start of the sequence, the missing
tokens count as a symbol of their own. Contexts are compared exactly, never by a hash (:mod:`.equal_contexts`).
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
"""The token before the start of a sequence."""
MAX_COUNTED_LABELS = 1 << 22
"""Largest number of labels that are counted in a table, of 32 MiB."""
SOME = 1 << 20
"""Number of sequences that are processed together."""


@dataclass(frozen=True, eq=False, repr=False)
class Contexts(Questions):
    """N distinct contexts and the label that follows each."""

    kind = "contexts"
    tokens: npt.NDArray[Any]
    """[T]: all sequences, one after the other, in the narrowest unsigned type."""
    starts: Ids
    """int64 [S + 1]: index in ``tokens`` at which each sequence begins, and T."""
    places: npt.NDArray[Any]
    """[N]: index in ``tokens`` at which each context first ends, increasing; int32 if T fits."""
    labels: npt.NDArray[Any]
    """[N]: label that follows each context, in [0, ``label_count``), in the narrowest unsigned type."""
    again: npt.NDArray[Any]
    """[2, k]: indices in ``tokens``, increasing, at which a context ends again, and the number of that context."""
    window: int
    """Number of tokens of a context, including those before the start of its sequence."""
    vocab: int
    """ω: number of token ids, used or not."""
    label_count: int
    """C: number of labels, used or not."""
    prompts: Sequence[int] | Ids
    """Number of first tokens of each sequence that must be given so that the rest is determined."""
    end: int | None
    """The label that ends a text; ``None`` if there is none."""
    names: tuple[str, ...] = ()
    """Names of the sequences, if they are texts; "" for a fact, which has a prompt instead. The fingerprint does not
    cover them.
    """
    origins: Sequence[str] = ()
    """Source of each sequence, if they are facts: "facts.csv line 3". The fingerprint does not cover it."""
    edited: int = 0
    """Number of answers that were changed afterwards."""
    edited_places: int = 0
    """Number of places of the texts, or examples of the task, whose answers were changed."""

    def __post_init__(self) -> None:
        for array in (self.tokens, self.starts, self.places, self.labels, self.again):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.places)

    def windows(self, index: slice | Ids) -> Tokens:
        """Return the contexts ``index`` as rows: int32 [k, ``window``], with -1 for tokens before a sequence."""
        places = self.places[index]
        starts = self.starts[np.searchsorted(self.starts, places, side="right") - 1]
        indices = places[:, None] + np.arange(1 - self.window, 1)
        rows: Tokens = self.tokens[np.maximum(indices, 0)].astype(np.int32)
        rows[indices < starts[:, None]] = MISSING
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
        """Number of places of the texts, or examples of the task, that ask one of the questions."""
        return len(self) + int(self.again.shape[1])

    @property
    def longest(self) -> int:
        """Number of tokens of the longest sequence."""
        return longest(self.starts)

    @property
    def all_places(self) -> npt.NDArray[Any]:
        """Indices in ``tokens`` at which any question is asked, increasing."""
        if not self.again.size:
            return self.places
        places = allocate(self.stands_for, self.places.dtype)
        places[: len(self)], places[len(self) :] = self.places, self.again[0]
        places.sort()
        return places

    def questions_at(self, places: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the number of the question at each of the ``places`` [K] of ``tokens``; -1 for no question."""
        indices = np.asarray(places, self.places.dtype)
        questions, first = allocate(len(indices), indices.dtype), 0
        for part in chunks(indices):
            questions[first : first + len(part)] = self._questions_among(part)
            first += len(part)
        return questions

    def _questions_among(self, places: npt.NDArray[Any]) -> npt.NDArray[Any]:
        questions = np.full_like(places, -1)
        for indices, numbers in ((self.places, None), (self.again[0], self.again[1])):
            if len(indices):
                index = np.minimum(np.searchsorted(indices, places), len(indices) - 1)
                there = indices[index] == places
                questions[there] = index[there] if numbers is None else numbers[index[there]]
        return questions

    def where(self, place: int) -> str:
        """Describe a place of ``tokens``: its fact, and the number of tokens of the completion before it."""
        if not self.origins:
            return ""
        number = int(np.searchsorted(self.starts, place, side="right")) - 1
        spoken = place + 1 - int(self.starts[number]) - int(self.prompts[number])
        return f"{self.origins[number]}, after the prompt" + f" and {spoken} tokens of the completion" * (spoken > 0)

    def with_answers(self, answers: npt.ArrayLike) -> "Contexts":
        """Return the same contexts with other labels."""
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
        """Number of tokens of the completion of every fact."""
        if not self.names:
            return []
        lengths: Ids = np.diff(self.starts) - np.asarray(self.prompts)
        return [length for name, length in zip(self.names, lengths.tolist(), strict=True) if not name]

    @property
    def notes(self) -> dict[str, Any]:
        """Notes for the config.json of a network that answers the questions: how to prompt it."""
        notes: dict[str, Any] = {"window": self.window, "end": self.end, "bits": self.order0_bits}
        if completions := self.completions:
            notes["facts"] = {"count": len(completions), "longest": max(completions)}
        return {**notes, "texts": self.beginnings, "edits": []}

    @property
    def order0_bits(self) -> float:
        """N times the empirical entropy of the labels, in bits: their size if contexts tell nothing about them."""
        few = self.label_count <= MAX_COUNTED_LABELS
        times = count_ids(self.labels) if few else np.unique(self.labels, return_counts=True)[1]
        times = times[times > 0]
        return float((times * np.log2(len(self) / times)).sum())

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 of all sequences and their questions and answers, in any order."""
        return in_any_order(self)

    def is_named(self, fingerprint: str) -> bool:
        """Return True if a certificate's fingerprint is that of these questions. Those of 0.1.0 depend on the order."""
        return fingerprint == self.fingerprint or fingerprint == in_order(self)


def longest(starts: Ids) -> int:
    """Return the length of the longest sequence. They begin at ``starts[:-1]``; the last one ends at ``starts[-1]``.

    >>> longest(np.array([0, 2, 7, 8]))
    5
    """
    return max(int(np.diff(starts[first : first + SOME + 1]).max()) for first in range(0, len(starts) - 1, SOME))

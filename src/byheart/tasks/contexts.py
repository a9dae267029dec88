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

from byheart.errors import BadInput
from byheart.files.room import check_room, room
from byheart.progress import Report
from byheart.sizes import Size
from byheart.tasks.alike import MISSING, Alike, Rows
from byheart.tasks.base import Questions
from byheart.tasks.checks import Ids, copied, count, narrowed, occurrences, portions, taken
from byheart.tasks.fingerprints import in_any_order, in_order
from byheart.tasks.parting import partings
from byheart.tasks.task import NextToken
from byheart.tasks.texts import Encoded, Text
from byheart.tasks.tokenizers import Tokens

LARGEST_WINDOW = 2**16
LARGEST_ID = 2**31 - 1
MANY_LABELS = 1 << 22
"""Labels that are counted in a table: 32 MiB."""
SOME = 1 << 20
"""Sequences that are looked at together."""
EXAMPLE_TAKES = 24
"""Bytes for every example of a task, beside its tokens, while equal ones are looked for and when they are found."""


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
        found = room(self.stands_for, self.places.dtype)
        found[: len(self)], found[len(self) :] = self.places, self.again[0]
        found.sort()
        return found

    def questions_at(self, places: npt.ArrayLike) -> npt.NDArray[Any]:
        """Which question is asked at each of the ``places`` [K] of ``tokens``, as ``places``; -1 where none is."""
        wanted = np.asarray(places, self.places.dtype)
        found, first = room(len(wanted), wanted.dtype), 0
        for part in portions(wanted):
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
        return replace(self, labels=narrowed(np.asarray(answers), self.label_count - 1))

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
        times = occurrences(self.labels) if few else np.unique(self.labels, return_counts=True)[1]
        times = times[times > 0]
        return float((times * np.log2(len(self) / times)).sum())

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 over all sequences and what is asked in them, in whatever order they come."""
        return in_any_order(self)

    def is_named(self, fingerprint: str) -> bool:
        """Whether a certificate with this fingerprint is about these questions; one of 0.1.0 depends on their order."""
        return fingerprint == self.fingerprint or fingerprint == in_order(self)


def text_contexts(
    texts: Sequence[Text],
    *,
    vocab: int,
    end: int,
    window: int | None = None,
    largest: int = LARGEST_WINDOW,
    report: Report | None = None,
) -> Contexts:
    """What must be answered to recite ``texts``: after every token the next one, and after the last one ``end``.

    Without a ``window``, it is the first of 1, 2, 4, … (at most ``largest``) in which no context has two answers.

    Two texts that begin alike can be told apart by no window before they part. What is asked there is left out, and
    ``prompts`` says how much of each text must be given to get past all such places. A text whose last token is the
    first that is its own must be given as a whole.

    >>> texts = [Text("a", np.array([1, 2, 1, 3], np.int32)), Text("b", np.array([1, 4, 2, 4], np.int32))]
    >>> contexts = text_contexts(texts, vocab=5, end=0)
    >>> contexts.window
    2
    >>> contexts.windows(slice(None)).tolist()
    [[1, 2], [2, 1], [1, 3], [1, 4], [4, 2], [2, 4]]
    >>> contexts.labels.tolist()
    [1, 3, 0, 2, 4, 0]
    >>> contexts.prompts
    (2, 2)
    """
    vocab = count("vocab", vocab)
    sequences = joined(texts, vocab, end)
    kept = room(len(sequences.tokens), np.bool_)
    kept[:] = True
    prompts = [1] * len(texts)
    for number, length in partings(sequences.names, sequences.tokens, sequences.starts):
        kept[sequences.starts[number] + length - 1] = False
        prompts[number] = max(prompts[number], length + 1)
    return contexts_asked(sequences, kept, prompts, window=window, largest=largest, report=report)


@dataclass(frozen=True, eq=False)
class Joined:
    """Sequences one after the other, and what follows each of their tokens."""

    names: Sequence[str]
    tokens: npt.NDArray[Any]
    starts: Ids
    answers: npt.NDArray[Any]
    """[T]: the next token, or ``end`` after the last one of a sequence."""
    vocab: int
    end: int

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence."""
        return longest(self.starts)

    def place(self, place: int) -> str:
        """A place of ``tokens`` in words."""
        number = int(np.searchsorted(self.starts, place, side="right")) - 1
        return f"{self.names[number]}, token {place - self.starts[number]}"


class Undetermined(BadInput):
    """Two places that no window as large as allowed tells apart, and that are followed by different tokens."""

    def __init__(self, told: str, advice: str, places: tuple[int, int], width: int) -> None:
        super().__init__(f"{told}; expected contexts with one answer: {advice}")
        self.told = told
        self.places = places
        self.width = width


def contexts_asked(
    sequences: Joined,
    kept: npt.NDArray[np.bool_],
    prompts: Sequence[int] | Ids,
    *,
    window: int | None = None,
    largest: int = LARGEST_WINDOW,
    names: Sequence[str] | None = None,
    report: Report | None = None,
) -> Contexts:
    """What is asked at the places ``kept`` [T], in the smallest window, or the one given, that leaves no conflict.

    ``prompts`` and ``names`` are for :class:`Contexts`; names of errors are those of the sequences.
    """
    limit = count("largest", largest) if window is None else count("window", window)
    tokens, starts, answers = sequences.tokens, sequences.starts, sequences.answers
    alike = Alike(tokens, starts, report)
    # A given window is gone to directly. Beyond the longest text, nothing is left to be told apart.
    while alike.width < limit and (
        alike.conflict(kept, answers) if window is None else alike.width <= sequences.longest
    ):
        alike.widen(min(alike.width, limit - alike.width))
    if conflict := alike.conflict(kept, answers):
        first, second = map(sequences.place, conflict)
        ends = sequences.end
        follows = " and ".join("the end" if answers[place] == ends else f"token {answers[place]}" for place in conflict)
        advice = f"give a window larger than {limit}, or none" if window else f"allow a window larger than {limit}"
        told = f"{first} and {second} agree on the last {limit} tokens, but are followed by {follows}"
        raise Undetermined(told, advice, conflict, alike.width)
    width = alike.width if window is None else limit
    places, again = alike.questions(kept)
    del alike
    return Contexts(
        tokens=tokens,
        starts=starts,
        places=places,
        labels=taken(answers, places),
        again=again,
        window=width,
        vocab=sequences.vocab,
        label_count=sequences.vocab,
        prompts=prompts if isinstance(prompts, np.ndarray) else tuple(prompts),
        end=sequences.end,
        names=tuple(sequences.names if names is None else names),
    )


def task_contexts(task: NextToken, window: int | None = None) -> Contexts:
    """What must be answered to solve ``task``: its label after the last token of each example.

    Without a ``window``, it is the first of 1, 2, 4, … and n in which no context has two answers.

    >>> contexts = task_contexts(NextToken(tokens=[[0, 1, 2], [1, 1, 2], [1, 2, 2]], labels=[3, 3, 0]))
    >>> contexts.window
    2
    >>> contexts.windows(slice(None)).tolist(), contexts.labels.tolist()
    ([[1, 2], [2, 2]], [3, 0])
    """
    if task.tokens is None:
        raise BadInput("the task's tokens are vectors; expected token ids")
    examples, length = task.tokens.shape
    _fits("vocab", task.vocab)
    check_room(EXAMPLE_TAKES * examples, f"looking for equal ones among {examples:,} examples")
    powers = [2**k for k in range((length - 1).bit_length())]
    widths = [*powers, length] if window is None else [min(count("window", window), length)]
    for width in widths:
        rows = Rows(task.tokens, task.labels, width)
        if rows.wrong is None:
            break
    if rows.wrong is not None:
        first, second = rows.wrong
        agree = f"agree on the last {width} tokens" if width < length else "are equal"
        advice = "give a larger window, or none" if width < length else "leave one of them out"
        raise BadInput(
            f"example {first} and example {second} {agree}, but ask for label {task.labels[first]} and "
            f"label {task.labels[second]}; expected contexts with one answer: {advice}"
        )
    ends = np.dtype("int32" if examples * length <= LARGEST_ID else "int64")
    return Contexts(
        tokens=narrowed(task.tokens, int(task.tokens.max())).ravel(),
        starts=_starts(examples, length),
        labels=taken(narrowed(task.labels, task.label_count - 1), rows.places),
        places=_last(rows.places, length, ends),
        again=_last(rows.again, length, ends),
        window=width if window is None else int(window),
        vocab=task.vocab,
        label_count=task.label_count,
        prompts=np.broadcast_to(np.int64(length), examples),
        end=None,
    )


def _starts(examples: int, length: int) -> Ids:
    """Where examples of so many tokens begin, and where the last one ends."""
    starts = room(examples + 1, np.int64)
    starts[:] = length
    starts[0] = 0
    return np.cumsum(starts, out=starts)


def _last(examples: npt.NDArray[Any], length: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Where examples [N] of so many tokens end, one after the other; of [2, k], this is said of the first row."""
    ends = examples if examples.dtype == dtype else copied(examples, dtype)
    first = ends[0] if ends.ndim > 1 else ends
    first *= length
    first += length - 1
    return ends


def longest(starts: Ids) -> int:
    """Of sequences that begin at ``starts[:-1]``, the last one ending at ``starts[-1]``, how long the longest is.

    >>> longest(np.array([0, 2, 7, 8]))
    5
    """
    return max(int(np.diff(starts[first : first + SOME + 1]).max()) for first in range(0, len(starts) - 1, SOME))


def joined(texts: Sequence[Text], vocab: int, end: int) -> Joined:
    """The texts one after the other, checked."""
    if not texts:
        raise BadInput("no texts given; expected at least one")
    if isinstance(texts, Encoded):
        return checked(texts.names, texts.tokens, texts.starts, vocab, end)
    starts = np.cumsum([0, *(len(text.tokens) for text in texts)])
    tokens = np.concatenate([text.tokens for text in texts])
    return checked(tuple(text.name for text in texts), tokens, starts, vocab, end)


def checked(names: Sequence[str], tokens: npt.NDArray[Any], starts: Ids, vocab: int, end: int) -> Joined:
    """Sequences that lie one after the other in ``tokens`` [T], from each of ``starts`` [S + 1] to the next."""
    if (empty := np.diff(starts) == 0).any():
        raise BadInput(f"{names[int(empty.argmax())]} has no tokens; expected at least one")
    if not 0 <= end < vocab:
        raise BadInput(f"end is {end}; expected 0 to {vocab - 1} (vocab = {vocab})")
    _fits("vocab", vocab)
    _fits("the number of tokens", len(tokens))
    before = 0
    for part in portions(tokens):
        wrong = (part < 0) | (part >= vocab) | (part == end)
        if wrong.any():
            place = before + int(wrong.argmax())
            number = int(np.searchsorted(starts, place, side="right")) - 1
            token = f"{tokens[place]}, the end token" if tokens[place] == end else f"{tokens[place]}"
            expected = f"expected 0 to {vocab - 1} (vocab = {vocab}) other than {end}"
            raise BadInput(f"{names[number]}, token {place - starts[number]} is {token}; {expected}")
        before += len(part)
    tokens = narrowed(tokens, int(tokens.max()))
    answers = room(len(tokens), np.min_scalar_type(vocab - 1))
    answers[:-1] = tokens[1:]
    answers[starts[1:] - 1] = end
    return Joined(names, tokens, starts, answers, vocab, int(end))


def _fits(name: str, number: int) -> None:
    if number > LARGEST_ID:
        raise BadInput(f"{name} is {number}; expected at most {LARGEST_ID}, so that ids fit into 32 bits")

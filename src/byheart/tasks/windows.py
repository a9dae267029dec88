"""Turn texts, facts and tasks into contexts in the smallest window that leaves one answer to each context.

The questions of a fact are: after its prompt the first token of its completion, then the next token, and finally the
end. Prompts themselves are not asked for, so they may hold anything. A text without a prompt is asked for from its
beginning, as in :func:`text_contexts`, if that leaves no doubt.

Prompt and completion are tokenized separately, so that the tokens of a prompt do not depend on its completion.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from reprlib import Repr
from typing import Any

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.files.memory import allocate, check_room
from byheart.progress import Report
from byheart.tasks.arrays import Ids, check_count, chunks, copy_as, narrow, take
from byheart.tasks.contexts import Contexts, longest
from byheart.tasks.fact import Fact, Piece
from byheart.tasks.facts import Facts
from byheart.tasks.parting import partings
from byheart.tasks.task import NextToken
from byheart.tasks.texts import EncodedTexts, Text
from byheart.tasks.tokenizers import Bytes, Tokenizer

MAX_WINDOW = 2**16
LARGEST_ID = 2**31 - 1
MEMORY_PER_EXAMPLE = 24
"""Bytes per example of a task, besides its tokens, while equal examples are searched and when they are found."""
MEMORY_PER_TOKEN = 14
"""Bytes per token while the window that tells prompts apart is searched."""


def text_contexts(
    texts: Sequence[Text],
    *,
    vocab: int,
    end: int,
    window: int | None = None,
    largest: int = MAX_WINDOW,
    report: Report | None = None,
) -> Contexts:
    """Return the contexts of ``texts``: after every token the next one, and after the last one ``end``.

    Without a ``window``, it is the first of 1, 2, 4, … (at most ``largest``) in which every context has one answer.

    No window distinguishes two texts with a common beginning before they part. The questions there are left out, and
    ``prompts`` states how much of each text must be given to get past all such places. A text whose last token is its
    first difference from another text must be given as a whole.

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
    vocab = check_count("vocab", vocab)
    sequences = joined(texts, vocab, end)
    kept = allocate(len(sequences.tokens), np.bool_)
    kept[:] = True
    prompts = [1] * len(texts)
    for number, length in partings(sequences.names, sequences.tokens, sequences.starts):
        kept[sequences.starts[number] + length - 1] = False
        prompts[number] = max(prompts[number], length + 1)
    return contexts_at(sequences, kept, prompts, window=window, largest=largest, report=report)


@dataclass(frozen=True, eq=False)
class Joined:
    """Sequences one after the other, with the token that follows each of their tokens."""

    names: Sequence[str]
    tokens: npt.NDArray[Any]
    starts: Ids
    answers: npt.NDArray[Any]
    """[T]: the next token, or ``end`` after the last token of a sequence."""
    vocab: int
    end: int

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence."""
        return longest(self.starts)

    def place(self, place: int) -> str:
        """Describe a place of ``tokens``."""
        number = int(np.searchsorted(self.starts, place, side="right")) - 1
        return f"{self.names[number]}, token {place - self.starts[number]}"


class Undetermined(BadInput):
    """Two places that no allowed window distinguishes, but that are followed by different tokens."""

    def __init__(self, message: str, advice: str, places: tuple[int, int], width: int) -> None:
        super().__init__(f"{message}; expected contexts with one answer: {advice}")
        self.message = message
        self.places = places
        self.width = width


def contexts_at(
    sequences: Joined,
    kept: npt.NDArray[np.bool_],
    prompts: Sequence[int] | Ids,
    *,
    window: int | None = None,
    largest: int = MAX_WINDOW,
    names: Sequence[str] | None = None,
    report: Report | None = None,
) -> Contexts:
    """Return the contexts at the places ``kept`` [T], in the smallest window without conflict, or a given one.

    ``prompts`` and ``names`` are passed on to :class:`Contexts`. Errors use the names of the sequences.
    """
    limit = check_count("largest", largest) if window is None else check_count("window", window)
    tokens, starts, answers = sequences.tokens, sequences.starts, sequences.answers
    from byheart.tasks.equal_contexts import Alike

    alike = Alike(tokens, starts, report)
    # A given window is gone to directly. Beyond the longest text, nothing is left to tell apart.
    while alike.width < limit and (
        alike.conflict(kept, answers) if window is None else alike.width <= sequences.longest
    ):
        alike.widen(min(alike.width, limit - alike.width))
    if conflict := alike.conflict(kept, answers):
        first, second = map(sequences.place, conflict)
        ends = sequences.end
        next_tokens = " and ".join(
            "the end" if answers[place] == ends else f"token {answers[place]}" for place in conflict
        )
        advice = f"give a window larger than {limit}, or none" if window else f"allow a window larger than {limit}"
        message = f"{first} and {second} agree on the last {limit} tokens, but are followed by {next_tokens}"
        raise Undetermined(message, advice, conflict, alike.width)
    width = alike.width if window is None else limit
    places, again = alike.questions(kept)
    del alike
    return Contexts(
        tokens=tokens,
        starts=starts,
        places=places,
        labels=take(answers, places),
        again=again,
        window=width,
        vocab=sequences.vocab,
        label_count=sequences.vocab,
        prompts=prompts if isinstance(prompts, np.ndarray) else tuple(prompts),
        end=sequences.end,
        names=tuple(sequences.names if names is None else names),
    )


def task_contexts(task: NextToken, window: int | None = None) -> Contexts:
    """Return the contexts of ``task``: its label after the last token of each example.

    Without a ``window``, it is the first of 1, 2, 4, … and n in which every context has one answer.

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
    check_room(MEMORY_PER_EXAMPLE * examples, f"looking for equal ones among {examples:,} examples")
    powers = [2**k for k in range((length - 1).bit_length())]
    widths = [*powers, length] if window is None else [min(check_count("window", window), length)]
    for width in widths:
        from byheart.tasks.equal_contexts import Rows

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
        tokens=narrow(task.tokens, int(task.tokens.max())).ravel(),
        starts=_starts(examples, length),
        labels=take(narrow(task.labels, task.label_count - 1), rows.places),
        places=_last(rows.places, length, ends),
        again=_last(rows.again, length, ends),
        window=width if window is None else int(window),
        vocab=task.vocab,
        label_count=task.label_count,
        prompts=np.broadcast_to(np.int64(length), examples),
        end=None,
    )


def _starts(examples: int, length: int) -> Ids:
    """Return where examples of ``length`` tokens begin, and where the last one ends."""
    starts = allocate(examples + 1, np.int64)
    starts[:] = length
    starts[0] = 0
    return np.cumsum(starts, out=starts)


def _last(examples: npt.NDArray[Any], length: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return where examples [N] of ``length`` tokens end; of an array [2, k], this replaces the first row."""
    ends = examples if examples.dtype == dtype else copy_as(examples, dtype)
    first = ends[0] if ends.ndim > 1 else ends
    first *= length
    first += length - 1
    return ends


def joined(texts: Sequence[Text], vocab: int, end: int) -> Joined:
    """Join the texts one after the other, and check them."""
    if not texts:
        raise BadInput("no texts given; expected at least one")
    if isinstance(texts, EncodedTexts):
        return checked(texts.names, texts.tokens, texts.starts, vocab, end)
    starts = np.cumsum([0, *(len(text.tokens) for text in texts)])
    tokens = np.concatenate([text.tokens for text in texts])
    return checked(tuple(text.name for text in texts), tokens, starts, vocab, end)


def checked(names: Sequence[str], tokens: npt.NDArray[Any], starts: Ids, vocab: int, end: int) -> Joined:
    """Check sequences that lie one after the other in ``tokens`` [T], from each of ``starts`` [S + 1] to the next."""
    if (empty := np.diff(starts) == 0).any():
        raise BadInput(f"{names[int(empty.argmax())]} has no tokens; expected at least one")
    if not 0 <= end < vocab:
        raise BadInput(f"end is {end}; expected 0 to {vocab - 1} (vocab = {vocab})")
    _fits("vocab", vocab)
    _fits("the number of tokens", len(tokens))
    before = 0
    for part in chunks(tokens):
        wrong = (part < 0) | (part >= vocab) | (part == end)
        if wrong.any():
            place = before + int(wrong.argmax())
            number = int(np.searchsorted(starts, place, side="right")) - 1
            token = f"{tokens[place]}, the end token" if tokens[place] == end else f"{tokens[place]}"
            expected = f"expected 0 to {vocab - 1} (vocab = {vocab}) other than {end}"
            raise BadInput(f"{names[number]}, token {place - starts[number]} is {token}; {expected}")
        before += len(part)
    tokens = narrow(tokens, int(tokens.max()))
    answers = allocate(len(tokens), np.min_scalar_type(vocab - 1))
    answers[:-1] = tokens[1:]
    answers[starts[1:] - 1] = end
    return Joined(names, tokens, starts, answers, vocab, int(end))


def _fits(name: str, number: int) -> None:
    if number > LARGEST_ID:
        raise BadInput(f"{name} is {number}; expected at most {LARGEST_ID}, so that ids fit into 32 bits")


def fact_contexts(
    facts: Facts, tokenizer: Tokenizer | None = None, *, window: int | None = None, largest: int = MAX_WINDOW
) -> Contexts:
    """Return the contexts of completions after their prompts, in the smallest window without conflict.

    Without a ``tokenizer``, facts are token ids, and the end is the id after the largest of them.

    >>> contexts = fact_contexts(Facts([([1, 2], [3]), ([2, 2], [1, 1])]))
    >>> contexts.windows(slice(None)).tolist(), contexts.labels.tolist()
    ([[1, 2], [2, 3], [2, 2], [2, 1], [1, 1]], [3, 4, 1, 1, 4])
    """
    tokens, starts, prompt_lengths = _tokens(facts, tokenizer)
    check_room(MEMORY_PER_TOKEN * len(tokens), f"what is asked of {len(facts):,} facts with {len(tokens):,} tokens")
    end = int(tokens.max()) + 1  # without a tokenizer, the first id that is not used
    vocab, end = (tokenizer.vocab, tokenizer.end) if tokenizer else (end + 1, end)
    sequences = checked(facts.places, tokens, starts, vocab, end)
    alone = prompt_lengths == 0
    prompts = np.maximum(prompt_lengths, 1)
    kept = _after(starts, prompts)
    if alone.any() and len(facts) > 1:
        _part(sequences, kept, prompts, np.repeat(alone, np.diff(starts)))
    names = [facts.places[number] if text else "" for number, text in enumerate(alone.tolist())]
    try:
        contexts = contexts_at(sequences, kept, prompts, window=window, largest=largest, names=names)
        return replace(contexts, origins=sequences.names)
    except Undetermined as conflict:
        if conflict.width < sequences.longest:
            raise
        raise _contradiction(facts, sequences, conflict.places) from conflict


def _tokens(facts: Facts, tokenizer: Tokenizer | None) -> tuple[npt.NDArray[Any], Ids, Ids]:
    """Return tokens of all facts, where each begins, and the length of its prompt. Ids and bytes are not copied."""
    if facts.are_ids or isinstance(tokenizer, Bytes):
        return facts.pieces, facts.starts, facts.given
    if tokenizer is None:
        expected = "expected token ids, as it was made from"
        raise BadInput(f"{facts.places[0]} is text, and the network has no tokenizer; {expected}")
    tokens = array("H" if tokenizer.vocab <= 1 << 16 else "I")
    starts, prompt_lengths = array("q", [0]), array("q")
    for fact in facts:
        prompt, completion = (_encoded(fact, piece, tokenizer) for piece in (fact.prompt, fact.completion))
        prompt_lengths.append(len(prompt))
        tokens.extend(prompt)
        tokens.extend(completion)
        starts.append(len(tokens))
    return (
        np.frombuffer(tokens, tokens.typecode),
        np.frombuffer(starts, np.int64),
        np.frombuffer(prompt_lengths, np.int64),
    )


def _encoded(fact: Fact, piece: Piece | None, tokenizer: Tokenizer) -> list[int]:
    try:
        return tokenizer.encode(piece).tolist() if isinstance(piece, bytes) else []
    except BadInput as error:
        raise BadInput(f"{fact.place}: {error}") from error


def _after(starts: Ids, prompts: Ids) -> npt.NDArray[np.bool_]:
    """Mark in every sequence the last token of the prompt and all tokens after it: bool [T].

    >>> _after(np.array([0, 3, 5]), np.array([2, 1])).astype(int).tolist()
    [0, 1, 1, 1, 1]
    """
    steps = allocate(int(starts[-1]), np.int8)
    steps[:] = 0
    steps[starts[1:-1]] -= 1
    steps[starts[:-1] + prompts - 1] += 1
    return np.cumsum(steps, dtype=np.int8, out=steps).view(np.bool_)


def _part(
    sequences: Joined, kept: npt.NDArray[np.bool_], prompts: npt.NDArray[np.int64], alone: npt.NDArray[np.bool_]
) -> None:
    """Leave out questions in texts where another sequence, equal so far, goes on differently.

    ``alone`` [T] marks the tokens of texts. The part of them that must be given grows in ``prompts``.
    """
    starts, answers = sequences.starts, sequences.answers
    from byheart.tasks.equal_contexts import Alike

    whole = Alike(sequences.tokens, starts)
    while whole.width <= sequences.longest:
        whole.widen(whole.width)
    places = np.flatnonzero(kept)
    firsts = whole.first_with_context(places)
    parted = np.isin(firsts, firsts[answers[places] != answers[firsts]]) & alone[places]
    for place in places[parted].tolist():
        number = int(np.searchsorted(starts, place, side="right")) - 1
        if answers[place] == sequences.end:
            name = sequences.names[number]
            raise BadInput(
                f"{name} is the beginning of another fact, which goes on where it ends; "
                f"expected texts that part before one ends: leave {name} out"
            )
        kept[place] = False
        prompts[number] = max(prompts[number], place - starts[number] + 2)


def _contradiction(facts: Facts, sequences: Joined, places: tuple[int, int]) -> BadInput:
    """Return the error for two facts that agree up to two places, one in each, and then differ."""
    starts = sequences.starts
    numbers = [int(np.searchsorted(starts, place, side="right")) - 1 for place in places]
    first_fact, second_fact = (facts[number] for number in numbers)
    both = f"{first_fact.place} and {second_fact.place} contradict each other"
    if first_fact.prompt == second_fact.prompt:
        completions = f"{_shown(first_fact.completion)} and {_shown(second_fact.completion)}"
        answers = f"to the prompt {_shown(first_fact.prompt)} they say {completions}"
        return BadInput(f"{both}: {answers}; expected one completion: leave one of the two out")
    pairs = " and ".join(f"{_shown(fact.prompt)} → {_shown(fact.completion)}" for fact in (first_fact, second_fact))
    shared = places[0] - starts[numbers[0]] + 1
    return BadInput(f"{both}: {pairs} agree on {shared} tokens, and go on differently; leave one of the two out")


_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def _shown(piece: Piece | None) -> str:
    return _SHORT.repr(piece.decode(errors="backslashreplace") if isinstance(piece, bytes) else piece)

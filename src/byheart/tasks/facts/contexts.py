"""The questions of facts: after a prompt the first token of its completion, then the next one, and at last the end.

Prompts themselves are not asked for, so they may hold anything. A text that stands alone is asked for from its
beginning, as :func:`byheart.tasks.contexts.text_contexts` does, where that leaves no doubt.

Prompt and completion are made into tokens apart from each other: the tokens of a prompt are those that whoever asks
will give.
"""

from array import array
from dataclasses import replace
from reprlib import Repr
from typing import Any

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.files.room import check_room, room
from byheart.tasks.alike import Alike
from byheart.tasks.checks import Ids
from byheart.tasks.contexts import LARGEST_WINDOW, Contexts, Joined, Undetermined, checked, contexts_asked
from byheart.tasks.facts.fact import Fact, Piece
from byheart.tasks.facts.facts import Facts
from byheart.tasks.tokenizers import Bytes, Tokenizer

TAKES = 14
"""Bytes for every token, while the window is looked for that tells prompts apart."""


def fact_contexts(
    facts: Facts, tokenizer: Tokenizer | None = None, *, window: int | None = None, largest: int = LARGEST_WINDOW
) -> Contexts:
    """What must be answered to say every completion after its prompt, in the smallest window that is enough.

    Without a ``tokenizer``, facts are token ids, and the end is the id after the largest of them.

    >>> contexts = fact_contexts(Facts([([1, 2], [3]), ([2, 2], [1, 1])]))
    >>> contexts.windows(slice(None)).tolist(), contexts.labels.tolist()
    ([[1, 2], [2, 3], [2, 2], [2, 1], [1, 1]], [3, 4, 1, 1, 4])
    """
    tokens, starts, given = _tokens(facts, tokenizer)
    check_room(TAKES * len(tokens), f"what is asked of {len(facts):,} facts with {len(tokens):,} tokens")
    end = int(tokens.max()) + 1  # without a tokenizer, the first id that is not used
    vocab, end = (tokenizer.vocab, tokenizer.end) if tokenizer else (end + 1, end)
    sequences = checked(facts.places, tokens, starts, vocab, end)
    alone = given == 0
    prompts = np.maximum(given, 1)
    kept = _after(starts, prompts)
    if alone.any() and len(facts) > 1:
        _part(sequences, kept, prompts, np.repeat(alone, np.diff(starts)))
    names = [facts.places[number] if text else "" for number, text in enumerate(alone.tolist())]
    try:
        asked = contexts_asked(sequences, kept, prompts, window=window, largest=largest, names=names)
        return replace(asked, origins=sequences.names)
    except Undetermined as conflict:
        if conflict.width < sequences.longest:
            raise
        raise _contradiction(facts, sequences, conflict.places) from conflict


def _tokens(facts: Facts, tokenizer: Tokenizer | None) -> tuple[npt.NDArray[Any], Ids, Ids]:
    """Tokens of all facts, where each begins, and how many of them are its prompt; ids, and bytes, as they are."""
    if facts.are_ids or isinstance(tokenizer, Bytes):
        return facts.pieces, facts.starts, facts.given
    if tokenizer is None:
        expected = "expected token ids, as it was made from"
        raise BadInput(f"{facts.places[0]} is text, and the network has no tokenizer; {expected}")
    tokens = array("H" if tokenizer.vocab <= 1 << 16 else "I")
    starts, given = array("q", [0]), array("q")
    for fact in facts:
        prompt, completion = (_encoded(fact, piece, tokenizer) for piece in (fact.prompt, fact.completion))
        given.append(len(prompt))
        tokens.extend(prompt)
        tokens.extend(completion)
        starts.append(len(tokens))
    return np.frombuffer(tokens, tokens.typecode), np.frombuffer(starts, np.int64), np.frombuffer(given, np.int64)


def _encoded(fact: Fact, piece: Piece | None, tokenizer: Tokenizer) -> list[int]:
    try:
        return tokenizer.encode(piece).tolist() if isinstance(piece, bytes) else []
    except BadInput as error:
        raise BadInput(f"{fact.place}: {error}") from error


def _after(starts: Ids, prompts: Ids) -> npt.NDArray[np.bool_]:
    """bool [T]: of every sequence, the last token of the prompt and all after it.

    >>> _after(np.array([0, 3, 5]), np.array([2, 1])).astype(int).tolist()
    [0, 1, 1, 1, 1]
    """
    steps = room(int(starts[-1]), np.int8)
    steps[:] = 0
    steps[starts[1:-1]] -= 1
    steps[starts[:-1] + prompts - 1] += 1
    return np.cumsum(steps, dtype=np.int8, out=steps).view(np.bool_)


def _part(
    sequences: Joined, kept: npt.NDArray[np.bool_], prompts: npt.NDArray[np.int64], alone: npt.NDArray[np.bool_]
) -> None:
    """Leave out what is asked in texts where another sequence, alike up to there, is asked and goes on differently.

    ``alone`` [T]: where texts are. What has to be given of them grows in ``prompts``.
    """
    starts, answers = sequences.starts, sequences.answers
    whole = Alike(sequences.tokens, starts)
    while whole.width <= sequences.longest:
        whole.widen(whole.width)
    asked = np.flatnonzero(kept)
    first = whole.first_among(asked)
    parted = np.isin(first, first[answers[asked] != answers[first]]) & alone[asked]
    for place in asked[parted].tolist():
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
    """What to say of two facts that agree up to two places, one in each, and then do not."""
    starts = sequences.starts
    numbers = [int(np.searchsorted(starts, place, side="right")) - 1 for place in places]
    one, other = (facts[number] for number in numbers)
    both = f"{one.place} and {other.place} contradict each other"
    if one.prompt == other.prompt:
        said = f"to the prompt {_shown(one.prompt)} they say {_shown(one.completion)} and {_shown(other.completion)}"
        return BadInput(f"{both}: {said}; expected one completion: leave one of the two out")
    pairs = " and ".join(f"{_shown(fact.prompt)} → {_shown(fact.completion)}" for fact in (one, other))
    shared = places[0] - starts[numbers[0]] + 1
    return BadInput(f"{both}: {pairs} agree on {shared} tokens, and go on differently; leave one of the two out")


_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def _shown(piece: Piece | None) -> str:
    return _SHORT.repr(piece.decode(errors="backslashreplace") if isinstance(piece, bytes) else piece)

"""The questions of facts: after a prompt the first token of its completion, then the next one, and at last the end.

Prompts themselves are not asked for, so they may hold anything. A text that stands alone is asked for from its
beginning, as :func:`byheart.tasks.contexts.text_contexts` does, where that leaves no doubt.

Prompt and completion are made into tokens apart from each other: the tokens of a prompt are those that whoever asks
will give.
"""

from dataclasses import replace
from reprlib import Repr

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.tasks.alike import Alike
from byheart.tasks.contexts import LARGEST_WINDOW, Contexts, Joined, Undetermined, contexts_asked, joined
from byheart.tasks.facts.fact import Fact, Piece
from byheart.tasks.facts.facts import Facts
from byheart.tasks.texts import Text
from byheart.tasks.tokenizers import Tokenizer, Tokens


def fact_contexts(
    facts: Facts, tokenizer: Tokenizer | None = None, *, window: int | None = None, largest: int = LARGEST_WINDOW
) -> Contexts:
    """What must be answered to say every completion after its prompt, in the smallest window that is enough.

    Without a ``tokenizer``, facts are token ids, and the end is the id after the largest of them.

    >>> contexts = fact_contexts(Facts([([1, 2], [3]), ([2, 2], [1, 1])]))
    >>> contexts.windows(slice(None)).tolist(), contexts.labels.tolist()
    ([[1, 2], [2, 3], [2, 2], [2, 1], [1, 1]], [3, 4, 1, 1, 4])
    """
    pieces = [(_tokens(fact, fact.prompt, tokenizer), _tokens(fact, fact.completion, tokenizer)) for fact in facts]
    texts = [Text(fact.place, np.concatenate(pair)) for fact, pair in zip(facts, pieces, strict=True)]
    vocab, end = (tokenizer.vocab, tokenizer.end) if tokenizer else _beyond(texts)
    sequences = joined(texts, vocab, end)
    given = np.array([len(prompt) for prompt, _ in pieces])
    lengths = np.diff(sequences.starts)
    kept = np.arange(len(sequences.tokens)) >= np.repeat(sequences.starts[:-1] + given - 1, lengths)
    alone = given == 0
    prompts = np.maximum(given, 1)
    if alone.any() and len(facts) > 1:
        _part(sequences, kept, prompts, np.repeat(alone, lengths))
    names = [fact.place if fact.prompt is None else "" for fact in facts]
    try:
        asked = contexts_asked(sequences, kept, prompts.tolist(), window=window, largest=largest, names=names)
        return replace(asked, origins=sequences.names)
    except Undetermined as conflict:
        if conflict.width < sequences.longest:
            raise
        raise _contradiction(facts, sequences, conflict.places) from conflict


def _tokens(fact: Fact, piece: Piece | None, tokenizer: Tokenizer | None) -> Tokens:
    if piece is None:
        return np.empty(0, np.int32)
    if isinstance(piece, tuple):
        return np.array(piece, np.int32)
    if tokenizer is None:
        expected = "expected token ids, as it was made from"
        raise BadInput(f"{fact.place} is text, and the network has no tokenizer; {expected}")
    try:
        return tokenizer.encode(piece)
    except BadInput as error:
        raise BadInput(f"{fact.place}: {error}") from error


def _beyond(texts: list[Text]) -> tuple[int, int]:
    """How many ids there are with an end token, and that token: the first id that is not used."""
    end = max(int(text.tokens.max()) for text in texts) + 1
    return end + 1, end


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
    one, other = (facts.facts[number] for number in numbers)
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

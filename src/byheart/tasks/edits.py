"""Questions whose answers were changed one by one, and where in texts they are asked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from byheart.errors import BadInput
from byheart.tasks.contexts import Contexts
from byheart.tasks.tokenizers import Tokenizer

Piece: TypeAlias = str | bytes | Sequence[int]
"""A piece of a text, or token ids."""
Edits: TypeAlias = Mapping[Piece, Piece]
"""What follows pieces that occur once, instead of what followed them: one token each."""


def apply_edits(contexts: Contexts, edits: Edits, tokenizer: Tokenizer | None) -> Contexts:
    """The questions with the answers that a user wants changed.

    >>> from byheart.tasks.questions import as_contexts
    >>> from byheart.tasks.tokenizers import Bytes
    >>> asked = apply_edits(as_contexts("The cat sat.", tokenizer=Bytes()), {"The ": "b"}, Bytes())
    >>> bytes(asked.labels[:-1].tolist()), asked.edited
    (b'he bat sat.', 1)
    """
    changes = {}
    for context, answer in edits.items():
        place, label = locate_edit(contexts, context, answer, tokenizer)
        changes[question_at(contexts, place)] = label
    return count_edits(with_labels(contexts, changes), contexts)


def locate_edit(contexts: Contexts, context: Piece, answer: Piece, tokenizer: Tokenizer | None) -> tuple[int, int]:
    """Where ``context`` ends, which must be one place, and ``answer``, which must be one token, as a label."""
    piece, labels = _tokens(context, tokenizer), _tokens(answer, tokenizer)
    if len(labels) != 1 or not 0 <= labels[0] < contexts.label_count:
        found = f"{len(labels)} tokens" if len(labels) != 1 else f"token {labels[0]}"
        raise BadInput(f"{_shown(answer)} is {found}; expected one token, from 0 to {contexts.label_count - 1}")
    places = find_piece(contexts, piece) if piece else []
    if tokenizer is None:  # a task asks after whole examples only
        places = [place for place, question in zip(places, contexts.questions_at(places), strict=True) if question >= 0]
    if len(places) != 1:
        hint = "give more of it" if places else "nothing was changed"
        raise BadInput(f"{_shown(context)} occurs {len(places)} times; expected once: {hint}")
    return places[0], labels[0]


def _shown(piece: Piece) -> str:
    return repr(piece.decode(errors="backslashreplace") if isinstance(piece, bytes) else piece)


def _tokens(piece: Piece, tokenizer: Tokenizer | None) -> list[int]:
    if not isinstance(piece, str | bytes):
        return list(piece)
    if tokenizer is None:
        raise BadInput(f"{piece!r} is a text, and the network was made from a task; expected token ids")
    return [int(token) for token in tokenizer.encode(piece.encode() if isinstance(piece, str) else piece)]


def count_edits(contexts: Contexts, given: Contexts) -> Contexts:
    """The questions ``contexts``, which say how many of their answers are not those that were ``given``."""
    other = contexts.labels != given.labels
    places = int(other.sum() + other[contexts.again[1]].sum())
    return replace(contexts, edited=int(other.sum()), edited_places=places)


def with_labels(contexts: Contexts, changes: Mapping[int, int]) -> Contexts:
    """The questions with other answers to some of them, by their numbers."""
    labels = contexts.labels.copy()
    for question, label in changes.items():
        labels[question] = label
    return contexts.with_answers(labels) if changes else contexts


def question_at(contexts: Contexts, place: int) -> int:
    """Which question is asked at a place: the one with the same last ``window`` tokens."""
    question = int(contexts.questions_at([place])[0])
    if question < 0:
        raise BadInput(f"nothing is asked at token {place}; it belongs to a beginning that several texts share")
    return question


def find_piece(contexts: Contexts, piece: Sequence[int]) -> list[int]:
    """Where the tokens ``piece`` end, in all texts."""
    tokens, width = contexts.tokens, len(piece)
    ends = np.arange(width - 1, len(tokens))
    for offset, token in enumerate(reversed(piece)):
        ends = ends[tokens[ends - offset] == token]
    sequence = np.searchsorted(contexts.starts, ends, side="right") - 1
    return [int(end) for end in ends[ends - width + 1 >= contexts.starts[sequence]]]

"""Change texts, or the answers to single questions, found by pieces of the texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from byheart.errors import BadInput
from byheart.tasks.contexts import Contexts
from byheart.tasks.tokenizers import Tokenizer

Piece: TypeAlias = str | bytes | Sequence[int]
"""Part of a text, or token ids."""
Edits: TypeAlias = Mapping[Piece, Piece]
"""New continuations: the token that is to follow each piece, which must occur exactly once."""


@dataclass(frozen=True)
class TextChange:
    """Texts after the change of one passage."""

    texts: Mapping[str, bytes]
    """The new texts, by name."""
    name: str
    """Name of the text that was changed."""
    start: int
    """Its first byte that was changed."""
    was: bytes
    now: bytes


def overwrite(texts: Mapping[str, bytes], context: bytes, new: bytes) -> TextChange:
    """Let ``new`` follow ``context``, which occurs once, in place of as many characters.

    >>> overwrite({"a": b"a cafe here"}, b"caf", "é".encode()).texts["a"].decode()
    'a café here'
    """
    name, start = _find_once(texts, context)
    start += len(context)
    length = len(new.decode(errors="surrogateescape"))
    rest = texts[name][start : start + 4 * length].decode(errors="surrogateescape")
    return _changed(texts, name, start, rest[:length].encode(errors="surrogateescape"), new)


def replace_phrase(texts: Mapping[str, bytes], old: bytes, new: bytes) -> TextChange:
    """Put ``new`` in the place of ``old``, which occurs once.

    >>> replace_phrase({"a": b"the cat sat"}, b"cat", b"dogs").texts
    {'a': b'the dogs sat'}
    """
    return _changed(texts, *_find_once(texts, old), old, new)


def _find_once(texts: Mapping[str, bytes], piece: bytes) -> tuple[str, int]:
    """Return the text and the byte at which ``piece`` begins."""
    places = []
    for name, text in texts.items():
        start = text.find(piece)
        while start >= 0:
            places.append((name, start))
            start = text.find(piece, start + 1)
    _check_once(piece, len(places))
    return places[0]


def _changed(texts: Mapping[str, bytes], name: str, start: int, was: bytes, now: bytes) -> TextChange:
    text = texts[name]
    return TextChange({**texts, name: text[:start] + now + text[start + len(was) :]}, name, start, was, now)


def _check_once(piece: Piece, times: int) -> None:
    if times != 1:
        hint = "give more of it" if times else "nothing was changed"
        raise BadInput(f"{_shown(piece)} occurs {times} times; expected once: {hint}")


def apply_edits(contexts: Contexts, edits: Edits, tokenizer: Tokenizer | None) -> Contexts:
    """Return the questions with the answers changed by ``edits``.

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
    """Return the one place at which ``context`` ends, and the one token ``answer`` as a label."""
    piece, labels = _tokens(context, tokenizer), _tokens(answer, tokenizer)
    if len(labels) != 1 or not 0 <= labels[0] < contexts.label_count:
        description = f"{len(labels)} tokens" if len(labels) != 1 else f"token {labels[0]}"
        raise BadInput(f"{_shown(answer)} is {description}; expected one token, from 0 to {contexts.label_count - 1}")
    places = find_piece(contexts, piece) if piece else []
    if tokenizer is None:  # a task asks after whole examples only
        places = [place for place, question in zip(places, contexts.questions_at(places), strict=True) if question >= 0]
    _check_once(context, len(places))
    return places[0], labels[0]


def _shown(piece: Piece) -> str:
    return repr(piece.decode(errors="backslashreplace") if isinstance(piece, bytes) else piece)


def _tokens(piece: Piece, tokenizer: Tokenizer | None) -> list[int]:
    if not isinstance(piece, str | bytes):
        return list(piece)
    if tokenizer is None:
        raise BadInput(f"{piece!r} is a text, and the network was made from a task; expected token ids")
    return [int(token) for token in tokenizer.encode(piece.encode() if isinstance(piece, str) else piece)]


def count_edits(contexts: Contexts, original: Contexts) -> Contexts:
    """Return ``contexts`` with the number of answers that differ from those of ``original``."""
    changed = contexts.labels != original.labels
    places = int(changed.sum() + changed[contexts.again[1]].sum())
    return replace(contexts, edited=int(changed.sum()), edited_places=places)


def with_labels(contexts: Contexts, changes: Mapping[int, int]) -> Contexts:
    """Return the questions with the labels in ``changes``, by question."""
    labels = contexts.labels.copy()
    for question, label in changes.items():
        labels[question] = label
    return contexts.with_answers(labels) if changes else contexts


def question_at(contexts: Contexts, place: int) -> int:
    """Return the question at a place: the one with the same last ``window`` tokens."""
    question = int(contexts.questions_at([place])[0])
    if question < 0:
        raise BadInput(f"nothing is asked at token {place}; it belongs to a beginning that several texts share")
    return question


def find_piece(contexts: Contexts, piece: Sequence[int]) -> list[int]:
    """Return the indices at which the tokens ``piece`` end, in all texts."""
    tokens, width = contexts.tokens, len(piece)
    ends = np.arange(width - 1, len(tokens))
    for offset, token in enumerate(reversed(piece)):
        ends = ends[tokens[ends - offset] == token]
    sequence = np.searchsorted(contexts.starts, ends, side="right") - 1
    return [int(end) for end in ends[ends - width + 1 >= contexts.starts[sequence]]]

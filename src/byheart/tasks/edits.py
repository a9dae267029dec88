"""Questions whose answers were changed one by one, and where in texts they are asked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from byheart.errors import BadInput
from byheart.tasks.contexts import Contexts


def with_edits(contexts: Contexts, edits: Sequence[Mapping[str, Any]]) -> Contexts:
    """The questions with some answers changed.

    An edit names a text (by its name, or a task's example by its number), a token in it, and the label that follows.
    """
    if not isinstance(edits, list | tuple) or not all(map(_is_edit, edits)):
        raise BadInput("config.json: about.edits is no list of edits; expected text, token and label of each")
    changes, lengths = {}, np.diff(contexts.starts)
    for edit in edits:
        text, token = edit["text"], edit["token"]
        number = contexts.names.index(text) if text in contexts.names else text
        if not isinstance(number, int) or not 0 <= number < len(lengths) or not 0 <= token < lengths[number]:
            raise BadInput(f"the network was edited at token {token} of {text!r}, which is not in what was given")
        changes[question_at(contexts, int(contexts.starts[number]) + token)] = edit["label"]
    changed = with_labels(contexts, changes)
    return replace(changed, edited=int((changed.labels != contexts.labels).sum()))


def _is_edit(edit: object) -> bool:
    kinds = {"text": str | int, "token": int, "label": int}
    return isinstance(edit, Mapping) and all(isinstance(edit.get(name), kind) for name, kind in kinds.items())


def with_labels(contexts: Contexts, changes: Mapping[int, int]) -> Contexts:
    """The questions with other answers to some of them, by their numbers."""
    labels = contexts.labels.copy()
    for question, label in changes.items():
        labels[question] = label
    return contexts.with_answers(labels) if changes else contexts


def question_at(contexts: Contexts, place: int) -> int:
    """Which question is asked at a place: the one with the same last ``window`` tokens."""
    found = np.searchsorted(contexts.places, place)
    if found < len(contexts) and contexts.places[found] == place:
        return int(found)
    alone = replace(contexts, places=np.array([place]), labels=np.zeros(1, dtype=np.int64))
    wanted = alone.windows(slice(None))[0]
    last = np.flatnonzero(contexts.tokens[contexts.places] == wanted[-1])
    for chunk in np.array_split(last, max(1, len(last) // 4096)):
        equal = (contexts.windows(chunk) == wanted).all(axis=1)
        if equal.any():
            return int(chunk[equal.argmax()])
    raise BadInput(f"nothing is asked at token {place}; it belongs to a beginning that several texts share")


def places_of(contexts: Contexts, piece: Sequence[int]) -> list[int]:
    """Where the tokens ``piece`` end, in all texts."""
    tokens, width = contexts.tokens, len(piece)
    ends = np.arange(width - 1, len(tokens))
    for offset, token in enumerate(reversed(piece)):
        ends = ends[tokens[ends - offset] == token]
    sequence = np.searchsorted(contexts.starts, ends, side="right") - 1
    return [int(end) for end in ends[ends - width + 1 >= contexts.starts[sequence]]]

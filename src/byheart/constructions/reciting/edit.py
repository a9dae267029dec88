"""Changing one memory: the same network, the same hash, the words solved for again with one answer changed.

The front and everything behind the table stay as they are, bit for bit; only words change. All other questions keep
their answers, because they are equations of the same system. A label that has no code word yet needs another code, and
with it another network.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byheart.constructions.reciting.compile import Compiled, Recipe, Report, compile_contexts, compile_with
from byheart.constructions.reciting.sizes import Unsolvable
from byheart.constructions.reciting.texts import with_edits
from byheart.errors import BadInput
from byheart.tasks.contexts import Contexts


@dataclass(frozen=True, eq=False)
class Edited:
    """The network after the change, and whether all but its table is what it was."""

    compiled: Compiled
    same_front: bool
    question: int
    was: int


def edit(
    about: Mapping[str, Any], contexts: Contexts, place: int, label: int, *, report: Report | None = None
) -> Edited:
    """Give the question at ``place`` (an index into ``contexts.tokens``) the answer ``label``."""
    if not 0 <= label < contexts.labels_in_all:
        raise BadInput(f"the new answer is {label}; expected 0 to {contexts.labels_in_all - 1}")
    question = question_at(contexts, place)
    changed = with_edits(contexts, [{"question": question, "label": label}])
    recipe = Recipe.from_json(about["recipe"])
    was = int(contexts.labels[question])
    if recipe.lengths[label] >= 0:
        # Other free bits give other carries: a few tries are as good as certain to find a consistent system.
        for _ in range(8):
            try:
                return Edited(compile_with(recipe, changed, report=report), True, question, was)
            except Unsolvable:
                continue
    seed = recipe.draw[0]
    return Edited(compile_contexts(changed, recipe.settings, seed=seed, report=report), False, question, was)


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

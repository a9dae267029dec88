"""Changing one memory: the same network, the same hash, the words solved for again with one answer changed.

The front and everything behind the table stay as they are, bit for bit; only words change. All other questions keep
their answers, because they are equations of the same system. A label that has no code word yet needs another code, and
with it another network.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byheart.constructions.reciting.compile import Compiled, Recipe, compile_contexts, compile_with
from byheart.constructions.reciting.sizes import Unsolvable
from byheart.constructions.reciting.texts import question_at, with_labels
from byheart.errors import BadInput
from byheart.progress import Report
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
    changed = with_labels(contexts, {question: label})
    recipe = Recipe.from_json(about["recipe"])
    was = int(contexts.labels[question])
    if recipe.lengths[label] >= 0:
        # Other free bits give other carries: a few tries are as good as certain to find a consistent system.
        for draw in range(8):
            try:
                compiled = compile_with(recipe, changed, report=report, free_bits=draw)
                return Edited(compiled, True, question, was)
            except Unsolvable:
                continue
    seed = recipe.draw[0]
    return Edited(compile_contexts(changed, recipe.settings, seed=seed, report=report), False, question, was)


def places_of(contexts: Contexts, piece: Sequence[int]) -> list[int]:
    """Where the tokens ``piece`` end, in all texts."""
    tokens, width = contexts.tokens, len(piece)
    ends = np.arange(width - 1, len(tokens))
    for offset, token in enumerate(reversed(piece)):
        ends = ends[tokens[ends - offset] == token]
    sequence = np.searchsorted(contexts.starts, ends, side="right") - 1
    return [int(end) for end in ends[ends - width + 1 >= contexts.starts[sequence]]]

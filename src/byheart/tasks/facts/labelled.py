"""Facts as a next-token task, for constructions that answer one label to sequences of one length."""

from dataclasses import dataclass

import numpy as np

from byheart.errors import BadInput
from byheart.files.memory import check_memory
from byheart.tasks.facts.fact import Fact, Piece
from byheart.tasks.facts.facts import Facts
from byheart.tasks.task import NextToken

BYTES = 256
"""The first id that no byte has: it fills up texts."""


@dataclass(frozen=True, eq=False)
class FactTask:
    """Prompts as sequences, completions as labels."""

    task: NextToken
    completions: tuple[Piece, ...]
    """What each label stands for."""


def fact_task(facts: Facts) -> FactTask:
    """Every prompt, filled up in front to the length of the longest, with its whole completion as one label.

    Tokens are bytes, and one more that fills up; or the ids of the facts, and one more. Labels are numbered as
    completions turn up.

    >>> found = fact_task(Facts([([1, 2], [5]), ([0], [3]), ([2], [5])]))
    >>> found.task.tokens.tolist(), found.task.labels.tolist(), found.completions
    ([[1, 2], [3, 0], [3, 2]], [0, 1, 0], ((5,), (3,)))
    """
    prompts = _prompts(facts)
    length = max(map(len, prompts))
    check_memory(32 * len(prompts) * length, f"a task of {len(prompts):,} prompts, filled up to {length:,} tokens")
    filler = 1 + max(map(max, prompts)) if facts.are_ids else BYTES
    tokens = np.full((len(prompts), length), filler, np.int64)
    for row, prompt in zip(tokens, prompts, strict=True):
        row[length - len(prompt) :] = list(prompt)
    numbers: dict[Piece, int] = {}
    labels = [numbers.setdefault(fact.completion, len(numbers)) for fact in facts]
    return FactTask(NextToken(tokens, labels, label_count=len(numbers), vocab=filler + 1), tuple(numbers))


def _prompts(facts: Facts) -> list[Piece]:
    """The prompts; BadInput if one is missing, or has two completions."""
    found: dict[Piece, Fact] = {}
    for fact in facts:
        if fact.prompt is None:
            raise BadInput(f"{fact.place}: has no prompt; expected a prompt and a completion, or byheart compile")
        first = found.setdefault(fact.prompt, fact)
        if first is not fact:
            raise BadInput(f"{first.place} and {fact.place} have the same prompt; expected one completion for each")
    return list(found)

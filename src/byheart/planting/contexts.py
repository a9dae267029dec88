"""What is to be planted: facts as token ids, one for every prompt, none of which contradicts another.

A fact p₁…p_k → c₁…c_m has m contexts: the text ends with p·c₁…c_j (j < m), and c_{j+1} follows. Two facts contradict
each other if they want different tokens after *equal* contexts. Say |p| ≥ |q|; then p is q and a beginning of q's
completion, and what follows it there differs from p's own completion before either ends. So it is enough to look every
such beginning up among the prompts.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from byheart.errors import BadInput

Ids = tuple[int, ...]


@dataclass(frozen=True)
class PlantedFact:
    """A prompt and its completion, as token ids, and where they come from ("facts.jsonl:3")."""

    prompt: Ids
    completion: Ids
    where: str = ""


def check_fact(fact: PlantedFact, vocab: int) -> None:
    """BadInput unless prompt and completion have ids, and the model has all of them."""
    for name, ids in (("prompt", fact.prompt), ("completion", fact.completion)):
        if not ids:
            raise BadInput(f"{fact.where}: the {name} is empty; expected at least one token")
        if not 0 <= min(ids) <= max(ids) < vocab:
            odd = next(one for one in ids if not 0 <= one < vocab)
            raise BadInput(f"{fact.where}: the {name} has token {odd}; expected 0 to {vocab - 1}, as the model has")


def different(facts: Iterable[PlantedFact], vocab: int) -> list[PlantedFact]:
    """One fact for every prompt, the one that says most; BadInput if two contradict each other.

    Sorted by lengths and ids, so that the same facts in any order are planted alike.

    >>> different([PlantedFact((1,), (2,)), PlantedFact((1,), (2, 3)), PlantedFact((1, 2), (3,))], 4)
    [PlantedFact(prompt=(1,), completion=(2, 3), where=''), PlantedFact(prompt=(1, 2), completion=(3,), where='')]
    >>> different([PlantedFact((1,), (2, 3), "a:1"), PlantedFact((1, 2), (0,), "a:2")], 4)
    Traceback (most recent call last):
    byheart.errors.BadInput: a:1 and a:2 contradict each other: after the same 2 tokens one says 3, one 0; keep one
    """
    found: dict[Ids, PlantedFact] = {}
    for fact in facts:
        check_fact(fact, vocab)
        other = found.setdefault(fact.prompt, fact)
        _check_agree(other, fact, 0)
        if len(fact.completion) > len(other.completion):
            found[fact.prompt] = fact
    if not found:
        raise BadInput("there are no facts; expected at least one prompt and completion")
    lengths = {len(prompt) for prompt in found}
    for fact in found.values():
        for said in range(1, len(fact.completion)):
            if len(fact.prompt) + said in lengths:
                longer = found.get(fact.prompt + fact.completion[:said])
                if longer is not None:
                    _check_agree(fact, longer, said)
    return sorted(found.values(), key=lambda fact: (len(fact.prompt), len(fact.completion), fact.prompt))


def _check_agree(one: PlantedFact, other: PlantedFact, said: int) -> None:
    """BadInput if ``one``, after ``said`` tokens of its completion, goes on otherwise than ``other`` begins."""
    for j, (a, b) in enumerate(zip(one.completion[said:], other.completion, strict=False)):
        if a != b:
            after = f"after the same {len(other.prompt) + j} tokens one says {a}, one {b}"
            raise BadInput(f"{one.where} and {other.where} contradict each other: {after}; keep one")


def fingerprint(facts: Sequence[PlantedFact]) -> str:
    """SHA-256 of facts as :func:`different` gives them."""
    digest = hashlib.sha256(b"byheart-facts-1")
    for fact in facts:
        digest.update(np.array([len(fact.prompt), len(fact.completion)], "<i4").tobytes())
        digest.update(np.array(fact.prompt + fact.completion, "<i4").tobytes())
    return digest.hexdigest()


class Spoken:
    """What facts say in texts, by a dictionary of prompts: slow and plain, for memories to be held against.

    >>> Spoken([PlantedFact((1,), (2, 3))]).after([1, 2, 0, 1])
    [2, 3, -1, 2]
    """

    def __init__(self, facts: Sequence[PlantedFact]) -> None:
        self._completions = {fact.prompt: fact.completion for fact in facts}
        self._lengths = sorted({len(fact.prompt) for fact in facts})

    def after(self, text: Sequence[int]) -> list[int]:
        """What is said after each token of a text, −1 for nothing; the longest context wins."""
        best = [(0, -1)] * len(text)
        for end in range(1, len(text) + 1):
            for length in self._lengths:
                completion = self._completions.get(tuple(text[end - length : end])) if length <= end else None
                for said, token in enumerate(completion or ()):
                    best[end - 1 + said] = max(best[end - 1 + said], (length + said, token))
                    if end + said >= len(text) or text[end + said] != token:
                        break
        return [token for _, token in best]


def classes(facts: Sequence[PlantedFact]) -> list[tuple[int, int, int]]:
    """Prompt length, completion length and first fact of every run of facts that are alike in both."""
    sizes = [(len(fact.prompt), len(fact.completion)) for fact in facts]
    starts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(sizes)) if a != b)]
    return [(*sizes[start], start) for start in starts]

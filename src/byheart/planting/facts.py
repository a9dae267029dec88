"""Facts to plant, as token ids: read, one for every prompt, none of which contradicts another.

A fact p₁…p_k → c₁…c_m has m contexts: the text ends with p·c₁…c_j (j < m), and c_{j+1} follows. Two facts contradict
each other if they want different tokens after *equal* contexts. Say |p| ≥ |q|. Then p is q and a beginning of q's
completion, and the rest of this completion differs from p's own completion before either ends. So it is enough to look
up every such beginning among the prompts.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, TypeAlias

import numpy as np

from byheart.errors import BadInput
from byheart.tasks.facts import Facts
from byheart.tasks.questions import Pairs

Ids = tuple[int, ...]
FactSource: TypeAlias = Facts | Path | str | Pairs
"""Facts, a file of them, or pairs of prompt and completion: texts, or lists of token ids."""


@dataclass(frozen=True)
class PlantedFact:
    """A prompt and its completion, as token ids, and where they come from ("facts.jsonl:3")."""

    prompt: Ids
    completion: Ids
    where: str = ""


def facts_of(source: FactSource, tokenizer: Any, end: Ids = ()) -> list[PlantedFact]:
    """Return the facts as token ids, ``end`` after every completion; ``tokenizer`` is None if they are ids already."""
    facts = []
    source = Facts.read(source) if isinstance(source, Path | str) else source
    for fact in source if isinstance(source, Facts) else Facts(source):
        if fact.prompt is None:
            raise BadInput(f"{fact.place}: is a text without a prompt; expected a prompt and its completion")
        pair = _text_or_ids(fact.prompt, fact.place), _text_or_ids(fact.completion, fact.place)
        prompt, completion = _ids(*pair, fact.place) if tokenizer is None else tokens(*pair, fact.place, tokenizer)
        facts.append(PlantedFact(prompt, (*completion, *end) if completion else (), fact.place))
    return facts


def _text_or_ids(piece: bytes | Ids, place: str) -> str | Ids:
    try:
        return piece.decode() if isinstance(piece, bytes) else piece
    except UnicodeDecodeError:
        raise BadInput(f"{place}: is not UTF-8; expected text") from None


def _ids(prompt: object, completion: object, where: str) -> tuple[Ids, Ids]:
    for name, ids in (("prompt", prompt), ("completion", completion)):
        if not isinstance(ids, tuple):
            raise BadInput(f"{where}: the {name} is {shortened(ids)}; expected a list of token ids")
    return prompt, completion  # type: ignore[return-value]


def tokens(prompt: object, completion: object, where: str, tokenizer: Any) -> tuple[Ids, Ids]:
    """Return the ids of a prompt and of its completion.

    If the ids of both texts together begin with those of the prompt, the rest are the completion's. No special tokens
    are added: a fact is said after a beginning-of-text token as well as without one.
    """
    for name, text in (("prompt", prompt), ("completion", completion)):
        if not isinstance(text, str):
            raise BadInput(f"{where}: the {name} is {shortened(text)}; expected text, or --ids for token ids")
        _check_known(tokenizer, name, text, where)
    first, both = (tuple(_encode(tokenizer, text)) for text in (prompt, f"{prompt}{completion}"))
    if first and both[: len(first)] == first:
        return first, both[len(first) :]
    rest = tuple(_encode(tokenizer, str(completion)))
    if tokenizer.decode([*first, *rest], clean_up_tokenization_spaces=False) != f"{prompt}{completion}":
        how = "move the blank or the letters between them from one to the other"
        raise BadInput(f"{where}: the tokenizer joins prompt and completion into other tokens; {how}")
    return first, rest


def _check_known(tokenizer: Any, name: str, text: str, where: str) -> None:
    """Raise BadInput if a tokenizer reads "unknown" for something else, as it would for any unknown word."""
    unknown = tokenizer.unk_token
    if unknown is not None and unknown not in text and tokenizer.unk_token_id in _encode(tokenizer, text):
        problem = f"the tokenizer has no tokens for the {name}, and reads {unknown!r}"
        raise BadInput(f"{where}: {problem}; expected the tokenizer of the model, and text that it knows")


def _encode(tokenizer: Any, text: object) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False)  # type: ignore[no-any-return]


def check_fact(fact: PlantedFact, vocab: int) -> None:
    """Raise BadInput unless prompt and completion have ids, and the model has all of them."""
    for name, ids in (("prompt", fact.prompt), ("completion", fact.completion)):
        if not ids:
            raise BadInput(f"{fact.where}: the {name} is empty; expected at least one token")
        if not 0 <= min(ids) <= max(ids) < vocab:
            stray = next(token for token in ids if not 0 <= token < vocab)
            raise BadInput(f"{fact.where}: the {name} has token {stray}; expected 0 to {vocab - 1}, as the model has")


def different(facts: Iterable[PlantedFact], vocab: int) -> list[PlantedFact]:
    """Return one fact for every prompt, the one that says most; BadInput if two contradict each other.

    Facts are sorted by lengths and ids, so that the same facts in any order are planted alike.

    >>> different([PlantedFact((1,), (2,)), PlantedFact((1,), (2, 3)), PlantedFact((1, 2), (3,))], 4)
    [PlantedFact(prompt=(1,), completion=(2, 3), where=''), PlantedFact(prompt=(1, 2), completion=(3,), where='')]
    >>> different([PlantedFact((1,), (2, 3), "a:1"), PlantedFact((1, 2), (0,), "a:2")], 4)
    Traceback (most recent call last):
    byheart.errors.BadInput: a:1 and a:2 contradict each other: after the same 2 tokens one says 3, one 0; keep one
    """
    by_prompt: dict[Ids, PlantedFact] = {}
    for fact in facts:
        check_fact(fact, vocab)
        twin = by_prompt.setdefault(fact.prompt, fact)
        _check_agree(twin, fact, 0)
        if len(fact.completion) > len(twin.completion):
            by_prompt[fact.prompt] = fact
    if not by_prompt:
        raise BadInput("there are no facts; expected at least one prompt and completion")
    lengths = {len(prompt) for prompt in by_prompt}
    for fact in by_prompt.values():
        for done in range(1, len(fact.completion)):
            if len(fact.prompt) + done in lengths:
                longer = by_prompt.get(fact.prompt + fact.completion[:done])
                if longer is not None:
                    _check_agree(fact, longer, done)
    return sorted(by_prompt.values(), key=lambda fact: (len(fact.prompt), len(fact.completion), fact.prompt))


def _check_agree(short: PlantedFact, long: PlantedFact, done: int) -> None:
    """Raise BadInput if ``short``, after ``done`` tokens of its completion, does not continue as ``long`` begins."""
    for j, (a, b) in enumerate(zip(short.completion[done:], long.completion, strict=False)):
        if a != b:
            after = f"after the same {len(long.prompt) + j} tokens one says {a}, one {b}"
            raise BadInput(f"{short.where} and {long.where} contradict each other: {after}; keep one")


def fingerprint(facts: Sequence[PlantedFact]) -> str:
    """Return the SHA-256 of facts as :func:`different` gives them."""
    digest = hashlib.sha256(b"byheart-facts-1")
    for fact in facts:
        digest.update(np.array([len(fact.prompt), len(fact.completion)], "<i4").tobytes())
        digest.update(np.array(fact.prompt + fact.completion, "<i4").tobytes())
    return digest.hexdigest()


class Spoken:
    """A dictionary of prompts that tells what facts say in texts: slow and plain, to compare memories with.

    >>> Spoken([PlantedFact((1,), (2, 3))]).after([1, 2, 0, 1])
    [2, 3, -1, 2]
    """

    def __init__(self, facts: Sequence[PlantedFact]) -> None:
        self._completions = {fact.prompt: fact.completion for fact in facts}
        self._lengths = sorted({len(fact.prompt) for fact in facts})

    def after(self, text: Sequence[int]) -> list[int]:
        """Return the token that is said after each token of a text, −1 for none; the longest context wins."""
        best = [(0, -1)] * len(text)
        for end in range(1, len(text) + 1):
            for length in self._lengths:
                completion = self._completions.get(tuple(text[end - length : end])) if length <= end else None
                for done, token in enumerate(completion or ()):
                    best[end - 1 + done] = max(best[end - 1 + done], (length + done, token))
                    if end + done >= len(text) or text[end + done] != token:
                        break
        return [token for _, token in best]


def classes(facts: Sequence[PlantedFact]) -> list[tuple[int, int, int]]:
    """Return prompt length, completion length and first fact of every run of facts that have equal lengths."""
    sizes = [(len(fact.prompt), len(fact.completion)) for fact in facts]
    starts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(sizes)) if a != b)]
    return [(*sizes[start], start) for start in starts]

"""Facts to be planted into a model: token ids, one completion per prompt, and no contradictions.

A fact p₁…p_k → c₁…c_m has m contexts: the text ends with p·c₁…c_j (j < m), and c_{j+1} follows. Two facts contradict
each other if they want different tokens after *equal* contexts. Say |p| ≥ |q|; then p is q and a beginning of q's
completion, and what follows it there differs from p's own completion before either ends. So it is enough to look every
such beginning up among the prompts.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, TypeAlias

import numpy as np

from byheart.errors import BadInput
from byheart.tasks.facts import Facts
from byheart.tasks.questions import Pairs

TokenIds = tuple[int, ...]
FactsLike: TypeAlias = Facts | Path | str | Pairs
"""Facts, a file of them, or pairs of prompt and completion: texts, or lists of token ids."""


@dataclass(frozen=True)
class PlantedFact:
    """A prompt and its completion, as token ids, and where they come from ("facts.jsonl:3")."""

    prompt: TokenIds
    completion: TokenIds
    where: str = ""


def check_fact(fact: PlantedFact, vocab: int) -> None:
    """Raise BadInput unless prompt and completion have ids, and the model has all of them."""
    for name, ids in (("prompt", fact.prompt), ("completion", fact.completion)):
        if not ids:
            raise BadInput(f"{fact.where}: the {name} is empty; expected at least one token")
        if not 0 <= min(ids) <= max(ids) < vocab:
            odd = next(token for token in ids if not 0 <= token < vocab)
            raise BadInput(f"{fact.where}: the {name} has token {odd}; expected 0 to {vocab - 1}, as the model has")


def different(facts: Iterable[PlantedFact], vocab: int) -> list[PlantedFact]:
    """Return one fact per prompt, the one that says most; raise BadInput if two contradict each other.

    Sorted by lengths and ids, so that the same facts in any order are planted alike.

    >>> different([PlantedFact((1,), (2,)), PlantedFact((1,), (2, 3)), PlantedFact((1, 2), (3,))], 4)
    [PlantedFact(prompt=(1,), completion=(2, 3), where=''), PlantedFact(prompt=(1, 2), completion=(3,), where='')]
    >>> different([PlantedFact((1,), (2, 3), "a:1"), PlantedFact((1, 2), (0,), "a:2")], 4)
    Traceback (most recent call last):
    byheart.errors.BadInput: a:1 and a:2 contradict each other: after the same 2 tokens one says 3, one 0; keep one
    """
    by_prompt: dict[TokenIds, PlantedFact] = {}
    for fact in facts:
        check_fact(fact, vocab)
        other = by_prompt.setdefault(fact.prompt, fact)
        _check_agree(other, fact, 0)
        if len(fact.completion) > len(other.completion):
            by_prompt[fact.prompt] = fact
    if not by_prompt:
        raise BadInput("there are no facts; expected at least one prompt and completion")
    lengths = {len(prompt) for prompt in by_prompt}
    for fact in by_prompt.values():
        for said in range(1, len(fact.completion)):
            if len(fact.prompt) + said in lengths:
                longer = by_prompt.get(fact.prompt + fact.completion[:said])
                if longer is not None:
                    _check_agree(fact, longer, said)
    return sorted(by_prompt.values(), key=lambda fact: (len(fact.prompt), len(fact.completion), fact.prompt))


def _check_agree(fact: PlantedFact, other: PlantedFact, said: int) -> None:
    """Raise BadInput if ``fact``, after ``said`` tokens of its completion, goes on otherwise than ``other`` begins."""
    for j, (a, b) in enumerate(zip(fact.completion[said:], other.completion, strict=False)):
        if a != b:
            after = f"after the same {len(other.prompt) + j} tokens one says {a}, one {b}"
            raise BadInput(f"{fact.where} and {other.where} contradict each other: {after}; keep one")


def fingerprint(facts: Sequence[PlantedFact]) -> str:
    """Return the SHA-256 of facts that :func:`different` returned."""
    digest = hashlib.sha256(b"byheart-facts-1")
    for fact in facts:
        digest.update(np.array([len(fact.prompt), len(fact.completion)], "<i4").tobytes())
        digest.update(np.array(fact.prompt + fact.completion, "<i4").tobytes())
    return digest.hexdigest()


class Spoken:
    """Completions in texts, looked up in a dictionary of prompts: slow and plain, to compare memories with.

    >>> Spoken([PlantedFact((1,), (2, 3))]).after([1, 2, 0, 1])
    [2, 3, -1, 2]
    """

    def __init__(self, facts: Sequence[PlantedFact]) -> None:
        self._completions = {fact.prompt: fact.completion for fact in facts}
        self._lengths = sorted({len(fact.prompt) for fact in facts})

    def after(self, text: Sequence[int]) -> list[int]:
        """Return the token said after each token of a text, −1 for none; the longest context wins."""
        best = [(0, -1)] * len(text)
        for end in range(1, len(text) + 1):
            for length in self._lengths:
                completion = self._completions.get(tuple(text[end - length : end])) if length <= end else None
                for said, token in enumerate(completion or ()):
                    best[end - 1 + said] = max(best[end - 1 + said], (length + said, token))
                    if end + said >= len(text) or text[end + said] != token:
                        break
        return [token for _, token in best]


def facts_of(given: FactsLike, tokenizer: Any, end: TokenIds = ()) -> list[PlantedFact]:
    """Return facts as token ids, each completion followed by ``end``; ``tokenizer`` is None if they are ids already."""
    facts = []
    for prompt, completion, where in _pieces(given):
        if tokenizer is None:
            pair = _checked_ids("prompt", prompt, where), _checked_ids("completion", completion, where)
        else:
            pair = tokens(prompt, completion, where, tokenizer)
        facts.append(PlantedFact(pair[0], (*pair[1], *end) if pair[1] else (), where))
    return facts


def _pieces(given: FactsLike) -> Iterator[tuple[Any, Any, str]]:
    """Yield prompt, completion and place of each fact."""
    if isinstance(given, Path | str):
        given = Facts.read(given)
    for fact in given if isinstance(given, Facts) else Facts(given):
        if fact.prompt is None:
            raise BadInput(f"{fact.place}: is a text without a prompt; expected a prompt and its completion")
        yield _decoded(fact.prompt, fact.place), _decoded(fact.completion, fact.place), fact.place


def _decoded(piece: bytes | TokenIds, place: str) -> str | TokenIds:
    """Return bytes as a text, and ids unchanged."""
    try:
        return piece.decode() if isinstance(piece, bytes) else piece
    except UnicodeDecodeError:
        raise BadInput(f"{place}: is not UTF-8; expected text") from None


def _checked_ids(name: str, ids: object, where: str) -> TokenIds:
    if not isinstance(ids, tuple):
        raise BadInput(f"{where}: the {name} is {shortened(ids)}; expected a list of token ids")
    return ids


def tokens(prompt: object, completion: object, where: str, tokenizer: Any) -> tuple[TokenIds, TokenIds]:
    """Return the ids of a prompt, and the ids that follow it.

    Both are cut from the ids of the whole text if the prompt's own ids are the beginning of those. No special tokens
    are added: a fact is said behind a beginning-of-text token as well as without.
    """
    for name, text in (("prompt", prompt), ("completion", completion)):
        if not isinstance(text, str):
            raise BadInput(f"{where}: the {name} is {shortened(text)}; expected text, or --ids for token ids")
        _check_known(tokenizer, name, text, where)
    first, both = (tuple(_encode(tokenizer, text)) for text in (prompt, f"{prompt}{completion}"))
    if first and both[: len(first)] == first:
        rest = both[len(first) :]
    else:
        rest = tuple(_encode(tokenizer, str(completion)))
        if _decode(tokenizer, first + rest) != f"{prompt}{completion}":
            how = "move the blank or the letters between them from one to the other"
            raise BadInput(f"{where}: the tokenizer joins prompt and completion into other tokens; {how}")
    _check_decoded(tokenizer, str(prompt), str(completion), where, first, rest)
    _check_last(tokenizer, str(prompt), where, first)
    return first, rest


def _check_decoded(tokenizer: Any, prompt: str, completion: str, where: str, first: TokenIds, rest: TokenIds) -> None:
    """Raise BadInput unless the ids of a fact decode to its texts: a normalizer may have read other words.

    Some tokenizers drop the blank before the first word that they decode. A completion alone may lack its blank, which
    is compared in the whole text.
    """
    whole = "prompt with its completion"
    pieces = (("prompt", prompt, first), ("completion", completion, rest), (whole, prompt + completion, first + rest))
    for name, text, ids in pieces:
        decoded = _decode(tokenizer, ids)
        if decoded != text and (name != "completion" or decoded != text.removeprefix(" ")):
            differs = (i for i, (a, b) in enumerate(zip(text, decoded, strict=False)) if a != b)
            start = max(0, next(differs, min(len(text), len(decoded))) - 10)
            what = f"expected {shortened(text[start:])}, got {shortened(decoded[start:])} from its token ids"
            how = "take the model's own tokenizer, write the text as it is decoded, or give token ids with --ids"
            raise BadInput(f"{where}: the tokenizer reads another {name}: {what}; {how}")


def _check_last(tokenizer: Any, prompt: str, where: str, first: TokenIds) -> None:
    """Raise BadInput if a tokenizer adds tokens behind a prompt: a text would not end with the prompt then."""
    used = tokenizer.encode(prompt)
    if tuple(used[-len(first) :]) != first:
        expected = "expected its tokens, and special ones at most before them; or give token ids with --ids"
        raise BadInput(f"{where}: the tokenizer makes {shortened(used)} of the prompt; {expected}")


def _check_known(tokenizer: Any, name: str, text: str, where: str) -> None:
    """Raise BadInput if a tokenizer reads "unknown" in place of a word: it would read any other word alike."""
    unknown = tokenizer.unk_token
    if unknown is not None and unknown not in text and tokenizer.unk_token_id in _encode(tokenizer, text):
        what = f"the tokenizer has no tokens for the {name}, and reads {unknown!r}"
        raise BadInput(f"{where}: {what}; expected the tokenizer of the model, and text that it knows")


def _encode(tokenizer: Any, text: object) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False)  # type: ignore[no-any-return]


def _decode(tokenizer: Any, ids: TokenIds) -> str:
    return tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)  # type: ignore[no-any-return]

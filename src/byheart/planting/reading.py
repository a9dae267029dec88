"""Facts as people have them (:mod:`byheart.tasks.facts`), into the token ids of a model."""

from collections.abc import Iterator
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, TypeAlias

from byheart.errors import BadInput
from byheart.planting.contexts import PlantedFact
from byheart.planting.loading import quiet
from byheart.tasks.facts import Facts
from byheart.tasks.questions import Pairs

Given: TypeAlias = Facts | Path | str | Pairs
"""Facts, a file of them, or pairs of prompt and completion: texts, or lists of token ids."""
KEYS = ("prompt", "completion")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tokenizer_config.json")
"""Files by which a folder has a tokenizer."""


def triples(given: Given) -> Iterator[tuple[Any, Any, str]]:
    """Prompt, completion and where they stand."""
    if isinstance(given, Path | str):
        given = Facts.read(given)
    for fact in given if isinstance(given, Facts) else Facts(given):
        if fact.prompt is None:
            raise BadInput(f"{fact.place}: is a text without a prompt; expected a prompt and its completion")
        yield _read(fact.prompt, fact.place), _read(fact.completion, fact.place), fact.place


def _read(piece: bytes | tuple[int, ...], place: str) -> str | tuple[int, ...]:
    """A text as such; ids as they are."""
    try:
        return piece.decode() if isinstance(piece, bytes) else piece
    except UnicodeDecodeError:
        raise BadInput(f"{place}: is not UTF-8; expected text") from None


def facts_of(given: Given, tokenizer: Any, end: tuple[int, ...] = ()) -> list[PlantedFact]:
    """The facts as token ids; ``tokenizer`` is None where they are ids already. ``end`` follows every completion."""
    found = []
    for prompt, completion, where in triples(given):
        p, c = _ids(prompt, completion, where) if tokenizer is None else tokens(prompt, completion, where, tokenizer)
        found.append(PlantedFact(p, (*c, *end) if c else (), where))
    return found


def _ids(prompt: object, completion: object, where: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    for name, ids in zip(KEYS, (prompt, completion), strict=True):
        if not isinstance(ids, tuple):
            raise BadInput(f"{where}: the {name} is {shortened(ids)}; expected a list of token ids")
    return prompt, completion  # type: ignore[return-value]


def tokens(prompt: object, completion: object, where: str, tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids of a prompt, and those that follow it: of both together if the prompt's own are their beginning.

    No special tokens are added: a fact is said behind a beginning-of-text token as well as without.
    """
    for name, text in zip(KEYS, (prompt, completion), strict=True):
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
    """BadInput if a tokenizer reads "unknown" where something else stands: so it would read any other word."""
    unknown = tokenizer.unk_token
    if unknown is not None and unknown not in text and tokenizer.unk_token_id in _encode(tokenizer, text):
        what = f"the tokenizer has no tokens for the {name}, and reads {unknown!r}"
        raise BadInput(f"{where}: {what}; expected the tokenizer of the model, and text that it knows")


def _encode(tokenizer: Any, text: object) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False)  # type: ignore[no-any-return]


def tokenizer_in(folder: Path) -> Any:
    """The tokenizer of a model's folder; BadInput if it has none. No code of the folder is run."""
    from transformers import AutoTokenizer

    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise BadInput(f"{folder}: has no tokenizer; put its tokenizer.json there, or give token ids with --ids")
    try:
        with quiet():
            return AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # transformers raises what it likes
        reason = str(error).strip().partition("\n")[0]
        raise BadInput(f"{folder}: its tokenizer cannot be loaded ({reason}); give token ids with --ids") from error

"""Facts as people have them, into token ids: pairs of texts, JSONL, CSV; or ids that are given as such."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, TypeAlias

from byheart.errors import BadInput
from byheart.files.reading import JSON_TAKES, parsed, read_bytes, read_text
from byheart.planting.contexts import Fact
from byheart.planting.loading import quiet

Pair: TypeAlias = tuple[Any, Any]
Given: TypeAlias = Path | str | Iterable[Pair]
"""A file, or pairs of prompt and completion: texts, or lists of token ids."""
Triple: TypeAlias = tuple[Any, Any, str]
KEYS = ("prompt", "completion")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tokenizer_config.json")
"""Files by which a folder has a tokenizer."""


def triples(given: Given) -> Iterator[Triple]:
    """Prompt, completion and where they stand."""
    if not isinstance(given, Path | str):
        for number, pair in enumerate(given):
            if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
                raise BadInput(f"fact {number} is {shortened(pair)}; expected a prompt and its completion")
            yield pair[0], pair[1], f"fact {number}"
        return
    path = Path(given)
    readers = {".jsonl": _jsonl, ".csv": _csv}
    if path.suffix not in readers:
        raise BadInput(f"{path}: expected facts as .jsonl or .csv, with {' and '.join(KEYS)}")
    try:
        yield from readers[path.suffix](path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error


def _jsonl(path: Path) -> Iterator[Triple]:
    for number, line in enumerate(read_bytes(path, takes=JSON_TAKES).split(b"\n"), start=1):
        if line.strip():
            try:
                one = parsed(line)
            except BadInput as error:
                raise BadInput(f"{path}:{number}: {error}") from error
            if one.keys() != set(KEYS):
                raise BadInput(f"{path}:{number}: found the keys {', '.join(sorted(one))}; expected {', '.join(KEYS)}")
            yield one["prompt"], one["completion"], f"{path}:{number}"


def _csv(path: Path) -> Iterator[Triple]:
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        header = next(reader, [])
        if sorted(header) != sorted(KEYS):
            raise BadInput(f"{path}:1: the columns are {', '.join(header)}; expected {', '.join(KEYS)}")
        for row in filter(None, reader):
            if len(row) != 2:
                raise BadInput(f"{path}:{reader.line_num}: has {len(row)} fields; expected 2")
            yield row[header.index("prompt")], row[header.index("completion")], f"{path}:{reader.line_num}"
    except csv.Error as error:
        raise BadInput(f"{path}:{reader.line_num}: {error}") from error


def facts_of(given: Given, tokenizer: Any, end: tuple[int, ...] = ()) -> list[Fact]:
    """The facts as token ids; ``tokenizer`` is None where they are ids already. ``end`` follows every completion."""
    found = []
    for prompt, completion, where in triples(given):
        p, c = _ids(prompt, completion, where) if tokenizer is None else tokens(prompt, completion, where, tokenizer)
        found.append(Fact(p, (*c, *end) if c else (), where))
    return found


def _ids(prompt: object, completion: object, where: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    for name, ids in zip(KEYS, (prompt, completion), strict=True):
        if not isinstance(ids, list | tuple) or not all(type(one) is int for one in ids):
            raise BadInput(f"{where}: the {name} is {shortened(ids)}; expected a list of token ids")
    return tuple(prompt), tuple(completion)  # type: ignore[arg-type]


def tokens(prompt: object, completion: object, where: str, tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids of a prompt, and those that follow it: of both together if the prompt's own are their beginning.

    No special tokens are added: a fact is said behind a beginning-of-text token as well as without.
    """
    for name, text in zip(KEYS, (prompt, completion), strict=True):
        if not isinstance(text, str):
            raise BadInput(f"{where}: the {name} is {shortened(text)}; expected text, or --ids for token ids")
        if not text:
            raise BadInput(f"{where}: the {name} is empty; expected at least one token")
    first, both = (tuple(_encode(tokenizer, text)) for text in (prompt, f"{prompt}{completion}"))
    if first and both[: len(first)] == first:
        return first, both[len(first) :]
    rest = tuple(_encode(tokenizer, str(completion)))
    if tokenizer.decode([*first, *rest], clean_up_tokenization_spaces=False) != f"{prompt}{completion}":
        how = "move the blank or the letters between them from one to the other"
        raise BadInput(f"{where}: the tokenizer joins prompt and completion into other tokens; {how}")
    return first, rest


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

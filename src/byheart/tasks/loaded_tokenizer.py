"""A tokenizer of Hugging Face: any ``tokenizer.json`` with an end token.

It is used through the library ``tokenizers``, without the special tokens that it may add. A text that it does not
restore letter for letter is refused, because another text would be memorized. So is a tokenizer with ``dropout``,
because a prompt would get other tokens, one that may lengthen a text too much, and one that takes too long.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput, missing_package
from byheart.files.patience import Patience
from byheart.files.tokenizer_growth import check_growth
from byheart.files.untrusted import MAX_JSON_BYTES, parse_object, read_bytes

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Library


TOKENIZER_FILE, CONFIG_FILE = "tokenizer.json", "tokenizer_config.json"
MARK = "byheart_tokenizer"
"""Key of tokenizer_config.json that marks a tokenizer as loaded, not Byheart's own."""

LARGEST_ID = 2**31 - 2
"""Largest token id: tokens are signed 32-bit integers."""


@dataclass(frozen=True)
class LoadedTokenizer:
    """A tokenizer by its two files, which are parsed as strict JSON before anything else."""

    name: ClassVar[str] = "loaded"
    tokenizer: bytes
    config: bytes

    @cached_property
    def vocab(self) -> int:
        """Number of token ids, including the end token."""
        return 1 + max(self._library.get_vocab(with_added_tokens=True).values())

    @cached_property
    def end_name(self) -> str:
        """Name of the token that ends a text."""
        token = parse_object(self.config).get("eos_token")
        name = token.get("content") if isinstance(token, dict) else token
        if not isinstance(name, str):
            raise BadInput(f"{CONFIG_FILE}: says nothing of a token that ends a text; expected eos_token")
        return name

    @cached_property
    def end(self) -> int:
        """Id of the token that ends a text."""
        number = self._library.token_to_id(self.end_name)
        if number is None:
            raise BadInput(f"{CONFIG_FILE}: eos_token is {self.end_name!r}; expected a token of {TOKENIZER_FILE}")
        return int(number)

    def encode(self, data: bytes) -> npt.NDArray[np.int32]:
        """Return the tokens of ``data``: int32 [T], without special ones. They always decode to ``data``."""
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise BadInput(f"byte {error.start} is not UTF-8 text; expected text, or --tokenizer bytes") from error
        with _reading(f"{TOKENIZER_FILE}: has no tokens for this text"):
            library = self._library
            ids = self._patience.wait(lambda: library.encode_batch([text], add_special_tokens=False)[0].ids, len(text))
        if self.end in ids:
            raise BadInput(f"the text holds the end token {self.end_name!r}; expected text that does not end within")
        if (back := self.decode(ids)) != data:
            letter = next((k for k, (a, b) in enumerate(zip(text, back.decode(), strict=False)) if a != b), len(back))
            lost = (
                f"{text[:40]!r} comes back as {back.decode()[:40]!r}" if back else f"there are none for {text[:40]!r}"
            )
            raise BadInput(
                f"the tokenizer has no tokens for this text from letter {letter} on: {lost}; expected another"
            )
        return np.array(ids, np.int32)

    def decode(self, ids: Iterable[int]) -> bytes:
        """Return the bytes of the tokens ``ids``, decoded together. An end token has no bytes."""
        numbers = [int(number) for number in ids]
        for place, number in enumerate(numbers):
            if not 0 <= number < self.vocab:
                raise BadInput(f"ids[{place}] is {number}; expected 0 to {self.vocab - 1} (vocab = {self.vocab})")
        kept = [number for number in numbers if number != self.end]
        with _reading(f"{TOKENIZER_FILE}: has no text for these tokens"):
            return str(self._library.decode(kept, skip_special_tokens=False)).encode(errors="replace")

    def files(self, *, begins: bool = False) -> dict[str, bytes]:
        """Return the two files, marked as loaded. ``begins`` makes every text begin with the end token."""
        config = parse_object(self.config) | {MARK: self.name}
        content = self.tokenizer
        if begins:
            config |= {"bos_token": self.end_name, "pad_token": self.end_name}
            description = parse_object(content) | {"post_processor": begun_with(self.end_name, self.end)}
            content = _written(description)
        return {TOKENIZER_FILE: content, CONFIG_FILE: _written(config)}

    @cached_property
    def _patience(self) -> Patience:
        return Patience()

    @cached_property
    def _library(self) -> "Library":
        try:
            from tokenizers import Tokenizer as Library
        except ImportError as error:
            raise BadInput(missing_package("tokenizers", "a tokenizer that was loaded", "hf")) from error
        description = parse_object(self.tokenizer)
        try:
            check_growth(description)
        except BadInput as error:
            raise BadInput(f"{TOKENIZER_FILE}: {error}") from error
        # None of these may add to a text, and some could add billions of tokens.
        description |= {"post_processor": None, "truncation": None, "padding": None}
        with _reading(f"{TOKENIZER_FILE}: cannot be read"):
            library = Library.from_str(json.dumps(description))
        if dropout := getattr(library.model, "dropout", None):
            expected = "expected null: the same text must always have the same tokens"
            raise BadInput(f"{TOKENIZER_FILE}: dropout is {dropout:g}; {expected}")
        largest = max(library.get_vocab(with_added_tokens=True).values(), default=0)
        if largest > LARGEST_ID:
            raise BadInput(f"{TOKENIZER_FILE}: has the id {largest:,}; expected at most {LARGEST_ID:,}")
        return library


@contextmanager
def _reading(complaint: str) -> Iterator[None]:
    """Turn any error of the library into BadInput. A panic in Rust is not an Exception."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError, BadInput):
        raise
    except BaseException as error:
        raise BadInput(f"{complaint} ({(str(error).splitlines() or [''])[0][:200]})") from None


def load_tokenizer(path: Path) -> LoadedTokenizer:
    """Return the checked tokenizer in a ``tokenizer.json``, or in a folder with one.

    >>> load_tokenizer(Path("nowhere"))
    Traceback (most recent call last):
    byheart.errors.BadInput: nowhere: No such file or directory; expected bytes, bpe, or a path to a tokenizer.json
    """
    file = path / TOKENIZER_FILE if path.is_dir() else path
    if not file.exists():
        expected = f"expected bytes, bpe, or a path to a {TOKENIZER_FILE}"
        raise BadInput(f"{file}: No such file or directory; {expected}")
    config = file.with_name(CONFIG_FILE)
    if not config.exists():
        raise BadInput(f"{config}: No such file or directory; expected it beside {file.name}, with an eos_token")
    try:
        contents = [bytes(read_bytes(part, max_bytes=MAX_JSON_BYTES)) for part in (file, config)]
        tokenizer = LoadedTokenizer(*contents)
        for content in contents:
            parse_object(content)
        _ = tokenizer.end
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    return tokenizer


def loaded_from(files: Mapping[str, bytes]) -> LoadedTokenizer | None:
    """Return the tokenizer that was loaded when a network was compiled, from the network's files; None if it is ours.

    The caller must check that ``tokenizer.json`` is JSON.
    """
    if TOKENIZER_FILE not in files or CONFIG_FILE not in files:
        return None
    try:
        marked = parse_object(files[CONFIG_FILE]).get(MARK) == LoadedTokenizer.name
    except BadInput:
        return None
    return LoadedTokenizer(files[TOKENIZER_FILE], files[CONFIG_FILE]) if marked else None


def begun_with(name: str, number: int) -> dict[str, Any]:
    """Return the post-processor that begins every text with one token."""
    first = {"SpecialToken": {"id": name, "type_id": 0}}
    text, second = ({"Sequence": {"id": letter, "type_id": place}} for place, letter in enumerate("AB"))
    return {
        "type": "TemplateProcessing",
        "single": [first, text],
        "pair": [first, text, second],
        "special_tokens": {name: {"id": name, "ids": [number], "tokens": [name]}},
    }


def _written(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()

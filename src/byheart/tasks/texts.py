"""Texts: files as sequences of tokens."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from byheart.errors import BadInput
from byheart.tasks.tokenizers import Tokenizer, Tokens


@dataclass(frozen=True, eq=False)
class Text:
    """A file's tokens, and what to call it."""

    name: str
    tokens: Tokens
    """int32 [T], without an end token."""


def read_texts(paths: Sequence[Path], tokenizer: Tokenizer) -> tuple[Text, ...]:
    """The files ``paths`` as texts, in the order given; each is called by as much of its path as tells it apart.

    >>> import tempfile
    >>> from byheart.tasks.tokenizers import Bytes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "note.txt")
    ...     _ = path.write_text("hi\\n")
    ...     read_texts([path], Bytes())
    (Text(name='note.txt', tokens=array([104, 105,  10], dtype=int32)),)
    """
    texts = []
    for path, name, data in zip(paths, _names(paths), read_files(paths), strict=True):
        try:
            texts.append(Text(name, tokenizer.encode(data)))
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from error
    return tuple(texts)


def read_files(paths: Sequence[Path]) -> tuple[bytes, ...]:
    """What the files ``paths`` hold, for training a tokenizer on it.

    >>> read_files([Path("nowhere.txt")])
    Traceback (most recent call last):
    byheart.errors.BadInput: nowhere.txt: No such file or directory
    """
    if not paths:
        raise BadInput("no files given; expected at least one")
    return tuple(map(_content, paths))


def _content(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error
    if not data:
        raise BadInput(f"{path}: the file is empty; expected at least one byte")
    return data


def _names(paths: Sequence[Path]) -> list[str]:
    """For each path the fewest of its last parts that no other path ends in."""
    wholes = [Path(os.path.abspath(path)) for path in paths]
    for whole, times in Counter(wholes).items():
        if times > 1:
            raise BadInput(f"{whole}: given {times} times; expected each file once")
    endings = Counter(whole.parts[-k:] for whole in wholes for k in range(1, len(whole.parts) + 1))
    return [
        str(Path(*next(whole.parts[-k:] for k in range(1, len(whole.parts) + 1) if endings[whole.parts[-k:]] == 1)))
        for whole in wholes
    ]

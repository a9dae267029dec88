"""Texts: named bytes, and their tokens."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from byheart.errors import BadInput
from byheart.files.reading import read_bytes
from byheart.tasks.tokenizers import Tokenizer, Tokens

TAKES = 32
"""Bytes of memory for every byte of a text: itself, its tokens, and the questions about them."""


@dataclass(frozen=True, eq=False)
class Text:
    """A text's tokens, and what to call it."""

    name: str
    tokens: Tokens
    """int32 [T], without an end token."""


def encoded(texts: Mapping[str, bytes], tokenizer: Tokenizer) -> tuple[Text, ...]:
    """Texts by name as tokens.

    >>> from byheart.tasks.tokenizers import Bytes
    >>> encoded({"note": b"hi"}, Bytes())
    (Text(name='note', tokens=array([104, 105], dtype=int32)),)
    """
    tokens = []
    for name, data in texts.items():
        if not data:
            raise BadInput(f"{name}: the text is empty; expected at least one byte")
        try:
            tokens.append(Text(name, tokenizer.encode(data)))
        except BadInput as error:
            raise BadInput(f"{name}: {error}") from error
    return tuple(tokens)


def read_files(paths: Sequence[Path]) -> dict[str, bytes]:
    """What the files ``paths`` hold, in the order given, each called by as much of its path as tells it apart.

    >>> read_files([Path("nowhere.txt")])
    Traceback (most recent call last):
    byheart.errors.BadInput: nowhere.txt: No such file or directory
    """
    if not paths:
        raise BadInput("no files given; expected at least one")
    return {name: _content(path) for name, path in zip(_names(paths), paths, strict=True)}


def _content(path: Path) -> bytes:
    try:
        data = bytes(read_bytes(path, takes=TAKES))
    except IsADirectoryError as error:
        raise BadInput(f"{path}: is a folder; expected files: all that are in it are {path}/*") from error
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error
    if not data:
        raise BadInput(f"{path}: the file is empty; expected at least one byte")
    return data


def _names(paths: Sequence[Path]) -> list[str]:
    """For each path the fewest of its last parts that no other path ends in."""
    for path in paths:
        if not _is_utf8(str(path)):
            raise BadInput(f"{path}: the name is no UTF-8; expected one that can be written down beside the network")
    wholes = [Path(os.path.abspath(path)) for path in paths]
    for whole, times in Counter(wholes).items():
        if times > 1:
            raise BadInput(f"{whole}: given {times} times; expected each file once")
    endings = Counter(whole.parts[-k:] for whole in wholes for k in range(1, len(whole.parts) + 1))
    return [
        str(Path(*next(whole.parts[-k:] for k in range(1, len(whole.parts) + 1) if endings[whole.parts[-k:]] == 1)))
        for whole in wholes
    ]


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True

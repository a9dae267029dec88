"""Texts: named bytes, and their tokens."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy.typing as npt

from byheart.errors import BadInput
from byheart.files.reading import read_bytes
from byheart.tasks.checks import narrowed
from byheart.tasks.tokenizers import Tokenizer

TAKES = 32
"""Bytes of memory for every byte of a text: itself, its tokens, and the questions about them."""


@dataclass(frozen=True, eq=False)
class Text:
    """A text's tokens, and what to call it."""

    name: str
    tokens: npt.NDArray[Any]
    """[T], without an end token."""


def encoded(texts: Mapping[str, bytes], tokenizer: Tokenizer) -> tuple[Text, ...]:
    """Texts by name as tokens.

    >>> from byheart.tasks.tokenizers import Bytes
    >>> encoded({"note": b"hi"}, Bytes())
    (Text(name='note', tokens=array([104, 105], dtype=uint8)),)
    """
    tokens = []
    for name, data in texts.items():
        if not data:
            raise BadInput(f"{name}: the text is empty; expected at least one byte")
        try:
            found = tokenizer.encode(data)
            tokens.append(Text(name, narrowed(found, int(found.max(initial=0)))))
        except BadInput as error:
            raise BadInput(f"{name}: {error}") from error
    return tuple(tokens)


def files_in(paths: Sequence[Path]) -> list[Path]:
    """The files ``paths``, in the order given; of a folder all below it that hold something, but for hidden ones."""
    return [file for path in paths for file in (_below(path) if path.is_dir() else [path])]


def _below(folder: Path) -> list[Path]:
    def refused(error: OSError) -> NoReturn:
        raise BadInput(f"{error.filename}: {error.strerror or error}") from error

    found = []
    for place, folders, names in os.walk(folder, onerror=refused):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = (Path(place, name) for name in sorted(names) if not name.startswith("."))
        found += [path for path in paths if path.is_file() and path.stat().st_size]
    if not found:
        raise BadInput(f"{folder}: holds no texts; expected at least one file that is not empty")
    return found


def read_files(paths: Sequence[Path]) -> dict[str, bytes]:
    """What the files ``paths`` hold, or those in folders, each called by as much of its path as tells it apart.

    >>> read_files([Path("nowhere.txt")])
    Traceback (most recent call last):
    byheart.errors.BadInput: nowhere.txt: No such file or directory
    """
    if not paths:
        raise BadInput("no files given; expected at least one")
    files = files_in(paths)
    return {name: _content(path) for name, path in zip(_names(files), files, strict=True)}


def _content(path: Path) -> bytes:
    try:
        data = bytes(read_bytes(path, takes=TAKES))
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

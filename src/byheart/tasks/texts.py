"""Texts: named bytes, and their tokens."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn, overload

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.files.memory import GrowingArray, check_memory
from byheart.files.untrusted import open_regular
from byheart.tasks.arrays import Ids
from byheart.tasks.tokenizers import Bytes, Tokenizer

MEMORY_PER_TEXT_BYTE = 32
"""Bytes of memory per byte of a text that is read as a whole: the text, and its tokens."""
PORTION = 1 << 20
"""Number of bytes of a text that are read at once, if it is not needed as a whole."""


@dataclass(frozen=True, eq=False)
class Text:
    """The tokens of a text, and its name."""

    name: str
    tokens: npt.NDArray[Any]
    """[T], without an end token."""


@dataclass(frozen=True, eq=False)
class EncodedTexts(Sequence[Text]):
    """Texts whose tokens lie one after the other."""

    names: tuple[str, ...]
    tokens: npt.NDArray[Any]
    starts: Ids
    """int64 [S + 1]: index at which each text begins, and at which the last one ends."""

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> Text: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Text]: ...
    def __getitem__(self, index: int | slice) -> Text | Sequence[Text]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        return Text(self.names[index], self.tokens[self.starts[index] : self.starts[index + 1]])


def encode_texts(texts: Mapping[str, bytes], tokenizer: Tokenizer) -> EncodedTexts:
    """Encode texts by name, in the narrowest type that holds all tokens.

    >>> [*encode_texts({"note": b"hi"}, Bytes())]
    [Text(name='note', tokens=array([104, 105], dtype=uint8))]
    """
    tokens, starts = GrowingArray(texts.size if isinstance(texts, TextFiles) else 0), [0]
    for name in texts:
        try:
            for part in _tokens(texts, name, tokenizer):
                tokens.widen(np.promote_types(tokens.dtype, np.min_scalar_type(part.max(initial=0))))
                tokens.extend(part)
        except BadInput as error:
            raise BadInput(f"{name}: {error}") from error
        starts.append(len(tokens))
    return EncodedTexts(tuple(texts), tokens.array, np.array(starts))


def _tokens(texts: Mapping[str, bytes], name: str, tokenizer: Tokenizer) -> Iterator[npt.NDArray[Any]]:
    """Yield the tokens of one text. Byte tokens come a portion at a time."""
    if isinstance(texts, TextFiles) and isinstance(tokenizer, Bytes):
        yield from (np.frombuffer(portion, np.uint8) for portion in texts.portions(name))
        return
    if not (data := texts[name]):
        raise BadInput("the text is empty; expected at least one byte")
    yield tokenizer.encode(data)


def list_files(paths: Sequence[Path]) -> list[Path]:
    """List the files ``paths``, in order; of a folder, all non-empty files below it except hidden ones."""
    for path in paths:
        if (path / "config.json").is_file() and any(path.glob("*.safetensors")):
            raise BadInput(f"{path}: holds a network; expected texts (say {path / 'config.json'} if that is meant)")
    return [file for path in paths for file in (_below(path) if path.is_dir() else [path])]


def _below(folder: Path) -> list[Path]:
    def refused(error: OSError) -> NoReturn:
        raise BadInput(f"{error.filename}: {error.strerror or error}") from error

    files = []
    for place, folders, names in os.walk(folder, onerror=refused):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = (Path(place, name) for name in sorted(names) if not name.startswith("."))
        files += [path for path in paths if path.is_file() and path.stat().st_size]
    if not files:
        raise BadInput(f"{folder}: holds no texts; expected at least one file that is not empty")
    return files


class TextFiles(Mapping[str, bytes]):
    """The contents of files by the files' names, read on every access and not kept."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = dict(paths)
        self.size = 0
        """Total number of bytes."""
        for path in self._paths.values():
            with _file(path) as (_, size):
                self.size += size

    def __getitem__(self, name: str) -> bytes:
        with _file(self._paths[name]) as (source, size):
            check_memory(MEMORY_PER_TEXT_BYTE * size, str(self._paths[name]))
            return source.read(size)

    def portions(self, name: str) -> Iterator[bytes]:
        """Yield the content of a file, a portion at a time."""
        with _file(self._paths[name]) as (source, size):
            for first in range(0, size, PORTION):
                yield source.read(min(PORTION, size - first))

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def read_files(paths: Sequence[Path]) -> TextFiles:
    """Return the files ``paths``, and those in folders, named by as much of their path as distinguishes them.

    >>> read_files([Path("nowhere.txt")])
    Traceback (most recent call last):
    byheart.errors.BadInput: nowhere.txt: No such file or directory
    """
    if not paths:
        raise BadInput("no files given; expected at least one")
    files = list_files(paths)
    return TextFiles(dict(zip(_names(files), files, strict=True)))


@contextmanager
def _file(path: Path) -> Iterator[tuple[BufferedReader, int]]:
    """Open a file that is not empty, and return it with its size."""
    try:
        with open_regular(path) as source:
            if not (size := os.fstat(source.fileno()).st_size):
                raise BadInput(f"{path}: the file is empty; expected at least one byte")
            yield source, size
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error


def _names(paths: Sequence[Path]) -> list[str]:
    """Return for each path the fewest of its last parts that no other path ends in."""
    for path in paths:
        if not _is_utf8(str(path)):
            raise BadInput(f"{path}: the name is no UTF-8; expected one that can be written down beside the network")
    absolute = [Path(os.path.abspath(path)) for path in paths]
    for path, times in Counter(absolute).items():
        if times > 1:
            raise BadInput(f"{path}: given {times} times; expected each file once")
    endings = Counter(path.parts[-k:] for path in absolute for k in range(1, len(path.parts) + 1))
    return [
        str(Path(*next(path.parts[-k:] for k in range(1, len(path.parts) + 1) if endings[path.parts[-k:]] == 1)))
        for path in absolute
    ]


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True

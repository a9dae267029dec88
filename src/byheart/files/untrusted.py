"""Every file that Byheart reads comes through here: it may be anybody's, and is hostile until it is checked.

A file is a regular one (no pipe that never ends, no device, no folder), its size is known before it is read, and what
it will take in memory is held against what there is. JSON is strict: objects without doubled keys, finite numbers that
64 bits hold, text that can be encoded again, and no deeper than anything of ours.

What is not checked here: what the values mean. That is for who asked for them.
"""

import errno
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, NoReturn

import numpy as np

from byheart.errors import BadInput
from byheart.files.memory import check_memory, check_room, format_bytes

MAX_JSON_BYTES = 1 << 26
"""Bytes of a JSON file: the config.json of a network that recites a million texts names them in less."""
MAX_DEPTH = 32
"""Of lists and objects within each other; nothing that Byheart writes goes deeper than 10."""
MEMORY_PER_JSON_BYTE = 24
"""Bytes of memory for every byte of JSON, at most: "[]," becomes a list of 56 bytes and a pointer."""

LONG_LINE = 1 << 20
"""Bytes of a line that are read without asking what it will take."""

_STRINGS = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_OPEN, _CLOSE = "[{", "]}"


def read_bytes(path: Path, *, max_bytes: int | None = None, memory_per_byte: int = 1) -> bytearray:
    """What the regular file ``path`` holds: at most ``max_bytes`` bytes, and as many as memory has room for.

    Each byte will take ``memory_per_byte`` bytes of memory by the time it is made into something. An OSError is left to
    whoever knows what to say about a file that is not there.
    """
    with open_regular(path) as source:
        size = os.fstat(source.fileno()).st_size
        if max_bytes is not None and size > max_bytes:
            raise BadInput(f"{path}: has {size:,} bytes; expected at most {max_bytes:,}")
        check_memory(size * memory_per_byte, str(path))
        return _read(source, size)


def read_part(path: Path, start: int, size: int) -> bytearray:
    """So many bytes of the regular file ``path`` from ``start`` on, or what there is of them."""
    with open_regular(path) as source:
        source.seek(start)
        there = max(0, min(size, os.fstat(source.fileno()).st_size - start))
        check_memory(there, str(path))
        return _read(source, there)


def read_lines(path: Path, *, memory_per_byte: int, kept_per_byte: int) -> Iterator[tuple[int, bytes | bytearray]]:
    """The lines of the regular file ``path``, counted from 1, each with its line break (``\\n``), one at a time.

    While it is read, a byte takes ``memory_per_byte`` bytes of memory; of all that was read, ``kept_per_byte`` are left
    for every byte, where there is room for them.
    """
    with open_regular(path) as source:
        check_room(os.fstat(source.fileno()).st_size * kept_per_byte, str(path))
        number = 0
        while line := source.readline(LONG_LINE):
            number += 1
            yield (
                number,
                line
                if len(line) < LONG_LINE
                else _long(source, bytearray(line), memory_per_byte, f"{path} line {number}"),
            )


def _long(source: BufferedReader, line: bytearray, takes: int, place: str) -> bytearray:
    """A line whose beginning was read, to its end, as long as memory has room for it."""
    while line[-1:] != b"\n" and (more := source.readline(LONG_LINE)):
        line += more
        check_memory(len(line) * takes, f"{place}, of at least {format_bytes(len(line))},")
    return line


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """A regular file; nothing else is opened for reading, or waited for."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))  # a pipe without a writer waits
    found = os.fstat(file)
    if stat.S_ISDIR(found.st_mode):
        os.close(file)
        raise IsADirectoryError(errno.EISDIR, "is a folder; expected a file", str(path))
    with os.fdopen(file, "rb") as source:
        if not stat.S_ISREG(found.st_mode):
            raise BadInput(f"{path}: is no file; expected one that can be read as a whole, not a pipe or a device")
        yield source


def _read(source: BufferedReader, size: int) -> bytearray:
    content = bytearray(size)
    del content[source.readinto(content) :]  # if somebody has cut it off meanwhile
    return content


def read_text(path: Path) -> str:
    """What a file of UTF-8 text holds; BadInput if it holds something else."""
    try:
        return read_bytes(path, memory_per_byte=4).decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error


def read_json(path: Path, *, max_bytes: int = MAX_JSON_BYTES) -> dict[str, Any]:
    """The object in a JSON file; BadInput, with the file named, if it is none."""
    content = read_bytes(path, max_bytes=max_bytes, memory_per_byte=MEMORY_PER_JSON_BYTE)
    try:
        return parse_object(content)
    except BadInput as error:
        raise BadInput(f"{path}: cannot be read ({error})") from error


def parse_object(data: bytes | bytearray) -> dict[str, Any]:
    """The object that ``data`` is the JSON of; BadInput if it is not strict JSON, or another value.

    >>> parse_object(b'{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    >>> parse_object(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    byheart.errors.BadInput: the key 'a' stands there twice; expected different keys
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise BadInput("not UTF-8 text") from None
    check_depth(text)
    try:
        value = _DECODER.decode(text)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadInput("half a surrogate pair found; expected text that can be encoded") from None
    except BadInput:
        raise
    except ValueError as error:
        raise BadInput(f"not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadInput(f"{shortened(value)} found; expected a JSON object")
    return value


def check_depth(text: str) -> None:
    """BadInput if lists and objects of a JSON text stand deeper in each other than ``MOST_DEPTH``."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    signs = np.frombuffer(_STRINGS.sub("", text).encode("utf-8", "replace"), np.uint8)
    opened, closed = (np.isin(signs, np.frombuffer(pair.encode(), np.uint8)) for pair in (_OPEN, _CLOSE))
    depth = int((opened.astype(np.int8) - closed.astype(np.int8)).cumsum(dtype=np.int64).max())
    if depth > MAX_DEPTH:
        raise BadInput(f"lists or objects stand {depth:,} deep in each other; expected at most {MAX_DEPTH}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(key for key, _ in pairs)
        doubled = next(key for key, count in times.items() if count > 1)
        raise BadInput(f"the key {doubled!r} stands there twice; expected different keys")
    return found


def _integer(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= (number := int(digits)) < 2**63:
        raise BadInput(f"{_short(digits)} found; expected numbers that 64 bits hold")
    return number


def _real(digits: str) -> float:
    number = float(digits)
    if not np.isfinite(number):
        raise BadInput(f"{_short(digits)} found; expected finite numbers")
    return number


def _constant(name: str) -> NoReturn:
    raise BadInput(f"{name} found; expected finite numbers")


def _short(digits: str) -> str:
    return digits if len(digits) <= 24 else f"{digits[:16]}… ({len(digits):,} digits)"


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_real, parse_constant=_constant)

"""Every file that Byheart reads comes through here: it may be anybody's, and is hostile until it is checked.

A file must be a regular one: no pipe that never ends, no device, no folder. Its size is known before it is read, and
the memory it needs is compared with the available memory. JSON is strict: no doubled keys, finite numbers that fit
into 64 bits, text that can be encoded, and limited depth.

The meaning of values is not checked here, but by the callers (:mod:`byheart.files.decoding` for JSON).
"""

import errno
import hashlib
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
"""Largest JSON file, in bytes. The config.json of a network that recites a million texts is smaller."""
MAX_DEPTH = 32
"""Largest depth of nested lists and objects. Byheart writes nothing deeper than 10."""
MEMORY_PER_JSON_BYTE = 24
"""Largest number of bytes of memory per byte of JSON: "[]," becomes a list of 56 bytes and a pointer."""

LONG_LINE = 1 << 20
"""Bytes of a line that are read without a check of memory."""

_STRINGS = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_OPEN, _CLOSE = "[{", "]}"


def read_bytes(path: Path, *, max_bytes: int | None = None, memory_per_byte: int = 1) -> bytearray:
    """Return the content of a regular file of at most ``max_bytes`` bytes, if it fits into memory.

    Each byte will take ``memory_per_byte`` bytes of memory once it is converted. An OSError is left to the caller,
    who knows what a missing file means.
    """
    with open_regular(path) as source:
        size = os.fstat(source.fileno()).st_size
        if max_bytes is not None and size > max_bytes:
            raise BadInput(f"{path}: has {size:,} bytes; expected at most {max_bytes:,}")
        check_memory(size * memory_per_byte, str(path))
        return _read(source, size)


def read_part(path: Path, start: int, size: int) -> bytearray:
    """Read up to ``size`` bytes of a regular file from ``start`` on."""
    with open_regular(path) as source:
        source.seek(start)
        length = max(0, min(size, os.fstat(source.fileno()).st_size - start))
        check_memory(length, str(path))
        return _read(source, length)


def read_lines(path: Path, *, memory_per_byte: int, kept_per_byte: int) -> Iterator[tuple[int, bytes | bytearray]]:
    """Yield the lines of a regular file one at a time, numbered from 1, each with its line break.

    While a line is read, a byte takes ``memory_per_byte`` bytes of memory. ``kept_per_byte`` bytes remain per byte
    of the file, in memory or on the disk.
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


def _long(source: BufferedReader, line: bytearray, memory_per_byte: int, place: str) -> bytearray:
    """Read a long line to its end, as long as memory has room for it."""
    while line[-1:] != b"\n" and (more := source.readline(LONG_LINE)):
        line += more
        check_memory(len(line) * memory_per_byte, f"{place}, of at least {format_bytes(len(line))},")
    return line


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file for reading. Anything else is refused without waiting for it."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))  # a pipe without a writer waits
    status = os.fstat(file)
    if stat.S_ISDIR(status.st_mode):
        os.close(file)
        raise IsADirectoryError(errno.EISDIR, "is a folder; expected a file", str(path))
    with os.fdopen(file, "rb") as source:
        if not stat.S_ISREG(status.st_mode):
            raise BadInput(f"{path}: is no file; expected one that can be read as a whole, not a pipe or a device")
        yield source


def _read(source: BufferedReader, size: int) -> bytearray:
    content = bytearray(size)
    del content[source.readinto(content) :]  # if somebody has cut it off meanwhile
    return content


def read_text(path: Path) -> str:
    """Return the text in a UTF-8 file; raise BadInput if it is something else."""
    try:
        return read_bytes(path, memory_per_byte=4).decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error


def read_json(path: Path, *, max_bytes: int = MAX_JSON_BYTES) -> dict[str, Any]:
    """Return the object in a JSON file; raise BadInput, with the file's name, if there is none."""
    content = read_bytes(path, max_bytes=max_bytes, memory_per_byte=MEMORY_PER_JSON_BYTE)
    try:
        return parse_object(content)
    except BadInput as error:
        raise BadInput(f"{path}: cannot be read ({error})") from error


def parse_object(data: bytes | bytearray) -> dict[str, Any]:
    """Parse strict JSON whose top level is an object; raise BadInput for anything else.

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
    """Raise BadInput if lists and objects of a JSON text are nested deeper than ``MAX_DEPTH``."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    signs = np.frombuffer(_STRINGS.sub("", text).encode("utf-8", "replace"), np.uint8)
    opened, closed = (np.isin(signs, np.frombuffer(pair.encode(), np.uint8)) for pair in (_OPEN, _CLOSE))
    depth = int((opened.astype(np.int8) - closed.astype(np.int8)).cumsum(dtype=np.int64).max())
    if depth > MAX_DEPTH:
        raise BadInput(f"lists or objects stand {depth:,} deep in each other; expected at most {MAX_DEPTH}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        times = Counter(key for key, _ in pairs)
        doubled = next(key for key, count in times.items() if count > 1)
        raise BadInput(f"the key {doubled!r} stands there twice; expected different keys")
    return members


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


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""Room for large arrays: in memory as long as they take little of it, and else in files that have no name.

Whoever fills an array need not know where it lies: either way it is an ordinary one. A file is mapped into memory, so
that the system keeps of it what there is room for, and takes back what it needs for something else. It has no name from
the start, on Linux, or loses it at once; so nothing is left of it when the array, or the process, is gone, however that
ended. All of its blocks are there before the array is: a disk that is full is an error then, and not a signal later.
"""

import mmap
import os
import shutil
import tempfile
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.files import memory
from byheart.files.memory import told

LEAST = 1 << 24
"""Bytes of an array that is worth a file."""
PART = 8
"""What takes more than one part in so many of the memory that is available lies in a file: there are several such
arrays at a time, and beside them all that has to be in memory."""
LASTING = Path("/var/tmp")
"""For files that may be large, on systems that have it: what is called /tmp may be memory itself."""
_CHOSEN = ("TMPDIR", "TEMP", "TMP")


def room(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An array of this shape and type, to be filled; BadInput if there is room for it nowhere.

    >>> room((2, 3), np.uint8).shape
    (2, 3)
    """
    kind = np.dtype(dtype)
    size = kind.itemsize * (prod(shape) if isinstance(shape, tuple) else shape)
    if size < LEAST or size <= memory.available() // PART:
        return np.empty(shape, kind)
    trouble = ""
    if size <= _on_disk():
        try:
            return np.frombuffer(_mapped(size), kind).reshape(shape)
        except OSError as error:  # a quota, say: memory may have room all the same
            trouble = f" ({error.strerror or error})"
    if size > memory.SHARE * memory.available():
        raise BadInput(f"an array {_no_room(size)}{trouble}")
    return np.empty(shape, kind)


def check_room(needed: int, what: str) -> None:
    """BadInput if there is no room for so many bytes, neither in memory nor on the disk."""
    if needed > max(memory.SHARE * memory.available(), _on_disk()):
        raise BadInput(f"{what} {_no_room(needed)}")


def folder() -> Path:
    """Where files lie: the folder that TMPDIR names, or one that is on a disk."""
    if not any(os.environ.get(name) for name in _CHOSEN) and os.access(LASTING, os.W_OK | os.X_OK):
        return LASTING
    return Path(tempfile.gettempdir())


class Growing:
    """Numbers that come one after the other, of the type that was said last; ``expected`` so many, if that is known.

    >>> numbers = Growing()
    >>> numbers.extend(np.array([1, 2], np.uint8))
    >>> numbers.widen(np.dtype(np.uint16))
    >>> numbers.extend(np.array([300], np.uint16))
    >>> numbers.array
    array([  1,   2, 300], dtype=uint16)
    """

    def __init__(self, expected: int = 0, dtype: npt.DTypeLike = np.uint8) -> None:
        self._held, self._length = room(expected, dtype), 0

    def __len__(self) -> int:
        return self._length

    @property
    def dtype(self) -> np.dtype[Any]:
        """What they are kept as."""
        return self._held.dtype

    @property
    def array(self) -> npt.NDArray[Any]:
        """All that came, as long as no more do."""
        return self._held[: self._length]

    def widen(self, dtype: np.dtype[Any]) -> None:
        """Keep them as another type, which has all of them."""
        if dtype != self.dtype:
            self._move(len(self._held), dtype)

    def extend(self, part: npt.NDArray[Any]) -> None:
        """More of them, [K]."""
        stop = self._length + len(part)
        if stop > len(self._held):
            self._move(max(stop, len(self._held) + len(self._held) // 4), self.dtype)
        self._held[self._length : stop] = part
        self._length = stop

    def _move(self, size: int, dtype: np.dtype[Any]) -> None:
        moved = room(size, dtype)
        moved[: self._length] = self.array
        self._held = moved


def _mapped(size: int) -> mmap.mmap:
    """A file of so many bytes, all of them there, as memory; it stays as long as that does."""
    with tempfile.TemporaryFile(dir=folder()) as file:
        _fill(file, size)
        return mmap.mmap(file.fileno(), size)


def _fill(file: BinaryIO, size: int) -> None:
    """Blocks for so many bytes; OSError if the disk has none."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    portion = bytes(1 << 20)
    for first in range(0, size, len(portion)):
        file.write(portion[: size - first])
    file.flush()


def _on_disk() -> int:
    """Bytes that a file may have there."""
    try:
        return int(memory.SHARE * shutil.disk_usage(folder()).free)
    except OSError:
        return 0


def _no_room(size: int) -> str:
    where = f"{told(int(memory.SHARE * memory.available()))} of memory and {told(_on_disk())} in {folder()}"
    share = f"{round(100 * memory.SHARE)} % of what is available"
    return f"would take {told(size)}; expected at most {where}, {share}: set TMPDIR to a folder on a larger disk"

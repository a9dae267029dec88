"""Check memory before anything large is made, and allocate large arrays.

The environment variable ``BYHEART_MEMORY`` ("800M", "4G") limits the memory of a process.

Large arrays lie in memory if they take a small part of it, and otherwise in files without a name.

Either way the array is an ordinary one. A file is mapped into memory: the system keeps as much of it there as
fits, and may take the memory back. On Linux the file never has a name; elsewhere it loses its name at once. So nothing
remains when the array or the process ends. All blocks of the file are reserved first, so a full disk is an error at
once and not a signal later.
"""

import mmap
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput

USABLE_SHARE = 0.8
"""Largest share of the available memory that may be asked for at once. The rest is for uncounted objects."""
_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""File with the memory limit of a container, if there is one."""
MEMORY_VARIABLE = "BYHEART_MEMORY"
MIN_GRANTED_BYTES = 1 << 26
"""Bytes of memory that are always granted, so that a limit chosen too low does not break small work."""
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def available() -> int:
    """Return the bytes that this process can still get: free memory, within all limits of the process.

    If the system does not state limits, return the machine's memory, or 2⁶³ if that is unknown too.
    """
    limits = [_free(), _number(_LIMIT), *_limits(), _chosen()]
    return min((size for size in limits if size is not None), default=_installed())


def check_memory(needed: int, what: str, instead: str = "") -> None:
    """Raise BadInput if ``needed`` bytes for ``what`` exceed the usable memory. ``instead`` is advice to the user.

    >>> check_memory(10**15, "t.npz")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    byheart.errors.BadInput: t.npz would take 931,322.6 GiB of memory; expected at most ..., 80 % of what is available
    """
    there = int(USABLE_SHARE * available())
    if needed > there:
        expected = f"expected at most {format_bytes(there)}, {round(100 * USABLE_SHARE)} % of what is available"
        raise BadInput(
            f"{what} would take {format_bytes(needed)} of memory; {expected}" + (f": {instead}" if instead else "")
        )


@contextmanager
def limit_memory() -> Iterator[None]:
    """Limit the memory of the process while a library unpacks a file of unknown size.

    Allocations beyond the usable share of memory fail. Only Linux has such a limit; elsewhere nothing is limited.
    """
    try:
        import resource

        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = used + int(USABLE_SHARE * available())
    if soft == resource.RLIM_INFINITY or most < soft:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def peak_memory() -> int:
    """Return the largest number of bytes that this process has used; 0 if the system does not state it.

    Linux says it of the program that runs; what ``getrusage`` says may be of the one that started it. What the system
    keeps in memory of files (:mod:`.room`) is part of it, though it could take that back.
    """
    if (most := _kibibytes("self/status", "VmHWM")) is not None:
        return most
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def format_bytes(size: int) -> str:
    """Return a number of bytes with a unit.

    >>> format_bytes(3 << 19), format_bytes(3 << 29)
    ('1.5 MiB', '1.5 GiB')
    """
    return f"{size / 2**30:,.1f} GiB" if size >= 1 << 29 else f"{size / 2**20:,.1f} MiB"


def _installed() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 1 << 63


def _free() -> int | None:
    return _kibibytes("meminfo", "MemAvailable")


def _chosen() -> int | None:
    """Return what is left of the memory chosen by the user; None without a choice. Mapped files do not count."""
    choice = os.environ.get(MEMORY_VARIABLE, "").strip()
    if not choice:
        return None
    match = re.fullmatch(r"([0-9]{1,18})([KMGT]?)(i?B)?", choice, re.ASCII)
    if match is None:
        raise BadInput(f"{MEMORY_VARIABLE} is {choice!r}; expected a number of bytes, such as 800M or 4G")
    return max(MIN_GRANTED_BYTES, int(match[1]) * _UNITS[match[2]] - (_kibibytes("self/status", "RssAnon") or 0))


def _kibibytes(file: str, name: str) -> int | None:
    """Return the bytes that a file below /proc states in KiB after ``name``; None if it does not."""
    try:
        lines = Path("/proc", file).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), None)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such file, or "max"
        return None


def _limits() -> list[int]:
    """Return what is left of each of the process's own limits, on Linux."""
    try:
        import resource

        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
    except (ImportError, OSError):
        return []
    used = {resource.RLIMIT_AS: pages[0], resource.RLIMIT_DATA: pages[5]}
    soft = {kind: resource.getrlimit(kind)[0] for kind in used}
    return [
        max(0, limit - int(used[kind]) * resource.getpagesize())
        for kind, limit in soft.items()
        if limit != resource.RLIM_INFINITY
    ]


MIN_MAPPED_BYTES = 1 << 24
"""Smallest array that is put into a file, in bytes."""
MAPPED_FRACTION = 8
"""An array that takes more than 1 / ``MAPPED_FRACTION`` of the available memory lies in a file: there are several such
arrays at a time, next to everything that has to be in memory."""
DISK_FOLDER = Path("/var/tmp")
"""Folder for large files on systems that have it: /tmp may lie in memory."""
_FOLDER_VARIABLES = ("TMPDIR", "TEMP", "TMP")


def allocate(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an uninitialized array in memory or in a file; raise BadInput if there is room in neither.

    >>> allocate((2, 3), np.uint8).shape
    (2, 3)
    """
    kind = np.dtype(dtype)
    size = kind.itemsize * (prod(shape) if isinstance(shape, tuple) else shape)
    if size < MIN_MAPPED_BYTES or size <= available() // MAPPED_FRACTION:
        return np.empty(shape, kind)
    trouble = ""
    if size <= _disk_space():
        try:
            return np.frombuffer(_mapped(size), kind).reshape(shape)
        except OSError as error:  # a quota, say: memory may have room all the same
            trouble = f" ({error.strerror or error})"
    if size > USABLE_SHARE * available():
        raise BadInput(f"an array {_no_room(size)}{trouble}")
    return np.empty(shape, kind)


def check_room(needed: int, what: str) -> None:
    """Raise BadInput if there is no room for ``needed`` bytes, neither in memory nor on the disk."""
    if needed > max(USABLE_SHARE * available(), _disk_space()):
        raise BadInput(f"{what} {_no_room(needed)}")


def folder() -> Path:
    """Return the folder for large arrays: the one that TMPDIR names, or one on a disk."""
    if not any(os.environ.get(name) for name in _FOLDER_VARIABLES) and os.access(DISK_FOLDER, os.W_OK | os.X_OK):
        return DISK_FOLDER
    return Path(tempfile.gettempdir())


class GrowingArray:
    """An array that grows at its end, with room for ``expected`` numbers from the start.

    >>> numbers = GrowingArray()
    >>> numbers.extend(np.array([1, 2], np.uint8))
    >>> numbers.widen(np.dtype(np.uint16))
    >>> numbers.extend(np.array([300], np.uint16))
    >>> numbers.array
    array([  1,   2, 300], dtype=uint16)
    """

    def __init__(self, expected: int = 0, dtype: npt.DTypeLike = np.uint8) -> None:
        self._held, self._length = allocate(expected, dtype), 0

    def __len__(self) -> int:
        return self._length

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self._held.dtype

    @property
    def array(self) -> npt.NDArray[Any]:
        """All numbers so far. The view is valid until the next ``extend`` or ``widen``."""
        return self._held[: self._length]

    def widen(self, dtype: np.dtype[Any]) -> None:
        """Convert the numbers to another type, which must hold all of them."""
        if dtype != self.dtype:
            self._move(len(self._held), dtype)

    def extend(self, part: npt.NDArray[Any]) -> None:
        """Append ``part`` [K]."""
        stop = self._length + len(part)
        if stop > len(self._held):
            self._move(max(stop, len(self._held) + len(self._held) // 4), self.dtype)
        self._held[self._length : stop] = part
        self._length = stop

    def _move(self, size: int, dtype: np.dtype[Any]) -> None:
        moved = allocate(size, dtype)
        moved[: self._length] = self.array
        self._held = moved


def _mapped(size: int) -> mmap.mmap:
    """Return a file of ``size`` bytes, mapped into memory. It lives as long as the mapping."""
    with tempfile.TemporaryFile(dir=folder()) as file:
        _reserve_blocks(file, size)
        return mmap.mmap(file.fileno(), size)


def _reserve_blocks(file: BinaryIO, size: int) -> None:
    """Reserve disk blocks for ``size`` bytes; raise OSError if the disk is too full."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    portion = bytes(1 << 20)
    for first in range(0, size, len(portion)):
        file.write(portion[: size - first])
    file.flush()


def _disk_space() -> int:
    """Return the number of bytes that a file in ``folder()`` may have."""
    try:
        return int(USABLE_SHARE * shutil.disk_usage(folder()).free)
    except OSError:
        return 0


def _no_room(size: int) -> str:
    where = f"{format_bytes(int(USABLE_SHARE * available()))} of memory and {format_bytes(_disk_space())} in {folder()}"
    share = f"{round(100 * USABLE_SHARE)} % of what is available"
    return (
        f"would take {format_bytes(size)}; expected at most {where}, {share}: set TMPDIR to a folder on a larger disk"
    )

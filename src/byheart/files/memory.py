"""How much memory there is, asked before anything large is made.

The environment variable ``BYHEART_MEMORY`` ("800M", "4G") says how much of it a process is to take.

Room for large arrays: in memory as long as they take little of it, and else in files that have no name.

Whoever fills an array need not know where it lies: either way it is an ordinary one. A file is mapped into memory, so
that the system keeps of it what there is room for, and takes back what it needs for something else. It has no name from
the start, on Linux, or loses it at once; so nothing is left of it when the array, or the process, is gone, however that
ended. All of its blocks are there before the array is: a disk that is full is an error then, and not a signal later.
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
"""Of what is available, so much may be asked for at once: the rest is for what nobody counted."""
_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""What a container may use, where there is one."""
CHOSEN = "BYHEART_MEMORY"
LEFT = 1 << 26
"""Bytes that are left of it at least: what is small does not fail, nor is work lost, because it was chosen too low."""
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def available() -> int:
    """Bytes that this process can still have: free memory, within what the process may use, or was told to.

    Where the system says nothing, the machine's memory; where it does not even say that, 2⁶³.
    """
    found = [_free(), _number(_LIMIT), *_limits(), _chosen()]
    return min((size for size in found if size is not None), default=_installed())


def check_memory(needed: int, what: str, instead: str = "") -> None:
    """BadInput if ``what`` takes more than its share of the memory that is available; ``instead``: what to do then.

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
    """While a library unpacks somebody's file: what goes beyond the share of memory that is available fails.

    On Linux, where the process's own limit is lowered meanwhile; elsewhere nothing is bounded.
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
    """Bytes that this process has taken at most, until now; 0 where the system does not say.

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
    """A number of bytes for people.

    >>> format_bytes(3 << 19), format_bytes(3 << 29)
    ('1.5 MiB', '1.5 GiB')
    """
    return f"{size / 2**30:,.1f} GiB" if size >= 1 << 29 else f"{size / 2**20:,.1f} MiB"


def _installed() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 1 << 63


def _free() -> int | None:
    return _kibibytes("meminfo", "MemAvailable")


def _chosen() -> int | None:
    """What is left of the memory that somebody told this process to take; files that are mapped do not count."""
    given = os.environ.get(CHOSEN, "").strip()
    if not given:
        return None
    found = re.fullmatch(r"([0-9]{1,18})([KMGT]?)(i?B)?", given, re.ASCII)
    if found is None:
        raise BadInput(f"{CHOSEN} is {given!r}; expected a number of bytes, such as 800M or 4G")
    return max(LEFT, int(found[1]) * _UNITS[found[2]] - (_kibibytes("self/status", "RssAnon") or 0))


def _kibibytes(file: str, name: str) -> int | None:
    """Bytes that a file below /proc states in KiB, under this name; None if there is none."""
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
    """What is left of the limits that the process was given, on Linux."""
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
"""Bytes of an array that is worth a file."""
MAPPED_FRACTION = 8
"""What takes more than one part in so many of the memory that is available lies in a file: there are several such
arrays at a time, and beside them all that has to be in memory."""
LASTING = Path("/var/tmp")
"""For files that may be large, on systems that have it: what is called /tmp may be memory itself."""
_FOLDER_VARIABLES = ("TMPDIR", "TEMP", "TMP")


def allocate(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An array of this shape and type, to be filled; BadInput if there is room for it nowhere.

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
    """BadInput if there is no room for so many bytes, neither in memory nor on the disk."""
    if needed > max(USABLE_SHARE * available(), _disk_space()):
        raise BadInput(f"{what} {_no_room(needed)}")


def folder() -> Path:
    """Where files lie: the folder that TMPDIR names, or one that is on a disk."""
    if not any(os.environ.get(name) for name in _FOLDER_VARIABLES) and os.access(LASTING, os.W_OK | os.X_OK):
        return LASTING
    return Path(tempfile.gettempdir())


class GrowingArray:
    """Numbers that come one after the other, of the type that was said last; ``expected`` so many, if that is known.

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
        moved = allocate(size, dtype)
        moved[: self._length] = self.array
        self._held = moved


def _mapped(size: int) -> mmap.mmap:
    """A file of so many bytes, all of them there, as memory; it stays as long as that does."""
    with tempfile.TemporaryFile(dir=folder()) as file:
        _reserve_blocks(file, size)
        return mmap.mmap(file.fileno(), size)


def _reserve_blocks(file: BinaryIO, size: int) -> None:
    """Blocks for so many bytes; OSError if the disk has none."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    portion = bytes(1 << 20)
    for first in range(0, size, len(portion)):
        file.write(portion[: size - first])
    file.flush()


def _disk_space() -> int:
    """Bytes that a file may have there."""
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

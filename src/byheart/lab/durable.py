"""Files that survive: whole or not at all, line by line, and written by one process at a time.

The lock is the operating system's (flock): it ends with its process, so that of a dead one needs no clearing away. What
is not checked: file systems on which flock or fsync do nothing.
"""

import fcntl
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

from byheart.errors import BadInput

LOCK_PATIENCE = 0.3  # seconds: whoever only looks holds the lock for a moment


class Lock:
    """The right to write, held by one process at a time, until it releases it or ends, in whatever way."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        patience = time.monotonic() + LOCK_PATIENCE
        while not _take(self._file, fcntl.LOCK_EX):
            if time.monotonic() > patience:
                holder = os.read(self._file, 200).decode(errors="replace").strip() or "another process"
                os.close(self._file)
                raise BadInput(f"{path.parent}: {holder} is writing there; wait for it, or choose another folder")
            time.sleep(0.02)
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)

    def release(self) -> None:
        """Let others write."""
        os.ftruncate(self._file, 0)
        os.close(self._file)


def is_locked(path: Path) -> bool:
    """Whether a living process holds the lock."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not _take(file, fcntl.LOCK_SH)
    finally:
        os.close(file)


def _take(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def replace(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    new = beginning(path)
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    _sync(path.parent)


def beginning(path: Path) -> Path:
    """What :func:`replace` leaves behind if it is killed."""
    return path.with_name(f".{path.name}")


def append(path: Path, lines: str) -> None:
    """Add lines to a file, for good: when this returns they are on the disk. If it cannot be done, none is added."""
    new = not path.exists()
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    size, data = os.fstat(file).st_size, lines.encode()
    try:
        while data:
            data = data[os.write(file, data) :]
        os.fsync(file)
    except BaseException:
        os.ftruncate(file, size)  # on a full disk: the next line must not be glued to half of this one
        raise
    finally:
        os.close(file)
    if new:
        _sync(path.parent)


def mend(path: Path, is_whole: Callable[[bytes], bool]) -> None:
    """Cut half a line off the end of a file; or end its last line, if it is whole but for its end."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    tail = data[data.rfind(b"\n") + 1 :]
    if tail and is_whole(tail):
        append(path, "\n")
    elif tail:
        with path.open("r+b") as file:
            file.truncate(len(data) - len(tail))
            os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """A file's name is on the disk when its folder is."""
    place = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)

"""Locks: written by one process at a time.

A lock is the operating system's (flock): it ends with its process, so that of a dead one needs no clearing away. What
is not checked: file systems on which flock does nothing.
"""

import errno
import fcntl
import os
import re
import socket
import stat
import time
from pathlib import Path

from byheart.errors import BadInput

PATIENCE = 0.3  # seconds: whoever only looks, or writes a small file, holds a lock for a moment


class Lock:
    """The right to write, held by one process at a time, until it releases it or ends, in whatever way."""

    def __init__(self, path: Path, place: Path | None = None) -> None:
        """Take the lock; BadInput, with who holds it and ``place`` (or the folder it is in), if it is taken.

        What else lies at ``path`` is not written over: BadInput too.
        """
        self._path, patience = path, time.monotonic() + PATIENCE
        while not self._open():
            holder = os.pread(self._file, 200, 0).decode(errors="replace").strip() or "another process"
            os.close(self._file)
            if time.monotonic() > patience:
                where = path.parent if place is None else place
                raise BadInput(f"{where}: {holder} is writing there; wait for it, or choose another name")
            time.sleep(0.02)

    def _open(self) -> bool:
        """Open, take and sign the lock; whether it was free. Where that is not possible, no new one is left."""
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        new = False
        try:
            _check_ours(self._path, self._file)
            new = os.fstat(self._file).st_size == 0
            if not _take(self._file, fcntl.LOCK_EX) or not _is_at(self._path, self._file):
                return False
            holder = f"{SIGNATURE} {os.getpid()} on {socket.gethostname()}\n".encode()
            os.pwrite(self._file, holder, 0)
            os.ftruncate(self._file, len(holder))  # in this order it is never empty again
        except BaseException:
            if new:
                os.unlink(self._path)
            os.close(self._file)
            raise
        return True

    def release(self) -> None:
        """Let others write."""
        os.close(self._file)


SIGNATURE = "Byheart process"
"""How a lock begins that was ever held."""
_SIGNED = re.compile(rb"(Byheart )?process [0-9]+ on ")  # the first word is younger than the first locks


def _check_ours(path: Path, file: int) -> None:
    """BadInput unless the open file is empty or signed: anything else is somebody's, whatever its name."""
    held = os.pread(file, 200, 0) if stat.S_ISREG(os.fstat(file).st_mode) else b"no file"
    if held and not _SIGNED.match(held):
        raise BadInput(f"{path}: is in the way, and no lock of Byheart's; move it, or choose another name")


def is_locked(path: Path) -> bool:
    """Whether a living process holds the lock."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)  # whatever lies there, it is not waited for
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link, which nobody holds: locks are not taken through one
            return False
        raise
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


def _is_at(path: Path, file: int) -> bool:
    """Whether the open file is still the one of this name: who held the lock before may have removed it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False

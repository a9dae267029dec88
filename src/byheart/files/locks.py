"""Locks: one process at a time may write to a place.

A lock is the operating system's (flock). It ends with its process, so no lock of a dead process remains. File
systems on which flock does nothing are not detected.
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
    """The right to write, held by one process until it releases the lock or ends."""

    def __init__(self, path: Path, place: Path | None = None) -> None:
        """Take the lock, or raise BadInput with its holder and ``place`` (default: the lock's folder).

        A file at ``path`` that is not a lock is never overwritten: it raises BadInput too.
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
        """Open, take and sign the lock; return False if another process holds it. Remove a new lock after an error."""
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
        """Release the lock."""
        os.close(self._file)


SIGNATURE = "Byheart process"
"""First words of every lock that a process has held."""
_SIGNED = re.compile(rb"(Byheart )?process [0-9]+ on ")  # the first word is younger than the first locks


def _check_ours(path: Path, file: int) -> None:
    """Raise BadInput unless the open file is empty or signed. Any other file belongs to the user."""
    held = os.pread(file, 200, 0) if stat.S_ISREG(os.fstat(file).st_mode) else b"no file"
    if held and not _SIGNED.match(held):
        raise BadInput(f"{path}: is in the way, and no lock of Byheart's; move it, or choose another name")


def is_locked(path: Path) -> bool:
    """Return True if a living process holds the lock."""
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
    """Return True if ``path`` still names the open file. The lock's former holder may have removed it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False

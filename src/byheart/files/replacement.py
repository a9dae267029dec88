"""Claim a name, and replace what it stands for in one step.

Next to the name NAME, a writer makes the folder ``.NAME.byheart``, and removes it in the end. It holds

    lock      held by the writer until it ends (:mod:`byheart.files.locks`), and signed
    draft     what is being written
    ready     the complete draft on the disk; after the exchange, the former content of the name
    before    where names cannot be exchanged: the former content, until ``ready`` has taken its place
    waste     former content that may be removed

A killed writer leaves some of these behind. The next writer that claims the name gets the lock and removes them: the
draft and the waste always, the others if the rule for the name allows it. A folder of this name with a different
layout belongs to someone else, and is left alone.

Linux's renameat2 exchanges names in one step, so the name stands for the old or for the new content at any moment. If
the system or file system cannot do that, files are replaced by rename, and folders by two renames; if a process is
killed between them, :func:`recover` undoes the first before the name is read or claimed again. The new content
gets the permissions of the old one, but not its owner, access lists or other attributes. File systems on which fsync
or flock do nothing are not detected.
"""

import ctypes
import errno
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from byheart.errors import BadInput
from byheart.files.locks import SIGNATURE, Lock, is_locked

LOCK, DRAFT, READY, BEFORE, WASTE = "lock", "draft", "ready", "before", "waste"
_TRIES = 100
_AT_FDCWD, _NOREPLACE, _EXCHANGE = -100, 1, 2
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}

ReplaceRule: TypeAlias = Callable[[Path], None]
"""Raises BadInput if the content of a path may not be replaced. It is called again for what was really moved away."""


def workspace_of(place: Path) -> Path:
    """Return the folder in which new content for ``place`` is written."""
    return place.with_name(f".{place.name}.byheart")


def is_leftover(path: Path) -> bool:
    """Return True if ``path`` was left behind by a writer that has ended."""
    try:
        named = path.name.startswith(".") and path.name.endswith(".byheart")
        return named and _is_ours(path) and not is_locked(path / LOCK)
    except FileNotFoundError:  # its writer lived, and has removed it
        return True


def _is_ours(room: Path) -> bool:
    """Return True if a folder has the layout of a writer's folder."""
    if not stat.S_ISDIR(os.lstat(room).st_mode):
        return False
    names = set(os.listdir(room))
    if BEFORE in names and not stat.S_ISDIR(os.lstat(room / BEFORE).st_mode):
        return False
    if names <= {LOCK}:
        return not names or _signature(room / LOCK) in ("", SIGNATURE)
    return names <= {LOCK, DRAFT, READY, BEFORE, WASTE} and LOCK in names and _signature(room / LOCK) == SIGNATURE


def _signature(lock: Path) -> str:
    status = os.lstat(lock)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        return "no file, or not of this name alone"
    with lock.open("rb") as file:
        return file.read(len(SIGNATURE)).decode(errors="replace")


def recover(place: Path) -> None:
    """Put back what a killed writer had moved away from ``place``. To be called before reading there.

    Where names can be exchanged, nothing is ever moved away.
    """
    place = Path(os.path.realpath(place))
    if not os.path.lexists(place) and os.path.lexists(workspace_of(place) / BEFORE):
        with suppress(FileNotFoundError):  # the writer lives, and has gone on meanwhile
            if not _is_ours(workspace_of(place)):
                return
            lock = Lock(workspace_of(place) / LOCK, place)
            try:
                if not os.path.lexists(place):
                    os.rename(workspace_of(place) / BEFORE, place)
                    sync(place.parent)
            finally:
                lock.release()


class Replacement:
    """The claim to ``place`` until it is released. Raises BadInput if another process has it."""

    def __init__(self, place: Path, check: ReplaceRule) -> None:
        self.place, self.room, self.draft = place, workspace_of(place), workspace_of(place) / DRAFT
        self._check, self._moved = check, False
        self._lock = self._locked()
        try:
            self._clear()
        except BaseException:
            self._lock.release()
            raise

    def _locked(self) -> Lock:
        for _ in range(_TRIES):
            with suppress(FileExistsError):
                self.room.mkdir(0o700)
            try:
                if not _is_ours(self.room):
                    raise BadInput(f"{self.room}: is in the way, and not Byheart's; move it, or choose another name")
                return Lock(self.room / LOCK, self.place)
            except FileNotFoundError:  # who had the claim before has just removed the room
                continue
            except OSError:
                with suppress(OSError):
                    self.room.rmdir()
                raise
        raise BadInput(f"{self.place}: others are writing there all the time; choose another name")

    def put(self) -> None:
        """Move the draft to its place in one step, if the rule allows it, and have it on the disk."""
        ready = self.room / READY
        self._set_permissions()
        _sync_all(self.draft)
        os.rename(self.draft, ready)
        sync(self.room)
        self._move(ready)
        self._moved = True
        sync(self.place.parent)

    def _set_permissions(self) -> None:
        """Copy the permissions of the old content; give files in a folder those of new files.

        The library safetensors makes its own files private.
        """
        mode = stat.S_IMODE(os.lstat(self.draft).st_mode)
        if self.draft.is_dir():
            for path in self.draft.rglob("*"):
                path.chmod(mode if path.is_dir() else mode & 0o666)
        with suppress(FileNotFoundError):
            former = stat.S_IMODE(os.stat(self.place).st_mode)
            self.draft.chmod(former | 0o700 if self.draft.is_dir() else former)

    def _move(self, ready: Path) -> None:
        for _ in range(_TRIES):
            try:
                if not os.path.lexists(self.place):
                    if not _rename(ready, self.place, _NOREPLACE):
                        os.rename(ready, self.place)
                else:
                    self._replace(ready)
                return
            except (FileNotFoundError, FileExistsError):  # somebody else was at the name between look and step
                continue
        raise BadInput(f"{self.place}: others are changing it all the time; choose another name")

    def _replace(self, ready: Path) -> None:
        """Replace the old content if the rule allows it, before and after it is really moved away."""
        if self.place.is_symlink():
            raise BadInput(f"{self.place}: has become a link, which is not replaced")
        self._check(self.place)
        if _rename(ready, self.place, _EXCHANGE):
            try:
                self._check(ready)
            except BaseException:
                _rename(ready, self.place, _EXCHANGE)
                self._check(self.place)  # the same words, about the place
                raise
        elif ready.is_dir():
            self._replace_in_two(ready)
        else:
            os.replace(ready, self.place)

    def _replace_in_two(self, ready: Path) -> None:
        before = self.room / BEFORE
        os.rename(self.place, before)
        try:
            self._check(before)
            os.rename(ready, self.place)
        except BaseException:
            if not os.path.lexists(self.place):
                os.rename(before, self.place)
                self._check(self.place)
            raise

    def keep(self) -> Path | None:
        """Give a finished folder that cannot take its place another name beside it; return None if there is none."""
        if self._moved or not os.path.lexists(self.room / READY):
            return None
        names = (f"{self.place.name}-new{number or ''}" for number in count())
        kept = next(path for name in names if not os.path.lexists(path := self.place.with_name(name)))
        try:
            if not _rename(self.room / READY, kept, _NOREPLACE):
                os.rename(self.room / READY, kept)
        except OSError:
            return None
        return kept

    def release(self) -> None:
        """Remove the writer's folder and release the lock. Files that cannot be removed are left to the next writer."""
        try:
            with suppress(OSError, BadInput):
                self._clear()
                os.unlink(self.room / LOCK)
                os.rmdir(self.room)
        finally:
            self._lock.release()

    def _clear(self) -> None:
        """Remove what a writer has left behind. Content that it had moved away goes back, unless its place is taken."""
        if os.path.lexists(self.room / BEFORE) and not os.path.lexists(self.place):
            os.rename(self.room / BEFORE, self.place)
            sync(self.place.parent)
        for name in (DRAFT, WASTE):
            _remove(self.room / name)
        for name in (READY, BEFORE):
            leftover = self.room / name
            if os.path.lexists(leftover):
                self._check_leftover(leftover)
                if leftover.is_dir():  # half of it would not pass the check
                    os.rename(leftover, self.room / WASTE)
                    leftover = self.room / WASTE
                _remove(leftover)

    def _check_leftover(self, leftover: Path) -> None:
        try:
            self._check(leftover)
        except BadInput as error:
            what = f"{leftover}: is what was at {self.place}, and is not replaced"
            raise BadInput(f"{what}; move it, or choose another name ({error})") from error


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _find_renameat2() -> Any:
    try:
        return ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # no Linux, or a C library from before 2018
        return None


_renameat2 = _find_renameat2()


def _rename(source: Path, target: Path, how: int) -> bool:
    """Rename in one step, without replacing or as an exchange; return False if the system cannot do that."""
    if _renameat2 is None:
        return False
    if _renameat2(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), how) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), str(source), None, str(target))


def _sync_all(path: Path) -> None:
    """Have a file, or a folder with everything in it, on the disk."""
    if path.is_dir():
        for inside in path.iterdir():
            _sync_all(inside)
    sync(path)


def sync(path: Path) -> None:
    """Have the content of a file, or the names in a folder, on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno != errno.EINVAL:  # there are file systems that have this for files only
            raise
    finally:
        os.close(file)

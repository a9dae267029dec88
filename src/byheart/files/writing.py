"""Write files and folders completely or not at all, and append lines durably.

Whatever happens to the writer, the name stands for the old or for the new content, complete and on the disk. One
process at a time writes to a name; others get an error. A rule says what may be replaced. It is checked when the
writing begins, and again when the new content takes its place (:mod:`byheart.files.replacement`). Links are
followed, except inside folders that may come from anyone (:func:`check_unlinked`).
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from byheart.errors import BadInput
from byheart.files.replacement import Replacement, ReplaceRule, sync
from byheart.files.untrusted import read_bytes


def check_file(path: Path) -> None:
    """Raise BadInput if no file can be written to ``path`` because something else is there."""
    if path.is_symlink() and not path.exists():
        raise BadInput(f"{path}: is a link to nothing; remove it, or choose another name")
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise BadInput(f"{path}: is no file; expected a name for one")


def check_unlinked(path: Path) -> None:
    """Raise BadInput if ``path`` is a link or no file can be put there: for folders that may come from anyone."""
    if path.is_symlink():
        raise BadInput(f"{path}: is a link, which is not written through here; remove it")
    check_file(path)


def check_apart(out: Path | None, *inputs: Path | None) -> None:
    """Raise BadInput if ``out`` is one of the ``inputs`` of a command, or inside one, or around one."""
    for source in inputs:
        if out is not None and source is not None and _overlap(_real(out), _real(source)):
            raise BadInput(f"{out}: is also what is read ({source}); choose another place, outside it")


def _overlap(out: Path, source: Path) -> bool:
    same = out.exists() and source.exists() and out.samefile(source)
    return same or out == source or out in source.parents or source in out.parents


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


@contextmanager
def new_file(path: Path, check: ReplaceRule = check_file) -> Iterator[Path]:
    """Yield a new file to write. It replaces ``path`` at the end, or is removed after an error."""
    with _claimed(path, check) as claim:
        yield claim.draft
        claim.put()


@contextmanager
def new_folder(folder: Path, check: ReplaceRule) -> Iterator[Path]:
    """Yield a new folder to write into. It replaces ``folder`` at the end, or is removed after an error.

    If a complete folder cannot take the place, it is kept beside it, and the error says where.
    """
    place = _real(folder)
    if place in (here := _real(Path()), *here.parents):
        raise BadInput(f"{folder}: is the folder that you are in; expected the name of one that may be replaced")
    parents = [parent for parent in place.parents if not parent.exists()]
    try:
        with _claimed(folder, check, parents=True) as claim:
            claim.draft.mkdir()
            yield claim.draft
            try:
                claim.put()
            except (BadInput, OSError) as error:
                if (kept := claim.keep()) is None:
                    raise
                raise BadInput(f"{_message(folder, error)}; what was to be there is in {kept}") from error
    finally:
        if not place.exists():
            for parent in parents:
                with suppress(OSError):
                    parent.rmdir()


@contextmanager
def make_folder(folder: Path) -> Iterator[None]:
    """Make a folder and its missing parents. After an error, no empty one is left."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for each in missing:
            with suppress(OSError):
                each.rmdir()
        raise


@contextmanager
def _claimed(path: Path, check: ReplaceRule, *, parents: bool = False) -> Iterator[Replacement]:
    """Claim the target of ``path``. Errors of the system become one line about ``path``."""
    check(path)
    place = _real(path)
    try:
        if parents:
            place.parent.mkdir(parents=True, exist_ok=True)
        claim = Replacement(place, check)
    except OSError as error:
        raise BadInput(_message(path, error)) from error
    try:
        yield claim
    except OSError as error:
        if error.filename is None or str(error.filename).startswith(str(claim.room)):
            raise BadInput(_message(path, error)) from error
        raise
    finally:
        claim.release()


def _message(path: Path, error: BadInput | OSError) -> str:
    return str(error) if isinstance(error, BadInput) else f"{path}: cannot be written: {error.strerror or error}"


def write_text(path: Path, text: str, check: ReplaceRule = check_file) -> None:
    """Write a file, whole or not at all."""
    with new_file(path, check) as draft:
        draft.write_text(text, encoding="utf-8")


def append(path: Path, lines: str) -> None:
    """Append lines to a file. When this returns, they are on the disk; after an error, none of them is.

    A link is not written through.
    """
    check_unlinked(path)
    new = not path.exists()
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    size, data = os.fstat(file).st_size, lines.encode()
    try:
        while data:
            data = data[os.write(file, data) :]
        os.fsync(file)
    except BaseException as error:
        os.ftruncate(file, size)  # on a full disk: the next line must not be glued to half of this one
        if isinstance(error, OSError):
            raise BadInput(_message(path, error)) from error
        raise
    finally:
        os.close(file)
    if new:
        sync(path.parent)


def repair_last_line(path: Path, is_whole: Callable[[bytes], bool]) -> None:
    """Cut half a line off the end of a file, or end its last line if the line is whole.

    A link is not written through.
    """
    check_unlinked(path)
    try:
        data = bytes(read_bytes(path))
    except FileNotFoundError:
        return
    tail = data[data.rfind(b"\n") + 1 :]
    if tail and is_whole(tail):
        append(path, "\n")
    elif tail:
        file = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            os.ftruncate(file, len(data) - len(tail))
            os.fsync(file)
        finally:
            os.close(file)

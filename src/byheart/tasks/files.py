"""Tasks in files: ``.npz`` for arrays, ``.jsonl`` for reading and writing by eye and by script."""

import os
import re
import zipfile
from pathlib import Path

from byheart.errors import BadInput
from byheart.files.writing import check_file, new_file
from byheart.tasks import jsonl, npz
from byheart.tasks.task import Task

READERS = {".npz": npz.read, ".jsonl": jsonl.read}
WRITERS = {".npz": npz.write, ".jsonl": jsonl.write}


def load(path: str | os.PathLike[str], *, narrow: bool = False) -> Task:
    """Read a task from a ``.npz`` or ``.jsonl`` file; ``narrow``: ids as narrow as they are, if they are a next-token
    task's, for whoever wants their contexts and no more.

    >>> load("nowhere.npz")
    Traceback (most recent call last):
    byheart.errors.BadInput: nowhere.npz: No such file or directory
    """
    source = Path(path)
    extension = check_extension(source)
    try:
        return READERS[extension](source, narrow=narrow)
    except OSError as error:
        raise BadInput(f"{source}: {error.strerror or error}") from error


def save(task: Task, path: str | os.PathLike[str]) -> None:
    """Write ``task`` to a ``.npz`` or ``.jsonl`` file, as a whole or not at all; nothing but a task is replaced.

    >>> import tempfile
    >>> from byheart.tasks import NextToken
    >>> task = NextToken(tokens=[[0, 1], [2, 2]], labels=[1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(task, f"{folder}/task.jsonl")
    ...     print(Path(folder, "task.jsonl").read_text(), end="")
    ...     load(f"{folder}/task.jsonl") == task
    {"task": "next-token", "label_count": 2, "vocab": 3}
    {"tokens": [0, 1], "label": 1}
    {"tokens": [2, 2], "label": 0}
    True
    """
    target = Path(path)
    write, looks_like_one = WRITERS[check_extension(target)], LOOKS[check_extension(target)]

    def check(path: Path) -> None:
        check_file(path)
        if path.exists() and path.stat().st_size > 0 and not looks_like_one(path):
            raise BadInput(f"{target}: exists and is no task; choose another name or remove it")

    with new_file(target, check) as draft, draft.open("wb") as file:
        write(task, file)


def check_extension(path: Path) -> str:
    """The extension of a task's file; BadInput if it has another, or is a folder."""
    if path.is_dir():
        raise BadInput(f"{path}: is a folder; expected a task file, {' or '.join(READERS)}")
    if path.suffix not in READERS:
        how = "; byheart task text and byheart task facts make one of a text or of facts" if path.exists() else ""
        raise BadInput(f"{path}: unknown extension {path.suffix!r}; expected {' or '.join(READERS)}{how}")
    return path.suffix


def _looks_like_npz(path: Path) -> bool:
    """Whether it is an archive of arrays with the names of a task's."""
    known = {f"{name}.npy" for name in (*npz.INPUTS, *npz.ANSWERS, *npz.ALSO.values(), *npz.SIZES, "kind")}
    try:
        with zipfile.ZipFile(path) as archive:
            return known.issuperset(archive.namelist())
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


def _looks_like_jsonl(path: Path) -> bool:
    """Whether it begins like an object of a task's: with one of their keys."""
    with path.open("rb") as file:
        begin = re.match(rb'\s*\{\s*"(\w+)"\s*:', file.read(200))
    return begin is not None and begin[1].decode() in {*jsonl.DEPTHS, *jsonl.SIZES, "task"}


LOOKS = {".npz": _looks_like_npz, ".jsonl": _looks_like_jsonl}
"""Whether a file may be a task: a short look, not a check."""

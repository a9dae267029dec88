"""Tasks in files: ``.npz`` for arrays, ``.jsonl`` for reading and writing by eye and by script."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from byheart.errors import BadInput
from byheart.tasks import jsonl, npz
from byheart.tasks.task import Task

READERS = {".npz": npz.read, ".jsonl": jsonl.read}
WRITERS = {".npz": npz.write, ".jsonl": jsonl.write}


def load(path: str | os.PathLike[str]) -> Task:
    """Read a task from a ``.npz`` or ``.jsonl`` file.

    >>> load("nowhere.npz")
    Traceback (most recent call last):
    byheart.errors.BadInput: nowhere.npz: No such file or directory
    """
    source = Path(path)
    read = READERS[_extension(source)]
    try:
        with source.open("rb") as file:
            if not file.peek(1):
                raise BadInput(f"{source}: the file is empty")
            return read(file, source)
    except OSError as error:
        raise BadInput(f"{source}: {error.strerror or error}") from error


def save(task: Task, path: str | os.PathLike[str]) -> None:
    """Write ``task`` to a ``.npz`` or ``.jsonl`` file, as a whole or not at all.

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
    write = WRITERS[_extension(target)]
    try:
        with _replacing(target) as file:
            write(task, file)
    except OSError as error:
        raise BadInput(f"{target}: cannot be written: {error.strerror or error}") from error


def _extension(path: Path) -> str:
    if path.suffix not in READERS:
        raise BadInput(f"{path}: unknown extension {path.suffix!r}; expected {' or '.join(READERS)}")
    return path.suffix


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """A new file next to ``target`` that takes its place once it is written; if that fails, nothing has happened."""
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with draft.open("xb") as file:
            yield file
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)

"""Checkpoints: a job that is cut off goes on where it was when it was last kept.

In a run's folder, ``checkpoints`` holds a file for every job under way, written whole or not at all, and removed when
the job's rows are written:

    HASH-N.safetensors      of the N-th ensemble that the job trains; HASH is that of the keys of its configs. The
                            arrays are those of a page (:mod:`byheart.lab.pages`); the header says, as JSON under
                            "byheart", which job it is of, hashes of its models and of the arrays, and the seconds
                            that it has taken
    session                 a word that is another one each time somebody works on the run

Experiments need not know of this: :func:`perform <byheart.lab.jobs.perform>` says where a job is kept in a context
variable, and :func:`byheart.lab.ensemble.train` looks there. Work that does not go through ``train`` is not kept. A
worker that does not find the session's word in the folder is on a machine that does not share the disk, or left over
from an earlier session: it keeps nothing. Where nothing can be kept, nobody is stopped when the time is over.

A file may be anybody's. One that is not of the same job and the same models (architectures, training, seeds, every
number of their data, and the text of a user's own program), or in which something does not fit, is refused: the job
begins anew, and a note says why.
"""

import hashlib
import json
import math
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.files.replacement import is_leftover
from byheart.files.tensors import read_metadata, read_tensors, write_tensors
from byheart.files.untrusted import parse_object, read_bytes
from byheart.files.writing import check_unlinked, new_file
from byheart.lab.former import KIND, kind_of
from byheart.lab.member import Member
from byheart.lab.pages import StoredPage

FORMAT = "byheart-checkpoint-1"
CHECKPOINTS, SESSION = "checkpoints", "session"
EVERY = 60.0
"""Seconds from one checkpoint of a job to the next, if not said otherwise."""
TIMES_AS_LONG = 20
"""Between two checkpoints at least so many times the time passes that one takes."""
KINDS = {torch.float32: "F32", torch.float64: "F64"}
_FILE = re.compile(r"([0-9a-f]{16})-[0-9]{1,6}\.safetensors")
_FIELDS = {"format", "keys", "models", "arrays", "seconds", "stacks"}

JobKeys = tuple[str, ...]
"""The keys of configs that are trained together."""


class Stopped(BaseException):
    """The time is over, and the job is kept: no error, and not to be caught by whoever handles those."""


@dataclass(frozen=True)
class Keeping:
    """Where jobs of a session are kept, how often, and the moment when they are stopped, on the clock on the wall:
    machines have no other in common.
    """

    folder: Path
    session: str
    every: float
    until: float | None

    @property
    def is_here(self) -> bool:
        """Whether this process sees the session's own folder."""
        try:
            return bytes(read_bytes(self.folder / SESSION, max_bytes=100)) == self.session.encode()
        except (OSError, BadInput):
            return False

    @property
    def is_over(self) -> bool:
        """Whether the moment has come."""
        return self.until is not None and time.time() >= self.until


@contextmanager
def session(run: Path, every: float = EVERY, seconds: float | None = None) -> Iterator[Keeping]:
    """Work on the run in this folder for this many seconds; at the end no more is left than jobs under way."""
    until = None if seconds is None else time.time() + seconds
    if not every > 0:
        raise BadInput(f"a checkpoint every {every:g} seconds; expected more than 0")
    folder = Path(os.path.abspath(run)) / CHECKPOINTS
    check_folder(folder)
    folder.mkdir(exist_ok=True)
    keeping = Keeping(folder, secrets.token_hex(16), every, until)
    _sign(folder / SESSION, keeping.session)
    try:
        yield keeping
    finally:
        (folder / SESSION).unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()


def _sign(path: Path, word: str) -> None:
    """Write the session's word; it is of no use to anybody later, so it need not outlive a power failure."""
    check_unlinked(path)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
    try:
        os.write(file, word.encode())
    finally:
        os.close(file)


def check_folder(folder: Path) -> None:
    """BadInput if something else than a folder has its name."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise BadInput(f"{folder}: is a link, or no folder; remove it")


def name_of(job: JobKeys) -> str:
    """Sixteen hexadecimal digits that depend on the job's keys alone."""
    return hashlib.sha256(" ".join(job).encode()).hexdigest()[:16]


def jobs_in(folder: Path) -> tuple[list[JobKeys], list[str]]:
    """The jobs that there are checkpoints of, as the files say; and a line about each file that does not say it."""
    found, notes = dict[JobKeys, None](), list[str]()
    for path in files_in(folder):
        try:
            found[job_of(path)[0]] = None
        except (BadInput, OSError) as error:
            notes.append(_refusal(path, error))
    return list(found), notes


def files_in(folder: Path, job: JobKeys | None = None) -> list[Path]:
    """Checkpoints, by name: all of them, or those of a job."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    named = ((path, _FILE.fullmatch(path.name)) for path in sorted(folder.iterdir()))
    return [path for path, match in named if match and (job is None or match[1] == name_of(job))]


def remove(folder: Path, job: JobKeys | None = None) -> None:
    """Remove a job's checkpoints, or all of them, with what writers who were killed have left behind."""
    for path in files_in(folder, job):
        path.unlink(missing_ok=True)
    for path in folder.iterdir() if folder.is_dir() else ():
        if is_leftover(path) and (job is None or path.name.startswith(f".{name_of(job)}-")):
            shutil.rmtree(path, ignore_errors=True)


def job_of(path: Path) -> tuple[JobKeys, float]:
    """The job that a file says it is of, and the seconds that it had taken; BadInput if it does not say it."""
    job, about = _about(path)
    return job, float(about["seconds"])


def _about(path: Path) -> tuple[JobKeys, dict[str, Any]]:
    """The job that a file is of, and all that its header says."""
    check_unlinked(path)
    text = read_metadata(path).get("byheart")
    about = parse_object(text.encode()) if isinstance(text, str) else {}
    keys, seconds = about.get("keys"), about.get("seconds")
    if about.get("format") != FORMAT or about.keys() != _FIELDS:
        raise BadInput(f"it is no checkpoint (format {FORMAT})")
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys) or len({*keys}) < len(keys):
        raise BadInput("its keys are no list of different texts")
    if not path.name.startswith(f"{name_of(tuple(keys))}-"):
        raise BadInput("it is of another job than its name says")
    if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise BadInput("its seconds are no number, 0 or more")
    return tuple(keys), about


def _refusal(path: Path, error: BadInput | OSError) -> str:
    why = (error.strerror or error) if isinstance(error, OSError) else error
    return f"{path}: not used, its job begins anew: {why}"


class Keeper:
    """The checkpoints of one job, in the process that works on it; ``notes`` is what there is to say about them."""

    def __init__(self, keeping: Keeping, job: JobKeys, program: str | None) -> None:
        self.keeping, self.job, self.program, self.notes = keeping, job, program, list[str]()
        self.earlier, self._began, self._books = 0.0, time.monotonic(), 0

    @property
    def seconds(self) -> float:
        """That the job has taken, those before a stop included."""
        return self.earlier + time.monotonic() - self._began

    def next(self) -> "Path | None":
        """The file for the next ensemble that the job trains; None where nothing can be kept."""
        self._books += 1
        return self.keeping.folder / f"{name_of(self.job)}-{self._books}.safetensors" if self.keeping.is_here else None


_KEEPER: ContextVar[Keeper | None] = ContextVar("byheart_keeper", default=None)


@contextmanager
def kept(keeping: Keeping | None, job: JobKeys, program: str | None = None) -> Iterator[Keeper | None]:
    """Within this, what is trained is kept as part of the job; ``program`` is the text of the user's file, if any."""
    keeper = None if keeping is None else Keeper(keeping, job, program)
    token = _KEEPER.set(keeper)
    try:
        yield keeper
    finally:
        _KEEPER.reset(token)


def opened(members: Sequence[Member], dtype: torch.dtype) -> "Book | None":
    """Where the training of these members is kept; None if nobody keeps it here."""
    keeper = _KEEPER.get()
    path = None if keeper is None or dtype not in KINDS else keeper.next()
    return None if keeper is None or path is None else Book(keeper, path, members, KINDS[dtype])


class Book:
    """The checkpoint of one ensemble: a page, written over now and then."""

    def __init__(self, keeper: Keeper, path: Path, members: Sequence[Member], kind: str) -> None:
        self._keeper, self._path, self._kind = keeper, path, kind
        self._models = fingerprint(members, keeper.program)
        self._next, self._broken = time.monotonic() + keeper.keeping.every, False

    def read(self) -> StoredPage | None:
        """The page, if there is one that is of the same job and models."""
        try:
            job, about = _about(self._path)
            if job != self._keeper.job or about["models"] != self._models:
                raise BadInput("it is of other models: their settings, seeds, data or program have changed")
            arrays = read_tensors(self._path, ("I64", "F64", self._kind))
            if about["arrays"] != hash_of(arrays):
                raise BadInput("its numbers have changed since it was written")
        except FileNotFoundError:
            return None
        except (BadInput, OSError) as error:
            self._keeper.notes.append(_refusal(self._path, error))
            return None
        self._keeper.earlier = max(self._keeper.earlier, float(about["seconds"]))
        return StoredPage({"stacks": about["stacks"]}, arrays)

    def refuse(self, why: str) -> None:
        """Say that the page cannot be used."""
        self._keeper.earlier = 0.0
        self._keeper.notes.append(_refusal(self._path, BadInput(why)))

    def due(self) -> bool:
        """Whether it is time to write, or to stop."""
        return not self._broken and (time.monotonic() >= self._next or self._keeper.keeping.is_over)

    def write(self, page: StoredPage) -> None:
        """Write the page, for good; Stopped if the time is over. If it cannot be written, training goes on without."""
        keeping, began = self._keeper.keeping, time.monotonic()
        hashes = {"models": self._models, "arrays": hash_of(page.arrays)}
        about = {"format": FORMAT, "keys": self._keeper.job, **hashes, "seconds": self._keeper.seconds}
        try:
            if not keeping.is_here:
                raise BadInput("somebody else works on the run, or the disk is gone")
            with new_file(self._path, check_unlinked) as draft:
                write_tensors(draft, page.arrays, {"byheart": json.dumps({**about, **page.about})})
        except (BadInput, OSError) as error:
            self._broken = True
            self._keeper.notes.append(f"{self._path}: not kept, and the job goes on without checkpoints: {error}")
            return
        now = time.monotonic()
        self._next = now + max(keeping.every, TIMES_AS_LONG * (now - began))
        if keeping.is_over:
            raise Stopped


def hash_of(arrays: Mapping[str, NDArray[Any]]) -> str:
    """A hash of names, kinds and numbers: of a file that was copied badly it is another one."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(repr((name, str(array.dtype), array.shape)).encode())
        digest.update(np.ascontiguousarray(array).data if array.size else b"")
    return digest.hexdigest()


def fingerprint(members: Sequence[Member], program: str | None = None) -> str:
    """A hash of all that training starts from: two lists of members with the same one are trained the same way.

    What an architecture of the user's own computes, only the text of the ``program`` says.
    """
    digest, known = hashlib.sha256((program or "").encode()), dict[int, bytes]()
    for member in members:
        name = type(member.architecture).__qualname__
        kind = kind_of(member.architecture) if hasattr(member.architecture, KIND) else name
        architecture = kind + repr(member.architecture).removeprefix(name)
        digest.update(f"({architecture}, {member.training!r}, {member.seed!r}, {sorted(member.frozen)!r})".encode())
        for data in (member.examples, member.constants, member.initial, member.measured_on):
            digest.update(b"none" if data is None else b"data")
            for name, tensor in sorted((data or {}).items()):
                if id(tensor) not in known:
                    known[id(tensor)] = _digest(tensor)
                digest.update(repr((name, tensor.dtype, tuple(tensor.shape))).encode() + known[id(tensor)])
    return digest.hexdigest()


def _digest(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().flatten()
    return hashlib.sha256(flat.view(torch.uint8).numpy().data).digest()

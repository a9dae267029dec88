"""Checkpoints: an interrupted job continues from its last one.

In a run's folder, ``checkpoints`` holds a file for every job under way. Each is written completely or not at all, and
removed when the job's rows are written:

    HASH-N.safetensors      the N-th ensemble that the job trains; HASH is that of the keys of its configs. The arrays
                            are those of a page (:mod:`byheart.lab.ledger`). The header is JSON under "byheart": the
                            job, hashes of its models and of the arrays, and the seconds that it has taken
    session                 a random word, a new one for each session that works on the run

Experiments need not know about this: :func:`perform <byheart.lab.jobs.perform>` sets a context variable that says where
to keep a job, and :func:`byheart.lab.ensemble.train` reads it. Work that does not call ``train`` is not kept. A worker
that does not find the session's word in the folder is on a machine that does not share the disk, or comes from an
earlier session: it keeps nothing, and is not stopped when the time is over.

Anybody may have written a file. It is refused unless it belongs to the same job and the same models (architectures,
training, seeds, all data, and the text of a user's own program), and all its parts fit. After a refusal the job begins
anew, and a note says why.
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
from byheart.lab.experiment import KIND, kind_of
from byheart.lab.ledger import StoredPage
from byheart.lab.member import Member

FORMAT = "byheart-checkpoint-1"
CHECKPOINTS, SESSION = "checkpoints", "session"
EVERY = 60.0
"""Default number of seconds between two checkpoints of a job."""
WRITING_TIMES = 20
"""Smallest time between two checkpoints, as a multiple of the time that writing one takes."""
KINDS = {torch.float32: "F32", torch.float64: "F64"}
"""Names of precisions in safetensors."""
_FILE = re.compile(r"([0-9a-f]{16})-[0-9]{1,6}\.safetensors")
_FIELDS = {"format", "keys", "models", "arrays", "seconds", "stacks"}

JobKeys = tuple[str, ...]
"""Keys of configs that are trained together."""


class Stopped(BaseException):
    """Raised when the time is over and the job has been kept. It is no Exception, so handlers do not catch it."""


@dataclass(frozen=True)
class Keeping:
    """Folder and interval of a session's checkpoints, and the time when its jobs are stopped.

    ``until`` is wall-clock time, the only time that several machines share.
    """

    folder: Path
    session: str
    every: float
    until: float | None

    @property
    def is_here(self) -> bool:
        """True if this process sees the folder of the session."""
        try:
            return bytes(read_bytes(self.folder / SESSION, max_bytes=100)) == self.session.encode()
        except (OSError, BadInput):
            return False

    @property
    def is_over(self) -> bool:
        """True if the session's time is over."""
        return self.until is not None and time.time() >= self.until


@contextmanager
def session(run: Path, every: float = EVERY, seconds: float | None = None) -> Iterator[Keeping]:
    """Open a session on the run in this folder, for at most ``seconds``, and remove its word at the end."""
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
    """Write the session's word. It is not fsynced, because nobody needs it after a power failure."""
    check_unlinked(path)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
    try:
        os.write(file, word.encode())
    finally:
        os.close(file)


def check_folder(folder: Path) -> None:
    """Raise BadInput if the name belongs to a link, or to something that is no folder."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise BadInput(f"{folder}: is a link, or not a folder; remove it")


def name_of(job: JobKeys) -> str:
    """Return sixteen hexadecimal digits that depend only on the keys of the job."""
    return hashlib.sha256(" ".join(job).encode()).hexdigest()[:16]


def jobs_in(folder: Path) -> tuple[list[JobKeys], list[str]]:
    """Return the jobs that have checkpoints, and a note about each file that cannot be used."""
    jobs, notes = dict[JobKeys, None](), list[str]()
    for path in files_in(folder):
        try:
            jobs[job_of(path)[0]] = None
        except (BadInput, OSError) as error:
            notes.append(_refusal(path, error))
    return list(jobs), notes


def files_in(folder: Path, job: JobKeys | None = None) -> list[Path]:
    """Return the checkpoint files of a job, or of all jobs, sorted by name."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    matches = ((path, _FILE.fullmatch(path.name)) for path in sorted(folder.iterdir()))
    return [path for path, match in matches if match and (job is None or match[1] == name_of(job))]


def remove(folder: Path, job: JobKeys | None = None) -> None:
    """Remove the checkpoints of a job, or of all jobs, and the unfinished files of writers that were killed."""
    for path in files_in(folder, job):
        path.unlink(missing_ok=True)
    for path in folder.iterdir() if folder.is_dir() else ():
        if is_leftover(path) and (job is None or path.name.startswith(f".{name_of(job)}-")):
            shutil.rmtree(path, ignore_errors=True)


def job_of(path: Path) -> tuple[JobKeys, float]:
    """Return the job in a file's header, and its seconds so far. Raise BadInput if the header is damaged."""
    job, about = _about(path)
    return job, float(about["seconds"])


def _about(path: Path) -> tuple[JobKeys, dict[str, Any]]:
    """Return the job that a file names, and all of its header."""
    check_unlinked(path)
    text = read_metadata(path).get("byheart")
    about = parse_object(text.encode()) if isinstance(text, str) else {}
    keys, seconds = about.get("keys"), about.get("seconds")
    if about.get("format") != FORMAT or about.keys() != _FIELDS:
        raise BadInput(f"the header is not that of a checkpoint (format {FORMAT})")
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys) or len({*keys}) < len(keys):
        raise BadInput("its keys are not a list of different texts")
    if not path.name.startswith(f"{name_of(tuple(keys))}-"):
        raise BadInput("its keys are those of another job than its name")
    if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise BadInput("its seconds are not a number, 0 or more")
    return tuple(keys), about


def _refusal(path: Path, error: BadInput | OSError) -> str:
    cause = (error.strerror or error) if isinstance(error, OSError) else error
    return f"{path}: not used, its job begins anew: {cause}"


class Keeper:
    """The checkpoints of one job, in the process that works on it, and ``notes`` about unusable ones."""

    def __init__(self, keeping: Keeping, job: JobKeys, program: str | None) -> None:
        self.keeping, self.job, self.program, self.notes = keeping, job, program, list[str]()
        self.earlier, self._began, self._books = 0.0, time.monotonic(), 0

    @property
    def seconds(self) -> float:
        """Seconds that the job has taken, including earlier sessions."""
        return self.earlier + time.monotonic() - self._began

    def next(self) -> "Path | None":
        """Return the file for the next ensemble that the job trains, or None if nothing can be kept here."""
        self._books += 1
        return self.keeping.folder / f"{name_of(self.job)}-{self._books}.safetensors" if self.keeping.is_here else None


_KEEPER: ContextVar[Keeper | None] = ContextVar("byheart_keeper", default=None)


@contextmanager
def kept(keeping: Keeping | None, job: JobKeys, program: str | None = None) -> Iterator[Keeper | None]:
    """Keep the training inside this context as part of the job; ``program`` is the text of the user's file, if any."""
    keeper = None if keeping is None else Keeper(keeping, job, program)
    token = _KEEPER.set(keeper)
    try:
        yield keeper
    finally:
        _KEEPER.reset(token)


def opened(members: Sequence[Member], dtype: torch.dtype) -> "Book | None":
    """Return the checkpoint for the training of these members, or None if it is not kept."""
    keeper = _KEEPER.get()
    path = None if keeper is None or dtype not in KINDS else keeper.next()
    return None if keeper is None or path is None else Book(keeper, path, members, KINDS[dtype])


class Book:
    """The checkpoint file of one ensemble, which is overwritten from time to time."""

    def __init__(self, keeper: Keeper, path: Path, members: Sequence[Member], kind: str) -> None:
        self._keeper, self._path, self._kind = keeper, path, kind
        self._models = fingerprint(members, keeper.program)
        self._next, self._broken = time.monotonic() + keeper.keeping.every, False

    def read(self) -> StoredPage | None:
        """Return the page, or None if there is no page for this job and these models."""
        try:
            job, about = _about(self._path)
            if job != self._keeper.job or about["models"] != self._models:
                raise BadInput("it belongs to other models: settings, seeds, data or program have changed")
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

    def refuse(self, cause: str) -> None:
        """Note that the page cannot be used."""
        self._keeper.earlier = 0.0
        self._keeper.notes.append(_refusal(self._path, BadInput(cause)))

    def due(self) -> bool:
        """Return True if it is time to write, or to stop."""
        return not self._broken and (time.monotonic() >= self._next or self._keeper.keeping.is_over)

    def write(self, page: StoredPage) -> None:
        """Write the page durably. Raise Stopped if the time is over. If writing fails, go on without checkpoints."""
        keeping, began = self._keeper.keeping, time.monotonic()
        hashes = {"models": self._models, "arrays": hash_of(page.arrays)}
        about = {"format": FORMAT, "keys": self._keeper.job, **hashes, "seconds": self._keeper.seconds}
        try:
            if not keeping.is_here:
                raise BadInput("another session works on the run, or the disk is gone")
            with new_file(self._path, check_unlinked) as draft:
                write_tensors(draft, page.arrays, {"byheart": json.dumps({**about, **page.about})})
        except (BadInput, OSError) as error:
            self._broken = True
            self._keeper.notes.append(f"{self._path}: not kept, and the job goes on without checkpoints: {error}")
            return
        now = time.monotonic()
        self._next = now + max(keeping.every, WRITING_TIMES * (now - began))
        if keeping.is_over:
            raise Stopped


def hash_of(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return a hash of names, types and values, which detects files that were copied badly."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(repr((name, str(array.dtype), array.shape)).encode())
        digest.update(np.ascontiguousarray(array).data if array.size else b"")
    return digest.hexdigest()


def fingerprint(members: Sequence[Member], program: str | None = None) -> str:
    """Return a hash of everything that determines how members are trained.

    The text of the user's ``program`` is included, because only it says what an architecture of the user computes.
    """
    digest, hashes = hashlib.sha256((program or "").encode()), dict[int, bytes]()
    for member in members:
        name = type(member.architecture).__qualname__
        kind = kind_of(member.architecture) if hasattr(member.architecture, KIND) else name
        architecture = kind + repr(member.architecture).removeprefix(name)
        digest.update(f"({architecture}, {member.training!r}, {member.seed!r}, {sorted(member.frozen)!r})".encode())
        for data in (member.examples, member.constants, member.initial, member.measured_on):
            digest.update(b"none" if data is None else b"data")
            for name, tensor in sorted((data or {}).items()):
                if id(tensor) not in hashes:
                    hashes[id(tensor)] = _digest(tensor)
                digest.update(repr((name, tensor.dtype, tuple(tensor.shape))).encode() + hashes[id(tensor)])
    return digest.hexdigest()


def _digest(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().flatten()
    return hashlib.sha256(flat.view(torch.uint8).numpy().data).digest()

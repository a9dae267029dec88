"""The stages of compiling into shards, done wherever there is room; a shard that is solved is kept, and stays solved.

*Map*: a task for each piece of the questions. *Solve*: a task for each shard, with the memory that it takes. *Join*:
here. The stages are those of :mod:`.shards`, and functions of plain data; so the network is the same, byte for byte,
whatever the executor, and in whatever order tasks end. Records of pieces lie in memory, or with a ``Shelf`` on the
disk.

**Kept.** With a shelf, a shard's tensor lies in its folder as soon as it is solved, under a name that says all that it
depends on: the recipe, the records, its number, and the version of Byheart. A compile that was killed finds it there.
Files may be anybody's: what is there must be a tensor of the right shape and format, of numbers that such a table may
hold; that it is the right one is not believed. The certificate shows it, which asks the network every question; the
worst that a forged file can do is a network that is not certified. Records are never taken from an earlier session:
mapping takes a tenth of the time, and solving trusts what they say.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.reciting import shards
from byheart.constructions.reciting.codes import Code
from byheart.constructions.reciting.shards import Note, Records
from byheart.constructions.reciting.sizes import LANES, Sizes, Unsolvable
from byheart.constructions.reciting.wiring import Wiring
from byheart.errors import BadInput
from byheart.executors import Executor, Task, Workplace, each
from byheart.files.tensors import read_metadata, read_tensors, write_tensors
from byheart.files.writing import new_file
from byheart.progress import Report
from byheart.tasks.contexts import Contexts

FORMAT = "byheart-shard-1"
PYTHON = 1 << 28
"""Bytes that a worker takes before it does anything."""
Solved = tuple[NDArray[Any], Note]


@dataclass(frozen=True)
class Front:
    """What all tasks share: the network without its tables."""

    wiring: Wiring
    sizes: Sizes
    code: Code
    recipe: dict[str, Any]
    draw: tuple[int, ...]
    free_bits: int = 0


class Shelf:
    """A folder for the shards of a network that is being compiled; it is made when there is something to keep."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found = 0
        """How many shards of the network were there already."""
        self._records: Path | None = None

    def records(self, records: Records, piece: int) -> Records:
        """The same records, on the disk, in a folder that nobody else may write to."""
        if self._records is None:
            self._make()
            self._records = Path(tempfile.mkdtemp(prefix="records-", dir=self.folder))
        kept = []
        for name in ("route", "sums", "label"):
            path = self._records / f"{piece}-{name}.npy"
            np.save(path, getattr(records, name))
            kept.append(np.load(path, mmap_mode="r") if len(records) else getattr(records, name))
        return Records(*kept)

    def clear_records(self) -> None:
        """Remove all records, also those of sessions that were killed."""
        self._records = None
        for path in self.folder.glob("records-*"):
            if not path.is_symlink():
                shutil.rmtree(path)

    def find(self, name: str, front: Front, shard: int, records: Records) -> Solved | None:
        """A shard that was solved before, if what lies there can be one."""
        path = self.folder / f"{name}.safetensors"
        try:
            (tensor,) = read_tensors(path, ("F32", "F64")).values()
            free_bits = read_metadata(path)["free_bits"]
        except (BadInput, OSError, KeyError, ValueError):
            return None
        ways = {str(front.free_bits + way): front.free_bits + way for way in range(shards.FREE_BITS)}
        shape = (2, LANES // 2 * front.sizes.columns, front.sizes.rows)
        fits = tensor.shape == shape and tensor.dtype == front.wiring.precision and free_bits in ways
        if not fits or not np.isfinite(tensor).all():
            return None
        self.found += 1
        named = hashlib.sha256(np.ascontiguousarray(tensor).data).hexdigest()
        return tensor, Note(shard, len(records), ways[free_bits], records.arranged().fingerprint, named)

    def keep(self, name: str, tensor: NDArray[Any], note: Note) -> None:
        """Write a shard, whole or not at all."""
        self._make()
        with new_file(self.folder / f"{name}.safetensors") as draft:
            write_tensors(draft, {"W_out": tensor}, {"free_bits": str(note.free_bits)})

    def _make(self) -> None:
        if self.folder.is_symlink():
            raise BadInput(f"{self.folder}: is a link, which somebody else may have laid; remove it")
        self.folder.mkdir(exist_ok=True)

    def remove(self) -> None:
        """Remove all that was kept; and the folder, if there is nothing else in it."""
        if not self.folder.is_dir():
            return
        self.clear_records()
        for path in self.folder.glob("shard-*.safetensors"):
            path.unlink()
        if not any(self.folder.iterdir()):
            self.folder.rmdir()


def compiled(
    front: Front, contexts: Contexts, workplace: Workplace, shelf: Shelf | None = None, report: Report | None = None
) -> tuple[dict[str, NDArray[Any]], list[Note]]:
    """All tensors of the network, and what is noted of each shard; raises Unsolvable if this front leaves one none.

    If it leaves several none, the first of them is told, whichever ended first: the next attempt follows from it.
    """
    if shelf is not None:
        shelf.found = 0
    with workplace.open(front) as executor:
        mapped = _mapped(front, contexts, executor, workplace, shelf)
        counts = np.sum([shards.count_routes(piece, front.sizes) for piece in mapped], axis=0)
        cuts = shards.cut(counts, front.sizes.shards)
        solved = _Solving(front, mapped, cuts, shelf, report).by(executor, workplace)
    if shelf is not None:
        shelf.clear_records()
    tensors, notes = zip(*(solved[shard] for shard in range(front.sizes.shards)), strict=True)
    return shards.join(front.wiring.tensors, cuts, tensors), list(notes)


def _mapped(
    front: Front, contexts: Contexts, executor: Executor, workplace: Workplace, shelf: Shelf | None
) -> list[Records]:
    """The records of all pieces, in their order."""
    tasks = (
        Task(f"piece {number}", map_piece, (number, shards.piece_of(contexts, part)), memory=PYTHON)
        for number, part in enumerate(shards.pieces(len(contexts)))
    )
    found: dict[int, Records] = {}
    for _, (number, records) in each(executor, tasks, peaks=workplace.peaks):
        found[number] = records if shelf is None else shelf.records(records, number)
    return [found[number] for number in sorted(found)]


class _Solving:
    """The shards of a network: those that are kept, those that are to be solved, and the first that cannot be."""

    def __init__(
        self,
        front: Front,
        mapped: list[Records],
        cuts: NDArray[np.int64],
        shelf: Shelf | None,
        report: Report | None,
    ) -> None:
        self.front, self.mapped, self.cuts, self.shelf, self.report = front, mapped, cuts, shelf, report
        self.solved: dict[int, Solved] = {}
        self.names: dict[int, str] = {}
        self.failures: dict[int, Unsolvable] = {}

    def by(self, executor: Executor, workplace: Workplace) -> dict[int, Solved]:
        """Every shard; the first failure, if there is one."""
        for _, (shard, came) in each(executor, self.tasks(), peaks=workplace.peaks):
            if isinstance(came, Unsolvable):
                self.failures[shard] = came
                continue
            if self.shelf is not None:
                self.shelf.keep(self.names[shard], *came)
            self.take(shard, came)
        if self.failures:
            raise self.failures[min(self.failures)]
        return self.solved

    def take(self, shard: int, came: Solved) -> None:
        """One more is there."""
        self.solved[shard] = came
        if self.report is not None:
            self.report(len(self.solved), self.front.sizes.shards)

    def tasks(self) -> Iterator[Task]:
        """What is not there, shard by shard, until one fails: all before that one have been given out by then."""
        for shard in range(self.front.sizes.shards):
            if self.failures:
                return
            records = shards.records_of(self.mapped, self.cuts, shard)
            self.names[shard] = _name(self.front, shard, records)
            kept = self.shelf and self.shelf.find(self.names[shard], self.front, shard, records)
            if kept:
                self.take(shard, kept)
                continue
            memory = self.front.sizes.solving_takes(len(records)) + shards.BYTES * len(records) + PYTHON
            yield Task(f"shard {shard}", solve_shard, (shard, records), memory=memory)


def map_piece(front: Front, number: int, piece: shards.Piece, *, report: Report | None) -> tuple[int, Records]:
    """A task: the records of a piece."""
    return number, shards.map_piece(front.wiring, front.sizes, *piece)


def solve_shard(
    front: Front, shard: int, records: Records, *, report: Report | None
) -> tuple[int, Solved | Unsolvable]:
    """A task: a shard's tensor and its note, or why there is none."""
    how = (front.sizes, front.code, front.draw, shard, front.wiring.precision)
    try:
        return shard, shards.solve_shard(records, *how, free_bits=front.free_bits, report=report)
    except Unsolvable as failure:
        return shard, failure


def _name(front: Front, shard: int, records: Records) -> str:
    """A name that says all that a shard's tensor depends on."""
    told = [FORMAT, _version(), front.recipe, front.free_bits, shard, records.fingerprint]
    return f"shard-{hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()}"


def _version() -> str:
    try:
        return version("byheart")
    except PackageNotFoundError:  # it runs from its source tree
        return ""

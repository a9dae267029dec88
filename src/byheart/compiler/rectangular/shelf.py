"""A folder that keeps solved shards while a network is being compiled.

A shard's tensor is written as soon as it is solved, under a name made from all that it depends on: the recipe, the
records, its number, and the version of Byheart. A compile that was killed finds it there.

Files are not trusted. A file must hold one tensor of the right shape and format with finite numbers. That it is the
right tensor is not assumed: the certificate asks the network every question, so the worst that a forged file can do is
a network that is not certified. A folder that holds anything else is not written into, and in the end only our own
files are removed.
"""

import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.rectangular.dimensions import LANES
from byheart.errors import BadInput
from byheart.files.replacement import is_leftover
from byheart.files.tensors import read_metadata, read_tensors, write_tensors
from byheart.files.writing import check_unlinked, new_file

if TYPE_CHECKING:
    from byheart.compiler.rectangular.shards import Note, Records
    from byheart.compiler.rectangular.staging import NetworkDraft

_SHARD = re.compile(r"shard-[0-9a-f]{64}\.safetensors")
_RECORDS, _PIECE = re.compile(r"records-\w{8}"), re.compile(r"[0-9]+-(route|sums|label)\.npy")


class Shelf:
    """A folder for the shards of a network that is being compiled; it is made when there is something to keep."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found = 0
        """Number of shards of the network that were there already."""
        self._records: Path | None = None

    def check(self) -> None:
        """Raise BadInput if the folder, or anything in it, is not ours; then nothing there is touched."""
        self._check_link()
        if self.folder.exists() and not self.folder.is_dir():
            raise BadInput(f"{self.folder}: is no folder; shards would be kept there: move it, or choose another name")
        ours = (_is_shard, _are_records, _is_left)
        if strange := self._of(lambda path: not any(kind(path) for kind in ours)):
            what = f"holds {min(strange).name!r}, which is no shard of Byheart's"
            raise BadInput(f"{self.folder}: {what}; move it, or choose another name for the network")

    def _check_link(self) -> None:
        if self.folder.is_symlink():
            raise BadInput(f"{self.folder}: is a link, which somebody else may have laid; remove it")

    def _of(self, kind: Callable[[Path], bool]) -> list[Path]:
        """Return the entries of one kind."""
        return [path for path in self.folder.iterdir() if kind(path)] if self.folder.is_dir() else []

    def records(self, records: "Records", piece: int) -> "Shelved":
        """Write the records to the disk, into a folder that nobody else may write to."""
        if self._records is None:
            self._make()
            self._records = Path(tempfile.mkdtemp(prefix="records-", dir=self.folder))
        files = {name: self._records / f"{piece}-{name}.npy" for name in ("route", "sums", "label")}
        for name, path in files.items():
            np.save(path, getattr(records, name))
        return Shelved(tuple(files.values()))

    def clear_records(self) -> None:
        """Remove all records, including those of sessions that were killed."""
        self._records = None
        for path in self._of(_are_records):
            shutil.rmtree(path)

    def find(
        self, name: str, front: "NetworkDraft", shard: int, records: "Records"
    ) -> "tuple[NDArray[Any], Note] | None":
        """Return a shard that was solved before, if a fitting file is there."""
        from byheart.compiler.rectangular.lots import TURNS
        from byheart.compiler.rectangular.shards import FREE_BITS, Note

        path = self.folder / f"{name}.safetensors"
        try:
            (tensor,) = read_tensors(path, ("F32", "F64")).values()
            metadata = read_metadata(path)
            free_bits, turn = metadata["free_bits"], metadata["turn"]
        except (BadInput, OSError, KeyError, ValueError):
            return None
        ways = {str(front.free_bits + way): front.free_bits + way for way in range(FREE_BITS)}
        turns = {str(turn): turn for turn in range(TURNS if front.sizes.stretches else 1)}
        shape = (2, LANES // 2 * front.sizes.columns, front.sizes.rows)
        fits = tensor.shape == shape and tensor.dtype == front.wiring.precision
        is_stated = isinstance(free_bits, str) and isinstance(turn, str) and free_bits in ways and turn in turns
        if not fits or not is_stated:
            return None
        if not np.isfinite(tensor).all():
            return None
        self.found += 1
        named = hashlib.sha256(np.ascontiguousarray(tensor).data).hexdigest()
        return tensor, Note(shard, len(records), turns[turn], ways[free_bits], records.arranged().fingerprint, named)

    def keep(self, name: str, tensor: NDArray[Any], note: "Note") -> None:
        """Write a shard, whole or not at all."""
        self._make()
        with new_file(self.folder / f"{name}.safetensors", check_unlinked) as draft:
            write_tensors(draft, {"W_out": tensor}, {"turn": str(note.turn), "free_bits": str(note.free_bits)})

    def _make(self) -> None:
        self._check_link()
        self.folder.mkdir(exist_ok=True)

    def tidy(self) -> None:
        """Remove files that no other session can use, and the folder if it is empty then."""
        if self.folder.is_symlink():
            return
        self.clear_records()
        for path in self._of(_is_left):
            shutil.rmtree(path)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def remove(self) -> None:
        """Remove everything that was kept."""
        if self.folder.is_symlink():
            return
        for path in self._of(_is_shard):
            path.unlink()
        self.tidy()


@dataclass(frozen=True, eq=False)
class Shelved:
    """The records of a piece on the disk. Only the routes that are asked for take memory."""

    files: tuple[Path, ...]
    """Files of the sorted routes, of the sums, and of the labels."""

    def between(self, first: int, last: int) -> "Records":
        """Return the records whose routes are from ``first`` on, below ``last``."""
        from byheart.compiler.rectangular.shards import Records

        parts = [np.load(path, mmap_mode="r") for path in self.files]
        some = slice(*np.searchsorted(parts[0], np.array([first, last], parts[0].dtype)))
        return Records(*(np.array(part[some]) for part in parts))


def _is_shard(path: Path) -> bool:
    return _SHARD.fullmatch(path.name) is not None and path.is_file() and not path.is_symlink()


def _is_left(path: Path) -> bool:
    """Return True for a file that is left over from writing a shard."""
    return path.name.startswith(".") and _SHARD.match(path.name, 1) is not None and is_leftover(path)


def _are_records(path: Path) -> bool:
    if not _RECORDS.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
        return False
    return all(_PIECE.fullmatch(piece.name) and piece.is_file() for piece in path.iterdir())

"""Read npz archives member by member. The sizes in a header are proved before numpy makes an array of them.

Plain numbers and short words are read, stored or deflated. No header is evaluated as Python.
"""

import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.files.memory import GrowingArray, check_memory
from byheart.files.untrusted import open_regular

MAX_MEMBERS = 32
"""Largest number of arrays in an archive. A task has at most 6."""
MAX_HEADER_BYTES = 4096
MEMORY_PER_BYTE = 4
"""Bytes of memory per byte of an array: the array, a copy in our format, and temporary arrays of checks."""
_DAMAGED = (
    *(ValueError, TypeError, EOFError, KeyError, RuntimeError, OverflowError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
)
"""Errors that zipfile raises for damaged archives, and numpy for unknown dtypes."""
_DTYPE = re.compile(r"""['"]descr['"]\s*:\s*['"]([<>|=]?[biufU][1-9]\d{0,2})['"]""")
_ORDER = re.compile(r"""['"]fortran_order['"]\s*:\s*(True|False)""")
_SHAPE = re.compile(r"""['"]shape['"]\s*:\s*\(([\d\s,]{0,400})\)""")

_PORTION = _MOST = 1 << 22
"""Bytes of an array that are read at once, and largest size of an archive's directory."""
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

Arrays = dict[str, NDArray[Any]]


def read_arrays(path: Path, *, narrow: bool = False) -> Arrays:
    """Return the arrays of a ``.npz`` file by name. ``narrow`` makes integers as narrow as their values allow.

    Narrow arrays may lie on the disk, so a file may be larger than memory: it is read in portions.
    """
    with open_regular(path) as file:
        if not os.fstat(file.fileno()).st_size:
            raise BadInput(f"{path}: the file is empty")
        try:
            archive = zipfile.ZipFile(cast("BinaryIO", _BoundedReader(file)))
        except _DAMAGED as error:
            raise BadInput(f"{path}: the archive cannot be read: {_line(error)}") from error
        with archive:
            members = archive.infolist()
            _check_members(path, members)
            if not narrow:
                check_memory(MEMORY_PER_BYTE * sum(member.file_size for member in members), str(path))
            return {_name(member): _array(path, archive, member, narrow) for member in members}


class _BoundedReader:
    """A file that refuses large reads, such as an archive's directory that claims to be huge."""

    def __init__(self, file: BinaryIO) -> None:
        self.seek, self.tell, self.seekable, self._file = file.seek, file.tell, file.seekable, file

    def read(self, size: int = -1) -> bytes:
        """Read at most ``size`` bytes."""
        if size > _MOST:
            raise zipfile.BadZipFile(f"its directory would take {size:,} bytes; expected at most {_MOST:,}")
        return self._file.read(size if size >= 0 else _MOST)


def _check_members(path: Path, members: list[zipfile.ZipInfo]) -> None:
    names = [_name(member) for member in members]
    if len(names) > MAX_MEMBERS or len(set(names)) < len(names):
        raise BadInput(f"{path}: holds {len(names)} arrays; expected at most {MAX_MEMBERS}, with different names")
    packed = next((member for member in members if member.compress_type not in _PACKED), None)
    if packed is not None:  # what else there is unpacks without a bound
        raise BadInput(f"{path}: {_name(packed)!r} is packed in an unknown way; expected stored or deflated")


def _name(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def _array(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, narrow: bool) -> NDArray[Any]:
    """Return the array of a member. Its data is read only after its header has stated the size."""
    with _read_from(path, archive, member) as file:
        dtype, order, shape = _header(file)
        expected = prod(shape) * dtype.itemsize
        if expected > member.file_size:
            raise BadInput(f"its header claims {expected:,} bytes, its entry in the archive {member.file_size:,}")
        if narrow and dtype.kind not in "iu":
            check_memory(MEMORY_PER_BYTE * expected, str(path))
        values = _values(file, dtype, prod(shape), narrow and dtype.kind in "iu")
        if values is None or file.read(1):
            raise BadInput(f"it does not hold the {expected:,} bytes that its header claims")
        return values.reshape(shape, order=order)


@contextmanager
def _read_from(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[Any]:
    """Open a member for reading, and add its name to errors."""
    try:
        with archive.open(member) as file:
            yield file
    except BadInput as error:
        raise BadInput(f"{path}: array {_name(member)!r}: {error}") from error
    except _DAMAGED as error:
        raise BadInput(f"{path}: array {_name(member)!r} cannot be read: {_line(error)}") from error


def _values(file: Any, dtype: np.dtype[Any], count: int, narrow: bool) -> NDArray[Any] | None:
    """Read ``count`` numbers in portions; None if there are fewer. Narrow ones are unsigned unless one is negative."""
    values = GrowingArray(count, np.uint8 if narrow else dtype)
    step = max(1, _PORTION // max(1, dtype.itemsize))
    for first in range(0, count, step):
        part = np.frombuffer(file.read(min(step, count - first) * dtype.itemsize), dtype)
        if len(part) < min(step, count - first):
            return None
        if narrow:
            fits = np.min_scalar_type(part.max()) if part.min() >= 0 else dtype
            values.widen(np.promote_types(values.dtype, fits) if fits.kind == values.dtype.kind else dtype)
        values.extend(part)
    return values.array


def _header(file: Any) -> tuple[np.dtype[Any], Any, tuple[int, ...]]:
    """Read dtype, order and shape from a header in numpy's format: magic, version, length, and a dictionary.

    The dictionary is matched with patterns, not evaluated.
    """
    start = file.read(8)
    wide = start[6:7] != b"\x01"  # versions 2 and 3 have four bytes for the length
    if start[:6] != b"\x93NUMPY" or start[6:7] not in (b"\x01", b"\x02", b"\x03"):
        raise BadInput("not a numpy array")
    length = int.from_bytes(file.read(4 if wide else 2), "little")
    if length > MAX_HEADER_BYTES:
        raise BadInput(f"its header has {length:,} bytes; expected at most {MAX_HEADER_BYTES:,}")
    text = file.read(length).decode("latin-1")
    dtype, order, shape = (pattern.search(text) for pattern in (_DTYPE, _ORDER, _SHAPE))
    if dtype is None or order is None or shape is None:
        raise BadInput("its header is not that of an array of plain numbers")
    sizes = tuple(int(size) for size in shape[1].replace(" ", "").split(",") if size)
    return np.dtype(dtype[1]), "F" if order[1] == "True" else "C", sizes


def _line(error: Exception) -> str:
    return " ".join(str(error).split())

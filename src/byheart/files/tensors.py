"""Read safetensors files by their header: nothing is mapped, and no array is made that the header does not prove.

They are also written without the library of that name, because the lab needs only numpy and torch.

A file is eight bytes (the length n of the header, little-endian), n bytes of JSON (name ↦ dtype, shape, data_offsets),
and the tensors' bytes, row by row, one tensor after the other without gaps.
"""

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.files.untrusted import MAX_JSON_BYTES, parse_object, read_bytes, read_part

FORMATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "U8": "u1"}
"""Formats of tensors. numpy has no bfloat16: such a tensor becomes the 16 bits of each number."""
MAX_AXES = 8
MAX_ENTRIES = 1 << 48
"""Largest number of entries of a tensor, with sizes of 0 counted as 1: numpy counts entries in 64 bits."""


def read_tensors(path: Path, formats: tuple[str, ...], *, memory_per_byte: int = 2) -> dict[str, NDArray[Any]]:
    """Return the tensors of a safetensors file by name; all must have one of ``formats``.

    ``memory_per_byte`` is the memory in bytes that each byte of the file takes once it is part of a network.
    """
    content = read_bytes(path, memory_per_byte=memory_per_byte)
    start = 8 + int.from_bytes(content[:8], "little")
    if len(content) < 8 or start > min(len(content), MAX_JSON_BYTES):
        raise BadInput(f"its header is longer than the file, or than {MAX_JSON_BYTES:,} bytes")
    data = np.frombuffer(content, np.uint8)[start:]
    header = parse_object(content[8:start])
    header.pop("__metadata__", None)
    spans = sorted((_span(name, entry, formats), name) for name, entry in header.items())
    ends = [end for (_, end), _ in spans]
    if [begin for (begin, _), _ in spans] != [0, *ends][:-1] or [0, *ends][-1] != len(data):
        raise BadInput(f"its tensors do not fill its {len(data):,} bytes one after the other")
    return {name: _tensor(data[begin:end], header[name]) for (begin, end), name in spans}


def read_metadata(path: Path) -> dict[str, Any]:
    """Return the metadata of a safetensors file. Only the header is read."""
    metadata = _header(path).get("__metadata__", {})
    if not isinstance(metadata, dict):
        raise BadInput("its metadata are no object; expected texts by their names")
    return metadata


def read_formats(path: Path) -> dict[str, str]:
    """Return the format of every tensor of a safetensors file that :func:`read_tensors` has read."""
    return {name: entry["dtype"] for name, entry in _header(path).items() if name != "__metadata__"}


def _header(path: Path) -> dict[str, Any]:
    length = int.from_bytes(read_part(path, 0, 8), "little")
    if length > MAX_JSON_BYTES:
        raise BadInput(f"its header is longer than the file, or than {MAX_JSON_BYTES:,} bytes")
    return parse_object(read_part(path, 8, length))


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write arrays as a safetensors file. Each dtype must be one of :data:`FORMATS` other than bfloat16."""
    names = {np.dtype(kind): name for name, kind in FORMATS.items() if name != "BF16"}
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    start = 0
    for name, tensor in tensors.items():
        stop = start + tensor.nbytes
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, stop]}
        start = stop
    text = json.dumps(header, ensure_ascii=False, allow_nan=False).encode()
    text += b" " * (-len(text) % 8)  # what follows is aligned
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor).data if tensor.size else b"")


def _span(name: str, entry: object, formats: tuple[str, ...]) -> tuple[int, int]:
    """Return the first and the last offset of a tensor, after checking its entry."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise BadInput(f"{name!r} is no tensor; expected dtype, shape and data_offsets")
    if entry["dtype"] not in formats:
        raise BadInput(f"{name!r} is {entry['dtype']!r}; expected {' or '.join(formats)}")
    shape, offsets = entry["shape"], entry["data_offsets"]
    fits = _are_sizes(shape) and len(shape) <= MAX_AXES and prod(size or 1 for size in shape) <= MAX_ENTRIES
    if not fits or not _are_sizes(offsets) or len(offsets) != 2:
        raise BadInput(f"{name!r} has shape {shape!r} and offsets {offsets!r}; expected whole numbers")
    if offsets[1] - offsets[0] != prod(shape) * np.dtype(FORMATS[entry["dtype"]]).itemsize:
        raise BadInput(f"{name!r} has {offsets[1] - offsets[0]:,} bytes; expected those of {entry['dtype']} {shape}")
    return offsets[0], offsets[1]


def _are_sizes(values: object) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _tensor(data: NDArray[np.uint8], entry: dict[str, Any]) -> NDArray[Any]:
    kind = np.dtype(FORMATS[entry["dtype"]])
    placed = data if data.ctypes.data % kind.itemsize == 0 else data.copy()
    return placed.view(kind).reshape(entry["shape"])

"""How files are damaged. All of it depends on the given generator alone."""

import io
import json
import re
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

Files = dict[str, Any]
"""Bytes by name; or None for a file that is gone, "fifo", "folder", or ("link", target)."""
Rng = np.random.Generator

DAMAGED = (
    ValueError,
    LookupError,
    TypeError,
    RuntimeError,
    EOFError,
    MemoryError,
    zlib.error,
    zipfile.BadZipFile,
    tokenize.TokenError,
)
RAW = {"deep": "[" * 3000 + "]" * 3000, "digits": "9" * 6000, "huge": "1e999", "nan": "NaN", "half": '"\\ud800"'}
"""JSON that Python would not write."""
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 1000, 2**31 - 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64, 10**18),
    *(10**40, -(2**63), 0.5, -0.0, 1e308, 5e-324, "", "x", "\0", "../../out", "/tmp/out", "0:9000000000", "é" * 999),
    *([], {}, [[]], [0], [None], {"a": 1}, *(f"@raw {name}@" for name in RAW)),
)


def mutated(files: Files, rng: Rng) -> tuple[Files, str]:
    """The files with one to three things changed in them, and what, in words."""
    files, told = dict(files), []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        name = sorted(files)[rng.integers(len(files))]
        if not isinstance(files[name], bytes | bytearray):
            continue
        ways = [_bytes] + 4 * [_WAYS[end] for end in _WAYS if name.endswith(end)]
        way: Callable[[bytes, Rng], Any] = _node if rng.random() < 0.06 else ways[rng.integers(len(ways))]
        try:
            files[name] = way(files[name], rng)
        except DAMAGED:
            # It was damaged before, beyond what this way understands.
            files[name] = _bytes(files[name], rng)
        told.append(f"{name} by {way.__name__.strip('_')}")
    return files, ", ".join(told)


def _bytes(data: bytes, rng: Rng) -> bytes:
    """Bits, cuts, insertions and copies."""
    content = bytearray(data)
    at, size = int(rng.integers(len(content) + 1)), int(rng.integers(1, 40))
    match rng.integers(7):
        case 0 if content:
            for place in rng.integers(len(content), size=rng.integers(1, 4)):
                content[place] ^= 1 << int(rng.integers(8))
        case 1:
            del content[at:]
        case 2:
            content[at:at] = rng.bytes(size)
        case 3:
            content[at : at + size] = content[:size]
        case 4:
            del content[at : at + size]
        case 5:
            content[at : at + size] = bytes(size)
        case _:
            content = bytearray() if rng.random() < 0.2 else content + content
    return bytes(content)


def _node(_: bytes, rng: Rng) -> Any:
    """Something else in the place of a file."""
    links = ("precious.txt", "/dev/zero", "nowhere", ".", "/dev/full")
    return (None, "fifo", "folder", *(("link", target) for target in links))[rng.integers(8)]


def _json(data: bytes, rng: Rng) -> bytes:
    """A value, a key or several of them."""
    document = json.loads(data)
    for _ in range(rng.integers(1, 3)):
        holder, key = place(document, rng)
        change(holder, key, document, rng)
    text = json.dumps(document, indent=1)
    if rng.random() < 0.03:
        text = text.replace("{", '{"format": 1, "format": 2,', 1)
    return re.sub(r'"@raw (\w+)@"', lambda found: RAW[found[1]], text).encode()


def place(document: Any, rng: Rng) -> tuple[Any, Any]:
    """Somewhere in it: what holds a value, and under which key; deep places as likely as others."""
    places: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        places += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys if isinstance(holder[key], dict | list) and holder[key]]
    names = sorted({str(key) for holder, key in places if isinstance(holder, dict)})
    if names and rng.random() < 0.7:  # one of the names first, or else lists of numbers would be all there is
        name = names[rng.integers(len(names))]
        places = [place for place in places if str(place[1]) == name]
    return places[rng.integers(len(places))]


def change(holder: Any, key: Any, document: Any, rng: Rng) -> None:
    value = holder[key]
    match rng.integers(6):
        case 0:
            del holder[key]
        case 1 if isinstance(value, int | float):
            holder[key] = [value + 1, value - 1, value * 2, value * 1000, -value, float(value)][rng.integers(6)]
        case 2:
            other, name = place(document, rng)
            holder[key] = json.loads(json.dumps(other[name]))
        case 3 if isinstance(holder, dict):
            holder[("num_labels", "extra", "window", "edits", "end", "\0")[rng.integers(6)]] = value
        case _:
            holder[key] = VALUES[rng.integers(len(VALUES))]


def _lines(data: bytes, rng: Rng) -> bytes:
    """One line of JSON among others."""
    lines = data.splitlines()
    at = int(rng.integers(min(3, len(lines)) if rng.random() < 0.7 else len(lines)))
    lines[at] = _json(lines[at], rng).replace(b"\n", b"")
    return b"\n".join(lines) + b"\n"


def _tensors(data: bytes, rng: Rng) -> bytes:
    """The header of a safetensors file, or its numbers."""
    start = 8 + int.from_bytes(data[:8], "little")
    if rng.random() < 0.4:
        return changed_weights(data, rng)
    header = _json(data[8:start], rng)
    if rng.random() < 0.3:
        header = header.replace(b'"F32"', b'"BF16"').replace(b'"F64"', b'"F8_E4M3"').replace(b'"I32"', b'"U64"')
    return len(header).to_bytes(8, "little") + header + data[start:]


def changed_weights(data: bytes, rng: Rng) -> bytes:
    """A safetensors file with one number changed: a bit of it, all of it, or another one in its place."""
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    spans = [(entry["data_offsets"], entry["dtype"]) for _, entry in sorted(header.items()) if entry["shape"]]
    (begin, end), dtype = spans[rng.integers(len(spans))]
    size = {"F64": 8, "F32": 4, "I32": 4, "BF16": 2}.get(dtype, 1)
    at = start + begin + size * int(rng.integers(max(1, (end - begin) // size)))
    content = bytearray(data)
    match rng.integers(6):
        case 0:
            other = start + begin + size * int(rng.integers(max(1, (end - begin) // size)))
            content[at : at + size] = data[other : other + size]
        case 1:
            content[at : at + size] = rng.bytes(size)
        case 2:
            content[at : at + size] = [bytes(size), b"\xff" * size][rng.integers(2)]
        case _:
            content[at + int(rng.integers(size))] ^= 1 << int(rng.integers(8))
    return bytes(content)


def _npz(data: bytes, rng: Rng) -> bytes:
    """An array's header or numbers, or what the archive says of them."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = sorted(members)[rng.integers(len(members))]
    match rng.integers(5):
        case 0:
            old, new = _HEADERS[rng.integers(len(_HEADERS))]
            members[name] = re.sub(old, new, members[name], count=1)
        case 1:
            members[name] = _bytes(members[name], rng)
        case 2:
            array = np.load(io.BytesIO(members[name])).copy()
            array.flat[rng.integers(array.size)] = [-1, 2**62, 0, 10**9, 10**18][rng.integers(5)]
            buffer = io.BytesIO()
            np.save(buffer, array)
            members[name] = buffer.getvalue()
        case 3:
            other = ["tokens.npy", "vocab.npy", "label_count.npy", "kind.npy", "../x.npy"][rng.integers(5)]
            members[other] = members.pop(name)
        case _:
            members["bomb.npy" if rng.random() < 0.5 else name] = members[name] + bytes(10**7)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED][rng.integers(2)]) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return _bytes(out.getvalue(), rng) if rng.random() < 0.2 else out.getvalue()


_HEADERS = (
    (rb"'shape': \([^)]*\)", b"'shape': (1000000000000,)"),
    (rb"'shape': \([^)]*\)", b"'shape': (0, 5)"),
    (rb"'shape': \([^)]*\)", b"'shape': (-1, 2)"),
    (rb"'shape': \((\d+)", rb"'shape': (1, \1"),
    (rb"'descr': '[^']*'", b"'descr': '|O'"),
    (rb"'descr': '[^']*'", b"'descr': '<U999999999'"),
    (rb"'descr': '[^']*'", b"'descr': [('a', '<i8')]"),
    (rb"'descr': '[^']*'", b"'descr': '<f8'"),
    (rb"'descr': '[^']*'", b"'descr': '>i8'"),
    (rb"'fortran_order': False", b"'fortran_order': True"),
)
_WAYS = {".json": _json, ".jsonl": _lines, ".safetensors": _tensors, ".npz": _npz}

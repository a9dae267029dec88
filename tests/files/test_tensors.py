"""safetensors files: read as the library reads them, and refused wherever header and bytes do not prove each other."""

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as save_torch

from byheart.errors import BadInput
from byheart.files import memory
from byheart.files.tensors import FORMATS, read_metadata, read_tensors, write_tensors

ALL = tuple(FORMATS)


def write(path: Path, header: Any, data: bytes = b"", length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def entry(dtype: object = "F32", shape: object = (2,), offsets: object = (0, 8)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize("dtype", ["<f8", "<f4", "<f2", "<i8", "<i4", "u1"])
def test_read_as_they_were_written(dtype: str, tmp_path: Path) -> None:
    arrays = {"a": np.arange(6).astype(dtype).reshape(2, 3), "b": np.ones((1, 0, 2), dtype), "c": np.array(3, dtype)}
    save_file(arrays | {"odd": np.arange(3, dtype=np.uint8)}, tmp_path / "t", metadata={"format": "pt"})
    found = read_tensors(tmp_path / "t", ALL)
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(found[name], array)
        assert found[name].flags.aligned


def test_written_as_the_library_reads_them(tmp_path: Path) -> None:
    kinds = [np.dtype(kind) for name, kind in FORMATS.items() if name != "BF16"]
    arrays = {f"{kind}": np.arange(6).astype(kind).reshape(2, 3).T for kind in kinds}
    arrays |= {"none": np.ones((0, 2)), "one": np.array(math.nan)}
    write_tensors(tmp_path / "t", arrays, {"é": '{"a": 1}'})
    for found in (load_file(tmp_path / "t"), read_tensors(tmp_path / "t", ALL)):
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
            assert np.array_equal(found[name], array, equal_nan=True)
    with safe_open(tmp_path / "t", "np") as file:
        assert file.metadata() == {"é": '{"a": 1}'}
    assert read_metadata(tmp_path / "t") == {"é": '{"a": 1}'}


def test_metadata_by_hand(tmp_path: Path) -> None:
    """Nothing but the header is read: what follows may be anything, or missing."""
    assert read_metadata(write(tmp_path / "t", {"__metadata__": {"a": "b"}, "x": entry()})) == {"a": "b"}
    assert read_metadata(write(tmp_path / "t", {})) == {}
    with pytest.raises(BadInput, match="its metadata are no object"):
        read_metadata(write(tmp_path / "t", {"__metadata__": 5}))
    with pytest.raises(BadInput, match="its header is longer"):
        read_metadata(write(tmp_path / "t", {}, length=1 << 60))
    with pytest.raises(BadInput, match="not valid JSON"):
        read_metadata(write(tmp_path / "t", b"{"))


def test_bfloat16_as_its_bits(tmp_path: Path) -> None:
    save_torch({"a": torch.tensor([1.0, -2.0], dtype=torch.bfloat16)}, tmp_path / "t")
    assert read_tensors(tmp_path / "t", ("BF16",))["a"].tolist() == [0x3F80, 0xC000]


REFUSED = {
    "no header": (b"", "not valid JSON"),
    "a list": ([], "expected a JSON object"),
    "no tensor": ({"a": 5}, "'a' is no tensor; expected dtype, shape and data_offsets"),
    "another key": ({"a": {**entry(), "x": 1}}, "'a' is no tensor"),
    "an unknown format": ({"a": entry("F8_E4M3")}, "'a' is 'F8_E4M3'; expected F64 or"),
    "no format": ({"a": entry(["F32"])}, "'a' is .*; expected F64 or"),
    "a negative size": ({"a": entry(shape=[-2])}, "expected whole numbers"),
    "a size of words": ({"a": entry(shape=["2"])}, "expected whole numbers"),
    "true as a size": ({"a": entry(shape=[True, 2])}, "expected whole numbers"),
    "many axes": ({"a": entry(shape=[1] * 99 + [2])}, "expected whole numbers"),
    "a trillion entries": ({"a": entry(shape=[10**12])}, r"'a' has 8 bytes; expected those of F32 \[1000000000000\]"),
    "shapes beyond 64 bits": ({"a": entry(shape=[2**62, 2**62])}, "'a' has shape"),
    "nothing times much": ({"a": entry(shape=[0, 2**62], offsets=[0, 0])}, "has shape"),
    "one offset": ({"a": entry(offsets=[8])}, "expected whole numbers"),
    "offsets turned round": ({"a": entry(offsets=[8, 0])}, "'a' has -8 bytes"),
    "beyond the end": ({"a": entry(offsets=[8, 16])}, "do not fill its 8 bytes one after the other"),
    "twice the same bytes": ({"a": entry(), "b": entry()}, "do not fill its 8 bytes one after the other"),
    "a hole": ({"a": entry(shape=[1], offsets=[4, 8])}, "do not fill its 8 bytes one after the other"),
    "too few": ({"a": entry(shape=[1], offsets=[0, 4])}, "do not fill its 8 bytes one after the other"),
    "none": ({}, "do not fill its 8 bytes one after the other"),
    "one name twice": (b'{"a": 1, "a": 2}', "the key 'a' stands there twice"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_headers_that_prove_nothing(name: str, tmp_path: Path) -> None:
    header, message = REFUSED[name]
    with pytest.raises(BadInput, match=message):
        read_tensors(write(tmp_path / "t", header, bytes(8)), ALL)


@pytest.mark.parametrize("length", [3, 10**6, 2**63, 2**64 - 1])
def test_lengths_beyond_the_file(length: int, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"its header is longer than the file|not valid JSON"):
        read_tensors(write(tmp_path / "t", {"a": entry()}, bytes(8), length), ALL)


def test_holes_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 1 << 40
    path = write(tmp_path / "t", {"a": entry("U8", [size], [0, size])})
    os.truncate(path, path.stat().st_size + size)
    monkeypatch.setattr(memory, "available", lambda: 1 << 30)
    with pytest.raises(BadInput, match=r"would take 2,048\.0 GiB of memory"):
        read_tensors(path, ALL)


def test_nothing_times_very_much(tmp_path: Path) -> None:
    """No entries, no bytes; and more than numpy can count if there were any."""
    with pytest.raises(BadInput, match=r"has shape \[0, 4611686018427387904, 4611686018427387904\]"):
        read_tensors(write(tmp_path / "t", {"a": entry(shape=[0, 2**62, 2**62], offsets=[0, 0])}), ALL)

"""npz archives: read as numpy reads them, and refused before a header that claims much makes numpy allocate it."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from byheart.errors import BadInput
from byheart.files import archives, memory
from byheart.files.archives import read_arrays


def archive(path: Path, *, deflated: bool = False, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


def npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    length = len(header).to_bytes(2 if version[0] == 1 else 4, "little")
    return b"\x93NUMPY" + version + length + header.encode() + data


def header(descr: str = "'<i8'", shape: str = "(1,)", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_read_as_they_were_written(save: object, tmp_path: Path) -> None:
    arrays = {
        "a": np.arange(6).reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big": np.arange(3, dtype=">i4"),
        "word": np.array("next-token"),
        "empty": np.zeros((0, 3), np.float32),
        "yes": np.array([True, False]),
    }
    save(tmp_path / "t.npz", **arrays)  # type: ignore[operator]
    found = read_arrays(tmp_path / "t.npz")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(found[name], array)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_all_versions_of_the_format(version: tuple[int, int], tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.arange(3), version=version)
    assert read_arrays(archive(tmp_path / "t.npz", a=buffer.getvalue()))["a"].tolist() == [0, 1, 2]


REFUSED = {
    "objects": (npy(header("'|O'")), "its header is not that of an array of plain numbers"),
    "structures": (npy(header("[('x', '<i8')]")), "its header is not that of an array of plain numbers"),
    "dates": (npy(header("'<M8[s]'")), "its header is not that of an array of plain numbers"),
    "bytes of any length": (npy(header("'|V9999999999'")), "its header is not that of an array of plain numbers"),
    "a word of a billion letters": (npy(header("'<U999999999'")), "not that of an array of plain numbers"),
    "words without letters": (npy(header("'<U0'", "(99999999999,)")), "not that of an array of plain numbers"),
    "a type that there is not": (npy(header("'<i3'"), bytes(3)), "cannot be read: data type '<i3' not understood"),
    "a negative size": (npy(header(shape="(-1,)")), "its header is not that of an array of plain numbers"),
    "a trillion entries": (npy(header(shape="(10000, 100000000)"), bytes(8)), "its header claims 8,000,000,000,000 by"),
    "sizes beyond 64 bits": (npy(header(shape="(" + "9" * 300 + ",)"), bytes(8)), "its header claims 7,999"),
    "too little": (npy(header(shape="(2,)"), bytes(8)), "does not hold the 16 bytes that its header claims"),
    "too much": (npy(header(), bytes(9)), "does not hold the 8 bytes that its header claims"),
    "code": (npy("__import__('os').system('true')"), "its header is not that of an array of plain numbers"),
    "a long header": (npy(header() + " " * 5000), "its header has 5,0.. bytes; expected at most 4,096"),
    "a length of gigabytes": (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}", "its header has 4,294,967,295 bytes"),
    "version 9": (npy(header(), bytes(8), b"\x09\x00"), "not a numpy array"),
    "a pickle": (b"\x80\x04N.", "not a numpy array"),
    "nothing": (b"", "not a numpy array"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_members_that_prove_nothing(name: str, tmp_path: Path) -> None:
    content, message = REFUSED[name]
    with pytest.raises(BadInput, match=rf"t\.npz: array 'a'.*{message}") as caught:
        read_arrays(archive(tmp_path / "t.npz", a=content))
    assert "\n" not in str(caught.value)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen megabytes of zeros in sixteen kilobytes."""
    zeros = npy(header("'|u1'", f"({1 << 24},)"), bytes(1 << 24))
    path = archive(tmp_path / "t.npz", deflated=True, a=zeros)
    assert path.stat().st_size < 1 << 15
    assert read_arrays(path)["a"].size == 1 << 24
    monkeypatch.setattr(memory, "available", lambda: 1 << 25)
    with pytest.raises(BadInput, match=r"t\.npz would take 64\.0 MiB of memory; expected at most 25\.6 MiB"):
        read_arrays(path)


def test_an_entry_that_lies_about_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight bytes, said to be four billion by the header and by the archive: no memory is taken for them."""
    path = archive(tmp_path / "t.npz", a=npy(header("'|u1'", "(4000000000,)"), bytes(8)))
    content = bytearray(path.read_bytes())
    entry = content.rfind(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = (4_000_000_512).to_bytes(4, "little")
    path.write_bytes(content)
    monkeypatch.setattr(memory, "available", lambda: 1 << 25)
    with pytest.raises(BadInput, match=r"would take 14\.9 GiB of memory"):
        read_arrays(path)
    with monkeypatch.context() as full:
        full.setattr(memory, "_disk_space", lambda: 0)
        with pytest.raises(
            BadInput, match=r"t\.npz: array 'a': an array would take 3\.7 GiB; expected at most 25\.6 MiB"
        ):
            read_arrays(path, narrow=True)
    with pytest.raises(BadInput, match=r"does not hold the 4,000,000,000 bytes that its header claims"):
        read_arrays(path, narrow=True)


def test_a_member_that_says_it_is_encrypted(tmp_path: Path) -> None:
    path = archive(tmp_path / "t.npz", a=npy(header(), bytes(8)))
    content = bytearray(path.read_bytes())
    content[content.rfind(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"array 'a' cannot be read: .*password"):
        read_arrays(path)


def test_names(tmp_path: Path) -> None:
    one = npy(header(), bytes(8))
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as file:
        file.writestr("a.npy", one)
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("a.npy", one)
    with pytest.raises(BadInput, match="holds 2 arrays; expected at most 32, with different names"):
        read_arrays(tmp_path / "t.npz")
    with pytest.raises(BadInput, match="holds 99 arrays; expected at most 32"):
        read_arrays(archive(tmp_path / "t.npz", **{f"a{k}": one for k in range(99)}))


@pytest.mark.parametrize("way", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packed_in_other_ways(tmp_path: Path, way: int) -> None:
    """Some kilobytes of bzip2 become gigabytes before anybody can count them."""
    with zipfile.ZipFile(tmp_path / "t.npz", "w", way) as file:
        file.writestr("a.npy", npy(header(), bytes(8)))
    with pytest.raises(BadInput, match="'a' is packed in an unknown way; expected stored or deflated"):
        read_arrays(tmp_path / "t.npz")


def test_narrow_ones_are_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Portion by portion, as wide as the widest of them; a sign only where there is one."""
    monkeypatch.setattr(archives, "_PORTION", 512)
    arrays = {
        "a": np.arange(120).reshape(40, 3),
        "later": np.append(np.zeros(99, np.int64), 300),
        "huge": np.append(np.arange(90, dtype=">u8"), np.uint64(2**64 - 1)),
        "below": np.append(np.arange(90), -1),
        "real": np.array([[0.5]]),
        "empty": np.zeros((0, 3), np.int64),
        "fortran": np.asfortranarray(np.arange(300).reshape(100, 3)),
    }
    np.savez(tmp_path / "t.npz", **arrays)  # type: ignore[arg-type]
    found = read_arrays(tmp_path / "t.npz", narrow=True)
    for name, array in arrays.items():
        assert found[name].shape == array.shape
        assert np.array_equal(found[name], array), name
    kinds = {name: found[name].dtype.name for name in ("a", "later", "huge", "below", "real", "fortran")}
    assert list(kinds.values()) == ["uint8", "uint16", "uint64", "int64", "float64", "uint16"]


def test_narrow_ones_take_what_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of file that is 128 kB of numbers is read with 200 kB, if no disk has room; wide ones are refused."""
    monkeypatch.setattr(archives, "_PORTION", 1 << 14)
    monkeypatch.setattr(memory, "MIN_MAPPED_BYTES", 0)
    monkeypatch.setattr(memory, "_disk_space", lambda: 0)
    narrow, wide = np.full(1 << 17, 7), np.full(1 << 17, 7)
    wide[-1] = 1000
    for name, array in (("narrow", narrow), ("wide", wide)):
        np.savez(tmp_path / f"{name}.npz", a=array)
    monkeypatch.setattr(memory, "available", lambda: 200_000)
    assert read_arrays(tmp_path / "narrow.npz", narrow=True)["a"].nbytes == 1 << 17
    with pytest.raises(
        BadInput, match=r"wide\.npz: array 'a': an array would take 0\.2 MiB; expected at most 0\.2 MiB"
    ):
        read_arrays(tmp_path / "wide.npz", narrow=True)
    with pytest.raises(BadInput, match=r"narrow\.npz would take 4\.0 MiB"):
        read_arrays(tmp_path / "narrow.npz")


@pytest.mark.parametrize("narrow", [False, True])
def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, narrow: bool) -> None:
    monkeypatch.setattr(archives, "_PORTION", 1 << 14)
    path, true = tmp_path / "t.npz", archives._header
    np.savez(path, a=np.zeros(1 << 16))

    def shrinking(file: object) -> object:
        os.truncate(path, 1 << 15)
        return true(file)

    monkeypatch.setattr(archives, "_header", shrinking)
    with pytest.raises(BadInput, match=r"^[^\n]*t\.npz: array 'a'[^\n]*$"):
        read_arrays(path, narrow=narrow)


def test_a_directory_that_would_take_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an archive says of the length of its directory is not believed."""
    monkeypatch.setattr(archives, "_MOST", 64)
    np.savez(tmp_path / "t.npz", a=np.zeros(3), b=np.zeros(3))
    with pytest.raises(BadInput, match=r"t\.npz: the archive cannot be read: its directory would take \d+ bytes"):
        read_arrays(tmp_path / "t.npz")

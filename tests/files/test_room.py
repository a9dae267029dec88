"""Arrays in memory or in files: the same to whoever fills them, and nothing left of them."""

import errno
import mmap
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from byheart.errors import BadInput
from byheart.files import memory
from byheart.files.memory import GrowingArray, check_room


def in_file(array: Any) -> bool:
    """Whether it lies in a file."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap | memoryview)


def mapped(folder: Path) -> int:
    """How many files of a folder this process has mapped, names or none."""
    return Path("/proc/self/maps").read_text(encoding="utf-8").count(str(folder))


def test_small_ones_lie_in_memory() -> None:
    assert not in_file(memory.allocate(1000, np.int64))


@pytest.mark.parametrize("shape", [7, (2, 3), (5, 0), 0])
def test_where_memory_is_scarce_they_lie_in_files(scarce: Path, shape: int | tuple[int, ...]) -> None:
    array = memory.allocate(shape, np.uint16)
    assert array.shape == np.empty(shape).shape
    assert (type(array), array.dtype) == (np.ndarray, np.uint16)
    assert in_file(array) == bool(array.size)
    array[...] = 300
    assert (array == 300).all()
    assert np.array_equal(pickle.loads(pickle.dumps(array)), array)
    assert not in_file(pickle.loads(pickle.dumps(array)))
    assert not [*scarce.iterdir()], "it has no name"


def test_a_file_goes_with_its_array(scarce: Path) -> None:
    if not Path("/proc/self/maps").exists():
        pytest.skip("no /proc")
    array = memory.allocate(1 << 20, np.uint8)
    part = array[5:]
    assert mapped(scarce) == 1
    del array
    assert mapped(scarce) == 1, "somebody has a part of it"
    del part
    assert mapped(scarce) == 0


def test_nothing_is_left_when_a_process_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, signal; import numpy as np; from byheart.files import memory;"
        "memory.MIN_MAPPED_BYTES, memory.MAPPED_FRACTION = 1, 1 << 62;"
        "array = memory.allocate(1 << 20, np.uint8); array[:] = 7; os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", script], env={**os.environ, "TMPDIR": str(tmp_path)}, check=False)
    assert ended.returncode == -9
    assert not [*tmp_path.iterdir()]


def test_what_is_large_is_what_memory_has_few_of(monkeypatch: pytest.MonkeyPatch, scarce: Path) -> None:
    monkeypatch.setattr(memory, "MAPPED_FRACTION", 8)
    monkeypatch.setattr(memory, "available", lambda: 8000)
    assert not in_file(memory.allocate(1000, np.uint8))
    assert in_file(memory.allocate(1001, np.uint8))


def test_a_disk_that_is_full_is_told_at_once(monkeypatch: pytest.MonkeyPatch, scarce: Path) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=10 << 20))
    monkeypatch.setattr(memory, "available", lambda: 20 << 20)
    assert in_file(memory.allocate(8 << 20, np.uint8))
    assert not in_file(memory.allocate(9 << 20, np.uint8)), "a share of the disk is left; memory has room for it"
    with pytest.raises(BadInput) as caught:
        memory.allocate(17 << 20, np.uint8)
    there = f"expected at most 16.0 MiB of memory and 8.0 MiB in {scarce}, 80 % of what is available"
    said = f"would take 17.0 MiB; {there}: set TMPDIR to a folder on a larger disk"
    assert str(caught.value) == f"an array {said}"
    check_room(16 << 20, "a text")
    with pytest.raises(BadInput) as caught:
        check_room(17 << 20, "a text")
    assert str(caught.value) == f"a text {said}"
    assert not [*scarce.iterdir()]


def test_a_disk_that_gives_less_than_it_says(monkeypatch: pytest.MonkeyPatch, scarce: Path) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(memory, "_reserve_blocks", full)
    assert not in_file(memory.allocate(100, np.uint8)), "memory has room for it"
    monkeypatch.setattr(memory, "available", lambda: 100)
    with pytest.raises(BadInput, match=r"an array would take .* larger disk \(Disk quota exceeded\)$"):
        memory.allocate(100, np.uint8)
    monkeypatch.setenv("TMPDIR", "/nowhere")
    assert memory.folder() != Path("/nowhere")


def test_blocks_are_there_before_they_are_written_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for here in (True, False):
        if not here:
            monkeypatch.delattr(os, "posix_fallocate", raising=False)
        with (tmp_path / f"{here}").open("w+b") as file:
            memory._reserve_blocks(file, 3 << 20)
            found = os.fstat(file.fileno())
            assert (found.st_size, found.st_blocks * 512 >= 3 << 20) == (3 << 20, True)


def test_numbers_that_come_one_after_the_other(scarce: Path) -> None:
    rng, all_of_them, growing = np.random.default_rng(0), list[int](), GrowingArray(expected=3)
    for width in (8, 8, 16, 8, 32, 16):
        part = rng.integers(0, 1 << width, rng.integers(0, 50))
        growing.widen(np.promote_types(growing.dtype, np.min_scalar_type(int(part.max(initial=0)))))
        growing.extend(part)
        all_of_them += part.tolist()
        assert len(growing) == len(all_of_them)
        assert growing.array.tolist() == all_of_them
    assert growing.dtype == np.uint32
    assert in_file(growing.array)

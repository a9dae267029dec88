"""Shards: the same files whoever solves them, in whatever order; what is solved stays solved, but is not believed."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from byheart.certificates import certify
from byheart.compiler import compile
from byheart.compiler.layouts import Unsolvable
from byheart.compiler.rectangular import shards, staging
from byheart.compiler.rectangular.shelf import Shelf
from byheart.errors import BadInput
from byheart.executors import Job, JobOutcome, Local, Workplace
from byheart.files.tensors import read_tensors, write_tensors
from byheart.progress import Report
from byheart.tasks import NextToken, random_next_token, save

SHARDS = 4


class Backwards(Local):
    """All tasks are out at once, and the last one ends first."""

    workers = slots = SHARDS

    def wait(self, report: Report | None) -> tuple[Job, JobOutcome]:
        self._started.rotate(1)
        return super().wait(report)


class Elsewhere(Workplace):
    def open(self, *shared: Any) -> Backwards:
        return Backwards(*shared)


@pytest.fixture(scope="module")
def task() -> NextToken:
    return random_next_token(examples=3000, length=4, vocab=50, labels=16, rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def files(task: NextToken, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one process that nobody disturbs writes."""
    return written(compile(task, shards=SHARDS), tmp_path_factory.mktemp("net"))


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards.pieces, "__defaults__", (1000,))


def written(built: Any, folder: Path) -> dict[str, bytes]:
    folder.mkdir(exist_ok=True)
    built.write(folder)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_files_are_the_same_in_whatever_order_tasks_end(
    task: NextToken, files: dict[str, bytes], tmp_path: Path
) -> None:
    assert "model.safetensors" in files
    assert written(compile(task, shards=SHARDS, executor=Elsewhere("processes")), tmp_path / "net") == files


def test_of_several_failures_the_first_shards_is_told(task: NextToken, monkeypatch: pytest.MonkeyPatch) -> None:
    """Backwards, shard 3 fails first; shard 1 is the one that decides what is tried next."""
    true, tried = shards.solve_shard, list[tuple[int, int]]()

    def solve(records: Any, sizes: Any, code: Any, draw: Any, shard: int, *more: Any, **how: Any) -> Any:
        tried.append((draw[1], shard))
        if draw[1] == 0 and shard in (1, 3):
            raise Unsolvable("as told", dependent=10**shard)
        return true(records, sizes, code, draw, shard, *more, **how)

    monkeypatch.setattr(shards, "solve_shard", solve)
    found = [compile(task, shards=SHARDS, executor=where) for where in (None, Elsewhere("processes"))]
    assert found[0].network.fingerprint == found[1].network.fingerprint
    assert {shard for attempt, shard in tried[:2] if attempt == 0} == {0, 1}, (
        "one after the other: no further than that"
    )
    assert found[0].chosen["attempts"] > 1


def interrupted(task: NextToken, shelf: Shelf, after: int) -> None:
    def stop(done: int, total: int, note: str = "", /) -> None:
        assert total == SHARDS
        if done == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile(task, shards=SHARDS, keep=shelf, report=stop)


@pytest.fixture
def shelf(task: NextToken, tmp_path: Path) -> Iterator[Shelf]:
    """With two shards, of a compile that was stopped after them."""
    found = Shelf(tmp_path / "net.parts")
    interrupted(task, found, 2)
    assert len([*found.folder.glob("shard-*")]) == 2
    return found


def test_what_is_solved_stays_solved(task: NextToken, files: dict[str, bytes], shelf: Shelf, tmp_path: Path) -> None:
    other = Shelf(shelf.folder)
    assert written(compile(task, shards=SHARDS, keep=other), tmp_path / "net") == files
    assert other.found == 2
    assert len([*shelf.folder.iterdir()]) == SHARDS, "and no records"
    another = Shelf(shelf.folder)
    compile(task, shards=SHARDS, keep=another, seed=1)
    assert another.found == 0, "of another seed nothing is taken"
    another.remove()
    assert not shelf.folder.exists()


def test_damaged_shards_are_solved_again(
    task: NextToken, files: dict[str, bytes], shelf: Shelf, tmp_path: Path
) -> None:
    one, other = sorted(shelf.folder.glob("shard-*"))
    one.write_bytes(one.read_bytes()[:-1])
    (tensor,) = read_tensors(other, ("F32",)).values()
    no_text: Any = ["0"]
    forged = (tensor[:, :, 1:], "0"), (tensor * np.float32(np.nan), "0"), (tensor, "17"), (tensor, no_text)
    for bad, free_bits in forged:
        write_tensors(other, {"W_out": np.ascontiguousarray(bad)}, {"free_bits": free_bits})
        again = Shelf(shelf.folder)
        interrupted(task, again, 1)
        assert again.found == 0
        other.unlink(missing_ok=True)
        one.write_bytes(b"no shard")
    assert written(compile(task, shards=SHARDS, keep=Shelf(shelf.folder)), tmp_path / "net") == files


def test_a_forged_shard_is_found_out_by_the_certificate(task: NextToken, shelf: Shelf) -> None:
    """It has the right name, shape and format, and other words: the network is not certified."""
    path = min(shelf.folder.glob("shard-*"))
    (tensor,) = read_tensors(path, ("F32",)).values()
    write_tensors(path, {"W_out": np.ascontiguousarray(tensor[:, :, ::-1])}, {"turn": "0", "free_bits": "0"})
    again = Shelf(shelf.folder)
    built = compile(task, shards=SHARDS, keep=again)
    assert again.found == 2
    certificate = certify(built, built.questions)
    assert not certificate.certified
    assert certificate.errors > 100


def test_a_link_in_place_of_the_folder_is_not_followed(task: NextToken, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "net.parts").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match=r"net\.parts: is a link, which somebody else may have laid"):
        compile(task, shards=SHARDS, keep=Shelf(tmp_path / "net.parts"))
    assert not any((tmp_path / "elsewhere").iterdir())


@pytest.mark.slow
def test_two_processes_write_the_same_files(task: NextToken, files: dict[str, bytes], tmp_path: Path) -> None:
    both = Workplace("processes", 2)
    shelf = Shelf(tmp_path / "net.parts")
    assert written(compile(task, shards=SHARDS, executor=both, keep=shelf), tmp_path / "net") == files
    assert len([*shelf.folder.iterdir()]) == SHARDS
    assert both.memory["peak_memory_worker"] == max(both.peaks)


def test_a_link_in_place_of_a_shard_is_not_written_through(task: NextToken, shelf: Shelf, tmp_path: Path) -> None:
    """Its name follows from the task: whoever knows that could lay it."""
    mine = tmp_path / "mine"
    mine.write_bytes(b"of somebody")
    path = min(shelf.folder.glob("shard-*"))
    path.unlink()
    path.symlink_to(mine)
    with pytest.raises(BadInput, match=r"net\.parts: holds 'shard-.*, which is no shard"):
        compile(task, shards=SHARDS, keep=shelf)
    with pytest.raises(BadInput, match="is a link, which is not written through"):
        shelf.keep(path.stem, np.zeros((2, 3, 1), np.float32), shards.Note(0, 1, 0, 0, "", ""))
    assert mine.read_bytes() == b"of somebody"


def test_records_on_the_shelf_are_those_in_memory(tmp_path: Path) -> None:
    """By hand: routes 0, 0, 2, 3 of four; and nothing is read that is not asked for."""
    sums, label = np.arange(8, dtype=np.uint16).reshape(4, 2), np.arange(4, dtype=np.int32)
    records = shards.Records(np.array([0, 0, 2, 3], np.uint32), sums, label)
    shelved = Shelf(tmp_path / "net.parts").records(records, 0)
    for first in range(5):
        for last in range(first, 5):
            there, here = shelved.between(first, last), records.between(first, last)
            assert there.fingerprint == here.fingerprint
            assert len(there) == len(here)
    assert shelved.between(1, 3).label.tolist() == [2]


def test_a_failure_holds_nothing_that_was_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its traceback would: a quarter of a GiB of a shard."""

    def solve(*_: Any, **__: Any) -> Any:
        raise Unsolvable("as told")

    monkeypatch.setattr(shards, "solve_shard", solve)
    wiring: Any = SimpleNamespace(precision=None)
    nothing: Any = None
    _, failure = staging.solve_shard(staging.NetworkDraft(wiring, nothing, nothing, {}, ()), 0, nothing, report=None)
    assert isinstance(failure, Unsolvable)
    assert failure.__traceback__ is None


def test_a_file_gives_the_same_files(task: NextToken, files: dict[str, bytes], tmp_path: Path) -> None:
    """Narrow integers out of an archive, records on the disk: the network is that of the task in memory."""
    save(task, tmp_path / "t.npz")
    built = compile(tmp_path / "t.npz", shards=SHARDS, keep=Shelf(tmp_path / "net.parts"))
    assert written(built, tmp_path / "net") == files
    assert built.questions.tokens.dtype == np.uint8

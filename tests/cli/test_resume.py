"""``byheart compile --resume``: what was solved before it was stopped is not solved again."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from byheart.compiler import compile
from byheart.compiler.rectangular.shelf import Shelf
from byheart.tasks import random_next_token, save

from .conftest import Run

GO = ("compile", "--task", "t.npz", "--shards", "3", "-o", "net")


@pytest.fixture
def stopped(work: Path) -> Path:
    """A folder with one shard of three."""
    task = random_next_token(examples=900, length=4, vocab=50, labels=16, rng=np.random.default_rng(0))
    save(task, work / "t.npz")

    def stop(done: int, total: int, note: str = "", /) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile(task, shards=3, keep=Shelf(work / "net.parts"), report=stop)
    return work


def test_a_compile_that_was_stopped_goes_on_if_it_is_asked_to(stopped: Path, run: Run) -> None:
    assert "net.parts: holds shards of a compile that did not end; expected --resume" in run(*GO).complaint
    assert not (stopped / "net").exists()
    said = run(*GO, "--resume", "--json")
    assert (said.code, said.json["shards_resumed"], said.json["errors"]) == (0, 1, 0)
    assert said.json["peak_memory"] > 1 << 20
    assert not (stopped / "net.parts").exists()
    first = {path.name: path.read_bytes() for path in (stopped / "net").glob("*.safetensors")}
    assert run(*GO, "--json").code == 0
    assert {path.name: path.read_bytes() for path in (stopped / "net").glob("*.safetensors")} == first


def test_stock_models_are_not_spread(run: Run, stopped: Path) -> None:
    said = run("compile", "--task", "t.npz", "-o", "other", "--layout", "uniform", "--executor", "processes")
    assert "--executor does not go with layout uniform" in said.complaint


def test_what_somebody_else_keeps_there_is_left_alone(work: Path, run: Run) -> None:
    """Not even if it is called as ours is, or lies behind a link; nothing is written into it."""
    save(random_next_token(examples=20, length=2, vocab=9, labels=4, rng=np.random.default_rng(0)), work / "t.npz")
    parts = work / "net.parts"
    for name in ("records-of2024/diary", "shard-00001.safetensors", "notes"):
        (parts / name).parent.mkdir(parents=True, exist_ok=True)
        (parts / name).write_text("mine", encoding="utf-8")
        said = run("compile", "--task", "t.npz", "-o", "net", "--resume").complaint
        assert f"net.parts: holds '{name.split('/')[0]}', which is no shard of Byheart's" in said
        Shelf(parts).remove()
        (parts / name).rename(work / "kept")
        assert (work / "kept").read_text(encoding="utf-8") == "mine"
        shutil.rmtree(parts)
    (work / "elsewhere").mkdir()
    kept = work / "elsewhere" / f"shard-{'0' * 64}.safetensors"
    kept.touch()
    parts.symlink_to(work / "elsewhere")
    assert "net.parts: is a link" in run("compile", "--task", "t.npz", "-o", "net", "--resume").complaint
    Shelf(parts).remove()
    assert kept.exists()
    assert not (work / "net").exists()


def test_what_a_session_that_was_killed_has_left_is_cleared_away(stopped: Path) -> None:
    """Killed while it wrote a shard, and with records; what only begins like these is left alone."""
    parts = stopped / "net.parts"
    (solved,) = parts.glob("shard-*")
    room = parts / f".{solved.name}.byheart"
    room.mkdir()
    (room / "lock").write_text("Byheart process 1 on here\n", encoding="utf-8")
    (room / "draft").write_bytes(b"half")
    shelf = Shelf(parts)
    shelf.check()
    shelf.tidy()
    assert [*parts.iterdir()] == [solved]
    shelf.remove()
    assert not parts.exists()

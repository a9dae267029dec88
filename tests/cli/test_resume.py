"""``byheart compile --resume``: what was solved before it was stopped is not solved again."""

from pathlib import Path

import numpy as np
import pytest

from byheart.constructions.reciting import compile
from byheart.constructions.reciting.shelf import Shelf
from byheart.tasks import random_next_token, save

from .conftest import Run

GO = ("compile", "--task", "t.npz", "--shards", "3", "-o", "net")


@pytest.fixture
def stopped(work: Path) -> Path:
    """A folder with one shard of three."""
    task = random_next_token(examples=900, length=4, vocab=50, labels=16, rng=np.random.default_rng(0))
    save(task, work / "t.npz")

    def stop(done: int, total: int, note: str = "", /) -> None:
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

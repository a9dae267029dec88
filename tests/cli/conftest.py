"""The commands in this process, as a user sees them: exit code, stdout, stderr."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byheart.cli.main import main
from byheart.tasks import random_next_token, save


@pytest.fixture(autouse=True)
def _threads(threads_as_before: None) -> None:
    """Some commands set PyTorch's threads."""


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        assert self.out.count("\n") == 1
        assert self.out.endswith("\n")
        found = json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        assert isinstance(found, dict)
        return found

    @property
    def complaint(self) -> str:
        """The one line on stderr."""
        assert self.code == 2, self
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("byheart: ")
        return self.err.strip()


Run = Callable[..., Said]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> Said:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        code = stopped.value.code
        return Said(code if isinstance(code, int) else int(code is not None), captured.out, captured.err)

    return call


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, with a small task."""
    monkeypatch.chdir(tmp_path)
    task = random_next_token(examples=20, length=3, vocab=30, labels=4, rng=np.random.default_rng(0))
    save(task, tmp_path / "t.npz")
    return tmp_path


@pytest.fixture
def network(work: Path, run: Run) -> Path:
    """A network folder for the task."""
    assert run("build", "interpolate", "--task", "t.npz", "-o", "net").code == 0
    return work / "net"

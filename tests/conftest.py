"""Hypothesis without deadlines (numba compiles, machines are busy), repeatable where CI decides; the longest first."""

import os
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers that each start a thread a core wait for each other: small trainings take twenty times as long.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

FIND = "byheart.certificates.as_used.find_spec"
LONG = ("test_pages.py", "test_fuzz.py", "test_killed.py", "test_benchmarks.py")
"""Files whose tests take longest: they begin first, so that no worker is left alone with one in the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first; the others stay in their order."""
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(scope="session", autouse=True)
def _transformers_is_not_asked() -> Iterator[None]:
    """Let certificates ask transformers, which takes seconds to start, only in tests that are about that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FIND, lambda name: None)
        yield


@pytest.fixture
def transformers_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates ask transformers, as they do by default."""
    monkeypatch.setattr(FIND, find_spec)


@pytest.fixture
def scarce(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Memory has room for no array at all: each lies in a file, in the folder that is given back."""
    from byheart.files import memory

    folder: Path = tmp_path_factory.mktemp("scarce")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)  # so that it is looked for again
    monkeypatch.setattr(memory, "MIN_MAPPED_BYTES", 1)
    monkeypatch.setattr(memory, "MAPPED_FRACTION", 1 << 62)
    return folder


@pytest.fixture(scope="session")
def everything() -> Callable[[Path], dict[str, bytes]]:
    """All files below a folder, with what they hold."""
    return lambda folder: {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")
    }


@pytest.fixture
def threads_as_before() -> Iterator[None]:
    """What a test sets PyTorch's threads to ends with it."""
    import torch

    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)

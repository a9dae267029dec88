"""The way in: the version, and whose mistake something is."""

from pathlib import Path

import pytest

import byheart

from .conftest import Run


def test_version(run: Run) -> None:
    said = run("--version")
    assert (said.code, said.out) == (0, f"byheart {byheart.__version__}\n")


def test_our_own_mistakes_are_told_apart(run: Run, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1 says that something is not true; a crash says nothing about it."""

    def crash(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("byheart.networks.load", crash)
    said = run("show", "net")
    assert said.code == 70
    assert "ZeroDivisionError: a bug" in said.err
    assert said.err.endswith("byheart: this is a mistake of Byheart's own, not of yours; please report it\n")

"""``build --read cells``, ``build --radius`` and ``certify --radius``, as users see them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byheart.tasks import random_next_token, save, separation

Run = Callable[..., Any]
BUILD = ("build", "kajitsuka-sato-2025", "--task", "v.npz", "-o", "net", "--read", "cells")
TASK = random_next_token(examples=20, length=3, vocab=12, labels=3, dim=3, rng=np.random.default_rng(0))
DELTA = separation(TASK).delta


@pytest.fixture
def vectors(work: Path) -> Path:
    """A task of vectors, v.npz."""
    save(TASK, Path("v.npz"))
    return work


def test_by_default_the_radius_of_the_folder_is_certified(vectors: Path, run: Run) -> None:
    said = run(*BUILD)
    assert said.code == 0
    assert "radius " in said.out
    said = run("certify", "net", "--task", "v.npz", "--controls", "--second-opinion")
    assert said.code == 0
    assert "of a token (proved, every ball)" in said.out
    stated = json.loads(Path("net/config.json").read_text())["about"]["radius"]
    assert json.loads(Path("net/certificate.json").read_text())["radius"] == stated
    assert run("certify", "net", "--task", "v.npz", "--recheck").code == 0


def test_a_radius_that_was_asked_for(vectors: Path, run: Run) -> None:
    assert run(*BUILD, "--radius", DELTA / 8).code == 0
    found = run("certify", "net", "--task", "v.npz", "--json").json
    assert found["certified"]
    assert found["radius"] == DELTA / 8
    smaller = run("certify", "net", "--task", "v.npz", "--radius", DELTA / 16)
    assert smaller.code == 0
    assert f"--radius {DELTA / 16!r} --recheck" in smaller.out


def test_a_radius_beyond_is_not_true(vectors: Path, run: Run) -> None:
    run(*BUILD)
    said = run("certify", "net", "--task", "v.npz", "--radius", DELTA / 3, "--second-opinion")
    assert said.code == 1
    assert "first undecided answer" in said.out
    assert "cannot say" in said.out, "the second opinion asks at the tokens only"
    assert f"give --radius {DELTA / 3!r}" in run("certify", "net", "--task", "v.npz", "--recheck").complaint


def test_refusals(vectors: Path, run: Run) -> None:
    assert f"δ = {DELTA!r} apart" in run(*BUILD, "--radius", DELTA / 2).complaint
    for radius in ("0", "-1", "nan"):
        assert "expected a positive number" in run(*BUILD, "--radius", radius).complaint
    assert "a radius is for read=cells" in run(*BUILD[:-2], "--radius", 0.1).complaint
    run(*BUILD)
    for radius in ("0", "-1", "nan"):
        assert "expected a positive number" in run("certify", "net", "--task", "v.npz", "--radius", radius).complaint


def test_token_ids_do_not_move(work: Path, run: Run) -> None:
    assert "has token ids" in run("build", "vardi-2022", "--task", "t.npz", "-o", "net", "--read", "cells").complaint
    assert run("build", "vardi-2022", "--task", "t.npz", "-o", "net").code == 0
    assert "reads token ids" in run("certify", "net", "--task", "t.npz", "--radius", 1).complaint


def test_a_radius_is_for_exact_networks(work: Path, run: Run) -> None:
    sizes = ("--examples", 5, "--length", 3, "--vocab", 6)
    assert run("task", "random", "--distribution", *sizes, "-o", "d.npz").code == 0
    assert run("build", "madden-2024", "--task", "d.npz", "-o", "soft").code == 0
    complaint = run("certify", "soft", "--task", "d.npz", "--radius", 1).complaint
    assert "radius is an option for an exact network; this is a softmax network" in complaint

"""``byheart certify --second-opinion``: verify.py beside the judge, on the same files."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from byheart.certificates import second_opinion
from byheart.tasks import load, save, shuffled

from .conftest import Run

FIXTURES = Path(__file__).parents[1] / "fixtures" / "0.1.0"


def test_it_agrees(network: Path, run: Run) -> None:
    said = run("certify", network, "--task", "t.npz", "--second-opinion")
    assert said.code == 0
    assert "second opinion: agrees (20 answers right, 0 wrong, 0 undecided, 20 of 20 questions, " in said.out
    again = run("certify", network, "--task", "t.npz", "--recheck", "--second-opinion", "--sample", 7, "--json").json
    assert again["second_opinion"]["agrees"] is True
    assert "7 of 20 questions, a sample (seed 0)" in again["second_opinion"]["found"]
    assert "second_opinion" not in run("certify", network, "--task", "t.npz", "--json").json


def test_both_find_what_is_wrong(network: Path, run: Run) -> None:
    save(shuffled(load("t.npz"), rng=np.random.default_rng(1)), "other.npz")
    said = run("certify", network, "--task", "other.npz", "-o", "other.json", "--second-opinion")
    assert said.code == 1
    assert "not certified" in said.out
    assert "second opinion: agrees (" in said.out


def test_answers_beside_the_file_are_not_held_against_it(work: Path, run: Run) -> None:
    """The program knows the files alone: as many answers differ from them as the user says."""
    shutil.copytree(FIXTURES / "edited", "edited")
    given = ("certify", "edited", FIXTURES / "a.txt", "--second-opinion", "--json")
    told = run(*given, "--set", "of wisdom=!").json
    assert (told["certified"], told["second_opinion"]["agrees"]) == (True, True)
    assert "77 answers right, 1 wrong" in told["second_opinion"]["found"]
    assert run(*given, "--set", "of wisdom=!", "--sample", 3).json["second_opinion"]["agrees"] is True
    told = run(*given).json
    assert (told["certified"], told["second_opinion"]["agrees"]) == (False, True)


def test_kinds_that_it_does_not_know(work: Path, run: Run) -> None:
    pytest.importorskip("transformers")
    shutil.copytree(FIXTURES / "llama-facts", "llama")
    said = run("certify", "llama", "--task", FIXTURES / "next.jsonl", "--second-opinion")
    assert said.code == 1, "a folder must not be able to switch it off unnoticed"
    assert "second opinion: cannot say (verify: ValueError: 'llama' is not a kind that is known here)" in said.out


@pytest.mark.parametrize(("wrong", "undecided", "asked"), [(1, 0, 20), (0, 1, 20), (1, 0, 5)])
def test_it_may_not_agree(
    network: Path, run: Run, monkeypatch: pytest.MonkeyPatch, wrong: int, undecided: int, asked: int
) -> None:
    """A program that finds something else is believed enough to say that the two do not agree."""
    found = {"right": asked - 1, "wrong": wrong, "undecided": undecided, "asked": asked, "questions": 20}
    found |= {"scope": "some", "not_right": [[3, None, 1]], "seconds": 0.0}
    program = Path("other.py")
    program.write_text(f"import sys; print({json.dumps(found)!r}); sys.exit(1)")
    monkeypatch.setattr(second_opinion, "PROGRAM", program)
    said = run("certify", network, "--task", "t.npz", "--second-opinion")
    assert said.code == 1
    assert "\ncertified" in f"\n{said.out}"
    assert "second opinion: does NOT agree" in said.out


def test_what_cannot_be_asked(network: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ("certify", network, "--task", "t.npz")
    assert "expected --second-opinion too" in run(*given, "--sample", 3).complaint
    assert "sample is 0; expected at least 1" in run(*given, "--second-opinion", "--sample", 0).complaint
    program = Path("broken.py")
    program.write_text("raise SystemExit(70)")
    monkeypatch.setattr(second_opinion, "PROGRAM", program)
    assert "cannot say (verify.py ended with 70)" in run(*given, "--second-opinion").out


def test_answers_that_the_network_does_not_give(work: Path, run: Run) -> None:
    """The files alone say nothing of an answer that the user wants to be another: that is no disagreement."""
    (work / "a b.txt").write_text("It was the best of times")
    assert run("compile", "a b.txt", "-o", "net").code == 0
    said = run("certify", "net", "a b.txt", "--set", "best=!", "--second-opinion")
    assert said.code == 1
    assert "second opinion: cannot say" in said.out
    again = run("certify", "net", "a b.txt").out
    assert "byheart certify net 'a b.txt' --recheck" in again, "as a shell understands it"

"""``byheart certify --count`` and ``--named``, as users see them; and what verify.py says of a count."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byheart.certificates import second_opinion
from byheart.tasks import load, save

from .conftest import Run

FIXTURES = Path(__file__).parents[1] / "fixtures" / "0.1.0"
COUNT = ("--task", "k.npz", "--count")


@pytest.fixture
def changed(network: Path) -> Path:
    """k.npz: the task of the network in net, with other labels for 3, 7, 8 and 9 of its 20 examples."""
    task = load("t.npz")
    labels = task.answers.copy()
    labels[[3, 7, 8, 9]] = (labels[[3, 7, 8, 9]] + 1) % 4
    save(task.with_answers(labels), Path("k.npz"))
    return network


def test_the_whole_way(changed: Path, run: Run) -> None:
    said = run("certify", "net", *COUNT, "--named", "wrong.csv", "--controls", "--second-opinion")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].startswith(
        "count certified: 16 of 20 answers right, 4 wrong, 0 undecided, exact, exhaustive (limbs)"
    )
    assert lines[1] == "wrong: 3, 7–9"
    assert lines[2].startswith("second opinion: agrees (16 answers right, 4 wrong, 0 undecided, 20 of 20 questions, ")
    assert lines[3].startswith("control, shuffled answers: found (")
    assert lines[4].startswith("control, perturbed weight: found (")
    assert lines[5] == "wrote wrong.csv: 4 of 20 answers"
    assert lines[6].endswith("byheart certify net --task k.npz --count --recheck")
    rows = Path("wrong.csv").read_text().splitlines()
    assert rows[0] == "example,position,outcome,expected,got"
    assert [row.split(",")[0] for row in rows[1:]] == ["3", "7", "8", "9"]
    stored = json.loads(Path("net/certificate.json").read_text())
    assert (stored["certified"], stored["errors"], stored["count"]["right"]) == (True, 4, 16)
    assert stored["count"]["named_wrong"] == "3, 7-9"
    again = run("certify", "net", *COUNT, "--recheck", "--json").json
    assert again["count"] == stored["count"]


def test_lies_are_refused(changed: Path, run: Run) -> None:
    assert run("certify", "net", *COUNT).code == 0
    stored = json.loads(Path("net/certificate.json").read_text())
    for lie in ({"right": 20}, {"named_wrong": "3, 7-8, 10"}, {"named_wrong": "3, 3, 7-9"}, {"digest": ""}):
        Path("net/certificate.json").write_text(json.dumps({**stored, "count": {**stored["count"], **lie}}))
        complaint = run("certify", "net", *COUNT, "--recheck").complaint
        assert "claims 20 answers right" in complaint or "names other answers" in complaint
    Path("net/certificate.json").write_text(json.dumps(stored))
    assert "give --count" in run("certify", "net", "--task", "k.npz", "--recheck").complaint
    assert run("certify", "net", *COUNT, "--recheck").code == 0


def test_what_is_not_decided_is_not_done(work: Path, run: Run) -> None:
    """Two equal logits that are one irrational number: exit code 1, and from how many to how many."""
    from byheart.networks import save as save_network
    from byheart.networks.softmax import SoftmaxNetwork
    from byheart.tasks import QueryLabels

    ones: Any = {name: np.ones((1, 1, 1)) for name in ("W_Q", "W_K", "W_V", "W_O")}
    save_network(SoftmaxNetwork(**ones, W_U=np.array([[1.0, 1.0, 0.5]])), "net")
    save(QueryLabels(contexts=[[1.0], [0.0]], queries=[[-1.0], [1.0]], labels=[0, 2]), Path("q.npz"))
    said = run("certify", "net", "--task", "q.npz", "--count", "--second-opinion")
    assert said.code == 1
    assert "count not certified: from 0 to 1 of 2 answers right, 1 wrong, 1 undecided" in said.out
    assert "\nwrong: 1\nundecided: 0\n" in said.out
    assert "second opinion: cannot say (0 answers right, 1 wrong, 1 undecided" in said.out


def test_refusals(changed: Path, run: Run) -> None:
    certify = ("certify", "net", "--task", "k.npz")
    assert (
        "--named is for the answers that a count names; expected --count too" in run(*certify, "--named", "w").complaint
    )
    assert "count and at_least = 3 are given" in run(*certify, "--count", "--at-least", 3).complaint
    for place, why in (
        ("k.npz", "is also what is read"),
        ("net/w.csv", "is also what is read"),
        ("no/w.csv", "folder"),
    ):
        assert why in run(*certify, "--count", "--named", place).complaint
    assert not Path("net/w.csv").exists()
    assert run(*certify, "--at-least", 16, "--second-opinion").code == 0
    assert run(*certify, "--at-least", 17, "--second-opinion").code == 1


def answering(**found: object) -> str:
    """A program in place of verify.py that says this."""
    said = {"undecided": 0, "asked": 20, "questions": 20, "scope": "some", "seconds": 0.0, **found}
    return f"import sys; print({json.dumps(said)!r}); sys.exit(1)"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"right": 16, "wrong": 4, "not_right": [[i, None, 0] for i in (3, 7, 8, 9)]}, "agrees"),
        ({"right": 16, "wrong": 4, "not_right": [[i, None, 0] for i in (3, 7, 8, 10)]}, "does NOT agree"),
        ({"right": 17, "wrong": 3, "not_right": [[i, None, 0] for i in (3, 7, 8)]}, "does NOT agree"),
        ({"right": 20, "wrong": 0, "not_right": []}, "does NOT agree"),
        ({"right": 15, "wrong": 4, "undecided": 1, "not_right": [[i, None, 0] for i in (1, 3, 7, 8, 9)]}, "cannot say"),
        ({"right": 14, "wrong": 5, "undecided": 1, "not_right": [[i, None, 0] for i in range(6)]}, "does NOT agree"),
        ({"right": 4, "wrong": 1, "asked": 5, "not_right": [[3, None, 0]]}, "cannot say"),
    ],
)
def test_a_second_count(
    changed: Path, run: Run, monkeypatch: pytest.MonkeyPatch, found: dict[str, Any], words: str
) -> None:
    Path("other.py").write_text(answering(**found))
    monkeypatch.setattr(second_opinion, "PROGRAM", Path("other.py"))
    said = run("certify", "net", *COUNT, "--second-opinion")
    assert f"second opinion: {words} (" in said.out
    assert said.code == (0 if words == "agrees" else 1)


def with_another_end(file: Path) -> list[str]:
    """The questions in ``file`` with another last answer, as the command takes them."""
    *lines, last = file.read_text().splitlines()
    if file.suffix == ".txt":
        Path("lie.txt").write_text("\n".join([*lines, f"{last}#"]))
        return ["lie.txt"]
    example = json.loads(last)
    name = "labels" if "labels" in example else "label"
    labels = np.array(example[name])
    labels.flat[-1] = labels.flat[-1] == 0
    Path("lie.jsonl").write_text("\n".join([*lines, json.dumps({**example, name: labels.tolist()})]))
    return ["--task", "lie.jsonl"]


@pytest.mark.parametrize(
    ("name", "file"),
    [("kim-2023", "seq.jsonl"), ("facts", "next.jsonl"), pytest.param("short", "a.txt", marks=pytest.mark.slow)],
)
def test_verify_counts_in_its_own_way(work: Path, run: Run, name: str, file: str) -> None:
    """Positions of sequences; float Transformers on tasks; texts, where a question is asked in several places."""
    shutil.copytree(FIXTURES / name, "net")
    given = with_another_end(FIXTURES / file)
    told = run("certify", "net", *given, "--count", "--second-opinion", "-o", "lie.json", "--json").json
    assert (told["certified"], told["second_opinion"]["agrees"]) == (True, True)
    assert 0 < told["errors"] < told["checked"]
    assert told["count"]["right"] == told["checked"] - told["errors"]


@pytest.mark.slow
def test_answers_that_the_user_wants_changed(work: Path, run: Run) -> None:
    """The program knows nothing of them: it cannot count them."""
    shutil.copytree(FIXTURES / "edited", "edited")
    given = ("certify", "edited", FIXTURES / "a.txt", "--count", "--second-opinion", "--json", "--set", "of wisdom=!")
    told = run(*given).json
    assert (told["certified"], told["errors"], told["second_opinion"]["agrees"]) == (True, 0, None)

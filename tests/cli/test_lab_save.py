"""``byheart lab save`` as users see it: train, keep, show, certify; and what is refused before anything is trained."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import byheart
from byheart.tasks import load, save

from .conftest import Run

FIXTURES = Path(__file__).parents[1] / "fixtures" / "0.1.0"

SAVE = ("lab", "save", "dana-2025-6")


def test_from_an_experiment_to_a_certificate(work: Path, run: Run) -> None:
    said = run(*SAVE, "--where", "heads=21", "-o", "net")
    assert said.code == 0
    assert "dana-2025-6, smoke: 380 parameters, trained in " in said.out
    assert "measured: last_accuracy 0." in said.out
    assert ", accuracy 0." in said.out
    check = said.out.split("check it with:  byheart ")[1].split()
    assert check == ["certify", "net", "--task", "net/task.npz", "--count"]
    told = run(*check, "--json").json
    assert told["certified"]
    assert told["undecided"] == 0
    measured = byheart.load("net").about["metrics"]["accuracy"]
    assert told["checked"] - told["errors"] == pytest.approx(100 * measured, abs=1)
    assert run(*check, "--recheck").code == 0
    assert run(*check[:4]).code == 1
    shown = run("show", "net", "--json").json
    assert shown["parameters"] == 380
    assert [part["part"] for part in shown["parts"]] == ["embedding", "positions", "attention", "unembedding"]
    assert run("show", "net", "--plot", "net.png").code == 0
    assert "only softmax networks have heads to show" in run("show", *check[1:4]).complaint


def test_a_trained_network_is_compared(work: Path, run: Run) -> None:
    """It stands beside what is built, with what it holds."""
    shutil.copytree(FIXTURES / "trained", "net")
    task = load(FIXTURES / "trained.npz")
    save(task.with_labels((task.answers + (np.arange(16) < 5)) % 4), "five.npz")
    said = run("compare", "--task", "five.npz", "--network", "net")
    assert said.code == 0
    (line,) = [line for line in said.out.splitlines() if line.split()[:1] == ["net"]]
    assert " 424 " in line
    assert "  11 of 16 right, " in line


@pytest.mark.slow
def test_pictures_are_of_what_is_built(work: Path, run: Run) -> None:
    given = ("compare", "--task", FIXTURES / "trained.npz", "--network", FIXTURES / "trained", "--plot", "p.svg")
    (row,) = [row for row in run(*given, "--json").json["tasks"][0]["rows"] if row["parameters"] == 424]
    assert (row["certified"], row["checked"], row["right"], row["build_seconds"]) == (True, 16, 16, None)
    assert "dana-2025" in Path("p.svg").read_text()
    assert "trained" not in Path("p.svg").read_text()


def test_what_cannot_be_compared(work: Path, run: Run) -> None:
    assert "missing/config.json: no such file" in run("compare", "--task", "t.npz", "--network", "missing").complaint
    shutil.copytree(FIXTURES / "trained", "net")
    said = run("compare", "--task", "t.npz", "--network", "net", "--plot", "net/p.png").complaint
    assert "net/p.png: is also what is read (net)" in said


def test_as_json_and_once_more(work: Path, run: Run) -> None:
    """A folder of ours is replaced, certificate and task too; one with something else in it is not."""
    first = run(*SAVE, "--where", "heads=1", "-o", "net", "--json").json
    assert (first["network"], first["task"], first["config"]["heads"]) == ("net", "net/task.npz", 1)
    assert first["metrics"] == byheart.load("net").about["metrics"]
    assert run("certify", "net", "--task", "net/task.npz", "--at-least", "1").code == 0
    assert run(*SAVE, "--where", "heads=21", "-o", "net").code == 0
    assert sorted(path.name for path in Path("net").iterdir()) == ["config.json", "model.safetensors", "task.npz"]
    Path("net/notes.txt").write_text("mine")
    assert "it holds 'notes.txt'" in run(*SAVE, "--where", "heads=1", "-o", "net").complaint


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((*SAVE, "-o", "new"), "2 configs match; choose one by heads (1, 21)"),
        ((*SAVE, "-o", "new", "--where", "heads=2"), "no config matches; heads is 1 or 21"),
        ((*SAVE, "-o", "new", "--where", "heads"), "--where has 'heads'; expected NAME=VALUE"),
        (("lab", "save", "dana-2025-7", "-o", "new"), "no experiment is called 'dana-2025-7'"),
    ],
)
def test_what_is_refused(work: Path, run: Run, words: tuple[str, ...], told: str) -> None:
    assert told in run(*words).complaint
    assert not Path("new").exists()


def test_what_verify_cannot_say(work: Path, run: Run) -> None:
    """The second opinion does not know such networks, and says so: what was asked for is not there."""
    run(*SAVE, "--where", "heads=1", "-o", "net")
    said = run("certify", "net", "--task", "net/task.npz", "--at-least", "1", "--second-opinion")
    assert said.code == 1
    assert "second opinion: cannot say (verify: ValueError: 'byheart-trained-1' is not a kind that is known" in said.out
    assert "Traceback" not in said.err


def test_damaged_configs_of_trained_networks(work: Path, run: Run) -> None:
    run(*SAVE, "--where", "heads=1", "-o", "net")
    path = Path("net/config.json")
    config = json.loads(path.read_text())
    config["blocks"][1]["steps"][1]["heads"] = 7
    path.write_text(json.dumps(config))
    for command in (("certify", "net", "--task", "net/task.npz"), ("show", "net")):
        assert (
            "net: attention.0.W_Q has 2 rows and attention.0.W_V 2; expected multiples of heads = 7"
            in run(*command).complaint
        )

"""``byheart lab save`` as users see it: train, keep, show, certify; and what is refused before anything is trained."""

import json
from pathlib import Path

import pytest

import byheart

from .conftest import Run

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
        ((*SAVE, "-o", "new"), "2 configs are as asked for; choose one by heads (1, 21)"),
        ((*SAVE, "-o", "new", "--where", "heads=2"), "no config is as asked for; heads is 1 or 21"),
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
    assert "second opinion: " in said.out
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

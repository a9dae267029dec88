"""Bad input: one line that names the place, exit code 2, one JSON object if asked for, and nothing left behind."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byheart import networks
from byheart.tasks import NextToken, load, random_distribution, random_next_token, save

Run = Callable[..., Any]
Everything = Callable[[Path], dict[str, bytes]]

BUILD = ("build", "interpolate", "--task")
RANDOM = ("task", "random", "-o", "r.npz")
QUERIES = (*RANDOM, "--vocab", "None")


def lines(*examples: object) -> str:
    return "".join(f"{json.dumps(example)}\n" for example in examples)


TWINS = {"tokens": [[0, 1], [2, 2], [1, 0]], "labels": [0, 0, 1]}
DUPLICATE = {"tokens": [[0, 1], [2, 2], [0, 1]], "labels": [0, 0, 1]}


def make(work: Path) -> None:
    """All bad files."""
    np.savez(work / "twins.npz", **{key: np.array(value) for key, value in TWINS.items()})
    np.savez(work / "duplicate.npz", **{key: np.array(value) for key, value in DUPLICATE.items()})
    for name, value in (("nan", np.nan), ("inf", -np.inf)):
        np.savez(work / f"{name}.npz", vectors=np.array([[[0.0]], [[value]]]), labels=np.array([0, 1]))
    np.savez(work / "labels.npz", tokens=np.array([[0], [1]]), labels=np.array([0, 7]), label_count=np.array(5))
    np.savez(work / "ids.npz", tokens=np.array([[0], [-1]]), labels=np.array([0, 1]))
    np.savez(work / "none.npz", tokens=np.zeros((0, 3), dtype=int), labels=np.zeros(0, dtype=int))
    (work / "empty.npz").write_bytes(b"")
    (work / "empty.jsonl").write_bytes(b"")
    (work / "truncated.npz").write_bytes((work / "t.npz").read_bytes()[:300])
    (work / "noise.npz").write_bytes(b"nothing that numpy knows")
    (work / "broken.jsonl").write_text(lines({"tokens": [0], "label": 0}) + '{"tokens": [1], "lab')
    (work / "ragged.jsonl").write_text(lines({"tokens": [0, 1], "label": 0}, {"tokens": [1], "label": 0}))
    (work / "nan.jsonl").write_text('{"vectors": [[NaN]], "label": 0}\n')
    (work / "labels.jsonl").write_text(
        lines({"task": "next-token", "label_count": 2}, {"tokens": [0], "label": 0}, {"tokens": [1], "label": 2})
    )
    (work / "t.txt").write_bytes((work / "t.npz").read_bytes())
    (work / "folder.npz").mkdir()
    save(random_distribution(examples=3, length=2, vocab=4, rng=np.random.default_rng(0)), work / "distribution.npz")


BAD_TASKS = {
    "twins.npz": "example 0 and example 2 are equal sequences up to order: asked for label 0 and label 1; --positions",
    "duplicate.npz": "example 0 and example 2 are equal sequences up to order: asked for label 0 and label 1",
    "nan.npz": "nan.npz: vectors[1, 0, 0] is nan; expected finite numbers",
    "inf.npz": "inf.npz: vectors[1, 0, 0] is -inf; expected finite numbers",
    "labels.npz": "labels.npz: labels[1] is 7; expected 0 to 4 (label_count = 5)",
    "ids.npz": "ids.npz: tokens[1, 0] is -1",
    "none.npz": "none.npz: tokens has shape (0, 3); expected at least one example",
    "empty.npz": "empty.npz: the file is empty",
    "empty.jsonl": "empty.jsonl: the file is empty",
    "missing.npz": "missing.npz: No such file or directory",
    "truncated.npz": "truncated.npz: the archive cannot be read",
    "noise.npz": "noise.npz: the archive cannot be read",
    "broken.jsonl": "broken.jsonl:2: not valid JSON",
    "ragged.jsonl": "ragged.jsonl:2: tokens has shape (1,); expected (2,), as on line 1",
    "nan.jsonl": "nan.jsonl:1: NaN found",
    "labels.jsonl": "labels.jsonl:3: labels[1] is 2; expected 0 to 1",
    "t.txt": "t.txt: unknown extension '.txt'; expected .npz or .jsonl",
    "folder.npz": "folder.npz: is a folder; expected a task file, .npz or .jsonl",
    "distribution.npz": "interpolate memorizes labels of sequences; the task is next-token-distribution",
}


@pytest.mark.parametrize("name", BAD_TASKS)
def test_build_refuses_bad_tasks(work: Path, run: Run, everything: Everything, name: str) -> None:
    make(work)
    before = everything(work)
    assert BAD_TASKS[name] in run(*BUILD, name, "-o", "net").complaint
    assert everything(work) == before


@pytest.mark.parametrize("name", BAD_TASKS)
def test_build_refuses_bad_tasks_in_json(work: Path, run: Run, name: str) -> None:
    make(work)
    said = run(*BUILD, name, "-o", "net", "--json")
    assert set(said.json) == {"error"}
    assert said.complaint == f"byheart: {said.json['error']}"


UNREADABLE = sorted(set(BAD_TASKS) - {"twins.npz", "duplicate.npz", "distribution.npz"})


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.parametrize(
    "command",
    [("certify", "net", "--task"), ("compare", "--task"), ("task", "show"), ("task", "check")],
    ids=["certify", "compare", "show", "check"],
)
def test_no_command_reads_them(
    network: Path, work: Path, run: Run, everything: Everything, command: tuple[str, ...], name: str
) -> None:
    make(work)
    before = everything(work)
    assert BAD_TASKS[name] in run(*command, name).complaint
    assert everything(work) == before


# Network folders.


def test_a_network_without_weights(network: Path, work: Path, run: Run, everything: Everything) -> None:
    (network / "model.safetensors").unlink()
    before = everything(work)
    complaint = run("certify", "net", "--task", "t.npz").complaint
    assert "net: model.safetensors cannot be read" in complaint
    assert "incomplete" in complaint
    assert everything(work) == before


@pytest.mark.parametrize("keep", [0, 4, 20, -1])
def test_truncated_weights(network: Path, work: Path, run: Run, everything: Everything, keep: int) -> None:
    weights = network / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])
    before = everything(work)
    assert "net: model.safetensors cannot be read" in run("certify", "net", "--task", "t.npz").complaint
    assert everything(work) == before


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "net/config.json: no such file; expected a folder with a network"),
        ("", "net/config.json: cannot be read"),
        ("{", "net/config.json: cannot be read"),
        ("[]", "net/config.json: cannot be read ([] found; expected a JSON object)"),
        ('{"model_type": "gpt_neox"}', "net/config.json: format 'gpt_neox'; expected a network"),
        ('{"format": "byheart-exact-1"}', "net: config.json does not describe an exact network"),
        ('{"format": "byheart-exact-1", "network": {"layers": []}}', "net: model.safetensors holds"),
    ],
)
def test_broken_descriptions(network: Path, run: Run, text: str | None, complaint: str) -> None:
    (network / "config.json").unlink()
    if text is not None:
        (network / "config.json").write_text(text)
    assert complaint in run("certify", "net", "--task", "t.npz").complaint


def test_no_network_at_all(work: Path, run: Run) -> None:
    (work / "a.txt").write_text("to be or not to be", encoding="utf-8")
    assert "nowhere/config.json: no such file" in run("certify", "nowhere", "--task", "t.npz").complaint
    assert "t.npz: is a file; expected a folder with a network" in run("certify", "t.npz", "--task", "t.npz").complaint
    assert "compile it first: byheart compile a.txt -o a" in run("recite", "a.txt").complaint


# A network and a task that do not belong together.


def test_tokens_and_vectors(network: Path, work: Path, run: Run, everything: Everything) -> None:
    save(random_next_token(examples=3, length=3, vocab=9, labels=4, dim=2, rng=np.random.default_rng(0)), "v.npz")
    save(random_next_token(examples=3, length=2, vocab=9, labels=4, rng=np.random.default_rng(0)), "short.npz")
    save(NextToken(tokens=[[0, 1, 30]], labels=[0]), "unknown.npz")
    make(work)
    before = everything(work)
    for task, complaint in {
        "v.npz": "the network reads tokens; the task has vectors",
        "short.npz": "the network reads sequences of 3 tokens; the task's have 2",
        "unknown.npz": "the network knows 30 tokens; the task has token id 30",
        "distribution.npz": "answers next-token and seq-to-seq tasks; the task is next-token-distribution",
    }.items():
        assert complaint in run("certify", "net", "--task", task).complaint
        assert complaint in run("certify", "net", "--task", task, "--json").json["error"]
    assert everything(work) == before


def test_a_certificate_for_another_task(network: Path, work: Path, run: Run, everything: Everything) -> None:
    assert run("certify", "net", "--task", "t.npz").code == 0
    task = load("t.npz")
    save(task.with_labels((task.labels + 1) % 4), "other.npz")
    before = everything(work)
    complaint = run("certify", "net", "--task", "other.npz", "--recheck").complaint
    assert f"net/certificate.json: is about task {task.fingerprint[:12]}…" in complaint
    assert everything(work) == before


def test_a_certificate_for_other_weights(network: Path, work: Path, run: Run) -> None:
    assert run("certify", "net", "--task", "t.npz", "-o", "c.json").code == 0
    assert run("build", "interpolate", "--task", "t.npz", "-o", "other", "--seed", 1).code == 0
    complaint = run("certify", "other", "--task", "t.npz", "-o", "c.json", "--recheck").complaint
    assert f"c.json: is about weights {networks.load(network).fingerprint[:12]}…" in complaint


def test_no_certificate(network: Path, run: Run) -> None:
    said = run("certify", "net", "--task", "t.npz", "--recheck")
    assert "net/certificate.json: no such file; certify the network first" in said.complaint
    (network / "certificate.json").write_text("{}")
    assert "net/certificate.json: not a certificate" in run("certify", "net", "--task", "t.npz", "--recheck").complaint


# Places to write to.


def test_a_folder_that_is_no_network_is_not_touched(work: Path, run: Run, everything: Everything) -> None:
    (work / "thesis").mkdir()
    (work / "thesis" / "chapter1.tex").write_text("years of work")
    (work / "model").mkdir()
    (work / "model" / "config.json").write_text('{"model_type": "llama"}')
    (work / "model" / "pytorch_model.bin").write_text("weeks of training")
    before = everything(work)
    for folder in ("thesis", "model", "t.npz"):
        complaint = run(*BUILD, "t.npz", "-o", folder).complaint
        assert f"{folder}: exists and is no network that Byheart wrote" in complaint
    assert everything(work) == before


@pytest.mark.parametrize(
    "command",
    [
        (*BUILD, "t.npz", "-o", "t.npz/net"),
        ("certify", "net", "--task", "t.npz", "-o", "missing/c.json"),
        ("certify", "net", "--task", "t.npz", "-o", "net"),
        ("compare", "--task", "t.npz", "--plot", "missing/p.png"),
        ("compare", "--task", "t.npz", "--plot", "p.nonsense"),
        ("task", "random", "-o", "missing/r.npz"),
        ("task", "random", "-o", "r.txt"),
        ("task", "random", "-o", "net"),
    ],
    ids=" ".join,
)
def test_places_that_cannot_be_written(
    network: Path, work: Path, run: Run, everything: Everything, command: tuple[str, ...]
) -> None:
    before = everything(work)
    assert Path(command[-1]).name in run(*command).complaint
    assert everything(work) == before


# Senseless settings.


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (("bounds", "--examples", 0), "examples is 0; expected at least 1"),
        (("bounds", "--examples", 10**18), f"examples is {10**18}; expected at most {10**12}"),
        (("bounds", "--length", 10**400), f"expected at most {10**12}"),
        (("bounds", "--examples", 10**12, "--length", 10**6, "--vocab", 10**6), f"expected at most {10**14}"),
        (("bounds", "--dim", 0), "dim is 0; expected at least 1"),
        (("bounds", "--bits", 0), "bits is 0; expected a positive number"),
        (("task", "random", "--examples", 0, "-o", "r.npz"), "examples is 0; expected at least 1"),
        (("task", "random", "--labels", 0, "-o", "r.npz"), "labels is 0; expected at least 1"),
        (("task", "random", "--vocab", 1, "--length", 1, "-o", "r.npz"), "expected at most 1"),
        (("task", "random", "--vocab", "None", "-o", "r.npz"), "vocab is None"),
        (("task", "random", "--distribution", "--seq-to-seq", "-o", "r.npz"), "--distribution"),
        (("task", "random", "--seed", -1, "-o", "r.npz"), "seed is -1"),
        ((*QUERIES, "--dim", 10**18, "--query", "own", "--real"), "1,000 random examples would take"),
        ((*QUERIES, "--dim", 2, "--query", "shared", "--examples", 10**12), "random examples would take"),
        ((*RANDOM, "--distribution", "--vocab", 10**12), "1,000 random distributions would take"),
        (("lab", "capacity", "--learning-rates", "nan"), "learning_rate is nan; expected a finite number above 0"),
        (("lab", "capacity", "--learning-rates", "inf"), "learning_rate is inf; expected a finite number above 0"),
        (("lab", "capacity", "--seeds", 10**18), "networks; expected at most 1000000: fewer seeds"),
        ((*BUILD, "t.npz", "-o", "net", "--seed", -1), "seed is -1"),
        (("build", "vardi-2022", "--task", "t.npz", "-o", "net", "--bits", 3), "got bits=3"),
        (("build", "vardi-2022", "--task", "t.npz", "-o", "net", "--depth", 3), "got depth=3"),
        (
            ("compare", "--task", "distribution.npz", "--plot", "p.png"),
            "expected a next-token or seq-to-seq task",
        ),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_senseless_settings(
    work: Path, run: Run, everything: Everything, command: tuple[object, ...], complaint: str
) -> None:
    make(work)
    before = everything(work)
    assert complaint in run(*command).complaint
    said = run(*command, "--json")
    assert complaint in said.json["error"]
    assert everything(work) == before


@pytest.mark.parametrize(
    "command",
    [("build", "nonsense", "--task", "t.npz", "-o", "net"), ("nonsense",), (), (*BUILD, "t.npz"), ("certify",)],
    ids=["construction", "command", "nothing", "no folder", "no network"],
)
def test_what_cannot_be_parsed(work: Path, run: Run, command: tuple[str, ...]) -> None:
    """The parser's own words go to stderr, with exit code 2; stdout stays empty, or holds one JSON object."""
    said = run(*command)
    assert said.code == 2
    assert said.out == ""
    assert said.err
    said = run(*command, "--json")
    assert said.code == 2
    assert "error" in said.json


def test_errors_are_one_line_even_for_long_paths(work: Path, run: Run) -> None:
    name = "/".join(["a very long name"] * 12) + ".npz"
    assert name in run("task", "show", name).complaint


def test_names_that_are_no_utf8(work: Path, run: Run) -> None:
    """A text's name is written into config.json."""
    name = "\udcff.txt"
    expected = r"byheart: \udcff.txt: the name is no UTF-8; expected one that can be written down beside the network"
    assert run("compile", name, "-o", "net").complaint == expected


def test_vocabularies_beyond_all_texts(work: Path, run: Run) -> None:
    """No text has so many pairs; the trainer is not told to make room for them."""
    pytest.importorskip("tokenizers")
    (work / "a.txt").write_bytes(b"so long, so long, so long")
    weights = []
    for vocab in (1000, 10**18):
        assert run("compile", "a.txt", "-o", f"net{vocab}", "--tokenizer", "bpe", "--vocab", vocab).code == 0
        weights.append((work / f"net{vocab}" / "tokenizer.json").read_bytes())
    assert weights[0] == weights[1]


def test_backends_that_matplotlib_does_not_know(network: Path) -> None:
    pytest.importorskip("matplotlib")
    command = [sys.executable, "-m", "byheart", "show", str(network), "--plot", "x.png", "--json"]
    said = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"MPLBACKEND": "junk"}, check=False)
    assert said.returncode == 2
    assert said.stderr == "byheart: MPLBACKEND is 'junk'; expected one that matplotlib knows, or none at all\n"
    assert said.stdout.count("\n") == 1, "one object, and not the parameters before it"

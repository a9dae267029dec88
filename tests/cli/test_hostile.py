"""Folders and files that somebody made to do harm: one line, exit code 2, and nothing changed outside."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import byheart
from byheart import networks
from byheart.certificates import certify, read
from byheart.cli.main import main
from byheart.constructions import registry
from byheart.files import memory
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, integers
from byheart.networks.transformer import answers
from byheart.networks.transformer.spec import Spec
from byheart.networks.transformer.transformer_network import from_arrays
from byheart.tasks import NextToken, save

Run = Callable[..., Any]
Everything = Callable[[Path], dict[str, bytes]]
TEXT = "to be or not to be"


@pytest.fixture
def recited(work: Path) -> Path:
    """A network that recites a text, and the text."""
    (work / "a.txt").write_text(TEXT)
    byheart.compile(work / "a.txt").save(work / "net")
    return work / "net"


def change(folder: Path, **about: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["about"] |= about
    (folder / "config.json").write_text(json.dumps(config))


# Reciting


def test_a_text_commands_no_terminal(work: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal obeys escape sequences: it gets them spelled out. A pipe and a file get each byte as it is."""
    hostile = "é\tä\x1b]0;title\x07\x9b2J\r\u202e\n".encode() + b"\x9b\xc3"  # ends within a letter
    (work / "a.txt").write_bytes(hostile)
    byheart.compile(work / "a.txt").save(work / "net")

    def on_terminal(*words: object) -> str:
        ours, theirs = pty.openpty()
        with os.fdopen(theirs, "w", encoding="utf-8") as terminal, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", terminal)
            with pytest.raises(SystemExit) as stopped:
                main([str(word) for word in words])
            assert stopped.value.code == 0
            terminal.write("\0")
            terminal.flush()
            text = b""
            while not text.endswith(b"\0"):  # a terminal gives what it has by now
                text += os.read(ours, 1 << 12)
        os.close(ours)
        return text.decode().removesuffix("\0").replace("\r\n", "\n")

    assert on_terminal("recite", "net") == r"é	ä\x1b]0;title\x07\x9b2J\r\u202e" + "\n" + r"\x9b\xc3"
    spelled = on_terminal("recite", "net", "--tokens", len(hostile) - 3, "--json")
    assert spelled.removesuffix("\n").isprintable()
    assert json.loads(spelled)["text"] == hostile[:-2].decode()
    assert run("recite", "net", "-o", "copy").code == 0
    assert (work / "copy").read_bytes() == hostile
    piped = subprocess.run([sys.executable, "-m", "byheart", "recite", "net"], capture_output=True, check=True)
    assert piped.stdout == hostile


def text(**changes: object) -> list[dict[str, object]]:
    return [{"name": "a.txt", "tokens": 18, "prompt": [116]} | changes]


NO_TEXTS = {
    "a name with a zero byte": text(name="a\0b"),
    "no name": text(name=""),
    "a number as name": text(name=5),
    "a length of a trillion": text(tokens=10**12),
    "a negative length": text(tokens=-1),
    "true as length": text(tokens=True),
    "a prompt of words": text(prompt=["t"]),
    "half a surrogate": text(name="\ud800"),
}


@pytest.mark.parametrize("name", NO_TEXTS)
@pytest.mark.parametrize("command", [("recite", "net"), ("recite", "net", "--all-to", "said")])
def test_texts_that_are_none(recited: Path, run: Run, command: tuple[str, ...], name: str) -> None:
    change(recited, texts=NO_TEXTS[name])
    assert "config.json: about.texts" in (said := run(*command).complaint) or "surrogate" in said
    assert not (recited.parent / "said").exists()


@pytest.mark.parametrize("name", ["../../out.txt", "/out.txt", "..", "//out.txt", "a/../../out.txt"])
def test_names_do_not_lead_outside(recited: Path, run: Run, everything: Everything, name: str) -> None:
    change(recited, texts=text(name=name))
    before = everything(recited.parent)
    assert run("recite", "net", "--all-to", "deep/said").code == (2 if name == ".." else 0)
    after = everything(recited.parent)
    new = {path for path in after if path not in before}
    assert all(path == "deep" or path.startswith("deep/said") for path in new)
    assert {path: after[path] for path in before} == before


def test_two_texts_of_one_name(recited: Path, run: Run) -> None:
    change(recited, texts=[*text(), *text(name="/a.txt")])
    assert "a text has no name, or that of another" in run("recite", "net", "--all-to", "said").complaint


@pytest.mark.parametrize("end", [10**15, -1, "x", True, [256], 2.0])
def test_ends_that_are_none(recited: Path, run: Run, end: object) -> None:
    change(recited, end=end)
    for command in (
        ("recite", "net"),
        ("recite", "net", "--all-to", "said"),
        ("edit", "net", "-o", "net", "--set", "or=x"),
    ):
        assert f"about.end is {end!r}; expected null or a token" in run(*command).complaint


@pytest.mark.parametrize("threads", [0, -1, 100_000])
def test_threads(recited: Path, run: Run, threads: int) -> None:
    expected = f"threads is {threads}; expected a whole number from 1 to 256"
    assert expected in run("recite", "net", "--threads", threads).complaint
    assert run("build", "interpolate", "--task", "t.npz", "-o", "exact").code == 0
    assert expected in run("certify", "exact", "--task", "t.npz", "--threads", threads).complaint


# Editing

NO_RECIPES = {
    "none": None,
    "no lengths": {"lengths": []},
    "long codes": {"lengths": [10**9] * 257},
    "codes that are no prefix code": {"lengths": [1] * 257},
    "codes of words": {"lengths": ["1"] * 257},
    "a draw of words": {"draw": ["a", 0]},
    "a negative draw": {"draw": [-1, 0]},
    "a billion columns": {"sizes": {"columns": 10**9}},
    "no columns": {"sizes": {"columns": 0}},
    "rows beyond the network": {"sizes": {"starts": 10**6}},
    "a strange word": {"sizes": {"word": 5}},
    "a fraction": {"sizes": {"margin": 0.5}},
    "a strange precision": {"settings": {"precision": "int8"}},
    "deafening logits": {"loudness": 10**6},
    "logits of words": {"loudness": "10"},
}


@pytest.mark.parametrize("name", NO_RECIPES)
def test_recipes_that_are_none(recited: Path, run: Run, everything: Everything, name: str) -> None:
    recipe = json.loads((recited / "config.json").read_text())["about"]["recipe"]
    for key, value in (NO_RECIPES[name] or {"sizes": None}).items():
        recipe[key] = recipe[key] | value if isinstance(value, dict) else value
    change(recited, recipe=recipe)
    before = everything(recited.parent)
    assert "recipe" in run("edit", "net", "-o", "net", "--set", "or=x").complaint
    assert everything(recited.parent) == before


# Certificates


@pytest.mark.parametrize(
    "fields",
    [{"seconds": "long"}, {"certified": 1}, {"errors": None}, {"versions": {"numpy": []}}, {"counterexample": [1]},
     {"counterexample": {"example": 0, "position": None, "expected": {}, "got": ""}}, {"smallest_margin": "wide"},
     {"task": 5}, {"note": ""}, {"statement": ["all"]}],
    ids=str,
)  # fmt: skip
def test_certificates_of_other_types(network: Path, run: Run, fields: dict[str, object]) -> None:
    """Whatever reads one would print it, and fall over."""
    assert run("certify", "net", "--task", "t.npz").code == 0
    path = network / "certificate.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    complaint = run("certify", "net", "--task", "t.npz", "--recheck").complaint
    assert "certificate.json: not a certificate (" in complaint
    assert next(iter(fields)) in complaint.partition("; ")[0]


def test_a_certificate_three_thousand_deep(network: Path, run: Run) -> None:
    (network / "certificate.json").write_text('{"format": ' + "[" * 3000 + "]" * 3000 + "}")
    assert "3,001 deep in each other" in run("certify", "net", "--task", "t.npz").complaint


def test_a_certificate_that_never_ends(network: Path, run: Run) -> None:
    os.mkfifo(network / "certificate.json")
    assert "certificate.json: is no file" in run("certify", "net", "--task", "t.npz").complaint
    (network / "certificate.json").unlink()
    (network / "certificate.json").symlink_to("/dev/zero")
    assert "is no file" in run("certify", "net", "--task", "t.npz", "--recheck").complaint


def test_one_label_in_json(work: Path, run: Run) -> None:
    """Its margin is infinite, which JSON has no word for."""
    save(NextToken([[0, 1], [1, 2]], [0, 0], label_count=1), work / "one.npz")
    assert run("compile", "--task", "one.npz", "-o", "one").code == 0
    assert run("certify", "one", "--task", "one.npz", "--json").json["smallest_margin"] is None
    assert read(work / "one" / "certificate.json").certified


# Controls


def test_controls_of_networks_without_a_weight_that_counts(work: Path, run: Run) -> None:
    zero = FeedForward((Affine(integers([[0]]), integers([0])),))
    save(NextToken([[0], [1]], [0, 0]), work / "zeros.npz")
    networks.save(ExactNetwork((zero,), "tokens", "last", 1), work / "zero")
    assert run("certify", "zero", "--task", "zeros.npz", "--controls").code == 0
    save(NextToken([[0], [1]], [0, 1]), work / "same.npz")
    networks.save(ExactNetwork((), "tokens", "last", 1), work / "empty")
    assert certify(work / "empty", work / "same.npz").certified
    assert "the network has no weights" in run("certify", "empty", "--task", "same.npz", "--controls").complaint


def test_controls_of_a_float_network_of_zeros(recited: Path, run: Run) -> None:
    network: Any = networks.load(recited)
    zeros = {name: torch.zeros_like(weight) for name, weight in network.weights.items()}
    networks.save(type(network)(network.spec, zeros, about=network.about, files=network.files), recited)
    assert "all weights of the network are 0" in run("certify", "net", "a.txt", "--controls").complaint


# Sizes


@pytest.mark.parametrize("size", ["vocab", "label_count"])
@pytest.mark.parametrize("large", [10**9, 10**18, 2**63 - 1])
@pytest.mark.parametrize(
    "command", [("build", "dana-2025"), ("build", "madden-2024"), ("build", "folding"), ("compile",)]
)
def test_sizes_that_nothing_could_hold(
    work: Path, run: Run, command: tuple[str, ...], large: int, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused by arithmetic, on any machine; or so many labels cost a construction nothing."""
    monkeypatch.setattr(memory, "available", lambda: 1 << 30)
    header = {"task": "next-token", "vocab": 3, "label_count": 2} | {size: large}
    rows = [{"tokens": [0, 1], "label": 0}, {"tokens": [1, 2], "label": 1}, {"tokens": [2, 2], "label": 0}]
    (work / "large.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (header, *rows)))
    said = run(*command, "--task", "large.jsonl", "-o", "large")
    free = command[-1] == "folding" and size == "label_count" and large < 2**60
    assert said.code == (0 if free else 2), said.err
    assert said.err.count("\n") == (0 if free else 1)


def test_a_table_that_does_not_fit(work: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1 << 30)
    save(NextToken([[0, 1], [1, 2]], [0, 1], vocab=10**8), work / "wide.npz")
    complaint = run("build", "interpolate", "--task", "wide.npz", "-o", "net").complaint
    assert "an embedding table of 100,000,000 rows would take 6.0 GiB of memory; expected at most 0.8 GiB" in complaint


# Options that would be ignored


def test_options_without_effect_are_refused(work: Path, run: Run) -> None:
    (work / "a.txt").write_text(TEXT)
    assert (
        "vocab is 300, which is for the tokenizer bpe" in run("compile", "a.txt", "--vocab", 300, "-o", "x").complaint
    )
    complaint = run("compile", "--task", "t.npz", "--tokenizer", "bpe", "-o", "x").complaint
    assert "tokenizer is bpe, which is for texts; a task has its tokens already" in complaint


OWN = """
from byheart.constructions import Construction, Made
from byheart.constructions.interpolate import CONSTRUCTION as other
def build(task, settings, rng, report):
    made = other.build(task, other.settings(), rng, report)
    return Made(made.network, made.plan, {"seen": MEMORY_VARIABLE})
CONSTRUCTION = Construction(name="mine", summary="mine", build=build)
"""


@pytest.mark.parametrize("chosen", ["{1}", "float('nan')", "object()"])
def test_what_an_own_construction_has_chosen(
    work: Path, run: Run, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "CONSTRUCTIONS", dict(registry.CONSTRUCTIONS))
    (work / "mine.py").write_text(OWN.replace("MEMORY_VARIABLE", chosen))
    complaint = run("build", "mine", "--construction", "mine.py", "--task", "t.npz", "-o", "net").complaint
    assert "mine: what it has chosen cannot be written as JSON" in complaint
    assert not (work / "net").exists()


def test_a_network_that_is_wide_is_read_in_small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight billion logits if 2¹⁴ tokens were read at once."""
    labels, portions = 500_000, []
    spec = Spec(3, labels, 1, 1, "float32", embeds=(0,), unembeds=(0,), sublayers=())
    arrays = {
        "embedding.W_E": np.ones((3, 1)),
        "unembedding.W_U": np.zeros((labels, 1)),
        "unembedding.b_U": np.zeros(labels),
    }
    network = from_arrays(spec, {name: array.astype(np.float32) for name, array in arrays.items()})
    streams = answers.streams
    monkeypatch.setattr(answers, "streams", lambda *given, portion: portions.append(portion) or streams(*given))
    found = answers.answers(network.module, np.zeros(2, np.int64), np.array([0, 2]), np.array([0, 1]))
    assert found.labels.tolist() == [0, 0]
    assert portions == [answers.MOST_NUMBERS // labels]


def test_a_certificate_that_is_a_link(work: Path, run: Run) -> None:
    """The folder is a stranger's, and the link leads to a certificate of one's own."""
    (work / "a.txt").write_text(TEXT)
    for name in ("mine", "theirs"):
        assert run("compile", "a.txt", "-o", name).code == 0
    before = (work / "mine" / "certificate.json").read_bytes()
    (work / "theirs" / "certificate.json").unlink()
    (work / "theirs" / "certificate.json").symlink_to(work / "mine" / "certificate.json")
    assert "is a link, which somebody else may have laid" in run("certify", "theirs", "a.txt").complaint
    assert (work / "mine" / "certificate.json").read_bytes() == before


@pytest.mark.parametrize(("groups", "units"), [(6 * 10**9, "a"), (10**18, "a"), (9 * 10**18, [1]), (1, None)])
def test_units_that_are_no_numbers(work: Path, run: Run, groups: int, units: object) -> None:
    """A string times six billion is six gigabytes."""
    (work / "a.txt").write_text(TEXT)
    assert run("compile", "a.txt", "-o", "net").code == 0
    config = json.loads((work / "net" / "config.json").read_text())
    parts = {"up": "diagonal", "reads": [], "writes": [], "up_reads": [], "groups": groups, "units": units}
    config["spec"]["sublayers"].append({"kind": "feed-forward", "name": "odd", "act": "relu", **parts})
    (work / "net" / "config.json").write_text(json.dumps(config))
    assert "expected whole numbers" in run("show", "net").complaint


def test_a_network_without_layers(work: Path, run: Run) -> None:
    empty = ExactNetwork((), inputs="tokens", outputs="last", length=1)
    networks.save(empty, work / "net")
    assert run("show", "net").code in (0, 2)

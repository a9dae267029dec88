"""A stock Qwen2-MoE on the command line: compiled, certified, heard, shown, edited."""

import importlib.util
import json
from pathlib import Path

import pytest

from byheart import networks

from .conftest import Run

pytest.importorskip("transformers")
TEXTS = {
    "hamlet.txt": b"To be, or not to be, that is the question:\nWhether 'tis nobler in the mind to suffer\n",
    "macbeth.txt": b"Tomorrow, and tomorrow, and tomorrow,\nCreeps in this petty pace from day to day\n",
}


@pytest.fixture
def net(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        Path(name).write_bytes(text)
    said = run("compile", *TEXTS, "-o", "net", "--layout", "experts")
    assert said.code == 0
    assert "by transformers' Qwen2MoeForCausalLM" in " ".join(said.out.split())
    return tmp_path / "net"


def test_from_compiling_to_showing(net: Path, run: Run) -> None:
    config = json.loads((net / "config.json").read_text())
    assert config["architectures"] == ["Qwen2MoeForCausalLM"]
    chosen = config["about"]["chosen"]
    assert chosen["parameters_planned"] == networks.load(net).account.dense
    told = run("certify", "net", *TEXTS, "--controls", "--json").json
    assert told["certified"]
    assert [lie["found"] for lie in told["controls"]] == [True, True]
    assert run("certify", "net", *TEXTS, "--recheck").code == 0
    Path("lear.txt").write_bytes(b"Blow, winds, and crack your cheeks!")
    assert run("certify", "net", "lear.txt", "-o", "c.json").code == 1
    assert run("recite", "net", "--all-to", "said").code == 0
    assert {path.name: path.read_bytes() for path in Path("said").iterdir()} == TEXTS
    assert "a stock Qwen2-MoE" in run("show", "net").out
    assert {"experts", "gate_proj"} < {part["part"] for part in run("show", "net", "--json").json["parts"]}
    refused = run("explore", "net", "--no-open").complaint
    assert refused.endswith("whose table it shows: compile the same texts without --layout")
    assert not Path("explorer.html").exists()
    if importlib.util.find_spec("gguf"):
        written = run("export", "net", "--gguf", "x.gguf").out
        assert "tensors, read back and equal bit for bit; llama.cpp needs" in written


def test_editing(net: Path, run: Run) -> None:
    """One matrix of one expert changes, and both files say the same of it."""
    before = dict(networks.load(net).tensors())
    said = run("edit", "net", "-o", "net", "--answer-only", "--set", "nobler=s", "--json")
    assert said.code == 0
    after = dict(networks.load(net).tensors())
    changed = {name for name, tensor in before.items() if (tensor != after[name]).any()}
    assert len(changed) == 1
    assert ".experts." in changed.pop()
    assert said.json["words_changed"] > 0
    assert said.json["after"]["certified"]
    assert run("certify", "net", *TEXTS, "--set", "nobler=s").code == 0
    assert run("certify", "net", *TEXTS, "-o", "c.json").code == 1


def test_a_second_opinion_cannot_say(net: Path, run: Run) -> None:
    """As of a Llama: the program for second opinions does not know transformers' models."""
    told = run("certify", "net", *TEXTS, "--second-opinion", "--json").json
    assert told["second_opinion"]["agrees"] is None
    assert "'qwen2_moe' is not a kind that is known here" in told["second_opinion"]["found"]


def test_refused(net: Path, run: Run) -> None:
    complaint = run("compile", "hamlet.txt", "-o", "other", "--layout", "experts", "--words", 24).complaint
    assert "the layout experts is for float32 and words of its own sizes; omit precision and words" in complaint
    assert not Path("other").exists()

"""compile, recite, certify, edit, show: with real files, as a user sees them."""

import itertools
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from byheart import networks
from byheart.cli.output import unescaped
from byheart.files import memory
from byheart.networks.transformer.module import Transformer
from byheart.tasks import NextToken, load, random_next_token, random_seq_to_seq, save, texts

Run = Callable[..., Any]
Everything = Callable[[Path], dict[str, bytes]]

HAMLET = b"To be, or not to be, that is the question:\nWhether 'tis nobler in the mind to suffer\n"
OTHER = b"To bed, to bed; there's knocking at the gate.\n"
KEYS = {
    "examples",
    "window",
    "labels",
    "parameters",
    "parameters_padded",
    "bits",
    "bits_lzma",
    "peak_memory",
    "peak_memory_worker",
    "bits_per_parameter",
    "bits_per_parameter_padded",
    "errors",
    "load",
    "seconds",
}


@pytest.fixture
def here(work: Path) -> Path:
    """The folder to be in, with two texts."""
    (work / "hamlet.txt").write_bytes(HAMLET)
    (work / "macbeth.txt").write_bytes(OTHER)
    return work


@pytest.fixture
def one(here: Path, run: Run) -> Path:
    """A network that recites one text."""
    assert run("compile", "hamlet.txt", "-o", "net").code == 0
    return here / "net"


@pytest.fixture
def two(here: Path, run: Run) -> Path:
    assert run("compile", "hamlet.txt", "macbeth.txt", "-o", "net").code == 0
    return here / "net"


@pytest.fixture
def facts(here: Path, run: Run) -> Path:
    """A network that answers the task t.npz."""
    assert run("compile", "--task", "t.npz", "--window", "3", "-o", "net").code == 0
    return here / "net"


# ── compile ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_compile(here: Path, run: Run) -> None:
    said = run("compile", "hamlet.txt", "macbeth.txt", "-o", "net")
    assert said.code == 0
    assert said.err == ""
    assert "hamlet.txt, macbeth.txt: " in said.out
    assert "certified: " in said.out
    assert "2 texts share their beginnings: begin hamlet.txt with at least 'To be,', for example" in said.out
    assert "hear it with:  byheart recite net" in said.out
    assert {path.name for path in (here / "net").iterdir()} == {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "modeling_byheart.py",
        "tokenizer.json",
        "tokenizer_config.json",
        "certificate.json",
        "README.md",
    }
    card = (here / "net" / "README.md").read_text(encoding="utf-8")
    assert "> The label's logit is the largest, for every question, " in card
    assert " certified: " in card
    assert not [path for path in here.iterdir() if path.name.startswith(".")]


def test_compile_json(here: Path, run: Run) -> None:
    found = run("compile", "hamlet.txt", "-o", "net", "--json").json
    assert set(found) == KEYS
    assert found["examples"] == len(HAMLET)
    assert found["labels"] == 257
    assert found["window"] == 8
    assert found["errors"] == 0
    shapes = networks.load(here / "net").spec.shapes().values()
    assert found["parameters"] == sum(int(np.prod(shape)) for shape in shapes)
    assert found["parameters_padded"] > found["parameters"]
    assert found["bits_per_parameter"] == found["bits"] / found["parameters"]
    assert found["bits_per_parameter_padded"] == found["bits"] / found["parameters_padded"]
    times = np.bincount(np.frombuffer(HAMLET[1:] + b"\x00", np.uint8))
    times = times[times > 0]
    assert found["bits"] == pytest.approx(float((times * np.log2(len(HAMLET) / times)).sum()))
    assert found["bits_lzma"] % 8 == 0
    assert found["bits_lzma"] > 8 * 32
    assert json.loads((here / "net" / "certificate.json").read_bytes())["certified"]


def test_compile_a_task(here: Path, run: Run) -> None:
    found = run("compile", "--task", "t.npz", "-o", "net", "--json").json
    assert set(found) == KEYS
    assert found["bits_lzma"] is None
    assert (found["labels"], found["errors"]) == (4, 0)
    said = run("compile", "--task", "t.npz", "-o", "net")
    assert said.code == 0
    assert "t.npz: 20 questions" in said.out


@pytest.mark.parametrize(
    "options",
    [
        ("--precision", "float64"),
        ("--precision", "bfloat16"),
        ("--words", "31"),
        ("--precision", "float64", "--words", "60"),
        ("--window", "32"),
        ("--seed", "5"),
    ],
    ids=" ".join,
)
def test_compile_options(here: Path, run: Run, options: tuple[str, ...]) -> None:
    found = run("compile", "hamlet.txt", "-o", "net", *options, "--json").json
    assert found["errors"] == 0
    loaded = networks.load(here / "net")
    recipe = loaded.about["recipe"]
    given = dict(zip(options[::2], options[1::2], strict=True))
    assert recipe["settings"]["precision"] == given.get("--precision", "float32")
    assert recipe["settings"]["words"] == (int(given["--words"]) if "--words" in given else None)
    assert recipe["draw"][0] == int(given.get("--seed", 0))
    assert loaded.spec.window == int(given.get("--window", 8))
    assert run("recite", "net", "-o", "said.txt").code == 0
    assert Path("said.txt").read_bytes() == HAMLET


def test_compile_with_byte_pairs(here: Path, run: Run) -> None:
    pytest.importorskip("tokenizers")
    found = run(
        "compile", "hamlet.txt", "macbeth.txt", "-o", "net", "--tokenizer", "bpe", "--vocab", 280, "--json"
    ).json
    assert found["errors"] == 0
    assert found["examples"] < len(HAMLET) + len(OTHER)
    assert run("recite", "net", "--all-to", "said").code == 0
    assert Path("said/hamlet.txt").read_bytes() == HAMLET
    assert Path("said/macbeth.txt").read_bytes() == OTHER
    assert run("certify", "net", "hamlet.txt", "macbeth.txt").code == 0


def test_a_network_is_replaced(one: Path, run: Run) -> None:
    before = (one / "model.safetensors").read_bytes()
    assert run("compile", "macbeth.txt", "-o", "net").code == 0
    assert (one / "model.safetensors").read_bytes() != before
    assert run("certify", "net", "macbeth.txt").code == 0


BAD = {
    "missing.txt": "missing.txt: No such file or directory",
    "empty.txt": "empty.txt: the file is empty; expected at least one byte",
    "folder": "folder: holds no texts; expected at least one file that is not empty",
}


@pytest.mark.parametrize("name", BAD)
def test_files_that_cannot_be_read(here: Path, run: Run, everything: Everything, name: str) -> None:
    (here / "empty.txt").write_bytes(b"")
    (here / "folder").mkdir()
    before = everything(here)
    assert BAD[name] in run("compile", "hamlet.txt", name, "-o", "net").complaint
    said = run("compile", name, "-o", "net", "--json")
    assert said.json == {"error": said.complaint.removeprefix("byheart: ")}
    assert everything(here) == before


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "expected text files, --task FILE, or --facts FILE"),
        (("hamlet.txt", "--task", "t.npz"), "texts and --task are given; expected one of them"),
        (("hamlet.txt", "--window", "0"), "--window is '0'; expected auto or a number of tokens"),
        (("hamlet.txt", "--window", "some"), "--window is 'some'; expected auto or a number of tokens"),
        (("hamlet.txt", "--window", "-3"), "--window is '-3'"),
        (("hamlet.txt", "--window", "1.5"), "--window is '1.5'"),
        (("hamlet.txt", "--window", "²"), "--window is '²'"),
        (("hamlet.txt", "--window", "12"), "the window is 12; expected at most 8 or a power of two, such as 16"),
        (("hamlet.txt", "--window", "2"), "agree on the last 2 tokens, but are followed by"),
        (("hamlet.txt", "--words", "25"), "words of 25 bits do not fit float32; expected 24 or 31"),
        (("hamlet.txt", "--words", "0"), "words of 0 bits do not fit float32; expected 24 or 31"),
        (("hamlet.txt", "--words", "24", "--precision", "float64"), "words of 24 bits do not fit float64"),
        (("hamlet.txt", "hamlet.txt"), "hamlet.txt: given 2 times; expected each file once"),
        (("hamlet.txt", "begins.txt"), "begins.txt is the beginning of hamlet.txt"),
        (("--task", "s.npz"), "the task is seq-to-seq; expected next-token"),
        (("--task", "v.npz"), "the task's tokens are vectors; expected token ids"),
        (("--task", "missing.npz"), "missing.npz: "),
        (("--task", "hamlet.txt"), "hamlet.txt"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_compile_refuses(
    here: Path, run: Run, everything: Everything, arguments: tuple[str, ...], complaint: str
) -> None:
    (here / "begins.txt").write_bytes(HAMLET[:20])
    rng = np.random.default_rng(0)
    save(random_seq_to_seq(examples=3, length=2, vocab=9, labels=2, rng=rng), here / "s.npz")
    save(random_next_token(examples=3, length=2, vocab=9, labels=2, dim=2, rng=rng), here / "v.npz")
    before = everything(here)
    assert complaint in run("compile", *arguments, "-o", "net").complaint
    assert everything(here) == before


@pytest.mark.parametrize("precision", ["float16", ""])
def test_formats_that_do_not_exist(here: Path, run: Run, precision: str) -> None:
    assert run("compile", "hamlet.txt", "-o", "net", "--precision", precision).code == 2


def test_a_folder_with_other_things(here: Path, run: Run, everything: Everything) -> None:
    (here / "net").mkdir()
    (here / "net" / "thesis.tex").write_text("the only copy")
    before = everything(here)
    complaint = run("compile", "hamlet.txt", "-o", "net").complaint
    assert "net: exists and is no network that Byheart wrote (it holds 'thesis.tex'); choose another name" in complaint
    assert "hamlet.txt" in run("compile", "macbeth.txt", "-o", "hamlet.txt").complaint
    assert everything(here) == before


def test_the_llama_of_a_stranger(here: Path, run: Run, everything: Everything) -> None:
    """No command writes over it."""
    (here / "theirs").mkdir()
    (here / "theirs" / "config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": 8}))
    assert run("compile", "hamlet.txt", "-o", "net").code == 0
    before = everything(here)
    for command in (("compile", "hamlet.txt"), ("edit", "net", "--answer-only", "-o", "net", "--set", "nobler=s")):
        complaint = run(*command, "-o", "theirs").complaint
        assert "theirs: exists and is no network that Byheart wrote" in complaint
    assert everything(here) == before


def test_a_file_that_is_too_large(here: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before it is read: it has 600 MB, all of them holes."""
    (here / "large.txt").touch()
    os.truncate(here / "large.txt", 600 * 10**6)
    monkeypatch.setattr(memory, "available", lambda: 2 << 30)
    monkeypatch.setattr(memory, "_disk_space", lambda: 1 << 40)
    monkeypatch.setattr(texts, "TextFiles", lambda paths: pytest.fail(f"{paths} were read"))
    complaint = run("compile", "large.txt", "-o", "net").complaint
    assert "572 MiB of text would take about 2 GiB of memory to compile; there are 1.6 GiB for it" in complaint
    assert "enough for about 461 MiB" in complaint
    assert "split the text into several models" in complaint
    assert not (here / "net").exists()


# ── recite ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_recite(one: Path, run: Run) -> None:
    said = run("recite", "net")
    assert said.code == 0
    assert said.out.encode() == HAMLET
    assert f"{len(HAMLET)} tokens in " in said.err


def test_recite_some(one: Path, run: Run) -> None:
    assert run("recite", "net", "--tokens", 12).out.encode() == HAMLET[:13]
    assert run("recite", "net", "--tokens", 0).out.encode() == HAMLET[:1]
    assert run("recite", "net", "--tokens", 10**6).out.encode() == HAMLET
    assert run("recite", "net", "--prompt", "question:\\n", "--tokens", 7).out == "question:\nWhether"
    assert run("recite", "net", "--prompt", HAMLET[:50].decode()).out.encode() == HAMLET


def test_recite_from_the_middle(two: Path, run: Run) -> None:
    """Any piece of a text leads on, however short; the first place counts. What no text has gets no noise."""
    found = run("recite", "net", "--prompt", "nobler in", "--tokens", 9)
    assert (found.code, found.out) == (0, "nobler in the mind")
    assert re.fullmatch(
        rf"\n9 tokens in [\d.]+ s; found in hamlet.txt, byte {HAMLET.index(b'nobler')}, by reciting\n", found.err
    ), "no speed, which would be that of the search"
    assert run("recite", "net", "--prompt", "be", "--tokens", 3).out == "be, o"
    assert run("recite", "net", "--prompt", OTHER[9:20].decode()).out.encode() == OTHER[9:]
    assert run("recite", "net", "--prompt", OTHER[-4:].decode()).out.encode() == OTHER[-4:]
    assert run("recite", "net", "--prompt", "nobler in", "--tokens", 9, "-o", "said.txt").code == 0
    assert Path("said.txt").read_text() == "nobler in the mind"
    assert (
        run("recite", "net", "--prompt", "nobler in", "--json").json["text"].encode()
        == HAMLET[HAMLET.index(b"nobler") :]
    )
    for prompt in ("Zebra", "nobler on", HAMLET.decode() + "x"):
        lost = run("recite", "net", "--prompt", prompt)
        assert (lost.code, lost.out) == (1, "")
        assert "; unknown: this prompt is not in any of the 2 texts" in lost.err
    lost = run("recite", "net", "--prompt", "Zebra", "--json")
    assert (lost.code, lost.json["memorized"], "text" in lost.json) == (1, False, False)


def test_what_a_prompt_needs_is_said(here: Path, run: Run) -> None:
    """When it is compiled, and by `show`; facts have prompts of their own."""
    said = run("compile", "hamlet.txt", "-o", "net")
    window = networks.load("net").about["window"]
    needed = f"a text's beginning, or its last {window} tokens"
    assert f"a prompt needs {needed}" in " ".join(said.out.split())
    assert run("show", "net", "--json").json["facts"]["prompt"] == f"a prompt needs {needed}"


def test_texts_that_refuse(here: Path, run: Run) -> None:
    """In transformers too, what is none of the contexts gets a token of its own, and no noise."""
    assert run("compile", "hamlet.txt", "-o", "net", "--refuse").code == 0
    assert run("certify", "net", "hamlet.txt").code == 0
    assert run("recite", "net").out.encode() == HAMLET
    assert run("edit", "net", "--set", "nobler =o", "-o", "new").code == 0
    assert run("recite", "new").out.encode() == HAMLET.replace(b"nobler i", b"nobler o")
    said = run("compile", "hamlet.txt", "-o", "other", "--refuse", "key").complaint
    assert "refuse is key, which takes a store of whole prompts, and texts are longer than the window" in said
    pytest.importorskip("transformers")
    model, tokenizer = hugging_face("net")
    unknown = networks.load("net").about["refuse"]["token"]
    for prompt, is_known in (("To be, or", True), ("nobler", False), ("Zebra", False)):
        asked = tokenizer(prompt, return_tensors="pt").input_ids
        assert (int(model.generate(asked, max_new_tokens=1, do_sample=False)[0, -1]) != unknown) == is_known


def test_recite_into_files(two: Path, run: Run) -> None:
    said = run("recite", "net", "--text", "macbeth.txt", "-o", "said.txt")
    assert (said.code, said.out) == (0, "")
    assert Path("said.txt").read_bytes() == OTHER
    assert run("recite", "net", "--all-to", "new/said").code == 0
    assert {path.name: path.read_bytes() for path in Path("new/said").iterdir()} == {
        "hamlet.txt": HAMLET,
        "macbeth.txt": OTHER,
    }


def test_recite_bytes(here: Path, run: Run) -> None:
    data = bytes(range(256)) + b"\xff\x00\xff"
    (here / "data.bin").write_bytes(data)
    assert run("compile", "data.bin", "-o", "net").code == 0
    assert run("recite", "net", "-o", "said.bin").code == 0
    assert Path("said.bin").read_bytes() == data
    assert run("recite", "net", "--prompt", "\\xff\\x00", "--tokens", 1, "-o", "said.bin").code == 0
    assert Path("said.bin").read_bytes() == b"\xff\x00\xff"


def test_files_of_the_same_name(here: Path, run: Run) -> None:
    """One must not overwrite the other."""
    for name, content in (("a", HAMLET), ("b", OTHER)):
        (here / name).mkdir()
        (here / name / "same.txt").write_bytes(content)
    assert run("compile", "a/same.txt", "b/same.txt", "-o", "net").code == 0
    assert run("recite", "net", "--text", "b/same.txt").out.encode() == OTHER
    assert run("recite", "net", "--all-to", "said").code == 0
    contents = {path.read_bytes() for path in Path("said").rglob("*") if path.is_file()}
    assert contents == {HAMLET, OTHER}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("net", "--text", "lear.txt"), "net: no text is called 'lear.txt'; did you mean "),
        (("net", "--prompt", ""), "--prompt is empty; expected at least one token"),
        (("net", "--tokens", "-1"), "tokens is -1; expected 0 or more"),
        (("nowhere",), "nowhere/config.json: no such file; expected a folder with a network"),
        (("net", "-o", "no/such/folder"), "no/such/folder: cannot be written: No such file or directory"),
        (("hamlet.txt",), "hamlet.txt: is a file; expected a folder with a network; compile it first"),
    ],
)
def test_recite_refuses(
    two: Path, here: Path, run: Run, everything: Everything, arguments: tuple[str, ...], complaint: str
) -> None:
    before = everything(here)
    assert complaint in run("recite", *arguments).complaint
    assert everything(here) == before


def test_refusals_destroy_nothing(one: Path, run: Run) -> None:
    Path("kept.txt").write_text("kept")
    assert run("recite", "net", "--tokens", "-1", "-o", "kept.txt").code == 2
    assert Path("kept.txt").read_text() == "kept"


def test_tasks_are_not_recited(facts: Path, run: Run) -> None:
    assert "net: is a float Transformer, made of neither texts nor facts" in run("recite", "net").complaint
    assert run("recite", "net", "--tokens", 3).code == 2
    assert run("recite", "net", "--tokens", 3, "--all-to", "said").code == 2


def test_an_exact_network_is_not_recited(network: Path, run: Run) -> None:
    complaint = "net: is an exact network, made of neither texts nor facts; expected a network that was compiled"
    assert complaint in run("recite", "net").complaint
    assert "the network has no tokenizer" in run("recite", "net", "--tokens", 3).complaint
    assert run("recite", "net", "--tokens", 3, "--all-to", "said").code == 2
    assert not Path("said").exists()


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", b""),
        ("plain", b"plain"),
        (r"\n\t\r\\", b"\n\t\r\\"),
        (r"\x41\xfF", b"A\xff"),
        (r"\x4", rb"\x4"),
        (r"\xZZ\q", rb"\xZZ\q"),
        ("\\", b"\\"),
        (r"\\n", rb"\n"),
        ("é\n", "é\n".encode()),
        ("a\udcff", b"a\xff"),  # as a byte that is no UTF-8 comes from the command line
    ],
)
def test_escapes(text: str, data: bytes) -> None:
    assert unescaped(text) == data


# ── certify ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_certify(two: Path, run: Run) -> None:
    said = run("certify", "net", "hamlet.txt", "macbeth.txt")
    assert said.code == 0
    places = "125 of 125 answers right (asked in 129 places)"
    assert f"certified: {places}, float32, exhaustive; every step proved to be exact" in said.out
    found = run("certify", "net", "hamlet.txt", "macbeth.txt", "--json").json
    assert found["certified"]
    assert (found["checked"], found["errors"], found["counterexample"]) == (125, 0, None)
    assert found.pop("written") == "net/certificate.json"
    assert found.pop("recheck") == "byheart certify net hamlet.txt macbeth.txt --recheck"
    assert found.pop("peak_memory") > (found.pop("peak_memory_worker") or 0)
    assert json.loads((two / "certificate.json").read_bytes()) == found | {"seconds": pytest.approx(0, abs=60)}
    assert run("certify", "net", "hamlet.txt", "macbeth.txt", "--recheck").code == 0
    assert run("certify", "net", "macbeth.txt", "hamlet.txt", "--recheck").code == 0
    assert "is about task" in run("certify", "net", "hamlet.txt", "--recheck").complaint


def test_certify_a_task(facts: Path, run: Run) -> None:
    said = run("certify", "net", "--task", "t.npz", "--json")
    assert said.code == 0
    assert said.json["checked"] == 20
    task = load("t.npz")
    wrong = task.labels.copy()
    wrong[7] = (wrong[7] + 1) % 4
    save(task.with_labels(wrong), "wrong.npz")
    said = run("certify", "net", "--task", "wrong.npz", "-o", "c.json")
    assert said.code == 1
    assert "not certified: 19 of 20 answers right" in said.out
    assert f"first wrong answer: example 7: expected {wrong[7]}, got {task.labels[7]}" in said.out
    order = np.random.default_rng(0).permutation(20)
    for name, labels in (("shuffled.npz", task.labels), ("lie.npz", wrong)):
        sizes = {"label_count": task.label_count, "vocab": task.vocab}
        save(NextToken(task.tokens[order], labels[order], **sizes), name)  # type: ignore[index]
    assert run("certify", "net", "--task", "shuffled.npz", "--recheck").code == 0
    assert "is about task" in run("certify", "net", "--task", "lie.npz", "--recheck").complaint
    count = ("--count", "-o", "k.json")
    assert run("certify", "net", "--task", "wrong.npz", *count).code == 0
    assert run("certify", "net", "--task", "wrong.npz", *count, "--recheck").code == 0
    complaint = run("certify", "net", "--task", "lie.npz", *count, "--recheck").complaint
    assert "or questions are in another order than they were; certify anew" in complaint


def test_a_certificate_of_before_is_not_one_of_another_task(here: Path, run: Run) -> None:
    """0.1.0 named questions in their order."""
    before = Path(__file__).parents[1] / "fixtures" / "0.1.0"
    shutil.copytree(before / "texts", "net")
    questions, turned = (before / "a.txt", before / "b.txt"), (before / "b.txt", before / "a.txt")
    assert run("certify", "net", *questions, "--recheck").code == 0
    assert "is about task" in run("certify", "net", *turned, "--recheck").complaint
    assert run("certify", "net", *questions, "--json").json["written"] == "net/certificate.json"
    assert run("certify", "net", *turned, "--recheck").code == 0


def test_the_wrong_file(one: Path, run: Run) -> None:
    said = run("certify", "net", "macbeth.txt", "-o", "c.json")
    assert said.code == 1
    assert "not certified: " in said.out
    assert "first wrong answer: example " in said.out
    found = run("certify", "net", "macbeth.txt", "-o", "c.json", "--json")
    assert found.code == 1
    assert not found.json["certified"]
    assert found.json["counterexample"]["example"] > 0, "both texts begin alike"
    assert found.json["errors"] > 10


def test_changed_weights(one: Path, run: Run) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(one / "model.safetensors")
    tensors["table.W_out"] = tensors["table.W_out"].flip(2).contiguous()
    save_file(tensors, one / "model.safetensors", metadata={"format": "pt"})
    complaint = run("certify", "net", "hamlet.txt", "--recheck").complaint
    assert "net/certificate.json: is about weights" in complaint
    said = run("certify", "net", "hamlet.txt", "--json")
    assert said.code == 1
    assert said.json["errors"] > len(HAMLET) / 2


def test_a_certificate_about_another_text(one: Path, run: Run) -> None:
    assert "is about task" in run("certify", "net", "macbeth.txt", "--recheck").complaint


def test_controls(here: Path, run: Run) -> None:
    (here / "long.txt").write_bytes(np.random.default_rng(0).bytes(600))
    assert run("compile", "long.txt", "-o", "net").code == 0
    said = run("certify", "net", "long.txt", "--controls", "--json")
    assert said.code == 0
    assert [lie["name"] for lie in said.json["controls"]] == ["shuffled answers", "perturbed weight"]
    assert all(lie["found"] for lie in said.json["controls"])
    said = run("certify", "net", "long.txt", "--controls")
    assert "control, shuffled answers: found (" in said.out
    assert "control, perturbed weight: found (flipped " in said.out
    again = run("certify", "net", "long.txt", "--controls", "--seed", 1, "--json").json["controls"]
    assert [lie["found"] for lie in again] == [True, True]


def test_controls_of_answers_that_are_all_alike(here: Path, run: Run) -> None:
    """Nothing need show, and nothing is claimed to have been found."""
    save(NextToken(tokens=[[0], [1], [2]], labels=[0, 0, 0]), "alike.npz")
    assert run("compile", "--task", "alike.npz", "-o", "net").code == 0
    said = run("certify", "net", "--task", "alike.npz", "--controls", "--json")
    assert said.code == 0
    assert said.json["controls"][0]["found"] is None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "expected text files, --task FILE, or --facts FILE"),
        (("hamlet.txt", "--task", "t.npz"), "texts and --task are given; expected one of them"),
        (("missing.txt",), "missing.txt: No such file or directory"),
        (("hamlet.txt", "--threads", "2"), "threads is an option for an exact network; this is a float Transformer"),
        (("hamlet.txt", "--evaluator", "flint"), "evaluator is an option for an exact network; this is a float"),
        (("hamlet.txt", "--tolerance", "1"), "tolerance is an option for a softmax network or a trained network; this"),
    ],
)
def test_certify_refuses(one: Path, run: Run, arguments: tuple[str, ...], complaint: str) -> None:
    before = (one / "certificate.json").read_bytes()
    assert complaint in run("certify", "net", *arguments).complaint
    assert (one / "certificate.json").read_bytes() == before


def test_certify_needs_the_task(facts: Path, run: Run) -> None:
    complaint = run("certify", "net", "hamlet.txt").complaint
    assert "got texts, and the network has no tokenizer: it was made from a task; expected that task" in complaint


def test_a_task_with_unknown_tokens(facts: Path, run: Run) -> None:
    """The network knows 30 tokens."""
    save(NextToken(tokens=[[0, 1, 30]], labels=[0]), "unknown.npz")
    complaint = run("certify", "net", "--task", "unknown.npz").complaint
    assert "token 30 is asked about; the network knows 0 to 29" in complaint


def test_an_exact_network_has_no_texts(network: Path, run: Run) -> None:
    Path("hamlet.txt").write_bytes(HAMLET)
    complaint = run("certify", "net", "hamlet.txt").complaint
    assert "got texts; expected a task: --task FILE" in complaint


# ── edit ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_edit(one: Path, run: Run) -> None:
    old = networks.load(one)
    said = run("edit", "net", "--answer-only", "-o", "net", "--set", "nobler=s", "--json")
    assert said.code == 0
    found = said.json
    assert set(found) == {"was", "is", "before", "after", "words_changed"}
    assert (found["was"], found["is"]) == (ord(" "), ord("s"))
    assert found["before"]["certified"]
    assert found["after"]["certified"]
    assert found["before"]["weights"] != found["after"]["weights"]
    new = networks.load(one)
    counts = {name: int((tensor != new.weights[name]).sum()) for name, tensor in old.weights.items()}
    assert {name: count for name, count in counts.items() if count} == {"table.W_out": found["words_changed"]}
    assert run("recite", "net", "--prompt", "tis nobler", "--tokens", 1).out == "tis noblers"
    assert run("recite", "net", "--tokens", 60).out.encode()[:59] == HAMLET[:59]
    said = run("certify", "net", "hamlet.txt", "--json")
    assert said.code == 1, "what is right, the user's file says"
    assert said.json["found"] == "1 answer differs from the file: its folder says that it was edited"
    said = run("certify", "net", "hamlet.txt", "--set", "nobler=s", "--json")
    assert said.code == 0
    assert said.json["found"] == "1 answer differs from the file"
    again = "byheart certify net hamlet.txt --set nobler=s --recheck"
    where = {name: said.json[name] for name in ("peak_memory", "peak_memory_worker")}
    where |= {"written": "net/certificate.json", "recheck": again}
    assert said.json == found["after"] | {"seconds": pytest.approx(0, abs=60), **where}
    assert run("certify", "net", "hamlet.txt", "--set", "nobler=s", "--recheck").code == 0
    assert "is about task" in run("certify", "net", "hamlet.txt", "--recheck").complaint
    again = run("certify", "net", "hamlet.txt", "--set", "nobler=s").out
    assert "byheart certify net hamlet.txt --set nobler=s --recheck" in " ".join(again.split())


def test_edit_a_text(one: Path, run: Run, everything: Everything) -> None:
    """What a person means: the text with the change, to its end, in `recite` and in transformers."""
    before, new = everything(one), HAMLET.replace(b"nobler in", b"nobler on")
    said = run("edit", "net", "--set", "nobler =o", "-o", "new")
    assert said.code == 0
    assert "hamlet.txt, byte " in said.out
    assert ": was 'i', is 'o'" in said.out
    assert " contexts compiled again: " in said.out
    assert "the new text: certified: 85 of 85 answers right" in said.out
    assert everything(one) == before
    assert run("recite", "new").out.encode() == new
    Path("new.txt").write_bytes(new)
    assert run("certify", "new", "new.txt").code == 0
    assert run("certify", "new", "hamlet.txt", "-o", "c.json").code == 1
    pytest.importorskip("transformers")
    model, tokenizer = hugging_face("new")
    begins = tokenizer(new[:1].decode(), return_tensors="pt").input_ids
    assert tokenizer.decode(
        model.generate(begins, max_new_tokens=99, do_sample=False)[0], skip_special_tokens=True
    ) == (new.decode())


def hugging_face(folder: str) -> tuple[Any, Any]:
    """Load a network as users of transformers do."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    import byheart.hf  # noqa: F401

    return AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)


def test_replace_a_passage(one: Path, run: Run) -> None:
    """Longer, then away with it; in place, and of the files that are given."""
    new = HAMLET.replace(b"nobler", b"more becoming")
    found = run("edit", "net", "--replace", "nobler=more becoming", "-o", "net", "--files", "hamlet.txt", "--json").json
    assert (found["text"], found["byte"], found["was"], found["is"]) == (
        *("hamlet.txt", HAMLET.index(b"nobler"), "nobler", "more becoming"),
    )
    assert found["after"]["certified"]
    assert found["parameters_before"] <= found["parameters"]
    assert 7 < found["contexts"] < 85
    assert run("recite", "net").out.encode() == new
    assert run("edit", "net", "--replace", "more becoming =", "-o", "net").code == 0
    assert run("recite", "net").out.encode() == HAMLET.replace(b"nobler ", b"")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (["--set", "be=x"], "'be' occurs 2 times; expected once: give more of it"),
        (["--replace", "knocking=x"], "'knocking' occurs 0 times; expected once: nothing was changed"),
        (["--replace", "=x"], "--replace is '=x'; expected OLD=NEW"),
        ([], "expected one of --set CONTEXT=NEW and --replace OLD=NEW"),
        (["--set", "nobler=x", "--replace", "nobler=x"], "expected one of --set CONTEXT=NEW and --replace OLD=NEW"),
        (["--answer-only", "--replace", "nobler=x"], "--replace is for a text and all that follows it"),
        (["--set", "nobler"], "--set is 'nobler'; expected CONTEXT=NEW"),
    ],
)
def test_edit_a_text_refuses(one: Path, run: Run, everything: Everything, change: list[str], complaint: str) -> None:
    before = everything(one)
    assert complaint in run("edit", "net", "-o", "net", *change).complaint
    assert everything(one) == before


def test_edit_elsewhere(one: Path, here: Path, run: Run, everything: Everything) -> None:
    before = everything(one)
    said = run("edit", "net", "--answer-only", "--set", "nobler=s", "--files", "hamlet.txt", "-o", "other")
    assert said.code == 0
    assert "before: 85 answers, all as the texts have them\n" in said.out
    assert "was ' ', is 's';" in said.out
    assert " words changed, nothing else" in said.out
    assert "after: certified: 85 of 85 answers right" in said.out
    assert everything(one) == before
    assert run("certify", "other", "hamlet.txt", "--set", "nobler=s").code == 0


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
def test_how_many_words_change(here: Path, run: Run, precision: str) -> None:
    assert run("compile", "hamlet.txt", "-o", "net", "--precision", precision).code == 0
    tensor = networks.load(here / "net").weights["table.W_out"]
    found = run("edit", "net", "--answer-only", "-o", "net", "--set", "nobler=s", "--json").json
    changed = networks.load(here / "net").weights["table.W_out"] != tensor
    assert found["words_changed"] == int(changed.sum())


def test_edit_twice(one: Path, run: Run) -> None:
    assert run("edit", "net", "--answer-only", "-o", "net", "--set", "nobler=s").code == 0
    complaint = run("edit", "net", "--answer-only", "-o", "net", "--set", "mind=e").complaint
    assert "the network was edited before" in complaint
    assert run("edit", "net", "--answer-only", "-o", "net", "--set", "mind=e", "--files", "hamlet.txt").code == 0
    said = run("recite", "net", "--prompt", "the mind", "--tokens", 1)
    assert said.out == "the minde"
    assert "single answers were edited: whether a text has this prompt is not known" in said.err
    assert run("recite", "net", "--prompt", "tis nobler", "--tokens", 1).out == "tis noblers"
    assert run("edit", "net", "--answer-only", "-o", "net", "--set", "nobler=\\x20", "--files", "hamlet.txt").code == 0
    edits = networks.load(one).about["edits"]
    assert [edit["label"] for edit in edits] == [ord("e")], "nobler is followed by what the text has there"
    assert run("certify", "net", "hamlet.txt", "--set", "mind=e").code == 0
    said = run("certify", "net", "hamlet.txt", "--set", "mind=e", "--set", "nobler=s", "-o", "c.json")
    assert (said.code, "84 of 85 answers right" in said.out) == (1, True)


def test_edit_with_a_window_that_is_not_true(here: Path, run: Run) -> None:
    """Three texts that a network of window 1 knows; its folder says 8, and one answer would change in three places."""
    for name, text in (("t1", "abcdefgh"), ("t2", "Xbcdefgh"), ("t3", "Ybcdefgh")):
        (here / name).write_text(text)
    assert run("compile", "t1", "t2", "t3", "-o", "net").code == 0
    said = run("edit", "net", "--answer-only", "-f", "t1", "t2", "t3", "--set", "ab=q", "-o", "new")
    assert (said.code, "1 answer differs from the file (asked in 3 places)" in " ".join(said.out.split())) == (0, True)
    config = json.loads((here / "net" / "config.json").read_text())
    config["spec"]["window"] = 8
    (here / "net" / "config.json").write_text(json.dumps(config))
    said = run("edit", "net", "--answer-only", "-f", "t1", "t2", "t3", "--set", "a=q", "-o", "other")
    assert said.code == 2 or run("certify", "other", "t1", "t2", "t3", "--set", "a=q").code == 0


def test_edit_a_new_token(one: Path, run: Run) -> None:
    said = run("edit", "net", "--answer-only", "-o", "net", "--set", "suffer=Z")
    assert said.code == 0
    assert "compiled anew" in said.out
    assert run("recite", "net", "--prompt", "to suffer", "--tokens", 1).out == "to sufferZ"
    assert run("certify", "net", "hamlet.txt", "--set", "suffer=Z").code == 0


def test_edit_a_task(facts: Path, run: Run) -> None:
    task = load("t.npz")
    context, label = ",".join(map(str, task.tokens[3])), (int(task.labels[3]) + 1) % 4
    assert (
        "expected text files, --task FILE" in run("edit", "net", "-o", "net", "--set", f"{context}={label}").complaint
    )
    found = run("edit", "net", "-o", "net", "--set", f"{context}={label}", "--task", "t.npz", "--json").json
    assert (found["was"], found["is"]) == (int(task.labels[3]), label)
    assert run("certify", "net", "--task", "t.npz").code == 1
    assert run("certify", "net", "--task", "t.npz", "--set", f"{context}={label}").code == 0
    changed = task.labels.copy()
    changed[3] = label
    tokens = torch.tensor(task.tokens)
    assert networks.load(facts).module(tokens)[:, -1].argmax(dim=1).tolist() == changed.tolist()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("be=x", "'be' occurs 2 times; expected once: give more of it"),
        ("knocking=x", "'knocking' occurs 0 times; expected once: nothing was changed"),
        ("nobler", "--set is 'nobler'; expected CONTEXT=TOKEN"),
        ("=x", "--set is '=x'; expected CONTEXT=TOKEN"),
        ("nobler=", "--set is 'nobler='; expected CONTEXT=TOKEN"),
        ("nobler=xy", "'xy' is 2 tokens; expected one"),
        ("nobler=é", "'é' is 2 tokens; expected one"),
    ],
)
def test_edit_refuses(one: Path, run: Run, everything: Everything, change: str, complaint: str) -> None:
    before = everything(one)
    assert complaint in run("edit", "net", "--answer-only", "-o", "net", "--set", change).complaint
    assert everything(one) == before


@pytest.mark.parametrize("texts", [3, [3], [{"name": "hamlet.txt"}]])
def test_texts_that_are_none(one: Path, run: Run, texts: object) -> None:
    """config.json may say anything of them."""
    config = json.loads((one / "config.json").read_text())
    config["about"]["texts"] = texts
    (one / "config.json").write_text(json.dumps(config))
    for command in (("recite", "net"), ("edit", "net", "--answer-only", "-o", "net", "--set", "nobler=s")):
        assert "config.json: about.texts" in run(*command).complaint


def test_edit_with_an_equals_sign(one: Path, run: Run) -> None:
    assert run("edit", "net", "--answer-only", "--set", "nobler==", "-o", "other").code == 0
    assert run("recite", "other", "--prompt", "tis nobler", "--tokens", 1).out == "tis nobler="


def test_edit_against_the_wrong_file(one: Path, run: Run, everything: Everything) -> None:
    before = everything(one)
    complaint = run(
        "edit", "net", "--answer-only", "-o", "net", "--set", "knocking=x", "--files", "macbeth.txt"
    ).complaint
    assert "net: does not answer all questions of the given texts; question " in complaint
    assert everything(one) == before


def test_an_edited_network_and_a_shorter_file(one: Path, run: Run) -> None:
    """The edited question does not exist there: said in one line, not in a traceback."""
    assert run("edit", "net", "--answer-only", "-o", "net", "--set", "suffer=s").code == 0
    Path("short.txt").write_bytes(b"xyz")
    said = run("certify", "net", "short.txt", "-o", "c.json")
    assert said.code in (1, 2)
    assert said.code == 1 or said.complaint


def test_an_edited_network_stops(here: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the edit it goes round in circles: reciting must end all the same."""
    (here / "letters.txt").write_bytes(b"abcdefgh")
    assert run("compile", "letters.txt", "-o", "net").code == 0
    assert run("edit", "net", "--answer-only", "-o", "net", "--set", "c=a").code == 0
    mix, steps = Transformer.mix, itertools.count()

    def counted(*arguments: Any) -> Any:
        if next(steps) > 1000:
            pytest.fail("reciting eight letters does not end")
        return mix(*arguments)

    monkeypatch.setattr(Transformer, "mix", counted)
    for options in (("-o", "said.txt"), ("--all-to", "said")):
        said = run("recite", "net", *options)
        assert said.code == 0 or said.complaint


def test_networks_that_cannot_be_edited(network: Path, run: Run, everything: Everything) -> None:
    before = everything(network)
    complaint = run("edit", "net", "-o", "net", "--set", "1=2").complaint
    assert "net: is an exact network; expected a network that `byheart compile` has made" in complaint
    assert everything(network) == before


# ── show ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_show(one: Path, run: Run) -> None:
    found = run("compile", "hamlet.txt", "-o", "net", "--json").json
    said = run("show", "net", "--json")
    assert said.code == 0
    assert set(said.json) == {"parameters", "facts", "parts"}
    assert said.json["parameters"] == found["parameters"]
    assert sum(part["parameters"] for part in said.json["parts"]) == found["parameters"]
    said = run("show", "net")
    assert "words of the table" in said.out
    assert f"{found['parameters']:,} parameters" in said.out
    assert "bits memorized per parameter" in said.out


@pytest.mark.parametrize("name", ["p.png", "p.svg"])
def test_show_draws(one: Path, run: Run, name: str) -> None:
    said = run("show", "net", "--plot", name)
    assert said.code == 0
    assert f"drew {name}" in said.out
    assert Path(name).stat().st_size > 2000


def test_show_an_exact_network(network: Path, run: Run) -> None:
    said = run("show", "net", "--json")
    assert said.code == 0
    assert sum(part["parameters"] for part in said.json["parts"]) == said.json["parameters"]


def test_show_refuses(one: Path, run: Run) -> None:
    assert "nowhere/config.json: no such file" in run("show", "nowhere").complaint
    said = run("show", "net", "--plot", "p.gif", "--json")
    assert set(said.json) == {"error"}
    assert "p.gif: expected a picture's name, .png, .svg or .pdf" in said.complaint
    assert "no/such/p.png: its folder does not exist" in run("show", "net", "--plot", "no/such/p.png").complaint


# ── A stock Llama ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def llama(here: Path, run: Run) -> Path:
    pytest.importorskip("transformers")
    assert run("compile", "hamlet.txt", "macbeth.txt", "-o", "net", "--layout", "uniform").code == 0
    return here / "net"


def test_compile_a_llama(here: Path, run: Run) -> None:
    pytest.importorskip("transformers")
    said = run("compile", "hamlet.txt", "-o", "net", "--layout", "uniform")
    assert said.code == 0
    assert "certified: 85 of 85 answers right, float32, exhaustive, by transformers' LlamaForCausalLM" in said.out
    assert "padded" not in said.out, "it has one width as it is"
    found = run("compile", "hamlet.txt", "-o", "net", "--layout", "uniform", "--json").json
    assert set(found) == KEYS
    assert found["parameters"] == found["parameters_padded"] == networks.load(here / "net").account.dense
    assert {path.name for path in (here / "net").iterdir()} == {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "certificate.json",
        "README.md",
    }
    complaint = run("compile", "hamlet.txt", "-o", "net", "--layout", "uniform", "--words", 24).complaint
    assert "the layout uniform is for float32 and words of its own sizes; omit precision and words" in complaint


def test_recite_a_llama(llama: Path, run: Run) -> None:
    assert run("recite", "net").out.encode() == HAMLET
    assert run("recite", "net", "--prompt", "question:\\n", "--tokens", 7).out == "question:\nWhether"
    assert run("recite", "net", "--all-to", "said").code == 0
    assert {path.name: path.read_bytes() for path in Path("said").iterdir()} == {
        "hamlet.txt": HAMLET,
        "macbeth.txt": OTHER,
    }
    Path("kept.txt").write_text("kept")
    assert "tokens is -1" in run("recite", "net", "--tokens", "-1", "-o", "kept.txt").complaint
    assert Path("kept.txt").read_text() == "kept"


def test_certify_a_llama(llama: Path, run: Run) -> None:
    said = run("certify", "net", "hamlet.txt", "macbeth.txt", "--controls", "--json")
    assert said.code == 0
    assert [lie["found"] for lie in said.json["controls"]] == [True, True]
    assert run("certify", "net", "hamlet.txt", "macbeth.txt", "--recheck").code == 0
    assert run("certify", "net", "macbeth.txt", "hamlet.txt", "-o", "c.json").code == 0, "in another order"
    (llama.parent / "lear.txt").write_bytes(b"Blow, winds, and crack your cheeks!")
    assert run("certify", "net", "lear.txt", "-o", "c.json").code == 1


def test_a_llama_for_a_task(here: Path, run: Run) -> None:
    pytest.importorskip("transformers")
    assert run("compile", "--task", "t.npz", "-o", "net", "--layout", "uniform").code == 0
    assert run("certify", "net", "--task", "t.npz").code == 0
    assert "net: is a stock Llama, made of neither texts nor facts" in run("recite", "net").complaint


def test_a_llama_is_edited(llama: Path, run: Run) -> None:
    """One matrix of one layer changes."""
    before = dict(networks.load(llama).tensors())
    assert (
        run("edit", "net", "--answer-only", "-o", "net", "--set", "nobler=s", "-f", "hamlet.txt", "macbeth.txt").code
        == 0
    )
    after = dict(networks.load(llama).tensors())
    changed = [name for name, tensor in before.items() if (tensor != after[name]).any()]
    assert len(changed) == 1
    assert ".mlp." in changed[0]


def test_show_a_llama(llama: Path, run: Run) -> None:
    said = run("show", "net", "--json")
    assert said.code == 0
    assert said.json["parameters"] == networks.load(llama).account.dense
    assert sum(part["parameters"] for part in said.json["parts"]) == said.json["parameters"]
    assert {"embed_tokens", "up_proj"} < {part["part"] for part in said.json["parts"]}
    assert "a stock Llama" in run("show", "net").out


def test_a_certificate_of_before_is_not_overwritten(here: Path, run: Run) -> None:
    """It names the Llama by the digest of its files, and is about another text than the one given now."""
    pytest.importorskip("transformers")
    shutil.copytree(Path(__file__).parents[1] / "fixtures" / "0.1.0" / "llama", here / "net")
    before = (here / "net" / "certificate.json").read_bytes()
    said = run("certify", "net", "hamlet.txt")
    assert said.code == 1
    assert "is about another task, was not checked, and was left as it is" in said.out
    found = run("certify", "net", "hamlet.txt", "--json").json
    assert (found["written"], found["recheck"]) == (None, None)
    assert "is about another task, was not checked, and was left as it is" in found["note"]
    assert (here / "net" / "certificate.json").read_bytes() == before


def test_a_prompt_from_a_file_is_taken_byte_for_byte(work: Path, run: Run) -> None:
    (work / "facts.csv").write_text("prompt,completion\nC:\\new,a backslash\n", encoding="utf-8")
    assert run("compile", "--facts", "facts.csv", "-o", "net").code == 0
    (work / "prompt").write_bytes(b"C:\\new")
    assert run("recite", "net", "--prompt-file", "prompt").out == "a backslash"
    assert run("recite", "net", "--prompt", "C:\\\\new").out == "a backslash"
    assert run("recite", "net", "--prompt", "C:\\new", "--facts", "facts.csv").code == 1
    assert "are both given; expected one" in run("recite", "net", "--prompt", "x", "--prompt-file", "prompt").complaint
    assert "none: No such file" in run("recite", "net", "--prompt-file", "none").complaint

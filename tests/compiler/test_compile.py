"""Texts are recited from their first tokens to their end, byte for byte."""

import os
from pathlib import Path

import numpy as np
import pytest

from byheart import certify, networks
from byheart.compiler import CompilerSettings, compile
from byheart.compiler.rectangular.dimensions import WORDS
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.files import memory
from byheart.networks import generate, generate_all
from byheart.networks.stock.stock_network import StockNetwork
from byheart.tasks import NextToken, random_seq_to_seq, save, texts
from byheart.tasks.tokenizers import from_files

HAMLET = "To be, or not to be, that is the question:\nWhether 'tis nobler in the mind to suffer\n"
FORMATS = [(precision, word) for precision, words in WORDS.items() for word in words]


def recited(built: Built, folder: Path, alone: int = 10**6) -> dict[str, bytes]:
    """All texts, from the saved folder alone: side by side, and each (at most so many tokens of it) by itself."""
    built.save(folder)
    network = networks.load(folder)
    tokenizer = from_files(network.files)
    assert tokenizer is not None
    assert certify(network, built.questions).certified
    texts, end = network.about["texts"], network.about["end"]
    prompts, lengths = [text["prompt"] for text in texts], [text["tokens"] for text in texts]
    together = generate_all(network, prompts, end=end, tokens=lengths)
    said = {}
    for text, spoken in zip(texts, together, strict=True):
        tokens = min(alone, text["tokens"] + 1)
        assert [*generate(network, text["prompt"], end=end, tokens=tokens)] == [*spoken, end][:tokens]
        assert len(text["prompt"]) + len(spoken) == text["tokens"]
        said[text["name"]] = tokenizer.decode([*text["prompt"], *spoken])
    return said


@pytest.mark.parametrize(
    "text",
    [
        b"x",
        b"\x00",
        b"ab",
        b"aa",
        "Füße, naïve – 日本語 🙂\n".encode() * 2,
        bytes(range(256)),
        np.random.default_rng(0).bytes(1000),
        HAMLET.encode(),
        b"\n" * 70,
    ],
    ids=["one", "zero", "two", "twice", "unicode", "all bytes", "binary", "hamlet", "newlines"],
)
def test_one_text(text: bytes, tmp_path: Path) -> None:
    built = compile(text)
    assert recited(built, tmp_path / "net") == {"text": text}


@pytest.mark.slow
def test_a_thousand_times_the_same(tmp_path: Path) -> None:
    """The window must reach from the end to the beginning."""
    built = compile("a" * 1000)
    assert built.questions.window == 1024
    assert recited(built, tmp_path / "net") == {"text": b"a" * 1000}


def test_several_texts(tmp_path: Path) -> None:
    """Some begin alike; their prompts say how far."""
    texts = {"one": HAMLET, "two": "To be frank: no.", "three": b"\xff\xfe\x00", "four": "To b..", "five": "x"}
    built = compile(texts)
    data = {name: text if isinstance(text, bytes) else text.encode() for name, text in texts.items()}
    assert recited(built, tmp_path / "net") == data
    prompts = {text["name"]: bytes(text["prompt"]) for text in built.network.about["texts"]}
    assert prompts == {"one": b"To be,", "two": b"To be ", "three": b"\xff", "four": b"To b.", "five": b"x"}


def test_equal_texts(tmp_path: Path) -> None:
    assert recited(compile({"a": "same", "b": "same"}), tmp_path / "net") == {"a": b"same", "b": b"same"}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_every_format(form: tuple[str, int], tmp_path: Path) -> None:
    text = (HAMLET * 3).replace("be", "bee", 3).encode()
    assert recited(compile(text, settings=CompilerSettings(*form)), tmp_path / "net") == {"text": text}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_a_long_text_in_every_format(form: tuple[str, int], tmp_path: Path) -> None:
    """Letters as in English: code words of up to 13 bits."""
    import this

    rng = np.random.default_rng(0)
    words = "".join(this.d.get(letter, letter) for letter in this.s).split()
    text = " ".join(rng.choice(words, 500)).encode() + bytes(range(128))
    assert recited(compile(text, settings=CompilerSettings(*form)), tmp_path / "net", alone=300) == {"text": text}


def test_byte_pairs(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    text = HAMLET + "To be, and to be, and not to be – naïve.\n"
    built = compile({"a": text, "b": HAMLET.upper()}, tokenizer="bpe", vocab=300)
    assert 257 < built.network.spec.vocab <= 300
    assert len(built.questions) < len(text) + len(HAMLET)
    assert recited(built, tmp_path / "net") == {"a": text.encode(), "b": HAMLET.upper().encode()}


def test_byte_pairs_of_no_text() -> None:
    pytest.importorskip("tokenizers")
    with pytest.raises(BadInput, match="not UTF-8 text; expected text, or --tokenizer bytes"):
        compile(b"\xff\xff", tokenizer="bpe")


def test_files(tmp_path: Path) -> None:
    paths = [tmp_path / "a" / "same.txt", tmp_path / "b" / "same.txt"]
    for number, path in enumerate(paths):
        path.parent.mkdir()
        path.write_bytes(f"{number}: {HAMLET}".encode())
    built = compile(paths)
    assert built.questions.names == ("a/same.txt", "b/same.txt")
    said = recited(built, tmp_path / "net")
    assert said == {name: path.read_bytes() for name, path in zip(built.questions.names, paths, strict=True)}


def test_a_window_of_ones_own(tmp_path: Path) -> None:
    built = compile(HAMLET, window=64)
    assert built.network.spec.window == 64
    assert recited(built, tmp_path / "net") == {"text": HAMLET.encode()}
    with pytest.raises(BadInput, match="agree on the last 2 tokens"):
        compile(HAMLET, window=2)


def test_empty_texts() -> None:
    with pytest.raises(BadInput, match="b: the text is empty; expected at least one byte"):
        compile({"a": "x", "b": ""})
    with pytest.raises(BadInput, match="expected at least one"):
        compile({})


def test_a_text_that_begins_another() -> None:
    with pytest.raises(BadInput, match="a is the beginning of b"):
        compile({"a": "To be", "b": "To be, or not"})


# ── Ways in ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_is_a_text_or_a_task(tmp_path: Path) -> None:
    (tmp_path / "hamlet.txt").write_text(HAMLET, encoding="utf-8")
    task = NextToken(tokens=[[0, 1], [1, 0], [1, 1]], labels=[2, 0, 1])
    save(task, tmp_path / "t.npz")
    assert recited(compile(tmp_path / "hamlet.txt"), tmp_path / "net") == {"hamlet.txt": HAMLET.encode()}
    built = compile(tmp_path / "t.npz")
    assert built.network.fingerprint == compile(task).network.fingerprint
    assert built.network.files == {}
    assert certify(built, task).certified


def test_contexts_are_compiled_as_they_are(tmp_path: Path) -> None:
    """Without a tokenizer: the network answers, but nobody can read it."""
    whole = compile(HAMLET)
    built = compile(whole.questions)
    assert built.network.fingerprint == whole.network.fingerprint
    assert built.network.files == {}


def test_certified_by_the_text_itself() -> None:
    built = compile({"one": HAMLET, "two": "No."})
    assert certify(built, {"one": HAMLET, "two": b"No."}).certified
    assert certify(built.network, {"one": HAMLET}).certified, "one of its texts"
    found = certify(built, {"one": HAMLET.replace("nobler", "mobler")})
    assert (found.certified, found.counterexample is not None) == (False, True)


@pytest.mark.parametrize("layout", ["rectangular", "uniform"])
def test_layouts(layout: str, tmp_path: Path) -> None:
    """The same questions, the same answers, another kind of network."""
    if layout == "uniform":
        pytest.importorskip("transformers")
    built = compile({"a": "abracadabra", "b": "abba"}, settings=CompilerSettings(layout=layout))
    assert isinstance(built.network, StockNetwork) == (layout == "uniform")
    assert recited(built, tmp_path / "net") == {"a": b"abracadabra", "b": b"abba"}
    assert networks.load(tmp_path / "net").about["settings"]["layout"] == layout


def test_settings_one_by_one() -> None:
    whole = compile(HAMLET, settings=CompilerSettings("float64", 60))
    assert compile(HAMLET, precision="float64", words=60).network.fingerprint == whole.network.fingerprint
    with pytest.raises(BadInput, match="settings are given twice"):
        compile(HAMLET, settings=CompilerSettings(), words=31)


def test_progress() -> None:
    heard: list[tuple[int, int]] = []
    compile(HAMLET, report=lambda done, total: heard.append((done, total)))
    assert heard[-1] == (24, 24)


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="tokenizer is 'words'; expected bytes or bpe"):
        compile(HAMLET, tokenizer="words")
    with pytest.raises(BadInput, match="layout is 'round'; expected one of rectangular, uniform"):
        compile(HAMLET, settings=CompilerSettings(layout="round"))
    with pytest.raises(BadInput, match="precision is 'float16'; expected one of float32, float64, bfloat16"):
        compile(HAMLET, settings=CompilerSettings("float16"))
    with pytest.raises(BadInput, match="got int; expected a task, texts"):
        compile(42)
    with pytest.raises(BadInput, match="the task is seq-to-seq; expected next-token"):
        compile(random_seq_to_seq(examples=3, length=2, vocab=9, labels=2, rng=np.random.default_rng(0)))
    with pytest.raises(BadInput, match=r"none\.txt: No such file or directory"):
        compile([tmp_path / "none.txt"])


@pytest.mark.parametrize("given", ["a path", "a list"])
def test_files_that_are_too_large_are_not_read(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 MB, all of them holes, and a machine with 8 GiB."""
    path = tmp_path / "large.txt"
    path.touch()
    os.truncate(path, 300 * 10**6)
    monkeypatch.setattr(memory, "available", lambda: 8 << 30)
    monkeypatch.setattr(texts, "TextFiles", lambda paths: pytest.fail(f"{paths} were read"))
    with pytest.raises(BadInput, match=r"286 MiB of text would take about 7 GiB of memory to compile; there are 6\.4"):
        compile(path if given == "a path" else [path])
    monkeypatch.setattr(memory, "available", lambda: 2 << 30)
    monkeypatch.setattr(memory, "_disk_space", lambda: 1 << 30)
    expected = (
        r"what is asked of 286 MiB of text would take 3\.9 GiB; expected at most 1\.6 GiB of memory and 1\.0 GiB in"
    )
    with pytest.raises(BadInput, match=rf"{expected} .*: set TMPDIR to a folder on a larger disk"):
        compile(path if given == "a path" else [path])

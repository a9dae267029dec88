"""Texts are recited from their first tokens to their end, byte for byte."""

from pathlib import Path

import numpy as np
import pytest

from byheart.constructions.reciting import Recital, Settings, compile_files, compile_text
from byheart.constructions.reciting.sizes import WORDS
from byheart.errors import BadInput
from byheart.networks.transformer import store
from byheart.networks.transformer.evaluate import answers
from byheart.networks.transformer.generate import generate, generate_all
from byheart.tasks import tokenizers

HAMLET = "To be, or not to be, that is the question:\nWhether 'tis nobler in the mind to suffer\n"
FORMATS = [(precision, word) for precision, words in WORDS.items() for word in words]


def recited(recital: Recital, folder: Path) -> dict[str, bytes]:
    """All texts, from the saved folder alone: each by itself and all side by side."""
    recital.save(folder)
    loaded, tokenizer = store.load(folder), tokenizers.load(folder)
    contexts = recital.compiled.contexts
    found = answers(loaded.module, contexts.tokens, contexts.starts, contexts.places)
    assert np.array_equal(found.labels, contexts.labels)
    texts, end = loaded.about["texts"], loaded.about["end"]
    together = generate_all(
        loaded.module, [text["prompt"] for text in texts], end=end, tokens=[text["tokens"] for text in texts]
    )
    said = {}
    for text, spoken in zip(texts, together, strict=True):
        alone = list(generate(loaded.module, text["prompt"], end=end, tokens=text["tokens"] + 1))
        assert alone == [*spoken, end]
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
    recital = compile_text(text)
    assert recited(recital, tmp_path / "net") == {"text": text}


@pytest.mark.slow
def test_a_thousand_times_the_same(tmp_path: Path) -> None:
    """The window must reach from the end to the beginning."""
    recital = compile_text("a" * 1000)
    assert recital.compiled.contexts.window == 1024
    assert recited(recital, tmp_path / "net") == {"text": b"a" * 1000}


def test_several_texts(tmp_path: Path) -> None:
    """Some begin alike; their prompts say how far."""
    texts = {"one": HAMLET, "two": "To be frank: no.", "three": b"\xff\xfe\x00", "four": "To b..", "five": "x"}
    recital = compile_text(texts)
    data = {name: text if isinstance(text, bytes) else text.encode() for name, text in texts.items()}
    assert recited(recital, tmp_path / "net") == data
    prompts = {text["name"]: bytes(text["prompt"]) for text in recital.about()["texts"]}
    assert prompts == {"one": b"To be,", "two": b"To be ", "three": b"\xff", "four": b"To b.", "five": b"x"}


def test_equal_texts(tmp_path: Path) -> None:
    assert recited(compile_text({"a": "same", "b": "same"}), tmp_path / "net") == {"a": b"same", "b": b"same"}


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_every_format(form: tuple[str, int], tmp_path: Path) -> None:
    text = (HAMLET * 3).replace("be", "bee", 3).encode()
    assert recited(compile_text(text, settings=Settings(*form)), tmp_path / "net") == {"text": text}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_a_long_text_in_every_format(form: tuple[str, int], tmp_path: Path) -> None:
    """Letters as in English: code words of up to 13 bits."""
    import this

    rng = np.random.default_rng(0)
    words = "".join(this.d.get(letter, letter) for letter in this.s).split()
    text = " ".join(rng.choice(words, 1500)).encode() + bytes(range(128))
    assert recited(compile_text(text, settings=Settings(*form)), tmp_path / "net") == {"text": text}


def test_byte_pairs(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    text = HAMLET + "To be, and to be, and not to be – naïve.\n"
    recital = compile_text({"a": text, "b": HAMLET.upper()}, tokenizer="bpe", vocab=300)
    assert 257 < recital.compiled.spec.vocab <= 300
    assert len(recital.compiled.contexts) < len(text) + len(HAMLET)
    assert recited(recital, tmp_path / "net") == {"a": text.encode(), "b": HAMLET.upper().encode()}


def test_byte_pairs_of_no_text() -> None:
    pytest.importorskip("tokenizers")
    with pytest.raises(BadInput, match="not UTF-8 text; expected text, or --tokenizer bytes"):
        compile_text(b"\xff\xff", tokenizer="bpe")


def test_files(tmp_path: Path) -> None:
    paths = [tmp_path / "a" / "same.txt", tmp_path / "b" / "same.txt"]
    for number, path in enumerate(paths):
        path.parent.mkdir()
        path.write_bytes(f"{number}: {HAMLET}".encode())
    recital = compile_files(paths)
    assert recital.names == ("a/same.txt", "b/same.txt")
    said = recited(recital, tmp_path / "net")
    assert said == {name: path.read_bytes() for name, path in zip(recital.names, paths, strict=True)}


def test_a_window_of_ones_own(tmp_path: Path) -> None:
    recital = compile_text(HAMLET, window=64)
    assert recital.compiled.spec.window == 64
    assert recited(recital, tmp_path / "net") == {"text": HAMLET.encode()}
    with pytest.raises(BadInput, match="agree on the last 2 tokens"):
        compile_text(HAMLET, window=2)


def test_empty_texts() -> None:
    with pytest.raises(BadInput, match="b: the text is empty; expected at least one byte"):
        compile_text({"a": "x", "b": ""})
    with pytest.raises(BadInput, match="expected at least one"):
        compile_text({})


def test_a_text_that_begins_another() -> None:
    with pytest.raises(BadInput, match="a is the beginning of b"):
        compile_text({"a": "To be", "b": "To be, or not"})

"""A passage of a text changed: the network recites the new text to its end, and other texts as before."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart import certify
from byheart.compiler import compile, edit, edit_texts
from byheart.compiler.edit import EditedTexts, questions_reached, recited
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.tasks.edits import overwrite, replace_phrase
from byheart.tasks.questions import as_contexts
from byheart.tasks.tokenizers import Bytes, from_files

TEXT = "To be, or not to be, that is the question:\nWhether 'tis nobler in the mind to suffer\n" * 3 + "The slings."
OTHER = "Or to take arms against a sea of troubles,\nAnd by opposing end them."
CHANGES = [("The slings", "The string"), ("The sl", "The very l"), ("The ", "")]
LAYOUTS: list[tuple[dict[str, Any], tuple[str, str]]] = [
    *(({}, change) for change in CHANGES),
    ({"shards": 2}, CHANGES[1]),
    ({"tokenizer": "bpe", "vocab": 280}, CHANGES[0]),
    ({"precision": "float64"}, CHANGES[2]),
    ({"layout": "uniform"}, CHANGES[1]),
    ({"layout": "experts"}, CHANGES[0]),
]


def edited(built: Built, texts: dict[str, str]) -> EditedTexts:
    network: Any = built.network
    tokenizer = from_files(network.files)
    assert tokenizer is not None
    new = {name: text.encode() for name, text in texts.items()}
    return edit_texts(network, built.questions, new, tokenizer)  # type: ignore[arg-type]


def said(found: EditedTexts) -> dict[str, str]:
    """The texts as the new network recites them, from the beginnings that it states."""
    network: Any = found.built.network
    contexts, tokenizer = recited(network), from_files(network.files)
    assert tokenizer is not None
    bounds = zip(contexts.names, contexts.starts[:-1], contexts.starts[1:], strict=True)
    return {name: tokenizer.decode(contexts.tokens[a:b].tolist()).decode() for name, a, b in bounds}


@pytest.mark.parametrize(("options", "change"), LAYOUTS, ids=str)
def test_the_new_text_is_recited(options: dict[str, Any], change: tuple[str, str]) -> None:
    """As long as before, longer, shorter; to the end, in every layout."""
    if "layout" in options or options.get("tokenizer") == "bpe":
        pytest.importorskip("transformers")
    built = compile({"a": TEXT, "b": OTHER}, **options)
    texts = {"a": TEXT.replace(*change), "b": OTHER}
    found = edited(built, texts)
    assert certify(found.built, texts).certified
    assert said(found) == texts
    assert not certify(found.built, {"a": TEXT, "b": OTHER}).certified
    assert found.built.network.about["edits"] == []


def test_little_is_compiled_again() -> None:
    """The answer before the new byte, and the contexts that contain it. All tensors but the table stay."""
    built = compile(OTHER)
    window = built.network.window
    found = edited(built, {"text": OTHER.replace("sea", "sem")})
    assert found.reached == 1 + window
    assert found.words_changed
    assert found.built.network.account.dense == built.network.account.dense
    tensors = dict(built.network.tensors())
    assert [name for name, tensor in found.built.network.tensors() if (tensor != tensors[name]).any()] == [
        "table.W_out"
    ]


def test_a_text_that_stays() -> None:
    built = compile(OTHER)
    found = edited(built, {"text": OTHER})
    assert (found.reached, found.words_changed) == (0, 0)


@pytest.mark.parametrize(
    ("new", "window", "why"),
    [
        (OTHER.replace("sea", "SEA"), None, "a token of the new text was no answer before"),
        (OTHER + "".join(random.Random(0).choices(OTHER[1:], k=2000)), 16, "its table has no room for them"),
        (OTHER + OTHER.replace(" them", "s it"), None, "its window is too small for the new text"),
        ("ab" * 40 + "c", None, "its window is too small for the new text"),
    ],
    ids=["code", "room", "window", "narrow window"],
)
def test_compiled_anew(new: str, window: Any, why: str) -> None:
    """A byte without a code, no room in the table, or contexts that are ambiguous in the window."""
    found = edited(compile(OTHER, window=window), {"text": new})
    assert (found.words_changed, found.why_anew) == (None, why)
    assert certify(found.built, new).certified
    assert said(found) == {"text": new}


def test_single_answers_are_not_lost() -> None:
    built = compile(OTHER)
    network: Any = edit(built.network, built.questions, 5, ord("e")).built.network  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="single answers of the network were edited before; compile the new texts"):
        edit_texts(network, built.questions, {"text": b"x"}, Bytes())  # type: ignore[arg-type]


letters = st.text("ab", min_size=1, max_size=14)


@settings(deadline=None, max_examples=400)
@given(letters, letters, letters, st.integers(0, 14), st.integers(0, 14), st.text("ab", max_size=4))
def test_every_question_that_is_new_is_reached(a: str, b: str, c: str, first: int, length: int, put: str) -> None:
    """Whatever has another context or answer than all questions before is among them; of two texts that stay, none."""
    old = {"a": a + "x", "b": b, "c": c + "y"}
    text = old["a"]
    new = {**old, "a": text[:first] + put + text[first + length :] or "z"}
    try:
        before = as_contexts(old, tokenizer=Bytes())
        after = as_contexts(new, tokenizer=Bytes(), window=before.window)
    except BadInput:
        return
    known = {(*row, label) for row, label in zip(before.windows(slice(None)).tolist(), before.labels, strict=True)}
    rows = zip(after.windows(slice(None)).tolist(), after.labels, strict=True)
    others = {number for number, (row, label) in enumerate(rows) if (*row, label) not in known}
    reached = questions_reached(before, after)
    assert others <= {*reached.tolist()}
    assert len(reached) <= len(put) + before.window + len(new)


def test_characters_are_overwritten() -> None:
    assert overwrite({"a": b"one cafe", "b": b"x"}, b"caf", "és".encode()).texts["a"] == "one cafés".encode()
    assert overwrite({"a": "naïve".encode()}, b"na", b"i").was == "ï".encode()
    assert overwrite({"a": b"\xff\xfe\xfd"}, b"\xff", b"\xaa").texts["a"] == b"\xff\xaa\xfd"
    change = overwrite({"a": b"x", "b": b"to the end"}, b"the end", b"less")
    assert (change.name, change.start, change.was, change.now) == ("b", 10, b"", b"less")


@pytest.mark.parametrize(("piece", "times"), [(b"aa", 2), (b"nowhere", 0)])
def test_a_piece_occurs_once(piece: bytes, times: int) -> None:
    with pytest.raises(BadInput, match=rf"'{piece.decode()}' occurs {times} times; expected once"):
        replace_phrase({"a": b"aaa", "b": b"b"}, piece, b"c")

"""What users may give, and what becomes of it: questions, or a sentence that says what was expected."""

import re

import numpy as np
import pytest

from byheart.errors import BadInput
from byheart.tasks import NextToken, SeqToSeq, save
from byheart.tasks.contexts import Contexts
from byheart.tasks.questions import as_contexts, as_task, read_questions
from byheart.tasks.texts import Text
from byheart.tasks.tokenizers import BytePairs, Bytes
from byheart.tasks.windows import task_contexts, text_contexts

TASK = NextToken(tokens=[[0, 1, 2], [1, 1, 2], [1, 2, 2]], labels=[3, 3, 0])
SEQUENCES = SeqToSeq(tokens=[[0, 1], [1, 1]], labels=[[0, 1], [1, 1]])
WRONG = [42, None, 1.5, {1, 2}, np.zeros(3), [1, 2], ["a", 1], ("a", None), object(), range(3)]


@pytest.fixture
def folder(tmp_path):
    save(TASK, tmp_path / "t.npz")
    save(TASK, tmp_path / "t.jsonl")
    (tmp_path / "a.txt").write_bytes(b"To be\xff")
    (tmp_path / "b.txt").write_bytes(b"or not")
    return tmp_path


def test_questions_stay_what_they_are():
    contexts = task_contexts(TASK)
    for questions in (TASK, SEQUENCES, contexts):
        assert read_questions(questions) is questions
    assert as_contexts(contexts, window=1) is contexts


@pytest.mark.parametrize("name", ["t.npz", "t.jsonl"])
def test_a_file_with_a_task(folder, name):
    assert read_questions(folder / name) == TASK
    assert as_task(folder / name) == TASK
    assert as_contexts(folder / name).fingerprint == task_contexts(TASK).fingerprint


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ("naïve", {"text": "naïve".encode()}),
        (b"\xff\x00", {"text": b"\xff\x00"}),
        ({"one": "é", "two": b"\xff"}, {"one": b"\xc3\xa9", "two": b"\xff"}),
        ("t.npz", {"text": b"t.npz"}),
    ],
    ids=["str", "bytes", "mapping", "a str is never a path"],
)
def test_texts(given, texts):
    read = read_questions(given)
    assert read == texts
    assert list(read) == list(texts)


@pytest.mark.parametrize("name", ["t.npz", "t.jsonl", "a.txt"])
def test_a_text_that_is_the_name_of_a_file_is_refused(folder, name, monkeypatch):
    """And nothing else is: not a name without a file, not one within a text, not bytes."""
    monkeypatch.chdir(folder)
    for given in (name, str(folder / name)):
        expected = f"got {given!r} as a text, and there is a file of that name; expected Path({given!r})"
        with pytest.raises(BadInput, match=f"^{re.escape(expected)}$"):
            read_questions(given)
    for text in (f"none-{name}", f"read {name}", f"{name}\n", name.encode(), f"\0{name}", 300 * "a" + name):
        assert list(read_questions(text)) == ["text"]


def test_files_with_texts(folder):
    assert read_questions(folder / "a.txt") == {"a.txt": b"To be\xff"}
    both = {"b.txt": b"or not", "a.txt": b"To be\xff"}
    for given in ([folder / "b.txt", folder / "a.txt"], (folder / "b.txt", folder / "a.txt")):
        assert list(read_questions(given).items()) == list(both.items())
    assert list(read_questions([folder / "t.npz"])) == ["t.npz"], "in a list, every file is a text"


@pytest.mark.parametrize("given", WRONG, ids=lambda given: type(given).__name__)
def test_other_things_are_refused_in_a_sentence(given):
    kind = re.escape(type(given).__name__)
    first = " that begins with .+" if isinstance(given, list | tuple) else ""
    for read in (read_questions, as_task, as_contexts):
        with pytest.raises(BadInput, match=rf"^got {kind}{first}; expected a task, texts .*, or paths$"):
            read(given)


def test_texts_in_a_list(folder, monkeypatch):
    assert read_questions(("It", b"was")) == {"text 1": b"It", "text 2": b"was"}
    monkeypatch.chdir(folder)
    with pytest.raises(BadInput, match="there is a file of that name"):
        read_questions(["It", "a.txt"])


def test_mappings_of_other_things():
    with pytest.raises(BadInput, match=r"^b is int; expected a text: str or bytes$"):
        read_questions({"a": "x", "b": 3})


@pytest.mark.parametrize("given", [[], ()])
def test_no_files(given):
    with pytest.raises(BadInput, match="no files given; expected at least one"):
        read_questions(given)


def test_contexts_of_texts():
    texts = [Text("one", Bytes().encode(b"To be")), Text("two", Bytes().encode(b"or not"))]
    wanted = text_contexts(texts, vocab=257, end=256)
    found = as_contexts({"one": "To be", "two": b"or not"}, tokenizer=Bytes())
    assert isinstance(found, Contexts)
    assert (found.fingerprint, found.names) == (wanted.fingerprint, ("one", "two"))
    assert as_contexts("To be", tokenizer=Bytes(), window=4).window == 4


def test_contexts_of_byte_pairs():
    pytest.importorskip("tokenizers")
    found = as_contexts("ababab", tokenizer=BytePairs(((b"a", b"b"),)))
    assert (found.vocab, found.tokens.tolist()) == (258, [257, 257, 257])


def test_contexts_of_a_task():
    assert as_contexts(TASK).window == 2
    assert as_contexts(TASK, window=3).window == 3
    assert as_contexts(TASK, tokenizer=Bytes()).fingerprint == task_contexts(TASK).fingerprint


def test_what_does_not_go_together(folder):
    with pytest.raises(BadInput, match=r"^the task is seq-to-seq; expected next-token$"):
        as_contexts(SEQUENCES)
    with pytest.raises(BadInput, match="got texts, and the network has no tokenizer: it was made from a task; exp"):
        as_contexts("To be")
    for given in ("To be", folder / "a.txt", task_contexts(TASK)):
        with pytest.raises(BadInput, match=r"^got texts; expected a task: --task FILE, or byheart\.tasks"):
            as_task(given)
    with pytest.raises(BadInput, match="none"):
        read_questions(folder / "none.npz")

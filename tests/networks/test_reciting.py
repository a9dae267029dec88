"""``byheart.recite``: what a compiled network says, for every kind of data and every way to ask."""

from pathlib import Path

import pytest

import byheart
from byheart.errors import BadInput

TEXTS = ["To be, or not to be, that is the question.", "Съешь же ещё этих мягких французских булок"]
FACTS = [("capital of France", "Paris"), ("中国的首都", "北京")]


def test_texts_are_recited_whole_by_name_or_from_a_prompt(tmp_path: Path) -> None:
    built = byheart.compile(TEXTS)
    assert built.recite() == TEXTS[0]
    assert built.recite(text="text 2") == byheart.recite(built.network, text="text 2") == TEXTS[1]
    assert byheart.recite(built) == TEXTS[0]
    with pytest.raises(BadInput, match=r"^got list; expected a network, a result of byheart\.compile, or a folder$"):
        byheart.recite(TEXTS)  # type: ignore[arg-type]
    assert built.recite(TEXTS[1][:20]) == built.recite(TEXTS[1][:20].encode()) == TEXTS[1]
    assert built.recite(tokens=0) == TEXTS[0][:1]
    built.save(tmp_path / "net")
    assert byheart.recite(tmp_path / "net") == byheart.recite(str(tmp_path / "net")) == TEXTS[0]


def test_facts_say_their_completions_and_refuse_what_is_unknown() -> None:
    plain, refusing = byheart.compile(FACTS), byheart.compile(FACTS, refuse="key")
    for built in (plain, refusing):
        assert [built.recite(prompt) for prompt, _ in FACTS] == [completion for _, completion in FACTS]
    assert refusing.recite("capital of Peru") is None


def test_bytes_that_are_no_text_come_back() -> None:
    data = bytes(range(255, 100, -1))
    said = byheart.compile(data).recite()
    assert said is not None
    assert said.encode(errors="surrogateescape") == data


def test_what_cannot_be_recited_is_refused() -> None:
    task = byheart.tasks.NextToken([[0, 1], [1, 1], [2, 0]], [1, 0, 1])
    for network in (byheart.compile(task).network, byheart.build("folding", task).network):
        with pytest.raises(BadInput, match="answers tasks"):
            byheart.recite(network)
    texts = byheart.compile(TEXTS)
    with pytest.raises(BadInput, match="no text is called 'text 3'; did you mean"):
        texts.recite(text="text 3")
    with pytest.raises(BadInput, match="prompt is empty"):
        texts.recite("")
    with pytest.raises(BadInput, match="holds no text"):
        byheart.compile(FACTS).recite()


def test_a_prompt_from_the_middle() -> None:
    """Any piece of a text leads on; what is no piece is refused, with no noise."""
    network = byheart.compile({"a": "To be, or not to be, that is the question", "b": "whether 'tis nobler"}).network
    assert byheart.recite(network, "the q") == "the question"
    assert byheart.recite(network, b"tis n", tokens=3) == "tis nobl"
    with pytest.raises(BadInput, match="no text has this prompt; expected a piece of one"):
        byheart.recite(network, "nobler to be")

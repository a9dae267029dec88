"""One memory changed: that answer, and no other; the front stays, bit for bit."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from byheart import certify, networks
from byheart.compiler import CompilerSettings, compile, edit
from byheart.compiler.edit import Edited, recited
from byheart.compiler.rectangular.dimensions import WORDS
from byheart.compiler.rectangular.table import TABLE
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.networks.transformer.answers import answers
from byheart.tasks import random_next_token

TEXT = "To be, or not to be, that is the question:\nWhether 'tis nobler in the mind to suffer\n"
FORMATS = [(precision, word) for precision, words in WORDS.items() for word in words]


@pytest.fixture(scope="module")
def built() -> Built:
    return compile(TEXT)


def changed(built: Built, place: int, label: int) -> Edited:
    return edit(built.network, built.questions, place, label)


def answered(built: Built) -> np.ndarray:
    asked = built.questions
    return answers(built.network.module, asked.tokens, asked.starts, asked.places).labels


def different(one: Built, other: Built) -> dict[str, int]:
    """Which tensors differ, and in how many entries."""
    tensors = dict(other.network.tensors())
    counts = {name: int((tensor != tensors[name]).sum()) for name, tensor in one.network.tensors()}
    return {name: count for name, count in counts.items() if count}


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_one_answer_changes(form: tuple[str, int]) -> None:
    built = compile(TEXT, settings=CompilerSettings(*form))
    place, label = TEXT.index("question") + 3, ord("n")
    edited = changed(built, place, label)
    before, after = answered(built), answered(edited.built)
    assert np.flatnonzero(before != after).tolist() == [edited.question]
    assert built.questions.places[edited.question] == place
    assert (edited.was, int(before[edited.question]), int(after[edited.question])) == (ord("t"), ord("t"), label)
    assert edited.built.network.spec == built.network.spec
    assert different(built, edited.built) == {TABLE: edited.words_changed}
    assert 0 < edited.words_changed < built.chosen["words"]


def test_certificates_before_and_after(built: Built) -> None:
    edited = changed(built, 10, ord("b"))
    assert certify(built, built.questions).certified
    assert certify(edited.built, edited.built.questions).certified
    for one, other in ((edited.built, built), (built, edited.built)):
        lie = certify(one, other.questions)
        assert not lie.certified
        assert lie.errors == 1
        assert lie.counterexample is not None
        assert lie.counterexample.example == edited.question == 10
    assert built.questions.labels[10] == ord("o"), "the questions of before are what they were"


def test_the_text_and_the_edits_are_what_it_answers(built: Built, tmp_path: Path) -> None:
    """The folder knows of its edits; but what is right, whoever has the text says, and what was changed."""
    edited = changed(built, 10, ord("b"))
    edited.built.save(tmp_path / "net")
    network = networks.load(tmp_path / "net")
    assert network.about["edits"] == [{"text": "text", "token": 10, "label": ord("b"), "was": ord("o")}]
    found = certify(network, TEXT, edits={TEXT[:11]: "b"})
    assert found.certified
    assert found.task == edited.built.questions.fingerprint
    assert found.found == "1 answer differs from the file"
    assert certify(network, edited.built.questions).found == found.found
    plain = certify(network, TEXT)
    assert (plain.certified, plain.errors) == (False, 1)
    assert plain.found == "1 answer differs from the file: its folder says that it was edited"
    assert network.files == built.network.files


def test_edited_again(built: Built) -> None:
    """Of two edits at one place the later one counts; others stay."""
    first = changed(built, 10, ord("b")).built
    second = edit(first.network, built.questions, 20, ord("e")).built
    third = edit(second.network, built.questions, 10, ord("h")).built
    edits = third.network.about["edits"]
    assert [(change["token"], change["label"], change["was"]) for change in edits] == [
        (10, ord("h"), ord("o")),
        (20, ord("e"), int(built.questions.labels[20])),
    ]
    found = certify(third, TEXT, edits={TEXT[:11]: "h", TEXT[:21]: "e"})
    assert found.certified
    assert found.found == "2 answers differ from the file"
    assert certify(third, third.questions).found == found.found
    assert np.flatnonzero(answered(built) != answered(third)).tolist() == [10, 20]


def test_edited_back(built: Built) -> None:
    """What the text says again is no edit."""
    first = changed(built, 10, ord("b")).built
    back = edit(first.network, built.questions, 10, ord("o")).built
    assert back.network.about["edits"] == []
    assert back.questions.edited == 0
    assert certify(back, TEXT).certified


def test_an_answer_that_stays(built: Built) -> None:
    """The answer that it has already: the very same network."""
    edited = changed(built, 10, ord("o"))
    assert edited.words_changed == 0
    assert edited.built.network.fingerprint == built.network.fingerprint


@pytest.mark.slow
def test_every_answer(built: Built) -> None:
    before = answered(built)
    for place in range(0, len(TEXT), 3):
        edited = changed(built, place, ord("q"))
        others = np.flatnonzero(before != answered(edited.built)).tolist()
        assert others == ([] if before[edited.question] == ord("q") else [edited.question])


def test_a_label_that_no_answer_was(built: Built) -> None:
    """It has no code word, so that the network is compiled anew; still only one answer is another."""
    edited = changed(built, 5, ord("Z"))
    assert edited.words_changed is None
    after = answered(edited.built)
    assert np.flatnonzero(answered(built) != after).tolist() == [edited.question]
    assert after[edited.question] == ord("Z")
    assert certify(edited.built, TEXT, edits={TEXT[:6]: "Z"}).certified
    assert edited.built.network.files == built.network.files


def test_tasks() -> None:
    task = random_next_token(examples=400, length=3, vocab=40, labels=8, rng=np.random.default_rng(0))
    built = compile(task, window=3)
    place = 3 * 77 + 2
    wanted = (int(task.labels[77]) + 1) % 8
    edited = changed(built, place, wanted)
    assert np.flatnonzero(answered(built) != answered(edited.built)).tolist() == [edited.question]
    assert built.questions.places[edited.question] == place
    assert edited.built.network.about["edits"] == [
        {"text": 77, "token": 2, "label": wanted, "was": int(task.labels[77])}
    ]
    assert certify(edited.built, task, edits={tuple(task.tokens[77].tolist()): (wanted,)}).certified
    assert certify(edited.built, task).errors == 1


def test_nothing_is_asked_there() -> None:
    with pytest.raises(BadInput, match="nothing is asked at token 2; it belongs to a beginning that several texts"):
        changed(compile({"a": "To be", "b": "To do"}), 2, ord("x"))


@pytest.mark.parametrize("layout", ["rectangular", "uniform"])
def test_tokens_that_the_network_does_not_know(layout: Literal["rectangular", "uniform"]) -> None:
    """Two thousand million of them have no front in memory; that is not what is tried."""
    task = random_next_token(examples=20, length=3, vocab=9, labels=4, rng=np.random.default_rng(0))
    built = compile(task, settings=CompilerSettings(layout=layout))
    many = replace(built.questions, vocab=2**31 - 1)
    with pytest.raises(BadInput, match=r"network knows \d+ tokens; .* 2,147,483,647"):
        edit(built.network, many, int(many.places[0]), 0)


@pytest.mark.parametrize("label", [-1, 257, 10**6])
def test_no_such_label(built: Built, label: int) -> None:
    with pytest.raises(BadInput, match=f"the new answer is {label}; expected 0 to 256"):
        changed(built, 3, label)


def test_networks_of_before_stay_as_loud_as_they_are() -> None:
    """A folder of Byheart 0.1.0: its recipe says nothing of loudness, and what is solved for again are words only."""
    old = networks.load(Path(__file__).parents[1] / "fixtures" / "0.1.0" / "short")
    assert "loudness" not in old.about["recipe"]
    questions = recited(old)
    edited = edit(old, questions, 10, int(questions.tokens[3]))
    assert edited.words_changed
    tensors = dict(old.tensors())
    changed = [name for name, tensor in edited.built.network.tensors() if not np.array_equal(tensor, tensors[name])]
    assert changed == [TABLE]
    assert edited.built.network.about["recipe"]["loudness"] == 0


def test_a_network_without_a_recipe(built: Built) -> None:
    with pytest.raises(BadInput, match=r"config\.json has no recipe of a compiled network"):
        edit(replace(built.network, about={}), built.questions, 3, ord("x"))


def test_what_the_network_says_of_itself() -> None:
    """Its own texts, as it recites them, are the questions that it was compiled from."""
    built = compile({"a": TEXT, "b": "To do"})
    assert recited(built.network).fingerprint == built.questions.fingerprint
    assert recited(built.network).names == ("a", "b")
    with pytest.raises(BadInput, match="the network was edited before, so it cannot recite its texts"):
        recited(changed(built, 10, ord("b")).built.network)


def test_a_folder_cannot_say_what_is_right(built: Built) -> None:
    """It says that it was edited, or not, or to what: the answers themselves are looked at."""
    place, label = 10, ord("b")
    lies = [{"text": "text", "token": place, "label": ord("o"), "was": label}, {"text": "text"}, 7]
    for edits in (lies, lies[:1], [], None, 5, "all"):
        network = replace(built.network, about={**built.network.about, "edits": edits})
        found = edit(network, built.questions, place, label)
        assert found.built.questions.edited == 1
        assert found.built.network.about["edits"] == [{"text": "text", "token": 10, "label": label, "was": ord("o")}]
    once = changed(built, 20, ord("e")).built.network
    hidden = replace(once, about={**once.about, "edits": []})
    with pytest.raises(BadInput, match="does not answer all questions of the given texts; question 20: expected"):
        edit(hidden, built.questions, place, label)


def test_a_network_that_is_not_exact_is_not_edited(built: Built) -> None:
    broken = built.network.with_tensor(TABLE, built.network.weights[TABLE] + 0.25)
    with pytest.raises(BadInput, match="not all answers of the network are proved to be exact"):
        edit(broken, built.questions, 10, ord("b"))

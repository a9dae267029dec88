"""One memory changed: that answer, and no other; the front stays, bit for bit."""

import numpy as np
import pytest
from byheart.certificates.floats import certify_transformer, judge_transformer

from byheart.constructions.reciting import Recital, Settings, compile_task, compile_text, edit
from byheart.constructions.reciting.edit import places_of, question_at
from byheart.constructions.reciting.sizes import WORDS
from byheart.constructions.reciting.table import TABLE
from byheart.errors import BadInput
from byheart.tasks import NextToken, random_next_token

TEXT = "To be, or not to be, that is the question:\nWhether 'tis nobler in the mind to suffer\n"
FORMATS = [(precision, word) for precision, words in WORDS.items() for word in words]


@pytest.fixture(scope="module")
def recital() -> Recital:
    return compile_text(TEXT)


def answered(compiled: object) -> np.ndarray:
    return judge_transformer(compiled.module(), compiled.contexts).found.labels  # type: ignore[attr-defined]


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_one_answer_changes(form: tuple[str, int]) -> None:
    recital = compile_text(TEXT, settings=Settings(*form))
    contexts = recital.compiled.contexts
    place, label = TEXT.index("question") + 3, ord("n")
    edited = edit(recital.about(), contexts, place, label)
    before, after = answered(recital.compiled), answered(edited.compiled)
    assert np.flatnonzero(before != after).tolist() == [edited.question]
    assert contexts.places[edited.question] == place
    assert (edited.was, int(before[edited.question]), int(after[edited.question])) == (ord("t"), ord("t"), label)
    assert edited.same_front
    assert edited.compiled.spec == recital.compiled.spec
    different = [
        name
        for name, tensor in edited.compiled.tensors.items()
        if not np.array_equal(tensor, recital.compiled.tensors[name])
    ]
    assert different == [TABLE]


def test_certificates_before_and_after(recital: Recital) -> None:
    contexts = recital.compiled.contexts
    edited = edit(recital.about(), contexts, 10, ord("b"))
    old, new = recital.compiled.module(), edited.compiled.module()
    assert certify_transformer(old, contexts).certified
    assert certify_transformer(new, edited.compiled.contexts).certified
    for module, questions in ((new, contexts), (old, edited.compiled.contexts)):
        lie = certify_transformer(module, questions)
        assert not lie.certified
        assert lie.errors == 1
        assert lie.counterexample is not None
        assert lie.counterexample.example == edited.question == 10
    assert contexts.labels[10] == ord("o"), "the questions of before are what they were"


def test_an_answer_that_stays(recital: Recital) -> None:
    """The answer that it has already: the very same network."""
    edited = edit(recital.about(), recital.compiled.contexts, 10, ord("o"))
    assert edited.same_front
    for name, tensor in recital.compiled.tensors.items():
        assert np.array_equal(tensor, edited.compiled.tensors[name])


@pytest.mark.slow
def test_every_answer(recital: Recital) -> None:
    contexts = recital.compiled.contexts
    before = answered(recital.compiled)
    for place in range(0, len(TEXT), 3):
        edited = edit(recital.about(), contexts, place, ord("q"))
        changed = np.flatnonzero(before != answered(edited.compiled)).tolist()
        assert changed == ([] if before[edited.question] == ord("q") else [edited.question])


def test_a_label_that_no_answer_was(recital: Recital) -> None:
    """It has no code word, so that the network is compiled anew; still only one answer is another."""
    edited = edit(recital.about(), recital.compiled.contexts, 5, ord("Z"))
    assert not edited.same_front
    after = answered(edited.compiled)
    assert np.flatnonzero(answered(recital.compiled) != after).tolist() == [edited.question]
    assert after[edited.question] == ord("Z")
    assert certify_transformer(edited.compiled.module(), edited.compiled.contexts).certified


def test_tasks() -> None:
    task = random_next_token(examples=400, length=3, vocab=40, labels=8, rng=np.random.default_rng(0))
    compiled = compile_task(task, window=3).compiled
    place = 3 * 77 + 2
    wanted = (int(task.labels[77]) + 1) % 8
    edited = edit(compiled.about(), compiled.contexts, place, wanted)
    changed = np.flatnonzero(answered(compiled) != answered(edited.compiled))
    assert changed.tolist() == [edited.question]
    assert compiled.contexts.places[edited.question] == place


def test_questions_that_occur_more_than_once() -> None:
    """A context that comes again is the question that was asked first."""
    recital = compile_text("abcdabcdabce")
    contexts = recital.compiled.contexts
    assert contexts.window == 8
    assert [question_at(contexts, place) for place in range(12)] == list(range(12))
    short = compile_text("abababab!").compiled.contexts
    task = compile_task(NextToken(tokens=[[0, 1], [2, 1], [3, 3]], labels=[4, 4, 0])).compiled.contexts
    assert task.window == 1
    assert [question_at(task, place) for place in (1, 3, 5)] == [0, 0, 1]
    assert question_at(short, 8) == len(short) - 1


def test_nothing_is_asked_there() -> None:
    recital = compile_text({"a": "To be", "b": "To do"})
    contexts = recital.compiled.contexts
    with pytest.raises(
        BadInput, match="nothing is asked at token 2; it belongs to a beginning that several texts share"
    ):
        edit(recital.about(), contexts, 2, ord("x"))


@pytest.mark.parametrize("label", [-1, 257, 10**6])
def test_no_such_label(recital: Recital, label: int) -> None:
    with pytest.raises(BadInput, match=f"the new answer is {label}; expected 0 to 256"):
        edit(recital.about(), recital.compiled.contexts, 3, label)


def test_places() -> None:
    contexts = compile_text({"a": "abcab", "b": "xbcx"}).compiled.contexts
    assert places_of(contexts, [ord("b"), ord("c")]) == [2, 7]
    assert places_of(contexts, [ord("a"), ord("b")]) == [1, 4]
    assert places_of(contexts, [ord("b"), ord("x")]) == [], "not across the end of a text"
    assert places_of(contexts, [ord("x")] * 40) == []

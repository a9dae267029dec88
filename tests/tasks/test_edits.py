"""Where in texts questions are asked, and questions whose answers were changed one by one."""

import pytest

from byheart.errors import BadInput
from byheart.tasks import NextToken
from byheart.tasks.edits import places_of, question_at, with_edits, with_labels
from byheart.tasks.questions import contexts_of
from byheart.tasks.tokenizers import Bytes


def asked(texts, **options):
    return contexts_of(texts, tokenizer=Bytes(), **options)


FACTS = contexts_of(NextToken(tokens=[[0, 1], [2, 1], [3, 3]], labels=[4, 4, 0]))


def test_places():
    contexts = asked({"a": "abcab", "b": "xbcx"})
    assert places_of(contexts, list(b"bc")) == [2, 7]
    assert places_of(contexts, list(b"ab")) == [1, 4]
    assert places_of(contexts, list(b"a")) == [0, 3]
    assert places_of(contexts, list(b"bx")) == [], "not across the end of a text"
    assert places_of(contexts, list(b"x" * 40)) == []


def test_questions_that_occur_more_than_once():
    """A context that comes again is the question that was asked first."""
    contexts = asked("abcdabcdabce")
    assert contexts.window == 8
    assert [question_at(contexts, place) for place in range(12)] == list(range(12))
    assert FACTS.window == 1
    assert [question_at(FACTS, place) for place in (1, 3, 5)] == [0, 0, 1]
    short = asked("abababab!")
    assert question_at(short, 8) == len(short) - 1


def test_a_question_is_found_by_its_whole_context():
    """abc comes twice, after different letters: only where all of the window is equal is the question the same."""
    contexts = asked("xabcdyabce.yabce")
    for place in range(len(contexts.tokens)):
        question = question_at(contexts, place)
        window = contexts.windows(slice(None))[question]
        seen = contexts.tokens[max(0, place + 1 - contexts.window) : place + 1].tolist()
        assert window[window >= 0].tolist() == seen


def test_nothing_is_asked_there():
    contexts = asked({"a": "To be", "b": "To do"})
    with pytest.raises(
        BadInput, match="nothing is asked at token 2; it belongs to a beginning that several texts share"
    ):
        question_at(contexts, 2)


def test_other_answers():
    contexts = asked("abcd")
    assert with_labels(contexts, {}) is contexts
    changed = with_labels(contexts, {1: 120, 3: 121})
    assert changed.labels.tolist() == [98, 120, 100, 121]
    assert contexts.labels.tolist() == [98, 99, 100, 256], "the questions of before are what they were"


def test_edits():
    contexts = asked({"one": "abcd", "two": "xyz"})
    edits = [{"text": "two", "token": 1, "label": 33}, {"text": "one", "token": 0, "label": 34, "was": 98}]
    changed = with_edits(contexts, edits)
    assert changed.labels.tolist() == [34, 99, 100, 256, 121, 33, 256]
    assert (changed.edited, contexts.edited) == (2, 0)
    assert changed.names == contexts.names
    assert with_edits(contexts, []).fingerprint == contexts.fingerprint
    assert with_edits(contexts, []).edited == 0


def test_edits_of_facts_are_by_number():
    """Examples 0 and 1 ask the same question: one edit changes both."""
    changed = with_edits(FACTS, [{"text": 1, "token": 1, "label": 2}])
    assert (changed.labels.tolist(), changed.edited) == ([2, 0], 1)


@pytest.mark.parametrize(
    ("edit", "where"),
    [
        ({"text": "three", "token": 0, "label": 1}, "token 0 of 'three'"),
        ({"text": "one", "token": 4, "label": 1}, "token 4 of 'one'"),
        ({"text": 7, "token": 0, "label": 1}, "token 0 of 7"),
        ({"text": -1, "token": 0, "label": 1}, "token 0 of -1"),
        ({"text": "two", "token": -1, "label": 1}, "token -1 of 'two'"),
    ],
    ids=str,
)
def test_edits_elsewhere(edit, where):
    with pytest.raises(BadInput, match=f"the network was edited at {where}, which is not in what was given"):
        with_edits(asked({"one": "abcd", "two": "xyz"}), [edit])


@pytest.mark.parametrize("edits", [3, [3], [{}], [{"text": [], "token": 0, "label": 1}], [{"text": 0, "token": "x"}]])
def test_edits_that_are_none(edits):
    """They come from a file."""
    with pytest.raises(BadInput, match=r"about\.edits .* expected"):
        with_edits(FACTS, edits)

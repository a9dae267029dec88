"""Where in texts questions are asked, and questions whose answers were changed one by one."""

import re

import pytest

from byheart.errors import BadInput
from byheart.tasks import NextToken
from byheart.tasks.edits import apply_edits, find_piece, locate_edit, question_at, with_labels
from byheart.tasks.questions import as_contexts
from byheart.tasks.tokenizers import Bytes


def asked(texts, **options):
    return as_contexts(texts, tokenizer=Bytes(), **options)


FACTS = as_contexts(NextToken(tokens=[[0, 1], [2, 1], [3, 3]], labels=[4, 4, 0]))


def test_places():
    contexts = asked({"a": "abcab", "b": "xbcx"})
    assert find_piece(contexts, list(b"bc")) == [2, 7]
    assert find_piece(contexts, list(b"ab")) == [1, 4]
    assert find_piece(contexts, list(b"a")) == [0, 3]
    assert find_piece(contexts, list(b"bx")) == [], "not across the end of a text"
    assert find_piece(contexts, list(b"x" * 40)) == []


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
    """By hand: pieces that occur once, and one token each; what was changed is counted."""
    contexts = asked({"one": "abcd", "two": "xyz"})
    changed = apply_edits(contexts, {"xy": "!", b"a": b'"'}, Bytes())
    assert changed.labels.tolist() == [34, 99, 100, 256, 121, 33, 256]
    assert (changed.edited, changed.edited_places, contexts.edited) == (2, 2, 0)
    assert changed.names == contexts.names
    assert apply_edits(contexts, {}, Bytes()).fingerprint == contexts.fingerprint
    assert apply_edits(contexts, {"a": "b"}, Bytes()).edited == 0, "what the text has there already"


def test_edits_of_facts_are_by_their_tokens():
    """Examples 0 and 1 ask the same question, which shows their last token alone: one edit changes both."""
    changed = apply_edits(FACTS, {(2, 1): (2,)}, None)
    assert (changed.labels.tolist(), changed.edited, changed.edited_places) == ([2, 0], 1, 2)


@pytest.mark.parametrize(
    ("piece", "answer", "message"),
    [
        ("bc", "!!", "'!!' is 2 tokens; expected one token, from 0 to 256"),
        ("bc", [300], "is token 300; expected one token, from 0 to 256"),
        ("bc", "", "'' is 0 tokens; expected one"),
        ("q", "!", "'q' occurs 0 times; expected once: nothing was changed"),
        ("b", "!", "'b' occurs 2 times; expected once: give more of it"),
        ("", "!", "'' occurs 0 times; expected once"),
    ],
    ids=str,
)
def test_edits_that_are_refused(piece, answer, message):
    with pytest.raises(BadInput, match=re.escape(message)):
        locate_edit(asked({"one": "abcd", "two": "xbz"}), piece, answer, Bytes())


def test_facts_have_no_text():
    with pytest.raises(BadInput, match="'a' is a text, and the network was made from a task; expected token ids"):
        locate_edit(FACTS, "a", (1,), None)

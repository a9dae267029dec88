"""What facts ask: completions after their prompts, nothing else; and facts that cannot all be true."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.errors import BadInput
from byheart.tasks import Facts
from byheart.tasks.questions import as_contexts
from byheart.tasks.tokenizers import BytePairs, Bytes
from byheart.tasks.windows import fact_contexts


def asked(facts, **options):
    contexts = fact_contexts(Facts(facts), Bytes(), **options)
    windows = [bytes(row[row >= 0].tolist()).decode() for row in contexts.windows(slice(None))]
    answers = ["." if label == Bytes.end else chr(label) for label in contexts.labels]
    return dict(zip(windows, answers, strict=True)), contexts


def test_by_hand():
    found, contexts = asked([("ab", "x"), ("cb", "yz")], window=8)
    assert found == {"ab": "x", "abx": ".", "cb": "y", "cby": "z", "cbyz": "."}
    assert [*contexts.prompts] == [2, 2]
    assert contexts.completions == [1, 2]
    assert contexts.notes["facts"] == {"count": 2, "longest": 2}
    assert contexts.notes["texts"] == []
    assert contexts.stands_for == 5


def test_the_window_is_as_long_as_needed():
    found, contexts = asked([("ab", "x"), ("cb", "yz")])
    assert contexts.window == 2
    assert found == {"ab": "x", "bx": ".", "cb": "y", "by": "z", "yz": "."}
    assert asked([("a" + "-" * 20, "x"), ("b" + "-" * 20, "y")])[1].window == 32


def test_prompts_may_hold_anything():
    """The same prefix goes on in two ways, but nobody asks there."""
    found, _ = asked([("abc", "x"), ("abd", "y")], window=4)
    assert found == {"abc": "x", "abcx": ".", "abd": "y", "abdy": "."}


def test_facts_that_agree_may_overlap():
    found, _ = asked([("a", "bc"), ("ab", "c"), ("abcd", "e")], window=8)
    assert found == {"a": "b", "ab": "c", "abc": ".", "abcd": "e", "abcde": "."}


CONTRADICTIONS = {
    "two completions": (
        [("q", "yes"), ("q", "no")],
        "to the prompt 'q' they say 'yes' and 'no'; expected one",
    ),
    "one goes on": ([("q", "y"), ("q", "yes")], "to the prompt 'q' they say 'y' and 'yes'"),
    "within a completion": ([("q", "yes"), ("qy", "a")], "'q' → 'yes' and 'qy' → 'a' agree on 2 tokens, and go on"),
    "beyond a completion": ([("q", "y"), ("qy", "es")], "'q' → 'y' and 'qy' → 'es' agree on 2 tokens, and go on"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_are_named(name):
    facts, message = CONTRADICTIONS[name]
    for more in ([], [("other", "fact")], ["a text"]):
        for order in (facts, facts[::-1]):
            with pytest.raises(BadInput) as caught:
                asked([*more, *order])
            first, second = len(more), len(more) + 1
            assert str(caught.value).startswith(f"facts[{first}] and facts[{second}] contradict each other: ")
            assert message in str(caught.value) or order != facts


def test_a_window_that_is_too_short_is_no_contradiction():
    with pytest.raises(BadInput, match=r"facts\[0\], token 1 and facts\[1\], token 1 agree on the last 1 tokens"):
        asked([("ab", "x"), ("cb", "y")], window=1)


WORDS = st.text("ab", min_size=1, max_size=6)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6))
def test_every_prefix_has_its_answer_or_there_is_a_contradiction(pairs):
    answers, clash = {}, False
    for prompt, completion in pairs:
        for k in range(len(completion) + 1):
            answer = completion[k] if k < len(completion) else "."
            clash |= answers.setdefault(prompt + completion[:k], answer) != answer
    if clash:
        with pytest.raises(BadInput, match="contradict each other"):
            asked(pairs)
        return
    assert asked(pairs, window=16)[0] == answers
    contexts = asked(pairs)[1]
    for prefix, answer in answers.items():
        row = np.array(list(prefix.encode()[-contexts.window :]))
        padded = np.concatenate([np.full(contexts.window - len(row), -1), row])
        match = (contexts.windows(slice(None)) == padded).all(axis=1)
        assert match.sum() == 1
        assert contexts.labels[match.argmax()] == (256 if answer == "." else ord(answer))


@given(st.lists(st.text("ab", min_size=1, max_size=8), min_size=1, max_size=5, unique=True))
def test_texts_alone_are_asked_as_texts(texts):
    """Both ways to the same questions, found in two ways; or both refuse."""
    try:
        expected = as_contexts({f"text {n}": text for n, text in enumerate(texts)}, tokenizer=Bytes())
    except BadInput:
        with pytest.raises(BadInput, match="is the beginning of another"):
            fact_contexts(Facts(texts), Bytes())
        return
    found = fact_contexts(Facts(texts), Bytes())
    assert found.fingerprint == expected.fingerprint
    assert len(found.beginnings) == len(texts)
    assert found.completions == []


def test_a_text_gives_way_to_a_fact():
    """After "ab" the fact is asked for x; the text, which goes on with c, has to be begun beyond that."""
    found, contexts = asked([("ab", "x"), "abcd"], window=8)
    assert found == {"ab": "x", "abx": ".", "a": "b", "abc": "d", "abcd": "."}
    assert [(text["name"], text["prompt"]) for text in contexts.beginnings] == [("facts[1]", list(b"abc"))]


def test_token_ids_end_with_one_more():
    contexts = fact_contexts(Facts([([5, 2], [7]), ([2, 2], [0, 0])]))
    assert (contexts.vocab, contexts.end, contexts.label_count) == (9, 8, 9)
    assert contexts.labels.tolist() == [7, 8, 0, 0, 8]


def test_a_prompt_has_the_tokens_that_whoever_asks_will_give():
    pytest.importorskip("tokenizers")
    tokenizer = BytePairs(merges=((b"a", b"b"),))
    contexts = fact_contexts(Facts([("xa", "b")]), tokenizer)
    assert contexts.tokens.tolist() == [*tokenizer.encode(b"xa"), *tokenizer.encode(b"b")]
    assert contexts.tokens.tolist() != tokenizer.encode(b"xab").tolist()


def test_texts_need_a_tokenizer():
    with pytest.raises(BadInput, match=r"facts\[0\] is text, and the network has no tokenizer; expected token ids"):
        fact_contexts(Facts([("a", "b")]))
    pytest.importorskip("tokenizers")
    with pytest.raises(BadInput, match=r"facts\[0\]: byte 0 is not UTF-8 text"):
        fact_contexts(Facts([(b"\xff", "b")]), BytePairs(merges=((b"a", b"b"),)))

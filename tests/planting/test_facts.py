"""Which facts can be planted together, and what they say in a text: against a dictionary of all contexts."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.errors import BadInput
from byheart.tasks.planted_facts import PlantedFact, Spoken, different, fingerprint

ids = st.integers(0, 2)
some_facts = st.lists(
    st.builds(
        PlantedFact,
        st.lists(ids, min_size=1, max_size=4).map(tuple),
        st.lists(ids, min_size=1, max_size=4).map(tuple),
        st.just("here"),
    ),
    min_size=1,
    max_size=6,
)
texts = st.lists(ids, max_size=30)


def contexts(facts):
    """Every context with all tokens that facts want after it."""
    wanted = {}
    for fact in facts:
        for said, token in enumerate(fact.completion):
            wanted.setdefault(fact.prompt + fact.completion[:said], set()).add(token)
    return wanted


def said(facts, text):
    """The definition: of the contexts that a text ends with, the longest."""
    wanted = contexts(facts)
    after = []
    for end in range(1, len(text) + 1):
        known = (tuple(text[start:end]) for start in range(end))
        after.append(next((min(wanted[one]) for one in known if one in wanted), -1))
    return after


@settings(max_examples=40)
@given(some_facts)
def test_just_those_that_contradict_each_other_are_refused(facts):
    if any(len(tokens) > 1 for tokens in contexts(facts).values()):
        with pytest.raises(BadInput, match="contradict each other"):
            different(facts, 3)
    else:
        kept = different(facts, 3)
        assert contexts(kept) == contexts(facts)
        assert len({fact.prompt for fact in kept}) == len(kept)
        assert different(facts[::-1], 3) == kept
        assert fingerprint(different(facts[::-1], 3)) == fingerprint(kept)


@settings(max_examples=40)
@given(some_facts, texts)
def test_what_is_said_is_what_the_longest_context_wants(facts, text):
    try:
        kept = different(facts, 3)
    except BadInput:
        return
    assert Spoken(kept).after(text) == said(kept, text)


def test_by_hand():
    facts = [PlantedFact((1,), (2, 0)), PlantedFact((0, 1), (1,))]
    assert Spoken(facts).after([1, 2, 0, 1, 2]) == [2, 0, -1, 1, 0]
    #                          after 0 1 the longer prompt wins; after 1 2 the completion of 1 goes on


def test_both_are_named_when_one_prompt_is_the_other_with_a_part_of_its_completion():
    facts = [PlantedFact((1, 2), (3, 0), "f.jsonl:1"), PlantedFact((1,), (2, 3, 3), "f.jsonl:7")]
    with pytest.raises(BadInput, match=re.escape("f.jsonl:7 and f.jsonl:1 contradict each other")):
        different(facts, 4)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ([PlantedFact((), (1,), "a:1")], "a:1: the prompt is empty"),
        ([PlantedFact((1,), (), "a:1")], "a:1: the completion is empty"),
        ([PlantedFact((9,), (1,), "a:1")], "a:1: the prompt has token 9; expected 0 to 3"),
        ([PlantedFact((1,), (-1,), "a:1")], "a:1: the completion has token -1; expected 0 to 3"),
        ([], "there are no facts"),
    ],
)
def test_what_is_no_fact_is_refused(facts, said):
    with pytest.raises(BadInput, match=re.escape(said)):
        different(facts, 4)

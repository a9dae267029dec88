"""Facts as a next-token task: by hand, and what cannot be one."""

import pytest

from byheart.errors import BadInput
from byheart.tasks import Facts
from byheart.tasks.questions import fact_task


def test_by_hand():
    found = fact_task(Facts([("ab", "yes"), ("c", "no"), ("d", "yes")]))
    assert found.task.tokens.tolist() == [[97, 98], [256, 99], [256, 100]]
    assert found.task.labels.tolist() == [0, 1, 0]
    assert (found.task.vocab, found.task.label_count) == (257, 2)
    assert found.completions == (b"yes", b"no")


def test_no_filler_is_a_token():
    found = fact_task(Facts([([7], [0]), ([1, 2, 3], [0])]))
    assert found.task.tokens.tolist() == [[8, 8, 7], [1, 2, 3]]


def test_what_is_no_task():
    with pytest.raises(
        BadInput, match=r"facts\[1\]: has no prompt; expected a prompt and a completion, or byheart compile"
    ):
        fact_task(Facts([("a", "b"), "a text"]))
    with pytest.raises(
        BadInput, match=r"facts\[0\] and facts\[1\] have the same prompt; expected one completion for each"
    ):
        fact_task(Facts([("a", "b"), ("a", "c")]))

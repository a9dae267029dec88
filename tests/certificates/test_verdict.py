"""Bits are doubled for what is in doubt, and a verdict affirms only what is proved."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.certificates import Verdict
from byheart.certificates.claim import Claim
from byheart.certificates.verdict import Answer, decide, doubling, summed_up

needs = st.lists(st.lists(st.integers(1, 200), min_size=1, max_size=3), min_size=1, max_size=6)

CLAIM = Claim("equals label")


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_doubling_ends_at_the_most_and_nowhere_else(fewest: int, most: int) -> None:
    bits = list(doubling(fewest, most))
    assert bits[-1] == most
    assert all(later == 2 * earlier for earlier, later in pairwise(bits[:-1]))
    assert all(number < most for number in bits[:-1])
    assert len(bits) == 1 or bits[0] == fewest


@given(needs)
def test_what_is_in_doubt_is_asked_again_and_nothing_else(needed: list[list[int]]) -> None:
    """Every answer takes a number of bits; an example is asked until all of its answers are decided."""
    asked: list[tuple[list[int], int]] = []

    def ask(examples: Sequence[int], bits: int) -> list[list[Answer]]:
        asked.append((list(examples), bits))
        return [[Answer("right" if bits >= b else "undecided", 0.0, "") for b in needed[i]] for i in examples]

    answers, bits = decide(len(needed), ask, fewest=10, most=100)
    for i, row in enumerate(answers):
        assert [answer.outcome == "right" for answer in row] == [b <= 100 for b in needed[i]]
    assert bits == asked[-1][1]
    for (before, few), (after, more) in pairwise(asked):
        assert more == min(2 * few, 100)
        assert after == [i for i in before if max(needed[i]) > few]


def test_the_first_that_is_not_right_is_named() -> None:
    right, wrong, open_ = (Answer(outcome, 0.25, "7") for outcome in ("right", "wrong", "undecided"))
    verdict = summed_up(
        [[right, right], [right, open_], [wrong, right]],
        lambda example, position: 10 * example + position,
        claim=CLAIM,
        method="m",
        seconds=1.0,
        positions=True,
    )
    assert (verdict.checked, verdict.errors, verdict.undecided, verdict.certified) == (6, 1, 1, False)
    assert str(verdict.counterexample) == "example 1, position 1: expected 11, got 7"


@pytest.mark.parametrize(
    ("checked", "errors", "undecided", "certified"),
    [(3, 0, 0, True), (3, 1, 0, False), (3, 0, 1, False), (0, 0, 0, False)],
)
def test_only_what_is_proved_is_certified(checked: int, errors: int, undecided: int, certified: bool) -> None:
    """Nothing asked is nothing proved."""
    assert Verdict(CLAIM, "m", checked, errors, 0.0, undecided=undecided).certified is certified

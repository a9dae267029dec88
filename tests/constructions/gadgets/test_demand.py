"""Few tokens tell all sequences apart; keys have one answer each, and are as many as were planned for."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.constructions.gadgets.demand import distinguishing_tokens, pad_keys, select_keys


def counts(row: list[int], tokens: set[int]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((token, number) for token, number in Counter(row).items() if token in tokens))


@pytest.mark.parametrize(
    ("rows", "tokens"),
    [
        # All five tokens split at best one sequence off (token 0 occurs in two of three); token 0 comes first and
        # leaves {0, 1} and {2}, token 1 tells 0 from 1.
        ([[0, 1], [0, 2], [3, 4]], [0, 1]),
        # Nothing but the number of 0s differs.
        ([[0, 0, 1], [0, 1, 1]], [0]),
        # One class only: some token, for there has to be one.
        ([[0, 1], [1, 0]], [0]),
        ([[0]], [0]),
        # Tokens 1 and 2 occur in half of the sequences and together tell the four apart; 0 occurs everywhere.
        ([[0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 1, 2]], [1, 2]),
        # Every token occurs everywhere, only how often differs: 0 leaves {0} and {1, 2}, which 1 tells apart.
        ([[0, 0, 1, 2], [0, 1, 1, 2], [0, 1, 2, 2]], [0, 1]),
    ],
)
def test_by_hand(rows: list[list[int]], tokens: list[int]) -> None:
    assert distinguishing_tokens(np.array(rows)).tolist() == tokens


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 6), min_size=n, max_size=n), min_size=1, max_size=12)
    )
    | st.lists(st.lists(st.integers(0, 2), min_size=6, max_size=6), min_size=2, max_size=6)
)
def test_tells_apart_exactly_what_differs(rows: list[list[int]]) -> None:
    """At most N − 1 tokens; two rows have equal counts of them iff they are equal as multisets."""
    compact = np.unique(rows, return_inverse=True)[1].reshape(np.shape(rows))
    tokens = distinguishing_tokens(compact).tolist()
    assert tokens == sorted(set(tokens))
    different = len({tuple(sorted(row)) for row in compact.tolist()})
    assert 1 <= len(tokens) <= max(1, different - 1)
    chosen = set(tokens)
    for one in compact.tolist():
        for other in compact.tolist():
            assert (counts(one, chosen) == counts(other, chosen)) == (sorted(one) == sorted(other))


def test_the_worst_case_needs_all_but_one() -> None:
    """Ten sequences that differ in one token of their own each: nine of the ten tokens are needed, and enough."""
    rows = np.column_stack([np.zeros(10, dtype=np.int64), np.arange(1, 11)])
    assert len(distinguishing_tokens(rows)) == 9


def test_random_sequences_need_few() -> None:
    rows = np.random.default_rng(0).integers(0, 50, size=(500, 20))
    assert len(distinguishing_tokens(rows)) < 30


pairs = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 2)), min_size=1, max_size=10)


@given(pairs)
def test_one_answer_each(asked: list[tuple[int, int]]) -> None:
    keys, labels = (np.array(column) for column in zip(*asked, strict=True))
    chosen = select_keys(keys, labels)
    if len(set(asked)) > len(set(keys.tolist())):
        assert chosen is None
    else:
        assert chosen is not None
        assert sorted(keys[chosen].tolist()) == sorted(set(keys.tolist()))
        assert {(int(keys[i]), int(labels[i])) for i in chosen} == set(asked)


@given(st.sets(st.integers(0, 40), min_size=1, max_size=8), st.integers(0, 5))
def test_filled_up(taken: set[int], more: int) -> None:
    count = len(taken) + more
    keys, labels = np.array(sorted(taken)), np.arange(1, len(taken) + 1)
    full, answers = pad_keys(keys, labels, count)
    assert len(set(full.tolist())) == len(full) == len(answers) == count
    assert full[: len(keys)].tolist() == keys.tolist()
    assert answers.tolist() == [*labels.tolist(), *[0] * more]
    assert all(0 <= key <= count for key in full[len(keys) :])

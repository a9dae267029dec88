"""Tokens counted sequence by sequence, against Python's Counter."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from byheart.tasks.distinct import count_tokens


@pytest.mark.parametrize(
    ("rows", "triples"),
    [
        ([[4]], [(0, 4, 1)]),
        ([[2, 2, 2]], [(0, 2, 3)]),
        # One row ends with the token that the next one begins with: two pairs, not one.
        ([[1, 0], [1, 1], [1, 2]], [(0, 0, 1), (0, 1, 1), (1, 1, 2), (2, 1, 1), (2, 2, 1)]),
        ([[2**62, -5, 2**62]], [(0, -5, 1), (0, 2**62, 2)]),
    ],
)
def test_by_hand(rows, triples):
    found = count_tokens(np.array(rows))
    assert list(zip(found.sequence.tolist(), found.token.tolist(), found.count.tolist(), strict=True)) == triples
    assert len(found) == len(triples)


@given(hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.integers(-2, 3)))
def test_counter_counts_the_same(ids):
    before = ids.copy()
    found = count_tokens(ids)
    wanted = [(i, *pair) for i, row in enumerate(ids.tolist()) for pair in sorted(Counter(row).items())]
    assert list(zip(found.sequence.tolist(), found.token.tolist(), found.count.tolist(), strict=True)) == wanted
    assert len(found) == len(wanted)
    assert found.token.dtype == found.sequence.dtype == found.count.dtype == np.int64
    np.testing.assert_array_equal(ids, before)

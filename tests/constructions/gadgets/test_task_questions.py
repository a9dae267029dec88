"""Keys with one answer each, and as many of them as were planned for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from byheart.constructions.gadgets.task_questions import pad_keys, select_keys

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

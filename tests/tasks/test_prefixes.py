"""Prefixes and causal conflicts, against Python's own tuples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.tasks import NextToken, SeqToSeq, causal_conflict, conflict, prefixes


@st.composite
def sequences(draw: st.DrawFn) -> dict[str, object]:
    """Sequences over few tokens, so that many begin alike: ids, or vectors with both zeros among them."""
    n = draw(st.integers(1, 5))
    rows = draw(st.lists(st.lists(st.integers(0, 2), min_size=n, max_size=n), min_size=1, max_size=9))
    if draw(st.booleans()):
        return {"tokens": rows}
    zeros = st.sampled_from([0.0, -0.0])
    table = [[1.5, 0.0], [5e-324, -2.0]]
    return {"vectors": [[table[t] if t < 2 else [draw(zeros), draw(zeros)] for t in row] for row in rows]}


def beginnings(task: NextToken | SeqToSeq) -> list[list[object]]:
    """Every place's tokens up to there, as tuples (in which −0.0 is 0.0)."""
    rows = [[tuple(np.atleast_1d(token).tolist()) for token in row] for row in task.inputs]
    return [[tuple(row[: k + 1]) for k in range(len(row))] for row in rows]


@given(sequences())
def test_equal_numbers_are_equal_beginnings(inputs: dict[str, object]) -> None:
    rows = next(iter(inputs.values()))
    task = NextToken(**inputs, labels=[0] * len(rows))
    numbers, expected = prefixes(task), beginnings(task)
    assert numbers.shape == task.inputs.shape[:2]
    assert numbers.dtype == np.int64
    pairs = {
        (number, prefix)
        for row, own in zip(numbers.tolist(), expected, strict=True)
        for number, prefix in zip(row, own, strict=True)
    }
    assert len({number for number, _ in pairs}) == len({prefix for _, prefix in pairs}) == len(pairs)
    assert sorted({number for number, _ in pairs}) == list(range(len(pairs)))


@given(sequences(), st.data())
def test_causal_conflict_is_the_first(inputs: dict[str, object], data: st.DataObject) -> None:
    rows = next(iter(inputs.values()))
    shape = len(rows), len(rows[0])
    drawn = data.draw(st.lists(st.integers(0, 1), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    task = SeqToSeq(**inputs, labels=np.array(drawn).reshape(shape), label_count=2)
    seen: dict[object, tuple[int, int]] = {}
    expected = None
    for i, row in enumerate(beginnings(task)):
        for k, prefix in enumerate(row):
            j, m = seen.setdefault(prefix, (i, k))
            if expected is None and task.labels[i, k] != task.labels[j, m]:
                expected = (j, m), (i, k)
    found = causal_conflict(task)
    assert (None if found is None else (found.first, found.second)) == expected
    if found is not None:
        asked = tuple(f"label {task.labels[place]}" for place in (found.first, found.second))
        assert found.answers == asked
        assert str(found).endswith(f"have equal tokens up to there: asked for {asked[0]} and {asked[1]}")
    elif shape[1] == 1:
        assert conflict(task, positions=True) is None
    if conflict(task, positions=True) is not None:  # what even whole sequences do not tell apart
        assert found is not None


def test_by_hand() -> None:
    """0 · 0 1 · 0 1 0 and 0 · 0 1 · 0 1 1 part at the end; 1 · 1 0 · 1 0 1 is another from the first on."""
    numbers = prefixes(NextToken(tokens=[[0, 1, 0], [0, 1, 1], [1, 0, 1]], labels=[0, 0, 0]))
    assert numbers.tolist() == [[0, 2, 4], [0, 2, 5], [1, 3, 6]]


def test_vectors_by_hand() -> None:
    """−0.0 is 0.0; a vector that shares one coordinate is another."""
    vectors = [[[0.0, 1.0], [2.0, 2.0]], [[-0.0, 1.0], [2.0, 3.0]], [[0.0, 2.0], [2.0, 2.0]]]
    assert prefixes(NextToken(vectors=vectors, labels=[0, 0, 0])).tolist() == [[0, 2], [0, 3], [1, 4]]


@pytest.mark.parametrize("labels", [[[0, 1], [0, 2]], [[5, 5], [5, 0]]])
def test_later_tokens_tell_apart(labels: list[list[int]]) -> None:
    """Equal up to the first token and not beyond: the second labels are free, the first are not."""
    assert causal_conflict(SeqToSeq(tokens=[[7, 1], [7, 2]], labels=labels)) is None
    swapped = [row[::-1] for row in labels]
    found = causal_conflict(SeqToSeq(tokens=[[7, 1], [7, 2]], labels=swapped))
    assert found is not None
    assert (found.first, found.second) == ((0, 0), (1, 0))


def test_many_sequences() -> None:
    """Numbers stay small, however large token ids are and however long sequences: 2000 · 80000 pairs, 40 times."""
    rows = np.random.default_rng(0).integers(0, 2**40, size=(2000, 40))
    rows[1000:, :20] = rows[:1000, :20]
    numbers = prefixes(NextToken(tokens=rows, labels=np.zeros(2000, int), vocab=2**40))
    assert (numbers[1000:, :20] == numbers[:1000, :20]).all()
    assert len(np.unique(numbers)) == 1000 * 20 + 2000 * 20

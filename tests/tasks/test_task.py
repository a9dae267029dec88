import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from byheart.errors import BadInput
from byheart.sizes import Size
from byheart.tasks import NextToken, NextTokenDistribution, SeqToSeq, shuffled
from byheart.tasks.distinct import _numbered, distinct

TOKENS = [[0, 1, 2], [3, 3, 0]]


def test_sizes_given_and_counted():
    task = NextToken(tokens=TOKENS, labels=[1, 0], label_count=10, vocab=200)
    assert task.size == Size(examples=2, length=3, labels=10, vocab=200, dim=None)
    assert NextToken(tokens=TOKENS, labels=[1, 0]).size == Size(2, 3, labels=2, vocab=4)
    vectors = [[[0.5, 1.0], [0.0, 0.0]], [[-0.0, 0.0], [0.5, 1.5]]]
    assert SeqToSeq(vectors=vectors, labels=[[0, 1], [2, 6]]).size == Size(2, 2, labels=7, vocab=3, dim=2)
    probabilities = [[0.5, 0.5, 0, 0], [1, 0, 0, 0]]
    assert NextTokenDistribution(tokens=TOKENS, probabilities=probabilities).size == Size(2, 3, labels=4, vocab=4)
    assert NextTokenDistribution(vectors=vectors, probabilities=probabilities).size == Size(2, 2, 4, vocab=3, dim=2)


def test_kinds():
    assert NextToken(tokens=[[0]], labels=[0]).kind == "next-token"
    assert SeqToSeq(tokens=[[0]], labels=[[0]]).kind == "seq-to-seq"
    assert NextTokenDistribution(tokens=[[0]], probabilities=[[1.0]]).kind == "next-token-distribution"


@pytest.mark.parametrize("dtype", ["int8", "uint16", ">i4", "uint64", "int64"])
def test_integers_of_any_kind_become_int64(dtype):
    tokens = np.asfortranarray(np.array(TOKENS, dtype))
    task = NextToken(tokens=tokens, labels=np.array([1, 0], dtype))
    assert task.tokens.dtype == task.labels.dtype == np.int64
    assert task.tokens.flags.c_contiguous
    assert task == NextToken(tokens=TOKENS, labels=[1, 0])


def test_arrays_are_read_only_copies():
    tokens = np.array(TOKENS)
    vectors = np.ones((2, 3, 1))
    task, other = NextToken(tokens=tokens, labels=[1, 0]), NextToken(vectors=vectors, labels=[1, 0])
    tokens[0, 0] = 3
    vectors[0, 0, 0] = 3
    assert task.tokens[0, 0] == 0
    assert other.vectors[0, 0, 0] == 1
    for array in (task.tokens, task.labels, other.vectors):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        task.vocab = 7


def test_vectors_are_never_rounded():
    smallest, largest = np.float64(2.0**-1074), np.finfo(np.float64).max
    task = NextToken(vectors=[[[smallest, largest, 0.1, -0.0]]], labels=[0])
    assert task.vectors.tobytes() == np.array([smallest, largest, 0.1, 0.0]).tobytes()
    single = np.array([[[0.1]]], np.float32)
    assert NextToken(vectors=single, labels=[0]).vectors[0, 0, 0] == float(single[0, 0, 0])


def test_fingerprint_is_known():
    # A change of this number breaks every certificate that names a task by its fingerprint.
    task = NextToken(tokens=TOKENS, labels=[1, 0], label_count=10, vocab=200)
    assert task.fingerprint == "61f7ac34e42dad74e2860d78c167a3563ca952b144cf0c72612dd47d8d481ea0"


@given(st.data())
def test_fingerprint_changes_with_any_entry(data):
    tokens = data.draw(hnp.arrays(np.int64, (3, 2), elements=st.integers(0, 3)))
    labels = data.draw(hnp.arrays(np.int64, (3, 2), elements=st.integers(0, 3)))
    task = SeqToSeq(tokens=tokens, labels=labels, label_count=5, vocab=5)
    assert task == SeqToSeq(tokens=tokens.tolist(), labels=labels.astype(np.int8), label_count=5, vocab=5)
    place = data.draw(st.tuples(st.integers(0, 2), st.integers(0, 1)))
    changed = data.draw(st.sampled_from([tokens, labels]))
    changed[place] += 1
    assert task != SeqToSeq(tokens=tokens, labels=labels, label_count=5, vocab=5)


def test_fingerprint_changes_with_everything_else():
    variants = [
        NextToken(tokens=[[0], [1]], labels=[0, 1]),
        NextToken(tokens=[[0], [1]], labels=[0, 1], vocab=3),
        NextToken(tokens=[[0], [1]], labels=[0, 1], label_count=3),
        NextToken(vectors=[[[0.0]], [[1.0]]], labels=[0, 1]),
        NextToken(vectors=np.array([[0], [1]]).view(np.float64)[..., None], labels=[0, 1]),
        SeqToSeq(tokens=[[0], [1]], labels=[[0], [1]]),
        NextTokenDistribution(tokens=[[0], [1]], probabilities=[[0.0, 1.0], [1.0, 0.0]]),
    ]
    assert len({task.fingerprint for task in variants}) == len(set(variants)) == len(variants)
    assert variants[0] != "a task"


def test_with_labels_keeps_everything_else():
    task = NextToken(vectors=np.ones((2, 3, 1)), labels=[1, 0], label_count=5)
    other = task.with_labels([4, 4])
    assert other.labels.tolist() == [4, 4]
    assert other.label_count == 5
    assert other.with_labels([1, 0]) == task
    with pytest.raises(BadInput, match=r"labels\[1\] is 5"):
        task.with_labels([0, 5])


def test_shuffled_permutes_rows():
    rng = np.random.default_rng(1)
    labels = np.arange(60).reshape(30, 2)
    task = SeqToSeq(tokens=labels, labels=labels)
    control = shuffled(task, rng)
    assert np.array_equal(control.tokens, task.tokens)
    assert not np.array_equal(control.labels, task.labels)
    assert sorted(map(tuple, control.labels.tolist())) == sorted(map(tuple, labels.tolist()))
    certain = NextTokenDistribution(tokens=[[0], [1], [2]], probabilities=np.eye(3))
    assert sorted(shuffled(certain, rng).probabilities.argmax(axis=1).tolist()) == [0, 1, 2]


GOOD = {"tokens": TOKENS, "labels": [1, 0]}


def vectors_with(value):
    vectors = np.zeros((4, 3, 2))
    vectors[3, 2, 1] = value
    return vectors


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (NextToken, {"labels": [0]}, "neither of tokens and vectors given; expected one"),
        (NextToken, GOOD | {"vectors": [[[1.0]]]}, "both of tokens and vectors given; expected one"),
        (
            NextToken,
            {"tokens": np.zeros((0, 4), int), "labels": []},
            "tokens has shape (0, 4); expected at least one example and one token",
        ),
        (
            NextToken,
            {"vectors": np.zeros((1, 2, 0)), "labels": [0]},
            "vectors has shape (1, 2, 0); expected at least one example and one token and one dimension",
        ),
        (NextToken, GOOD | {"tokens": [1, 2]}, "tokens has shape (2,); expected [N, n]"),
        (NextToken, GOOD | {"tokens": [[1], [2, 3]]}, "tokens is ragged; expected rows of equal length"),
        (NextToken, GOOD | {"tokens": [[1.0]]}, "tokens has dtype float64; expected integers"),
        (NextToken, GOOD | {"tokens": [[True]]}, "tokens has dtype bool; expected integers"),
        (NextToken, GOOD | {"tokens": [["a"]]}, "tokens has dtype <U1; expected integers"),
        (NextToken, GOOD | {"tokens": [[0, -1]]}, "tokens[0, 1] is -1; expected 0 or more"),
        (NextToken, GOOD | {"vocab": 3}, "tokens[1, 0] is 3; expected 0 to 2 (vocab = 3)"),
        (NextToken, GOOD | {"vocab": 0}, "vocab is 0; expected at least 1"),
        (NextToken, GOOD | {"vocab": 2.0}, "vocab is 2.0; expected an integer"),
        (NextToken, GOOD | {"vocab": True}, "vocab is True; expected an integer"),
        (NextToken, GOOD | {"vocab": 2**63}, f"vocab is {2**63}; expected at most {2**63 - 1}"),
        (
            NextToken,
            {"tokens": np.array([[2**63]], np.uint64), "labels": [0]},
            f"tokens[0, 0] is {2**63}; expected at most {2**63 - 1}",
        ),
        (
            NextToken,
            {"tokens": [[2**63 - 1]], "labels": [0]},
            f"tokens[0, 0] is {2**63 - 1}; expected 0 to {2**63 - 2} (vocab = {2**63 - 1})",
        ),
        (
            NextToken,
            {"tokens": np.zeros((8, 1), int), "labels": [0] * 7 + [12], "label_count": 10},
            "labels[7] is 12; expected 0 to 9 (label_count = 10)",
        ),
        (NextToken, GOOD | {"labels": [1]}, "labels has shape (1,); expected [2]"),
        (SeqToSeq, GOOD, "labels has shape (2,); expected [2, 3]"),
        (
            NextToken,
            {"vectors": vectors_with(np.nan), "labels": [0] * 4},
            "vectors[3, 2, 1] is nan; expected finite numbers",
        ),
        (
            NextToken,
            {"vectors": vectors_with(-np.inf), "labels": [0] * 4},
            "vectors[3, 2, 1] is -inf; expected finite numbers",
        ),
        (
            NextToken,
            {"vectors": [[[0, 2**53 + 1]]], "labels": [0]},
            f"vectors[0, 0, 1] is {2**53 + 1}; expected numbers that float64 holds exactly",
        ),
        (
            NextToken,
            {"vectors": np.ones((1, 1, 1), np.longdouble), "labels": [0]},
            f"vectors has dtype {np.dtype(np.longdouble)}; expected float64, or numbers that it holds exactly",
        ),
        (
            NextToken,
            {"vectors": [[[1.0], [2.0]]], "labels": [0], "vocab": 3},
            "vocab is 3; expected 2, the number of distinct vectors",
        ),
        (
            NextTokenDistribution,
            {"tokens": [[0]], "probabilities": [[0.5, 0.25]]},
            "probabilities[0] sums to 0.75; expected 1 (within 1e-9)",
        ),
        (
            NextTokenDistribution,
            {"tokens": [[0]], "probabilities": [[1.5, -0.5]]},
            "probabilities[0, 1] is -0.5; expected 0 or more",
        ),
        (
            NextTokenDistribution,
            {"tokens": [[0, 2]], "probabilities": [[0.5, 0.5]]},
            "tokens[0, 1] is 2; expected 0 to 1 (vocab = 2)",
        ),
        (
            NextTokenDistribution,
            {"tokens": [[0]], "probabilities": [[0.5, 0.5]], "vocab": 3},
            "vocab is 3; expected 2, the number of columns of probabilities",
        ),
        (
            NextTokenDistribution,
            {"vectors": [[[1.0]]], "probabilities": [[0.5, 0.5]], "label_count": 3},
            "label_count is 3; expected 2, the number of columns of probabilities",
        ),
        (
            NextTokenDistribution,
            {"tokens": [[0], [1]], "probabilities": [[0.5, 0.5]]},
            "probabilities has shape (1, 2); expected [2, 2]",
        ),
    ],
)
def test_every_check_fires(kind, fields, message):
    with pytest.raises(BadInput) as caught:
        kind(**fields)
    assert str(caught.value) == message


@given(
    hnp.arrays(np.int64, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=st.integers(-1, 1)),
    st.booleans(),
)
def test_distinct_agrees_with_a_dictionary(rows, colliding):
    seen: dict[tuple[int, ...], int] = {}
    ids = [seen.setdefault(tuple(row), len(seen)) for row in rows.tolist()]
    with pytest.MonkeyPatch.context() as patch:
        if colliding:
            patch.setattr("byheart.tasks.distinct._ODD", np.uint64(0))
            patch.setattr("byheart.tasks.distinct._PIECE", 3)
        found = distinct(rows)
    assert found.ids.tolist() == ids
    assert found.first.tolist() == [ids.index(number) for number in range(len(seen))]


def test_rows_that_collide_are_told_apart_where_they_differ(monkeypatch):
    """All share a key, and differ in the last of 50 columns: that one is numbered, the others are not."""
    monkeypatch.setattr("byheart.tasks.distinct._ODD", np.uint64(0))
    numbered = []
    monkeypatch.setattr("byheart.tasks.distinct._numbered", lambda keys: numbered.append(keys) or _numbered(keys))
    rows = np.zeros((4, 50), np.int64)
    rows[:, -1] = [7, 5, 7, 6]
    assert distinct(rows).ids.tolist() == [0, 1, 0, 2]
    assert len(numbered) == 3, "the keys, the column, and both together"


def test_importing_tasks_needs_only_numpy():
    code = "import byheart.tasks, sys; print([name for name in ('numba', 'torch', 'flint') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"

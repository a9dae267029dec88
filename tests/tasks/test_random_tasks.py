from collections import Counter
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.errors import BadInput
from byheart.sizes import Size
from byheart.tasks import (
    conflict,
    permuted_twins,
    random_distribution,
    random_next_token,
    random_seq_to_seq,
    token_ids,
)
from byheart.tasks.random_tasks import _uniform_multisets

SHAPES = ["uniform", "skewed", "neighbours"]


def generator(seed=0):
    return np.random.default_rng(seed)


@settings(max_examples=150)
@given(
    sizes=st.fixed_dictionaries(
        {
            "examples": st.integers(1, 12),
            "length": st.integers(1, 5),
            "vocab": st.integers(1, 6),
            "dim": st.none() | st.integers(1, 3),
            "shape": st.sampled_from(SHAPES),
        }
    ),
    seed=st.integers(0, 2**32),
)
def test_tasks_can_be_memorized_or_are_refused(sizes, seed):
    examples, length, dim = sizes["examples"], sizes["length"], sizes["dim"]
    available = len(list(combinations_with_replacement(range(sizes["vocab"]), length)))
    if available < examples:
        with pytest.raises(BadInput, match=f"examples is {examples}; expected at most {available}, "):
            random_next_token(**sizes, labels=3, rng=generator(seed))
        return
    task = random_seq_to_seq(**sizes, labels=3, rng=generator(seed))
    assert task.inputs.shape == ((examples, length) if dim is None else (examples, length, dim))
    assert task.label_count == 3
    assert permuted_twins(task) is None
    assert conflict(task, positions=False) is None
    assert random_seq_to_seq(**sizes, labels=3, rng=generator(seed)) == task


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("make", [random_next_token, random_seq_to_seq])
def test_kinds_and_sizes(make, shape):
    task = make(examples=50, length=4, vocab=30, labels=7, shape=shape, rng=generator())
    assert task.size == Size(examples=50, length=4, labels=7, vocab=30)
    assert set(np.unique(task.labels)) == set(range(7))
    drawn = make(examples=50, length=4, vocab=30, labels=7, dim=2, shape=shape, rng=generator())
    assert drawn.size.dim == 2
    assert drawn.vocab <= 30
    assert np.array_equal(token_ids(drawn), token_ids(task))  # the same sequences, told in vectors


def test_every_multiset_can_be_used():
    task = random_next_token(examples=35, length=3, vocab=5, labels=2, shape="skewed", rng=generator())
    found = {tuple(row) for row in np.sort(task.tokens, axis=1).tolist()}
    assert found == set(combinations_with_replacement(range(5), 3))


def test_skewed_tasks_that_run_out_are_filled_up():
    task = random_next_token(examples=4900, length=1, vocab=10**4, labels=2, shape="skewed", rng=generator())
    assert permuted_twins(task) is None
    assert np.count_nonzero(task.tokens < 100) > 95  # the head of Zipf's law is used up


def test_multisets_that_fill_up_are_uniform():
    multisets = np.sort(_uniform_multisets(20000, length=3, vocab=3, rng=generator()), axis=1)
    counts = Counter(map(tuple, multisets.tolist()))
    assert set(counts) == set(combinations_with_replacement(range(3), 3))
    assert all(abs(count - 2000) < 250 for count in counts.values())


def test_uniform_tokens_are_uniform():
    tokens = random_next_token(examples=5000, length=8, vocab=10, labels=2, rng=generator()).tokens
    counts = np.bincount(tokens.ravel(), minlength=10)
    assert np.abs(counts - 4000).max() < 400


def test_skewed_tokens_follow_zipf():
    tokens = random_next_token(examples=20000, length=8, vocab=1000, labels=2, shape="skewed", rng=generator()).tokens
    share = np.bincount(tokens.ravel(), minlength=1000) / tokens.size
    expected = np.log1p(1 / np.arange(1, 1001)) / np.log(1001)
    assert np.abs(share - expected).max() < 0.005


def changes(sequence, base):
    return sum((Counter(sequence) - Counter(base)).values())


def test_neighbours_differ_in_two_tokens_at_most():
    tokens = random_next_token(
        examples=300, length=8, vocab=100, labels=2, shape="neighbours", rng=generator()
    ).tokens.tolist()
    assert max(changes(one, other) for one in tokens for other in tokens) == 4  # two from the base, and two back


def test_fresh_vectors():
    uniform = random_next_token(examples=40, length=5, vocab=None, labels=2, dim=1, rng=generator())
    assert uniform.vocab == 200
    near = random_next_token(examples=40, length=5, vocab=None, labels=2, dim=3, shape="neighbours", rng=generator())
    ids = token_ids(near)
    changed = (ids != ids[0]).sum(axis=1)
    assert changed[0] == 0
    assert set(changed[1:]) == {1, 2}
    assert permuted_twins(near) is None


def test_equal_tokens_get_equal_labels_and_others_their_own():
    task = random_seq_to_seq(examples=21, length=5, vocab=3, labels=10**6, rng=generator())
    pairs = {(i, t, y) for i, row in enumerate(task.tokens) for t, y in zip(row, task.labels[i], strict=True)}
    tokens = {(i, t) for i, t, _ in pairs}
    assert len(pairs) == len(tokens) == len({y for *_, y in pairs})


def test_distributions():
    task = random_distribution(examples=50, length=4, vocab=30, rng=generator())
    assert task.size == Size(examples=50, length=4, labels=30, vocab=30)
    assert permuted_twins(task) is None
    assert (task.probabilities > 0).all()
    assert random_distribution(examples=50, length=4, vocab=30, dim=2, rng=generator()).label_count == 30


@pytest.mark.parametrize("shape", SHAPES)
def test_huge_vocabularies_cost_nothing(shape):
    task = random_next_token(examples=1000, length=1, vocab=10**12, labels=2, shape=shape, rng=generator())
    assert task.vocab == 10**12
    assert task.tokens.max() > 10**9
    assert permuted_twins(task) is None


@pytest.mark.parametrize("shape", SHAPES)
def test_large_tasks_are_quick(shape):
    task = random_seq_to_seq(examples=10**5, length=16, vocab=200, labels=10, shape=shape, rng=generator())
    assert permuted_twins(task) is None


SIZES = {"examples": 4, "length": 2, "vocab": 9, "labels": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"examples": 0}, "examples is 0; expected at least 1"),
        ({"length": -1}, "length is -1; expected at least 1"),
        ({"vocab": 0}, "vocab is 0; expected at least 1"),
        ({"labels": 0}, "labels is 0; expected at least 1"),
        ({"dim": 0}, "dim is 0; expected at least 1"),
        ({"vocab": None}, "vocab is None; expected a number, or a dim to draw every token afresh as a vector"),
        ({"shape": "round"}, "shape is 'round'; expected one of uniform, skewed, neighbours, constant, every"),
        (
            {"vocab": None, "dim": 2, "shape": "skewed"},
            "shape is 'skewed' and vocab is None; expected uniform, neighbours or constant where every token is fresh",
        ),
        (
            {"examples": 46},
            "examples is 46; expected at most 45, the number of sequences of length 2 over a vocab of 9 "
            "up to permutation",
        ),
    ],
)
def test_every_check_fires(change, message):
    with pytest.raises(BadInput) as caught:
        random_next_token(**SIZES | change, rng=generator())
    assert str(caught.value) == message


@pytest.mark.parametrize("dim", [None, 2])
def test_constant_sequences(dim: int | None) -> None:
    sizes = {"examples": 9, "length": 4, "labels": 2, "dim": dim, "shape": "constant"}
    for vocab in (9, 10**12) if dim is None else (9, None):
        inputs = random_next_token(**sizes, vocab=vocab, rng=generator()).inputs  # type: ignore[arg-type]
        assert (inputs == inputs[:, :1]).all()
        assert len(np.unique(inputs[:, 0], axis=0)) == 9


def test_constant_sequences_need_a_token_each() -> None:
    with pytest.raises(BadInput, match="examples is 6; expected at most 5, one constant sequence for every token"):
        random_next_token(examples=6, length=4, vocab=5, labels=2, shape="constant", rng=generator())

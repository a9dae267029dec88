import math
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from byheart.errors import BadInput
from byheart.tasks import (
    NextToken,
    NextTokenDistribution,
    QueryTargets,
    Separation,
    SeqToSeq,
    Twins,
    conflict,
    permuted_twins,
    random_distribution,
    random_next_token,
    separation,
    token_ids,
)
from byheart.tasks.separated import closest_pair, root_above, root_below

LARGEST, SMALLEST = float(np.finfo(np.float64).max), 2.0**-1074


def of_vectors(*vectors):
    """A task of one sequence that holds the given vectors."""
    return NextToken(vectors=[list(vectors)], labels=[0])


def exact_square(vector):
    return sum(Fraction(x) ** 2 for x in vector)


def exact_square_distance(one, other):
    return sum((Fraction(x) - Fraction(y)) ** 2 for x, y in zip(one, other, strict=True))


def assert_true_and_tight(found, vectors):
    """Compare with exact arithmetic: the claims hold, and lie within a few roundings of the truth."""
    points = {tuple(vector) for vector in vectors.reshape(-1, vectors.shape[-1]).tolist()}
    norm = max(map(exact_square, points))
    slack = Fraction(1, 2**40)
    if found.r < math.inf:
        assert Fraction(found.r) ** 2 >= norm
        assert Fraction(max(found.r - SMALLEST, 0.0)) ** 2 <= norm * (1 + slack)
    else:
        assert norm * (1 + slack) > Fraction(LARGEST) ** 2
    if len(points) == 1:
        assert found.delta == math.inf
        assert found.closest is None
        return
    distance = min(exact_square_distance(*pair) for pair in combinations(points, 2))
    assert 0 < Fraction(found.delta) ** 2 <= distance
    assert Fraction(math.nextafter(found.delta, LARGEST)) ** 2 >= distance * (1 - slack) or found.delta == LARGEST
    first, second = found.closest
    assert first < second
    assert exact_square_distance(vectors[first].tolist(), vectors[second].tolist()) <= distance * (1 + slack)


finite = st.floats(allow_nan=False, allow_infinity=False)
plain = st.integers(-4, 4).map(float) | st.floats(-1, 1)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([finite, plain]).flatmap(
        lambda floats: hnp.arrays(np.float64, hnp.array_shapes(min_dims=3, max_dims=3, max_side=4), elements=floats)
    )
)
@example(np.array([[[LARGEST], [-LARGEST]]]))
@example(np.array([[[LARGEST, -LARGEST], [-LARGEST, LARGEST]]]))
@example(np.array([[[LARGEST, 0.0], [SMALLEST, 0.0], [0.0, SMALLEST]]]))
@example(np.array([[[2.0**-450, 1.0], [2.0**-451, 1.0], [LARGEST, 1.0]]]))
@example(np.array([[[2.0**505], [2.0**512]]]))
@example(np.zeros((1, 2, 3)))
def test_separation_agrees_with_exact_brute_force(vectors):
    task = NextToken(vectors=vectors, labels=np.zeros(len(vectors), int))
    assert_true_and_tight(separation(task), task.vectors)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "dim"), [(300, 1), (300, 2), (200, 9)])
def test_separation_of_many_normal_vectors(count, dim):
    task = random_next_token(
        examples=count, length=1, vocab=None, labels=2, dim=dim, rng=np.random.default_rng(count + dim)
    )
    assert_true_and_tight(separation(task), task.vectors)


@given(
    st.fractions(min_value=0)
    | st.floats(0, LARGEST).map(Fraction)
    | st.floats(0, LARGEST).map(lambda x: Fraction(x) ** 2)
)
def test_roots_are_next_to_the_truth(square):
    below, above = root_below(square), root_above(square)
    assert Fraction(below) ** 2 <= square
    assert above == math.inf or Fraction(above) ** 2 >= square
    assert above == below if Fraction(below) ** 2 == square else above == math.nextafter(below, math.inf)


def test_separation_by_hand():
    found = separation(of_vectors([3.0, 4.0], [0.0, 0.0], [0.0, 2.0], [0.0, 2.0], [0.0, 0.0]))
    assert found == Separation(r=5.0, delta=2.0, closest=((0, 1), (0, 2)))
    assert str(found) == (
        "token-wise (r, δ)-separated with r = 5.0 and δ = 2.0: "
        "closest are example 0, position 1 and example 0, position 2"
    )
    assert separation(of_vectors([1.0, 1.0], [0.0, 0.0])).r == 1.4142135623730951
    assert separation(of_vectors([1.0, 1.0], [0.0, 0.0])).delta == 1.414213562373095
    lone = separation(of_vectors([0.0], [0.0]))
    assert lone == Separation(0.0, math.inf, None)
    assert str(lone) == "token-wise (r, δ)-separated with r = 0.0 and δ = inf: all tokens are equal"


def test_separation_at_the_ends_of_float64():
    wide = separation(of_vectors([SMALLEST], [0.0], [2.0**1023]))
    assert (wide.delta, wide.closest) == (SMALLEST, ((0, 0), (0, 1)))
    assert 2.0**1023 <= wide.r < 2.0**1023 * (1 + 1e-14)
    assert separation(of_vectors([-(2.0**1023)], [2.0**1023])) == Separation(2.0**1023, LARGEST, ((0, 0), (0, 1)))
    assert separation(of_vectors([LARGEST, LARGEST], [0.0, 0.0])).r == math.inf


def test_separation_of_ids():
    task = NextToken(tokens=[[4, 4], [4, 0]], labels=[0, 0])
    assert separation(task) == Separation(1.0, 1.414213562373095, ((0, 0), (1, 1)))
    assert Fraction(separation(task).delta) ** 2 < 2
    assert separation(NextToken(tokens=[[4, 4]], labels=[0])) == Separation(1.0, math.inf, None)


def test_the_sweep_goes_along_the_largest_spread():
    rng = np.random.default_rng(3)
    points = rng.standard_normal((20000, 3)) * [1e-6, 1.0, 1e-3]
    points[777] = points[12345] + [1e-9, 0.0, 0.0]
    assert closest_pair(points)[:2] == (777, 12345)


def test_token_ids_number_tokens_as_they_appear():
    assert token_ids(NextToken(tokens=[[9, 5], [5, 7]], labels=[0, 0])).tolist() == [[0, 1], [1, 2]]
    vectors = [[[1.0, 0.0], [1.0, -0.0]], [[0.0, 1.0], [1.0, 0.0]]]
    assert token_ids(NextToken(vectors=vectors, labels=[0, 0])).tolist() == [[0, 0], [1, 0]]


@st.composite
def small_tasks(draw):
    examples, length = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    tokens = draw(hnp.arrays(np.int64, (examples, length), elements=st.integers(0, 2)))
    table = np.array([[0.0, 1.5], [0.0, -1.5], [2.0, 0.0]])
    inputs = draw(st.sampled_from([{"tokens": tokens}, {"vectors": table[tokens]}]))
    kind = draw(st.sampled_from([NextToken, SeqToSeq]))
    shape = (examples, length) if kind is SeqToSeq else (examples,)
    labels = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 1)))
    return tokens.tolist(), kind(**inputs, labels=labels)


def questions(tokens, task, positions):
    """(what the network is asked, where, the answer that is wanted) for each place of the task, in order."""
    for i, row in enumerate(tokens):
        sequence = tuple(row) if positions else frozenset(Counter(row).items())
        if isinstance(task, NextToken):
            yield sequence, (i,), int(task.labels[i])
            continue
        for k, token in enumerate(row):
            yield (sequence, k if positions else token), (i, k), int(task.labels[i, k])


@settings(max_examples=300)
@given(small_tasks(), st.booleans())
def test_conflict_agrees_with_a_dictionary(drawn, positions):
    tokens, task = drawn
    found = conflict(task, positions=positions)
    seen = {}
    for question, place, answer in questions(tokens, task, positions):
        first, wanted = seen.setdefault(question, (place, answer))
        if wanted != answer:
            assert (found.first, found.second) == (first, place)
            assert found.answers == (f"label {wanted}", f"label {answer}")
            return
    assert found is None


@given(small_tasks())
def test_twins_agree_with_a_dictionary(drawn):
    tokens, task = drawn
    seen = {}
    for i, row in enumerate(tokens):
        first = seen.setdefault(tuple(sorted(row)), i)
        if first != i:
            assert permuted_twins(task) == Twins(first, i)
            return
    assert permuted_twins(task) is None


def test_twins_by_hand():
    task = NextToken(tokens=[[0, 1, 1], [0, 0, 1], [5, 5, 5], [1, 0, 1]], labels=[0, 0, 0, 0])
    assert str(permuted_twins(task)) == "example 0 and example 3 hold the same tokens up to order"


@pytest.mark.parametrize(
    ("task", "positions", "message"),
    [
        (
            NextToken(tokens=[[0, 1], [1, 1], [1, 0]], labels=[4, 0, 5]),
            False,
            "example 0 and example 2 are equal sequences up to order: asked for label 4 and label 5",
        ),
        (
            NextToken(tokens=[[0, 1], [1, 0], [1, 0]], labels=[4, 5, 6]),
            True,
            "example 1 and example 2 are equal sequences: asked for label 5 and label 6",
        ),
        (
            SeqToSeq(tokens=[[0, 1, 2], [2, 0, 1]], labels=[[4, 5, 6], [6, 4, 7]]),
            False,
            "example 0, position 1 and example 1, position 2 are equal tokens in equal sequences up to order: "
            "asked for label 5 and label 7",
        ),
        (
            SeqToSeq(tokens=[[3, 8, 3]], labels=[[1, 0, 2]]),
            False,
            "example 0, position 0 and example 0, position 2 are equal tokens in equal sequences up to order: "
            "asked for label 1 and label 2",
        ),
        (
            SeqToSeq(tokens=[[3, 3], [3, 3]], labels=[[1, 2], [1, 1]]),
            True,
            "example 0, position 1 and example 1, position 1 are equal tokens in equal sequences: "
            "asked for label 2 and label 1",
        ),
        (
            NextTokenDistribution(tokens=[[0, 1], [1, 0]], probabilities=[[0.5, 0.5], [0.25, 0.75]]),
            False,
            "example 0 and example 1 are equal sequences up to order: "
            "asked for probability 0.5 of token 0 and probability 0.25 of token 0",
        ),
    ],
)
def test_conflict_messages(task, positions, message):
    assert str(conflict(task, positions=positions)) == message


def test_positions_settle_conflicts():
    assert conflict(SeqToSeq(tokens=[[3, 8, 3]], labels=[[1, 0, 2]]), positions=True) is None
    assert conflict(NextToken(tokens=[[0, 1], [1, 0]], labels=[0, 1]), positions=True) is None
    # The same token in different multisets may have different labels.
    assert conflict(SeqToSeq(tokens=[[0, 1], [0, 2]], labels=[[0, 1], [1, 1]]), positions=False) is None


def test_queries_are_told_apart_and_the_order_of_a_context_is_not():
    contexts = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
    same = QueryTargets(contexts=contexts, queries=[[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]], targets=[0.5, 0.25, 3.0])
    assert str(conflict(same, positions=True)) == (
        "example 0 and example 1 are equal sequences with equal queries: asked for target 0.5 and target 0.25"
    )
    assert conflict(same.with_answers([0.5, 0.5, 3.0]), positions=False) is None


def test_every_sequence_is_every_sequence():
    rng = np.random.default_rng(0)
    task = random_distribution(examples=9, length=2, vocab=3, shape="every", rng=rng)
    assert len({tuple(row) for row in task.tokens.tolist()}) == 9
    with pytest.raises(BadInput, match=r"examples is 8; expected 3\^2 = 9, every sequence there is"):
        random_distribution(examples=8, length=2, vocab=3, shape="every", rng=rng)


def test_vectors_that_contradict_each_other_in_one_coordinate():
    contexts, queries = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [1.0, 2.0]]
    same = QueryTargets(contexts=contexts, queries=queries, targets=[[0.5, 1.0, 2.0], [0.5, 1.0, 3.0]])
    assert str(conflict(same, positions=False)) == (
        "example 0 and example 1 are equal sequences with equal queries: "
        "asked for target 2.0 in coordinate 2 and target 3.0 in coordinate 2"
    )
    assert conflict(same.with_answers([[0.5, 1.0, 2.0]] * 2), positions=False) is None

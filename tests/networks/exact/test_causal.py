"""Causal hardmax attention: position k sees the positions j ≤ k, and nothing else can be noticed."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.networks.exact import ExactNetwork, Flatten, HardmaxAttention, Positions, integers, reference
from byheart.networks.exact.evaluate import evaluate

from .drawn import blocks, entries, inputs_of, matrices, small, tries
from .oracle import affine, answers, feed_forward, hardmax, on_tokens, on_vectors, uniform

few_floats = st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0, 2.0**40])
mixed = st.one_of(small, small, entries)
EVALUATORS = pytest.mark.parametrize("evaluator", [evaluate, reference.evaluate], ids=["limbs", "flint"])
SCALAR = hardmax([[1]], [[1]], [[1]], [[1]], causal=True)
"""One coordinate: token k looks for the largest Z_j · Z_k among j ≤ k."""


@EVALUATORS
def test_by_hand(evaluator):
    """3, 5, −7, 6: 3 sees 3; 5 sees 5; −7 sees itself (49); 6 sees 6 (36), not more. So all are doubled.

    5, 3, 6, −1: 3 looks back at 5; 6 at itself; −1 at the smallest so far, itself (1).
    """
    network = on_tokens(SCALAR, length=4, outputs="every")
    assert evaluator(network, np.array([[3, 5, -7, 6], [5, 3, 6, -1]])).tolist() == [[6, 10, -14, 12], [10, 8, 12, -2]]
    last = replace(network, outputs="last")
    assert evaluator(last, np.array([[3, 5, -7, 6], [5, 3, 6, -1], [9, 1, 1, 1]])).tolist() == [12, -2, 10]


@EVALUATORS
def test_ties_are_shared_with_what_is_seen(evaluator):
    """All scores of 0 tie: means of 4; 4, 1; 4, 1, 0. Behind them 4 again: its winners are the two 4s."""
    network = on_tokens(SCALAR, length=4, outputs="every")
    assert evaluator(network, np.array([[4, 1, 0, 4]])).tolist() == [[8, 5, Fraction(5, 3), 8]]
    prefix = on_tokens(hardmax([[0]], [[0]], [[1]], [[1]], causal=True), length=4, outputs="every")
    expected = [[8, 1 + Fraction(5, 2), Fraction(5, 3), 4 + Fraction(9, 4)]]
    assert evaluator(prefix, np.array([[4, 1, 0, 4]])).tolist() == expected


@EVALUATORS
def test_the_first_position_sees_itself_alone(evaluator):
    """Whatever stands behind it, larger scores included."""
    network = on_tokens(SCALAR, length=3, outputs="every")
    rows = evaluator(network, np.array([[1, 2**40, 7], [1, 0, -(2**50)], [0, 5, 5]]))
    assert [row[0] for row in rows.tolist()] == [2, 2, 0]


@EVALUATORS
@pytest.mark.parametrize("outputs", ["last", "every"])
def test_one_position(evaluator, outputs):
    network = on_tokens(SCALAR, outputs=outputs)
    rows = np.array([[3], [-4], [0]])
    assert evaluator(network, rows).ravel().tolist() == [6, -8, 0]
    plain = on_tokens(replace(SCALAR, causal=False), outputs=outputs)
    assert evaluator(plain, rows).ravel().tolist() == [6, -8, 0]


@EVALUATORS
def test_a_score_that_is_larger_by_one_in_hundreds_of_bits(evaluator):
    """2⁵⁰⁰ and 2⁵⁰⁰ + 1 in both orders: the larger is seen by both only if it comes first."""
    huge = 2**500
    table = Positions(integers([[huge], [huge + 1]])), Positions(integers([[huge + 1], [huge]]))
    first, second = (on_tokens(own, SCALAR, length=2, outputs="every") for own in table)
    assert evaluator(first, np.array([[0, 0]])).tolist() == [[2 * huge, 2 * huge + 2]]
    assert evaluator(second, np.array([[0, 0]])).tolist() == [[2 * huge + 2, 2 * huge + 1]]


@EVALUATORS
def test_several_sequences_do_not_see_each_other(evaluator):
    """The causal prefix begins anew with every sequence."""
    network = on_tokens(SCALAR, length=2, outputs="every")
    assert evaluator(network, np.array([[9, 1], [1, 2], [2, 1]])).tolist() == [[18, 10], [2, 4], [4, 3]]


@EVALUATORS
def test_positions_behind_causal_attention(evaluator):
    """Positions count on from the whole sequence: 1, 1 → 2, 2 → 2, 12; for "last" the last of them."""
    layers = (SCALAR, Positions(integers([[0], [10]])))
    assert evaluator(on_tokens(*layers, length=2, outputs="every"), np.array([[1, 1]])).tolist() == [[2, 12]]
    assert evaluator(on_tokens(*layers, length=2), np.array([[1, 1]])).tolist() == [12]


@EVALUATORS
def test_flattening_behind_causal_attention_needs_all_positions(evaluator):
    """3, 1 → 6, 1 + 3 = 4; weights 1 and 100: 406."""
    network = on_tokens(SCALAR, Flatten(), feed_forward(affine([[1, 100]], [0])), length=2)
    assert evaluator(network, np.array([[3, 1], [1, 3]])).tolist() == [406, 602]


@EVALUATORS
def test_two_causal_layers(evaluator):
    """3, 1, 2 → 6, 4, 5 → 12, 10, 11; the second layer sees what the first made."""
    network = on_tokens(SCALAR, SCALAR, length=3, outputs="every")
    assert evaluator(network, np.array([[3, 1, 2]])).tolist() == [[12, 10, 11]]
    assert evaluator(replace(network, outputs="last"), np.array([[3, 1, 2]])).tolist() == [11]


@st.composite
def causal_networks(draw, of=mixed):
    """One to three causal layers, token-wise layers between them."""
    length, width = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    layers = [Positions(draw(matrices(length, width, of)))] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 3))):
        shapes = (2, width), (2, width), (1, width), (width, 1)
        layers.append(HardmaxAttention(*(draw(matrices(*shape, of)) for shape in shapes), causal=True))
        if draw(st.booleans()):
            layers.append(draw(blocks(width, of)))
    layers.append(feed_forward(affine([[1] * width], [0], relu=False), name="end"))
    outputs = draw(st.sampled_from(["last", "every"]))
    return ExactNetwork(tuple(layers), inputs="vectors", outputs=outputs, length=length, dim=width)


@tries(70)
@given(st.data())
def test_both_evaluations_are_what_fractions_say(data):
    network = data.draw(causal_networks())
    inputs = data.draw(inputs_of(network, floats=few_floats))
    expected = answers(network, inputs)
    assert evaluate(network, inputs).tolist() == expected
    assert reference.evaluate(network, inputs).tolist() == expected


@tries(40)
@given(st.data())
def test_the_last_answer_is_the_last_of_all(data):
    network = replace(data.draw(causal_networks()), outputs="every")
    inputs = data.draw(inputs_of(network, floats=few_floats))
    last = replace(network, outputs="last")
    assert [row[-1] for row in evaluate(network, inputs).tolist()] == evaluate(last, inputs).tolist()


@pytest.mark.slow
@tries(40)
@given(st.data())
def test_what_comes_later_is_not_seen(data):
    """Two sequences that agree up to k get the same answers up to k."""
    network = replace(data.draw(causal_networks()), outputs="every")
    inputs = data.draw(inputs_of(network, floats=few_floats, most=1))
    other = data.draw(inputs_of(network, floats=few_floats, most=1))[0]
    k = data.draw(st.integers(1, network.length))
    changed = np.concatenate([inputs[0, :k], other[k:]])[None]
    for evaluator in (evaluate, reference.evaluate):
        one, two = evaluator(network, inputs)[0], evaluator(network, changed)[0]
        assert one[:k].tolist() == two[:k].tolist()
    together = evaluate(network, np.concatenate([inputs, changed]))
    assert together[0, :k].tolist() == together[1, :k].tolist()


def test_what_comes_earlier_is_seen():
    """Otherwise the test above would pass for attention that sees nothing."""
    network = on_tokens(SCALAR, length=3, outputs="every")
    assert evaluate(network, np.array([[1, 1, 1], [5, 1, 1]])).tolist() == [[2, 2, 2], [10, 6, 6]]
    full = on_tokens(replace(SCALAR, causal=False), length=3, outputs="every")
    assert evaluate(full, np.array([[1, 1, 1], [1, 1, 5]])).tolist() == [[2, 2, 2], [6, 6, 10]]


@tries(40)
@given(st.data())
def test_the_answers_are_those_of_the_prefixes(data):
    """What a causal layer gives at k is what full attention gives at the end of the first k tokens."""
    shapes = (1, 2), (1, 2), (1, 2), (2, 1)
    layer = HardmaxAttention(*(data.draw(matrices(*shape, small)) for shape in shapes), causal=True)
    end = feed_forward(affine([[1, 3]], [0], relu=False))
    network = on_vectors(layer, end, length=4, dim=2, outputs="every")
    inputs = data.draw(inputs_of(network, floats=few_floats))
    found = evaluate(network, inputs)
    for k in range(4):
        prefix = on_vectors(replace(layer, causal=False), end, length=k + 1, dim=2)
        assert found[:, k].tolist() == evaluate(prefix, inputs[:, : k + 1]).tolist()


@pytest.mark.parametrize("threads", [1, 3])
def test_many_sequences_over_several_chunks(threads):
    """More positions than one chunk holds; the winner of a prefix of positive numbers is its largest."""
    inputs = np.random.default_rng(0).integers(1, 1000, size=(3000, 7))
    network = on_tokens(SCALAR, length=7, outputs="every")
    expected = inputs + np.maximum.accumulate(inputs, axis=1)
    assert np.array_equal(evaluate(network, inputs, threads=threads), expected)
    last = replace(network, outputs="last")
    assert np.array_equal(evaluate(last, inputs, threads=threads), expected[:, -1])


def test_beside_uniform_attention():
    """Uniform attention sees everything, in front of a causal layer or behind it."""
    for layers in ((SCALAR, uniform([[1]], [[2]])), (uniform([[1]], [[2]]), SCALAR)):
        network = on_tokens(*layers, length=3, outputs="every")
        inputs = np.array([[1, 2, 3], [3, 2, 1], [0, 0, 1]])
        expected = answers(network, inputs)
        assert evaluate(network, inputs).tolist() == reference.evaluate(network, inputs).tolist() == expected

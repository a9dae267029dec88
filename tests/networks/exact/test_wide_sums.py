"""Sums of rectified words as float64 products: by hand, against fractions, and where a bound is not kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.networks.exact import wide_sums
from byheart.networks.exact.evaluate import evaluate
from byheart.networks.exact.limbs import LimbProgram, from_int64
from byheart.networks.exact.wide_sums import Words, pays

from .drawn import matrices, tries
from .oracle import affine, answers, chain, feed_forward, on_vectors, values

BIG = 1 << 200


def both(layers, inputs, divisor=1):
    """The sums by float64, or None, and what the formulas say."""
    batch = LimbProgram((affine(np.eye(inputs.shape[1], dtype=int).tolist(), [0] * inputs.shape[1], relu=False),))(
        from_int64(inputs)
    )
    sums = Words(layers, divisor, LimbProgram(layers, divisor))._sums(batch)
    expected = [chain(layers[:2], row) for row in inputs.tolist()]
    return (None if sums is None else values(sums)), expected


def test_two_units_by_hand():
    """x = (5·2²⁰⁰ − 1, 3 − 2²⁰⁰) for u = (5, 3): the first unit is on, 2·x₁ + 7 comes out."""
    layers = (affine([[BIG, 0], [0, 1]], [-1, -BIG]), affine([[2, 9]], [7], relu=False))
    found, expected = both(layers, np.array([[5, 3]]))
    assert found == expected == [[10 * BIG + 5]]


@given(matrices(9, 3, st.integers(-(2**200), 2**200)), st.data())
@tries(60)
def test_sums_are_exact(W, data):
    """Random words, with shifts, a ReLU behind the sums, one or two of them: exactly, or not at all."""
    b = data.draw(matrices(1, 9, st.integers(-(2**201), 2**201)))[0]
    rows, shift = data.draw(st.integers(1, 2)), data.draw(st.integers(0, 5))
    A = data.draw(matrices(rows, 9, st.integers(-50, 50)))
    c = data.draw(matrices(1, rows, st.integers(-(2**220), 2**220)))[0]
    layers = (
        affine(W, b, shift=shift),
        affine(A, c, shift=data.draw(st.integers(0, 2)), relu=data.draw(st.booleans())),
    )
    inputs = np.array(data.draw(st.lists(st.lists(st.integers(-900, 900), min_size=3, max_size=3), min_size=1)))
    found, expected = both(layers, inputs)
    assert found is None or found == expected


def test_random_words_are_decided():
    """The control for the test above: None is the exception."""
    rng = np.random.default_rng(0)
    W = [[int(w) << 150 for w in row] for row in rng.integers(-(1 << 50), 1 << 50, size=(9, 3))]
    layers = (affine(W, [1] * 9), affine([[1] * 9], [0]))
    found, expected = both(layers, rng.integers(-900, 900, size=(50, 3)))
    assert found == expected


@pytest.mark.parametrize("difference", [-1, 0, 1])
def test_units_whose_sign_hangs_on_the_last_bit_are_left_to_the_limbs(difference):
    """x = 2²⁰⁰·u − 2²⁰⁰·v + difference at u = v: leading bits do not tell; the evaluator does."""
    first = affine([[BIG, -BIG]] * 8, [difference] * 8)
    layers = (first, affine([[1] * 8], [0], relu=False))
    found, expected = both(layers, np.array([[7, 7]]))
    assert found is None
    network = on_vectors(feed_forward(*layers), dim=2)
    inputs = np.array([[[7.0, 7.0]], [[8.0, 7.0]]])
    assert pays(network.layers[0])
    assert evaluate(network, inputs).tolist() == answers(network, inputs) == [expected[0][0], 8 * (BIG + difference)]


def test_inputs_that_are_too_large_are_left_to_the_limbs():
    """E = 2²³ with the bias: Σ|a|·E is 64 · 2²³ = 2²⁹ with factors of 8, and more with factors of 9."""
    inputs = np.array([[(1 << 23) - 1]])
    for factor, kept in [(8, True), (9, False)]:
        layers = (affine([[BIG]] * 8, [0] * 8), affine([[factor] * 8], [0]))
        found, expected = both(layers, inputs)
        assert (found == expected) if kept else (found is None)


def test_digits_of_full_size_stay_exact():
    """All limbs 2²⁴ − 1 and Σ|a|·E = 2²⁹ exactly: the largest sum that is allowed, which float64 still holds."""
    word = (1 << 192) - 1
    layers = (affine([[word]] * 8, [word] * 8), affine([[64] * 8], [0]))
    found, expected = both(layers, np.array([[(1 << 20) - 1]]))
    assert found == expected == [[512 * word << 20]]


def test_the_evaluator_takes_this_way(monkeypatch):
    """With wrong leading bits its answers would be others."""
    layers = (affine([[BIG, -BIG]] * 8, [1] * 8), affine([[-2] * 8], [5], relu=False))
    start = affine([[1, 0], [0, 1]], [0, 0], relu=False)
    network = on_vectors(feed_forward(start), feed_forward(*layers), dim=2)
    inputs = np.array([[[3.0, 2.0]], [[2.0, 3.0]]])
    right = evaluate(network, inputs).tolist()
    assert right == answers(network, inputs)
    monkeypatch.setattr(wide_sums.Words, "_on", lambda _, u, largest: np.ones((len(u), 8), dtype=np.bool_))
    assert evaluate(network, inputs).tolist() != right


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ((affine([[BIG]] * 8, [0] * 8), affine([[1] * 8], [0])), True),
        ((affine([[BIG]] * 7, [0] * 7), affine([[1] * 7], [0])), False),
        ((affine([[5]] * 8, [0] * 8), affine([[1] * 8], [0])), False),
        ((affine([[BIG]] * 8, [0] * 8, relu=False), affine([[1] * 8], [0])), False),
        ((affine([[BIG]] * 8, [0] * 8), affine([[1] * 8] * 3, [0] * 3)), False),
        ((affine([[BIG]] * 8, [0] * 8),), False),
    ],
)
def test_where_it_pays(layers, expected):
    assert pays(feed_forward(*layers)) is expected


def test_one_weight_of_a_million_bits_is_not_paid_for_by_all():
    """Ten thousand weights of one limb and one of 41,667: a table of both would have 3 GiB."""
    W = [[1 << 1_000_000], *[[1]] * 9_999]
    layers = (affine(W, [0] * len(W)), affine([[1] * len(W)], [0]))
    assert not pays(feed_forward(*layers))
    assert not pays(feed_forward(affine([[BIG]] * 20_000, [0] * 20_000), affine([[1] * 20_000], [0])))

"""The PyTorch twin gives the exact network's answers, bit for bit, or is refused."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from byheart.errors import BadInput
from byheart.networks.exact import Embedding, Flatten, Positions, Residual, TokenSum, UniformAttention, integers
from byheart.networks.exact.evaluate import evaluate
from byheart.networks.exact.floats import to_torch

from .drawn import chains, inputs_of, matrices, networks, small, tries
from .oracle import affine, block, feed_forward, hardmax, on_tokens, on_vectors, uniform

pytestmark = pytest.mark.usefixtures("threads_as_before")
both_floats = pytest.mark.parametrize("precision", ["float32", "float64"])
BITS = {"float32": 24, "float64": 53}


def answers(twin, inputs):
    """What the module gives, as the fractions that floats are."""
    found = twin(torch.from_numpy(inputs.copy())).detach()
    assert found.dtype == twin.dtype
    exact = np.vectorize(Fraction, otypes=[object])(found.double().numpy())
    return exact.tolist()


def same_in_any_company(network, inputs, precision, twin=None):
    twin = twin or to_torch(network, inputs, precision)
    expected = evaluate(network, inputs).tolist()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        assert answers(twin, inputs) == expected
        assert answers(twin, inputs[::-1]) == expected[::-1]
        assert [answers(twin, inputs[i : i + 1])[0] for i in range(min(len(inputs), 7))] == expected[:7]


def equal_or_refused(network, inputs, precision):
    try:
        twin = to_torch(network, inputs, precision)
    except BadInput:
        return
    assert twin(torch.from_numpy(inputs)).tolist() == evaluate(network, inputs).tolist()


@both_floats
def test_every_kind_of_layer_by_hand(precision):
    """Ids (0, 1): rows (1, 2), (3, -4), with the codes (0, 0), (1, 1): (1, 2), (4, -3), and the sum is (5, -1).

    W_V = (1, 1) of the sum is 4; W_O = (2, 0) over n = 2 adds 4 to the first coordinate: (5, 2), (8, -3).
    Residual ReLU: (10, 4), (16, -3). In a row: 10, 4, 16, -3; 1 · 10 + 2 · 4 + 3 · 16 + 4 · -3 = 54, over 4: 27/2.
    """
    network = on_tokens(
        Embedding(integers([[1, 2], [3, -4]])),
        Positions(integers([[0, 0], [1, 1]])),
        uniform([[1, 1]], [[2], [0]]),
        feed_forward(affine([[1, 0], [0, 1]], [0, 0]), residual=True),
        Flatten(),
        feed_forward(affine([[1, 2, 3, 4]], [0], shift=2)),
        length=2,
    )
    twin = to_torch(network, np.array([[0, 1]]), precision)
    assert twin(torch.tensor([[0, 1]])).tolist() == [13.5]
    same_in_any_company(network, np.array([[0, 1], [1, 0], [1, 1]]), precision)


@st.composite
def sums(draw, width, length, of):
    """Uniform attention whose 1/n comes out, most of the time, or a sum."""
    if draw(st.integers(0, 4)) == 0:
        return TokenSum()
    W_O = draw(matrices(width, 2, of)) * draw(st.sampled_from([length, length, length, 1]))
    return UniformAttention(draw(matrices(2, width, of)), integers(W_O))


few_bits = {"numbers": st.integers(0, 9), "floats": st.sampled_from([0.0, -0.5, 0.25, 1.0, -3.0, 7.0])}


@both_floats
@tries(60)
@given(data=st.data())
def test_small_networks_have_a_twin_that_is_equal(precision, data):
    network = data.draw(networks(of=small, shifts=st.integers(0, 2), mixing=sums))
    inputs = data.draw(inputs_of(network, **few_bits))
    try:
        twin = to_torch(network, inputs, precision)
    except BadInput:
        assume(False)
    same_in_any_company(network, inputs, precision, twin)


around = st.sampled_from([s * (2**k + e) for k in (11, 12, 23, 24, 51, 52, 53) for e in (-1, 0, 1) for s in (-1, 1)])
beyond = st.sampled_from([2**130, -(2**1030), 3 * 2**60])
divisions = st.one_of(st.just(0), st.integers(0, 2), st.sampled_from([11, 24, 53, 160, 1100]))


@pytest.mark.slow
@both_floats
@tries(200)
@given(data=st.data())
def test_whatever_has_a_twin_is_equal(precision, data):
    """Weights and numbers around the limits of both types and beyond, divisions beyond their smallest numbers."""
    weights = st.one_of(st.just(0), small, around, beyond)
    layers = data.draw(chains(2, 1, weights, divisions, most=2))
    floats = st.sampled_from([0.0, 0.0, 1.0, -3.0, 2.0**-24, 2.0**52])
    inputs = np.array(data.draw(st.lists(floats, min_size=4, max_size=4))).reshape(2, 1, 2)
    inputs[:, :, 0] *= data.draw(st.integers(0, 1))
    equal_or_refused(on_vectors(feed_forward(*layers), dim=2), inputs, precision)


@both_floats
@tries(100)
@given(data=st.data())
def test_whatever_has_a_twin_is_equal_with_all_kinds_of_layers(precision, data):
    weights = st.one_of(small, small, small, small, around)
    network = data.draw(networks(of=weights, shifts=st.integers(0, 2), mixing=sums))
    numbers = {"numbers": st.integers(0, 9) | around, "floats": st.sampled_from([0.0, 2.0**-24, 1.5, 2.0**52])}
    equal_or_refused(network, data.draw(inputs_of(network, **numbers)), precision)


@both_floats
@pytest.mark.parametrize("batch", [1, 3, 64])
def test_long_sums_up_to_the_limit_are_exact_in_any_order(precision, batch):
    """1500 inputs of up to 8 (float64: 2³⁰) and weights of ± 1000: the absolute values add up to at most 2^p.

    Every one of the 40 rows adds up 1500 products in whatever order the matrix product takes.
    """
    random, width = np.random.default_rng(2), 1500
    largest = 2 ** BITS[precision] // (1000 * width)
    W = random.integers(-1000, 1001, (40, width))
    network = on_vectors(
        feed_forward(affine(W, [0] * 40, relu=False)),
        feed_forward(affine([[0] * 39 + [1]], [0], relu=False)),
        dim=width,
    )
    vectors = random.integers(-largest, largest + 1, (batch, 1, width)).astype(np.float64)
    same_in_any_company(network, vectors, precision)


@both_floats
def test_long_sequences_up_to_the_limit(precision):
    """1024 numbers of up to 2^(p-12), added up and doubled."""
    largest = 2 ** (BITS[precision] - 12)
    network = on_tokens(uniform([[2]], [[1024]]), length=1024, outputs="every")
    ids = np.random.default_rng(3).integers(0, largest + 1, (5, 1024))
    same_in_any_company(network, ids, precision)


@both_floats
def test_the_limit_itself_has_a_twin_and_one_more_has_none(precision):
    bits = BITS[precision]
    limit = on_tokens(feed_forward(affine([[2 ** (bits - 1)]], [0])))
    assert answers(to_torch(limit, np.array([[2]]), precision), np.array([[2]])) == [2**bits]
    above = on_tokens(feed_forward(affine([[2 ** (bits - 1)]], [1])))
    with pytest.raises(BadInput, match=f"the float type holds {bits}"):
        to_torch(above, np.array([[2]]), precision)


def test_what_fits_into_float64_only():
    """2²⁴ + 1 is 2²⁴ in float32."""
    network = on_tokens(feed_forward(affine([[1]], [1])))
    ids = np.array([[2**24]])
    assert answers(to_torch(network, ids), ids) == [2**24 + 1]
    with pytest.raises(BadInput, match="may need 25 bits; the float type holds 24"):
        to_torch(network, ids, "float32")


@both_floats
def test_residual_blocks_up_to_the_limit(precision):
    """x + 3 · relu(x - 1) for x up to 2^(p-2): 4x - 3, and for x = -5 the stream stays as it is."""
    network = on_tokens(Residual((block([[1]], [-1], [[3]]),)))
    largest = 2 ** (BITS[precision] - 2) - 10
    ids = np.array([[largest], [1], [-5], [7]])
    assert answers(to_torch(network, ids, precision), ids) == [4 * largest - 3, 1, -5, 25]
    same_in_any_company(network, ids, precision)
    with pytest.raises(BadInput, match=r"residual\.0\.block: values may need"):
        to_torch(network, ids * 2, precision)


@pytest.mark.parametrize("inputs", [np.array([[2, 0]]), np.array([[-1, 0]]), np.array([[0]]), np.zeros((1, 2, 1))])
def test_inputs_that_the_network_cannot_read_are_refused(inputs):
    # BUG (floats.py, to_torch): inputs are not checked: id 2 is an IndexError; -1, one token and vectors are accepted.
    network = on_tokens(Embedding(integers([[1], [2]])), uniform([[1]], [[2]]), length=2)
    with pytest.raises(BadInput):
        to_torch(network, inputs)


@both_floats
def test_shifts_divide_exactly(precision):
    """(3x + 1) / 8 for x = 5, 2, 0: 16/8 = 2, 7/8, 1/8; and again over 4: (x + 1) / 4."""
    network = on_tokens(feed_forward(affine([[3]], [1], shift=3), affine([[1]], [1], shift=2)))
    ids = np.array([[5], [2], [0]])
    expected = [Fraction(3, 4), Fraction(15, 32), Fraction(9, 32)]
    assert answers(to_torch(network, ids, precision), ids) == expected
    same_in_any_company(network, ids, precision)


@both_floats
@pytest.mark.parametrize(
    ("network", "inputs", "message"),
    [
        (on_tokens(uniform([[1]], [[1]]), length=3), np.array([[1, 2, 3]]), "not divisible by the length 3"),
        (
            on_tokens(hardmax([[1]], [[1]], [[1]], [[1]]), length=2),
            np.array([[1, 2]]),
            "hardmax attention has no float twin",
        ),
        (on_vectors(feed_forward(affine([[1]], [0]))), np.array([[[2.0**-60]]]), "bits on a common grid"),
    ],
    ids=["1/n", "hardmax", "grid"],
)
def test_what_would_be_rounded_is_refused(precision, network, inputs, message):
    with pytest.raises(BadInput, match=message):
        to_torch(network, inputs, precision)


@pytest.mark.parametrize(("precision", "power"), [("float32", 200), ("float64", 1100)])
def test_a_huge_weight_on_zeros(precision, power):
    """2²⁰⁰ is infinity in float32, and infinity times 0 is no number; 2¹¹⁰⁰ is an OverflowError already."""
    network = on_vectors(feed_forward(affine([[2**power, 1]], [0])), dim=2)
    equal_or_refused(network, np.array([[[0.0, 3.0]]]), precision)


@pytest.mark.parametrize(("precision", "shift"), [("float32", 150), ("float64", 1075)])
def test_a_shift_below_all_floats(precision, shift):
    """1 / 2¹⁵⁰ is 0 in float32."""
    network = on_tokens(feed_forward(affine([[1]], [0], shift=shift)))
    equal_or_refused(network, np.array([[1]]), precision)


@pytest.mark.parametrize(("precision", "shift"), [("float32", 80), ("float64", 600)])
def test_shifts_that_add_up_to_below_all_floats(precision, shift):
    """1 / 2⁸⁰ is a float32, and so is every weight; 1 / 2¹⁶⁰ is none."""
    half = affine([[1]], [0], shift=shift)
    equal_or_refused(on_tokens(feed_forward(half, half)), np.array([[1]]), precision)
    once = on_tokens(feed_forward(half))
    assert answers(to_torch(once, np.array([[1]]), precision), np.array([[1]])) == [Fraction(1, 2**shift)]


def test_a_twin_is_an_ordinary_module():
    network = on_tokens(Embedding(integers([[1], [2]])), feed_forward(affine([[3]], [4])))
    state = to_torch(network, np.array([[0], [1]])).state_dict()
    assert [(tuple(v.shape), v.flatten().tolist()) for v in state.values()] == [
        ((2, 1), [1.0, 2.0]),
        ((1, 1), [3.0]),
        ((1,), [4.0]),
    ]
    assert {v.dtype for v in state.values()} == {torch.float64}

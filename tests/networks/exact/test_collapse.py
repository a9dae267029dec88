"""Transformers on constant sequences are the plain networks that they collapse to; on others they are not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.errors import BadInput
from byheart.networks.exact import (
    Affine,
    Block,
    Embedding,
    ExactNetwork,
    FeedForward,
    Flatten,
    HardmaxAttention,
    Positions,
    Residual,
    SoftmaxAttention,
    UniformAttention,
    integers,
)
from byheart.networks.exact.collapse import collapse
from byheart.networks.exact.evaluate import evaluate

from .drawn import inputs_of, networks, real_networks, tries

PLAIN = (Embedding, FeedForward, Residual)
ATTENTION = UniformAttention(W_V=integers([[1, 0]]), W_O=integers([[2], [3]]))
OUTPUT = FeedForward((Affine(W=integers([[1, 1]]), b=integers([5]), relu=False),), name="output")
BLOCK = Residual((Block(W_in=integers([[1, -1]]), b_in=integers([0]), W_out=integers([[1], [1]])),))
TABLE = Embedding(W_E=integers([[1, 0], [2, 1], [0, 4]]))


def alike(network):
    """The network with the code of the first position at every position."""

    def first(layer):
        return replace(layer, W_pos=layer.W_pos[[0] * len(layer.W_pos)]) if isinstance(layer, Positions) else layer

    return replace(network, layers=tuple(map(first, network.layers)))


def constant(inputs):
    """Every sequence with its first token at every position."""
    return np.repeat(inputs[:, :1], inputs.shape[1], axis=1)


def on_tokens(*layers, length=4, outputs="last"):
    return ExactNetwork(layers, inputs="tokens", outputs=outputs, length=length)


@tries(50)
@given(st.data())
def test_every_network_answers_as_the_one_that_it_collapses_to(data):
    network = alike(data.draw(networks()))
    plain = collapse(network)
    assert all(isinstance(layer, PLAIN) for layer in plain.layers)
    inputs = constant(data.draw(inputs_of(network)))
    assert evaluate(plain, inputs).tolist() == evaluate(network, inputs).tolist()
    assert collapse(plain).description == plain.description, "what is plain stays as it is"


@tries(40)
@given(st.data())
def test_softmax_too(data):
    """The balls around the outputs hold the collapsed network's numbers, and are narrow."""
    from flint import arb, fmpq

    from byheart.networks.exact.enclose import enclose

    network = alike(data.draw(real_networks()))
    inputs = constant(
        data.draw(inputs_of(network, numbers=st.integers(-5, 5), floats=st.sampled_from([0.0, 0.5, -2.0])))
    )
    plain = collapse(network)
    assert plain.rational
    numbers = evaluate(plain, inputs).ravel()
    for ball, number in zip(enclose(network, inputs, bits=400).ravel(), numbers, strict=True):
        exact = fmpq(*number.as_integer_ratio())
        assert ball.contains(arb(exact))
        assert abs(ball - arb(exact)) < 1e-6 * (1 + abs(arb(exact)))


def test_positions_that_differ_are_refused():
    """At the last position only; the same code everywhere is a bias, here (1, 1)·(2, 0)ᵀ more."""
    differ = Positions(W_pos=integers([[2, 0], [2, 0], [2, 0], [2, 1]]))
    with pytest.raises(
        BadInput, match="positions 0 and 3 have different codes, so equal tokens are told apart; expected"
    ):
        collapse(on_tokens(TABLE, differ, OUTPUT))
    (_, output) = collapse(on_tokens(TABLE, Positions(W_pos=integers([[2, 0]] * 4)), OUTPUT)).layers
    assert output.layers[0].b.tolist() == [7]


def test_by_hand_into_the_next_layer():
    """I + W_O W_V = [[3, 0], [3, 1]], so (1, 1) becomes (6, 1); the bias stays."""
    (table, output) = collapse(on_tokens(TABLE, ATTENTION, OUTPUT)).layers
    assert table.W_E.tolist() == TABLE.W_E.tolist()
    assert output.layers[0].W.tolist() == [[6, 1]]
    assert output.layers[0].b.tolist() == [5]


def test_by_hand_into_the_table():
    """Rows of the table times [[3, 0], [3, 1]]: (1, 0) becomes (3, 3), (2, 1) becomes (6, 7), (0, 4) stays."""
    table, *rest = collapse(on_tokens(TABLE, ATTENTION, BLOCK, OUTPUT)).layers
    assert table.W_E.tolist() == [[3, 3], [6, 7], [0, 4]]
    assert rest == [BLOCK, OUTPUT]


def test_by_hand_softmax():
    """(4 I + W_O W_V)/4 = [[6, 0], [3, 4]]/4 in front of (1, 1): (9, 4)/4, and the bias 5 is 20/4."""
    zero = integers([[0, 0]])
    softmax = SoftmaxAttention(zero, zero, ATTENTION.W_V, ATTENTION.W_O, score_shift=7, shift=2)
    (affine,) = collapse(on_tokens(TABLE, softmax, OUTPUT)).layers[1].layers
    assert (affine.W.tolist(), affine.b.tolist(), affine.shift, affine.relu) == ([[9, 4]], [20], 2, False)


def test_what_fits_nowhere_is_a_layer_of_its_own():
    """Between two residual layers; and behind a table, when it is divided by a power of two."""
    between = collapse(on_tokens(TABLE, BLOCK, ATTENTION, BLOCK, OUTPUT))
    assert [type(layer) for layer in between.layers] == [Embedding, Residual, FeedForward, Residual, FeedForward]
    assert between.layers[2].name == "attention"
    one = integers([[1, 0]])
    softmax = SoftmaxAttention(one, one, ATTENTION.W_V, ATTENTION.W_O, shift=1)
    assert isinstance(collapse(on_tokens(TABLE, softmax, BLOCK, OUTPUT)).layers[1], FeedForward)


def test_by_hand_into_the_layer_in_front():
    """Behind a linear map and in front of a residual block: [[3, 0], [3, 1]] times (1, 1)ᵀ is (3, 4)ᵀ."""
    linear = FeedForward((Affine(W=integers([[1], [1]]), b=integers([1, 0]), shift=3, relu=False),))
    front, *rest = collapse(on_tokens(linear, ATTENTION, BLOCK, OUTPUT)).layers
    (affine,) = front.layers
    assert (affine.W.tolist(), affine.b.tolist(), affine.shift) == ([[3], [4]], [3, 3], 3)
    assert rest == [BLOCK, OUTPUT]


def test_flattening_and_hardmax_in_a_row():
    """Four copies of (3z₁, 3z₁ + z₂) and weights 1, …, 8: 16·3z₁ + 20·(3z₁ + z₂)."""
    hardmax = HardmaxAttention(integers([[5, 5]]), integers([[1, 2]]), ATTENTION.W_V, ATTENTION.W_O, causal=True)
    summing = FeedForward((Affine(W=integers([range(1, 9)]), b=integers([0]), relu=False),))
    (_, output) = collapse(on_tokens(TABLE, hardmax, Flatten(), summing)).layers
    assert output.layers[0].W.tolist() == [[16 * 3 + 20 * 3, 20]]


def test_on_other_sequences_it_is_another_function():
    network = on_tokens(TABLE, ATTENTION, OUTPUT, length=2)
    mixed, equal = np.array([[0, 1]]), np.array([[1, 1]])
    plain = collapse(network)
    assert evaluate(plain, mixed).tolist() == evaluate(network, equal).tolist() != evaluate(network, mixed).tolist()


def test_what_it_was_is_noted():
    network = on_tokens(TABLE, ATTENTION, OUTPUT)
    assert collapse(network).about["collapsed"] == network.fingerprint


def test_a_length_that_is_only_claimed_takes_no_memory():
    with pytest.raises(BadInput, match="flatten: 1,000,000,000,000,000 copies of a row would take"):
        collapse(on_tokens(Flatten(), length=10**15))

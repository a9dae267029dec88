"""The fast evaluation: by hand, against fractions, against python-flint, and the same in any company."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.errors import BadInput
from byheart.networks.exact import Embedding, ExactNetwork, Flatten, Positions, Residual, TokenSum, integers, reference
from byheart.networks.exact.evaluate import evaluate

from . import oracle
from .drawn import inputs_of, networks, tries
from .oracle import affine, answers, block, feed_forward, hardmax, on_tokens, on_vectors, uniform

both = pytest.mark.parametrize("evaluator", [evaluate, reference.evaluate], ids=["limbs", "flint"])


def plain(outputs):
    """Outputs are ints where they are integers, and else fractions in lowest terms."""
    flat = outputs.ravel().tolist()
    return all(type(value) is int or (type(value) is Fraction and value.denominator > 1) for value in flat)


@both
def test_tokens_without_embedding_are_numbers(evaluator):
    """max(0, 2t - 3) for t = 1, 5, 0, -4, and for the largest ids that there are."""
    network = on_tokens(feed_forward(affine([[2]], [-3])))
    assert evaluator(network, np.array([[1], [5], [0], [-4]])).tolist() == [0, 7, 0, 0]
    assert evaluator(network, np.array([[2**63 - 1]])).tolist() == [2**64 - 5]


@both
def test_without_layers_the_tokens_come_out(evaluator):
    ids = np.array([[3, 4], [5, 6]])
    assert evaluator(on_tokens(length=2), ids).tolist() == [4, 6]
    assert evaluator(on_tokens(length=2, outputs="every"), ids).tolist() == [[3, 4], [5, 6]]


@both
def test_embedding_positions_and_uniform_attention_by_hand(evaluator):
    """Rows (1, 0), (0, 2), (5, 5); ids (0, 2, 1) with positions (10, 0), (0, 10), (0, 0) are (11, 0), (5, 15), (0, 2).

    Their sum is (16, 17). W_V adds both coordinates and W_O puts twice that into the first: + 2 · 33 / 3 = 22.
    First coordinates: 33, 27, 22. With W_O = 1 instead of 2 it is 11 less.
    """
    table, codes = integers([[1, 0], [0, 2], [5, 5]]), integers([[10, 0], [0, 10], [0, 0]])
    ids = np.array([[0, 2, 1]])
    pick = feed_forward(affine([[1, 0]], [0]))
    for weight, expected in [(2, [33, 27, 22]), (1, [22, 16, 11])]:
        layers = (Embedding(table), Positions(codes), uniform([[1, 1]], [[weight], [0]]), pick)
        assert evaluator(on_tokens(*layers, length=3, outputs="every"), ids).tolist() == [expected]
        assert evaluator(on_tokens(*layers, length=3), ids).tolist() == expected[-1:]


@both
def test_fractions_come_out_where_they_are(evaluator):
    """Z = 1, 2 has the mean 3/2: 1 + 3/2 and 2 + 3/2; halved and minus 1 with a ReLU: 1/4 and 3/4. For 1, 1: 2, 0."""
    layers = (feed_forward(affine([[1]], [0])), uniform([[1]], [[1]]))
    network = on_tokens(*layers, length=2, outputs="every")
    ids = np.array([[1, 2], [1, 1]])
    outputs = evaluator(network, ids)
    assert outputs.tolist() == [[Fraction(5, 2), Fraction(7, 2)], [2, 2]]
    assert plain(outputs)
    halved = on_tokens(*layers, feed_forward(affine([[1]], [-2], shift=1)), length=2, outputs="every")
    outputs = evaluator(halved, ids)
    assert outputs.tolist() == [[Fraction(1, 4), Fraction(3, 4)], [0, 0]]
    assert plain(outputs)


@both
def test_biases_after_a_mean_over_three(evaluator):
    """Z = 1, 0, 0: the last is 0 + 1/3. Then 6 · 1/3 - 1 = 1, and another mean over the one token's three."""
    network = on_tokens(
        feed_forward(affine([[1]], [0])), uniform([[1]], [[1]]), feed_forward(affine([[6]], [-1], relu=False)), length=3
    )
    assert evaluator(network, np.array([[1, 0, 0], [0, 0, 0]])).tolist() == [1, -1]


@both
def test_hardmax_ties_by_hand(evaluator):
    """Vectors 4, 1, 4, 0 and -1/2, -1/4, 0, 0: see test_attention for the first.

    Second: for -1/2 the best is itself (1/4), for -1/4 it is -1/2 (1/8), for 0 all tie: the mean is -3/16.
    """
    network = on_vectors(hardmax([[1]], [[1]], [[1]], [[1]]), length=4, outputs="every")
    outputs = evaluator(network, np.array([[4.0, 1, 4, 0], [-0.5, -0.25, 0, -0.0]])[:, :, None])
    quarters = [Fraction(-1), Fraction(-3, 4), Fraction(-3, 16), Fraction(-3, 16)]
    assert outputs.tolist() == [[8, 5, 8, Fraction(9, 4)], quarters]
    assert plain(outputs)


@both
def test_a_residual_adds_the_input(evaluator):
    """(x, y) + ReLU(y - x, x - y): the larger of the two, twice. Then their sum is x + y + |x - y|."""
    swap = feed_forward(affine([[-1, 1], [1, -1]], [0, 0]), residual=True)
    network = on_vectors(swap, feed_forward(affine([[1, 1]], [0], relu=False)), dim=2)
    vectors = np.array([[[3.0, 5.0]], [[-1.5, -2.0]], [[0.25, 0.25]]])
    assert evaluator(network, vectors).tolist() == [10, -3, Fraction(1, 2)]


@both
def test_skip_connections_in_a_row_by_hand(evaluator):
    """Z + relu(WZ + b) twice, then once halved, without ReLU, which is a layer of another kind.

    (1, −2) → (1 + 0, −2 + 5) → (1 + 4, 3 + 0) → (5 + 5/2, 3 + 3/2), whose sum is 12; (2, 3) → (2 + 1, 3) → (3 + 6, 3) →
    18.
    """
    fold = feed_forward(affine([[0, 1], [-1, -2]], [-2, 2]), residual=True, name="fold.1")
    again = feed_forward(affine([[1, 1], [0, -1]], [0, 1]), residual=True, name="fold.2")
    half = feed_forward(affine([[1, 0], [0, 1]], [0, 0], shift=1, relu=False), residual=True, name="half")
    end = feed_forward(affine([[1, 1]], [0], relu=False))
    network = on_vectors(fold, again, half, end, dim=2)
    assert evaluator(network, np.array([[[1.0, -2.0]], [[2.0, 3.0]]])).tolist() == [12, 18]


@both
def test_residual_blocks_by_hand(evaluator):
    """(x, y) = (3, -5): relu(x + y + 1, -y) = (0, 5), and W_out adds (2 · 0 + 5, -0 + 1 · 5): (8, 0).

    The second block: relu(x - 7) = 1, and adds (10, -1): (18, -1). The stream itself is not rectified. 18 - 1 = 17.
    For (1, 1/2): relu(5/2, -1/2) = (5/2, 0) adds (5, -5/2): (6, -2); relu(-1) = 0 adds nothing: 4.
    """
    first = block([[1, 1], [0, -1]], [1, 0], [[2, 1], [-1, 1]])
    second = block([[1, 0]], [-7], [[10], [-1]])
    network = on_vectors(Residual((first, second)), feed_forward(affine([[1, 1]], [0], relu=False)), dim=2)
    assert evaluator(network, np.array([[[3.0, -5.0]], [[1.0, 0.5]]])).tolist() == [17, 4]


@both
def test_blocks_on_thirds(evaluator):
    """The mean of 1, 0, 0 is 1/3, so the last token is 1/3; beside thirds a bias of 1 is three of them.

    relu(2 · 1/3 + 1) = 5/3, times 3 is 5: 16/3. For 0, 0, 0: relu(1) · 3 = 3.
    """
    layers = (feed_forward(affine([[1]], [0])), uniform([[1]], [[1]]), Residual((block([[2]], [1], [[3]]),)))
    outputs = evaluator(on_tokens(*layers, length=3), np.array([[1, 0, 0], [0, 0, 0]]))
    assert outputs.tolist() == [Fraction(16, 3), 3]


@both
def test_flatten_goes_token_by_token(evaluator):
    """Tokens (1, 2), (3, 4), (5, 6) are 1 … 6 in a row: the digits of 123456."""
    digits = feed_forward(affine([[10**k for k in range(5, -1, -1)]], [0]))
    network = on_vectors(Flatten(), digits, length=3, dim=2)
    assert evaluator(network, np.array([[[1.0, 2], [3, 4], [5, 6]], [[6.0, 5], [4, 3], [2, 1]]])).tolist() == [
        123456,
        654321,
    ]


@both
def test_positions_behind_a_mixing_layer(evaluator):
    """(7, 8) has the mean 15/2; with codes 100, 1000 behind it, the outputs are 14.5 + 100 and 15.5 + 1000."""
    layers = (feed_forward(affine([[1]], [0])), uniform([[1]], [[1]]), Positions(integers([[100], [1000]])))
    ids = np.array([[7, 8]])
    every = evaluator(on_tokens(*layers, length=2, outputs="every"), ids)
    assert every.tolist() == [[Fraction(229, 2), Fraction(2031, 2)]]
    assert evaluator(on_tokens(*layers, length=2), ids).tolist() == [Fraction(2031, 2)]


@both
@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (Positions(integers([[10], [20]])), [[13, 24], [15, 26]]),
        (uniform([[1]], [[2]]), [[10, 11], [16, 17]]),
        (hardmax([[1]], [[1]], [[1]], [[1]]), [[7, 8], [11, 12]]),
    ],
    ids=["positions", "uniform", "hardmax"],
)
def test_other_layers_right_on_token_ids(evaluator, layer, expected):
    """Ids (3, 4) and (5, 6): plus (10, 20); plus 2 · the mean, 7 and 11; plus the largest, 4 and 6."""
    ids = np.array([[3, 4], [5, 6]])
    assert evaluator(on_tokens(layer, length=2, outputs="every"), ids).tolist() == expected


@tries(300)
@given(st.data())
def test_both_evaluations_are_what_fractions_say(data):
    network = data.draw(networks())
    inputs = data.draw(inputs_of(network))
    fast = evaluate(network, inputs)
    assert fast.tolist() == answers(network, inputs)
    assert plain(fast)
    slow = reference.evaluate(network, inputs)
    assert slow.shape == fast.shape
    assert slow.tolist() == fast.tolist()
    assert plain(slow)


@tries(60)
@given(st.data())
def test_a_sequence_gets_the_same_answer_in_any_company(data):
    network = data.draw(networks())
    inputs = data.draw(inputs_of(network))
    together = evaluate(network, inputs, threads=2).tolist()
    assert [evaluate(network, inputs[i : i + 1]).tolist()[0] for i in range(len(inputs))] == together
    order = np.array(data.draw(st.permutations(range(len(inputs)))))
    assert evaluate(network, inputs[order]).tolist() == [together[i] for i in order]
    assert evaluate(network, np.concatenate([inputs, inputs])).tolist() == together + together


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("outputs", ["last", "every"])
def test_many_sequences_are_answered_in_order(threads, outputs):
    """18,000 different tokens t in 6,000 sequences of 3: u = max(0, t - 9000), then 2 (u_k + mean) + 2^100 · k."""
    codes = Positions(integers([[0], [2**100], [2**101]]))
    double = feed_forward(affine([[2]], [0], relu=False))
    network = on_tokens(
        feed_forward(affine([[1]], [-9000])), uniform([[1]], [[1]]), double, codes, length=3, outputs=outputs
    )
    ids = np.random.default_rng(1).permutation(18_000).reshape(6000, 3)
    expected = []
    for row in ids.tolist():
        u = [max(0, t - 9000) for t in row]
        expected.append([2 * (value + Fraction(sum(u), 3)) + 2**100 * k for k, value in enumerate(u)])
    counted = []
    found = evaluate(network, ids, threads=threads, report=lambda *step: counted.append(step))
    assert found.tolist() == ([row[-1] for row in expected] if outputs == "last" else expected)
    assert counted == sorted(counted)
    assert counted[-1] == (6000, 6000)
    assert len(counted) > 1


def test_tokens_at_different_positions_are_not_mixed_up():
    """The same id 7 at three positions, with the codes 1, 10, 100 and then times two: 16, 34, 214."""
    layers = (Positions(integers([[1], [10], [100]])), feed_forward(affine([[2]], [0])))
    network = on_tokens(*layers, length=3, outputs="every")
    assert evaluate(network, np.array([[7, 7, 7], [0, 7, 0]])).tolist() == [[16, 34, 214], [2, 34, 200]]


def test_inputs_of_other_dtypes():
    network = on_tokens(feed_forward(affine([[2]], [0])), length=2, outputs="every")
    ids = np.array([[1, 200], [255, 0]])
    for dtype in ("uint8", "int32", ">i8"):
        assert evaluate(network, ids.astype(dtype)).tolist() == [[2, 400], [510, 0]]
    assert evaluate(network, np.asfortranarray(ids)).tolist() == [[2, 400], [510, 0]]
    vectors = np.array([[[0.5, 3.0]], [[-0.25, 7.0]]], dtype=np.float32)
    first = on_vectors(feed_forward(affine([[4, 0]], [0], relu=False)), dim=2)
    assert evaluate(first, vectors).tolist() == [2, -1]


END = feed_forward(affine([[1] * 6], [0]))
WRONG = {
    "length": (on_tokens(length=2), np.zeros((1, 3), np.int64), "reads sequences of 2 tokens; the task's have 3"),
    "kind": (on_tokens(length=2), np.zeros((1, 2, 1)), "reads tokens; the task has vectors"),
    "other kind": (on_vectors(length=2), np.zeros((1, 2), np.int64), "reads vectors; the task has tokens"),
    "dim": (
        on_vectors(Flatten(), END, length=2, dim=3),
        np.zeros((1, 2, 4)),
        "reads vectors of dimension 3; the task's have 4",
    ),
    "vocabulary": (
        on_tokens(Embedding(integers([[1], [2]]))),
        np.array([[1], [2]]),
        "knows 2 tokens; the task has token id 2",
    ),
}


@pytest.mark.parametrize(("network", "inputs", "message"), WRONG.values(), ids=WRONG)
@both
def test_wrong_inputs_are_refused(evaluator, network, inputs, message):
    with pytest.raises(BadInput) as caught:
        evaluator(network, inputs)
    assert str(caught.value) == f"the network {message}"


@both
def test_negative_ids_are_no_tokens(evaluator):
    with pytest.raises(BadInput, match="token id -1"):
        evaluator(on_tokens(Embedding(integers([[1], [2], [3]]))), np.array([[-1]]))


def test_ids_that_are_no_integers_are_refused():
    # BUG (inputs.py, check_inputs): only the number of axes is looked at; 0.5 and 1.9 are answered as if 0 and 1.
    network = on_tokens(Embedding(integers([[10], [20]])))
    with pytest.raises(BadInput):
        evaluate(network, np.array([[0.5], [1.9]]))


def test_a_chain_that_reads_more_than_there_is_does_not_crash():
    program = """
import numpy as np
from byheart.networks.exact import Affine, FeedForward, ExactNetwork, integers
from byheart.networks.exact.evaluate import evaluate
wide = FeedForward((Affine(integers([[1, 1, 1]]), integers([0])),))
print(evaluate(ExactNetwork((wide,), inputs="tokens", outputs="last", length=1), np.array([[7]])))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "byheart.errors.BadInput" in done.stderr, (done.returncode, done.stdout, done.stderr)


def test_the_oracle_by_hand():
    """(1, 2) and (3, 4) through flatten is (1, 2, 3, 4); 1 - 2 + 3 - 4 = -2, halved -1, stopped 0."""
    layers = (Flatten(), feed_forward(affine([[1, -1, 1, -1]], [0], shift=1, relu=False)))
    inputs = np.array([[[1.0, 2.0], [3.0, 4.0]]])
    assert oracle.answers(on_vectors(*layers, length=2, dim=2), inputs) == [-1]
    stopped = (*layers, feed_forward(affine([[1]], [0])))
    assert oracle.answers(on_vectors(*stopped, length=2, dim=2), inputs) == [0]


@pytest.mark.parametrize("outputs", ["last", "every"])
def test_equal_sequences_are_evaluated_once(outputs):
    """By hand: Z_k + 2 Σ Z_j. Of 40,000 sequences, two are different."""
    network = ExactNetwork((TokenSum(),), inputs="tokens", outputs=outputs, length=2)
    tokens = np.tile([[3, 4], [1, 2], [3, 4], [3, 4]], (10_000, 1))
    done = []
    results = evaluate(network, tokens, report=lambda *counts: done.append(counts[:2]))
    assert done == [(2, 2)]
    if outputs == "last":
        assert results.tolist() == [18, 8, 18, 18] * 10_000
    else:
        assert results.tolist() == [[17, 18], [7, 8], [17, 18], [17, 18]] * 10_000

"""One-layer softmax networks: what they are made of, what they refuse, and what they give."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.errors import BadInput
from byheart.networks import count
from byheart.networks.softmax import Inputs, SoftmaxNetwork, evaluate
from byheart.networks.trained import evaluate as module

from .small import KINDS, drawn, one_head


def plain(network: SoftmaxNetwork, sequence: np.ndarray, query: np.ndarray | None) -> list[float]:
    """The definition, one number after the other."""
    W_Q, W_K, W_V, W_O = (tensor.tolist() for tensor in (network.W_Q, network.W_K, network.W_V, network.W_O))
    if query is None:
        table, positions = network.W_E.tolist(), network.W_pos.tolist()
        x = [[e + p for e, p in zip(table[t], positions[s], strict=True)] for s, t in enumerate(sequence.tolist())]
        q = x[-1]
    else:
        x, q = sequence.tolist(), query.tolist()
    H, d, d_h, d_v, k = len(W_Q), len(q), len(W_Q[0][0]), len(W_V[0][0]), len(W_O[0][0])
    z = list(q) if network.skip else [0.0] * k
    for h in range(H):
        scores = []
        for row in x:
            score = 0.0
            for c in range(d_h):
                key = sum(row[i] * W_K[h][i][c] for i in range(d))
                score += key * sum(q[i] * W_Q[h][i][c] for i in range(d))
            scores.append(score)
        raised = [math.exp(score - max(scores)) for score in scores]
        average = [sum(r * row[i] for r, row in zip(raised, x, strict=True)) / sum(raised) for i in range(d)]
        head = [sum(average[i] * W_V[h][i][v] for i in range(d)) for v in range(d_v)]
        for j in range(k):
            z[j] += sum(head[v] * W_O[h][v][j] for v in range(d_v))
    if network.W_in is not None:
        W_in, b_in = network.W_in.tolist(), network.b_in.tolist()
        z = [math.tanh(sum(z[i] * W_in[i][u] for i in range(k)) + b_in[u]) for u in range(len(b_in))]
    if network.W_U is not None:
        W_U = network.W_U.tolist()
        z = [sum(z[i] * W_U[i][c] for i in range(len(z))) for c in range(len(W_U[0]))]
    return z


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=20)
def test_outputs_are_the_definition(kind: str, seed: int) -> None:
    network, (sequences, queries) = drawn(kind, seed=seed)
    found = evaluate(network, (sequences, queries))
    assert found.shape == (5, network.outputs)
    for example, row in enumerate(found):
        expected = plain(network, sequences[example], None if queries is None else queries[example])
        assert row.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_one_head_by_hand() -> None:
    """Scores 0·ln 3 and 1·ln 3, weights ¼ and ¾: ¾ of the value 2·5 of the second token, and −1 times that."""
    network = one_head(W_V=2, W_O=5, W_U=[1.0, -1.0])
    found = evaluate(network, (np.array([[[0.0], [1.0]]]), np.array([[math.log(3)]])))
    assert found[0].tolist() == pytest.approx([7.5, -7.5], abs=1e-14)


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs"),
    [("shared", "queries", 5), ("own", "queries", 1), ("skip", "tokens", 5), ("units", "tokens", 5),
     ("plain", "tokens", 2)],
)  # fmt: skip
def test_what_is_read_and_how_much_is_said(kind: str, inputs: str, outputs: int) -> None:
    network, _ = drawn(kind)
    assert (network.inputs, network.outputs) == (inputs, outputs)


def test_units_without_an_unembedding_are_the_outputs() -> None:
    network, inputs = drawn("units")
    hidden = SoftmaxNetwork(**{name: tensor for name, tensor in network.by_name().items() if name != "W_U"})
    assert hidden.outputs == 7
    assert np.allclose(evaluate(hidden, inputs) @ network.W_U, evaluate(network, inputs), rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("entries", [1, 60, 200])
def test_chunks_do_not_change_answers(kind: str, entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One, two or several examples at a time instead of all of them; a matrix product may round otherwise."""
    network, inputs = drawn(kind, examples=23)
    whole = evaluate(network, inputs)
    calls: list[int] = []
    real = module._outputs

    def watched(network: SoftmaxNetwork, over: object, inputs: Inputs) -> object:
        calls.append(len(inputs[0]))
        return real(network, over, inputs)

    monkeypatch.setattr(module, "_outputs", watched)
    monkeypatch.setattr(module, "CHUNK", entries)
    assert np.allclose(evaluate(network, inputs), whole, rtol=1e-12, atol=1e-13)
    assert sum(calls) == 23
    assert len(calls) > 1


# The tensors


def test_tensors_are_read_only_copies() -> None:
    ours = np.ones((1, 2, 1))
    network = SoftmaxNetwork(W_Q=ours, W_K=ours, W_V=ours, W_O=np.ones((1, 1, 1)))
    ours[:] = 7
    for _, tensor in network.tensors():
        assert (tensor == 1).all()
        with pytest.raises(ValueError, match="read-only"):
            tensor[0, 0, 0] = 2
    assert ours.flags.writeable


def test_a_read_only_view_is_copied_too() -> None:
    ours = np.ones((1, 1, 1))
    view = ours[:]
    view.flags.writeable = False
    network = SoftmaxNetwork(W_Q=view, W_K=view, W_V=view, W_O=view)
    ours[:] = 7
    assert (network.W_Q == 1).all()


def test_with_tensor_replaces_one_and_checks_it() -> None:
    network, _ = drawn("skip")
    other = network.with_tensor("W_U", np.zeros((4, 9)))
    assert other.outputs == 9
    assert other.skip
    for (name, before), (_, after) in zip(network.tensors(), other.tensors(), strict=True):
        assert (before is after) == (name != "unembedding.W_U")
    with pytest.raises(BadInput, match=r"^W_U is \[3, 9\]; expected \[4, 9\], to fit the other tensors$"):
        network.with_tensor("W_U", np.zeros((3, 9)))


ALL = drawn("units")[0].by_name()
WRONG = {
    "W_K": ((2, 4, 3), r"W_K is \[2, 4, 3\]; expected \[2, 4, 2\], to fit the other tensors"),
    "W_V": ((2, 5, 3), r"W_V is \[2, 5, 3\]; expected \[2, 4, 3\], to fit the other tensors"),
    "W_O": ((2, 2, 2), r"W_O is \[2, 2, 2\]; expected \[2, 3, 2\], to fit the other tensors"),
    "W_E": ((6, 3), r"W_E is \[6, 3\]; expected \[6, 4\], to fit the other tensors"),
    "W_pos": ((3, 5), r"W_pos is \[3, 5\]; expected \[3, 4\], to fit the other tensors"),
    "W_in": ((3, 7), r"W_in is \[3, 7\]; expected \[2, 7\], to fit the other tensors"),
    "b_in": ((8,), r"W_in is \[2, 7\]; expected \[2, 8\], to fit the other tensors"),
    "W_U": ((2, 5), r"W_U is \[2, 5\]; expected \[7, 5\], to fit the other tensors"),
    "W_Q": ((3, 4, 2), r"W_K is \[2, 4, 2\]; expected \[3, 4, 2\], to fit the other tensors"),
}


@pytest.mark.parametrize("name", WRONG)
def test_shapes_that_do_not_fit_each_other(name: str) -> None:
    shape, message = WRONG[name]
    with pytest.raises(BadInput, match=f"^{message}$"):
        SoftmaxNetwork(**ALL | {name: np.zeros(shape)})
    assert SoftmaxNetwork(**ALL).outputs == 5


@pytest.mark.parametrize("heads", ["W_K", "W_V", "W_O"])
def test_as_many_heads_everywhere(heads: str) -> None:
    with pytest.raises(BadInput, match=rf"^{heads} is \[1, .*\]; expected \[2, "):
        SoftmaxNetwork(**ALL | {heads: ALL[heads][:1]})


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("W_E", "one of W_E and W_pos is missing; expected both (token ids) or none (contexts and queries)"),
        ("W_pos", "one of W_E and W_pos is missing; expected both (token ids) or none (contexts and queries)"),
        ("W_in", "one of W_in and b_in is missing; expected both or none"),
        ("b_in", "one of W_in and b_in is missing; expected both or none"),
    ],
)
def test_one_of_two_is_not_enough(missing: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        SoftmaxNetwork(**ALL | {missing: None})
    assert str(caught.value) == message


def test_the_skip_connection_needs_the_width_of_the_stream() -> None:
    with pytest.raises(BadInput, match=r"^W_O gives 2 features and the skip connection 4; expected the same$"):
        SoftmaxNetwork(**ALL, skip=True)


@pytest.mark.parametrize("name", ALL)
def test_tensors_of_the_wrong_type(name: str) -> None:
    axes, tensor = ALL[name].ndim, ALL[name]
    for wrong in (tensor.astype(np.float32), tensor.astype(np.int64), tensor[None], tensor[..., :0]):
        message = rf"^{name} is {wrong.dtype} \[.*\]; expected float64 with {axes} axes$"
        with pytest.raises(BadInput, match=message):
            SoftmaxNetwork(**ALL | {name: wrong})
    for number in (np.nan, np.inf, -np.inf):
        changed = tensor.copy()
        changed.flat[-1] = number
        with pytest.raises(BadInput, match=f"^{name} has entries that are not finite$"):
            SoftmaxNetwork(**ALL | {name: changed})


# Inputs


def test_the_wrong_kind_of_inputs() -> None:
    (reads_ids, ids), (reads_queries, asked) = drawn("plain"), drawn("own")
    with pytest.raises(BadInput, match=r"^the network reads token ids; the task has contexts and queries$"):
        evaluate(reads_ids, asked)
    with pytest.raises(BadInput, match=r"^the network reads contexts and queries; the task has token ids$"):
        evaluate(reads_queries, ids)


@pytest.mark.parametrize("length", [1, 2, 4])
def test_sequences_of_another_length(length: int) -> None:
    with pytest.raises(BadInput, match=f"^the sequences have {length} tokens; the network reads 3$"):
        evaluate(drawn("plain")[0], (np.zeros((2, length), np.int64), None))


def test_a_token_that_the_network_does_not_know() -> None:
    network, _ = drawn("plain")
    assert evaluate(network, (np.array([[0, 5, 1]]), None)).shape == (1, 2)
    with pytest.raises(BadInput, match=r"^token 6 occurs; the network knows 0 to 5$"):
        evaluate(network, (np.array([[0, 1, 2], [0, 6, 1]]), None))


def test_vectors_of_another_dimension() -> None:
    with pytest.raises(BadInput, match=r"\[2, 3, 3\].* dimension 4"):
        evaluate(drawn("own")[0], (np.zeros((2, 3, 3)), np.zeros((2, 3))))


def test_contexts_of_any_length_are_read() -> None:
    """There are no positions, so n is free: one token alone gets all the weight."""
    network, _ = drawn("own")
    vector, query = np.arange(4.0), np.ones(4)
    expected = sum(vector @ inwards @ out for inwards, out in zip(network.W_V, network.W_O, strict=True))
    assert np.allclose(evaluate(network, (vector[None, None], query[None])), expected, rtol=1e-13)


# Counting


def test_count_by_hand() -> None:
    """6·4 + 3·4 + 2 tensors of 2·4·2 + 2·4·3 + 2·3·2 + 2·7 + 7 + 7·5 = 160 entries, 64 bits each."""
    account = count(drawn("units")[0])
    shapes = {item.name: item.dense for item in account.items}
    assert shapes == {
        "embedding.W_E": 24,
        "positions.W_pos": 12,
        "attention.W_Q": 16,
        "attention.W_K": 16,
        "attention.W_V": 24,
        "attention.W_O": 12,
        "units.W_in": 14,
        "units.b_in": 7,
        "unembedding.W_U": 35,
    }
    assert account.dense == account.nonzero == account.free == 160
    assert account.embedding == 24
    assert (account.max_bits, account.total_bits) == (64, 64 * 160)
    assert (account.depth, account.width) == (4, 7)


@pytest.mark.parametrize(("kind", "depth", "width"), [("shared", 2, 5), ("own", 1, 4), ("skip", 3, 5), ("plain", 2, 4)])
def test_depth_and_width(kind: str, depth: int, width: int) -> None:
    account = count(drawn(kind)[0])
    assert (account.depth, account.width) == (depth, width)


def test_zeros_ones_and_repeated_entries_are_not_free() -> None:
    network = SoftmaxNetwork(
        W_Q=np.array([[[0.0, 1.0, -1.0, 0.5, 0.5, -0.0]]]), W_K=np.ones((1, 1, 6)), W_V=np.full((1, 1, 2), 3.0),
        W_O=np.array([[[2.0], [3.0]]]),
    )  # fmt: skip
    account = count(network)
    assert {item.name: (item.dense, item.nonzero, item.free) for item in account.items} == {
        "attention.W_Q": (6, 4, 1),
        "attention.W_K": (6, 6, 0),
        "attention.W_V": (2, 2, 1),
        "attention.W_O": (2, 2, 2),
    }

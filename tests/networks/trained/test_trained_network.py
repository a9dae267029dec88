"""Trained networks: what they compute in float64, their shapes, and what is refused."""

from typing import Any

import mpmath
import numpy as np
import pytest

from byheart.errors import BadInput
from byheart.networks.trained import (
    Activation,
    AffineMap,
    Norm,
    PositionTable,
    StepSequence,
    TokenTable,
    TrainedAttention,
    TrainedNetwork,
    evaluate,
)

from ...trained_in_plain import outputs
from .small import KINDS, VOCAB, attention, chain, drawn


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outputs_are_the_definition(kind: str, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    network, (sequences, queries) = drawn(kind, dtype=dtype, examples=9)
    monkeypatch.setattr(evaluate, "CHUNK", 40)
    found = evaluate.evaluate(network, (sequences, queries))
    assert found.shape == (9, network.outputs)
    for i, row in enumerate(found):
        sequence = sequences[i] if queries is not None else sequences[i][sequences[i] != VOCAB]
        with mpmath.workdps(40):
            expected = outputs(network, sequence, None if queries is None else queries[i])
        assert row.tolist() == pytest.approx([float(x) for x in expected], rel=1e-10, abs=1e-12)


def test_one_head_by_hand() -> None:
    """The second token, 1, asks with ln 9/√4 = ln 3: weights ¼ and ¾ of 0 and 1, times 2, and the skip connection."""
    one, table = [[1.0]], {"E": [[0.0], [1.0]], "Q": [[np.log(9)]]}
    blocks = (
        StepSequence((TokenTable("E"),)),
        StepSequence((TrainedAttention(1, 4, W_Q="Q", W_K="K", W_V="V", W_O="V"),), skip=True),
    )
    weights = {**table, "K": one, "V": [[2.0**0.5]]}
    network = TrainedNetwork(blocks, {name: np.array(value) for name, value in weights.items()})
    assert evaluate.evaluate(network, (np.array([[0, 1]]), None)) == pytest.approx(np.array([[1 + 2 * 0.75]]))
    assert evaluate.evaluate(network, (np.array([[1, 0]]), None)) == pytest.approx(np.array([[0 + 2 * 0.5]]))


def test_counts_by_hand() -> None:
    """A tied table counts once: 5·4 of it, 6·4 positions; 2·4 for each of 4 norms; attention and units by sizes."""
    network, _ = drawn("gpt")
    heads, units = 6 * 4 + 6 * 4 + 2 * 4 + 4 * 2, 3 * 4 + 3 + 4 * 3
    assert network.account.dense == 20 + 24 + 4 * 8 + 2 * heads + (6 + 6 + 2 + 4) + 2 * units
    assert (network.depth, network.width, network.outputs) == (1 + 2 * 3 + 1, 6, 3)
    assert network.account.max_bits == 64
    assert drawn("gpt", dtype=np.float32)[0].account.max_bits == 32
    assert list(network.account.parts()) == ["embedding", "positions", "norm", "attention", "mlp"]
    assert (drawn("own")[0].depth, drawn("own")[0].width, drawn("own")[0].inputs) == (3, 6, "queries")


def test_fingerprints_tell_all_that_matters_apart() -> None:
    network, _ = drawn("gpt")
    blocks, name = network.blocks, "mlp.0.b_in"
    nudged = network.weights[name].copy()
    nudged[0] = np.nextafter(nudged[0], 9)
    others = [
        network.with_tensor(name, nudged),
        network.with_tensor(name, network.weights[name].astype(np.float32)),
        TrainedNetwork((*blocks[:-1], StepSequence((Norm(0.25), *blocks[-1].steps[1:]))), network.weights),
        drawn("gpt", seed=1)[0],
    ]
    assert len({one.fingerprint for one in (network, *others)}) == 5
    assert TrainedNetwork(blocks, dict(reversed(network.weights.items()))).fingerprint == network.fingerprint


def test_tensors_are_read_only_copies() -> None:
    ours = np.ones((2, 1))
    network = TrainedNetwork((StepSequence((TokenTable("E"),)),), {"E": ours})
    ours[:] = 7
    assert (network.weights["E"] == 1).all()
    with pytest.raises(ValueError, match="read-only"):
        network.weights["E"][0] = 2


E, W = TokenTable("E"), AffineMap("W")
REFUSED: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((E,), {"E": [[np.nan]]}, "E has entries that are not finite"),
    ((E,), {"E": [[np.inf]]}, "E has entries that are not finite"),
    ((E,), {"E": [[[1.0]]]}, r"E is float64 \[1, 1, 1\]; expected float32 or float64 with one or two axes"),
    ((E,), {"E": np.zeros((0, 3))}, r"E is float64 \[0, 3\]"),
    ((E,), {"E": [1.0]}, r"E is \[1\]; expected \[any, any\]"),
    ((E,), {"E": [[1.0]], "F": [[1.0]]}, "F belongs to no step"),
    ((E, W), {"E": [[1.0]]}, "'W' is no tensor of the network; there are E, …"),
    ((E, W), {"E": [[1.0]], "W": [[1.0, 2.0]]}, r"W is \[1, 2\]; expected \[any, 1\]"),
    ((E, AffineMap("W", rows=2)), {"E": [[1.0]], "W": [[1.0]]}, "rows is 2; W has 1"),
    ((E, AffineMap("W", "b")), {"E": [[1.0]], "W": [[1.0]], "b": [1.0, 2.0]}, r"b is \[2\]; expected \[1\]"),
    ((E, E), {"E": [[1.0]]}, "embedding stands behind another step"),
    ((Activation("tanh"),), {}, "the first step is activation; expected an embedding"),
    ((PositionTable(),), {}, "the first step is positions; expected an embedding"),
    ((E, Norm(1.0, "g")), {"E": [[1.0]], "g": [1.0, 1.0]}, r"g is \[2\]; expected \[1\]"),
    ((E, PositionTable("P")), {"E": [[1.0]], "P": [[1.0, 1.0]]}, r"P is \[1, 2\]; expected \[any, 1\]"),
    (
        (E, TrainedAttention(2, 1, "E", "E", "E", "E")),
        {"E": np.ones((3, 3))},
        "E has 3 rows and E 3; expected multiples of heads = 2",
    ),
    ((), {}, "a block has no steps"),
    ((TokenTable("E\n"),), {"E\n": [[1.0]]}, r"a tensor is called 'E\\n'; expected at most 256 letters that print"),
    ((TokenTable("E" * 257),), {"E" * 257: [[1.0]]}, "a tensor is called 'EEE.*expected at most 256 letters"),
]


@pytest.mark.parametrize(("steps", "weights", "message"), REFUSED)
def test_what_does_not_fit_is_refused(steps: tuple[Any, ...], weights: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        chain(*steps, **weights)


def test_more_that_is_refused() -> None:
    with pytest.raises(BadInput, match="a block has no steps; expected one or more blocks"):
        TrainedNetwork((), {})
    table = {"E": np.ones((2, 2)), "W": np.ones((3, 2))}
    with pytest.raises(BadInput, match="a block with skip takes 2 entries to 3; expected as many"):
        TrainedNetwork((StepSequence((E,)), StepSequence((W,), skip=True)), table)
    with pytest.raises(BadInput, match="a block with skip takes token ids to 2"):
        TrainedNetwork((StepSequence((E,), skip=True),), {"E": table["E"]})
    with pytest.raises(BadInput, match="W is int64"):
        TrainedNetwork((StepSequence((E, W)),), {**table, "W": np.ones((3, 2), np.int64)})
    square = {f"a.W_{part}": np.eye(2) for part in "QKVO"}
    with pytest.raises(BadInput, match="attention is there twice; the context is read once only"):
        TrainedNetwork((StepSequence((attention("a", 1, 1), attention("a", 1, 1))),), square)


@pytest.mark.parametrize(
    ("kind", "inputs", "message"),
    [
        ("gpt", (np.zeros((1, 2, 2)), np.zeros((1, 2))), "reads token ids; the task has contexts and queries"),
        ("own", (np.zeros((1, 2), np.int64), None), "reads contexts and queries; the task has token ids"),
        ("gpt", (np.full((1, 2), VOCAB), None), "token 5 occurs; the network knows 0 to 4"),
        ("gpt", (np.full((1, 2), -1), None), "token -1 occurs"),
        ("gpt", (np.zeros((1, 7), np.int64), None), "have 7 places; the network has positions for 6"),
        ("padded", (np.full((1, 2), 6), None), "token 6 occurs; the network knows 0 to 4"),
        ("padded", (np.array([[1, 5, 1]]), None), "token 5, which pads, stands before another or alone"),
        ("padded", (np.array([[5, 5]]), None), "token 5, which pads, stands before another or alone"),
        ("own", (np.zeros((1, 2, 3)), np.zeros((1, 3))), "reads vectors of dimension 2"),
        ("own", (np.zeros((2, 2, 2)), np.zeros((1, 2))), "a query for each context"),
    ],
)
def test_inputs_are_checked(kind: str, inputs: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        drawn(kind)[0].check_inputs(inputs)

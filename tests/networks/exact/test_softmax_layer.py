"""Softmax and causal attention as layers: what fits, what is counted, what is stored, and what cannot be evaluated."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from byheart.errors import BadInput
from byheart.networks import count, load, save
from byheart.networks.exact import Embedding, Flatten, Positions, SoftmaxAttention, integers, reference
from byheart.networks.exact.evaluate import evaluate, split, token_streams
from byheart.networks.exact.fits import require_fit
from byheart.networks.exact.floats import to_torch

from .drawn import entries, inputs_of, networks, real_networks, shifts, tries
from .oracle import affine, answers, feed_forward, hardmax, on_tokens, on_vectors, softmax, uniform

ONE = [[1]]
SCALAR = softmax(ONE, ONE, ONE, ONE)


def example():
    """Every option that there is, none of them as it is by default."""
    return on_tokens(
        Embedding(integers([[1, 2], [3, -4]])),
        hardmax([[1, 0]], [[0, 1]], [[2**70, 0]], [[1], [-1]], causal=True),
        softmax([[1, 2]], [[3, 4]], [[5, 6]], [[7], [8]], score_shift=9, shift=10, name="soft"),
        feed_forward(affine([[5, 6]], [7], shift=1)),
        length=2,
    )


# Layers


@pytest.mark.parametrize("key", ["score_shift", "shift"])
def test_shifts_are_not_negative(key):
    with pytest.raises(BadInput, match=f"^mix: {key} is -1; expected an integer, 0 or more and at most 4,194,304$"):
        softmax(ONE, ONE, ONE, ONE, name="mix", **{key: -1})
    assert getattr(softmax(ONE, ONE, ONE, ONE, **{key: 10**6}), key) == 10**6


ROW, COLUMN = [[1, 1]], [[1], [1]]


@pytest.mark.parametrize(
    "matrices",
    [
        (ROW, ROW, ROW, ROW),
        (ROW, ROW * 2, ROW, COLUMN),
        (COLUMN, COLUMN, ROW, COLUMN),
        (ROW, ROW, ROW * 2, COLUMN),
        (ROW, ROW, ONE, ONE),
    ],
)
def test_shapes_that_do_not_follow_each_other(matrices):
    with pytest.raises(BadInput, match="attention: the shapes of its matrices do not follow each other"):
        on_vectors(softmax(*matrices), dim=2)


def test_shapes_that_do():
    """Two units in the head, three values: d_head and d_value need not agree."""
    layer = softmax(ROW * 2, ROW * 2, ROW * 3, [[1, 1, 1]] * 2)
    assert on_vectors(layer, dim=2).layers == (layer,)
    with pytest.raises(BadInput, match="attention: reads 2 values; the stream has 3"):
        on_vectors(layer, dim=3)
    with pytest.raises(BadInput, match="expected matrices"):
        on_vectors(replace(layer, W_Q=integers([1, 1])), dim=2)


def test_no_attention_behind_flatten():
    with pytest.raises(BadInput, match="only one position left"):
        on_tokens(Flatten(), SCALAR)


def test_which_networks_are_rational():
    assert on_tokens().rational
    assert on_tokens(hardmax(ONE, ONE, ONE, ONE, causal=True), uniform(ONE, ONE), length=2).rational
    assert not on_tokens(SCALAR).rational
    assert not on_tokens(uniform(ONE, ONE), SCALAR, uniform(ONE, ONE), length=2).rational


def test_attention_is_not_causal_unless_it_says_so():
    assert not hardmax(ONE, ONE, ONE, ONE).causal
    assert (SCALAR.score_shift, SCALAR.shift, SCALAR.name) == (0, 0, "attention")


@pytest.mark.parametrize("name", ["soft.W_Q", "soft.W_K", "soft.W_V", "soft.W_O", "attention.W_O"])
def test_exchanging_one_tensor_leaves_the_rest(name):
    """The options too: score_shift, shift and causal stay."""
    before = dict(example().tensors())
    changed = example().with_tensor(name, integers(before[name] * 100))
    after = dict(changed.tensors())
    assert {key for key in before if not np.array_equal(before[key], after[key])} == {name}
    assert changed.layers[1].causal is True
    assert (changed.layers[2].score_shift, changed.layers[2].shift) == (9, 10)


def test_exchanging_a_tensor_for_one_that_does_not_fit():
    with pytest.raises(BadInput, match="soft: the shapes"):
        example().with_tensor("soft.W_Q", integers([[1], [2]]))


def test_tensors_come_by_name_in_order():
    names = [name for name, _ in on_tokens(replace(SCALAR, name="soft")).tensors()]
    assert names == ["soft.W_Q", "soft.W_K", "soft.W_V", "soft.W_O"]


def test_the_account_by_hand():
    """W_Q, W_K 2 × 3 each, W_V 1 × 3, W_O 3 × 1: 18 entries. Depth 1 and one more for the map to one output."""
    row = [[2, 0, -9]]
    layer = softmax(row * 2, row * 2, row, [[1], [1], [1]], score_shift=5, shift=50)
    account = count(on_vectors(layer, feed_forward(affine([[1, 1, 1]], [0])), dim=3))
    assert [item.dense for item in account.items] == [6, 6, 3, 3, 3, 1]
    assert [item.nonzero for item in account.items] == [4, 4, 2, 3, 3, 0]
    assert [item.free for item in account.items] == [2, 2, 2, 0, 0, 0]
    assert (account.dense, account.depth, account.width, account.max_bits) == (22, 2, 3, 5)
    same = replace(layer, score_shift=0, shift=0)
    assert count(on_vectors(same, dim=3)) == count(on_vectors(layer, dim=3))
    assert count(on_vectors(layer, dim=3)) == count(on_vectors(layer, dim=3))


def test_causal_attention_has_the_weights_of_the_other():
    both = (on_tokens(hardmax(ONE, ONE, ONE, ONE, causal=causal)) for causal in (False, True))
    assert len({count(network) for network in both}) == 1


# Evaluation


@pytest.mark.parametrize("evaluator", [evaluate, reference.evaluate], ids=["limbs", "flint"])
def test_exact_evaluation_is_refused(evaluator):
    """Whatever the weights: with W_V = 0, too, where the outputs would be rational."""
    for layer in (SCALAR, softmax(ONE, ONE, [[0]], ONE)):
        network = on_tokens(uniform(ONE, ONE), layer, length=2)
        with pytest.raises(BadInput, match=r"softmax attention gives real numbers.*byheart\.networks\.exact\.enclose"):
            evaluator(network, np.array([[0, 1]]))


def test_floats_are_refused():
    network = on_tokens(SCALAR, length=2)
    for refuse in (lambda: require_fit(network, np.array([[0, 1]]), 53), lambda: to_torch(network, np.array([[0, 1]]))):
        with pytest.raises(BadInput, match="attention: softmax attention has no float twin yet"):
            refuse()
    causal = on_tokens(hardmax(ONE, ONE, ONE, ONE, causal=True), length=2)
    with pytest.raises(BadInput, match="attention: hardmax attention has no float twin yet"):
        to_torch(causal, np.array([[0, 1]]))


def test_where_networks_are_split():
    """In front of the first layer that mixes positions, Flatten included."""
    front = (Positions(integers([[1], [2]])), feed_forward(affine([[1]], [0])))
    for mixing in (SCALAR, uniform(ONE, ONE), hardmax(ONE, ONE, ONE, ONE, causal=True)):
        behind = (mixing, feed_forward(affine([[1]], [0])))
        assert split(on_tokens(*front, *behind, length=2)) == (front, behind)
    assert split(on_tokens(*front, length=2)) == (front, ())
    assert split(on_tokens()) == ((), ())


@tries(40)
@given(st.data())
def test_streams_of_tokens_are_those_of_the_layers_in_front(data):
    """With every layer behind the first attention taken away, the streams' first coordinates are the answers."""
    network = data.draw(real_networks(of=entries, shifts=shifts))
    inputs = data.draw(inputs_of(network))
    numerators, denominator, index = token_streams(network, inputs)
    assert index.shape == inputs.shape[:2]
    cut = replace(network, layers=split(network)[0], outputs="every")
    found = [[int(numerators[place, 0]) for place in row] for row in index]
    assert found == [[value * denominator for value in row] for row in answers(cut, inputs)]
    assert numerators.shape[0] == index.max() + 1


def test_tokens_at_different_positions_are_different_streams():
    placed = on_tokens(Positions(integers([[10], [20]])), SCALAR, length=2)
    numerators, denominator, index = token_streams(placed, np.array([[1, 1], [1, 2]]))
    assert [[int(numerators[i, 0]) for i in row] for row in index] == [[11, 21], [11, 22]]
    assert denominator == 1
    assert len(token_streams(on_tokens(SCALAR, length=2), np.array([[1, 1], [1, 2]]))[0]) == 2


def test_streams_of_wrong_inputs_are_refused():
    with pytest.raises(BadInput, match="sequences of 2 tokens"):
        token_streams(on_tokens(SCALAR, length=2), np.array([[1, 2, 3]]))


# Storage


def written_out(network):
    """All that the layers hold beside the tensors, and the tensors."""
    options = [
        {key: value for key, value in vars(layer).items() if isinstance(value, bool | int | str)}
        for layer in network.layers
    ]
    return options, [(name, tensor.tolist()) for name, tensor in network.tensors()]


@tries(60)
@given(st.one_of(real_networks(of=entries, scores=entries, shifts=shifts), networks()))
def test_a_network_comes_back_as_it_was(network):
    with tempfile.TemporaryDirectory() as folder:
        save(network, Path(folder) / "network")
        loaded = load(Path(folder) / "network")
        again = load(Path(folder) / "network")
    assert [type(layer) for layer in loaded.layers] == [type(layer) for layer in network.layers]
    assert written_out(loaded) == written_out(network) == written_out(again)
    assert (loaded.inputs, loaded.outputs, loaded.length) == (network.inputs, network.outputs, network.length)
    assert loaded.fingerprint == network.fingerprint == again.fingerprint


OTHERS = {
    "causal": lambda n: replace(n, layers=(n.layers[0], replace(n.layers[1], causal=False), *n.layers[2:])),
    "score_shift": lambda n: replace(n, layers=(*n.layers[:2], replace(n.layers[2], score_shift=8), n.layers[3])),
    "shift": lambda n: replace(n, layers=(*n.layers[:2], replace(n.layers[2], shift=0), n.layers[3])),
    "exchanged": lambda n: replace(
        n, layers=(*n.layers[:2], replace(n.layers[2], shift=9, score_shift=10), n.layers[3])
    ),
    "W_K": lambda n: n.with_tensor("soft.W_K", integers([[3, 5]])),
    "kind": lambda n: replace(
        n, layers=(*n.layers[:2], hardmax([[1, 2]], [[3, 4]], [[5, 6]], [[7], [8]]), n.layers[3])
    ),
}


@pytest.mark.parametrize("changed", OTHERS.values(), ids=OTHERS)
def test_options_are_part_of_the_fingerprint(changed, tmp_path):
    other = changed(example())
    assert other.fingerprint != example().fingerprint
    save(other, tmp_path / "other")
    assert load(tmp_path / "other").fingerprint == other.fingerprint


def old_network():
    return on_tokens(
        Embedding(integers([[1, 2], [3, -4]])),
        uniform([[1, 0]], [[1], [0]]),
        hardmax([[1, 0]], [[0, 1]], [[2**70, 0]], [[1], [-1]]),
        feed_forward(affine([[5, 6]], [7], shift=1)),
        length=2,
    )


def test_fingerprints_of_old_networks_are_what_they_were(tmp_path):
    """Written down before attention could be causal (commit 2ef8b8a)."""
    known = "e7fe97da9c539c25a72b03146f6b859cf3b76e758ef11dcf05f9c9666ac21a8c"
    assert old_network().fingerprint == known
    save(old_network(), tmp_path / "network")
    assert load(tmp_path / "network").fingerprint == known


def test_options_are_written_where_there_are_some(tmp_path):
    """An old folder has none, and a new one of an old network is the same."""
    save(old_network(), tmp_path / "old")
    layers = json.loads((tmp_path / "old" / "config.json").read_text())["network"]["layers"]
    assert [set(layer) for layer in layers[:3]] == [{"kind", "name", "shapes"}] * 3
    save(example(), tmp_path / "new")
    layers = json.loads((tmp_path / "new" / "config.json").read_text())["network"]["layers"]
    assert layers[1]["kind"] == "CausalHardmaxAttention", "so that an older Byheart refuses it"
    assert (layers[2]["score_shift"], layers[2]["shift"]) == (9, 10)


@pytest.fixture
def folder(tmp_path):
    save(example(), tmp_path / "network")
    return tmp_path / "network"


def edit_layer(folder, index, drop=(), **fields):
    config = json.loads((folder / "config.json").read_text())
    layer = config["network"]["layers"][index]
    layer.update(fields)
    for key in drop:
        del layer[key]
    (folder / "config.json").write_text(json.dumps(config))


def test_a_folder_without_options_loads(folder):
    edit_layer(folder, 1, kind="HardmaxAttention")
    edit_layer(folder, 2, drop=["shift"])
    loaded = load(folder)
    assert loaded.layers[1].causal is False
    assert (loaded.layers[2].score_shift, loaded.layers[2].shift) == (9, 0)
    edit_layer(folder, 2, drop=["score_shift"])
    assert isinstance(load(folder).layers[2], SoftmaxAttention)
    assert load(folder).layers[2].score_shift == 0


@pytest.mark.parametrize("key", ["shift", "score_shift"])
@pytest.mark.parametrize("value", [-1, "two", None, [3], {}, float("inf"), float("nan"), -(10**30)])
def test_shifts_that_are_none(folder, key, value):
    edit_layer(folder, 2, **{key: value})
    with pytest.raises(BadInput) as caught:
        load(folder)
    assert str(caught.value).startswith(str(folder))


@pytest.mark.parametrize(
    ("index", "fields"),
    [
        (1, {"causal": "false"}),
        (1, {"causal": "no"}),
        (1, {"causal": [0]}),
        (1, {"causal": None}),
        (2, {"shift": 2.7}),
        (2, {"shift": "3"}),
        (2, {"score_shift": True}),
    ],
)
def test_options_of_other_types_are_refused(folder, index, fields):
    """ "false" is not true, and 2.7 is not 2: the network would be another one than the file says."""
    edit_layer(folder, index, **fields)
    with pytest.raises(BadInput):
        load(folder)


@pytest.mark.parametrize(
    ("index", "fields"), [(1, {"window": 4}), (1, {"shift": 3}), (2, {"causal": True}), (2, {"scale": 2})]
)
def test_options_that_there_are_not_are_refused(folder, index, fields):
    """A causal softmax would be evaluated as if it were none."""
    edit_layer(folder, index, **fields)
    with pytest.raises(BadInput):
        load(folder)


DAMAGE = {
    "a tensor less": {"shapes": {"W_Q": [1, 2], "W_K": [1, 2], "W_V": [1, 2]}},
    "a tensor more": {"shapes": {"W_Q": [1, 2], "W_K": [1, 2], "W_V": [1, 2], "W_O": [2, 1], "W_X": [0, 1]}},
    "a tensor called shift": {"shapes": {"W_Q": [1, 2], "W_K": [1, 2], "W_V": [1, 2], "W_O": [2, 1], "shift": [0]}},
    "transposed": {"shapes": {"W_Q": [2, 1], "W_K": [2, 1], "W_V": [1, 2], "W_O": [2, 1]}},
    "too large": {"shapes": {"W_Q": [1, 2], "W_K": [1, 2], "W_V": [1, 2], "W_O": [3, 1]}},
    "negative": {"shapes": {"W_Q": [1, 2], "W_K": [1, 2], "W_V": [1, -2], "W_O": [2, 1]}},
    "another kind": {"kind": "SoftMaxAttention"},
    "uniform attention": {"kind": "UniformAttention"},
    "a list": {"shapes": [[1, 2]]},
}


@pytest.mark.parametrize("fields", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_found(folder, fields):
    edit_layer(folder, 2, **fields)
    with pytest.raises(BadInput) as caught:
        load(folder)
    assert str(caught.value).startswith(str(folder))


def test_nothing_but_two_arrays_is_stored(folder):
    assert set(load_file(folder / "model.safetensors")) == {"lengths", "magnitudes"}

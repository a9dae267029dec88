"""Networks on disk: all of them come back whole, and nothing that is broken comes back at all."""

import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from byheart.errors import BadInput
from byheart.networks import load, save
from byheart.networks.exact import Embedding, ExactNetwork, Flatten, Residual, exact_network, format, integers

from .drawn import entries, matrices, networks, tries
from .oracle import affine, block, feed_forward, hardmax, on_tokens, on_vectors, uniform


def written_out(network):
    """Everything that a network is, as plain Python."""
    layers = []
    for layer in network.layers:
        parts = [layer, *getattr(layer, "layers", ()), *getattr(layer, "blocks", ())]
        for part in parts:
            fields = {
                k: v.tolist() if isinstance(v, np.ndarray) else v
                for k, v in vars(part).items()
                if k not in ("layers", "blocks")
            }
            layers.append((type(part).__name__, fields))
    return layers, network.inputs, network.outputs, network.length, network.dim


@tries(60)
@given(networks())
def test_a_network_comes_back_as_it_was(network):
    with tempfile.TemporaryDirectory() as folder:
        save(network, Path(folder) / "network")
        loaded = load(Path(folder) / "network")
    assert written_out(loaded) == written_out(network)
    assert loaded.fingerprint == network.fingerprint
    assert {type(value) for _, tensor in loaded.tensors() for value in tensor.ravel()} <= {int}


@tries(100)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4), st.data())
def test_packed_integers_come_back(shapes, data):
    tensors = [data.draw(matrices(*shape)) for shape in shapes]
    unpacked = format.unpack(format.pack(tensors), shapes)
    assert [tensor.tolist() for tensor in unpacked] == [tensor.tolist() for tensor in tensors]
    assert [tensor.shape for tensor in unpacked] == shapes


def test_packing_by_hand():
    """65536 = 0x010000 takes three bytes, lowest first; -255 one byte and a negative length; 0 nothing at all."""
    packed = format.pack([integers([[65536], [-255]]), integers([0, 1])])
    assert packed["lengths"].tolist() == [3, -1, 0, 1]
    assert packed["magnitudes"].tolist() == [0, 0, 1, 255, 1]
    assert (packed["lengths"].dtype, packed["magnitudes"].dtype) == (np.int32, np.uint8)


def example():
    return on_tokens(
        Embedding(integers([[1, 2], [3, -4]])),
        uniform([[1, 0]], [[1], [0]]),
        hardmax([[1, 0]], [[1, 0]], [[2**70, 0]], [[1], [0]]),
        feed_forward(affine([[5, 6]], [7], shift=1), name="first"),
        feed_forward(affine([[8]], [9], relu=False), residual=True, name="second"),
        Residual((block([[10]], [11], [[12]]),)),
        length=2,
    )


def change(network, index, **fields):
    layers = list(network.layers)
    layers[index] = replace(layers[index], **fields)
    return replace(network, layers=tuple(layers))


def other_affine(network, **fields):
    return change(network, 3, layers=(replace(network.layers[3].layers[0], **fields),))


CHANGES = {
    "an entry": lambda n: other_affine(n, W=integers([[5, 7]])),
    "a sign": lambda n: other_affine(n, W=integers([[5, -6]])),
    "a bias": lambda n: other_affine(n, b=integers([0])),
    "a shift": lambda n: other_affine(n, shift=2),
    "a ReLU": lambda n: other_affine(n, relu=False),
    "a role": lambda n: other_affine(n, role="other"),
    "a name": lambda n: change(n, 3, name="other"),
    "a residual": lambda n: change(n, 4, residual=False),
    "a block": lambda n: change(n, 5, blocks=(block([[10]], [11], [[13]]),)),
    "a block's bias": lambda n: change(n, 5, blocks=(block([[10]], [-11], [[12]]),)),
    "a block's role": lambda n: change(n, 5, blocks=(block([[10]], [11], [[12]], role="other"),)),
    "a table": lambda n: change(n, 0, W_E=integers([[1, 2], [3, 4]])),
    "a transposed table": lambda n: change(n, 0, W_E=integers([[1, 3], [2, -4]])),
    "W_Q": lambda n: change(n, 2, W_Q=integers([[0, 1]])),
    "W_O": lambda n: change(n, 1, W_O=integers([[0], [1]])),
    "a huge entry": lambda n: change(n, 2, W_V=integers([[2**70 + 1, 0]])),
    "a layer less": lambda n: replace(n, layers=n.layers[:-1]),
    "two layers exchanged": lambda n: replace(n, layers=(n.layers[0], n.layers[2], n.layers[1], *n.layers[3:])),
    "the outputs": lambda n: replace(n, outputs="every"),
}


@pytest.mark.parametrize("changed", CHANGES.values(), ids=CHANGES)
def test_any_change_changes_the_fingerprint(changed, tmp_path):
    fingerprint = example().fingerprint
    assert fingerprint == example().fingerprint
    other = changed(example())
    assert other.fingerprint != fingerprint
    save(other, tmp_path / "other")
    assert load(tmp_path / "other").fingerprint == other.fingerprint


@tries(40)
@given(matrices(2, 3), st.integers(0, 5), entries)
def test_any_other_integer_changes_the_fingerprint(matrix, place, value):
    changed = matrix.copy()
    changed.flat[place] = value
    end = feed_forward(affine([[1, 1, 1]], [0]))
    first, second = (on_tokens(Embedding(integers(table)), end) for table in (matrix, changed))
    same = matrix.ravel()[place] == value
    assert (first.fingerprint == second.fingerprint) is bool(same)


def test_a_zero_between_numbers_keeps_its_place():
    """(1, 0, 2) and (1, 2, 0) have the same bytes; only the lengths tell them apart."""
    first, second = (on_tokens(Embedding(integers([[n] for n in column]))) for column in ([1, 0, 2], [1, 2, 0]))
    assert first.fingerprint != second.fingerprint


def test_what_was_kept_beside_the_network(tmp_path):
    save(example(), tmp_path / "network", about={"construction": "by hand", "seed": 3})
    assert load(tmp_path / "network").about == {"construction": "by hand", "seed": 3}
    save(example(), tmp_path / "plain")
    assert load(tmp_path / "plain").about == {}
    assert sorted(os.listdir(tmp_path / "plain")) == ["config.json", "model.safetensors"]


# Damage --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    save(example(), tmp_path / "network")
    return tmp_path / "network"


def edit(folder, **network):
    config = json.loads((folder / "config.json").read_text())
    config["network"].update(network)
    (folder / "config.json").write_text(json.dumps(config))


def edit_layer(folder, index, **fields):
    layers = json.loads((folder / "config.json").read_text())["network"]["layers"]
    layers[index].update(fields)
    edit(folder, layers=layers)


def edit_arrays(folder, **changes):
    arrays = {**load_file(folder / "model.safetensors"), **changes}
    save_file({name: array for name, array in arrays.items() if array is not None}, folder / "model.safetensors")


def refused(folder, message, file="config.json"):
    with pytest.raises(BadInput) as caught:
        load(folder)
    text = str(caught.value)
    assert text.startswith(str(folder))
    assert file in text
    assert message in text


def test_a_missing_folder_or_file(folder):
    refused(folder.parent / "nothing", "config.json: no such file; expected a folder with a network")
    (folder / "model.safetensors").unlink()
    refused(folder, "the folder is incomplete", "model.safetensors")
    (folder / "config.json").unlink()
    refused(folder, "no such file; expected a folder with a network")


@pytest.mark.parametrize("left", [0, 7, 8, 60, -1])
def test_truncated_weights(folder, left):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:left])
    refused(folder, "cannot be read", "model.safetensors")


@pytest.mark.parametrize("text", ["", "{", "\xff\xfe", '{"format": '])
def test_a_config_that_is_not_json(folder, text):
    (folder / "config.json").write_text(text, encoding="latin-1")
    refused(folder, "cannot be read")


@pytest.mark.parametrize("text", ["[]", "5", "null"])
def test_a_config_that_is_no_object(folder, text):
    (folder / "config.json").write_text(text)
    refused(folder, "expected a JSON object")


@pytest.mark.parametrize("text", ["{}", '{"format": "byheart-exact-2"}', '{"model_type": "gpt_neox"}'])
def test_a_config_of_another_format(folder, text):
    (folder / "config.json").write_text(text)
    refused(folder, "expected a network: byheart-exact-1")


def test_shapes_that_do_not_match_the_integers(folder):
    """The example has 4 + 4 + 8 + 3 + 2 + 3 = 24 integers; a table of 2 × 3 instead of 2 × 2 takes two more."""
    edit_layer(folder, 0, shapes={"W_E": [2, 3]})
    refused(folder, "model.safetensors holds 24 integers; config.json describes 26", "model.safetensors")
    edit_layer(folder, 0, shapes={"W_E": [2, -2]})
    refused(folder, "a matrix has shape [2, -2]; expected [rows, columns], from 1 on")


def test_integers_and_lengths_that_do_not_add_up(folder):
    arrays = load_file(folder / "model.safetensors")
    edit_arrays(folder, magnitudes=np.append(arrays["magnitudes"], np.uint8(1)))
    total = int(np.abs(arrays["lengths"]).sum())
    refused(folder, f"holds {total + 1} bytes of integers; its lengths add up to {total}", "model.safetensors")
    edit_arrays(folder, lengths=arrays["lengths"][:-1], magnitudes=arrays["magnitudes"])
    refused(folder, "model.safetensors holds 23 integers; config.json describes 24", "model.safetensors")


@pytest.mark.parametrize("name", ["lengths", "magnitudes"])
def test_an_array_that_is_missing(folder, name):
    edit_arrays(folder, **{name: None})
    refused(folder, name, "model.safetensors")


def test_lengths_of_another_type(folder):
    edit_arrays(folder, lengths=load_file(folder / "model.safetensors")["lengths"].astype(np.int64))
    refused(folder, "'lengths' is 'I64'; expected I32 or U8", "model.safetensors")


def test_magnitudes_of_another_type(folder):
    """One float32 has as many bytes as one integer of four bytes, beside zeros."""
    edit_arrays(folder, lengths=np.array([4] + [0] * 23, np.int32), magnitudes=np.array([1.5], np.float32))
    refused(folder, "'magnitudes' is 'F32'; expected I32 or U8", "model.safetensors")


NO_DESCRIPTIONS = {
    "no layers": {"layers": None},
    "a kind that there is not": {"layers": [{"kind": "Softmax", "name": "x", "shapes": {}}]},
    "a layer without kind": {"layers": [{"name": "x", "shapes": {}}]},
    "a tensor too few": {"layers": [{"kind": "UniformAttention", "name": "x", "shapes": {"W_V": [0, 1]}}]},
    "a tensor of another name": {"layers": [{"kind": "Embedding", "name": "x", "shapes": {"W_V": [0, 1]}}]},
    "a size that is a word": {"layers": [{"kind": "Embedding", "name": "x", "shapes": {"W_E": ["two", 1]}}]},
    "no length": {"layers": [], "length": None},
    "an empty chain": {"layers": [{"kind": "FeedForward", "name": "x", "residual": False, "layers": []}]},
    "a layer that is a number": {"layers": [5]},
    "a sum with a matrix": {"layers": [{"kind": "TokenSum", "name": "x", "shapes": {"W_V": [1, 1]}}]},
    "a sum with an option": {"layers": [{"kind": "TokenSum", "name": "x", "shapes": {}, "times": 3}]},
    "a sum of one position": {
        "layers": [{"kind": kind, "name": "x", "shapes": {}} for kind in ("Flatten", "TokenSum")],
    },
    "shapes that are a list": {"layers": [{"kind": "Flatten", "name": "x", "shapes": [1]}]},
    "a table without columns": {"layers": [{"kind": "Embedding", "name": "x", "shapes": {"W_E": [0]}}]},
    "an infinite length": {"layers": [], "length": float("inf")},
    "inputs that there are not": {"layers": [], "inputs": "pictures"},
    "outputs that there are not": {"layers": [], "outputs": "first"},
    "no tokens": {"layers": [], "length": 0},
    "no dimension": {"layers": [], "inputs": "vectors", "dim": 0},
}


@pytest.mark.parametrize("fields", [{"length": "2"}, {"length": True}, {"length": 2.0}, {"dim": None}], ids=str)
def test_sizes_of_other_types(folder, fields):
    edit(folder, **fields)
    refused(folder, "expected whole numbers from 1 on", "")


@pytest.mark.parametrize(
    "fields", [{"residual": "false"}, {"residual": 1}, {"name": "\x1b[2J"}, {"shapes": {}}], ids=str
)
def test_layers_of_other_types(folder, fields):
    layers = json.loads((folder / "config.json").read_text())["network"]["layers"]
    index = next(i for i, layer in enumerate(layers) if layer["kind"] == "FeedForward")
    edit_layer(folder, index, **fields)
    refused(folder, f"config.json: {'first has shapes' if 'shapes' in fields else next(iter(fields))}")


@pytest.mark.parametrize("fields", [{"relu": "no"}, {"shift": True}, {"shift": "1"}, {"role": None}, {"shape": [1, 0]}])
def test_affine_maps_of_other_types(folder, fields):
    layers = json.loads((folder / "config.json").read_text())["network"]["layers"]
    chain = next(layer for layer in layers if layer["kind"] == "FeedForward")
    chain["layers"][0] |= fields
    edit(folder, layers=layers)
    refused(folder, "config.json: ")


@pytest.mark.parametrize("fields", NO_DESCRIPTIONS.values(), ids=NO_DESCRIPTIONS)
def test_descriptions_that_describe_no_network(folder, fields):
    edit_arrays(folder, lengths=np.zeros(0, np.int32), magnitudes=np.zeros(0, np.uint8))
    edit(folder, **fields)
    with pytest.raises(BadInput) as caught:
        load(folder)
    assert str(caught.value).startswith(str(folder))


def test_bytes_without_integers(folder):
    edit(folder, layers=[])
    edit_arrays(folder, lengths=np.zeros(0, np.int32))
    refused(folder, "bytes of integers", "model.safetensors")


def test_shapes_that_fit_the_integers_but_not_each_other(folder):
    """W_V [1, 2] and W_O [2, 1] exchanged have as many entries, but read and write one coordinate instead of two."""
    edit_layer(folder, 1, shapes={"W_V": [2, 1], "W_O": [1, 2]})
    refused(folder, "", "")


def test_a_chain_that_does_not_follow(folder):
    layers = [
        {"role": "u", "shape": [2, 2], "shift": 0, "relu": True},
        {"role": "v", "shape": [1, 3], "shift": 0, "relu": True},
    ]
    edit(folder, layers=[{"kind": "FeedForward", "name": "f", "residual": False, "layers": layers}])
    edit_arrays(folder, lengths=np.zeros(10, np.int32), magnitudes=np.zeros(0, np.uint8))
    refused(folder, "f: v reads 3 values; u gives 2", "")


# Saving --------------------------------------------------------------------------------------------------------------


def state(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_saving_again_replaces_the_network(folder):
    other = on_vectors(Flatten(), feed_forward(affine([[1, 1]], [0])), length=2)
    save(other, folder)
    assert load(folder).fingerprint == other.fingerprint
    assert sorted(os.listdir(folder)) == ["config.json", "model.safetensors"]
    assert os.listdir(folder.parent) == ["network"]


def test_folders_on_the_way_are_made_and_an_empty_one_is_used(tmp_path):
    save(example(), tmp_path / "a" / "b")
    (tmp_path / "empty").mkdir()
    save(example(), tmp_path / "empty")
    assert load(tmp_path / "empty").fingerprint == load(tmp_path / "a" / "b").fingerprint


def test_what_is_no_network_is_not_overwritten(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    (tmp_path / "file").write_bytes(b"text")
    before = state(tmp_path)
    for name in ("photos", "file"):
        with pytest.raises(BadInput, match=f"{name}: exists and is no network that Byheart wrote"):
            save(example(), tmp_path / name)
    assert state(tmp_path) == before


@pytest.mark.parametrize("config", ['{"model_type": "gpt2"}', "not json"])
def test_the_config_of_another_program_is_not_overwritten(tmp_path, config):
    (tmp_path / "gpt2").mkdir()
    (tmp_path / "gpt2" / "config.json").write_text(config)
    (tmp_path / "gpt2" / "weights.bin").write_bytes(b"precious")
    before = state(tmp_path)
    with pytest.raises(BadInput, match="is no network that Byheart wrote"):
        save(example(), tmp_path / "gpt2")
    assert state(tmp_path) == before


def fail(*_, **__):
    raise OSError("the disk is full")


def small():
    return on_tokens(feed_forward(affine([[1]], [0])))


def test_a_failed_save_leaves_the_old_network_and_nothing_else(folder, monkeypatch):
    before = state(folder.parent)
    monkeypatch.setattr(exact_network, "save_file", fail)
    for place in (folder, folder.parent / "new"):
        with pytest.raises(BadInput, match="cannot be written: the disk is full"):
            save(small(), place)
    assert os.listdir(folder.parent) == ["network"]
    assert state(folder.parent) == before


def test_settings_that_are_not_json_leave_the_old_network_and_nothing_else(folder):
    before = state(folder.parent)
    with pytest.raises(TypeError):
        save(small(), folder, about={"seed": object()})
    assert os.listdir(folder.parent) == ["network"]
    assert state(folder.parent) == before


def test_networks_are_readable_by_others(folder):
    assert folder.stat().st_mode & 0o777 == 0o755


def test_a_network_of_zeros_has_no_bytes(tmp_path):
    zeros = ExactNetwork((feed_forward(affine([[0, 0]], [0])),), inputs="vectors", outputs="every", length=1, dim=2)
    save(zeros, tmp_path / "zeros")
    assert written_out(load(tmp_path / "zeros")) == written_out(zeros)

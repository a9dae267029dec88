"""Weights in several files, and indexes that lie about them."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from byheart.errors import BadInput
from byheart.networks.folders import read_weights
from byheart.networks.weight_files import INDEX, weight_files, write_weights

WEIGHTS = {name: np.full(3, number, np.float32) for number, name in enumerate("abcd")}
FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.fixture
def folder(tmp_path):
    write_weights(tmp_path, WEIGHTS, save_file, largest=24)
    return tmp_path


def index_of(folder):
    return json.loads((folder / INDEX).read_text())


def test_two_tensors_a_file(folder):
    """By hand: four tensors of 12 bytes each, and room for 24."""
    assert [path.name for path in weight_files(folder)] == [INDEX, FIRST, SECOND]
    assert index_of(folder) == {
        "metadata": {"total_size": 48},
        "weight_map": {"a": FIRST, "b": FIRST, "c": SECOND, "d": SECOND},
    }
    found = read_weights(folder, ("F32",))
    assert {name: tensor.tolist() for name, tensor in found.items()} == {
        name: tensor.tolist() for name, tensor in WEIGHTS.items()
    }


def test_one_file_where_there_is_room(tmp_path):
    write_weights(tmp_path, WEIGHTS, save_file, largest=48)
    assert [path.name for path in weight_files(tmp_path)] == ["model.safetensors"]


def test_one_tensor_that_is_too_large(tmp_path):
    write_weights(tmp_path, WEIGHTS, save_file, largest=1)
    assert len(weight_files(tmp_path)) == 1 + len(WEIGHTS)
    assert set(read_weights(tmp_path, ("F32",))) == set(WEIGHTS)


LIES = {
    "no map": ({}, "no weight_map"),
    "an empty map": ({"weight_map": {}}, "no weight_map"),
    "a list": ({"weight_map": ["a"]}, "no weight_map"),
    "out of the folder": ({"weight_map": {"a": "../model-00001-of-00001.safetensors"}}, "names"),
    "an absolute name": ({"weight_map": {"a": "/etc/passwd"}}, "names"),
    "another name": ({"weight_map": {"a": "weights.safetensors"}}, "names"),
    "a number": ({"weight_map": {"a": 1}}, "names"),
    "a list of names": ({"weight_map": {"a": [FIRST], "b": SECOND}}, "names"),
    "half of it": ({"weight_map": {"a": FIRST, "b": FIRST}}, "names"),
    "a part that is not there": (
        {"weight_map": {"a": "model-00001-of-00001.safetensors"}},
        "1.safetensors is missing",
    ),
    "a tensor too many": ({"weight_map": {"a": FIRST, "b": FIRST, "c": SECOND, "d": SECOND, "e": SECOND}}, "lacks"),
    "a tensor too few": ({"weight_map": {"a": FIRST, "b": FIRST, "c": SECOND}}, "has or lacks"),
    "exchanged": ({"weight_map": {"a": SECOND, "b": FIRST, "c": FIRST, "d": SECOND}}, "has or lacks"),
}


@pytest.mark.parametrize("name", LIES)
def test_an_index_that_lies(folder, name):
    index, complaint = LIES[name]
    (folder / INDEX).write_text(json.dumps(index))
    with pytest.raises(BadInput, match=f"cannot be read .*{complaint}"):
        read_weights(folder, ("F32",))


def test_a_tensor_that_stands_there_twice(folder):
    save_file({**load_file(folder / SECOND), "a": WEIGHTS["a"]}, folder / SECOND)
    with pytest.raises(BadInput, match=r"model-00002-of-00002.safetensors has or lacks \['a'\]"):
        read_weights(folder, ("F32",))


def test_one_file_and_an_index(folder):
    save_file(WEIGHTS, folder / "model.safetensors")
    with pytest.raises(
        BadInput, match=r"there is model\.safetensors and model\.safetensors\.index\.json; expected one"
    ):
        read_weights(folder, ("F32",))

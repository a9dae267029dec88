"""Float Transformers on disk: they come back whole, and nothing that is broken comes back at all."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from byheart.errors import BadInput
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, integers
from byheart.networks.exact import store as exact
from byheart.networks.folders import kind_of
from byheart.networks.transformer import store

from .small import drawn, hand_built

ABOUT = {"end": 2, "texts": ["né.txt"], "prompts": [1]}


@pytest.fixture
def folder(tmp_path):
    store.save(tmp_path / "network", *hand_built(), ABOUT)
    return tmp_path / "network"


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
def test_a_network_comes_back_as_it_was(tmp_path, precision):
    spec, tensors = drawn(np.random.default_rng(0), "float64" if precision == "float64" else "float32")
    if precision == "bfloat16":
        spec = replace(spec, bfloat16=("wide.W_out", "alone.W_out"))
    store.save(tmp_path / "a" / "network", spec, tensors, ABOUT)
    loaded = store.load(tmp_path / "a" / "network")
    assert (loaded.spec, loaded.about) == (spec, ABOUT)
    assert not loaded.module.training
    for name, tensor in loaded.module.state_dict().items():
        assert tensor.dtype == (torch.bfloat16 if name in spec.bfloat16 else getattr(torch, spec.precision))
        assert tensor.double().tolist() == tensors[name].tolist()
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"network"}
    assert store.fingerprint(spec, tensors) == store.fingerprint(spec, loaded.module)


def test_fingerprints():
    spec, tensors = hand_built()
    prints = [store.fingerprint(spec, tensors), store.fingerprint(replace(spec, window=3), tensors)]
    for name, tensor in tensors.items():
        prints.append(store.fingerprint(spec, tensors | {name: tensor + 1}))
    prints.append(store.fingerprint(*hand_built("float64")))
    assert len(set(prints)) == len(prints)
    assert all(len(found) == 64 for found in prints)


def test_what_hugging_face_wants(folder):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["model_type"] == "byheart"
    assert config["architectures"] == ["ByheartForCausalLM"]
    assert (config["vocab_size"], config["eos_token_id"], config["dtype"]) == (3, 2, "float32")
    assert "né.txt" in (folder / "config.json").read_text(encoding="utf-8")


def test_without_an_end(tmp_path):
    store.save(tmp_path / "network", *hand_built(), {})
    assert "eos_token_id" not in json.loads((tmp_path / "network" / "config.json").read_text())


def test_a_network_takes_the_place_of_another(folder):
    store.save(folder, *drawn(np.random.default_rng(0)), {})
    assert store.load(folder).spec.vocab == 11
    assert [path.name for path in folder.parent.iterdir()] == ["network"]


def test_more_files_come_with_it(folder):
    store.save(folder, *hand_built(), ABOUT, also=lambda new: (new / "tokenizer.json").write_text("{}") and None)
    assert (folder / "tokenizer.json").read_text() == "{}"


def test_the_old_one_stays_if_writing_fails(folder):
    def fail(new):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.save(folder, *drawn(np.random.default_rng(0)), {}, also=fail)
    assert store.load(folder).spec.vocab == 3
    assert [path.name for path in folder.parent.iterdir()] == ["network"]


def test_foreign_folders_stay(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("words")
    for place in (tmp_path / "mine", tmp_path / "mine" / "thesis.txt"):
        with pytest.raises(BadInput, match="holds no float Transformer; choose another name or remove it"):
            store.save(place, *hand_built(), {})
    with pytest.raises(BadInput, match="cannot be written"):
        store.save(tmp_path / "mine" / "thesis.txt" / "network", *hand_built(), {})
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "words"


def test_what_cannot_be_loaded_is_not_written(tmp_path):
    spec, tensors = hand_built()
    with pytest.raises(BadInput, match="missing or unknown"):
        store.save(tmp_path / "network", spec, {"embedding.W_E": tensors["embedding.W_E"]}, {})
    short = replace(spec, bfloat16=("less.b_in",))
    with pytest.raises(BadInput, match=r"less\.b_in has entries that bfloat16 cannot hold"):
        store.save(tmp_path / "network", short, tensors | {"less.b_in": np.array([[257]], np.float32)}, {})
    assert not list(tmp_path.iterdir())


def cut(path, size):
    path.write_bytes(path.read_bytes()[:size])


def change_config(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | values))


def change_spec(folder, **values):
    change_config(folder, spec=hand_built()[0].as_json() | values)


def change_layer(folder, number, **values):
    layers = hand_built()[0].as_json()["sublayers"]
    layers[number] |= values
    change_spec(folder, sublayers=layers)


def change_tensors(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


DAMAGES = {
    "no config": (lambda f: (f / "config.json").unlink(), "config.json: no such file"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "model.safetensors: cannot be read"),
    "half a config": (lambda f: cut(f / "config.json", 100), "config.json: not valid JSON"),
    "no text": (lambda f: (f / "config.json").write_bytes(b"\xff\xfe\xfd"), "config.json: not valid JSON"),
    "a list": (lambda f: (f / "config.json").write_text("[]"), "this is something else"),
    "another model": (lambda f: change_config(f, model_type="gpt2"), "this is something else"),
    "half the weights": (lambda f: cut(f / "model.safetensors", -5), "model.safetensors: cannot be read"),
    "half a header": (lambda f: cut(f / "model.safetensors", 100), "model.safetensors: cannot be read"),
    "no weights in it": (lambda f: cut(f / "model.safetensors", 0), "model.safetensors: cannot be read"),
    "spec is a list": (lambda f: change_config(f, spec=[]), "config.json: .* does not describe"),
    "about is a list": (lambda f: change_config(f, about=[]), "about is"),
    "unknown key": (lambda f: change_spec(f, colour=1), "unknown keys"),
    "precision": (lambda f: change_spec(f, precision="int8"), "precision is 'int8'; expected one of float32, float64"),
    "vocab": (lambda f: change_spec(f, vocab="3"), "vocab is '3'; expected a whole number"),
    "a huge vocab": (lambda f: change_spec(f, vocab=10**15), r"embedding.W_E is \[3, 1\]; config.json describes"),
    "a short stream": (lambda f: change_spec(f, stream=2), "unembeds has features 2 to 2; expected 0 to 1"),
    "features": (lambda f: change_layer(f, 0, reads=["7:8"]), "previous: reads has features 7 to 7; expected 0 to 2"),
    "dilation": (lambda f: change_layer(f, 0, dilation=0), "previous: dilation is 0; expected a whole number from 1"),
    "a kind": (lambda f: change_layer(f, 1, kind="convolution"), "does not describe"),
    "a tensor too few": (lambda f: change_tensors(f, lambda t: t.pop("less.b_in")), "less.b_in is missing"),
    "a tensor too many": (lambda f: change_tensors(f, lambda t: t.update(x=torch.zeros(1))), r"\['x'\] are missing"),
    "a shape": (
        lambda f: change_tensors(f, lambda t: t.update({"less.b_in": torch.zeros(2, 1)})),
        r"model.safetensors: less.b_in is \[2, 1\]; config.json describes \[1, 1\]",
    ),
    "a format": (
        lambda f: change_tensors(f, lambda t: t.update({"less.b_in": torch.zeros(1, 1).half()})),
        r"model.safetensors: less.b_in is torch.float16 \[1, 1\]; expected torch.float32 \[1, 1\]",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage(folder, damage):
    do, message = DAMAGES[damage]
    do(folder)
    with pytest.raises(BadInput, match=message) as caught:
        store.load(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_exact_networks_are_something_else(tmp_path, folder):
    network = ExactNetwork((FeedForward((Affine(integers([[1]]), integers([0])),)),), "tokens", "last", 1)
    exact.save(network, tmp_path / "exact")
    assert kind_of(tmp_path / "exact") == "exact"
    assert kind_of(folder) == "float"
    assert kind_of(tmp_path) is None
    assert kind_of(tmp_path / "nowhere") is None
    with pytest.raises(BadInput, match=r"expected a float Transformer .*; this is an exact network"):
        store.load(tmp_path / "exact")
    with pytest.raises(BadInput, match="holds no float Transformer"):
        store.save(tmp_path / "exact", *hand_built(), {})
    with pytest.raises(BadInput, match="holds no exact network"):
        exact.save(network, folder)

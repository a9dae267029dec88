"""Float Transformers on disk: they come back whole, and nothing that is broken comes back at all."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from byheart import networks
from byheart.errors import BadInput
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays

from .small import drawn, hand_built

ABOUT = {"end": 2, "texts": ["né.txt"], "prompts": [1]}


@pytest.fixture
def folder(tmp_path):
    networks.save(from_arrays(*hand_built(), about=ABOUT), tmp_path / "network")
    return tmp_path / "network"


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
def test_a_network_comes_back_as_it_was(tmp_path, precision):
    spec, tensors = drawn(np.random.default_rng(0), "float64" if precision == "float64" else "float32")
    if precision == "bfloat16":
        spec = replace(spec, bfloat16=("wide.W_out", "alone.W_out"))
    files = {"tokenizer.json": b"{}"}
    network = from_arrays(spec, tensors, about=ABOUT, files=files)
    networks.save(network, tmp_path / "a" / "network")
    loaded = networks.load(tmp_path / "a" / "network")
    assert isinstance(loaded, TransformerNetwork)
    assert (loaded.spec, loaded.about, loaded.files) == (spec, ABOUT, files)
    assert loaded.fingerprint == network.fingerprint
    assert not loaded.module.training
    for name, tensor in loaded.module.state_dict().items():
        assert tensor.dtype == (torch.bfloat16 if name in spec.bfloat16 else getattr(torch, spec.precision))
        assert tensor.double().tolist() == tensors[name].tolist()
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"network"}


def test_what_hugging_face_wants(folder):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["model_type"] == "byheart"
    assert config["architectures"] == ["ByheartForCausalLM"]
    assert (config["vocab_size"], config["eos_token_id"], config["dtype"]) == (3, 2, "float32")
    assert "né.txt" in (folder / "config.json").read_text(encoding="utf-8")


def test_without_an_end(tmp_path):
    networks.save(from_arrays(*hand_built()), tmp_path / "network")
    assert "eos_token_id" not in json.loads((tmp_path / "network" / "config.json").read_text())


def test_what_is_noted_instead(folder):
    networks.save(networks.load(folder), folder, {"note": "é"})
    assert networks.load(folder).about == {"note": "é"}


def test_a_network_takes_the_place_of_another(folder):
    networks.save(from_arrays(*drawn(np.random.default_rng(0))), folder)
    assert networks.load(folder).spec.vocab == 11
    assert [path.name for path in folder.parent.iterdir()] == ["network"]


def test_the_old_one_stays_if_writing_fails(folder, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    network = from_arrays(*drawn(np.random.default_rng(0)), files={"tokenizer.json": b"{}"})
    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(KeyboardInterrupt):
        networks.save(network, folder)
    assert networks.load(folder).spec.vocab == 3
    assert [path.name for path in folder.parent.iterdir()] == ["network"]


def test_foreign_folders_stay(tmp_path):
    network = from_arrays(*hand_built())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("words")
    for place in (tmp_path / "mine", tmp_path / "mine" / "thesis.txt"):
        with pytest.raises(BadInput, match="exists and is no network that Byheart wrote"):
            networks.save(network, place)
    with pytest.raises(BadInput, match="cannot be written"):
        networks.save(network, tmp_path / "mine" / "thesis.txt" / "network")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "words"


def test_what_cannot_be_loaded_is_not_written(tmp_path):
    network = from_arrays(*hand_built())
    for weights in ({"x": torch.zeros(1)}, {"less.b_in": torch.zeros(1, 1).half()}):
        with pytest.raises(BadInput, match=r"missing or unknown|expected torch\.float32"):
            networks.save(replace(network, weights={**network.weights, **weights}), tmp_path / "network")
    assert not list(tmp_path.iterdir())


def test_tensors_need_not_be_contiguous(folder):
    network = networks.load(folder)
    turned = replace(
        network, weights={**network.weights, "previous.W_O": torch.tensor([[1.0, 5.0], [10.0, 5.0]]).T[:1]}
    )
    assert turned.fingerprint == network.fingerprint
    networks.save(turned, folder)
    assert networks.load(folder).fingerprint == network.fingerprint


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
    "no weights": (
        lambda f: (f / "model.safetensors").unlink(),
        "model.safetensors cannot be read .*; the folder is incomplete",
    ),
    "half a config": (lambda f: cut(f / "config.json", 100), "config.json: cannot be read"),
    "no text": (lambda f: (f / "config.json").write_bytes(b"\xff\xfe\xfd"), "config.json: cannot be read"),
    "a list": (lambda f: (f / "config.json").write_text("[]"), "found; expected a JSON object"),
    "another model": (
        lambda f: change_config(f, model_type="gpt_neox"),
        "config.json: format 'gpt_neox'; expected a network",
    ),
    "half the weights": (
        lambda f: cut(f / "model.safetensors", -5),
        "model.safetensors cannot be read .*; the folder is incomplete",
    ),
    "half a header": (
        lambda f: cut(f / "model.safetensors", 100),
        "model.safetensors cannot be read .*; the folder is incomplete",
    ),
    "no weights in it": (
        lambda f: cut(f / "model.safetensors", 0),
        "model.safetensors cannot be read .*; the folder is incomplete",
    ),
    "spec is a list": (lambda f: change_config(f, spec=[]), "config.json does not describe"),
    "about is a list": (lambda f: change_config(f, about=[]), "about is"),
    "unknown key": (lambda f: change_spec(f, colour=1), "unknown keys"),
    "precision": (lambda f: change_spec(f, precision="int8"), "precision is 'int8'; expected one of float32, float64"),
    "vocab": (lambda f: change_spec(f, vocab="3"), "vocab is '3'; expected a whole number"),
    "a huge vocab": (lambda f: change_spec(f, vocab=10**15), r"vocab is 10+; expected a whole number from 1 to"),
    "a short stream": (lambda f: change_spec(f, stream=2), "unembeds has features 2 to 2; expected 0 to 1"),
    "features": (lambda f: change_layer(f, 0, reads=["7:8"]), "previous: reads has features 7 to 7; expected 0 to 2"),
    "dilation": (lambda f: change_layer(f, 0, dilation=0), "previous: dilation is 0; expected a whole number from 1"),
    "a trillion features": (lambda f: change_spec(f, embeds=["0:1000000000000"]), "'0:1000000000000' are no features"),
    "many features": (lambda f: change_spec(f, embeds=["0:2000000000"]), "parts have 2,000,000,00. features; expected"),
    "features often": (lambda f: change_spec(f, embeds=["0:2"] * 99), "parts have 20. features; expected at most"),
    "no features": (lambda f: change_spec(f, unembeds=[]), "unembeds is empty; expected at least one feature"),
    "a range turned round": (lambda f: change_spec(f, embeds=["2:0"]), "'2:0' are no features"),
    "a wide stream": (lambda f: change_spec(f, stream=10**9), "stream has 1,000,000,000 features, and 3 are used"),
    "a far look": (lambda f: change_layer(f, 0, dilation=10**7), "looks back 10,000,000 positions; expected at most"),
    "a word for a truth": (lambda f: change_layer(f, 1, bias="false"), "bias is 'false', .* expected true or false"),
    "a bias of nothing": (lambda f: change_layer(f, 1, up_bias=True), "up is 'none', and has no use for its up_bias"),
    "a kind": (lambda f: change_layer(f, 1, kind="convolution"), "does not describe"),
    "a tensor too few": (lambda f: change_tensors(f, lambda t: t.pop("less.b_in")), "less.b_in is missing"),
    "a tensor too many": (lambda f: change_tensors(f, lambda t: t.update(x=torch.zeros(1))), r"\['x'\] are missing"),
    "a shape": (
        lambda f: change_tensors(f, lambda t: t.update({"less.b_in": torch.zeros(2, 1)})),
        r"network: less.b_in is \[2, 1\]; config.json describes \[1, 1\]",
    ),
    "not finite": (
        lambda f: change_tensors(f, lambda t: t.update({"less.b_in": torch.full((1, 1), torch.nan)})),
        "network: less.b_in has entries that are not finite",
    ),
    "a format": (
        lambda f: change_tensors(f, lambda t: t.update({"less.b_in": torch.zeros(1, 1).half()})),
        r"'less.b_in' is 'F16'; expected F32 or F64 or BF16",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage(folder, damage):
    do, message = DAMAGES[damage]
    do(folder)
    with pytest.raises(BadInput, match=message) as caught:
        networks.load(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)

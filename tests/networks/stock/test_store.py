"""A stock Llama in a folder: it comes back whole, certificates of before still name it, and strangers' folders stay."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from byheart import networks
from byheart.certificates import certificate, certify, recheck
from byheart.errors import BadInput
from byheart.networks.stock.stock_network import StockNetwork
from byheart.tasks import load as load_task

from .small import changed, tiny

OLD = Path(__file__).parents[2] / "fixtures" / "0.1.0"
OURS = ["llama", "llama-facts", "texts", "pairs", "short", "edited", "facts"]
EDITS = {"edited": {"of wisdom": "!"}}
"""What was changed afterwards."""
GIVEN = {"llama": ["c.txt"], "texts": ["a.txt", "b.txt"]}
"""What the folders in fixtures were compiled from, if it is not a.txt; facts are those of next.jsonl."""


def given(name):
    if name.endswith("facts"):
        return load_task(OLD / "next.jsonl")
    return [OLD / file for file in GIVEN.get(name, ["a.txt"])]


def test_a_network_comes_back_as_it_was(tmp_path):
    network = tiny(about={"window": 3, "texts": ["né"]}, files={"tokenizer.json": b"{}"})
    networks.save(network, tmp_path / "net")
    loaded = networks.load(tmp_path / "net")
    assert isinstance(loaded, StockNetwork)
    assert (loaded.config, loaded.about, loaded.files) == (network.config, network.about, network.files)
    assert loaded.fingerprint == network.fingerprint
    assert {name: tensor.tolist() for name, tensor in loaded.tensors()} == {
        name: tensor.tolist() for name, tensor in network.tensors()
    }
    generation = json.loads((tmp_path / "net" / "generation_config.json").read_text())
    assert generation == {"bos_token_id": 10, "eos_token_id": 10, "pad_token_id": 10, "do_sample": False}
    assert [path.name for path in tmp_path.iterdir()] == ["net"]


def test_transformers_loads_it(tmp_path):
    transformers = pytest.importorskip("transformers")
    network = tiny()
    networks.save(network, tmp_path / "net")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "net", attn_implementation="eager")
    tokens = torch.tensor([[10, 1, 2, 3]])
    with torch.no_grad():
        assert torch.equal(theirs(tokens).logits, network.model(tokens).logits)
        assert torch.equal(theirs(tokens).logits, networks.load(tmp_path / "net").model(tokens).logits)


def test_the_model_of_a_stranger_is_never_replaced(tmp_path):
    """It has no ``about``, whatever else it looks like."""
    networks.save(tiny(), tmp_path / "net")
    config = json.loads((tmp_path / "net" / "config.json").read_text())
    del config["about"]
    (tmp_path / "net" / "config.json").write_text(json.dumps(config))
    before = {path.name: path.read_bytes() for path in (tmp_path / "net").iterdir()}
    with pytest.raises(BadInput, match="net: exists and is no network that Byheart wrote; choose another name or"):
        networks.save(tiny(), tmp_path / "net")
    assert {path.name: path.read_bytes() for path in (tmp_path / "net").iterdir()} == before
    assert networks.load(tmp_path / "net").fingerprint == tiny().fingerprint, "it can be read and counted"


def test_ours_is_replaced(tmp_path):
    networks.save(tiny(), tmp_path / "net")
    networks.save(tiny(1), tmp_path / "net")
    assert networks.load(tmp_path / "net").fingerprint == tiny(1).fingerprint


def test_damage(tmp_path):
    networks.save(tiny(), tmp_path / "net")
    path = tmp_path / "net" / "model.safetensors"
    tensors = load_file(path)
    whole = path.read_bytes()
    for damaged, complaint in (
        ({**tensors, "model.norm.weight": torch.full((8,), torch.nan)}, "has entries that are not finite"),
        ({**tensors, "model.norm.weight": torch.ones(8).bfloat16()}, "is 'BF16'; expected F32 or F16"),
        (None, "model.safetensors cannot be read .*; the folder is incomplete"),
    ):
        if damaged is None:
            path.write_bytes(whole[:-5])
        else:
            save_file(damaged, path)
        with pytest.raises(BadInput, match=f"net: .*{complaint}"):
            networks.load(tmp_path / "net")


@pytest.mark.parametrize("name", OURS)
def test_certificates_of_before_name_no_other_network(name, tmp_path):
    """The digest of the files goes with the files: where a weight has changed, it names nothing."""
    shutil.copytree(OLD / name, tmp_path / "net")
    path = tmp_path / "net" / "certificate.json"
    claimed = certificate.read(path)
    assert networks.load(tmp_path / "net").is_named(claimed.weights)
    weights = load_file(tmp_path / "net" / "model.safetensors")
    first = next(tensor for tensor in weights.values() if tensor.ndim == 2 and tensor.any())
    first[first != 0] *= 2
    save_file(weights, tmp_path / "net" / "model.safetensors", metadata={"format": "pt"})
    assert not networks.load(tmp_path / "net").is_named(claimed.weights)
    if name != "pairs" or importlib.util.find_spec("tokenizers"):
        with pytest.raises(BadInput, match=r"is about weights .*; this network has"):
            recheck(path, tmp_path / "net", given(name), edits=EDITS.get(name))


@pytest.mark.parametrize("name", OURS)
def test_networks_of_before_are_saved_and_certified_anew(name, tmp_path):
    if name.startswith("llama"):
        pytest.importorskip("transformers")
    if name == "pairs":
        pytest.importorskip("tokenizers")
    network = networks.load(OLD / name)
    networks.save(network, tmp_path / "net")
    again = networks.load(tmp_path / "net")
    assert (again.fingerprint, again.about, again.files) == (network.fingerprint, network.about, network.files)
    found = certify(tmp_path / "net", given(name), edits=EDITS.get(name))
    assert found.certified
    assert found.weights == network.fingerprint


def test_arrays_need_not_be_contiguous(tmp_path):
    """safetensors writes the memory of an array as it lies there."""
    network = tiny()
    name = "model.layers.0.mlp.down_proj.weight"
    turned = changed(network, name, np.asfortranarray(network.weights[name]))
    assert turned.fingerprint == network.fingerprint
    networks.save(turned, tmp_path / "net")
    assert networks.load(tmp_path / "net").fingerprint == network.fingerprint

"""A float Transformer as a network: counted, named by its weights, and refused if they do not fit."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from byheart.errors import BadInput
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays

from .small import drawn, hand_built


def test_counted():
    """By hand: 3 + 2 + 2 + 2 + 2 + 4 + 1 + 1 + 1 + 2 + 2 entries; an attention layer and a block with hidden units."""
    network = from_arrays(*hand_built())
    account = network.account
    assert (account.dense, account.depth, account.width) == (22, 2 + 1 + 2, 3)
    assert account.nonzero == 3 + 0 + 0 + 2 + 2 + 2 + 1 + 1 + 1 + 2 + 1
    assert (account.max_bits, account.total_bits) == (32, 22 * 32)
    assert list(account.parts()) == ["embedding", "previous", "less", "unembedding"]
    assert network.padded == network.spec.padded > account.dense
    assert repr(network) == "<TransformerNetwork: 22 parameters, depth 5, width 3>"


def test_tensors_of_bfloat16_take_16_bits():
    spec, tensors = drawn(np.random.default_rng(0), "float32")
    network = from_arrays(replace(spec, bfloat16=("wide.W_out",)), tensors)
    items = {item.name: item.max_bits for item in network.account.items}
    assert {name for name, bits in items.items() if bits == 16} == {"wide.W_out"}
    assert dict(network.tensors())["wide.W_out"].tolist() == tensors["wide.W_out"].tolist()
    assert network.weights["wide.W_out"].dtype == torch.bfloat16


def test_fingerprints():
    """All that answers depend on, and nothing else."""
    spec, tensors = hand_built()
    networks = [from_arrays(spec, tensors), from_arrays(replace(spec, window=3), tensors)]
    networks += [from_arrays(spec, tensors | {name: tensor + 1}) for name, tensor in tensors.items()]
    networks.append(from_arrays(*hand_built("float64")))
    prints = [network.fingerprint for network in networks]
    assert len(set(prints)) == len(prints)
    assert all(len(found) == 64 for found in prints)
    beside = from_arrays(spec, tensors, about={"end": 1}, files={"tokenizer.json": b"{}"})
    assert beside.fingerprint == prints[0]
    assert beside.is_named(prints[0])
    assert not beside.is_named(prints[1])


def test_one_tensor_replaced():
    network = from_arrays(*hand_built(), about={"end": 1})
    other = network.with_tensor("less.b_in", torch.tensor([[-9.0]]))
    assert other.about == network.about
    assert other.fingerprint != network.fingerprint
    assert other.with_tensor("less.b_in", network.weights["less.b_in"]).fingerprint == network.fingerprint
    assert other.module(torch.tensor([[0, 2, 1]])).tolist() == [[[0, 5], [5, 0], [33, -28]]]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite(value):
    spec, tensors = hand_built()
    with pytest.raises(BadInput, match=r"^less\.b_in has entries that are not finite$"):
        from_arrays(spec, tensors | {"less.b_in": np.array([[value]], np.float32)})


def test_weights_that_do_not_fit():
    spec, tensors = hand_built()
    weights = {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}
    with pytest.raises(BadInput, match=r"^less\.b_in is missing; config.json describes it$"):
        TransformerNetwork(spec, {name: weight for name, weight in weights.items() if name != "less.b_in"})
    with pytest.raises(BadInput, match=r"^less\.b_in is \[2, 1\]; config.json describes \[1, 1\]$"):
        TransformerNetwork(spec, weights | {"less.b_in": torch.zeros(2, 1)})
    with pytest.raises(BadInput, match=r"less\.W_out has entries that bfloat16 cannot hold"):
        from_arrays(replace(spec, bfloat16=("less.W_out",)), tensors | {"less.W_out": np.array([[[257]]], np.float32)})
    with pytest.raises(BadInput, match=r"bfloat16 names less\.b_in; expected W_out"):
        replace(spec, bfloat16=("less.b_in",))


@pytest.mark.parametrize(
    "name",
    ["mix", "device", "spec", "embeds", "forward", "eval", "type", "parameters", "_modules", "_mixing", "mixing_width"],
)
def test_names_that_a_module_has(name):
    spec, tensors = hand_built()
    renamed = replace(spec, sublayers=(spec.sublayers[0], replace(spec.sublayers[1], name=name)))
    tensors = {key.replace("less.", f"{name}."): tensor for key, tensor in tensors.items()}
    with pytest.raises(BadInput, match=f"a sublayer is called '{name}'.*; expected"):
        _ = from_arrays(renamed, tensors).module

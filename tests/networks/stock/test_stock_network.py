"""A stock Llama as a network: counted, named by its weights, and refused if they are not all there."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from byheart.certificates.judges.stock import perturbed
from byheart.errors import BadInput

from .small import HEAD, HEADS, LAYERS, UNITS, VOCAB, WIDTH, changed, tiny

NORM = "model.norm.weight"


def test_counted():
    account = tiny().account
    layer = 4 * HEADS * HEAD * WIDTH + 3 * UNITS * WIDTH + 2 * WIDTH
    assert account.dense == account.nonzero == LAYERS * layer + VOCAB * WIDTH + WIDTH
    assert (account.depth, account.width, account.max_bits) == (2 + 3 * LAYERS, UNITS, 32)
    assert {"embed_tokens", "q_proj", "up_proj", "norm"} < set(account.parts())
    assert tiny().padded == account.dense
    assert repr(tiny()) == f"<StockNetwork: {account.dense:,} parameters, depth 8, width 12>"


def test_transformers_counts_the_same():
    pytest.importorskip("transformers")
    assert sum(parameter.numel() for parameter in tiny().model.parameters()) == tiny().account.dense


def test_fingerprints():
    """All that answers depend on, and nothing else."""
    network = tiny()
    others = [replace(network, config={**network.config, "rope_theta": 5.0})]
    others += [changed(network, name, tensor + 1) for name, tensor in network.tensors()]
    prints = {network.fingerprint, *(other.fingerprint for other in others)}
    assert len(prints) == 1 + len(others)
    assert tiny(about={"end": 1}, files={"tokenizer.json": b"{}"}).fingerprint == network.fingerprint
    backwards = dict(reversed(network.weights.items()))
    assert replace(network, weights=backwards).fingerprint == network.fingerprint


def test_the_name_that_older_certificates_use():
    network = replace(tiny(), digest="old")
    assert network.is_named("old")
    assert network.is_named(network.fingerprint)
    assert not tiny().is_named("old")
    other, _ = perturbed(network, np.random.default_rng(0), 0)
    assert not other.is_named("old"), "a digest of files is of no use for weights that changed since"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite(value):
    network = tiny()
    broken = network.weights[NORM].copy()
    broken[3] = value
    with pytest.raises(BadInput, match=r"^model\.norm\.weight has entries that are not finite$"):
        changed(network, NORM, broken)


@pytest.mark.parametrize("name", [NORM, "model.layers.1.mlp.up_proj.weight", "model.embed_tokens.weight"])
def test_weights_that_do_not_fit(name):
    """What is missing must not be drawn at random, as transformers would."""
    pytest.importorskip("transformers")
    network = tiny()
    fewer = {key: tensor for key, tensor in network.weights.items() if key != name}
    for weights in (fewer, {**network.weights, name: np.zeros((3, 3), np.float32)}):
        with pytest.raises(BadInput, match=rf"tensors \['{name}'\] are missing, unknown or of another shape"):
            _ = replace(network, weights=weights).model
    with pytest.raises(BadInput, match=r"tensors \['x'\] are missing, unknown"):
        _ = replace(network, weights={**network.weights, "x": np.zeros(1, np.float32)}).model


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"hidden_size": "8"}, r"config.json: hidden_size is '8'; expected a whole number from 1 to 16,777,216"),
        ({"num_hidden_layers": 0}, "config.json: num_hidden_layers is 0; expected a whole number from 1 to 16,777,216"),
        ({"vocab_size": None}, "config.json: vocab_size is None"),
        ({"bos_token_id": 11}, "config.json: bos_token_id is 11; expected null or a token"),
        ({"pad_token_id": 11}, "config.json: pad_token_id is 11; expected null or a token, from 0 to 10"),
        ({"bos_token_id": [1]}, r"config.json: bos_token_id is \[1\]; expected null or a token"),
        ({"rope_parameters": 3}, "rope_parameters is 3; expected an object"),
        ({"num_attention_heads": 0}, "num_attention_heads is 0; expected a whole number from 1 to 16,777,216"),
        ({"hidden_act": "none"}, "hidden_act is 'none'; expected \"silu\""),
        ({"num_labels": 30_000_000}, "has 'num_labels', which a Llama of Byheart's does not have; remove it"),
        ({"return_dict": False}, "has 'return_dict', which a Llama of Byheart's does not have; remove it"),
        ({"num_hidden_layers": 3}, r"tensors \['model.layers.2.input_layernorm.weight', .* are missing"),
        ({"num_hidden_layers": 10**6}, "there are 20 tensors; expected those of 1000000 layers"),
        ({"num_hidden_layers": 10**18}, "num_hidden_layers is 1000000000000000000; expected a whole number"),
        ({"head_dim": -2}, "head_dim is -2; expected a whole number from 1 to 16,777,216"),
        ({"head_dim": 3}, "of dimension 3; expected a multiple, and an even dimension"),
        ({"num_key_value_heads": 3}, "3 key-value heads of dimension .; expected a multiple"),
        ({"rms_norm_eps": -1.0}, "rms_norm_eps is -1.0; expected a number from 0 to 1"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope_parameters.rope_type is 'yarn'; expected \"default\""),
        ({"attention_bias": True}, "attention_bias is True; expected false"),
        ({"tie_word_embeddings": False}, r"tensors \['lm_head.weight'\] are missing"),
    ],
    ids=str,
)
def test_configurations_that_are_none(change, complaint):
    pytest.importorskip("transformers")
    with pytest.raises(BadInput, match=complaint) as caught:
        _ = tiny(**change).model
    assert "\n" not in str(caught.value)


def test_without_transformers(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(BadInput, match=r"^a stock Llama needs transformers, which is not installed; pip install"):
        _ = tiny().model


def test_how_far_it_looks_back():
    assert tiny().window == 3
    for about in ({"texts": []}, {"window": 0}, {"window": "3"}):
        with pytest.raises(BadInput, match=r"about\.window is .*; expected a Llama that Byheart compiled"):
            _ = tiny(about=about).window

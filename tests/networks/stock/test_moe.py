"""A stock Qwen2-MoE as a network: its experts are counted, saved and reloaded, and strange configurations refused."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from torch.nn.functional import silu, softmax

from byheart import networks
from byheart.certificates import certify
from byheart.certificates.judges.stock import perturbed
from byheart.errors import BadInput
from byheart.tasks import NextToken

from .small import EXPERT_UNITS, EXPERTS, HEAD, HEADS, MOE_CONFIG, UNITS, VOCAB, WIDTH, tiny, tiny_moe

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors is a no-op")


def test_counted():
    network = tiny_moe()
    attention = 4 * HEADS * HEAD * WIDTH + 2 * WIDTH
    experts = EXPERTS * (WIDTH + 3 * EXPERT_UNITS * WIDTH) + WIDTH
    counted = 2 * attention + 3 * UNITS * WIDTH + experts + (VOCAB + 1) * WIDTH
    assert network.account.dense == counted
    assert sum(parameter.numel() for parameter in network.model.parameters()) == counted
    assert (network.title, tiny().title) == ("a stock Qwen2-MoE", "a stock Llama")
    assert {"experts", "gate", "gate_proj", "shared_expert_gate"} < set(network.account.parts())
    assert (network.account.depth, network.account.width) == (8, UNITS)


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_of_a_shared_expert_without_units():
    assert tiny_moe().model is not None


def test_the_layer_of_experts_by_hand():
    """The best expert alone, with weight 1: what the network holds under an expert's name is that expert."""
    network = tiny_moe()
    block = network.model.model.layers[1].mlp
    x = torch.randn(5, 1, WIDTH, generator=torch.Generator().manual_seed(0))

    def weight(name):
        return torch.tensor(network.weights[f"model.layers.1.mlp.{name}.weight"])

    with torch.no_grad():
        found = block(x)
    for row, added in zip(x[:, 0], found[:, 0], strict=True):
        best = int(softmax(weight("gate") @ row, 0).argmax())
        gate, up, down = (weight(f"experts.{best}.{part}_proj") for part in ("gate", "up", "down"))
        assert torch.allclose(added, down @ (silu(gate @ row) * (up @ row)), atol=1e-5)


def test_it_comes_back_as_it_was(tmp_path):
    network = tiny_moe()
    networks.save(network, tmp_path / "net")
    loaded = networks.load(tmp_path / "net")
    assert loaded.fingerprint == network.fingerprint
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "net", attn_implementation="eager")
    assert type(theirs) is transformers.Qwen2MoeForCausalLM
    tokens = torch.tensor([[10, 1, 2, 3]])
    with torch.no_grad():
        assert torch.equal(theirs(tokens).logits, loaded.model(tokens).logits)
    with torch.no_grad():
        label = int(theirs(tokens).logits[0, -1].argmax())
    facts = NextToken([[1, 2, 3]], [label], vocab=VOCAB, label_count=VOCAB)
    assert certify(loaded, facts).certified
    with pytest.raises(BadInput, match="bos_token_id is 10, and would precede every question"):
        certify(tmp_path / "net", facts)
    other, place = perturbed(loaded, np.random.default_rng(0), 3)
    assert other.fingerprint != loaded.fingerprint
    assert place


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"qkv_bias": True}, "qkv_bias is True; expected false"),
        ({"use_sliding_window": True}, "use_sliding_window is True; expected false"),
        ({"sliding_window": 4}, "sliding_window is 4; expected 0 or null"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types\\[1\\] is .sliding_attention."),
        ({"layer_types": ["full_attention"]}, "layer_types has 1 entries; expected one for each layer, or null"),
        ({"output_router_logits": True}, "output_router_logits is True; expected false"),
        ({"decoder_sparse_step": 2}, "decoder_sparse_step is 2; expected 1"),
        ({"norm_topk_prob": 1}, "norm_topk_prob is 1; expected false or true"),
        ({"num_experts_per_tok": 4}, "num_experts_per_tok is 4; expected at most num_experts, which is 3"),
        ({"num_experts_per_tok": 0}, "num_experts_per_tok is 0; expected a whole number from 1 to 16,777,216"),
        ({"num_experts": 4}, r"tensors \['model.layers.1.mlp.experts.3.down_proj.weight', .* are missing"),
        ({"num_experts": 0}, "num_experts is 0; expected a whole number from 1 to 16,777,216"),
        ({"num_experts": 1 << 24}, "tensors; expected those of 16777216 experts, as config.json says"),
        ({"num_experts": 30, "num_hidden_layers": 30}, r"tensors \[.* are missing, unknown or of another shape"),
        ({"moe_intermediate_size": 5}, r"tensors \[.*\] are missing, unknown or of another shape"),
        ({"shared_expert_intermediate_size": 1}, r"tensors \['model.layers.1.mlp.shared_expert.down_proj.weight'"),
        ({"shared_expert_intermediate_size": -1}, "shared_expert_intermediate_size is -1; expected a whole number"),
        ({"mlp_only_layers": [1]}, r"tensors \[.*\] are missing, unknown or of another shape"),
        ({"mlp_only_layers": [0, 1]}, r"tensors \[.*\] are missing, unknown or of another shape"),
        ({"mlp_only_layers": ["0"]}, r"mlp_only_layers\[0\] is '0'; expected the number of a layer"),
        ({"mlp_only_layers": None}, "mlp_only_layers is None; expected a list"),
        (
            {"dtype": "bfloat16"},
            "dtype is 'bfloat16'; expected \"float32\" or null: transformers would load it in that",
        ),
        ({"torch_dtype": "float64"}, "torch_dtype is 'float64'; expected \"float32\" or null"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'; expected \"silu\""),
        ({"experts_implementation": "eager"}, "has 'experts_implementation', which a Qwen2-MoE of Byheart's does not"),
        ({"attention_bias": False}, "has 'attention_bias', which a Qwen2-MoE of Byheart's does not have; remove it"),
        ({"architectures": ["LlamaForCausalLM"]}, r"expected \[\"Qwen2MoeForCausalLM\"\]"),
        ({"model_type": "llama"}, r"architectures is .*; expected \[\"LlamaForCausalLM\"\]"),
    ],
    ids=str,
)
def test_configurations_that_are_none(change, complaint):
    with pytest.raises(BadInput, match=complaint) as caught:
        tiny_moe(**change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["num_experts", "num_key_value_heads", "mlp_only_layers", "qkv_bias"])
def test_what_must_not_be_left_to_defaults(name):
    """Transformers' own would be others: 60 experts, 16 heads, biases."""
    config = {key: value for key, value in MOE_CONFIG.items() if key != name}
    with pytest.raises(BadInput, match=f"config.json: {name} is missing; expected the sizes of a Qwen2-MoE"):
        replace(tiny_moe(), config=config)


def test_experts_do_not_belong_to_a_llama(tmp_path):
    networks.save(tiny(), tmp_path / "net")
    path = tmp_path / "net" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "num_experts": 3}))
    with pytest.raises(BadInput, match=r"net: config\.json: has 'num_experts', which a Llama of Byheart's does not"):
        networks.load(tmp_path / "net")


def test_without_transformers(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(BadInput, match=r"^a stock Qwen2-MoE needs transformers, which is not installed; pip install"):
        _ = tiny_moe().model


def test_half_precision_is_said_or_refused():
    """Tensors of 16 bits are read if config.json has transformers make them float32, as they are run here."""
    half = {name: tensor.astype(np.float16) for name, tensor in tiny_moe().weights.items()}
    network = tiny_moe()
    assert replace(network, weights=half).account.total_bits < network.account.total_bits
    unsaid = {name: value for name, value in network.config.items() if name != "dtype"}
    assert replace(network, config=unsaid).fingerprint != network.fingerprint, "the control: float32 needs no word"
    with pytest.raises(BadInput, match=r'weight is float16; expected "dtype": "float32" in config.json'):
        replace(network, config=unsaid, weights=half)


def test_experts_that_stand_there_twice_are_refused(tmp_path):
    """One by one, and fused, as transformers holds them: which of the two it would run is not for us to guess."""
    network = tiny_moe()
    fused = {
        "model.layers.1.mlp.experts.gate_up_proj": np.zeros((EXPERTS, 2 * EXPERT_UNITS, WIDTH), np.float32),
        "model.layers.1.mlp.experts.down_proj": np.zeros((EXPERTS, WIDTH, EXPERT_UNITS), np.float32),
    }
    networks.save(network, tmp_path / "net")
    save_file({**network.weights, **fused}, tmp_path / "net" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BadInput, match=r"tensors \['model.layers.1.mlp.experts.down_proj', .* are missing, unknown"):
        networks.load(tmp_path / "net")

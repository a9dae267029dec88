"""A tiny Llama with random weights, for the tests of this folder."""

from dataclasses import replace

import numpy as np

from byheart.networks.stock.stock_network import StockNetwork

VOCAB, WIDTH, UNITS, LAYERS, HEADS, HEAD = 11, 8, 12, 2, 2, 4
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": VOCAB,
    "hidden_size": WIDTH,
    "intermediate_size": UNITS,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "head_dim": HEAD,
    "tie_word_embeddings": True,
    "bos_token_id": 10,
    "eos_token_id": 10,
    "dtype": "float32",
}
PARTS = {
    "input_layernorm": (WIDTH,),
    "self_attn.q_proj": (HEADS * HEAD, WIDTH),
    "self_attn.k_proj": (HEADS * HEAD, WIDTH),
    "self_attn.v_proj": (HEADS * HEAD, WIDTH),
    "self_attn.o_proj": (WIDTH, HEADS * HEAD),
    "post_attention_layernorm": (WIDTH,),
    "mlp.gate_proj": (UNITS, WIDTH),
    "mlp.up_proj": (UNITS, WIDTH),
    "mlp.down_proj": (WIDTH, UNITS),
}


def tiny(seed=0, about=None, files=None, **changes):
    """Changes are those of the configuration."""
    rng = np.random.default_rng(seed)
    shapes = {"model.embed_tokens.weight": (VOCAB, WIDTH), "model.norm.weight": (WIDTH,)}
    for layer in range(LAYERS):
        shapes |= {f"model.layers.{layer}.{name}.weight": shape for name, shape in PARTS.items()}
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return StockNetwork({**CONFIG, **changes}, weights, about=about or {"window": 3}, files=files or {})


def changed(network, name, tensor):
    """The network with one tensor replaced."""
    return replace(network, weights={**network.weights, name: tensor}, digest=None)


EXPERTS, EXPERT_UNITS = 3, 4
MOE_CONFIG = {
    **{name: value for name, value in CONFIG.items() if name not in ("architectures", "model_type")},
    "architectures": ["Qwen2MoeForCausalLM"],
    "model_type": "qwen2_moe",
    "num_experts": EXPERTS,
    "num_experts_per_tok": 1,
    "norm_topk_prob": True,
    "moe_intermediate_size": EXPERT_UNITS,
    "shared_expert_intermediate_size": 0,
    "mlp_only_layers": [0],
    "decoder_sparse_step": 1,
    "qkv_bias": False,
    "use_sliding_window": False,
}


def tiny_moe(seed=0, about=None, **changes):
    """A Qwen2-MoE: the Llama's first layer, and one of experts; changes are those of the configuration."""
    rng = np.random.default_rng(seed)
    dense = tiny(seed).weights
    weights = {name: tensor for name, tensor in dense.items() if not name.startswith("model.layers.1.mlp.")}
    shapes = {"gate": (EXPERTS, WIDTH), "shared_expert_gate": (1, WIDTH)}
    for name, units in [(f"experts.{i}", EXPERT_UNITS) for i in range(EXPERTS)] + [("shared_expert", 0)]:
        shapes |= {f"{name}.{part}_proj": (units, WIDTH) for part in ("gate", "up")}
        shapes[f"{name}.down_proj"] = (WIDTH, units)
    for name, shape in shapes.items():
        weights[f"model.layers.1.mlp.{name}.weight"] = rng.normal(size=shape).astype(np.float32)
    return StockNetwork({**MOE_CONFIG, **changes}, weights, about=about or {"window": 3})

"""A tiny Llama with random weights, for the tests of this folder."""

from dataclasses import replace

import numpy as np

from byheart.networks.stock.network import StockNetwork

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

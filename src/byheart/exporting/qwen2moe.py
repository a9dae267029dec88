"""A stock Qwen2-MoE as llama.cpp wants one: experts in every layer, and heads that fill the whole width.

Ours has a single layer of experts, a dense feed-forward block in every other, and one head of dimension 4. The file has
the same function, with zeros where llama.cpp wants more:

- The *shared expert* of every layer, of which ours have none, is its dense block. llama.cpp multiplies it by the
  sigmoid of a gate, here ``OPEN`` times the feature that is 1 for every token: that is exactly 1. In the layer of
  experts it is zeros.
- The experts of all other layers are zeros. That is most of the file: it has as many layers of experts as layers.
- W_Q and W_O get as many heads as fit into the width. Those that are added look at everything alike, and what they find
  is multiplied by 0; all heads have the same keys and values, so nothing else grows.
- The unembedding stands there, though it is the embedding.

llama.cpp takes the router's softmax as it is, and does not divide it by its sum: for what `byheart compile` made this
is the same, since the best expert's is exactly 1 (see :mod:`byheart.compiler.stock.table`). Not checked
here: that, and that the first feature is 1. Of a folder that somebody else made neither need be true.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.networks.stock.stock_network import StockNetwork

ARCHITECTURE = "qwen2moe"
OPEN = 64.0
"""1 / (1 + e^−64) is 1 in float32."""
_PARTS = ("gate", "up", "down")
_SAME = {
    "input_layernorm": "attn_norm",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "post_attention_layernorm": "ffn_norm",
}
Tensors = dict[str, NDArray[Any]]


def check(network: StockNetwork) -> None:
    """Raise BadInput unless the network has the shape that :mod:`byheart.compiler.stock.architectures` makes."""
    config = network.config
    heads, d_head = config["num_attention_heads"], config.get("head_dim", 0)
    fits = heads == config["num_key_value_heads"] == 1 and d_head and config["hidden_size"] % d_head == 0
    ours = config["num_experts_per_tok"] == 1 and config["shared_expert_intermediate_size"] == 0
    if not fits or not ours or not config.get("tie_word_embeddings", False):
        expected = "expected one that `byheart compile --layout experts` made: one head, one expert per token"
        raise BadInput(f"llama.cpp has no model for this Qwen2-MoE; {expected}, none shared, tied embeddings")


def tensors(network: StockNetwork) -> Tensors:
    """Return every tensor by llama.cpp's name, and the zeros between them."""
    given, config = network.weights, network.config
    embedding = given["model.embed_tokens.weight"]
    kept: Tensors = {"token_embd": embedding, "output_norm": given["model.norm.weight"], "output": embedding}
    empty = _experts(config)
    for layer in range(config["num_hidden_layers"]):
        own = {name.removesuffix(".weight"): tensor for name, tensor in _of_layer(given, layer)}
        for name, tensor in {**_attention(own, config["hidden_size"]), **_block(own, empty, config)}.items():
            kept[f"blk.{layer}.{name}"] = tensor
    return {f"{name}.weight": tensor for name, tensor in kept.items()}


def sizes(config: Mapping[str, Any]) -> dict[str, int]:
    """Return the sizes in the file's head that differ from a Llama's, or that a Llama lacks."""
    return {
        "attention.head_count": config["hidden_size"] // config["head_dim"],
        "expert_count": config["num_experts"],
        "expert_used_count": 1,
        "expert_feed_forward_length": config["moe_intermediate_size"],
        "expert_shared_feed_forward_length": config["intermediate_size"],
    }


def _of_layer(given: Mapping[str, NDArray[Any]], layer: int) -> Iterator[tuple[str, NDArray[Any]]]:
    prefix = f"model.layers.{layer}."
    return ((name.removeprefix(prefix), tensor) for name, tensor in given.items() if name.startswith(prefix))


def _attention(own: Mapping[str, NDArray[Any]], width: int) -> Tensors:
    """Return the tensors of attention. No row changes its place: for this model llama.cpp turns halves, as we do."""
    kept = {new: own[old] for old, new in _SAME.items()}
    W_Q, W_O = (np.zeros((width, width), np.float32) for _ in range(2))
    d_head = len(own["self_attn.q_proj"])
    W_Q[:d_head], W_O[:, :d_head] = own["self_attn.q_proj"], own["self_attn.o_proj"]
    return {**kept, "attn_q": W_Q, "attn_output": W_O}


def _block(own: Mapping[str, NDArray[Any]], empty: Tensors, config: Mapping[str, Any]) -> Tensors:
    """Return a layer's feed-forward tensors: its experts, or ``empty`` ones and its dense block as shared expert."""
    width, units = config["hidden_size"], config["intermediate_size"]
    shared = np.zeros(width, np.float32)
    shared[0] = OPEN
    kept: Tensors = {**empty, "ffn_gate_inp_shexp": shared}
    for part in _PARTS:
        nothing = np.zeros((width, units) if part == "down" else (units, width), np.float32)
        kept[f"ffn_{part}_shexp"] = own.get(f"mlp.{part}_proj", nothing)
    if "mlp.gate" in own:
        kept["ffn_gate_inp"] = own["mlp.gate"]
        for part in _PARTS:
            every = [own[f"mlp.experts.{number}.{part}_proj"] for number in range(config["num_experts"])]
            kept[f"ffn_{part}_exps"] = np.stack(every)
    return kept


def _experts(config: Mapping[str, Any]) -> Tensors:
    """Return the experts of a layer that has none: zeros, which all such layers share in memory."""
    count, units, width = (config[name] for name in ("num_experts", "moe_intermediate_size", "hidden_size"))
    rows = np.zeros((count, units, width), np.float32)
    kept = {"ffn_gate_inp": np.zeros((count, width), np.float32), "ffn_gate_exps": rows, "ffn_up_exps": rows}
    return {**kept, "ffn_down_exps": rows.reshape(count, width, units)}

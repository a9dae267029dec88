"""A Llama's logits without transformers: its own operations, in its own order."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear, scaled_dot_product_attention, silu

from byheart.networks.stock.stock_network import StockNetwork


@torch.no_grad()
def logits(network: StockNetwork, tokens: Tensor) -> Tensor:
    """[B, vocab]: what follows the last of ``tokens`` [B, T]."""
    config = network.config
    tensors = {name: torch.tensor(tensor) for name, tensor in network.tensors()}
    weight = tensors["model.embed_tokens.weight"]
    stream = embedding(tokens, weight)
    turn = _turn(config, tokens.shape[1], weight.device)
    for number in range(config["num_hidden_layers"]):
        name = f"model.layers.{number}"
        seen = _norm(stream, tensors[f"{name}.input_layernorm.weight"])
        q, k, v = (linear(seen, tensors[f"{name}.self_attn.{part}_proj.weight"]).unsqueeze(1) for part in "qkv")
        mixed = scaled_dot_product_attention(_turned(q, turn), _turned(k, turn), v, is_causal=True).squeeze(1)
        stream = stream + linear(mixed, tensors[f"{name}.self_attn.o_proj.weight"])
        seen = _norm(stream, tensors[f"{name}.post_attention_layernorm.weight"])
        hidden = silu(linear(seen, tensors[f"{name}.mlp.gate_proj.weight"]))
        hidden = hidden * linear(seen, tensors[f"{name}.mlp.up_proj.weight"])
        stream = stream + linear(hidden, tensors[f"{name}.mlp.down_proj.weight"])
    return linear(_norm(stream[:, -1], tensors["model.norm.weight"]), weight)


def _norm(stream: Tensor, weight: Tensor) -> Tensor:
    return weight * (stream * torch.rsqrt(stream.pow(2).mean(-1, keepdim=True) + 1e-6))


def _turn(config: Mapping[str, Any], length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    dim, theta = config["head_dim"], config["rope_parameters"]["rope_theta"]
    speed = 1.0 / (theta ** (torch.arange(0, dim, 2, dtype=torch.float, device=device) / dim))
    angle = torch.arange(length, device=device).float()[:, None] * speed
    both = torch.cat([angle, angle], dim=-1)
    return both.cos(), both.sin()


def _turned(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    half = x.shape[-1] // 2
    return x * turn[0] + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * turn[1]

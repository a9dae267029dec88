"""A GPT as PyTorch's modules make it: what the lab's stacked one is compared with."""

import torch
from torch import nn
from torch.nn import functional


class GPT(nn.Module):
    """From token ids [B, n] to logits of labels at every position, [B, n, C]."""

    def __init__(self, shape) -> None:
        super().__init__()
        d = shape.model_dim
        self.shape = shape
        self.tokens = nn.Embedding(shape.rows, d)
        self.positions = nn.Embedding(shape.length, d)
        self.blocks = nn.ModuleList([_Block(shape) for _ in range(shape.layers)])
        self.norm = nn.LayerNorm(d, eps=1e-5)
        self.unembedding = None if shape.tied else nn.Linear(d, shape.labels, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        stream = self.tokens(tokens) + self.positions.weight
        for block in self.blocks:
            stream = block(stream)
        table = self.tokens.weight[: self.shape.labels] if self.unembedding is None else self.unembedding.weight
        return functional.linear(self.norm(stream), table)


class _Block(nn.Module):
    def __init__(self, shape) -> None:
        super().__init__()
        d = shape.model_dim
        self.heads = shape.heads
        self.norm_1, self.norm_2 = (nn.LayerNorm(d, eps=1e-5) for _ in range(2))
        self.W_Q = nn.Linear(d, d, bias=False)
        self.W_KV = nn.Linear(d, 2 * d, bias=False)
        self.W_O = nn.Linear(d, d, bias=False)
        self.W_in = nn.Linear(d, shape.hidden)
        self.W_out = nn.Linear(shape.hidden, d)

    def forward(self, stream: torch.Tensor) -> torch.Tensor:
        normed = self.norm_1(stream)
        K, V = self.W_KV(normed).chunk(2, dim=-1)
        Q, K, V = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.W_Q(normed), K, V))
        mixed = functional.scaled_dot_product_attention(Q, K, V, is_causal=True)
        stream = stream + self.W_O(mixed.transpose(1, 2).flatten(2))
        return stream + self.W_out(functional.gelu(self.W_in(self.norm_2(stream))))

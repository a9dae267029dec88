"""Parts that several models share: first weights, lookups in each model's table, affine maps, attention, positions."""

import math
from collections.abc import Mapping
from functools import lru_cache

import torch
from torch.nn import functional

from byheart.lab.member import Tensors

Shape = tuple[int, ...]
MAX_PAIRS = 16
"""Largest number of pairs of positions that are multiplied entry by entry instead of as a matrix per context."""


def uniform(shapes: Mapping[str, Shape], bounds: Mapping[str, float], generator: torch.Generator) -> Tensors:
    """Draw float64 tensors of these shapes, with entries uniform between plus and minus their bounds."""
    return {
        name: torch.empty(shape, dtype=torch.float64).uniform_(-bounds[name], bounds[name], generator=generator)
        for name, shape in shapes.items()
    }


def looked_up(tables: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Return rows [M, B, n, d] for tokens [M, B, n], each model's from its own table of [M, ω, d].

    >>> looked_up(torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]]]), torch.tensor([[[0, 1]], [[1, 1]]])).flatten().tolist()
    [1.0, 2.0, 4.0, 4.0]
    """
    M, vocab, _ = tables.shape
    first_rows = torch.arange(M, device=tokens.device)[:, None, None] * vocab
    return functional.embedding(tokens + first_rows, tables.flatten(0, 1))


def affine(inputs: torch.Tensor, weights: torch.Tensor, biases: torch.Tensor) -> torch.Tensor:
    """Return x W + b [M, B, C] for inputs x [M, B, d], weights [M, d, C] and biases [M, C].

    For one model this is an addmm, which adds the bias while it multiplies; a baddbmm writes it out beforehand.

    >>> affine(torch.ones(1, 1, 2), torch.ones(1, 2, 1), torch.ones(1, 1)).tolist()
    [[[3.0]]]
    """
    if len(inputs) == 1:
        return torch.addmm(biases[0], inputs[0], weights[0])[None]
    return torch.baddbmm(biases[:, None], inputs, weights)


def causal_attention(heads: int, Q: torch.Tensor, KV: torch.Tensor) -> torch.Tensor:
    """Return averages of values [M, B, m, d], for queries Q [M, B, m, d] of the last m places and KV [M, B, n, 2d].

    Keys and values are side by side in KV. Scores are divided by the root of d / ``heads``.

    >>> KV = torch.tensor([[[[0.0, 1.0], [0.0, 5.0]]]])  # keys of 0: every place has the mean of the values so far
    >>> causal_attention(1, torch.ones(1, 1, 2, 1), KV).flatten().tolist()
    [1.0, 3.0]
    """
    m, n, head_dim = Q.shape[2], KV.shape[2], Q.shape[3] // heads
    scale: float = head_dim**-0.5
    future = torch.ones(m, n, dtype=torch.bool, device=Q.device).triu(1 + n - m)
    K, V = KV.chunk(2, dim=-1)
    Q, K, V = (part.view(*part.shape[:-1], heads, head_dim).transpose(2, 3) for part in (Q, K, V))
    if m * n > MAX_PAIRS:
        scores = Q @ K.mT * scale
        mixed = scores.masked_fill(future, -torch.inf).softmax(dim=-1) @ V
    else:
        scores = (Q.unsqueeze(-2) * K.unsqueeze(-3)).sum(dim=-1) * scale
        shares = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
        mixed = (shares.unsqueeze(-1) * V.unsqueeze(-3)).sum(dim=-2)
    return mixed.transpose(2, 3).flatten(3)


@lru_cache(maxsize=64)
def sinusoids(length: int, dim: int, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """Return the positions of Vaswani et al. 2017, [``length``, ``dim``]: sin and cos of s · 10000^(−2i/dim) for s ≥ 0.

    Sines are in the even coordinates, cosines in the odd ones. The tensor is cached, because a step that is recorded as
    a CUDA graph must find it at the same address.

    >>> sinusoids(2, 4, torch.device("cpu"), torch.float64)[1].round(decimals=4)
    tensor([0.8415, 0.5403, 0.0100, 1.0000], dtype=torch.float64)
    """
    rates = torch.exp(torch.arange(0, dim, 2, dtype=torch.float64) * (-math.log(10000.0) / dim))
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :dim].to(device, dtype)

"""Parts that several models share: first weights, lookups in each model's own table, affine maps, positions."""

import math
from collections.abc import Mapping
from functools import lru_cache

import torch
from torch.nn import functional

from byheart.lab.member import Tensors

Shape = tuple[int, ...]


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

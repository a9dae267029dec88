"""Sinusoidal positions, as in Vaswani et al. 2017: sines in the even coordinates, cosines in the odd ones."""

import math
from functools import lru_cache

import torch


@lru_cache(maxsize=64)
def sinusoids(length: int, dim: int, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """Positions 0 … ``length`` − 1, [``length``, ``dim``]: sin and cos of s · 10000^(−2i/dim), i < dim/2.

    Kept once made: a step that is recorded as a CUDA graph must find them where they were.

    >>> sinusoids(2, 4, torch.device("cpu"), torch.float64)[1].round(decimals=4)
    tensor([0.8415, 0.5403, 0.0100, 1.0000], dtype=torch.float64)
    """
    rates = torch.exp(torch.arange(0, dim, 2, dtype=torch.float64) * (-math.log(10000.0) / dim))
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :dim].to(device, dtype)

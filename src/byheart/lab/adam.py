"""A step of Adam for many models at once, with one learning rate per model.

Weights, gradients and both moments of M models with P parameters are matrices [M, P]. The arithmetic is that of
torch.optim.Adam:

    m ← m + (1 − β₁)(g − m),   v ← β₂ v + (1 − β₂) g²,   w ← w − s · m/(√v/r + ε),

with s = rate/(1 − β₁ᵗ) per model, [M, 1], and r = √(1 − β₂ᵗ), [1, 1]. PyTorch's operations pass over matrices
twenty-two times, and memory takes the time on a GPU. If Triton is installed (it comes with PyTorch for CUDA), float32
matrices on a GPU use one kernel that passes over them seven times (:mod:`byheart.lab.fused.operations`).
"""

import torch

from byheart.lab.fused import kernels_for
from byheart.lab.schedules import EPSILON

Pair = tuple[torch.Tensor, torch.Tensor]


def adam_(
    weights: torch.Tensor, gradients: torch.Tensor, moments: Pair, factors: Pair, betas: tuple[float, float]
) -> None:
    """Update contiguous ``weights`` and ``moments`` in place; ``factors`` are s and r."""
    kernels = kernels_for(weights)
    if kernels is not None:
        kernels.adam_(weights, gradients, moments, factors, betas)
    else:
        plain_adam_(weights, gradients, moments, factors, betas)


def plain_adam_(
    weights: torch.Tensor, gradients: torch.Tensor, moments: Pair, factors: Pair, betas: tuple[float, float]
) -> None:
    """Update weights and moments like :func:`adam_`, by PyTorch's own operations."""
    (first, second), (sizes, roots) = moments, factors
    first.lerp_(gradients, 1 - betas[0])
    second.mul_(betas[1]).addcmul_(gradients, gradients, value=1 - betas[1])
    spread = second.sqrt().div_(roots).add_(EPSILON)
    weights.sub_(first.div(spread).mul_(sizes))

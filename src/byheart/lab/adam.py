"""A step of Adam for many models at once, each with a learning rate of its own.

M models of P parameters: weights, gradients and both moments are matrices [M, P]. The arithmetic is torch.optim.Adam's:

    m ← m + (1 − β₁)(g − m),   v ← β₂ v + (1 − β₂) g²,   w ← w − s · m/(√v/r + ε),

s = rate/(1 − β₁ᵗ) for each model, [M, 1], and r = √(1 − β₂ᵗ), [1, 1]. Out of PyTorch's operations this passes over
matrices twenty-two times, and on a GPU it is memory that takes the time. Where Triton is (it comes with PyTorch for
CUDA), float32 matrices on a GPU go through one kernel that passes seven times (:mod:`byheart.lab.fused.operations`).
"""

import torch

from byheart.lab.fused import kernels_for
from byheart.lab.schedules import EPSILON

Pair = tuple[torch.Tensor, torch.Tensor]


def adam_(
    weights: torch.Tensor, gradients: torch.Tensor, moments: Pair, factors: Pair, betas: tuple[float, float]
) -> None:
    """Change ``weights`` and ``moments`` where they are; all matrices are contiguous. ``factors`` are s and r."""
    kernels = kernels_for(weights)
    if kernels is not None:
        kernels.adam_(weights, gradients, moments, factors, betas)
    else:
        plain_adam_(weights, gradients, moments, factors, betas)


def plain_adam_(
    weights: torch.Tensor, gradients: torch.Tensor, moments: Pair, factors: Pair, betas: tuple[float, float]
) -> None:
    """The same out of PyTorch's own operations."""
    (first, second), (sizes, roots) = moments, factors
    first.lerp_(gradients, 1 - betas[0])
    second.mul_(betas[1]).addcmul_(gradients, gradients, value=1 - betas[1])
    spread = second.sqrt().div_(roots).add_(EPSILON)
    weights.sub_(first.div(spread).mul_(sizes))

"""Adam for many models at once: the learning rate of each at each step, and the step itself.

Weights, gradients and both moments of M models with P parameters are matrices [M, P]. The arithmetic is that of
torch.optim.Adam:

    m ← m + (1 − β₁)(g − m),   v ← β₂ v + (1 − β₂) g²,   w ← w − s · m/(√v/r + ε),

with s = rate/(1 − β₁ᵗ) per model, [M, 1], and r = √(1 − β₂ᵗ), [1, 1]. These are PyTorch's operations on every device: a
kernel that passed over the matrices once was worth 0 to 3 % of a GPU's steps (docs/lab.md).
"""

import numpy as np
import torch

from byheart.lab.member import EPSILON, Training
from byheart.tasks.arrays import Floats

WARM_UP_FROM = 0.01
"""Share of the learning rate at the first step of a warm-up."""

Pair = tuple[torch.Tensor, torch.Tensor]


def learning_rates(training: Training, examples: int, steps: Floats) -> Floats:
    """Return the rate of each of the ``steps``, which count from 0; it is 0 after the last step.

    >>> training = Training(batch=5, steps=8, learning_rate=1.0, last_learning_rate=0.2, schedule="linear-by-epoch")
    >>> learning_rates(training, examples=10, steps=np.arange(9.0))
    array([1. , 1. , 0.8, 0.8, 0.6, 0.6, 0.4, 0.4, 0. ])
    """
    first, last = training.learning_rate, training.last_learning_rate
    if training.schedule == "linear-by-epoch":
        epochs = training.steps * training.batch / examples
        rates = first + (last - first) * np.minimum(np.floor(steps * training.batch / examples) / epochs, 1)
    elif training.schedule == "warm-up-cosine":
        used, warm_up = steps / training.steps, training.warm_up
        warm = WARM_UP_FROM + (1 - WARM_UP_FROM) * used / (warm_up or 1)
        cosine = 0.5 + 0.5 * np.cos(np.pi * np.clip((used - warm_up) / (1 - warm_up), 0, 1))
        rates = np.where(used < warm_up, first * warm, last + (first - last) * cosine)
    else:
        rates = np.full_like(steps, first)
    return np.where(steps < training.steps, rates, 0.0)


def step_sizes(rates: Floats, steps: Floats, beta: float) -> Floats:
    """Return the factor of the ratio of Adam's moments: rate/(1 − β₁ᵗ), with t = 1 for the first step."""
    return rates / (1 - beta ** (steps + 1))


def root_corrections(steps: Floats, beta: float) -> Floats:
    """Return the divisor of the root of Adam's second moment: √(1 − β₂ᵗ)."""
    return np.sqrt(1 - beta ** (steps + 1))


def adam_(
    weights: torch.Tensor, gradients: torch.Tensor, moments: Pair, factors: Pair, betas: tuple[float, float]
) -> None:
    """Update ``weights`` and ``moments`` in place; ``factors`` are s and r."""
    (first, second), (sizes, roots) = moments, factors
    first.lerp_(gradients, 1 - betas[0])
    second.mul_(betas[1]).addcmul_(gradients, gradients, value=1 - betas[1])
    spread = second.sqrt().div_(roots).add_(EPSILON)
    weights.sub_(first.div(spread).mul_(sizes))

"""Learning rates by step, and Adam's corrections of its bias."""

import numpy as np

from byheart.lab.member import Training
from byheart.tasks.checks import Floats

BETAS = (0.9, 0.999)
EPSILON = 1e-8
WARM_UP, WARM_UP_FROM = 0.05, 0.01  # share of the steps, share of the rate


def learning_rates(training: Training, examples: int, steps: Floats) -> Floats:
    """The rate of each of the ``steps``, which count from 0; none from the last one on.

    >>> training = Training(batch=5, steps=8, learning_rate=1.0, last_learning_rate=0.2, schedule="linear-by-epoch")
    >>> learning_rates(training, examples=10, steps=np.arange(9.0))
    array([1. , 1. , 0.8, 0.8, 0.6, 0.6, 0.4, 0.4, 0. ])
    """
    first, last = training.learning_rate, training.last_learning_rate
    if training.schedule == "linear-by-epoch":
        epochs = training.steps * training.batch / examples
        rates = first + (last - first) * np.minimum(np.floor(steps * training.batch / examples) / epochs, 1)
    elif training.schedule == "warm-up-cosine":
        used = steps / training.steps
        warm = WARM_UP_FROM + (1 - WARM_UP_FROM) * used / WARM_UP
        cosine = 0.5 + 0.5 * np.cos(np.pi * np.clip((used - WARM_UP) / (1 - WARM_UP), 0, 1))
        rates = np.where(used < WARM_UP, first * warm, last + (first - last) * cosine)
    else:
        rates = np.full_like(steps, first)
    return np.where(steps < training.steps, rates, 0.0)


def step_sizes(rates: Floats, steps: Floats) -> Floats:
    """What Adam multiplies the ratio of its moments by: rate/(1 − β₁ᵗ), t = 1 for the first step."""
    return rates / (1 - BETAS[0] ** (steps + 1))


def root_corrections(steps: Floats) -> Floats:
    """What the root of Adam's second moment is divided by: √(1 − β₂ᵗ)."""
    return np.sqrt(1 - BETAS[1] ** (steps + 1))

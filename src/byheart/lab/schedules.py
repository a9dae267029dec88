"""Learning rates by step, and Adam's corrections of its bias."""

import numpy as np

from byheart.lab.member import Training
from byheart.tasks.arrays import Floats

EPSILON = 1e-8
WARM_UP_FROM = 0.01  # share of the rate
"""Share of the learning rate at the first step of a warm-up."""


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

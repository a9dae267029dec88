"""Exact networks: layers of integers over powers of two, and their evaluation; see :mod:`.exact.layers`.

Importing this needs numpy only; evaluation (numba), the reference evaluation (python-flint) and the PyTorch twins are
modules of their own: ``evaluate``, ``reference``, ``floats``; ``enclose`` is for networks with softmax attention.
"""

from byheart.networks.exact.integers import Integers, integers
from byheart.networks.exact.layers import (
    Affine,
    Block,
    Embedding,
    FeedForward,
    Flatten,
    HardmaxAttention,
    Layer,
    Positions,
    Residual,
    SoftmaxAttention,
    TokenSum,
    UniformAttention,
)
from byheart.networks.exact.network import ExactNetwork

__all__ = [
    "Affine",
    "Block",
    "Embedding",
    "ExactNetwork",
    "FeedForward",
    "Flatten",
    "HardmaxAttention",
    "Integers",
    "Layer",
    "Positions",
    "Residual",
    "SoftmaxAttention",
    "TokenSum",
    "UniformAttention",
    "integers",
]

"""Exact networks: layers of integers over powers of two, and their evaluation; see :mod:`.exact.layers`.

Importing this needs numpy only; evaluation (numba), the reference evaluation (python-flint) and the PyTorch twins are
modules of their own: ``evaluate``, ``reference``, ``floats``; ``enclose`` is for networks with softmax attention.
"""

from byheart.networks.exact.exact_layers import (
    Affine,
    Block,
    Embedding,
    FeedForward,
    Flatten,
    HardmaxAttention,
    Integers,
    Layer,
    Positions,
    Residual,
    SoftmaxAttention,
    TokenSum,
    UniformAttention,
    integers,
)
from byheart.networks.exact.exact_network import ExactNetwork

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

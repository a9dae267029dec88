"""What a network is: exact layers, the one counter, evaluation, saving and loading, and PyTorch twins.

Importing this room needs numpy only; evaluation (numba), the reference evaluation (python-flint) and the PyTorch twins
are modules of their own: :mod:`~byheart.networks.evaluate`, :mod:`~byheart.networks.reference`,
:mod:`~byheart.networks.floats`; :mod:`~byheart.networks.enclose` is for networks with softmax attention.
"""

from byheart.networks.account import Account, Item, count
from byheart.networks.integers import Integers, bits, integers
from byheart.networks.layers import (
    Affine,
    Block,
    Embedding,
    FeedForward,
    Flatten,
    HardmaxAttention,
    Layer,
    Network,
    Positions,
    Residual,
    SoftmaxAttention,
    UniformAttention,
)

__all__ = [
    "Account",
    "Affine",
    "Block",
    "Embedding",
    "FeedForward",
    "Flatten",
    "HardmaxAttention",
    "Integers",
    "Item",
    "Layer",
    "Network",
    "Positions",
    "Residual",
    "SoftmaxAttention",
    "UniformAttention",
    "bits",
    "count",
    "integers",
]

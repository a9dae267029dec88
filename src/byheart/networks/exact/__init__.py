"""Exact networks: layers of integers over powers of two, and their evaluation.

Importing this needs numpy only. Evaluation (numba), the reference evaluation (python-flint) and PyTorch modules are in
``evaluate``, ``reference`` and ``floats``; ``enclose`` is for networks with softmax attention.

**To add a layer**, add a class to ``exact_layers``, its description to ``format``, its width and size to
``exact_network``, and a case to every evaluator that is meant to know it: ``evaluate`` and ``reference`` at least. They
are different algorithms on purpose (24-bit limbs for batches, rational matrices, intervals, machine integers): the
certificate's second opinion rests on that. ``enclose``, ``fits``, ``floats`` and ``collapse`` refuse other layers.
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

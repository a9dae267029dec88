"""Networks that were trained: blocks of steps, evaluated in float64 and enclosed in ball arithmetic."""

from byheart.networks.trained.steps import (
    Activation,
    AffineMap,
    Norm,
    PositionTable,
    StepSequence,
    TokenTable,
    TrainedAttention,
)
from byheart.networks.trained.trained_network import Inputs, TrainedNetwork

__all__ = [
    "Activation",
    "AffineMap",
    "Inputs",
    "Norm",
    "PositionTable",
    "StepSequence",
    "TokenTable",
    "TrainedAttention",
    "TrainedNetwork",
]

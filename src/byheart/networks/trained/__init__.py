"""Networks that were trained: blocks of a few kinds of steps, evaluated in float64 and enclosed in ball arithmetic."""

from byheart.networks.reading import Inputs
from byheart.networks.trained.network import TrainedNetwork
from byheart.networks.trained.steps import Activation, Affine, Attention, Block, Embedding, Norm, Positions

__all__ = [
    "Activation",
    "Affine",
    "Attention",
    "Block",
    "Embedding",
    "Inputs",
    "Norm",
    "Positions",
    "TrainedNetwork",
]

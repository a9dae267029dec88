"""One-layer softmax Transformers with real weights: evaluated in float64, and enclosed in ball arithmetic."""

from byheart.networks.reading import Inputs
from byheart.networks.softmax.softmax_network import SoftmaxNetwork, evaluate

__all__ = ["Inputs", "SoftmaxNetwork", "evaluate"]

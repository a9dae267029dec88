"""One-layer softmax Transformers with real weights: evaluated in float64, and enclosed in ball arithmetic."""

from byheart.networks.softmax.network import Inputs, SoftmaxNetwork, count, evaluate
from byheart.networks.softmax.store import Loaded, fingerprint, load, save

__all__ = ["Inputs", "Loaded", "SoftmaxNetwork", "count", "evaluate", "fingerprint", "load", "save"]

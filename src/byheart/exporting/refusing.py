"""Errors for networks that another program has no model for."""

from byheart.errors import BadInput
from byheart.networks import Network
from byheart.networks.folders import NAMES

_INSTEAD = {
    "exact": "its entries are integers of any size, which floats do not hold; `byheart compile` makes float networks",
    "softmax": "byheart.lens makes a model of TransformerLens of it, if it is of dana-2025",
    "trained": "if it is a GPT-2, it is in Hugging Face's format, and their converters take it",
    "transformer": "compile the same with --layout uniform or experts, or export it with --onnx",
}


def refused(network: Network, where: str) -> BadInput:
    """Return the error for a network that ``where`` cannot run: its kind, and what to do instead."""
    return BadInput(f"{where} has no model for {NAMES[network.kind]}; {_INSTEAD[network.kind]}")

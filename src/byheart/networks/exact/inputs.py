"""What goes into a network, checked before it does."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.networks.exact.layers import Embedding
from byheart.networks.exact.network import ExactNetwork

Inputs: TypeAlias = NDArray[np.int64] | NDArray[np.float64]
"""Token ids [N, n] or vectors [N, n, d]."""


def check_inputs(network: ExactNetwork, inputs: Inputs) -> None:
    """Refuse inputs that the network cannot read, saying what it reads and what was given."""
    kind = "tokens" if inputs.ndim == 2 else "vectors"
    if kind != network.inputs:
        raise BadInput(f"the network reads {network.inputs}; the task has {kind}")
    if kind == "tokens" and not np.issubdtype(inputs.dtype, np.integer):
        raise BadInput(f"the network reads token ids; the task's are {inputs.dtype}")
    if inputs.shape[1] != network.length:
        raise BadInput(f"the network reads sequences of {network.length} tokens; the task's have {inputs.shape[1]}")
    if kind == "vectors" and inputs.shape[2] != network.dim:
        raise BadInput(f"the network reads vectors of dimension {network.dim}; the task's have {inputs.shape[2]}")
    if network.layers and isinstance(network.layers[0], Embedding):
        known = len(network.layers[0].W_E)
        for token in (int(inputs.min()), int(inputs.max())):
            if not 0 <= token < known:
                raise BadInput(f"the network knows {known} tokens; the task has token id {token}")


def require_rational(network: ExactNetwork) -> None:
    """Refuse networks whose outputs are real numbers, which no exact evaluation can write down."""
    if not network.rational:
        raise BadInput(
            "softmax attention gives real numbers, which exact evaluation cannot write down; "
            "enclose them (byheart.networks.exact.enclose)"
        )

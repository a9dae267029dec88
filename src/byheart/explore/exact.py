"""Exact networks on five sequences, small enough to be read: every weight, as decimal digits.

The page evaluates them with integers of any size; a division that left a rest would stop it.
"""

from typing import Any

from byheart.constructions import build
from byheart.errors import BadInput
from byheart.networks.exact import ExactNetwork
from byheart.networks.exact.exact_layers import Affine, Embedding, FeedForward, Layer, UniformAttention
from byheart.tasks import NextToken

SEQUENCES, LABELS = [[0, 1, 2], [1, 1, 3], [2, 0, 0], [3, 2, 1], [3, 3, 0]], [2, 0, 1, 1, 2]
"""Five sequences of three tokens out of four, and a label each."""
TASK = NextToken(tokens=SEQUENCES, labels=LABELS)
CONSTRUCTIONS = {
    "kajitsuka-sato-2025": "the theorem: codes, one sum, then the label is looked up in groups",
    "interpolate": "the plainest network: a straight line from key to key",
    "folding": "ours: no key is stored; the label is a digit of a sum of words",
}

ROLES = {
    "fold": "values beyond a threshold are mirrored back",
    "key": "half of it: the key of the sequence",
    "steps": "two ReLUs per step show which keys are below",
    "groups": "the steps select the number that is stored for the key's group",
    "read": "a spike: its height at the distance to the entry is the label",
    "turns": "a zigzag that turns once between two neighbouring keys",
    "words": "ReLUs that the hash opens or closes; an open one adds a word",
    "sum": "the sum of the open words",
    "step": "steps between the digits",
    "answer": "the label",
}
"""Description of each role of layers, in a few words."""


def shown() -> dict[str, Any]:
    """Return the sequences, and for each construction a network that has memorized them, as JSON for the page."""
    networks = []
    for name, summary in CONSTRUCTIONS.items():
        network = build(name, TASK).network
        assert isinstance(network, ExactNetwork)
        layers = [_layer(layer) for layer in network.layers]
        networks.append({"name": name, "summary": summary, "parameters": network.account.dense, "layers": layers})
    return {"sequences": SEQUENCES, "labels": LABELS, "networks": networks, "roles": ROLES}


def _layer(layer: Layer) -> dict[str, Any]:
    match layer:
        case Embedding(W_E=W_E):
            return {"kind": "embedding", "name": layer.name, "W_E": _digits(W_E)}
        case UniformAttention(W_V=W_V, W_O=W_O):
            return {"kind": "attention", "name": layer.name, "W_V": _digits(W_V), "W_O": _digits(W_O)}
        case FeedForward(layers=layers, residual=residual):
            steps = [_affine(affine) for affine in layers]
            return {"kind": "feed-forward", "name": layer.name, "residual": residual, "layers": steps}
    raise BadInput(
        f"{layer.name} is {type(layer).__name__}; the explorer shows embeddings, uniform attention and ReLUs"
    )


def _affine(affine: Affine) -> dict[str, Any]:
    W, b = _digits(affine.W), _digits(affine.b)
    return {"role": affine.role, "W": W, "b": b, "shift": affine.shift, "relu": affine.relu}


def _digits(values: Any) -> Any:
    """Write integers of any size as text, in nested lists of the array's shape."""
    return [_digits(value) for value in values] if getattr(values, "ndim", 0) else str(values)

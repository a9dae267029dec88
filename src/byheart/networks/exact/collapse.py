"""A Transformer on constant sequences is a plain ReLU network: which one, weight by weight.

Theorem. Let all n tokens of a sequence be equal. Then the rows of the stream are equal behind every layer, and the
network answers what :func:`collapse` of it answers, which has no layer that looks at more than one row.

Proof, layer by layer; z is the row in front, the same n times.

- Token-wise layers without positions act on every row alike. They stay as they are.
- Attention: the rows are averaged with weights that are not negative and sum to one, whatever they are: 1/n, equal
  shares of the largest scores (all scores are equal), a softmax of equal scores; over the rows up to one's own if
  the layer is causal. The average of equal rows is z, so behind the layer every row is (I + W_O W_V / 2^shift)·z, and
  W_Q and W_K are gone.
- Positions that have the same code c everywhere: every row is z + c. With different codes equal tokens differ, and the
  network is refused.
- Flattening: the one row that is left is z, n times over, a linear function of z. ∎

The affine map is multiplied into the next layer if that is a chain of affine maps, or else into the one in front, or
into the embedding table; where none of them can take it, it is a layer of its own. All of it is arithmetic of integers,
so the equality is exact, for every real input. The collapsed network reads the same sequences, and answers by their
last token, or by every token for itself: on sequences that are not constant it is another function.

So a Transformer that memorizes every labelling of N constant sequences is a ReLU network that memorizes every labelling
of N points, and lower bounds on the one are lower bounds on the other (:mod:`byheart.bounds.vc`).
"""

from dataclasses import replace

import numpy as np

from byheart.errors import BadInput
from byheart.files.memory import check_memory
from byheart.networks.exact.exact_layers import (
    Affine,
    Embedding,
    FeedForward,
    Flatten,
    HardmaxAttention,
    Integers,
    Layer,
    Positions,
    SoftmaxAttention,
    TokenSum,
    UniformAttention,
    identity,
    integers,
    linear,
)
from byheart.networks.exact.exact_network import ExactNetwork

_TAKES = 64
"""Bytes per entry: an integer of any size in a few arrays."""


def collapse(network: ExactNetwork) -> ExactNetwork:
    """Return the plain ReLU network with the same outputs as ``network`` on all constant sequences.

    >>> attention = UniformAttention(W_V=integers([[3]]), W_O=integers([[2]]))  # z + 6 z = 7 z
    >>> relu = FeedForward((Affine(W=integers([[2]]), b=integers([-20])),))
    >>> small = collapse(ExactNetwork((attention, relu), inputs="tokens", outputs="last", length=5))
    >>> small.layers[0].layers[0].W, small.layers[0].layers[0].b
    (array([[14]], dtype=object), array([-20], dtype=object))
    """
    layers: list[Layer] = []
    waiting: Affine | None = None
    name = ""
    for layer, width in zip(network.layers, network.streams[:-1], strict=True):
        if (affine := _on_equal_rows(layer, width, network.length)) is not None:
            waiting, name = affine if waiting is None else _then(waiting, affine), layer.name
        elif waiting is None:
            layers.append(layer)
        elif isinstance(layer, FeedForward) and not layer.residual:
            layers.append(replace(layer, layers=(_then(waiting, layer.layers[0]), *layer.layers[1:])))
            waiting = None
        else:
            layers = [*_with_last(layers, waiting, name), layer]
            waiting = None
    if waiting is not None:
        layers = _with_last(layers, waiting, name)
    return replace(network, layers=tuple(layers), about={**network.about, "collapsed": network.fingerprint})


def _on_equal_rows(layer: Layer, width: int, length: int) -> Affine | None:
    """Return the affine map that a layer is on equal rows, or None for layers that stay as they are."""
    match layer:
        case UniformAttention(W_V=W_V, W_O=W_O) | HardmaxAttention(W_V=W_V, W_O=W_O):
            return _linear(identity(width) + W_O @ W_V)
        case SoftmaxAttention(W_V=W_V, W_O=W_O, shift=shift):
            return _linear((identity(width) << shift) + W_O @ W_V, shift)
        case TokenSum():
            return _linear(identity(width, 1 + 2 * length))
        case Flatten(name=name):
            check_memory(_TAKES * width**2 * length, f"{name}: {length:,} copies of a row")
            return _linear(np.concatenate([identity(width)] * length))
        case Positions(W_pos=codes, name=name):
            other = next((k for k in range(1, length) if (codes[k] != codes[0]).any()), None)
            if other is not None:
                reason = f"positions 0 and {other} have different codes, so equal tokens are told apart"
                raise BadInput(f"{name}: {reason}; expected a network without positions")
            return replace(_linear(identity(width)), b=codes[0])
        case _:
            return None


def _linear(W: Integers, shift: int = 0) -> Affine:
    return replace(linear(W), shift=shift, role="average")


def _then(first: Affine, second: Affine) -> Affine:
    """Return ``second`` after ``first``, which has no ReLU, as one map.

    (W₂(W₁x + b₁)/2^s₁ + b₂)/2^s₂ = (W₂W₁x + W₂b₁ + 2^s₁b₂)/2^(s₁+s₂).
    """
    b = second.W @ first.b + second.b * (1 << first.shift)
    return replace(second, W=integers(second.W @ first.W), b=integers(b), shift=first.shift + second.shift)


def _with_last(layers: list[Layer], waiting: Affine, name: str) -> list[Layer]:
    """Append an affine map to the layers: multiplied into the last layer if possible, else as one more layer."""
    match layers:
        case [*before, Embedding(W_E=table) as last] if waiting.shift == 0:
            return [*before, replace(last, W_E=integers(table @ waiting.W.T + waiting.b))]
        case [*before, FeedForward(layers=(*front, end), residual=False) as last] if not end.relu:
            joined = replace(_then(end, waiting), role=end.role)
            return [*before, replace(last, layers=(*front, joined))]
        case _:
            return [*layers, FeedForward((waiting,), name=name)]

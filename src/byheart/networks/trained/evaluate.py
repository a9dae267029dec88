"""A trained network in float64, on all examples at once: quick, and approximate."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from byheart.networks.reading import Inputs
from byheart.networks.softmax.softmax_network import softmax
from byheart.networks.trained.steps import (
    Activation,
    AffineMap,
    Norm,
    PositionTable,
    Step,
    StepSequence,
    TokenTable,
    TrainedAttention,
)
from byheart.networks.trained.trained_network import Floats, Ids, TrainedNetwork, check_inputs, lengths

CHUNK = 1 << 22
"""Entries of the largest array that an evaluation makes at a time, nearly."""


def evaluate(network: TrainedNetwork, inputs: Inputs) -> Floats:
    """The outputs float64 [N, C], in float64 arithmetic.

    >>> table = {"embedding.W_E": np.array([[1.0], [2.0]]), "unembedding.W_U": np.array([[1.0], [-1.0], [0.0]])}
    >>> network = TrainedNetwork((StepSequence((TokenTable("embedding.W_E"), AffineMap("unembedding.W_U"))),), table)
    >>> evaluate(network, (np.array([[0, 1]]), None))
    array([[ 2., -2.,  0.]])
    """
    check_inputs(network, inputs)
    sequences, queries = inputs
    heads, n = (
        max((step.heads for step in network.steps if isinstance(step, TrainedAttention)), default=1),
        sequences.shape[1],
    )
    each = max(1, CHUNK // (n * max(network.width, n * heads)))
    parts = []
    for start in range(0, len(sequences), each):
        chosen = slice(start, start + each)
        parts.append(_outputs(network, (sequences[chosen], None if queries is None else queries[chosen])))
    return np.concatenate(parts)


def _outputs(network: TrainedNetwork, inputs: Inputs) -> Floats:
    """Vectors stand one after the other, the query, where there is one, in front of its context."""
    sequences, queries = inputs
    evaluation = _Evaluation(network, asks=queries is not None)
    if queries is None:
        last = lengths(network, sequences) - 1
        stream = evaluation(np.minimum(sequences, network.vocab - 1))  # what pads is seen by nobody in front of it
    else:
        last = np.zeros(len(sequences), np.int64)
        stream = evaluation(np.concatenate([queries[:, None], sequences], axis=1))
    answers: Floats = stream[np.arange(len(stream)), last]
    return answers


class _Evaluation:
    """The steps as functions of streams [N, n, d]."""

    def __init__(self, network: TrainedNetwork, *, asks: bool) -> None:
        self.network, self.asks = network, asks
        self.weights = {name: tensor.astype(np.float64) for name, tensor in network.weights.items()}

    def __call__(self, stream: NDArray[Any]) -> Floats:
        for block in self.network.blocks:
            stream = self._block(block, stream)
        return np.asarray(stream, np.float64)

    def _block(self, block: StepSequence, stream: NDArray[Any]) -> NDArray[Any]:
        after = stream
        for step in block.steps:
            after = self._step(step, after)
        return stream[:, : after.shape[1]] + after if block.skip else after

    def _step(self, step: Step, x: NDArray[Any]) -> Floats:
        weights = self.weights
        result: Floats
        match step:
            case TokenTable():
                result = weights[step.W_E][x]
            case PositionTable():
                places = np.arange(x.shape[1])
                result = x + (sinusoids(places, x.shape[2]) if step.W_pos is None else weights[step.W_pos][places])
            case Norm():
                result = self._norm(step, x)
            case TrainedAttention():
                result = self._attention(step, x)
            case AffineMap():
                result = self._affine(x, step.W, step.b, step.rows)
            case Activation():
                result = FUNCTIONS[step.function](x)
        return result

    def _affine(self, x: Floats, W: str, b: str | None, rows: int | None = None) -> Floats:
        result: Floats = x @ self.weights[W][:rows].T
        return result if b is None else result + self.weights[b]

    def _norm(self, step: Norm, x: Floats) -> Floats:
        away = x - x.mean(axis=-1, keepdims=True)
        result: Floats = away / np.sqrt((away * away).mean(axis=-1, keepdims=True) + step.epsilon)
        result = result if step.gain is None else result * self.weights[step.gain]
        return result if step.bias is None else result + self.weights[step.bias]

    def _attention(self, step: TrainedAttention, x: Floats) -> Floats:
        """Of a query and its context only the query is left behind it, which does not see itself."""
        N, n, _ = x.shape
        q = self._affine(x, step.W_Q, step.b_Q).reshape(N, n, step.heads, -1) / math.sqrt(step.over)
        k = self._affine(x, step.W_K, step.b_K).reshape(N, n, step.heads, -1)
        v = self._affine(x, step.W_V, step.b_V).reshape(N, n, step.heads, -1)
        if self.asks:
            q, k, v, unseen = q[:, :1], k[:, 1:], v[:, 1:], np.zeros((1, n - 1), np.bool_)
        else:
            unseen = np.triu(np.ones((n, n), np.bool_), 1)
        scores = np.einsum("tahk,tshk->thas", q, k, optimize=True)
        averages = np.einsum("thas,tshv->tahv", softmax(np.where(unseen, -np.inf, scores)), v, optimize=True)
        return self._affine(averages.reshape(N, averages.shape[1], -1), step.W_O, step.b_O)


def sinusoids(places: Ids, dim: int) -> Floats:
    """Sines in the even coordinates, cosines in the odd ones, of s · 10000^(−2i/dim).

    >>> sinusoids(np.arange(2), 4)[1].round(4)
    array([0.8415, 0.5403, 0.01  , 1.    ])
    """
    angles = places[:, None] * np.exp(np.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    both: Floats = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(places), -1)[:, :dim]
    return both


def _gelu(x: Floats) -> Floats:
    result: Floats = 0.5 * x * (1 + erf(x / math.sqrt(2)))
    return result


def _gelu_tanh(x: Floats) -> Floats:
    result: Floats = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return result


def _relu(x: Floats) -> Floats:
    return np.maximum(x, 0.0)


FUNCTIONS: dict[str, Callable[[Floats], Floats]] = {
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "relu": _relu,
    "tanh": np.tanh,
}

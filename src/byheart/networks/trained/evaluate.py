"""A trained network in float64, on all examples at once: fast and approximate."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.networks.trained.steps import Ids, Numbers, TrainedAttention
from byheart.networks.trained.trained_network import Floats, Inputs, TrainedNetwork, lengths

CHUNK = 1 << 22
"""Approximate number of entries of the largest array in memory at a time."""


def evaluate(network: TrainedNetwork, inputs: Inputs) -> Floats:
    """Return the outputs float64 [N, C], in float64 arithmetic.

    >>> from byheart.networks.trained import AffineMap, StepSequence, TokenTable
    >>> table = {"embedding.W_E": np.array([[1.0], [2.0]]), "unembedding.W_U": np.array([[1.0], [-1.0], [0.0]])}
    >>> network = TrainedNetwork((StepSequence((TokenTable("embedding.W_E"), AffineMap("unembedding.W_U"))),), table)
    >>> evaluate(network, (np.array([[0, 1]]), None))
    array([[ 2., -2.,  0.]])
    """
    network.check_inputs(inputs)
    sequences, queries = inputs
    deep, heads, n = network.attentions > 1, network.heads, sequences.shape[1]
    each = max(1, CHUNK // (n * max(network.width, (n if deep else 1) * heads)))
    over, parts = Float64(network.weights), []
    for start in range(0, len(sequences), each):
        chosen = slice(start, start + each)
        parts.append(_outputs(network, over, (sequences[chosen], None if queries is None else queries[chosen])))
    return np.concatenate(parts)


def _outputs(network: TrainedNetwork, over: "Float64", inputs: Inputs) -> Floats:
    """Return the outputs of some examples.

    The stream is [N, n, d], with a query in front of its context. After the last attention it is [N, 1, d]: only the
    vectors remain at which an answer is read.
    """
    sequences, queries = inputs
    if queries is None:
        answers = lengths(network, sequences) - 1
        stream: NDArray[Any] = np.minimum(sequences, network.vocab - 1)  # padding is seen by nothing before it
    else:
        answers = np.zeros(len(sequences), np.int64)
        stream = np.concatenate([queries[:, None], sequences], axis=1)
    all_places = places = np.arange(stream.shape[1])[None]
    remaining = network.attentions
    for block in network.blocks:
        before = stream if block.skip else None
        for step in block.steps:
            if not isinstance(step, TrainedAttention):
                stream = step.apply(stream, places, over)
                continue
            remaining -= 1
            seen = stream if queries is None else stream[:, 1:]
            if remaining == 0:
                places = answers[:, None]
                stream = np.take_along_axis(stream, places[..., None], axis=1)
                before = None if before is None else np.take_along_axis(before, places[..., None], axis=1)
            is_seen = (all_places[:, : seen.shape[1]] <= places[..., None]) | (queries is not None)
            stream = _attended(step, stream, seen, is_seen, over, keys=queries is None, values=remaining > 0)
        stream = stream if before is None else before + stream
    if network.attentions == 0:
        stream = np.take_along_axis(stream, answers[:, None, None], axis=1)
    return np.asarray(stream[:, 0], np.float64)


def _attended(
    step: TrainedAttention,
    asking: Floats,
    seen: Floats,
    is_seen: NDArray[np.bool_],
    over: "Float64",
    *,
    keys: bool,
    values: bool,
) -> Floats:
    """Return the results [N, a, out] of attention; ``is_seen`` [N or 1, a, n] says which places a row sees."""
    (N, a, d), n = asking.shape, seen.shape[1]

    def mix(q: Floats, k: Floats, v: Floats) -> Floats:
        q, k, v = (x.reshape(N, -1, *x.shape[1:]) for x in (q, k, v))
        if k.shape[2] == 1:
            scores = np.einsum("tahk,tsk->thas", q, k[:, :, 0], optimize=True)
        else:
            scores = np.einsum("tahk,tshk->thas", q, k, optimize=True)
        weights = softmax(scores if is_seen.all() else np.where(is_seen[:, None], scores, -np.inf))
        if v.shape[2] == 1:
            averages = np.einsum("thas,tsv->tahv", weights, v[:, :, 0], optimize=True)
        else:
            averages = np.einsum("thas,tshv->tahv", weights, v, optimize=True)
        rows: Floats = averages.reshape(N * a, *averages.shape[2:])
        return rows

    flat = asking.reshape(N * a, d), np.ascontiguousarray(seen).reshape(N * n, d)
    return step.attend(*flat, over, mix, keys=keys, values=values).reshape(N, a, -1)


@np.errstate(over="ignore", invalid="ignore")
def softmax(scores: Floats) -> Floats:
    """Return the softmax over the last axis; nan where scores are beyond float64."""
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights: Floats = raised / raised.sum(axis=-1, keepdims=True)
    return weights


class Float64(Numbers):
    """Numbers of float64, rounded after every operation."""

    pi = math.pi
    tanh: Any = np.tanh

    def erfc(self, x: Floats) -> Floats:
        """Return the complementary error function of every number."""
        from scipy import special  # slow to import; only GELU needs it

        values: Floats = special.erfc(x)
        return values

    def exact(self, array: NDArray[Any]) -> Floats:
        """Return the same numbers as float64."""
        return array.astype(np.float64, copy=False)

    def matrix(self, array: NDArray[Any]) -> Floats:
        """Return a contiguous array."""
        return np.ascontiguousarray(array, np.float64)

    def product(self, x: Floats, matrix: Floats) -> Floats:
        """Return the matrix product."""
        result: Floats = x @ matrix
        return result

    def per_head(self, x: Floats, name: str, *, transposed: bool = False) -> Floats:
        """Return the products of all heads at once."""
        heads = self.tensor(name).reshape(x.shape[1], -1, self.weights[name].shape[1])
        result: Floats = np.einsum("ahc,hcd->ahd" if transposed else "ahd,hcd->ahc", x, heads, optimize=True)
        return result

    def sinusoids(self, places: Ids, dim: int) -> Floats:
        """Return sines and cosines of s·10000^(−2i/dim), alternating.

        >>> Float64({}).sinusoids(np.arange(2), 4)[1].round(4)
        array([0.8415, 0.5403, 0.01  , 1.    ])
        """
        angles = places[..., None] * np.exp(np.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        both: Floats = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
        return both.reshape(*places.shape, -1)[..., :dim]

    def scalar(self, numerator: int, denominator: int = 1) -> float:
        """Return the nearest float64."""
        return numerator / denominator

    def sqrt(self, x: float) -> float:
        """Return √x."""
        return math.sqrt(x)

    def rsqrt(self, x: Any) -> Any:
        """Return 1/√x."""
        return 1 / np.sqrt(x)

    @np.errstate(over="ignore")
    def exp(self, x: Floats) -> Floats:
        """Return e^x, or inf."""
        return np.exp(x)

    def relu(self, x: Floats) -> Floats:
        """Return max(x, 0)."""
        return np.maximum(x, 0.0)

"""Random attention, its features, and their gradients in the weights."""

from dataclasses import dataclass

import numpy as np

from byheart.constructions.dana_2025.sizes import DanaShape
from byheart.networks.softmax import SoftmaxNetwork, attention, embedded
from byheart.sizes import Size
from byheart.tasks.arrays import Floats, Ids

DRAWN = ("W_E", "W_pos", "W_Q", "W_K", "W_V")
"""Names of the weights that features depend on."""


def draw(
    tokens: Ids, size: Size, shape: DanaShape, W_U: Floats, sharpness: float, rng: np.random.Generator
) -> SoftmaxNetwork:
    """Draw the primed network: all weights random, W_O zero, and scores spread by ``sharpness`` in each head."""
    d, d_h, H = shape.d, shape.d_h, shape.H
    network = SoftmaxNetwork(
        W_E=rng.standard_normal((size.vocab, d)),
        W_pos=rng.standard_normal((size.length, d)),
        W_Q=rng.standard_normal((H, d, shape.query)),
        W_K=rng.standard_normal((H, d, shape.query)),
        W_V=rng.standard_normal((H, d, d_h)) / np.sqrt(d),
        W_O=np.zeros((H, d_h, d)),
        W_U=W_U,
        skip=True,
    )
    vectors, query = embedded(network, (tokens, None))
    scores = np.einsum("hdk,hek,te->thd", network.W_K, network.W_Q, query, optimize=True) @ vectors.transpose(0, 2, 1)
    spread = scores.std(axis=2).mean(axis=0)
    # Heads differ in sharpness, up to a factor of two either way: in few dimensions they differ in little else.
    target = sharpness * 2.0 ** rng.uniform(-1, 1, H)
    scale = np.where(spread > 0, target / np.where(spread > 0, spread, 1), 1)
    return network.with_tensor("W_Q", network.W_Q * scale[:, None, None])


def features(network: SoftmaxNetwork, tokens: Ids) -> Floats:
    """Return F [N, d + H·d_h]: the last token's vector beside the heads' values."""
    return Passed.through(network, tokens).features


@dataclass(frozen=True, eq=False)
class Passed:
    """The intermediate values of a network up to its features, kept for the gradient."""

    network: SoftmaxNetwork
    tokens: Ids
    vectors: Floats
    """Vectors x [N, n, d]."""
    weights: Floats
    """Attention weights a [N, H, n]."""
    averages: Floats
    """Averages of the heads [N, H, d]."""
    features: Floats
    """Features F [N, d + H·d_h]."""

    @classmethod
    def through(cls, network: SoftmaxNetwork, tokens: Ids) -> "Passed":
        """Compute the features of contexts [N, n] with all intermediate values."""
        vectors, query = embedded(network, (tokens, None))
        weights = attention(network, vectors, query)
        averages = weights @ vectors
        values = np.einsum("thd,hdk->thk", averages, network.W_V)
        return cls(network, tokens, vectors, weights, averages, np.hstack([query, values.reshape(len(tokens), -1)]))

    def back(self, slope: Floats) -> dict[str, Floats]:
        """Return the gradient in the weights DRAWN of a function whose gradient in the features is ``slope`` [N, F]."""
        network, x = self.network, self.vectors
        assert network.W_E is not None
        H, d, d_h = network.W_V.shape
        query, values = slope[:, :d].copy(), slope[:, d:].reshape(-1, H, d_h)
        averages = np.einsum("thk,hdk->thd", values, network.W_V, optimize=True)
        vectors = self.weights.transpose(0, 2, 1) @ averages
        weights = averages @ x.transpose(0, 2, 1)
        scores = self.weights * (weights - (self.weights * weights).sum(axis=2, keepdims=True))
        queries = np.einsum("ths,tsd,hdk->thk", scores, x, network.W_K, optimize=True)
        keys = scores[..., None] * np.einsum("td,hdk->thk", x[:, -1], network.W_Q, optimize=True)[:, :, None]
        query += np.einsum("thk,hdk->td", queries, network.W_Q, optimize=True)
        vectors += np.einsum("thsk,hdk->tsd", keys, network.W_K, optimize=True)
        vectors[:, -1] += query
        W_E = np.zeros_like(network.W_E)
        np.add.at(W_E, self.tokens, vectors)
        return {
            "W_E": W_E,
            "W_pos": vectors.sum(axis=0),
            "W_Q": np.einsum("td,thk->hdk", x[:, -1], queries, optimize=True),
            "W_K": np.einsum("tsd,thsk->hdk", x, keys, optimize=True),
            "W_V": np.einsum("thd,thk->hdk", self.averages, values, optimize=True),
        }

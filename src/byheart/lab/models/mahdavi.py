"""The model that Mahdavi, Liao & Thrampoulidis 2024 trained: one attention layer for a query and a context.

An example is a query e ∈ R^D and a context e_1, …, e_n ∈ R^D, its own or one that all examples of a model share. As in
the authors' code, all of them go through one linear map into the stream and get sinusoidal positions p_s, the query
first:

    x_s = W_Eᵀ e_s + b_E + p_s,   q = W_Eᵀ e + b_E + p_0,
    aʰ = softmax_s(qᵀ W_Qʰ W_Kʰᵀ x_s / √d),   z = Σ_h (Σ_s aʰ_s W_Vʰᵀ x_s) W_Oʰ,   logits = W_Uᵀ z + b_U.

Here d is the width of the stream, whatever d_h is. Values are numbers (d_v = 1). The query is not attended to, and
there is no skip connection and no norm. The authors compute all n + 1 positions and read the first. Here only that one
is computed, and products of weights come before products with data. All of this is exact, up to rounding:

- *One context for all*: keys do not depend on the example, so W_Qʰ(x W_Kʰ)ᵀ is one [d, H·n] matrix per model, and
  scores are one product with it. Values are [n, H] numbers per model.
- *A context for each*: with Gʰ = W_Qʰ W_Kʰᵀ, a score is (W_E Gʰᵀ q)ᵀ e_s + qᵀ Gʰ p_s. The term of b_E is the same for
  all s and cancels in the softmax. Contexts enter two products as they are, and are never mapped.
- W_O W_U is one [H, C] matrix.

On a GPU, float32 training steps are those of :mod:`byheart.lab.fused`, which computes the same.

Every tensor has a leading axis of M models. Models that differ in d_h can be computed as one larger model: zeros stay
zeros, because W_Q and W_K are multiplied with each other, and the scale does not depend on d_h.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace

import torch

from byheart.lab.member import Tensors
from byheart.lab.models.parts import sinusoids, uniform
from byheart.tasks.arrays import check_count

SATURATED = 0.99
"""A head is saturated on an example if one token gets more than this of its attention; the authors' threshold."""
SMALL = 16
"""Dimension of a head below which smaller heads take a GPU as long."""


@dataclass(frozen=True)
class QueryAttention:
    """The sizes of the model. Defaults are the authors'.

    A batch has ``queries`` [M, B, D] and ``contexts``, [M, n, D] if they are ``fixed``, else [M, B, n, D].

    >>> QueryAttention(heads=20).parameters
    177060
    """

    heads: int
    """Number H of heads."""
    head_dim: int = 64
    """Dimension d_h of a head."""
    length: int = 32
    """Number n of tokens in a context."""
    labels: int = 100
    """Number C of labels; 1 for regression."""
    fixed: bool = True
    """True if all examples of a model share one context."""
    model_dim: int = 64
    """Width d of the stream."""
    dim: int = 64
    """Dimension D of queries and tokens."""

    def __post_init__(self) -> None:
        for name in ("heads", "head_dim", "length", "labels", "model_dim", "dim"):
            check_count(name, getattr(self, name))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor."""
        H, d, d_h, C = self.heads, self.model_dim, self.head_dim, self.labels
        return {
            "W_E": (self.dim, d),
            "b_E": (d,),
            "W_Q": (H, d, d_h),
            "W_K": (H, d, d_h),
            "W_V": (H, d),
            "W_O": (H, d),
            "W_U": (d, C),
            "b_U": (C,),
        }

    @property
    def parameters(self) -> int:
        """Number of trained parameters: (D + 1)d + H·d(2d_h + 2) + (d + 1)C."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    @property
    def family(self) -> Hashable:
        """Value that is equal for models that join cheaply: d_h up to a power of two. Others run side by side."""
        least = max(SMALL, 1 << (self.head_dim - 1).bit_length())
        return type(self), replace(self, head_dim=least)

    def join(self, other: "QueryAttention") -> "QueryAttention":
        """Return the model that holds both."""
        return replace(self, head_dim=max(self.head_dim, other.head_dim))

    def init(self, generator: torch.Generator) -> Tensors:
        """Draw first weights as the authors do: attention xavier-uniform head by head, linear maps as PyTorch does."""
        H, d, d_h = self.heads, self.model_dim, self.head_dim
        bounds = {
            "W_E": self.dim**-0.5,
            "b_E": self.dim**-0.5,
            "W_Q": math.sqrt(6 / (d + d_h)),
            "W_K": math.sqrt(6 / (d + d_h)),
            "W_V": math.sqrt(6 / (d + 1)),
            "W_O": math.sqrt(6 / (H + d)),
            "W_U": d**-0.5,
            "b_U": d**-0.5,
        }
        return uniform(self.shapes, bounds, generator)

    def outputs(self, weights: Tensors, batch: Tensors) -> torch.Tensor:
        """Return logits [M, B, C]."""
        scores, values = self._scored(weights, batch)
        heads = (scores.softmax(dim=-1) * values).sum(dim=-1)
        return torch.baddbmm(weights["b_U"][:, None], heads, weights["W_O"] @ weights["W_U"])

    def attention(self, weights: Tensors, batch: Tensors) -> torch.Tensor:
        """Return the heads' weights over the context, [M, B, H, n]."""
        return self._scored(weights, batch)[0].softmax(dim=-1)

    def saturated(self, weights: Tensors, batch: Tensors) -> torch.Tensor:
        """Count the heads that give one token more than :data:`SATURATED` of their attention, per example: [M, B]."""
        return (self.attention(weights, batch).amax(dim=-1) > SATURATED).sum(dim=-1)

    def _scored(self, weights: Tensors, batch: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores [M, B, H, n] before the softmax, and values that broadcast to them."""
        queries = batch["queries"]
        positions = sinusoids(self.length + 1, self.model_dim, queries.device, queries.dtype)
        shift = (weights["b_E"] + positions[0])[:, None]
        stream = torch.baddbmm(shift, queries, weights["W_E"]) * self.model_dim**-0.5
        if self.fixed:
            return self._shared_context(weights, batch["contexts"], stream, positions[1:])
        return self._own_contexts(weights, batch["contexts"], stream, positions[1:])

    def _shared_context(
        self, weights: Tensors, context: torch.Tensor, stream: torch.Tensor, positions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Score a context [M, n, D] for queries in the stream [M, B, d]. Values are [M, 1, H, n]."""
        tokens = context @ weights["W_E"] + (weights["b_E"][:, None] + positions)
        keys = tokens[:, None] @ weights["W_K"]
        folded = (weights["W_Q"] @ keys.mT).transpose(1, 2).flatten(2)
        scores = (stream @ folded).view(*stream.shape[:2], self.heads, self.length)
        return scores, (weights["W_V"] @ tokens.mT)[:, None]

    def _own_contexts(
        self, weights: Tensors, contexts: torch.Tensor, stream: torch.Tensor, positions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Score contexts [M, B, n, D] for queries in the stream [M, B, d]. Values are [M, B, H, n]."""
        M, B, n, D = contexts.shape
        products = weights["W_Q"] @ weights["W_K"].mT
        towards = (products @ weights["W_E"].mT[:, None]).transpose(1, 2).flatten(2)
        places = (products @ positions.mT).transpose(1, 2).flatten(2)
        directions = (stream @ towards).view(M * B, self.heads, D)
        of_places = (stream @ places).view(M * B, self.heads, n)
        scores = torch.baddbmm(of_places, directions, contexts.reshape(M * B, n, D).mT)
        read = contexts.reshape(M, B * n, D) @ (weights["W_V"] @ weights["W_E"].mT).mT
        shift = (weights["b_E"][:, None] + positions) @ weights["W_V"].mT
        values = read.view(M, B, n, self.heads) + shift[:, None]
        return scores.view(M, B, self.heads, n), values.transpose(2, 3)

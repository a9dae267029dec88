"""The model that Madden, Fox & Thrampoulidis 2024 trained: one attention head and a feed-forward layer, next token out.

A context is t_1, …, t_L, L ≤ n. With sinusoidal positions p_s, counted from 0, and d = 16,

    x_s = W_E[t_s] + p_s,   q = W_Qᵀ x_L + b_Q,   a = softmax_s(qᵀ(W_Kᵀ x_s + b_K)/√d),
    z = W_Oᵀ(Σ_s a_s (W_Vᵀ x_s + b_V)) + b_O,   logits = W_Uᵀ GELU(W_inᵀ z + b_in) + b_U,

no skip connection, no norm. A causal Transformer computes this at every place of every story. So does the attention
here, but from the averages Σ_s a_s x_s on, only one place of each *distinct* context is computed. Products of weights
come first: scores are xᵀ(W_K W_Qᵀ x_L + W_K b_Q)/√d, and W_V W_O is applied to the average. All of this is exact up to
rounding. b_K adds the same to all scores of a query and never matters, so it is left out; it is there because it is
counted.

Parameters: ω(17 + m) + 1088 + 17m, for ω tokens and m hidden units. First weights: the embedding is standard normal;
those of linear maps are as PyTorch draws them (what the paper does not say).
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import ClassVar

import torch
from torch.nn import functional

from byheart.lab.fused import kernels_for
from byheart.lab.member import Tensors
from byheart.lab.models.parts import affine, causal_attention, looked_up, sinusoids, uniform
from byheart.tasks.arrays import check_count

ATTENTION = ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O", "b_O")
FROZEN = frozenset({"W_E", *ATTENTION})
"""Tensors that the paper's second setting does not train."""
ATTENDED = "attended"
"""Name of z, which a batch may have instead of stories and places if embedding and attention are frozen."""
FEW_UNITS = 32
"""Number of hidden units up to which they cost a GPU less than the logits."""


@dataclass(frozen=True)
class MaddenDecoder:
    """The sizes of the model.

    A batch has ``stories`` [M or 1, S, n] and ``places`` [M, B], where place s of story i is i·n + s and ends a context
    of s + 1 tokens. The places of a batch are different. Or it has :data:`ATTENDED`, [M, B, d].

    >>> MaddenDecoder(vocab=100, hidden=8).parameters
    3724
    """

    KIND: ClassVar = "Decoder"
    vocab: int
    """Number ω of tokens."""
    hidden: int
    """Number m of hidden units."""
    length: int = 9
    """Length n of the longest context."""
    model_dim: int = 16
    """Width d of the stream."""

    def __post_init__(self) -> None:
        for name in ("vocab", "hidden", "length", "model_dim"):
            check_count(name, getattr(self, name))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor."""
        d, m = self.model_dim, self.hidden
        attention = {name: (d, d) if name.startswith("W") else (d,) for name in ATTENTION}
        units = {"W_in": (d, m), "b_in": (m,), "W_U": (m, self.vocab), "b_U": (self.vocab,)}
        return {"W_E": (self.vocab, d), **attention, **units}

    @property
    def parameters(self) -> int:
        """Number of parameters, trained or frozen."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    @property
    def attention_parameters(self) -> int:
        """Number of parameters of embedding and attention, the tensors in :data:`FROZEN`."""
        return sum(math.prod(shape) for name, shape in self.shapes.items() if name in FROZEN)

    @property
    def family(self) -> Hashable:
        """Value that is equal for models that can be joined. Few hidden units are computed as more; zeros stay."""
        return type(self), replace(self, hidden=max(FEW_UNITS, self.hidden))

    def join(self, other: "MaddenDecoder") -> "MaddenDecoder":
        """Return the model that holds both."""
        return replace(self, hidden=max(self.hidden, other.hidden))

    def init(self, generator: torch.Generator) -> Tensors:
        """Draw first weights."""
        bounds = dict.fromkeys(self.shapes, self.model_dim**-0.5) | dict.fromkeys(("W_U", "b_U"), self.hidden**-0.5)
        embedding = torch.randn(self.shapes["W_E"], dtype=torch.float64, generator=generator)
        linear = {name: shape for name, shape in self.shapes.items() if name != "W_E"}
        return {"W_E": embedding, **uniform(linear, bounds, generator)}

    def outputs(self, weights: Tensors, batch: Tensors) -> torch.Tensor:
        """Return logits [M, B, ω]."""
        z = batch[ATTENDED] if ATTENDED in batch else self.attended(weights, batch)
        hidden, W_U, b_U = functional.gelu(_affine(z, weights["W_in"], weights["b_in"])), weights["W_U"], weights["b_U"]
        return _affine(hidden, W_U, b_U)

    def attended(self, weights: Tensors, batch: Tensors) -> torch.Tensor:
        """Return the output z [M, B, d] of the attention at the batch's places."""
        table, W_K, W_O = (weights[name] for name in ("W_E", "W_K", "W_O"))
        stories, d = batch["stories"].expand(len(table), -1, -1), self.model_dim
        kernels = _kernels_for_training(table)
        looked = looked_up(table, stories) if kernels is None else kernels.looked_up(table, stories)
        stream = looked + sinusoids(self.length, d, table.device, table.dtype)
        direction = _affine(stream.flatten(1, 2), weights["W_Q"] @ W_K.mT, _row(weights["b_Q"], W_K.mT))
        mix = causal_attention if kernels is None or not kernels.can_mix(self.length, d) else kernels.mixed
        averages = mix(1, direction.view_as(stream), torch.cat([stream, stream], dim=-1)).flatten(1, 2)
        chosen = averages.gather(1, batch["places"].unsqueeze(-1).expand(-1, -1, d))
        return _affine(chosen, weights["W_V"] @ W_O, _row(weights["b_V"], W_O) + weights["b_O"])


def _row(biases: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return b W [M, C] for one row b per model."""
    return (biases[:, None] @ weights)[:, 0]


def _affine(inputs: torch.Tensor, weights: torch.Tensor, biases: torch.Tensor) -> torch.Tensor:
    """Return x W + b, as :func:`~byheart.lab.models.parts.affine` does."""
    kernels = _kernels_for_training(inputs)
    if kernels is None:
        return affine(inputs, weights, biases)
    outputs: torch.Tensor = kernels.multiplied(inputs, weights.mT, biases[:, None])
    return outputs


def _kernels_for_training(tensor: torch.Tensor) -> ModuleType | None:
    """Return kernels, or None if gradients are off: reported results do not depend on kernels."""
    return kernels_for(tensor) if torch.is_grad_enabled() else None

"""Small GPTs to train, for comparison with constructed networks; many of them at once.

Letters: sequences of n tokens out of ω, C labels, L layers, d_model = d, heads of d_head = d / heads
dimensions, d_ff = h hidden neurons. The network is the usual one: token and position embeddings, then L times

    x ← x + W_O · attention(norm(x)),    x ← x + W_out · GELU(W_in · norm(x) + b_in) + b_out,

a last norm and the unembedding to C logits. Attention is causal and has no biases: a bias of the keys cancels in the
softmax, and one of the values acts like one of the output. With tied embeddings, the unembedding is the token table.

All trained numbers are parameters, including embeddings:

    ω·d (+ C·d, or with ties max(ω, C)·d in all) + n·d + L·(4d² + 2dh + h + d + 4d) + 2d.

Tensors have the names and shapes of PyTorch's modules, matrices [out, in], and a leading axis of M models. Only the
values that the loss reads are computed: in the last layer, those of the last position. A norm's gain is multiplied into
the next matrix, and its bias is added to that matrix's bias: products of weights come before products with data, which
is exact up to rounding. On a GPU, in float32, norm, attention, lookups and gradients of weights have Triton kernels
(:mod:`byheart.lab.fused.operations`).
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch.nn import functional

from byheart.errors import BadInput
from byheart.lab.fused import kernels_for
from byheart.lab.member import Tensors
from byheart.lab.models.parts import causal_attention, looked_up
from byheart.tasks.arrays import check_count

MOST_LAYERS = 4
PREFERRED_LAYERS = 3
PREFERRED_RATIO = 3
"""Preferred number of hidden neurons per dimension, d_ff / d_model."""
LEAST_RATIO = 2
LEAST_HEADS = 2
LEAST_DIM = 8
HEAD_DIMS = range(8, 17)
SPREAD = 0.02
"""Standard deviation of first weights, as in GPT-2."""
NORM_EPSILON = 1e-5
"""PyTorch's default epsilon of a layer norm."""


@dataclass(frozen=True)
class SmallGPT:
    """The sizes of a GPT; ``model_dim`` is d_model and ``hidden`` is d_ff. A batch has ``tokens`` [M, B, n].

    >>> SmallGPT(vocab=256, labels=256, length=8, layers=1, model_dim=16, heads=2, hidden=64, tied=True).parameters
    7472
    """

    vocab: int
    labels: int
    length: int
    layers: int
    model_dim: int
    heads: int
    hidden: int
    tied: bool

    def __post_init__(self) -> None:
        for name in ("vocab", "labels", "length", "layers", "model_dim", "heads", "hidden"):
            check_count(name, getattr(self, name))
        if self.model_dim % self.heads:
            raise BadInput(f"model_dim is {self.model_dim}; expected a multiple of heads = {self.heads}")

    @property
    def rows(self) -> int:
        """Number of rows of the token table; tied labels beyond the vocabulary need rows of their own."""
        return max(self.vocab, self.labels) if self.tied else self.vocab

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor."""
        d, h = self.model_dim, self.hidden
        block: dict[str, tuple[int, ...]] = {
            **{f"norm_{k}.{part}": (d,) for k in (1, 2) for part in ("weight", "bias")},
            **{"W_Q.weight": (d, d), "W_KV.weight": (2 * d, d), "W_O.weight": (d, d)},
            **{"W_in.weight": (h, d), "W_in.bias": (h,), "W_out.weight": (d, h), "W_out.bias": (d,)},
        }
        return {
            **{"tokens.weight": (self.rows, d), "positions.weight": (self.length, d)},
            **{f"blocks.{i}.{name}": shape for i in range(self.layers) for name, shape in block.items()},
            **{"norm.weight": (d,), "norm.bias": (d,)},
            **({} if self.tied else {"unembedding.weight": (self.labels, d)}),
        }

    @property
    def parameters(self) -> int:
        """Number of trained parameters, including embeddings and biases."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def init(self, generator: torch.Generator) -> Tensors:
        """Draw weights like GPT-2: normal matrices, those into the stream smaller, so that layers add no variance."""
        tensors = {}
        for name, shape in self.shapes.items():
            spread = SPREAD * (2 * self.layers) ** -0.5 if name.endswith(("W_O.weight", "W_out.weight")) else SPREAD
            if len(shape) > 1:
                tensors[name] = spread * torch.randn(shape, dtype=torch.float64, generator=generator)
            else:
                tensors[name] = torch.full(shape, float(name.endswith("weight")), dtype=torch.float64)
        return tensors

    def outputs(self, weights: Tensors, batch: Tensors) -> torch.Tensor:
        """Return logits [M, B, C] at the last position."""
        table, tokens = weights["tokens.weight"], batch["tokens"]
        kernels = kernels_for(table)
        looked = looked_up(table, tokens) if kernels is None else kernels.looked_up(table, tokens)
        stream = looked + weights["positions.weight"][:, None]
        for layer in range(self.layers):
            own = {name.removeprefix(f"blocks.{layer}."): tensor for name, tensor in weights.items()}
            stream = self._block(own, stream, last=layer == self.layers - 1)
        table = table[:, : self.labels] if self.tied else weights["unembedding.weight"]
        return _read(_normed(stream[:, :, -1]), weights["norm.weight"], weights["norm.bias"], table)

    def _block(self, own: Tensors, stream: torch.Tensor, *, last: bool) -> torch.Tensor:
        """Map a stream [M, B, n, d] to the next one, or to [M, B, 1, d] with ``last``."""
        normed = _normed(stream)
        first, second = ((own[f"norm_{k}.weight"], own[f"norm_{k}.bias"]) for k in (1, 2))
        if last:
            Q, KV = _read(normed[:, :, -1:], *first, own["W_Q.weight"]), _read(normed, *first, own["W_KV.weight"])
            stream, mixed = stream[:, :, -1:], self._mixed(Q, KV)
        else:
            both = torch.cat([own["W_Q.weight"], own["W_KV.weight"]], dim=1)
            mixed = self._mixed(_read(normed, *first, both))
        stream = _added(stream, mixed, own["W_O.weight"])
        units = functional.gelu(_read(_normed(stream), *second, own["W_in.weight"], own["W_in.bias"]))
        return _added(stream + own["W_out.bias"][:, None, None], units, own["W_out.weight"])

    def _mixed(self, Q: torch.Tensor, KV: torch.Tensor | None = None) -> torch.Tensor:
        """Return the heads' averages of values, for Q [M, B, m, d] of the last m positions, and K and V [M, B, n, 2d].

        Without ``KV``, keys and values follow the queries in Q: [M, B, n, 3d].
        """
        d, kernels = self.model_dim, kernels_for(Q)
        if kernels is not None and kernels.can_mix(self.length, d // self.heads):
            mixed: torch.Tensor = kernels.mixed(self.heads, Q, KV)
            return mixed
        return causal_attention(self.heads, *((Q, KV) if KV is not None else (Q[..., :d], Q[..., d:])))


def _normed(stream: torch.Tensor) -> torch.Tensor:
    """Apply a layer norm without gain and bias."""
    kernels = kernels_for(stream)
    if kernels is not None:
        normed: torch.Tensor = kernels.normed(stream, NORM_EPSILON)
        return normed
    return functional.layer_norm(stream, stream.shape[-1:], eps=NORM_EPSILON)


def _read(
    normed: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor, W: torch.Tensor, b: torch.Tensor | None = None
) -> torch.Tensor:
    """Return W (normed · gain + bias) + b for [M, …, d], with tensors of M models."""
    shift = W @ bias.unsqueeze(-1) if b is None else torch.baddbmm(b.unsqueeze(-1), W, bias.unsqueeze(-1))
    rows = _multiplied(normed.flatten(1, -2), W * gain.unsqueeze(1), shift.mT)
    return rows.view(*normed.shape[:-1], W.shape[1])


def _added(stream: torch.Tensor, rows: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
    """Return stream + W · rows."""
    return _multiplied(rows.flatten(1, -2), W, stream.flatten(1, -2)).view(stream.shape)


def _multiplied(rows: torch.Tensor, W: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    """Return shift + rows Wᵀ, for rows [M, R, d], W [M, o, d] and a shift [M, 1 or R, o]."""
    kernels = kernels_for(rows)
    return torch.baddbmm(shift, rows, W.mT) if kernels is None else kernels.multiplied(rows, W, shift)


def gpt_with(
    parameters: int, vocab: int, labels: int, length: int, *, layers: int | None = None, tied: bool = True
) -> SmallGPT:
    """Return a shape with at most ``parameters`` parameters that is good at memorizing.

    The choices come from single runs on small random tasks, in which other seeds alone changed results by 0.15 bits per
    parameter. They are a starting point, not an optimum.

    - Tied embeddings: the numbers of a second table, C·d, are worth no less in the layers.
    - Heads as small as possible: two heads of 8 memorized more than one of 16.
    - About 3 hidden neurons per dimension; their number is the largest that fits.
    - 3 layers: 2, 3 and 4 memorized about the same, and more than 1. There are fewer layers if a layer would have a
      single head, or less than 2 hidden neurons per dimension; ``layers`` overrides the number.

    >>> gpt_with(40_000, vocab=256, labels=256, length=8)
    SmallGPT(vocab=256, labels=256, length=8, layers=3, model_dim=32, heads=4, hidden=96, tied=True)
    >>> gpt_with(40_000, vocab=256, labels=256, length=8).parameters
    40000
    """
    check_count("parameters", parameters)
    if layers is not None and check_count("layers", layers) > MOST_LAYERS:
        raise BadInput(f"layers is {layers}; expected at most {MOST_LAYERS}")
    depths = range(PREFERRED_LAYERS, 0, -1) if layers is None else range(layers, layers + 1)
    for depth in depths:
        shapes = _filled(parameters, vocab, labels, length, depth, tied)
        best = min(shapes, key=_distance, default=None)
        if best is not None and (depth == depths[-1] or _is_roomy(best)):
            return best
    least = SmallGPT(vocab, labels, length, depths[-1], LEAST_DIM, heads=1, hidden=1, tied=tied)
    raise BadInput(f"parameters is {parameters}; expected at least {least.parameters} with {least.layers} layers")


def _distance(shape: SmallGPT) -> float:
    return abs(math.log(shape.hidden / shape.model_dim / PREFERRED_RATIO))


def _is_roomy(shape: SmallGPT) -> bool:
    return shape.heads >= LEAST_HEADS and shape.hidden >= LEAST_RATIO * shape.model_dim


def _filled(parameters: int, vocab: int, labels: int, length: int, layers: int, tied: bool) -> Iterator[SmallGPT]:
    """Yield, for every d_model that fits, the shape with as many hidden neurons as fit."""
    for model_dim in itertools.count(LEAST_DIM, step=4):
        heads = next((model_dim // d_h for d_h in HEAD_DIMS if model_dim % d_h == 0), None)
        if heads is None:
            continue
        thin = SmallGPT(vocab, labels, length, layers, model_dim, heads, hidden=1, tied=tied)
        room = parameters - thin.parameters
        if room < 0:
            return
        yield replace(thin, hidden=1 + room // (layers * (2 * model_dim + 1)))

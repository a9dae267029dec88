"""A small GPT to train, as the counterpart of networks that are built; many of them at once.

Letters: sequences of n tokens out of ω, C labels, L layers, d_model = d, heads of d_head = d / heads
dimensions, d_ff = h hidden neurons. The network is the usual one: token and position embeddings, then L times

    x ← x + W_O · attention(norm(x)),    x ← x + W_out · GELU(W_in · norm(x) + b_in) + b_out,

a last norm and the unembedding to C logits. Attention is causal and has no biases: a bias of the keys cancels in the
softmax, and one of the values is one of the output. With tied embeddings, the unembedding is the table of the tokens.

The parameters are all numbers that are trained, embeddings included:

    ω·d (+ C·d, or with ties max(ω, C)·d in all) + n·d + L·(4d² + 2dh + h + d + 4d) + 2d.

:class:`GPT` is the one definition of the network; :class:`SmallGPT`, its sizes, maps it over stacked weights
(``torch.func``). Only the last position is computed in the last layer, as the loss reads no other.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import nn
from torch.func import functional_call, vmap
from torch.nn import functional

from byheart.errors import BadInput
from byheart.lab.member import Tensors
from byheart.tasks.checks import count

MOST_LAYERS = 4
PREFERRED_LAYERS = 3
PREFERRED_RATIO = 3  # d_ff / d_model
LEAST_RATIO = 2
LEAST_HEADS = 2
LEAST_DIM = 8
HEAD_DIMS = range(8, 17)
SPREAD = 0.02  # of the first weights, as in GPT-2
MOST_PAIRS = 16  # of positions of a context: so few are multiplied entry by entry, not as a matrix for each context
NORM_EPSILON = 1e-5  # PyTorch's own


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
            count(name, getattr(self, name))
        if self.model_dim % self.heads:
            raise BadInput(f"model_dim is {self.model_dim}; expected a multiple of heads = {self.heads}")

    @property
    def rows(self) -> int:
        """Rows of the table of tokens; tied labels beyond the vocabulary need rows of their own."""
        return max(self.vocab, self.labels) if self.tied else self.vocab

    @property
    def parameters(self) -> int:
        """Number of trained numbers, everything counted."""
        d, h = self.model_dim, self.hidden
        tables = (self.rows + self.length) * d + (0 if self.tied else self.labels * d)
        return tables + self.layers * (4 * d * d + 2 * d * h + h + 5 * d) + 2 * d

    def init(self, generator: torch.Generator) -> Tensors:
        """As the module initialises itself, from a seed that the generator gives."""
        seed = int(torch.randint(2**62, (), generator=generator))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return {name: tensor.detach().double() for name, tensor in GPT(self).named_parameters()}

    def outputs(self, weights: Tensors, batch: Tensors) -> torch.Tensor:
        """Logits [M, B, C] at the last position."""
        model = _without_weights(self)

        def one(own: Tensors, tokens: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = functional_call(model, own, (tokens,), {"last": True})
            return logits

        if len(batch["tokens"]) == 1:  # mapping over a single model takes a third longer than the model itself
            return one({name: tensor[0] for name, tensor in weights.items()}, batch["tokens"][0])[None]
        logits: torch.Tensor = vmap(one)(weights, batch["tokens"])
        return logits


@cache
def _without_weights(shape: SmallGPT) -> "GPT":
    with torch.device("meta"):
        return GPT(shape)


def gpt_with(
    parameters: int, vocab: int, labels: int, length: int, *, layers: int | None = None, tied: bool = True
) -> SmallGPT:
    """A shape with at most so many ``parameters`` that is good at memorizing.

    The choices are from single runs on small random tasks, where other seeds alone made a difference of 0.15 bits
    per parameter. They say what to start from, not what is best.

    - Tied: the numbers of a second table, C·d, are worth no less in the layers.
    - Heads as small as they come: two heads of 8 memorized more than one of 16.
    - About 3 hidden neurons a dimension, and so many that less than one more in each layer would fit.
    - 3 layers: 2, 3 and 4 memorized about the same, and more than 1. Fewer where a layer would have a single head or
      less than 2 hidden neurons a dimension; or as many as ``layers`` says.

    >>> gpt_with(40_000, vocab=256, labels=256, length=8)
    SmallGPT(vocab=256, labels=256, length=8, layers=3, model_dim=32, heads=4, hidden=96, tied=True)
    >>> gpt_with(40_000, vocab=256, labels=256, length=8).parameters
    40000
    """
    count("parameters", parameters)
    if layers is not None and count("layers", layers) > MOST_LAYERS:
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
    """For every d_model that fits, the shape with as many hidden neurons as fit."""
    for model_dim in itertools.count(LEAST_DIM, step=4):
        heads = next((model_dim // d_h for d_h in HEAD_DIMS if model_dim % d_h == 0), None)
        if heads is None:
            continue
        thin = SmallGPT(vocab, labels, length, layers, model_dim, heads, hidden=1, tied=tied)
        room = parameters - thin.parameters
        if room < 0:
            return
        yield replace(thin, hidden=1 + room // (layers * (2 * model_dim + 1)))


class GPT(nn.Module):
    """From token ids [B, n] to logits of labels, [B, n, C], or [B, C] with ``last``.

    >>> shape = SmallGPT(vocab=9, labels=5, length=4, layers=2, model_dim=8, heads=1, hidden=16, tied=True)
    >>> GPT(shape)(torch.zeros(3, 4, dtype=torch.int64)).shape
    torch.Size([3, 4, 5])
    """

    def __init__(self, shape: SmallGPT) -> None:
        super().__init__()
        d = shape.model_dim
        self.shape = shape
        self.tokens = nn.Embedding(shape.rows, d)
        self.positions = nn.Embedding(shape.length, d)
        self.blocks = nn.ModuleList([_Block(shape) for _ in range(shape.layers)])
        self.norm = nn.LayerNorm(d, eps=NORM_EPSILON)
        self.unembedding = None if shape.tied else nn.Linear(d, shape.labels, bias=False)
        for name, weights in self.named_parameters():
            if weights.dim() == 2:
                # As in GPT-2, the stream's variance does not grow with the layers.
                into_stream = name.endswith(("W_O.weight", "W_out.weight"))
                nn.init.normal_(weights, std=SPREAD * (2 * shape.layers) ** -0.5 if into_stream else SPREAD)
            elif name.endswith("bias"):
                nn.init.zeros_(weights)

    def forward(self, tokens: torch.Tensor, last: bool = False) -> torch.Tensor:
        """Logits at every position, or with ``last`` at the last one, without what is not needed for it."""
        stream = self.tokens(tokens) + self.positions.weight
        for index, block in enumerate(self.blocks):
            stream = block(stream, last=last and index == len(self.blocks) - 1)
        table = self.tokens.weight[: self.shape.labels] if self.unembedding is None else self.unembedding.weight
        logits = functional.linear(self.norm(stream), table)
        return logits[:, -1] if last else logits


class _Block(nn.Module):
    def __init__(self, shape: SmallGPT) -> None:
        super().__init__()
        d = shape.model_dim
        self.heads = shape.heads
        self.norm_1, self.norm_2 = (nn.LayerNorm(d, eps=NORM_EPSILON) for _ in range(2))
        self.W_Q = nn.Linear(d, d, bias=False)
        self.W_KV = nn.Linear(d, 2 * d, bias=False)
        self.W_O = nn.Linear(d, d, bias=False)
        self.W_in = nn.Linear(d, shape.hidden)
        self.W_out = nn.Linear(shape.hidden, d)

    def forward(self, stream: torch.Tensor, last: bool) -> torch.Tensor:
        """[B, n, d] to [B, n, d], or to [B, 1, d] with ``last``."""
        normed = self.norm_1(stream)
        asking = normed[:, -1:] if last else normed
        stream = stream[:, -1:] if last else stream
        K, V = self.W_KV(normed).chunk(2, dim=-1)
        mixed = self._mixed(self.W_Q(asking), K, V)
        stream = stream + self.W_O(mixed)
        result: torch.Tensor = stream + self.W_out(functional.gelu(self.W_in(self.norm_2(stream))))
        return result

    def _mixed(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        """The values as the heads mix them, from Q [B, m, d] of the last m positions, and K and V [B, n, d]."""
        (m, n), scale = (Q.shape[1], K.shape[1]), (Q.shape[-1] // self.heads) ** -0.5
        future = torch.ones(m, n, dtype=torch.bool, device=Q.device).triu(1 + n - m)
        K, V = (self._split(part).transpose(1, 2) for part in (K, V))
        if m * n > MOST_PAIRS:
            scores = self._split(Q).transpose(1, 2) @ K.transpose(-1, -2) * scale
            mixed: torch.Tensor = scores.masked_fill(future, -torch.inf).softmax(dim=-1) @ V
            return mixed.transpose(1, 2).flatten(2)
        scores = (self._split(Q)[..., None, :] * K[:, None]).sum(dim=-1) * scale
        shares = scores.masked_fill(future[:, None], -torch.inf).softmax(dim=-1)
        mixed = (shares[..., None] * V[:, None]).sum(dim=-2)
        return mixed.flatten(2)

    def _split(self, stream: torch.Tensor) -> torch.Tensor:
        """[…, d] to […, heads, d_head]."""
        return stream.view(*stream.shape[:-1], self.heads, stream.shape[-1] // self.heads)

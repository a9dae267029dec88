"""The attention-only Transformer of Dana, Pydi & Chevaleyre 2025, on contexts of two tokens.

Letters: vocabulary ω, model dimension d, H heads of dimension d_h, MLP of width w; tokens a, b in, logits of the next
one out, read at the second position. One layer, as the authors' code has it:

    y_t = C e_t + p_t            (input of the attention; C is the identity if d = d_h, else one matrix for all heads)
    e_t ← e_t + D Σ_h W_O W_V Σ_s softmax_s(y_t·W_Qᵀ W_K y_s / √d_h) y_s    (causal; D as C)
    e_t ← e_t + W_out GELU(W_in e_t + b_in)                                  (MLP variant only)

with no norm and no bias elsewhere, and untied embedding and unembedding. Positions, C and D are one each, shared by all
layers. With ``text`` it is what the paper's equations
say instead: positions are added to the embedding, and every head has its own d_h × d matrices.

**Only what the loss reads is computed**, which changes nothing but the rounding:

- the first position sees itself only, so its stream depends on a alone: ω columns instead of B, in every layer;
- a softmax over two is a logistic function σ: with z = y_a − y_b, the second position gets Σ_h W_h (y_b + σ_h z),
  σ_h = σ(y_bᵀ A_h z), where A_h = W_Qᵀ W_K/√d_h and W_h = W_O W_V are multiplied out once a step;
- scores are linear in the H matrices A_h: one matrix product of [H, k²] with the outer products y_b ⊗ z, [k², B]; and
  the mixed matrix Σ_h σ_h W_h likewise. For few heads, H < k, they go head by head: [H·k, k] times [k, B].

The batch is the last axis: all products have B columns. Heads and hidden neurons of zeros stay zero, so models with
different H and w can be joined.

Not known, and chosen here: the range of the first C and D, that of a linear layer.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch.nn import functional

from byheart.errors import BadInput
from byheart.lab.member import Tensors
from byheart.lab.models.parts import Shape, uniform
from byheart.tasks.arrays import check_count

TOKENS = "tokens"
LENGTH = 2


@dataclass(frozen=True)
class AttentionOnly:
    """Sizes of the network; ``hidden`` None has no MLP, and ``text`` follows the paper's equations, not its code.

    >>> AttentionOnly(vocab=50, model_dim=10, head_dim=10, heads=20).parameters
    9020
    """

    vocab: int
    model_dim: int
    head_dim: int
    heads: int
    hidden: int | None = None
    layers: int = 1
    text: bool = False

    def __post_init__(self) -> None:
        for name in ("vocab", "model_dim", "head_dim", "heads", "layers"):
            check_count(name, getattr(self, name))
        if self.hidden is not None and self.hidden < 0:
            raise BadInput(f"hidden is {self.hidden}; expected 0 or more, or None for no MLP")

    @property
    def compressed(self) -> bool:
        """True if the attention works in another dimension than the stream."""
        return not self.text and self.model_dim != self.head_dim

    @property
    def input_dim(self) -> int:
        """Dimension k of a head's inputs."""
        return self.model_dim if self.text else self.head_dim

    @property
    def parameters(self) -> int:
        """Number of trained parameters, including embeddings and biases."""
        return sum(math.prod(shape) for shape, _ in self._tensors().values())

    @property
    def family(self) -> Hashable:
        """Value that is equal for models that differ only in heads and MLP width."""
        return replace(self, heads=1, hidden=None if self.hidden is None else 0)

    def join(self, other: Self) -> Self:
        """Return the model with the larger number of heads and the wider MLP."""
        wider = None if self.hidden is None or other.hidden is None else max(self.hidden, other.hidden)
        return replace(self, heads=max(self.heads, other.heads), hidden=wider)

    def _tensors(self) -> dict[str, tuple[Shape, float]]:
        """Return the shape of every tensor, and the bound of its uniform first entries."""
        d, d_h, H, k = self.model_dim, self.head_dim, self.heads, self.input_dim
        tensors: dict[str, tuple[Shape, float]] = {
            "embedding": ((self.vocab, d), d**-0.5),
            "unembedding": ((self.vocab, d), d**-0.5),
        }
        tensors["positions"] = (LENGTH, k), k**-0.5
        xavier = math.sqrt(6 / (3 * d_h + k))
        if self.compressed:
            tensors["compression"] = (d_h, d), d**-0.5
            tensors["decompression"] = (d, d_h), d_h**-0.5
        for layer in range(self.layers):
            tensors |= {f"{layer}.{name}": ((H, d_h, k), xavier) for name in ("W_Q", "W_K", "W_V")}
            tensors[f"{layer}.W_O"] = (H, k, d_h), d_h**-0.5
            if self.hidden is not None:
                w = self.hidden
                tensors[f"{layer}.W_in"] = (w, d), d**-0.5
                tensors[f"{layer}.b_in"] = (w,), d**-0.5
                tensors[f"{layer}.W_out"] = (d, w), max(w, 1) ** -0.5
        return tensors

    def init(self, generator: torch.Generator) -> Tensors:
        """Draw all entries uniformly."""
        tensors = self._tensors().items()
        return uniform({name: shape for name, (shape, _) in tensors}, {name: b for name, (_, b) in tensors}, generator)

    def outputs(self, weights: Tensors, batch: Tensors) -> torch.Tensor:
        """Return logits [M, B, ω] after tokens [M, B, 2]: a transposed view, as the batch is the last axis inside."""
        first, second = (_one_hot(batch[TOKENS][..., place], self.vocab, weights["embedding"]) for place in range(2))
        table = weights["embedding"].mT  # [M, d, ω]: the stream at the first position for each a
        columns = table @ second  # [M, d, B]: the stream at the second position
        if self.text:
            positions = weights["positions"].unsqueeze(-1)  # [M, 2, d, 1]
            table, columns = table + positions[:, 0], columns + positions[:, 1]
        for layer in range(self.layers):
            own = {name.removeprefix(f"{layer}."): tensor for name, tensor in weights.items()}
            last = layer == self.layers - 1
            table, columns = self._layer(own, table, columns, first, last=last)
        return (weights["unembedding"] @ columns).mT

    def _layer(
        self, own: Tensors, table: torch.Tensor, columns: torch.Tensor, first: torch.Tensor, *, last: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return streams [M, d, ω] and [M, d, B] after a layer. The last layer's table is never read, and stays."""
        reads, asks = table, columns
        if self.compressed:
            reads, asks = own["compression"] @ table, own["compression"] @ columns
        if not self.text:
            positions = own["positions"].unsqueeze(-1)
            reads, asks = reads + positions[:, 0], asks + positions[:, 1]
        A = own["W_Q"].mT @ own["W_K"] * self.head_dim**-0.5  # [M, H, k, k]
        W = own["W_O"] @ own["W_V"]
        away = reads @ first - asks
        sums = W.sum(dim=1)
        mixed = sums @ asks + (_by_pairs if self.heads >= self.input_dim else _by_heads)(A, W, asks, away)
        columns = columns + (own["decompression"] @ mixed if self.compressed else mixed)
        columns = self._mlp(own, columns)
        if not last:
            alone = sums @ reads
            table = table + (own["decompression"] @ alone if self.compressed else alone)
            table = self._mlp(own, table)
        return table, columns

    def _mlp(self, own: Tensors, stream: torch.Tensor) -> torch.Tensor:
        """Apply the MLP to a stream [M, d, any], or return the stream itself if there is none."""
        if not self.hidden:
            return stream
        hidden = torch.baddbmm(own["b_in"].unsqueeze(-1), own["W_in"], stream)
        return torch.baddbmm(stream, own["W_out"], functional.gelu(hidden))


def _one_hot(tokens: torch.Tensor, vocab: int, like: torch.Tensor) -> torch.Tensor:
    """Return [M, ω, B] for tokens [M, B]. A lookup by a product is a product on the way back, in a fixed order."""
    M, B = tokens.shape
    return like.new_zeros(M, vocab, B).scatter_(1, tokens.unsqueeze(1), 1.0)


def _by_pairs(A: torch.Tensor, W: torch.Tensor, asks: torch.Tensor, away: torch.Tensor) -> torch.Tensor:
    """Return Σ_h σ(y_bᵀ A_h z) W_h z, [M, k, B], for A, W [M, H, k, k] and y_b, z [M, k, B], through [M, k², B]."""
    M, H, k, _ = A.shape
    pairs = asks.unsqueeze(2) * away.unsqueeze(1)
    attention = torch.sigmoid(A.reshape(M, H, k * k) @ pairs.view(M, k * k, -1))
    mixed = W.reshape(M, H, k * k).mT @ attention
    return (mixed.view(M, k, k, -1) * away.unsqueeze(1)).sum(dim=2)


def _by_heads(A: torch.Tensor, W: torch.Tensor, asks: torch.Tensor, away: torch.Tensor) -> torch.Tensor:
    """Return the same sum as :func:`_by_pairs`, through [M, H·k, B]."""
    M, H, k, _ = A.shape
    scores = (A.mT.reshape(M, H * k, k) @ asks).view(M, H, k, -1)
    attention = torch.sigmoid((scores * away.unsqueeze(1)).sum(dim=2, keepdim=True))
    turned = attention * away.unsqueeze(1)
    return W.transpose(1, 2).reshape(M, k, H * k) @ turned.view(M, H * k, -1)

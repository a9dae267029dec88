"""The float Transformer as a ``torch.nn.Module``: runs on CPU and CUDA with the same bits.

A compiled network's values are exact (each sum has few non-zero terms, all of them integers over a power of two that
fit the format), so that neither the batch, nor the order of summation, nor the device can change a bit. The one thing
that could is TF32, which rounds the *factors* of a product: it is switched off while a network runs.

Shapes: tokens int64 [B, T]; the stream is [B, T, D] up to the last attention sublayer, then [M, D] for the M places
whose logits are asked for.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from byheart.errors import BadInput
from byheart.networks.transformer.spec import Attention, FeedForward, Features, Spec

Cache = list[Tensor]
"""What each attention sublayer has read at the last positions: [B, reach, features]."""


class Slice:
    """Some features of the stream: a view where they are neighbours, a gather or scatter where they are not."""

    def __init__(self, features: Features) -> None:
        start = features[0] if features else 0
        self.neighbours = features == tuple(range(start, start + len(features)))
        self.start, self.stop = start, start + len(features)
        self.index = torch.tensor(features, dtype=torch.long)

    def read(self, stream: Tensor) -> Tensor:
        """[…, features]."""
        if self.neighbours:
            return stream[..., self.start : self.stop]
        return stream.index_select(-1, self._index(stream))

    def add(self, stream: Tensor, value: Tensor) -> Tensor:
        """The stream with ``value`` added; in place unless gradients are wanted."""
        if torch.is_grad_enabled():
            return stream.index_add(-1, self._index(stream), value)
        if self.neighbours:
            stream[..., self.start : self.stop] += value
            return stream
        return stream.index_add_(-1, self._index(stream), value)

    def _index(self, stream: Tensor) -> Tensor:
        if self.index.device != stream.device:
            self.index = self.index.to(stream.device)
        return self.index


class AttentionLayer(nn.Module):
    """softmax(q·k + bias) over the last positions, ``dilation`` apart; zeros before the start."""

    W_Q: Tensor
    W_K: Tensor
    W_V: Tensor
    W_O: Tensor
    bias: Tensor

    def __init__(self, spec: Attention, dtype: torch.dtype) -> None:
        super().__init__()
        self.spec = spec
        self.reads, self.writes = Slice(spec.reads), Slice(spec.writes)
        for name, shape in spec.shapes().items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape, dtype=dtype)))

    def forward(self, stream: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The stream [B, T, D] after the sublayer, and what the next positions must know of these."""
        spec = self.spec
        seen = self.reads.read(stream)
        batch, length, width = seen.shape
        before = seen.new_zeros(batch, spec.reach, width) if past is None else past
        history = torch.cat([before, seen], dim=1)
        offsets = [history[:, spec.reach - spec.dilation * k :][:, :length] for k in range(spec.window)]
        keys = torch.stack(offsets, dim=2)
        heads, d_head = spec.heads, spec.d_head
        q = (seen @ self.W_Q.T).view(batch, length, 1, heads, d_head)
        k = (keys @ self.W_K.T).view(batch, length, spec.window, heads, d_head)
        v = (keys @ self.W_V.T).view(batch, length, spec.window, heads, d_head)
        scores = (q * k).sum(-1) / d_head**0.5 + self.bias.T
        mixed = (scores.softmax(dim=2).unsqueeze(-1) * v).sum(2).reshape(batch, length, heads * d_head)
        return self.writes.add(stream, mixed @ self.W_O.T), history[:, length:]


class FeedForwardLayer(nn.Module):
    """A feed-forward sublayer in groups, gated or not."""

    def __init__(self, spec: FeedForward, dtype: torch.dtype, bfloat16: frozenset[str]) -> None:
        super().__init__()
        self.spec = spec
        self.reads, self.up_reads, self.writes = Slice(spec.reads), Slice(spec.up_reads), Slice(spec.writes)
        for name, shape in spec.shapes().items():
            kept = torch.bfloat16 if f"{spec.name}.{name}" in bfloat16 else dtype
            self.register_parameter(name, nn.Parameter(torch.zeros(shape, dtype=kept)))
        self.first = "in" if spec.up == "none" else "gate"
        self.act = torch.sigmoid if spec.act == "sigmoid" else torch.relu

    def forward(self, stream: Tensor) -> Tensor:
        """The stream [M, D] (or [B, T, D]) after the sublayer."""
        spec = self.spec
        hidden = self.act(self._affine(self.reads.read(stream), self.first))
        if spec.up == "dense":
            hidden = hidden * self._affine(self.up_reads.read(stream), "up")
        elif spec.up == "diagonal":
            seen = self.up_reads.read(stream).unflatten(-1, (spec.groups, spec.units))
            hidden = hidden * (seen * self.W_up)
        return self.writes.add(stream, self._out(hidden))

    def _affine(self, seen: Tensor, name: str) -> Tensor:
        """W x + b in groups: […, G·a] to […, G, units]."""
        W: Tensor = getattr(self, f"W_{name}")
        b: Tensor | None = getattr(self, f"b_{name}", None)
        groups, units, width = W.shape
        if width == 1:
            scaled = seen.unsqueeze(-1) * W.view(groups, units)
            return scaled if b is None else scaled + b
        if groups == 1:
            return nn.functional.linear(seen, W[0], None if b is None else b[0]).unsqueeze(-2)
        parts = (seen.unflatten(-1, (groups, 1, width)) @ W.transpose(1, 2)).squeeze(-2)
        return parts if b is None else parts + b

    def _out(self, hidden: Tensor) -> Tensor:
        """W_out in groups: […, G, units] to […, G·p]."""
        W = self.W_out.to(hidden.dtype)
        if W.shape[0] == 1:
            return nn.functional.linear(hidden.squeeze(-2), W[0])
        if W.shape[1] == 1:
            return (hidden * W[:, 0]).sum(-1)
        if hidden.dim() > 2 and hidden.shape[:-2].numel() > 1:
            flat = hidden.flatten(0, -3).transpose(0, 1)
            return torch.bmm(flat, W.transpose(1, 2)).transpose(0, 1).reshape(*hidden.shape[:-2], -1)
        return torch.matmul(W, hidden.unsqueeze(-1)).squeeze(-1).flatten(-2)


class Transformer(nn.Module):
    """A Transformer by its spec; weights are zero until ``load`` gives them."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec = spec
        dtype = getattr(torch, spec.precision)
        kept = frozenset(spec.bfloat16)
        self.embedding = nn.Module()
        self.embedding.W_E = nn.Parameter(torch.zeros(spec.vocab, len(spec.embeds), dtype=dtype))
        layers: list[AttentionLayer | FeedForwardLayer] = []
        for sublayer in spec.sublayers:
            if isinstance(sublayer, Attention):
                layers.append(AttentionLayer(sublayer, dtype))
            else:
                layers.append(FeedForwardLayer(sublayer, dtype, kept))
            self.add_module(sublayer.name, layers[-1])
        self.unembedding = nn.Module()
        self.unembedding.W_U = nn.Parameter(torch.zeros(spec.labels, len(spec.unembeds), dtype=dtype))
        self.unembedding.b_U = nn.Parameter(torch.zeros(spec.labels, dtype=dtype))
        self.embeds, self.unembeds = Slice(spec.embeds), Slice(spec.unembeds)
        last = max((i for i, layer in enumerate(layers) if isinstance(layer, AttentionLayer)), default=-1)
        self._mixing, self._local = layers[: last + 1], layers[last + 1 :]
        used = [spec.embeds, *(part for layer in self._mixing for part in (layer.spec.reads, layer.spec.writes))]
        self._mixing_width = 1 + max(feature for features in used for feature in features)

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor]) -> "Transformer":
        """Take over all tensors; BadInput if one is missing, too many, or of another shape or type."""
        own = dict(self.named_parameters())
        if set(own) != set(tensors):
            odd = sorted(set(own) ^ set(tensors))
            raise BadInput(f"tensors {odd[:3]} are missing or unknown; expected those that config.json describes")
        for name, parameter in own.items():
            given = tensors[name]
            if given.shape != parameter.shape or given.dtype != parameter.dtype:
                expected = f"{parameter.dtype} {list(parameter.shape)}"
                raise BadInput(f"{name} is {given.dtype} {list(given.shape)}; expected {expected}")
            parameter.copy_(given)
        return self

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        device: torch.device = self.unembedding.b_U.device
        return device

    def forward(self, tokens: Tensor, *, last: int | None = None, mask: Tensor | None = None) -> Tensor:
        """Logits [B, T, C], or of the ``last`` positions only [B, last, C].

        ``mask`` [B, T] is 0 for tokens that count as missing (padding on the left).
        """
        stream, _ = self.mix(tokens, None, mask)
        kept = stream if last is None else stream[:, stream.shape[1] - last :]
        return self.answer(kept.flatten(0, 1)).unflatten(0, kept.shape[:2])

    def step(self, tokens: Tensor, cache: Cache | None) -> tuple[Tensor, Cache]:
        """Logits [B, C] after the last of ``tokens`` [B, T], which follow those that made ``cache``."""
        stream, cache = self.mix(tokens, cache)
        return self.answer(stream[:, -1]), cache

    def mix(self, tokens: Tensor, cache: Cache | None, mask: Tensor | None = None) -> tuple[Tensor, Cache]:
        """The stream [B, T, ≤ D] after the last attention sublayer (features that are still zero left out), and the cache."""
        with exact_products(tokens.device):
            embedded = self.embedding.W_E[tokens]
            if mask is not None:
                embedded = embedded * mask.unsqueeze(-1).to(embedded.dtype)
            stream = self.embeds.add(embedded.new_zeros(*tokens.shape, self._mixing_width), embedded)
            past = iter(cache) if cache is not None else None
            kept: Cache = []
            for layer in self._mixing:
                if isinstance(layer, AttentionLayer):
                    stream, seen = layer(stream, next(past) if past is not None else None)
                    kept.append(seen)
                else:
                    stream = layer(stream)
            return stream, kept

    def answer(self, stream: Tensor) -> Tensor:
        """Logits [M, C] from the stream [M, …] after the last attention sublayer."""
        with exact_products(stream.device):
            stream = self.local(stream)
            return nn.functional.linear(self.unembeds.read(stream), self.unembedding.W_U, self.unembedding.b_U)

    def local(self, stream: Tensor, until: str | None = None) -> Tensor:
        """The stream [M, D] after the sublayers that follow the last attention, or those before ``until``."""
        stream = nn.functional.pad(stream, (0, self.spec.stream - stream.shape[-1]))
        for layer in self._local:
            if layer.spec.name == until:
                break
            stream = layer(stream)
        return stream


@contextmanager
def exact_products(device: torch.device) -> Iterator[None]:
    """Float32 products with all their bits: TF32 off on CUDA, whatever the user has set."""
    if device.type != "cuda":
        yield
        return
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed

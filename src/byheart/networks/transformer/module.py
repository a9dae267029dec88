"""The float Transformer as a ``torch.nn.Module``: runs on CPU and CUDA with the same bits.

A compiled network's values are exact (each sum has few non-zero terms, all of them integers over a power of two that
fit the format), so that neither the batch, nor the order of summation, nor the device can change a bit. What could is
a mode that rounds the *factors* of a product (TF32, bfloat16, autocast): all are off while a network runs.

Shapes: tokens int64 [B, T]. Inside, the stream is [D, B·T] up to the last attention sublayer, then [D, M] for the M
places whose logits are asked for: features first, so that those which a sublayer reads and writes are rows, and a
product in groups is one batched product without a transpose. What callers see has the features last, as a view.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from byheart.errors import BadInput
from byheart.networks.transformer.spec import Features, GatedBlocks, Mixture, Spec, WindowAttention

Cache = list[Tensor]
"""Inputs that each attention sublayer has read: at the last tokens, and as far before them as it looks back.

Shape [features, B, reach + T]. Cutting off the last k positions takes back the last k tokens, k < T.
"""


class Slice:
    """Some features of the stream: a view where they are neighbours, a gather or scatter where they are not."""

    def __init__(self, features: Features) -> None:
        start = features[0] if features else 0
        self.neighbours = features == tuple(range(start, start + len(features)))
        self.start, self.stop = start, start + len(features)
        self.index = torch.tensor(features, dtype=torch.long, device="cpu")

    def read(self, stream: Tensor) -> Tensor:
        """Return the features [features, M]."""
        if self.neighbours:
            return stream[self.start : self.stop]
        return stream.index_select(0, self._index(stream))

    def add(self, stream: Tensor, value: Tensor) -> Tensor:
        """Return the stream with ``value`` [features, M] added; in place unless gradients are wanted."""
        if torch.is_grad_enabled():
            return stream.index_add(0, self._index(stream), value)
        if self.neighbours:
            stream[self.start : self.stop].add_(value)
            return stream
        return stream.index_add_(0, self._index(stream), value)

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

    def __init__(self, spec: WindowAttention, dtype: torch.dtype) -> None:
        super().__init__()
        self.spec = spec
        self.reads, self.writes = Slice(spec.reads), Slice(spec.writes)
        for name, shape in spec.shapes().items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape, dtype=dtype)))

    def forward(self, stream: Tensor, batch: int, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the stream [D, B·T] after the sublayer, and its inputs, which the next positions look back to."""
        spec = self.spec
        heads, d_head, dilation = spec.heads, spec.d_head, spec.dilation
        seen = self.reads.read(stream)
        width, length = seen.shape[0], seen.shape[1] // batch
        before = seen.new_zeros(width, batch, spec.reach) if past is None else past[:, :, past.shape[2] - spec.reach :]
        history = torch.cat([before, seen.view(width, batch, length)], dim=2)
        held = history
        if length == 1:  # attention looks at every ``dilation``-th position only: the others need no keys
            held, dilation = history[:, :, ::dilation], 1
        held = held.reshape(width, -1)

        def windows(values: Tensor) -> Tensor:
            """Return the windows [H, d_head, window, B, T], the farthest offset first."""
            rows = values.view(heads, d_head, batch, -1)
            if torch.compiler.is_exporting():  # strides that depend on the length would tie a program to it
                return torch.stack([rows[..., k * dilation : k * dilation + length] for k in range(spec.window)], dim=2)
            return rows.unfold(3, dilation * (spec.window - 1) + 1, 1)[..., ::dilation].movedim(4, 2)

        q = (self.W_Q @ seen).view(heads, d_head, 1, batch, length)
        scores = (q * windows(self.W_K @ held)).sum(1) / d_head**0.5 + self.bias.flip(1)[:, :, None, None]
        mixed = (scores.softmax(1).unsqueeze(1) * windows(self.W_V @ held)).sum(2).view(heads * d_head, -1)
        return self.writes.add(stream, self.W_O @ mixed), history


class FeedForwardLayer(nn.Module):
    """A feed-forward sublayer in groups, gated or not."""

    W_up: Tensor
    W_out: Tensor

    def __init__(self, spec: GatedBlocks, dtype: torch.dtype, bfloat16: frozenset[str]) -> None:
        super().__init__()
        self.spec = spec
        self.reads, self.up_reads, self.writes = Slice(spec.reads), Slice(spec.up_reads), Slice(spec.writes)
        for name, shape in spec.shapes().items():
            kept = torch.bfloat16 if f"{spec.name}.{name}" in bfloat16 else dtype
            self.register_parameter(name, nn.Parameter(torch.zeros(shape, dtype=kept)))
        self.first = "in" if spec.up == "none" else "gate"

    def forward(self, stream: Tensor) -> Tensor:
        """Return the stream [D, M] after the sublayer."""
        spec = self.spec
        seen = self._affine(self.reads.read(stream), self.first)
        hidden = seen.sigmoid() if spec.act == "sigmoid" else seen.relu()
        if spec.up == "dense":
            hidden = hidden * self._affine(self.up_reads.read(stream), "up")
        elif spec.up == "diagonal":
            up = self.up_reads.read(stream).view(spec.groups, spec.units, -1)
            hidden = hidden * (up * self.W_up.unsqueeze(2))
        # Not fused with the addition to the stream: a feature that uses all bits of the format holds no partial sum.
        value = torch.bmm(self.W_out.to(hidden.dtype), hidden)
        return self.writes.add(stream, value.view(len(spec.writes), -1))

    def _affine(self, seen: Tensor, name: str) -> Tensor:
        return in_groups(getattr(self, f"W_{name}"), getattr(self, f"b_{name}", None), seen)


class MixtureLayer(nn.Module):
    """A feed-forward sublayer in groups with several second matrices; every place takes one of them."""

    W_in: Tensor
    W_route: Tensor
    b_route: Tensor

    def __init__(self, spec: Mixture, dtype: torch.dtype, bfloat16: frozenset[str]) -> None:
        super().__init__()
        self.spec = spec
        self.reads, self.routes, self.writes = Slice(spec.reads), Slice(spec.routes), Slice(spec.writes)
        second = []
        for name, shape in spec.shapes().items():
            kept = torch.bfloat16 if f"{spec.name}.{name}" in bfloat16 else dtype
            parameter = nn.Parameter(torch.zeros(shape, dtype=kept))
            if name.startswith("W_out."):
                second.append(parameter)
            else:
                self.register_parameter(name, parameter)
        self.W_out = nn.ParameterList(second)

    def forward(self, stream: Tensor) -> Tensor:
        """Return the stream [D, M] after the sublayer, by one product for each expert that some place takes."""
        seen = self.reads.read(stream)
        scores = torch.addmm(self.b_route[:, None], self.W_route, self.routes.read(stream))
        chosen = scores.argmax(0)
        if torch.compiler.is_exporting():  # a program has the same products whatever it is given: x + 0 is x
            hidden = self._hidden(seen)
            parts = [W.to(hidden.dtype) @ (hidden * (chosen == expert)) for expert, W in enumerate(self.W_out)]
            value = torch.stack(parts).sum(0)
        else:
            order, counts = chosen.argsort(stable=True), chosen.bincount(minlength=self.spec.experts).tolist()
            taken = zip(self.W_out, torch.split(order, counts), strict=True)
            parts = [self._second(W, seen[:, places]) for W, places in taken if len(places)]
            value = torch.cat(parts, dim=2)[:, :, order.argsort()]
        return self.writes.add(stream, value.reshape(len(self.spec.writes), -1))

    def _hidden(self, seen: Tensor) -> Tensor:
        """Return the hidden units [G, units, M]."""
        found = in_groups(self.W_in, getattr(self, "b_in", None), seen)
        return found.sigmoid() if self.spec.act == "sigmoid" else found.relu()

    def _second(self, W: Tensor, seen: Tensor) -> Tensor:
        hidden = self._hidden(seen)
        return torch.bmm(W.to(hidden.dtype), hidden)


def in_groups(W: Tensor, b: Tensor | None, seen: Tensor) -> Tensor:
    """Return W x + b in groups, [G, units, M], for W [G, units, a] and x [G·a, M]."""
    groups, _, width = W.shape
    parts = seen.view(groups, width, -1)
    if b is None:
        return W * parts if width == 1 else torch.bmm(W, parts)
    b = b.unsqueeze(2)
    return torch.addcmul(b, W, parts) if width == 1 else torch.baddbmm(b, W, parts)


class TokenEmbedding(nn.Module):
    """The table W_E [ω, features] with a row for every token."""

    def __init__(self, spec: Spec, dtype: torch.dtype) -> None:
        super().__init__()
        self.W_E = nn.Parameter(torch.zeros(spec.vocab, len(spec.embeds), dtype=dtype))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the rows […, features] of tokens […]."""
        return self.W_E[tokens]


class Unembedding(nn.Module):
    """Logits W_U y + b_U, W_U [C, features]."""

    def __init__(self, spec: Spec, dtype: torch.dtype) -> None:
        super().__init__()
        self.W_U = nn.Parameter(torch.zeros(spec.labels, len(spec.unembeds), dtype=dtype))
        self.b_U = nn.Parameter(torch.zeros(spec.labels, dtype=dtype))


class Transformer(nn.Module):
    """A Transformer by its spec; weights are zero until ``load`` gives them."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec = spec
        dtype = getattr(torch, spec.precision)
        kept = frozenset(spec.bfloat16)
        self.embedding = TokenEmbedding(spec, dtype)
        layers: list[AttentionLayer | FeedForwardLayer | MixtureLayer] = []
        self.unembedding = Unembedding(spec, dtype)
        self.embeds, self.unembeds = Slice(spec.embeds), Slice(spec.unembeds)
        self._mixing, self._local, self.mixing_width = layers, layers, 0  # all names that no sublayer may have
        for sublayer in spec.sublayers:
            if hasattr(self, sublayer.name):
                raise BadInput(f"a sublayer is called {sublayer.name!r}, which a module has already; expected another")
            if isinstance(sublayer, WindowAttention):
                layers.append(AttentionLayer(sublayer, dtype))
            elif isinstance(sublayer, Mixture):
                layers.append(MixtureLayer(sublayer, dtype, kept))
            else:
                layers.append(FeedForwardLayer(sublayer, dtype, kept))
            self.add_module(sublayer.name, layers[-1])
        last = max((i for i, layer in enumerate(layers) if isinstance(layer, AttentionLayer)), default=-1)
        self._mixing, self._local = layers[: last + 1], layers[last + 1 :]
        used = {*spec.embeds}
        for layer in self._mixing:
            used.update(layer.spec.reads, layer.spec.writes)
            used.update(getattr(layer.spec, "up_reads", ()), getattr(layer.spec, "routes", ()))
        self.mixing_width = 1 + max(used)

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor]) -> "Transformer":
        """Copy all tensors; raise BadInput if one is missing, unknown, or of another shape or type."""
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
        """The device that holds the weights."""
        return self.unembedding.b_U.device

    @property
    def sees(self) -> int:
        """Number of tokens, including the last, that can change the logits after the last."""
        return self.spec.sees

    def forward(self, tokens: Tensor, *, last: int | None = None, mask: Tensor | None = None) -> Tensor:
        """Return logits [B, T, C], or of the ``last`` positions only, [B, last, C].

        ``mask`` [B, T] is 0 for tokens that count as missing (padding on the left).
        """
        stream, _ = self.mix(tokens, None, mask)
        kept = stream if last is None else stream[:, max(0, stream.shape[1] - last) :]
        return self.answer(kept.flatten(0, 1)).view(*kept.shape[:2], -1)

    def watched(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
        """Return logits [B, T, C], and the streams [B, T, D] after the embedding and after every sublayer."""
        features, seen = self.spec.stream, tokens.shape

        def wide(stream: Tensor) -> Tensor:
            rest = stream.new_zeros(features - len(stream), stream.shape[1])
            return torch.cat([stream, rest]).view(features, *seen).permute(1, 2, 0)

        def keep(_: nn.Module, __: Any, made: Any) -> None:
            kept.append(wide(made[0] if isinstance(made, tuple) else made))

        embedded = self.embedding(tokens.flatten()).T
        kept = [wide(self.embeds.add(embedded.new_zeros(features, embedded.shape[1]), embedded))]
        with ExitStack() as hooks:
            for layer in (*self._mixing, *self._local):
                hooks.enter_context(layer.register_forward_hook(keep))
            return self(tokens, mask=mask), kept

    def step(self, tokens: Tensor, cache: Cache | None) -> tuple[Tensor, Cache]:
        """Return logits [B, C] after the last of ``tokens`` [B, T], which follow those in ``cache``; and the cache."""
        stream, cache = self.mix(tokens, cache)
        return self.answer(stream[:, -1]), cache

    def mix(self, tokens: Tensor, cache: Cache | None, mask: Tensor | None = None) -> tuple[Tensor, Cache]:
        """Return the stream [B, T, ≤ D] after the last attention sublayer, and the cache.

        Features that nothing has been written to are left out.
        """
        batch, length = tokens.shape
        with exact_products(tokens.device, batch * length):
            embedded = self.embedding(tokens.flatten()).T
            kept_tokens = None if mask is None else mask.flatten().to(embedded.dtype)
            stream = self.embeds.add(embedded.new_zeros(self.mixing_width, batch * length), embedded)
            past = iter(cache) if cache is not None else None
            kept: Cache = []
            for layer in self._mixing:
                if isinstance(layer, AttentionLayer):
                    if kept_tokens is not None:  # zero vectors, as before the start
                        stream = stream * kept_tokens
                    stream, seen = layer(stream, batch, next(past) if past is not None else None)
                    kept.append(seen)
                else:
                    stream = layer(stream)
            return stream.view(-1, batch, length).permute(1, 2, 0), kept

    def answer(self, stream: Tensor) -> Tensor:
        """Return logits [M, C] from the stream [M, …] after the last attention sublayer."""
        read = self.unembeds.read(self.local(stream).T)
        with exact_products(stream.device, stream.shape[0]):
            return nn.functional.linear(read.T, self.unembedding.W_U, self.unembedding.b_U)

    def local(self, stream: Tensor, until: str | None = None) -> Tensor:
        """Return the stream [M, D] after the sublayers behind the last attention, all or those before ``until``."""
        places, width = stream.shape
        inner = torch.cat([stream.T, stream.new_zeros(self.spec.stream - width, places)])
        with exact_products(stream.device, places):
            for layer in self._local:
                if layer.spec.name == until:
                    break
                inner = layer(inner)
        return inner.T


_BACKENDS: Any = torch.backends
_SETTINGS = (_BACKENDS.cuda.matmul, _BACKENDS.mkldnn.matmul)
"""PyTorch's settings for how products of float32 may be rounded."""
FEW = 256
"""Fewest places for several threads; with fewer places they wait for each other longer than they work."""


@contextmanager
def exact_products(device: torch.device, places: int) -> Iterator[None]:
    """Use all bits of a product's factors, whatever the user has set, and one thread if there are few ``places``."""
    with ExitStack() as stack:
        if torch.is_autocast_enabled(device.type):
            stack.enter_context(torch.autocast(device.type, enabled=False))
        for settings in _SETTINGS:
            if (before := settings.fp32_precision) not in ("none", "ieee"):
                stack.callback(setattr, settings, "fp32_precision", before)
                settings.fp32_precision = "ieee"
        exported = torch.compiler.is_exporting()  # a program has no threads, and may not ask how many places there are
        if device.type == "cpu" and not exported and places < FEW and (threads := torch.get_num_threads()) > 1:
            stack.callback(torch.set_num_threads, threads)
            torch.set_num_threads(1)
        yield

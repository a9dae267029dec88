"""A Transformer that recites, as Byheart compiles it: the code to run the weights beside this file.

Put together by Byheart from its own modules, word for word; what is changed here is changed nowhere else.
Needs PyTorch and transformers only. SPDX-License-Identifier: Apache-2.0
"""


from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import ExitStack
from contextlib import contextmanager
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import fields
from torch import Tensor
from torch import nn
from transformers import GenerationMixin
from transformers import PreTrainedModel
from transformers import PretrainedConfig
from transformers.modeling_outputs import CausalLMOutput
from typing import Any
from typing import Literal
import torch


class BadInput(ValueError):  # noqa: N818 (it names what is wrong, and reads well in `raise`)
    """Input that cannot be used: a malformed file, a task outside a theorem's hypotheses, an impossible setting.

    >>> raise BadInput("t.npz: labels[3] is 12; expected 0 to 9 (10 labels)")
    Traceback (most recent call last):
    byheart.errors.BadInput: t.npz: labels[3] is 12; expected 0 to 9 (10 labels)
    """


FLOAT = "byheart"
"""The ``model_type`` of a float Transformer of ours."""


Features = tuple[int, ...]


PRECISIONS = ("float32", "float64")


LARGEST = 1 << 31
"""No size of a network is larger: products of two are then far from the end of 64 bits."""


MOST_FEATURES = 1 << 24
"""That all parts of a network together may read or write, where nobody knows its tensors."""


MOST_REACH = 1 << 17
"""Positions that one attention may look back; windows are found up to 2¹⁶ tokens."""


MOST_EXPERTS = 1 << 12
"""Of all mixtures of a network together: each has a tensor of its own."""


_ACTS, _UPS = ("sigmoid", "relu"), ("none", "dense", "diagonal")


Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Attention:
    """Softmax attention over the last ``window`` positions, ``dilation`` apart."""

    name: str
    reads: Features
    writes: Features
    window: int
    dilation: int
    heads: int
    d_head: int

    def shapes(self) -> Shapes:
        """Every tensor's shape."""
        inner, read = self.heads * self.d_head, len(self.reads)
        return {
            "W_Q": (inner, read),
            "W_K": (inner, read),
            "W_V": (inner, read),
            "W_O": (len(self.writes), inner),
            "bias": (self.heads, self.window),
        }

    def padded(self, stream: int) -> int:
        """Parameters if the sublayer read and wrote the whole stream."""
        return 4 * self.heads * self.d_head * stream + self.heads * self.window

    @property
    def reach(self) -> int:
        """How many positions it looks back."""
        return (self.window - 1) * self.dilation


@dataclass(frozen=True)
class FeedForward:
    """``groups`` blocks of ``units`` units each; group g reads and writes the g-th part of ``reads`` and ``writes``."""

    name: str
    act: Literal["sigmoid", "relu"]
    reads: Features
    writes: Features
    units: int
    groups: int = 1
    bias: bool = True
    up: Literal["none", "dense", "diagonal"] = "none"
    up_reads: Features = ()
    up_bias: bool = False

    def __post_init__(self) -> None:
        if type(self.units) is not int or type(self.groups) is not int or not 1 <= self.groups <= LARGEST:
            raise BadInput(f"{self.name}: units {self.units!r:.40}, groups {self.groups!r:.40}; expected whole numbers")
        parts = {"reads": len(self.reads), "writes": len(self.writes), "up_reads": len(self.up_reads)}
        for name, size in parts.items():
            if size % self.groups:
                raise BadInput(f"{self.name}: {name} has {size} features; expected a multiple of {self.groups} groups")
        if self.up == "diagonal" and len(self.up_reads) != self.groups * self.units:
            raise BadInput(f"{self.name}: a diagonal W_up reads {len(self.up_reads)}; expected one feature a unit")

    def shapes(self) -> Shapes:
        """Every tensor's shape."""
        groups, units = self.groups, self.units
        first = "in" if self.up == "none" else "gate"
        shapes: Shapes = {f"W_{first}": (groups, units, len(self.reads) // groups)}
        if self.bias:
            shapes[f"b_{first}"] = (groups, units)
        if self.up == "dense":
            shapes["W_up"] = (groups, units, len(self.up_reads) // groups)
        elif self.up == "diagonal":
            shapes["W_up"] = (groups, units)
        if self.up_bias:
            shapes["b_up"] = (groups, units)
        shapes["W_out"] = (groups, len(self.writes) // groups, units)
        return shapes

    def padded(self, stream: int) -> int:
        """Parameters if the sublayer read and wrote the whole stream."""
        units = self.groups * self.units
        matrices = 2 if self.up == "none" else 3
        return units * (matrices * stream + self.bias + self.up_bias)


@dataclass(frozen=True)
class Mixture:
    """``groups`` blocks of ``units`` units each, and one of ``experts`` second matrices behind them.

    Which one is what a router says: one score an expert, W_route x + b_route for the features x of ``routes``; the
    expert with the largest score, the first of equals, is taken as it is, with weight 1.
    """

    name: str
    act: Literal["sigmoid", "relu"]
    reads: Features
    routes: Features
    writes: Features
    units: int
    experts: int
    groups: int = 1
    bias: bool = True

    def __post_init__(self) -> None:
        if type(self.experts) is not int or not 1 <= self.experts <= MOST_EXPERTS:
            raise BadInput(
                f"{self.name}: experts is {self.experts!r:.40}; expected a number from 1 to {MOST_EXPERTS:,}"
            )
        _ = self.block  # refuses what no feed-forward sublayer can be

    @property
    def block(self) -> FeedForward:
        """The same with a single second matrix: what every expert is behind."""
        return FeedForward(self.name, self.act, self.reads, self.writes, self.units, self.groups, self.bias)

    def shapes(self) -> Shapes:
        """Every tensor's shape; those of the experts last."""
        shapes = self.block.shapes()
        second = shapes.pop("W_out")
        shapes |= {"W_route": (self.experts, len(self.routes)), "b_route": (self.experts,)}
        return shapes | {expert_name(expert): second for expert in range(self.experts)}

    def padded(self, stream: int) -> int:
        """Parameters if the sublayer read and wrote the whole stream."""
        more = (self.experts - 1) * self.groups * self.units * stream
        return self.block.padded(stream) + more + self.experts * (stream + 1)


def expert_name(expert: int) -> str:
    """The tensor that is the second matrix of an expert, within its sublayer."""
    return f"W_out.{expert}"


Sublayer = Attention | FeedForward | Mixture


_KINDS: dict[str, type[Sublayer]] = {"attention": Attention, "feed-forward": FeedForward, "mixture": Mixture}


@dataclass(frozen=True)
class Spec:
    """A whole network. ``embeds`` and ``unembeds`` are the features that W_E writes and W_U reads."""

    vocab: int
    labels: int
    window: int
    stream: int
    precision: Literal["float32", "float64"]
    embeds: Features
    unembeds: Features
    sublayers: tuple[Sublayer, ...]
    bfloat16: tuple[str, ...] = ()
    """Tensors that are kept in bfloat16 and calculated with in ``precision``."""

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise BadInput(f"precision is {self.precision!r}; expected one of {', '.join(PRECISIONS)}")
        sizes: dict[str, object] = {name: getattr(self, name) for name in ("vocab", "labels", "window", "stream")}
        parts = {"embeds": self.embeds, "unembeds": self.unembeds}
        self._check_experts()
        for layer in self.sublayers:
            numbers = ("window", "dilation", "heads", "d_head") if isinstance(layer, Attention) else ("units", "groups")
            sizes |= {f"{layer.name}: {name}": getattr(layer, name) for name in numbers}
            gated = isinstance(layer, FeedForward) and layer.up != "none"
            more = ("up_reads",) if gated else ("routes",) if isinstance(layer, Mixture) else ()
            parts |= {f"{layer.name}: {name}": getattr(layer, name) for name in ("reads", "writes", *more)}
            self._check_words(layer)
        for name, size in sizes.items():
            if type(size) is not int or not 1 <= size <= LARGEST:
                raise BadInput(f"{name} is {size!r}; expected a whole number from 1 to {LARGEST:,}")
        for layer in self.sublayers:
            if isinstance(layer, Attention) and layer.reach > MOST_REACH:
                raise BadInput(f"{layer.name} looks back {layer.reach:,} positions; expected at most {MOST_REACH:,}")
        names = [layer.name for layer in self.sublayers]
        if len({*names, "embedding", "unembedding"}) < len(names) + 2:
            raise BadInput("two parts have one name; expected different ones")
        inner = [layer for layer in self.sublayers if not isinstance(layer, Attention)]
        strange = set(self.bfloat16) - {f"{layer.name}.{name}" for layer in inner for name in _second(layer)}
        if strange:
            raise BadInput(f"bfloat16 names {', '.join(sorted(strange))}; expected W_out of feed-forward sublayers")
        used: set[int] = set()
        for name, features in parts.items():
            if not features:
                raise BadInput(f"{name} is empty; expected at least one feature")
            if not 0 <= min(features) <= max(features) < self.stream:
                raise BadInput(
                    f"{name} has features {min(features)} to {max(features)}; expected 0 to {self.stream - 1}"
                )
            used.update(features)
        if len(used) < self.stream:  # so it is no wider than the network has parameters
            raise BadInput(f"the stream has {self.stream:,} features, and {len(used):,} are used; expected all of them")

    def _check_experts(self) -> None:
        """Before any of them has a name."""
        experts = sum(layer.experts for layer in self.sublayers if isinstance(layer, Mixture))
        if experts > MOST_EXPERTS:
            raise BadInput(f"its mixtures have {experts:,} experts in all; expected at most {MOST_EXPERTS:,}")

    @staticmethod
    def _check_words(layer: "Sublayer") -> None:
        if not isinstance(layer.name, str) or not layer.name.isidentifier():
            raise BadInput(f"a sublayer is called {layer.name!r}; expected a name of its own, letters and digits")
        if isinstance(layer, Mixture):
            layer = layer.block
        if not isinstance(layer, FeedForward):
            return
        if layer.act not in _ACTS or layer.up not in _UPS:
            raise BadInput(f"{layer.name}: act is {layer.act!r}, up is {layer.up!r}; expected {_ACTS} and {_UPS}")
        if not isinstance(layer.bias, bool) or not isinstance(layer.up_bias, bool):
            raise BadInput(f"{layer.name}: bias is {layer.bias!r}, up_bias {layer.up_bias!r}; expected true or false")
        if layer.up != "dense" and (layer.up_bias or (layer.up == "none" and layer.up_reads)):
            raise BadInput(f"{layer.name}: up is {layer.up!r}, and has no use for its up_bias or up_reads")

    def shapes(self) -> Shapes:
        """Every tensor of the network, by its full name."""
        shapes: Shapes = {"embedding.W_E": (self.vocab, len(self.embeds))}
        for sublayer in self.sublayers:
            shapes |= {f"{sublayer.name}.{name}": shape for name, shape in sublayer.shapes().items()}
        return shapes | {
            "unembedding.W_U": (self.labels, len(self.unembeds)),
            "unembedding.b_U": (self.labels,),
        }

    @property
    def experts(self) -> frozenset[str]:
        """The tensors of all mixtures' experts."""
        mixtures = (layer for layer in self.sublayers if isinstance(layer, Mixture))
        return frozenset(f"{layer.name}.{expert_name(k)}" for layer in mixtures for k in range(layer.experts))

    @property
    def sees(self) -> int:
        """How many tokens, the last one included, can change the logits after the last: what all attention reaches."""
        return 1 + sum(layer.reach for layer in self.sublayers if isinstance(layer, Attention))

    @property
    def reach(self) -> int:
        """How many positions the farthest-looking attention looks back."""
        return max((layer.reach for layer in self.sublayers if isinstance(layer, Attention)), default=0)

    @property
    def widest(self) -> int:
        """The most numbers that any step makes for one token: a part may read or write a feature more than once."""
        return max(self.stream, self.labels, len(self.embeds), len(self.unembeds), *map(_widest, self.sublayers))

    @property
    def padded(self) -> int:
        """Parameters if every sublayer, the embedding and the unembedding were as wide as the stream."""
        inner = sum(sublayer.padded(self.stream) for sublayer in self.sublayers)
        return inner + (self.vocab + self.labels) * self.stream + self.labels

    def as_json(self) -> dict[str, Any]:
        """The object that config.json holds; features as ranges, "3:9"."""
        plain = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "sublayers"}
        return {
            **plain,
            "embeds": _ranges(self.embeds),
            "unembeds": _ranges(self.unembeds),
            "sublayers": [_sublayer_json(sublayer) for sublayer in self.sublayers],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], most: int = MOST_FEATURES) -> "Spec":
        """The spec that ``as_json`` wrote; BadInput if it is none, or its parts have more than ``most`` features.

        >>> ffn = FeedForward("square", "relu", reads=(0,), writes=(1,), units=1, bias=False, up="dense", up_reads=(0,))
        >>> spec = Spec(10, 10, 1, 2, "float32", (0,), (1,), (ffn,))
        >>> Spec.from_json(spec.as_json()) == spec
        True
        """
        known = {field.name for field in fields(cls)}
        try:
            if unknown := set(value) - known:
                raise ValueError(f"unknown keys {sorted(unknown)}")
            given = dict(value)
            _check_features([given, *given["sublayers"]], most)
            for name in ("embeds", "unembeds"):
                given[name] = _features(given[name])
            given["sublayers"] = tuple(_sublayer(item) for item in given["sublayers"])
            given["bfloat16"] = tuple(given.get("bfloat16", ()))
            return cls(**given)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadInput(f"config.json does not describe a Transformer of Byheart: {error}") from error


def _widest(layer: Sublayer) -> int:
    """The most numbers that any step of a sublayer makes for one token."""
    outer = max(len(layer.reads), len(layer.writes))
    if isinstance(layer, Attention):
        return max(outer, layer.heads * layer.d_head * layer.window)
    more = (len(layer.routes), layer.experts) if isinstance(layer, Mixture) else (len(layer.up_reads),)
    return max(outer, layer.groups * layer.units, *more)


def _second(layer: FeedForward | Mixture) -> list[str]:
    """The tensors that are second matrices."""
    return [name for name in layer.shapes() if name.startswith("W_out")]


def _sublayer_json(sublayer: Sublayer) -> dict[str, Any]:
    kind = next(name for name, cls in _KINDS.items() if isinstance(sublayer, cls))
    values = asdict(sublayer)
    return {"kind": kind} | {
        name: _ranges(value) if isinstance(value, tuple) else value for name, value in values.items()
    }


def _sublayer(value: Mapping[str, Any]) -> Sublayer:
    given = dict(value)
    cls = _KINDS[given.pop("kind")]
    for name in ("reads", "routes", "writes", "up_reads"):
        if name in given:
            given[name] = _features(given[name])
    return cls(**given)


def _ranges(features: Features) -> list[str]:
    """Features as ranges of neighbours.

    >>> _ranges((3, 4, 5, 9, 9))
    ['3:6', '9:10', '9:10']
    """
    ranges: list[list[int]] = []
    for feature in features:
        if ranges and ranges[-1][1] == feature:
            ranges[-1][1] += 1
        else:
            ranges.append([feature, feature + 1])
    return [f"{start}:{stop}" for start, stop in ranges]


_FEATURES = ("embeds", "unembeds", "reads", "routes", "writes", "up_reads")


def _check_features(parts: Sequence[Mapping[str, Any]], most: int) -> None:
    """ValueError if the parts of a network have more than ``most`` features in all; nothing is expanded here."""
    bounds = [bound for part in parts for name in _FEATURES if name in part for bound in _bounds(part[name])]
    if (count := sum(stop - start for start, stop in bounds)) > most:
        raise ValueError(f"its parts have {count:,} features; expected at most {most:,}, the entries of its tensors")


def _bounds(ranges: list[str]) -> list[tuple[int, int]]:
    bounds = []
    for part in ranges:
        start, stop = (int(number) for number in part.split(":"))
        if not 0 <= start < stop <= LARGEST:
            raise ValueError(f"{part!r} are no features; expected a range such as 3:9")
        bounds.append((start, stop))
    return bounds


def _features(ranges: list[str]) -> Features:
    return tuple(feature for start, stop in _bounds(ranges) for feature in range(start, stop))


Cache = list[Tensor]
"""What each attention sublayer has read: at the tokens just given, and as far before them as it looks back.

[features, B, reach + T]. Cutting off the last k positions takes back the last k tokens, k < T.
"""


class Slice:
    """Some features of the stream: a view where they are neighbours, a gather or scatter where they are not."""

    def __init__(self, features: Features) -> None:
        start = features[0] if features else 0
        self.neighbours = features == tuple(range(start, start + len(features)))
        self.start, self.stop = start, start + len(features)
        self.index = torch.tensor(features, dtype=torch.long, device="cpu")

    def read(self, stream: Tensor) -> Tensor:
        """[features, M]."""
        if self.neighbours:
            return stream[self.start : self.stop]
        return stream.index_select(0, self._index(stream))

    def add(self, stream: Tensor, value: Tensor) -> Tensor:
        """The stream with ``value`` [features, M] added; in place unless gradients are wanted."""
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

    def __init__(self, spec: Attention, dtype: torch.dtype) -> None:
        super().__init__()
        self.spec = spec
        self.reads, self.writes = Slice(spec.reads), Slice(spec.writes)
        for name, shape in spec.shapes().items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape, dtype=dtype)))

    def forward(self, stream: Tensor, batch: int, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The stream [D, B·T] after the sublayer, and what the next positions must know of these."""
        spec = self.spec
        heads, d_head, dilation = spec.heads, spec.d_head, spec.dilation
        seen = self.reads.read(stream)
        width, length = seen.shape[0], seen.shape[1] // batch
        before = seen.new_zeros(width, batch, spec.reach) if past is None else past[:, :, past.shape[2] - spec.reach :]
        history = torch.cat([before, seen.view(width, batch, length)], dim=2)
        held = history
        if length == 1:  # only these are looked at: the others need no keys
            held, dilation = history[:, :, ::dilation], 1
        held = held.reshape(width, -1)

        def windows(values: Tensor) -> Tensor:
            """[H, d_head, window, B, T], the farthest offset first."""
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

    def __init__(self, spec: FeedForward, dtype: torch.dtype, bfloat16: frozenset[str]) -> None:
        super().__init__()
        self.spec = spec
        self.reads, self.up_reads, self.writes = Slice(spec.reads), Slice(spec.up_reads), Slice(spec.writes)
        for name, shape in spec.shapes().items():
            kept = torch.bfloat16 if f"{spec.name}.{name}" in bfloat16 else dtype
            self.register_parameter(name, nn.Parameter(torch.zeros(shape, dtype=kept)))
        self.first = "in" if spec.up == "none" else "gate"

    def forward(self, stream: Tensor) -> Tensor:
        """The stream [D, M] after the sublayer."""
        spec = self.spec
        seen = self._affine(self.reads.read(stream), self.first)
        hidden = seen.sigmoid() if spec.act == "sigmoid" else seen.relu()
        if spec.up == "dense":
            hidden = hidden * self._affine(self.up_reads.read(stream), "up")
        elif spec.up == "diagonal":
            up = self.up_reads.read(stream).view(spec.groups, spec.units, -1)
            hidden = hidden * (up * self.W_up.unsqueeze(2))
        # Not fused with the addition to the stream: a feature that uses all bits of the format has no room for a part.
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
        """The stream [D, M] after the sublayer: one product for each expert that some place takes."""
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
        """The units [G, units, M]."""
        found = in_groups(self.W_in, getattr(self, "b_in", None), seen)
        return found.sigmoid() if self.spec.act == "sigmoid" else found.relu()

    def _second(self, W: Tensor, seen: Tensor) -> Tensor:
        hidden = self._hidden(seen)
        return torch.bmm(W.to(hidden.dtype), hidden)


def in_groups(W: Tensor, b: Tensor | None, seen: Tensor) -> Tensor:
    """W x + b in groups: W [G, units, a], x [G·a, M] to [G, units, M]."""
    groups, _, width = W.shape
    parts = seen.view(groups, width, -1)
    if b is None:
        return W * parts if width == 1 else torch.bmm(W, parts)
    b = b.unsqueeze(2)
    return torch.addcmul(b, W, parts) if width == 1 else torch.baddbmm(b, W, parts)


class Embedding(nn.Module):
    """A row of W_E [ω, features] for every token."""

    def __init__(self, spec: Spec, dtype: torch.dtype) -> None:
        super().__init__()
        self.W_E = nn.Parameter(torch.zeros(spec.vocab, len(spec.embeds), dtype=dtype))

    def forward(self, tokens: Tensor) -> Tensor:
        """[…, features] for tokens […]."""
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
        self.embedding = Embedding(spec, dtype)
        layers: list[AttentionLayer | FeedForwardLayer | MixtureLayer] = []
        self.unembedding = Unembedding(spec, dtype)
        self.embeds, self.unembeds = Slice(spec.embeds), Slice(spec.unembeds)
        self._mixing, self._local, self.mixing_width = layers, layers, 0  # all names that no sublayer may have
        for sublayer in spec.sublayers:
            if hasattr(self, sublayer.name):
                raise BadInput(f"a sublayer is called {sublayer.name!r}, which a module has already; expected another")
            if isinstance(sublayer, Attention):
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
        return self.unembedding.b_U.device

    @property
    def sees(self) -> int:
        """How many tokens, the last one included, can change the logits after the last."""
        return self.spec.sees

    def forward(self, tokens: Tensor, *, last: int | None = None, mask: Tensor | None = None) -> Tensor:
        """Logits [B, T, C], or of the ``last`` positions only [B, last, C].

        ``mask`` [B, T] is 0 for tokens that count as missing (padding on the left).
        """
        stream, _ = self.mix(tokens, None, mask)
        kept = stream if last is None else stream[:, max(0, stream.shape[1] - last) :]
        return self.answer(kept.flatten(0, 1)).view(*kept.shape[:2], -1)

    def watched(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
        """Logits [B, T, C], and the stream [B, T, D] after the embedding and after every sublayer, in order."""
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
        """Logits [B, C] after the last of ``tokens`` [B, T], which follow those that made ``cache``."""
        stream, cache = self.mix(tokens, cache)
        return self.answer(stream[:, -1]), cache

    def mix(self, tokens: Tensor, cache: Cache | None, mask: Tensor | None = None) -> tuple[Tensor, Cache]:
        """The stream [B, T, ≤ D] after the last attention sublayer, and the cache.

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
        """Logits [M, C] from the stream [M, …] after the last attention sublayer."""
        read = self.unembeds.read(self.local(stream).T)
        with exact_products(stream.device, stream.shape[0]):
            return nn.functional.linear(read.T, self.unembedding.W_U, self.unembedding.b_U)

    def local(self, stream: Tensor, until: str | None = None) -> Tensor:
        """The stream [M, D] after the sublayers that follow the last attention, or those before ``until``."""
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
"""Where PyTorch keeps how products of float32 may be rounded."""


FEW = 256
"""So few places are worked on by one thread: several would wait for each other longer than they work."""


@contextmanager
def exact_products(device: torch.device, places: int) -> Iterator[None]:
    """Products with all bits of their factors, whatever the user has set; one thread if there are few ``places``."""
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


class ByheartConfig(PretrainedConfig):
    """What config.json holds: ``spec`` describes the network, ``about`` what it has memorized."""

    model_type = FLOAT

    def __init__(self, spec: dict[str, Any] | None = None, about: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**{"tie_word_embeddings": False, **kwargs})
        self.spec, self.about = spec, about or {}


class ByheartForCausalLM(PreTrainedModel, GenerationMixin):
    """A float Transformer that recites; its weights come from a folder, by ``from_pretrained``.

    It stays in the format that it was compiled in, and refuses others: in these it would forget.
    """

    network: Transformer
    config_class = ByheartConfig
    main_input_name = "input_ids"

    def __init__(self, config: ByheartConfig) -> None:
        super().__init__(config)
        if not config.spec:
            raise BadInput("the configuration has no spec; expected that of a folder that Byheart wrote")
        network = Transformer(Spec.from_json(config.spec))
        # The parts are ours, the whole is not: so tensors have the names here that they have in the file.
        for name, part in network.named_children():
            self.add_module(name, part)
        object.__setattr__(self, "network", network)
        self._check_format(config.dtype)
        self.post_init()

    def _check_format(self, asked: Any = None) -> None:
        """BadInput if another format is asked for, or if somebody has brought the weights into one."""
        kept: torch.dtype = getattr(torch, self.network.spec.precision)
        for found in (asked, self.network.unembedding.b_U.dtype):
            if found not in (None, kept, self.network.spec.precision):
                raise BadInput(f"the model was to be {found}; expected {kept}, in any other it forgets: omit dtype")

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        logits_to_keep: int | Tensor = 0,
        return_dict: bool | None = None,
        output_hidden_states: bool | None = None,
        **others: Any,
    ) -> CausalLMOutput | tuple[Tensor, ...]:
        """Logits [B, T, C] after each of ``input_ids`` [B, T]; with ``labels`` [B, T], the loss too.

        Where ``attention_mask`` [B, T] is 0, tokens count as missing, which is meant for padding on the left; what
        stands on the right changes nothing before it. ``logits_to_keep`` is how many of the last positions are wanted
        (0: all), or which. Hidden states are the stream [B, T, D] after the embedding and after every sublayer.
        """
        for name in ("past_key_values", "inputs_embeds"):
            if others.get(name) is not None:
                raise BadInput(f"{name} was given; expected input_ids only, the network keeps nothing between calls")
        if input_ids is None:
            raise BadInput("no input_ids given; expected token ids [B, T]")
        self._check_format()
        last = logits_to_keep if isinstance(logits_to_keep, int) and logits_to_keep else None
        states: list[Tensor] | None = None
        logits: Any
        if self.config.output_hidden_states if output_hidden_states is None else output_hidden_states:
            logits, states = self.network.watched(input_ids, attention_mask)
            logits = logits if last is None else logits[:, -last:]
        else:
            logits = self.network(input_ids, last=last, mask=attention_mask)
        if isinstance(logits_to_keep, Tensor):
            logits = logits[:, logits_to_keep]
        loss: Any = None
        if labels is not None:
            if logits.shape[1] != labels.shape[1]:
                raise BadInput(f"labels are {list(labels.shape)} with logits_to_keep; expected one or the other")
            loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        found: Any = None if states is None else tuple(states)
        output = CausalLMOutput(loss=loss, logits=logits, hidden_states=found)
        return output.to_tuple() if return_dict is False else output

    def prepare_inputs_for_generation(  # type: ignore[override]  # all are given by name
        self, input_ids: Tensor, *, attention_mask: Tensor | None = None, **others: Any
    ) -> dict[str, Any]:
        """The tokens that the network can see from the last one; BadInput if the last one of a text is padding."""
        if attention_mask is not None and not attention_mask[:, -1].all():
            row = int((attention_mask[:, -1] == 0).nonzero()[0])
            raise BadInput(f"text {row} is padded on the right; expected padding on the left: padding_side='left'")
        seen = slice(-self.network.sees, None)
        mask = None if attention_mask is None else attention_mask[:, seen]
        return {"input_ids": input_ids[:, seen], "attention_mask": mask, "logits_to_keep": 1}

    def get_input_embeddings(self) -> nn.Module:
        """What gives every token its features; the stream has others besides."""
        return self.network.embedding

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        """Transformers asks; see the top for why there is no cache."""
        return False

    def _init_weights(self, module: nn.Module) -> None:
        """Nothing is drawn: what a folder does not give stays 0."""

"""The description of a float Transformer: an embedding, sublayers on one residual stream, an unembedding.

Letters: D features in the stream, ω tokens, C labels. Every sublayer is ordinary and *rectangular*: it reads some
features of the stream and adds to some.

- ``WindowAttention``: heads of dimension d_head over the last positions (dilated sliding window: offsets 0, δ,
2δ, …) with
  a relative bias; softmax(q·k + bias). What lies before the start of the sequence is a zero vector.
- ``GatedBlocks``: W_out · act(W_in x + b_in), or gated, W_out · (act(W_gate x + b_gate) ⊙ (W_up x + b_up)), in
  ``groups`` equal blocks that read and write features of their own (as a grouped convolution does). A diagonal W_up has
  one entry per unit.
- ``Mixture``: the same without a gate, but with several second matrices, *experts*, of which every token takes one:
  W_out[k] · act(W_in x + b_in), with k the largest of the scores W_route x + b_route. The others add nothing.

The number of parameters is the number of entries of all tensors; ``padded`` is what the same network takes if every
sublayer reads and writes the whole stream, as in a stock Transformer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from byheart.errors import BadInput

Features = tuple[int, ...]
PRECISIONS = ("float32", "float64")
LARGEST = 1 << 31
"""Largest size in a network, so that the product of two fits 64 bits."""
MOST_FEATURES = 1 << 24
"""Most features that all parts of a network may read or write together, if its tensors are not known."""
MOST_REACH = 1 << 17
"""Most positions that one attention may look back; compiling uses windows of at most 2¹⁶ tokens."""
MOST_EXPERTS = 1 << 12
"""Most experts in all mixtures of a network together; each has its own tensor."""
_ACTS, _UPS = ("sigmoid", "relu"), ("none", "dense", "diagonal")
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class WindowAttention:
    """Softmax attention over the last ``window`` positions, ``dilation`` apart."""

    name: str
    reads: Features
    writes: Features
    window: int
    dilation: int
    heads: int
    d_head: int

    def shapes(self) -> Shapes:
        """Return the shape of every tensor."""
        inner, read = self.heads * self.d_head, len(self.reads)
        return {
            "W_Q": (inner, read),
            "W_K": (inner, read),
            "W_V": (inner, read),
            "W_O": (len(self.writes), inner),
            "bias": (self.heads, self.window),
        }

    def padded(self, stream: int) -> int:
        """Count the parameters that the sublayer would have if it read and wrote the whole stream."""
        return 4 * self.heads * self.d_head * stream + self.heads * self.window

    @property
    def reach(self) -> int:
        """Number of positions that it looks back."""
        return (self.window - 1) * self.dilation


@dataclass(frozen=True)
class GatedBlocks:
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
            raise BadInput(f"{self.name}: a diagonal W_up reads {len(self.up_reads)}; expected one feature per unit")

    def shapes(self) -> Shapes:
        """Return the shape of every tensor."""
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
        """Count the parameters that the sublayer would have if it read and wrote the whole stream."""
        units = self.groups * self.units
        matrices = 2 if self.up == "none" else 3
        return units * (matrices * stream + self.bias + self.up_bias)


@dataclass(frozen=True)
class Mixture:
    """``groups`` blocks of ``units`` units each, and one of ``experts`` second matrices behind them.

    A router chooses it: every expert has one score, W_route x + b_route for the features x of ``routes``; the expert
    with the largest score, the first of equals, is taken with weight 1.
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
    def block(self) -> GatedBlocks:
        """The feed-forward sublayer with a single second matrix, in front of every expert."""
        return GatedBlocks(self.name, self.act, self.reads, self.writes, self.units, self.groups, self.bias)

    def shapes(self) -> Shapes:
        """Return the shape of every tensor, those of the experts last."""
        shapes = self.block.shapes()
        second = shapes.pop("W_out")
        shapes |= {"W_route": (self.experts, len(self.routes)), "b_route": (self.experts,)}
        return shapes | {expert_name(expert): second for expert in range(self.experts)}

    def padded(self, stream: int) -> int:
        """Count the parameters that the sublayer would have if it read and wrote the whole stream."""
        more = (self.experts - 1) * self.groups * self.units * stream
        return self.block.padded(stream) + more + self.experts * (stream + 1)


def expert_name(expert: int) -> str:
    """Return the name, within its sublayer, of an expert's second matrix."""
    return f"W_out.{expert}"


Sublayer = WindowAttention | GatedBlocks | Mixture
_KINDS: dict[str, type[Sublayer]] = {"attention": WindowAttention, "feed-forward": GatedBlocks, "mixture": Mixture}


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
    """Names of tensors that are stored in bfloat16; calculations use ``precision``."""

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise BadInput(f"precision is {self.precision!r}; expected one of {', '.join(PRECISIONS)}")
        sizes: dict[str, object] = {name: getattr(self, name) for name in ("vocab", "labels", "window", "stream")}
        parts = {"embeds": self.embeds, "unembeds": self.unembeds}
        self._check_experts()
        for layer in self.sublayers:
            numbers = (
                ("window", "dilation", "heads", "d_head") if isinstance(layer, WindowAttention) else ("units", "groups")
            )
            sizes |= {f"{layer.name}: {name}": getattr(layer, name) for name in numbers}
            gated = isinstance(layer, GatedBlocks) and layer.up != "none"
            more = ("up_reads",) if gated else ("routes",) if isinstance(layer, Mixture) else ()
            parts |= {f"{layer.name}: {name}": getattr(layer, name) for name in ("reads", "writes", *more)}
            self._check_words(layer)
        for name, size in sizes.items():
            if type(size) is not int or not 1 <= size <= LARGEST:
                raise BadInput(f"{name} is {size!r}; expected a whole number from 1 to {LARGEST:,}")
        for layer in self.sublayers:
            if isinstance(layer, WindowAttention) and layer.reach > MOST_REACH:
                raise BadInput(f"{layer.name} looks back {layer.reach:,} positions; expected at most {MOST_REACH:,}")
        names = [layer.name for layer in self.sublayers]
        if len({*names, "embedding", "unembedding"}) < len(names) + 2:
            raise BadInput("two parts have one name; expected different ones")
        inner = [layer for layer in self.sublayers if not isinstance(layer, WindowAttention)]
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
        """Raise BadInput if there are too many experts, before each gets a name."""
        experts = sum(layer.experts for layer in self.sublayers if isinstance(layer, Mixture))
        if experts > MOST_EXPERTS:
            raise BadInput(f"its mixtures have {experts:,} experts in all; expected at most {MOST_EXPERTS:,}")

    @staticmethod
    def _check_words(layer: "Sublayer") -> None:
        if not isinstance(layer.name, str) or not layer.name.isidentifier():
            raise BadInput(f"a sublayer is called {layer.name!r}; expected a name of its own, letters and digits")
        if isinstance(layer, Mixture):
            layer = layer.block
        if not isinstance(layer, GatedBlocks):
            return
        if layer.act not in _ACTS or layer.up not in _UPS:
            raise BadInput(f"{layer.name}: act is {layer.act!r}, up is {layer.up!r}; expected {_ACTS} and {_UPS}")
        if not isinstance(layer.bias, bool) or not isinstance(layer.up_bias, bool):
            raise BadInput(f"{layer.name}: bias is {layer.bias!r}, up_bias {layer.up_bias!r}; expected true or false")
        if layer.up != "dense" and (layer.up_bias or (layer.up == "none" and layer.up_reads)):
            raise BadInput(f"{layer.name}: up is {layer.up!r}, and has no use for its up_bias or up_reads")

    def shapes(self) -> Shapes:
        """Return the shape of every tensor of the network, by its full name."""
        shapes: Shapes = {"embedding.W_E": (self.vocab, len(self.embeds))}
        for sublayer in self.sublayers:
            shapes |= {f"{sublayer.name}.{name}": shape for name, shape in sublayer.shapes().items()}
        return shapes | {
            "unembedding.W_U": (self.labels, len(self.unembeds)),
            "unembedding.b_U": (self.labels,),
        }

    @property
    def experts(self) -> frozenset[str]:
        """Names of the tensors of all experts."""
        mixtures = (layer for layer in self.sublayers if isinstance(layer, Mixture))
        return frozenset(f"{layer.name}.{expert_name(k)}" for layer in mixtures for k in range(layer.experts))

    @property
    def sees(self) -> int:
        """Number of tokens, including the last, that can change the logits after the last."""
        return 1 + sum(layer.reach for layer in self.sublayers if isinstance(layer, WindowAttention))

    @property
    def reach(self) -> int:
        """Largest number of positions that an attention looks back."""
        return max((layer.reach for layer in self.sublayers if isinstance(layer, WindowAttention)), default=0)

    @property
    def widest(self) -> int:
        """Most numbers that any step makes per token; a part may read or write a feature more than once."""
        return max(self.stream, self.labels, len(self.embeds), len(self.unembeds), *map(_widest, self.sublayers))

    @property
    def padded(self) -> int:
        """Parameters if every sublayer, the embedding and the unembedding were as wide as the stream."""
        inner = sum(sublayer.padded(self.stream) for sublayer in self.sublayers)
        return inner + (self.vocab + self.labels) * self.stream + self.labels

    def as_json(self) -> dict[str, Any]:
        """Return the object for config.json, with features as ranges such as "3:9"."""
        plain = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "sublayers"}
        return {
            **plain,
            "embeds": _ranges(self.embeds),
            "unembeds": _ranges(self.unembeds),
            "sublayers": [_sublayer_json(sublayer) for sublayer in self.sublayers],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], most: int = MOST_FEATURES) -> "Spec":
        """Read what ``as_json`` wrote; raise BadInput if it is none, or its parts have more than ``most`` features.

        >>> ffn = GatedBlocks("square", "relu", reads=(0,), writes=(1,), units=1, bias=False, up="dense", up_reads=(0,))
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
    """Return the most numbers that any step of a sublayer makes per token."""
    outer = max(len(layer.reads), len(layer.writes))
    if isinstance(layer, WindowAttention):
        return max(outer, layer.heads * layer.d_head * layer.window)
    more = (len(layer.routes), layer.experts) if isinstance(layer, Mixture) else (len(layer.up_reads),)
    return max(outer, layer.groups * layer.units, *more)


def _second(layer: GatedBlocks | Mixture) -> list[str]:
    """Return the names of the second matrices."""
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
    """Write features as ranges of neighbours.

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
    """Raise ValueError if the parts have more than ``most`` features in all, without expanding a range."""
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

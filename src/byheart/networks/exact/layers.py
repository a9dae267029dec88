"""What an exact Transformer is made of.

Every weight is an integer (:mod:`.exact.integers`), every layer may divide by a power of two, so every value
in the network is a rational number that is known exactly; only softmax attention makes real numbers of them, which
:mod:`.exact.enclose` encloses. A sequence is ``[n, d_model]``; token-wise layers act on each
row, mixing layers act across rows.

=====================  ==========  =========================================================================
layer                  token-wise  map
=====================  ==========  =========================================================================
:class:`Embedding`     yes         token id t ↦ W_E[t]
:class:`Positions`     yes         Z_k ↦ Z_k + W_pos[k]
:class:`FeedForward`   yes         a chain of :class:`Affine` maps, with or without residual
:class:`Residual`      yes         a chain of :class:`Block`, Z ↦ Z + W_out relu(W_in Z + b_in)
:class:`UniformAttention`   no     Z_k ↦ Z_k + W_O W_V · mean(Z), the layer of Kajitsuka & Sato 2025
:class:`HardmaxAttention`   no     Z_k ↦ Z_k + W_O W_V · mean of the Z_j that maximise (W_K Z_j)·(W_Q Z_k)
:class:`SoftmaxAttention`   no     Z_k ↦ Z_k + W_O W_V · Σ_j a_kj Z_j, a_k = softmax of these scores; scaled by 2^−shift
:class:`Flatten`       no          the n rows become one row of n·d_model entries (networks on points)
=====================  ==========  =========================================================================
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from byheart.errors import BadInput
from byheart.networks.exact.integers import Integers


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise BadInput(message)


@dataclass(frozen=True, eq=False)
class Affine:
    """x ↦ (W x + b) / 2^shift, then the ReLU if ``relu``; W is [out, in], b is [out].

    ``role`` says in a word or two what the layer is for; it becomes part of the tensors' names.
    """

    W: Integers
    b: Integers
    shift: int = 0
    relu: bool = True
    role: str = "affine"

    def __post_init__(self) -> None:
        _expect(self.W.ndim == 2, f"{self.role}: W has shape {self.W.shape}; expected [out, in]")
        _expect(
            self.b.shape == self.W.shape[:1], f"{self.role}: b has shape {self.b.shape}; expected {self.W.shape[:1]}"
        )
        _expect(self.shift >= 0, f"{self.role}: shift is {self.shift}; expected 0 or more")


@dataclass(frozen=True, eq=False)
class Embedding:
    """Token id t ↦ W_E[t]; W_E is [vocab, d_model]."""

    W_E: Integers
    name: str = "embedding"


@dataclass(frozen=True, eq=False)
class Positions:
    """Z_k ↦ Z_k + W_pos[k]; W_pos is [n, d_model]."""

    W_pos: Integers
    name: str = "positions"


@dataclass(frozen=True, eq=False)
class FeedForward:
    """The layers in turn on every token; with ``residual`` the input is added to the result."""

    layers: tuple[Affine, ...]
    residual: bool = False
    name: str = "feed_forward"

    def __post_init__(self) -> None:
        _expect(len(self.layers) > 0, f"{self.name}: expected at least one layer")
        for before, after in pairwise(self.layers):
            _expect(
                after.W.shape[1] == before.W.shape[0],
                f"{self.name}: {after.role} reads {after.W.shape[1]} values; {before.role} gives {before.W.shape[0]}",
            )
        if self.residual:
            _expect(
                self.layers[0].W.shape[1] == self.layers[-1].W.shape[0],
                f"{self.name}: a residual needs as many outputs as inputs",
            )


@dataclass(frozen=True, eq=False)
class Block:
    """Z ↦ Z + W_out relu(W_in Z + b_in): W_in is [d_ff, d_model], W_out is [d_model, d_ff]; there is no second bias."""

    W_in: Integers
    b_in: Integers
    W_out: Integers
    role: str = "block"

    def __post_init__(self) -> None:
        _expect(self.W_in.ndim == 2, f"{self.role}: W_in has shape {self.W_in.shape}; expected [d_ff, d_model]")
        d_ff, d_model = self.W_in.shape
        fits = self.b_in.shape == (d_ff,) and self.W_out.shape == (d_model, d_ff)
        _expect(
            fits, f"{self.role}: W_in {self.W_in.shape}, b_in {self.b_in.shape}, W_out {self.W_out.shape} do not fit"
        )


@dataclass(frozen=True, eq=False)
class Residual:
    """Residual feed-forward blocks one after the other, on every token: what a Transformer's stream is made for."""

    blocks: tuple[Block, ...]
    name: str = "residual"

    def __post_init__(self) -> None:
        _expect(len(self.blocks) > 0, f"{self.name}: expected at least one block")
        for before, after in pairwise(self.blocks):
            widths = before.W_in.shape[1], after.W_in.shape[1]
            _expect(
                widths[0] == widths[1],
                f"{self.name}: {after.role} reads {widths[1]} values; the stream has {widths[0]}",
            )


@dataclass(frozen=True, eq=False)
class UniformAttention:
    """Z_k ↦ Z_k + W_O W_V (1/n) Σ_j Z_j; W_V is [d_head, d_model], W_O is [d_model, d_head].

    This is softmax attention with W_Q = 0. As in the paper it has no W_Q and W_K to count.
    """

    W_V: Integers
    W_O: Integers
    name: str = "attention"


@dataclass(frozen=True, eq=False)
class HardmaxAttention:
    """Z_k ↦ Z_k + W_O W_V · (mean of the Z_j whose score (W_K Z_j)·(W_Q Z_k) is the largest).

    W_Q and W_K are [d_head, d_model], W_V is [d_value, d_model], W_O is [d_model, d_value]. Ties share the attention
    equally: the limit of softmax attention as its scores grow. With ``causal`` position k sees the j ≤ k only.
    """

    W_Q: Integers
    W_K: Integers
    W_V: Integers
    W_O: Integers
    causal: bool = False
    name: str = "attention"


@dataclass(frozen=True, eq=False)
class SoftmaxAttention:
    """Z_k ↦ Z_k + W_O W_V Σ_j a_kj Z_j / 2^shift, a_k = softmax_j((W_K Z_j)·(W_Q Z_k) / 2^score_shift).

    The shapes are those of :class:`HardmaxAttention`. The outputs are real numbers: they are enclosed, never rounded.
    """

    W_Q: Integers
    W_K: Integers
    W_V: Integers
    W_O: Integers
    score_shift: int = 0
    shift: int = 0
    name: str = "attention"

    def __post_init__(self) -> None:
        for key in ("score_shift", "shift"):
            value = getattr(self, key)
            _expect(
                type(value) is int and value >= 0, f"{self.name}: {key} is {value!r}; expected an integer, 0 or more"
            )


@dataclass(frozen=True)
class Flatten:
    """The rows of a sequence one after the other, as one row: [n, d_model] ↦ [1, n·d_model]."""

    name: str = "flatten"


Attention: TypeAlias = UniformAttention | HardmaxAttention | SoftmaxAttention
Layer: TypeAlias = Embedding | Positions | FeedForward | Residual | Attention | Flatten
TOKEN_WISE = (Embedding, Positions, FeedForward, Residual)


@dataclass(frozen=True, eq=False)
class ExactNetwork:
    """Layers from the input to one integer a sequence (``outputs="last"``) or a token (``outputs="every"``).

    The value of the stream's only coordinate at the last position, or at every position, is the predicted label.
    ``inputs`` says what goes in: token ids [N, n], or vectors [N, n, d] of dyadic rationals. Token ids without an
    :class:`Embedding` in front are read as the numbers that they are, d = 1.
    """

    layers: tuple[Layer, ...]
    inputs: Literal["tokens", "vectors"]
    outputs: Literal["last", "every"]
    length: int
    dim: int = 1

    def __post_init__(self) -> None:
        _expect(self.inputs in ("tokens", "vectors"), f"inputs is {self.inputs!r}; expected 'tokens' or 'vectors'")
        _expect(self.outputs in ("last", "every"), f"outputs is {self.outputs!r}; expected 'last' or 'every'")
        _expect(self.length >= 1 and self.dim >= 1, f"length {self.length} and dim {self.dim} must be at least 1")
        _expect(self.inputs == "vectors" or self.dim == 1, f"token ids have one coordinate; dim is {self.dim}")
        width, flat = self.dim, False
        for index, layer in enumerate(self.layers):
            first = index == 0 and self.inputs == "tokens"
            _expect(not isinstance(layer, Embedding) or first, f"{layer.name}: an embedding comes first, and reads ids")
            matrices = (value for key, value in vars(layer).items() if key.startswith("W_"))
            _expect(all(W.ndim == 2 for W in matrices), f"{layer.name}: expected matrices [rows, columns]")
            mixing = not isinstance(layer, TOKEN_WISE) or isinstance(layer, Positions)
            _expect(not (flat and mixing), f"{layer.name}: there is only one position left after flattening")
            width = _width_after(layer, width, self.length)
            flat = flat or isinstance(layer, Flatten)
        _expect(not flat or self.outputs == "last", "a flattened sequence has one output; outputs is 'every'")

    @property
    def rational(self) -> bool:
        """Whether all outputs are rational numbers, which softmax attention does not leave."""
        return not any(isinstance(layer, SoftmaxAttention) for layer in self.layers)

    def tensors(self) -> Iterator[tuple[str, Integers]]:
        """Every weight with its name, in order: ("label.3.fold.W", …)."""
        for layer in self.layers:
            if isinstance(layer, FeedForward):
                for index, affine in enumerate(layer.layers):
                    yield f"{layer.name}.{index}.{affine.role}.W", affine.W
                    yield f"{layer.name}.{index}.{affine.role}.b", affine.b
            elif isinstance(layer, Residual):
                for index, block in enumerate(layer.blocks):
                    for key in ("W_in", "b_in", "W_out"):
                        yield f"{layer.name}.{index}.{block.role}.{key}", getattr(block, key)
            else:
                for key, value in vars(layer).items():
                    if key.startswith("W_"):
                        yield f"{layer.name}.{key}", value

    def with_tensor(self, name: str, tensor: Integers) -> "ExactNetwork":
        """A copy with the tensor called ``name`` exchanged."""
        return replace(self, layers=tuple(_exchanged(layer, name, tensor) for layer in self.layers))


def _width_after(layer: Layer, width: int, length: int) -> int:
    """The stream's width behind ``layer``; BadInput if the layer does not fit a stream of ``width``."""
    match layer:
        case Embedding(W_E=W_E):
            return int(W_E.shape[1])
        case Flatten():
            return width * length
        case FeedForward(layers=layers):
            reads, result = layers[0].W.shape[1], int(layers[-1].W.shape[0])
        case Residual(blocks=blocks):
            reads, result = blocks[0].W_in.shape[1], width
        case Positions(W_pos=W_pos, name=name):
            _expect(len(W_pos) == length, f"{name}: {len(W_pos)} positions for sequences of {length}")
            reads, result = W_pos.shape[1], width
        case UniformAttention() | HardmaxAttention() | SoftmaxAttention():
            reads, result = _attention_width(layer), width
    _expect(reads == width, f"{layer.name}: reads {reads} values; the stream has {width}")
    return result


def _attention_width(layer: Attention) -> int:
    """What an attention layer reads and writes; BadInput if its matrices do not follow each other."""
    width = int(layer.W_V.shape[1])
    fits = layer.W_O.shape == layer.W_V.shape[::-1]
    if not isinstance(layer, UniformAttention):
        fits = fits and layer.W_Q.shape == layer.W_K.shape and layer.W_Q.shape[1] == width
    _expect(fits, f"{layer.name}: the shapes of its matrices do not follow each other")
    return width


def _exchanged(layer: Layer, name: str, tensor: Integers) -> Layer:
    def changed(part: Any, prefix: str) -> Any:
        return replace(part, **{key: tensor for key in vars(part) if f"{prefix}.{key}" == name})

    if isinstance(layer, FeedForward):
        chain = (changed(part, f"{layer.name}.{i}.{part.role}") for i, part in enumerate(layer.layers))
        return replace(layer, layers=tuple(chain))
    if isinstance(layer, Residual):
        blocks = (changed(part, f"{layer.name}.{i}.{part.role}") for i, part in enumerate(layer.blocks))
        return replace(layer, blocks=tuple(blocks))
    exchanged: Layer = changed(layer, layer.name)
    return exchanged

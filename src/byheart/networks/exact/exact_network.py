"""An exact network: layers in a row, what goes in, and where the answers are."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from byheart.errors import BadInput
from byheart.networks.exact.exact_layers import (
    MOST_SHIFT,
    TOKEN_WISE,
    Attention,
    Embedding,
    FeedForward,
    Flatten,
    HardmaxAttention,
    Integers,
    Layer,
    Positions,
    Residual,
    SoftmaxAttention,
    TokenSum,
    UniformAttention,
    expect,
)
from byheart.networks.exact.format import describe, pack, rebuild, shapes, unpack
from byheart.networks.folders import EXACT, WEIGHTS, read_weights
from byheart.networks.network import Network

Inputs: TypeAlias = NDArray[np.int64] | NDArray[np.float64]
"""Token ids [N, n] or vectors [N, n, d]."""
BYTES_PER_BYTE = 32
"""Memory per byte of the file: an integer of four bytes is an object of 32 bytes, in two lists and an array."""


@dataclass(frozen=True, eq=False, repr=False)
class ExactNetwork(Network):
    """Layers from the input to one integer per sequence (``outputs="last"``) or per token (``outputs="every"``).

    The value of the stream's only coordinate at the last position, or at every position, is the predicted label.
    ``inputs`` are token ids [N, n] ("tokens"), or vectors [N, n, d] of dyadic rationals ("vectors"). Without an
    :class:`Embedding` in front, token ids are read as numbers, d = 1.
    """

    kind = "exact"
    layers: tuple[Layer, ...]
    inputs: Literal["tokens", "vectors"]
    outputs: Literal["last", "every"]
    length: int
    dim: int = 1

    def __post_init__(self) -> None:
        expect(self.inputs in ("tokens", "vectors"), f"inputs is {self.inputs!r}; expected 'tokens' or 'vectors'")
        expect(self.outputs in ("last", "every"), f"outputs is {self.outputs!r}; expected 'last' or 'every'")
        whole = all(type(size) is int and size >= 1 for size in (self.length, self.dim))
        expect(whole, f"length is {self.length!r} and dim {self.dim!r}; expected whole numbers from 1 on")
        expect(self.inputs == "vectors" or self.dim == 1, f"token ids have one coordinate; dim is {self.dim}")
        flat = False
        for index, layer in enumerate(self.layers):
            first = index == 0 and self.inputs == "tokens"
            expect(not isinstance(layer, Embedding) or first, f"{layer.name}: an embedding comes first, and reads ids")
            matrices = (value for key, value in vars(layer).items() if key.startswith("W_"))
            expect(all(W.ndim == 2 for W in matrices), f"{layer.name}: expected matrices [rows, columns]")
            mixing = not isinstance(layer, TOKEN_WISE) or isinstance(layer, Positions)
            expect(not (flat and mixing), f"{layer.name}: there is only one position left after flattening")
            flat = flat or isinstance(layer, Flatten)
        expect(not flat or self.outputs == "last", "a flattened sequence has one output; outputs is 'every'")
        _ = self.streams  # every layer fits the one before
        for name, tensor in self.tensors():
            expect(tensor.dtype == object, f"{name} is {tensor.dtype}; expected integers of any size (exact.integers)")
            expect(tensor.size > 0, f"{name} has shape {tensor.shape}; expected at least one entry")
        shifts = sum(_shift(layer) for layer in self.layers)
        expect(shifts <= MOST_SHIFT, f"the layers shift by {shifts:,} bits in all; expected at most {MOST_SHIFT:,}")

    @cached_property
    def streams(self) -> tuple[int, ...]:
        """Width of the stream before the first layer, and after each layer."""
        widths = [self.dim]
        for layer in self.layers:
            widths.append(_width_after(layer, widths[-1], self.length))
        return tuple(widths)

    @property
    def depth(self) -> int:
        """Number of weight layers: one per affine map, embedding and attention, two per residual block."""
        return sum(_size(layer)[0] for layer in self.layers)

    @property
    def width(self) -> int:
        """Largest width of the stream and of the hidden layers."""
        return max([*self.streams, *(_size(layer)[1] for layer in self.layers)])

    def entry_bits(self, name: str) -> None:
        """Return None: every integer has its own size."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the layers' description and all integers."""
        digest = hashlib.sha256(json.dumps(self.description, sort_keys=True).encode())
        for array in pack([tensor for _, tensor in self.tensors()]).values():
            digest.update(array.tobytes())
        return digest.hexdigest()

    @property
    def description(self) -> dict[str, Any]:
        """All but the integers, as in config.json."""
        sizes = {key: getattr(self, key) for key in ("inputs", "outputs", "length", "dim")}
        return {**sizes, "layers": describe(self.layers)}

    @property
    def rational(self) -> bool:
        """True if all outputs are rational numbers, that is, without softmax attention."""
        return not any(isinstance(layer, SoftmaxAttention) for layer in self.layers)

    def tensors(self) -> Iterator[tuple[str, Integers]]:
        """Yield every tensor with its name, for example "label.3.fold.W", in order."""
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

    def as_config(self) -> dict[str, Any]:
        """Return the entries of config.json."""
        return {"format": EXACT, "network": self.description}

    def write_tensors(self, folder: Path) -> None:
        """Write the weights into ``folder``."""
        save_file(pack([tensor for _, tensor in self.tensors()]), folder / WEIGHTS)

    @classmethod
    def read(cls, config: dict[str, Any], folder: Path, **beside: Any) -> "ExactNetwork":
        """Return the network that ``config`` describes, with the weights in ``folder``."""
        arrays = read_weights(folder, ("I32", "U8"), takes=BYTES_PER_BYTE)
        try:
            description = config["network"]
            tensors = unpack(arrays, list(shapes(description["layers"])))
            sizes = {key: description[key] for key in ("inputs", "outputs", "length", "dim")}
            return cls(rebuild(description["layers"], iter(tensors)), **sizes, **beside)
        except BadInput:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadInput(f"config.json does not describe an exact network ({error!r})") from error

    def with_tensor(self, name: str, tensor: Integers) -> "ExactNetwork":
        """Return a copy with the tensor called ``name`` replaced."""
        return replace(self, layers=tuple(_exchanged(layer, name, tensor) for layer in self.layers))


def _size(layer: Layer) -> tuple[int, int]:
    """Return the number of weight layers, and the largest number of hidden units."""
    match layer:
        case FeedForward(layers=chain):
            return len(chain), max(affine.W.shape[0] for affine in chain)
        case Residual(blocks=blocks):
            return 2 * len(blocks), max(len(block.W_in) for block in blocks)
        case Positions() | TokenSum() | Flatten():
            return 0, 0
        case _:
            return 1, 0


def _shift(layer: Layer) -> int:
    """Return the sum of all shifts of the layer, in bits."""
    match layer:
        case FeedForward(layers=chain):
            return sum(affine.shift for affine in chain)
        case SoftmaxAttention(score_shift=score_shift, shift=shift):
            return score_shift + shift
        case _:
            return 0


def _width_after(layer: Layer, width: int, length: int) -> int:
    """Return the stream's width after ``layer``; raise BadInput if the layer does not fit a stream of ``width``."""
    match layer:
        case Embedding(W_E=W_E):
            return int(W_E.shape[1])
        case Flatten():
            return width * length
        case TokenSum():
            return width
        case FeedForward(layers=layers):
            reads, result = layers[0].W.shape[1], int(layers[-1].W.shape[0])
        case Residual(blocks=blocks):
            reads, result = blocks[0].W_in.shape[1], width
        case Positions(W_pos=W_pos, name=name):
            expect(len(W_pos) == length, f"{name}: {len(W_pos)} positions for sequences of {length}")
            reads, result = W_pos.shape[1], width
        case UniformAttention() | HardmaxAttention() | SoftmaxAttention():
            reads, result = _attention_width(layer), width
    expect(reads == width, f"{layer.name}: reads {reads} values; the stream has {width}")
    return result


def _attention_width(layer: Attention) -> int:
    """Return the width that attention reads and writes; raise BadInput if its matrices do not fit each other."""
    width = int(layer.W_V.shape[1])
    fits = layer.W_O.shape == layer.W_V.shape[::-1]
    if not isinstance(layer, UniformAttention):
        fits = fits and layer.W_Q.shape == layer.W_K.shape and layer.W_Q.shape[1] == width
    expect(fits, f"{layer.name}: the shapes of its matrices do not follow each other")
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


def check_inputs(network: ExactNetwork, inputs: Inputs) -> None:
    """Raise BadInput unless the network reads such inputs."""
    kind = "tokens" if inputs.ndim == 2 else "vectors"
    if kind != network.inputs:
        raise BadInput(f"the network reads {network.inputs}; the task has {kind}")
    if kind == "tokens" and not np.issubdtype(inputs.dtype, np.integer):
        raise BadInput(f"the network reads token ids; the task's are {inputs.dtype}")
    if inputs.shape[1] != network.length:
        raise BadInput(f"the network reads sequences of {network.length} tokens; the task's have {inputs.shape[1]}")
    if kind == "vectors" and inputs.shape[2] != network.dim:
        raise BadInput(f"the network reads vectors of dimension {network.dim}; the task's have {inputs.shape[2]}")
    if network.layers and isinstance(network.layers[0], Embedding):
        vocab = len(network.layers[0].W_E)
        for token in (int(inputs.min()), int(inputs.max())):
            if not 0 <= token < vocab:
                raise BadInput(f"the network knows {vocab} tokens; the task has token id {token}")


def require_rational(network: ExactNetwork) -> None:
    """Raise BadInput if outputs are real numbers, which no exact evaluation can write down."""
    if not network.rational:
        raise BadInput(
            "softmax attention gives real numbers, which exact evaluation cannot write down; "
            "enclose them (byheart.networks.exact.enclose)"
        )

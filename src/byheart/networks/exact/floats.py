"""The same network as an ordinary ``torch.nn.Module``, without loss: only where every value provably fits.

:func:`.exact.fits.require_fit` proves, for the task's inputs, that no sum is ever rounded; so the module's
answers are the exact network's, bit for bit, whatever the batch size, the order of summation or the number of threads.
"""

from fractions import Fraction
from typing import Literal

import torch
from torch import nn

from byheart.errors import BadInput
from byheart.networks.exact.exact_layers import (
    Affine,
    Block,
    Embedding,
    FeedForward,
    Flatten,
    Integers,
    Layer,
    Positions,
    Residual,
    TokenSum,
    UniformAttention,
    linear,
)
from byheart.networks.exact.exact_network import ExactNetwork, Inputs, check_inputs
from byheart.networks.exact.fits import mixing_matrix, require_fit

Precision = Literal["float32", "float64"]
_TYPES: dict[Precision, tuple[torch.dtype, int]] = {"float32": (torch.float32, 24), "float64": (torch.float64, 53)}


def to_torch(network: ExactNetwork, inputs: Inputs, precision: Precision = "float64") -> "Twin":
    """Return a module with exactly the network's outputs on ``inputs`` ([N, n] ids or [N, n, d] vectors).

    Raise BadInput, with the layer and the bits it needs, if that cannot be guaranteed.

    >>> import numpy as np
    >>> from byheart.networks.exact import integers
    >>> double = FeedForward((Affine(integers([[2]]), integers([-1])),))
    >>> network = ExactNetwork((double,), inputs="tokens", outputs="last", length=1)
    >>> to_torch(network, np.array([[0], [3]]))(torch.tensor([[0], [3]])).tolist()
    [0.0, 5.0]
    """
    dtype, mantissa = _TYPES[precision]
    check_inputs(network, inputs)
    require_fit(network, inputs, mantissa)
    return Twin(network, dtype)


class Twin(nn.Module):
    """Embedding, attention and linear layers in a row; from ids [B, n] or vectors [B, n, d] to labels [B] or [B, n]."""

    def __init__(self, network: ExactNetwork, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype, self.outputs = dtype, network.outputs
        pairs = zip(network.layers, network.streams, strict=False)  # the last stream is that behind all layers
        self.layers = nn.ModuleList([_module(layer, network.length, width, dtype) for layer, width in pairs])

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the labels, as floats that are integers."""
        stream = inputs
        embedded = len(self.layers) > 0 and isinstance(self.layers[0], nn.Embedding)
        if not embedded:
            stream = (inputs if inputs.dim() == 3 else inputs[..., None]).to(self.dtype)
        for layer in self.layers:
            stream = layer(stream)
        return stream[:, -1, 0] if self.outputs == "last" else stream[..., 0]


class _Mixing(nn.Module):
    def __init__(self, matrix: Integers, dtype: torch.dtype) -> None:
        super().__init__()
        self.W_OV = _linear(linear(matrix), dtype)

    def forward(self, stream: torch.Tensor) -> torch.Tensor:
        mixed: torch.Tensor = self.W_OV(stream.sum(dim=1, keepdim=True))
        return stream + mixed


class _Positions(nn.Module):
    def __init__(self, W_pos: Integers, dtype: torch.dtype) -> None:
        super().__init__()
        self.W_pos = nn.Parameter(_tensor(W_pos, 0, dtype))

    def forward(self, stream: torch.Tensor) -> torch.Tensor:
        return stream + self.W_pos


class _Residual(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, stream: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = stream + self.inner(stream)
        return result


class _Flatten(nn.Module):
    def forward(self, stream: torch.Tensor) -> torch.Tensor:
        return stream.flatten(1)[:, None, :]


def _tensor(values: Integers, shift: int, dtype: torch.dtype) -> torch.Tensor:
    """Return values / 2^shift exactly: the odd part of every integer fits into the mantissa."""
    return torch.tensor([float(Fraction(v, 1 << shift)) for v in values.ravel()], dtype=dtype).reshape(values.shape)


def _linear(layer: Affine, dtype: torch.dtype) -> nn.Linear:
    outputs, inputs = layer.W.shape
    module = nn.Linear(inputs, outputs, dtype=dtype)
    with torch.no_grad():
        module.weight.copy_(_tensor(layer.W, layer.shift, dtype))
        module.bias.copy_(_tensor(layer.b, layer.shift, dtype))
    return module


def _block(block: Block, dtype: torch.dtype) -> nn.Module:
    d_ff, d_model = block.W_in.shape
    second = nn.Linear(d_ff, d_model, bias=False, dtype=dtype)
    with torch.no_grad():
        second.weight.copy_(_tensor(block.W_out, 0, dtype))
    return _Residual(nn.Sequential(_linear(Affine(block.W_in, block.b_in), dtype), nn.ReLU(), second))


def _module(layer: Layer, length: int, width: int, dtype: torch.dtype) -> nn.Module:
    """Return the layer as a module, for sequences of ``length`` whose stream before it has ``width`` values."""
    match layer:
        case Embedding(W_E=W_E):
            return nn.Embedding(W_E.shape[0], W_E.shape[1], _weight=_tensor(W_E, 0, dtype))
        case Positions(W_pos=W_pos):
            return _Positions(W_pos, dtype)
        case Residual(blocks=blocks):
            return nn.Sequential(*(_block(block, dtype) for block in blocks))
        case UniformAttention() | TokenSum():
            return _Mixing(mixing_matrix(layer, length, width), dtype)
        case Flatten():
            return _Flatten()
        case FeedForward(layers=layers, residual=residual):
            parts: list[nn.Module] = []
            for affine in layers:
                parts.append(_linear(affine, dtype))
                if affine.relu:
                    parts.append(nn.ReLU())
            chain = nn.Sequential(*parts)
            return _Residual(chain) if residual else chain
        case _:
            raise BadInput(f"{layer.name}: {type(layer).__name__} has no float twin yet")

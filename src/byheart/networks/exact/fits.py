"""Does an exact network fit into floats? Every value it takes on a set of inputs, bounded before it is computed.

A float with p bits of mantissa (24 for float32, 53 for float64) holds every integer up to 2^p, and every such integer
divided by a power of two. A sum of products is therefore exact, in any order and with or without fused operations, if
the sum of the *absolute values* of its terms, over their common power of two, is at most 2^p. This module walks through
the network on the given inputs with machine integers and checks that bound, computed with integers of any size, in
front of every sum; where it holds, the machine integers cannot overflow either. The result is a proof for these inputs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.networks.exact.exact_layers import (
    Affine,
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
    identity,
    integers,
    linear,
)
from byheart.networks.exact.exact_network import ExactNetwork

_EXPONENTS = {24: 126, 53: 1022}
"""Largest e such that 2^−e to 2^e are normal floats, by the bits of the mantissa."""


@dataclass(frozen=True, eq=False)
class IntegerStream:
    """Values [N, n, width] as ``numerators`` / 2^``exponent``."""

    numerators: NDArray[np.int64]
    exponent: int = 0


def require_fit(network: ExactNetwork, inputs: NDArray[np.generic], mantissa: int) -> None:
    """Raise BadInput, with the layer and its bits, if a value on ``inputs`` may not fit into ``mantissa`` bits."""
    stream = _start(network, inputs, mantissa)
    for layer in network.layers:
        stream = _through(layer, stream, mantissa)


def _start(network: ExactNetwork, inputs: NDArray[np.generic], mantissa: int) -> IntegerStream:
    if network.inputs == "tokens":
        ids = inputs.astype(np.int64)[:, :, None]
        _bounded(_largest(ids), mantissa, "the token ids")
        return IntegerStream(ids)
    values, finest = inputs.astype(np.float64), 0
    while np.abs(values).max(initial=0) <= 2.0**mantissa and finest <= mantissa:
        if np.array_equal(values, np.rint(values)):
            return IntegerStream(values.astype(np.int64), finest)
        values, finest = values * 2, finest + 1
    raise BadInput(f"the input vectors need more than {mantissa} bits on a common grid; keep the exact network")


def _largest(numerators: NDArray[np.int64]) -> int:
    """Return the largest absolute value, as an integer that cannot overflow."""
    return max(-int(numerators.min(initial=0)), int(numerators.max(initial=0)))


def _through(layer: Layer, stream: IntegerStream, mantissa: int) -> IntegerStream:
    match layer:
        case Embedding(W_E=W_E, name=name):
            _bounded(max(abs(int(w)) for w in W_E.ravel()), mantissa, f"{name}.W_E")
            return IntegerStream(W_E[stream.numerators[:, :, 0]].astype(np.int64))
        case Positions(W_pos=W_pos, name=name):
            codes = np.array([[int(w) << stream.exponent for w in row] for row in W_pos], dtype=object)
            largest = _largest(stream.numerators) + max(abs(int(w)) for w in codes.ravel())
            _bounded(largest, mantissa, name)
            return IntegerStream(stream.numerators + codes.astype(np.int64), stream.exponent)
        case FeedForward(layers=layers, residual=residual, name=name):
            result = stream
            for index, affine in enumerate(layers):
                result = _affine(affine, result, mantissa, f"{name}.{index}.{affine.role}")
            return _sum(stream, result, mantissa, name) if residual else result
        case Residual(blocks=blocks, name=name):
            for index, block in enumerate(blocks):
                place = f"{name}.{index}.{block.role}"
                hidden = _affine(Affine(block.W_in, block.b_in), stream, mantissa, place)
                stream = _sum(stream, _affine(linear(block.W_out), hidden, mantissa, place), mantissa, place)
            return stream
        case UniformAttention(name=name) | TokenSum(name=name):
            matrix = mixing_matrix(layer, *stream.numerators.shape[1:])
            if _largest(stream.numerators) * stream.numerators.shape[1] > 1 << mantissa:
                sums = np.abs(stream.numerators.astype(object)).sum(axis=1)
                _bounded(int(sums.max()), mantissa, f"{name} (sum)")
            total = IntegerStream(stream.numerators.sum(axis=1, keepdims=True), stream.exponent)
            return _sum(stream, _affine(linear(matrix), total, mantissa, name), mantissa, name)
        case HardmaxAttention(name=name) | SoftmaxAttention(name=name):
            kind = "hardmax" if isinstance(layer, HardmaxAttention) else "softmax"
            raise BadInput(f"{name}: {kind} attention has no float twin yet; keep the exact network")
        case Flatten():
            N = len(stream.numerators)
            return IntegerStream(stream.numerators.reshape(N, 1, -1), stream.exponent)


def mixing_matrix(layer: UniformAttention | TokenSum, length: int, width: int) -> Integers:
    """Return the factor of sums, W_O W_V / n or 2·I, for a stream of ``width``; raise BadInput if it has fractions."""
    if isinstance(layer, TokenSum):
        return identity(width, 2)
    matrix = layer.W_O @ layer.W_V
    if any(int(entry) % length for entry in matrix.ravel()):
        raise BadInput(f"{layer.name}: W_O W_V is not divisible by the length {length}, so 1/n would be rounded")
    return integers(matrix // length)


def _affine(layer: Affine, stream: IntegerStream, mantissa: int, place: str) -> IntegerStream:
    largest = [_largest(stream.numerators[:, :, unit]) for unit in range(stream.numerators.shape[2])]
    weights = np.zeros(layer.W.shape, dtype=np.int64)
    biases = np.zeros(len(layer.b), dtype=np.int64)
    for i, row in enumerate(layer.W):
        scaled = int(layer.b[i]) << stream.exponent
        _bounded(sum(abs(int(w)) * z for w, z in zip(row, largest, strict=True)) + abs(scaled), mantissa, place)
        _writable(int(layer.b[i]), layer.shift, mantissa, place)
        for j in np.flatnonzero(row):
            _writable(int(row[j]), layer.shift, mantissa, place)
            weights[i, j] = int(row[j]) if largest[j] else 0
        biases[i] = scaled
    numerators = stream.numerators @ weights.T + biases
    result = _reduced(np.maximum(numerators, 0) if layer.relu else numerators, stream.exponent + layer.shift)
    if result.exponent > _EXPONENTS[mantissa]:
        raise BadInput(f"{place}: values need steps of 2^-{result.exponent}, below the float type's range")
    return result


def _writable(value: int, shift: int, mantissa: int, place: str) -> None:
    """Raise BadInput if the weight value/2^shift is no float: too many bits, too large or too small."""
    if value == 0:
        return
    lowest = (value & -value).bit_length() - 1 - shift
    highest = abs(value).bit_length() - 1 - shift
    _bounded(abs(value) // (value & -value), mantissa, place)
    if not -_EXPONENTS[mantissa] <= lowest <= highest <= _EXPONENTS[mantissa]:
        raise BadInput(f"{place}: a weight of about 2^{highest} is outside the float type's range")


def _reduced(numerators: NDArray[np.int64], exponent: int) -> IntegerStream:
    common = int(np.bitwise_or.reduce(numerators, axis=None))
    zeros = (common & -common).bit_length() - 1 if common else exponent
    shift = min(zeros, exponent)
    return IntegerStream(numerators >> shift, exponent - shift)


def _sum(first: IntegerStream, second: IntegerStream, mantissa: int, place: str) -> IntegerStream:
    exponent = max(first.exponent, second.exponent)
    largest = sum(_largest(s.numerators) << (exponent - s.exponent) for s in (first, second))
    _bounded(largest, mantissa, place)
    shifted = [s.numerators << (exponent - s.exponent) for s in (first, second)]
    return _reduced(shifted[0] + shifted[1], exponent)


def _bounded(value: int, mantissa: int, place: str) -> None:
    if value > 1 << mantissa:
        raise BadInput(
            f"{place}: values may need {value.bit_length()} bits; the float type holds {mantissa}; "
            "keep the exact network, or build with a smaller bound on the bits of a weight"
        )

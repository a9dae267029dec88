"""The outputs of exact networks by rational matrices of python-flint, layer by layer, as the formulas say.

This evaluation is slow and plain on purpose. It is the second opinion of the tests and of ``byheart certify --evaluator
flint``, so it shares no arithmetic with :mod:`byheart.networks.exact.evaluate` or other evaluators of exact layers.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
from flint import fmpq, fmpq_mat, fmpz

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
)
from byheart.networks.exact.exact_network import ExactNetwork, Inputs, check_inputs, require_rational
from byheart.progress import Report


def evaluate(network: ExactNetwork, inputs: Inputs, *, threads: int = 1, report: Report | None = None) -> Integers:
    """Return the exact outputs, [N] or [N, n], as the fast evaluation does (``threads`` is ignored)."""
    check_inputs(network, inputs)
    require_rational(network)
    rows = []
    for sequence in inputs:
        stream = _start(network, sequence)
        for layer in network.layers:
            stream = _apply(layer, stream)
        values = [_plain(stream[0, k]) for k in range(stream.ncols())]
        rows.append(values[-1] if network.outputs == "last" else values)
        if report is not None:
            report(len(rows), len(inputs))
    result = np.empty((len(rows),) if network.outputs == "last" else (len(rows), network.length), dtype=object)
    result[...] = rows
    return result


def trace(network: ExactNetwork, sequence: np.ndarray) -> Iterator[tuple[str, list[list[int | Fraction]]]]:
    """Yield the input and then the stream after every map, with the map's name; rows are tokens.

    Maps inside a feed-forward layer are called like their tensors, ``label.3.fold``; a skip connection and the maps
    that it spans are one map.
    """
    check_inputs(network, sequence[None])
    require_rational(network)
    stream = _start(network, sequence)
    yield "input", _rows(stream)
    for layer in network.layers:
        if isinstance(layer, FeedForward) and not layer.residual:
            for index, affine in enumerate(layer.layers):
                stream = _affine(affine, stream)
                yield f"{layer.name}.{index}.{affine.role}", _rows(stream)
        elif isinstance(layer, Residual):
            for index, block in enumerate(layer.blocks):
                stream = _apply(replace(layer, blocks=(block,)), stream)
                yield f"{layer.name}.{index}.{block.role}", _rows(stream)
        else:
            stream = _apply(layer, stream)
            yield layer.name, _rows(stream)


def _start(network: ExactNetwork, sequence: np.ndarray) -> fmpq_mat:
    """Return the stream before the first layer."""
    if network.inputs == "vectors":
        return _from_floats(sequence)
    return fmpq_mat(1, len(sequence), [int(token) for token in sequence])


def _rows(stream: fmpq_mat) -> list[list[int | Fraction]]:
    return [[_plain(stream[i, k]) for i in range(stream.nrows())] for k in range(stream.ncols())]


def _plain(value: fmpq) -> int | Fraction:
    numerator, denominator = int(value.p), int(value.q)
    return numerator if denominator == 1 else Fraction(numerator, denominator)


def _from_floats(sequence: np.ndarray) -> fmpq_mat:
    """Return vectors as a matrix whose columns are tokens; every float is an exact ratio of integers."""
    n, d = sequence.shape
    return fmpq_mat(d, n, [fmpq(*float(sequence[k, j]).as_integer_ratio()) for j in range(d) for k in range(n)])


def _matrix(weights: Integers) -> fmpq_mat:
    rows = weights if weights.ndim == 2 else weights[:, None]
    return fmpq_mat(rows.shape[0], rows.shape[1], [fmpz(int(w)) for w in rows.ravel()])


def _affine(layer: Affine, stream: fmpq_mat) -> fmpq_mat:
    product = _matrix(layer.W) * stream
    scale = fmpq(1, fmpz(2) ** layer.shift)
    for i in range(product.nrows()):
        for k in range(product.ncols()):
            value = (product[i, k] + int(layer.b[i])) * scale
            product[i, k] = fmpq(0) if layer.relu and value < 0 else value
    return product


def _apply(layer: Layer, stream: fmpq_mat) -> fmpq_mat:  # noqa: PLR0911 (one a layer)
    match layer:
        case Embedding(W_E=W_E):
            return _matrix(W_E[[int(token.p) for token in stream.entries()]].T)
        case FeedForward(layers=layers, residual=residual):
            result = stream
            for affine in layers:
                result = _affine(affine, result)
            return stream + result if residual else result
        case Residual(blocks=blocks):
            for block in blocks:
                hidden = _affine(Affine(block.W_in, block.b_in), stream)
                stream = stream + _matrix(block.W_out) * hidden
            return stream
        case Positions(W_pos=W_pos):
            return stream + _matrix(W_pos.T)
        case Flatten():
            return fmpq_mat(stream.nrows() * stream.ncols(), 1, stream.transpose().entries())
        case TokenSum():
            twice = fmpq_mat(stream.ncols(), stream.ncols(), [2] * stream.ncols() ** 2)
            return stream + stream * twice
        case UniformAttention(W_V=W_V, W_O=W_O):
            everywhere = fmpq_mat(stream.ncols(), stream.ncols(), [fmpq(1, stream.ncols())] * stream.ncols() ** 2)
            return stream + _matrix(W_O) * _matrix(W_V) * stream * everywhere
        case HardmaxAttention():
            return stream + _matrix(layer.W_O) * _matrix(layer.W_V) * stream * _hardmax(layer, stream)
        case SoftmaxAttention():
            raise AssertionError("refused before")


def _hardmax(layer: HardmaxAttention, stream: fmpq_mat) -> fmpq_mat:
    """Return the weights [n keys, n queries]: every column shares 1 equally among the largest scores."""
    scores = (_matrix(layer.W_K) * stream).transpose() * (_matrix(layer.W_Q) * stream)
    n = stream.ncols()
    weights = fmpq_mat(n, n)
    for query in range(n):
        column = [scores[key, query] for key in range(query + 1 if layer.causal else n)]
        winners = [key for key, score in enumerate(column) if score == max(column)]
        for key in winners:
            weights[key, query] = fmpq(1, len(winners))
    return weights

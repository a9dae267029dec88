"""The outputs of a network with softmax attention, enclosed in balls (:mod:`byheart.networks.balls`).

The weights are integers over powers of two, and so are all values before the attention: they are computed exactly
(:mod:`byheart.networks.exact.evaluate`). After a softmax the values are real numbers. From there on all operations are
on balls or on intervals that contain the true values; with more bits they shrink. Nothing is sampled or assumed.

After the attention a position's stream depends only on its own token and on how often every token occurs in its
sequence (layers with positions must come before it). So every different pair is computed once.

This is not the formula of :mod:`byheart.networks.exact.reference` over balls: after attention, token-wise layers act on
intervals with exact ends, in compiled programs on limbs (:func:`_on_intervals`) for many streams at once, and
attention acts on different tokens with their numbers of occurrences.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from flint import arb, fmpq, fmpz
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.networks.balls import Ball, precision, rounded_outward
from byheart.networks.exact.evaluate import split, token_streams
from byheart.networks.exact.exact_layers import (
    Affine,
    FeedForward,
    Integers,
    Layer,
    Residual,
    SoftmaxAttention,
    UniformAttention,
    integers,
)
from byheart.networks.exact.exact_network import ExactNetwork, Inputs
from byheart.networks.exact.kernels import LIMB
from byheart.networks.exact.limbs import LimbProgram, from_integers, residual_steps
from byheart.progress import Report

_LIMBS = 1 << 25
"""Number of limbs of a feed-forward layer in memory at a time."""


@dataclass(frozen=True)
class _Sequence:
    """The different tokens of a sequence: their streams [T][d_model], how often each occurs, and the queried ones."""

    streams: list[list[Ball]]
    counts: list[int]
    queried: list[int]


def enclose(network: ExactNetwork, inputs: Inputs, *, bits: int, report: Report | None = None) -> NDArray[np.object_]:
    """Return balls around the outputs for all sequences, calculated with ``bits`` bits: [N], or [N, n] for "every".

    ``report`` is called with the number of streams that a token-wise layer has processed, and their total.

    >>> from byheart.networks.exact import integers
    >>> one = integers([[1]])
    >>> layer = SoftmaxAttention(W_Q=one, W_K=one, W_V=one, W_O=one)
    >>> network = ExactNetwork((layer,), inputs="tokens", outputs="every", length=2)
    >>> print(enclose(network, np.array([[0, 1]]), bits=64)[0, 1].str(10))  # 1 + e/(1 + e)
    [1.731058579 +/- 3.71e-10]
    """
    rest = split(network)[1]
    for layer in rest:
        if not isinstance(layer, FeedForward | Residual | SoftmaxAttention | UniformAttention):
            expected = "feed-forward, softmax and uniform attention layers from the first attention on"
            raise BadInput(f"{layer.name}: {type(layer).__name__} cannot be enclosed; expected {expected}")
    numerators, denominator, index = _merged(*token_streams(network, inputs))
    tokens, counts, questions, answer = _different(index, last_only=network.outputs == "last")
    with precision(bits):
        streams = [[arb(fmpq(fmpz(int(x)), fmpz(denominator))) for x in row] for row in numerators]
        batch = [
            _Sequence([streams[token] for token in own], times, queried)
            for own, times, queried in zip(tokens, counts, questions, strict=True)
        ]
        mixing = [place for place, layer in enumerate(rest) if isinstance(layer, SoftmaxAttention | UniformAttention)]
        for place, layer in enumerate(rest):
            if isinstance(layer, SoftmaxAttention | UniformAttention):
                # After the last mixing layer only the queried tokens are needed.
                last = place == mixing[-1]
                batch = [_mixed(layer, sequence, queried_only=last) for sequence in batch]
            else:
                batch = _token_wise(layer, batch, bits, report)
    outputs = np.empty(sum(len(sequence.queried) for sequence in batch), dtype=object)
    outputs[:] = [sequence.streams[own][0] for sequence in batch for own in sequence.queried]
    return outputs[answer]


def _merged(
    numerators: Integers, denominator: int, index: NDArray[np.int64]
) -> tuple[Integers, int, NDArray[np.int64]]:
    """Replace tokens that have the same stream by one token."""
    number: dict[tuple[int, ...], int] = {}
    place = np.array([number.setdefault(tuple(row), len(number)) for row in numerators], dtype=np.int64)
    return integers([list(row) for row in number]), denominator, place[index]


def _different(
    index: NDArray[np.int64], *, last_only: bool
) -> tuple[list[list[int]], list[list[int]], list[list[int]], NDArray[np.int64]]:
    """Return the different multisets of tokens in ``index`` [N, n], and the place of each output among the queries.

    A query is a token of a multiset. The lists hold for every multiset its tokens, how often each occurs, and which of
    them are queried; the array holds the index of the query for every output.
    """
    rows, inverse = np.unique(np.sort(index, axis=1), axis=0, return_inverse=True)
    kinds = int(index.max()) + 1
    asking = index[:, -1] if last_only else index
    pairs = asking + kinds * inverse.reshape(len(index), *[1] * (asking.ndim - 1))
    questions, answer = np.unique(pairs, return_inverse=True)
    tokens, counts = [], []
    for row in rows:
        present, times = np.unique(row, return_counts=True)
        tokens.append(present.tolist())
        counts.append(times.tolist())
    queried: list[list[int]] = [[] for _ in rows]
    for question in questions.tolist():
        queried[question // kinds].append(tokens[question // kinds].index(question % kinds))
    return tokens, counts, queried, answer.reshape(asking.shape)


def _mixed(layer: SoftmaxAttention | UniformAttention, sequence: _Sequence, *, queried_only: bool) -> _Sequence:
    """Apply attention at every token of a sequence, or only at the queried tokens, and drop the others."""
    streams = sequence.streams
    chosen = sequence.queried if queried_only else list(range(len(streams)))
    values = [_times(layer.W_O, _times(layer.W_V, stream)) for stream in streams]
    divide = _power(layer.shift if isinstance(layer, SoftmaxAttention) else 0)
    result = []
    for own, weights in zip(chosen, _weights(layer, sequence, chosen), strict=True):
        added = [_dot(weights, [value[i] for value in values]) * divide for i in range(len(streams[own]))]
        result.append([x + y for x, y in zip(streams[own], added, strict=True)])
    queried = list(range(len(chosen))) if queried_only else sequence.queried
    return _Sequence(result, [sequence.counts[own] for own in chosen], queried)


def _weights(
    layer: SoftmaxAttention | UniformAttention, sequence: _Sequence, chosen: list[int]
) -> Iterator[list[Ball]]:
    """Yield the attention weights of each chosen token: one per different token, for all its occurrences together."""
    if isinstance(layer, UniformAttention):
        total = sum(sequence.counts)
        yield from ([arb(count) / total for count in sequence.counts] for _ in chosen)
        return
    keys, scale = [_times(layer.W_K, stream) for stream in sequence.streams], _power(layer.score_shift)
    for own in chosen:
        query = [x * scale for x in _times(layer.W_Q, sequence.streams[own])]
        yield _softmax([_dot(key, query) for key in keys], sequence.counts)


def _softmax(scores: list[Ball], counts: list[int]) -> list[Ball]:
    """Return the weight of every different token, count · exp(score) over the sum; the scores may be of any size."""
    largest = max(score.mid() for score in scores)
    raised = [count * (score - largest).exp() for score, count in zip(scores, counts, strict=True)]
    total = sum(raised[1:], raised[0])
    return [value / total for value in raised]


def _power(shift: int) -> Ball:
    """Return 2^−shift, a ball of radius 0."""
    return arb(fmpq(1, fmpz(1) << shift))


def _dot(x: list[Ball], y: list[Ball]) -> Ball:
    terms = [a * b for a, b in zip(x, y, strict=True)]
    return sum(terms[1:], terms[0])


def _times(W: Integers, x: list[Ball]) -> list[Ball]:
    return [_dot([arb(int(w)) for w in row], x) for row in W]


def _token_wise(layer: Layer, batch: list[_Sequence], bits: int, report: Report | None) -> list[_Sequence]:
    """Apply a feed-forward layer or residual blocks to the streams of all sequences, in pieces, as exact intervals.

    A ball is widened to an interval whose ends are multiples of 2^−bits; from there on nothing is rounded.
    """
    streams = [stream for sequence in batch for stream in sequence.streams]
    program = _on_intervals(layer)
    widest = max(len(step.W) for step in program.layers)
    limbs = (bits + program.largest_bits) // LIMB + 2
    piece = min(256, max(1, _LIMBS // (widest * limbs)))
    done: list[list[Ball]] = []
    for begin in range(0, len(streams), piece):
        done += _through(layer, program, streams[begin : begin + piece], bits)
        if report is not None:
            report(len(done), len(streams))
    rest = iter(done)
    return [replace(sequence, streams=[next(rest) for _ in sequence.streams]) for sequence in batch]


def _through(layer: Layer, program: LimbProgram, streams: list[list[Ball]], bits: int) -> list[list[Ball]]:
    """Return the streams after a layer; a stream that is unknown before it (nan) stays unknown."""
    result: list[list[Ball]] = [[arb("nan")] * (len(program.layers[-1].W) // 2) for _ in streams]
    finite = [i for i, stream in enumerate(streams) if all(ball.is_finite() for ball in stream)]
    if finite:
        ends = [[end for ball in streams[i] for end in rounded_outward(ball, bits)] for i in finite]
        output = program(replace(from_integers(integers(ends)), exponent=bits))
        denominator = fmpz(1) << output.exponent
        for i, row in zip(finite, output.numerators(), strict=True):
            result[i] = [_between(row[k : k + 2], denominator) for k in range(0, len(row), 2)]
    if isinstance(layer, FeedForward) and layer.residual:
        return [[x + y for x, y in zip(*pair, strict=True)] for pair in zip(streams, result, strict=True)]
    return result


def _on_intervals(layer: Layer) -> LimbProgram:
    """Return the layer as a program on (low, high) pairs: units 2i and 2i + 1 are the ends of unit i."""
    if isinstance(layer, FeedForward):
        return LimbProgram(tuple(_doubled(affine) for affine in layer.layers))
    assert isinstance(layer, Residual)
    steps = tuple(_doubled(step) for block in layer.blocks for step in residual_steps(block))
    return LimbProgram(steps, rectified=tuple(d for block in layer.blocks for d in (2 * len(block.W_in), 0)))


def _doubled(layer: Affine) -> Affine:
    """Double a map's units: positive weights map an end of an interval to the same end, negative ones to the other."""
    outputs, inputs = layer.W.shape
    positive, negative = np.maximum(layer.W, 0), np.minimum(layer.W, 0)
    W = np.zeros((2 * outputs, 2 * inputs), dtype=object)
    W[0::2, 0::2], W[0::2, 1::2] = positive, negative
    W[1::2, 0::2], W[1::2, 1::2] = negative, positive
    return replace(layer, W=integers(W), b=integers(np.repeat(layer.b, 2)))


def _between(ends: Integers, denominator: fmpz) -> Ball:
    low, high = (arb(fmpq(fmpz(int(end)), denominator)) for end in ends)
    return low.union(high)

"""What a network with softmax attention answers, enclosed: balls of python-flint's ``arb`` that hold the true outputs.

The weights are integers over powers of two, and so is everything in front of the attention: it is computed exactly
(:mod:`.exact.evaluate`). A softmax makes real numbers of it. From there on every operation is one on balls
[m ± r] that contain the true value, or on intervals; with more bits they shrink. Nothing is sampled, nothing assumed.

Behind the attention a position's stream depends on its own token and on how often every token occurs in its sequence,
and on nothing else (layers that know positions must come before it). So every different pair is computed once.
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
"""Limbs that a feed-forward layer has in memory at a time."""


@dataclass(frozen=True)
class _Sequence:
    """The different tokens of a sequence: their streams [T][d_model], how often each occurs, and which are asked."""

    streams: list[list[Ball]]
    counts: list[int]
    asked: list[int]


def enclose(network: ExactNetwork, inputs: Inputs, *, bits: int, report: Report | None = None) -> NDArray[np.object_]:
    """Balls around the outputs for all sequences, calculated with ``bits`` bits: [N], or [N, n] for "every".

    ``report`` is called with the number of streams that a token-wise layer is done with, and that there are.

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
            _Sequence([streams[token] for token in own], times, asked)
            for own, times, asked in zip(tokens, counts, questions, strict=True)
        ]
        mixing = [place for place, layer in enumerate(rest) if isinstance(layer, SoftmaxAttention | UniformAttention)]
        for place, layer in enumerate(rest):
            if isinstance(layer, SoftmaxAttention | UniformAttention):
                # Behind the last of them only the tokens that are asked for are needed.
                last = place == mixing[-1]
                batch = [_mixed(layer, sequence, asked_only=last) for sequence in batch]
            else:
                batch = _token_wise(layer, batch, bits, report)
    outputs = np.empty(sum(len(sequence.asked) for sequence in batch), dtype=object)
    outputs[:] = [sequence.streams[own][0] for sequence in batch for own in sequence.asked]
    return outputs[answer]


def _merged(
    numerators: Integers, denominator: int, index: NDArray[np.int64]
) -> tuple[Integers, int, NDArray[np.int64]]:
    """Tokens with the same stream are one from here on."""
    number: dict[tuple[int, ...], int] = {}
    place = np.array([number.setdefault(tuple(row), len(number)) for row in numerators], dtype=np.int64)
    return integers([list(row) for row in number]), denominator, place[index]


def _different(
    index: NDArray[np.int64], *, last_only: bool
) -> tuple[list[list[int]], list[list[int]], list[list[int]], NDArray[np.int64]]:
    """The different multisets of tokens in ``index`` [N, n], and the questions: asking token and multiset.

    Of every multiset: its tokens, how often each occurs, and which of them ask. Then the question of every place.
    """
    rows, inverse = np.unique(np.sort(index, axis=1), axis=0, return_inverse=True)
    kinds = int(index.max()) + 1
    asking = index[:, -1] if last_only else index
    pairs = asking + kinds * inverse.reshape(len(index), *[1] * (asking.ndim - 1))
    questions, answer = np.unique(pairs, return_inverse=True)
    tokens, counts = [], []
    for row in rows:
        found, times = np.unique(row, return_counts=True)
        tokens.append(found.tolist())
        counts.append(times.tolist())
    asked: list[list[int]] = [[] for _ in rows]
    for question in questions.tolist():
        asked[question // kinds].append(tokens[question // kinds].index(question % kinds))
    return tokens, counts, asked, answer.reshape(asking.shape)


def _mixed(layer: SoftmaxAttention | UniformAttention, sequence: _Sequence, *, asked_only: bool) -> _Sequence:
    """Attention at every token of a sequence, or at those that are asked for, which are all that is left then."""
    streams = sequence.streams
    chosen = sequence.asked if asked_only else list(range(len(streams)))
    values = [_times(layer.W_O, _times(layer.W_V, stream)) for stream in streams]
    divide = _power(layer.shift if isinstance(layer, SoftmaxAttention) else 0)
    result = []
    for own, weights in zip(chosen, _weights(layer, sequence, chosen), strict=True):
        added = [_dot(weights, [value[i] for value in values]) * divide for i in range(len(streams[own]))]
        result.append([x + y for x, y in zip(streams[own], added, strict=True)])
    asked = list(range(len(chosen))) if asked_only else sequence.asked
    return _Sequence(result, [sequence.counts[own] for own in chosen], asked)


def _weights(
    layer: SoftmaxAttention | UniformAttention, sequence: _Sequence, chosen: list[int]
) -> Iterator[list[Ball]]:
    """What the chosen tokens pay to every different token of the sequence, all its occurrences together."""
    if isinstance(layer, UniformAttention):
        total = sum(sequence.counts)
        yield from ([arb(count) / total for count in sequence.counts] for _ in chosen)
        return
    keys, scale = [_times(layer.W_K, stream) for stream in sequence.streams], _power(layer.score_shift)
    for own in chosen:
        query = [x * scale for x in _times(layer.W_Q, sequence.streams[own])]
        yield _softmax([_dot(key, query) for key in keys], sequence.counts)


def _softmax(scores: list[Ball], counts: list[int]) -> list[Ball]:
    """The weight of every different token: count · exp(score), over their sum; the scores may be of any size."""
    largest = max(score.mid() for score in scores)
    raised = [count * (score - largest).exp() for score, count in zip(scores, counts, strict=True)]
    total = sum(raised[1:], raised[0])
    return [value / total for value in raised]


def _power(shift: int) -> Ball:
    """2^−shift, which is a ball of radius 0."""
    return arb(fmpq(1, fmpz(1) << shift))


def _dot(x: list[Ball], y: list[Ball]) -> Ball:
    terms = [a * b for a, b in zip(x, y, strict=True)]
    return sum(terms[1:], terms[0])


def _times(W: Integers, x: list[Ball]) -> list[Ball]:
    return [_dot([arb(int(w)) for w in row], x) for row in W]


def _token_wise(layer: Layer, batch: list[_Sequence], bits: int, report: Report | None) -> list[_Sequence]:
    """A feed-forward layer or residual blocks on the streams of all sequences, in pieces: intervals, exactly.

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
    """The streams behind a layer; of what nothing is known in front (nan), nothing is known behind."""
    result: list[list[Ball]] = [[arb("nan")] * (len(program.layers[-1].W) // 2) for _ in streams]
    known = [i for i, stream in enumerate(streams) if all(ball.is_finite() for ball in stream)]
    if known:
        ends = [[end for ball in streams[i] for end in rounded_outward(ball, bits)] for i in known]
        found = program(replace(from_integers(integers(ends)), exponent=bits))
        denominator = fmpz(1) << found.exponent
        for i, row in zip(known, found.numerators(), strict=True):
            result[i] = [_between(row[k : k + 2], denominator) for k in range(0, len(row), 2)]
    if isinstance(layer, FeedForward) and layer.residual:
        return [[x + y for x, y in zip(*pair, strict=True)] for pair in zip(streams, result, strict=True)]
    return result


def _on_intervals(layer: Layer) -> LimbProgram:
    """The layer on (low, high) pairs: units 2i and 2i + 1 are the ends of unit i."""
    if isinstance(layer, FeedForward):
        return LimbProgram(tuple(_doubled(affine) for affine in layer.layers))
    assert isinstance(layer, Residual)
    steps = tuple(_doubled(step) for block in layer.blocks for step in residual_steps(block))
    return LimbProgram(steps, rectified=tuple(d for block in layer.blocks for d in (2 * len(block.W_in), 0)))


def _doubled(layer: Affine) -> Affine:
    """Positive weights take an end to the same end, negative ones to the other."""
    outputs, inputs = layer.W.shape
    positive, negative = np.maximum(layer.W, 0), np.minimum(layer.W, 0)
    W = np.zeros((2 * outputs, 2 * inputs), dtype=object)
    W[0::2, 0::2], W[0::2, 1::2] = positive, negative
    W[1::2, 0::2], W[1::2, 1::2] = negative, positive
    return replace(layer, W=integers(W), b=integers(np.repeat(layer.b, 2)))


def _between(ends: Integers, denominator: fmpz) -> Ball:
    low, high = (arb(fmpq(fmpz(int(end)), denominator)) for end in ends)
    return low.union(high)

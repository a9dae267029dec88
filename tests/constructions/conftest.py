"""An evaluator that shares nothing with the package: Python fractions, one number after the other, as the text says."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import pytest

from byheart.constructions.gadgets import contextual, points
from byheart.networks.exact import (
    Affine,
    Embedding,
    ExactNetwork,
    FeedForward,
    Flatten,
    Positions,
    TokenSum,
    UniformAttention,
)

Row = list[Fraction]


def affine(layer: Affine, x: Row) -> Row:
    values = [
        (sum((int(w) * z for w, z in zip(row, x, strict=True)), Fraction(0)) + int(b)) / (1 << layer.shift)
        for row, b in zip(layer.W.tolist(), layer.b.tolist(), strict=True)
    ]
    return [max(value, Fraction(0)) for value in values] if layer.relu else values


def through(layers: Sequence[Affine], x: Sequence[int | Fraction]) -> list[Row]:
    """The values behind every layer of a chain."""
    values, row = [], [Fraction(z) for z in x]
    for layer in layers:
        row = affine(layer, row)
        values.append(row)
    return values


def step(layer: object, stream: list[Row]) -> list[Row]:
    match layer:
        case Embedding(W_E=W_E):
            return [[Fraction(int(w)) for w in W_E[int(row[0])]] for row in stream]
        case Positions(W_pos=W_pos):
            return [[z + int(w) for z, w in zip(row, W_pos[k], strict=True)] for k, row in enumerate(stream)]
        case FeedForward(layers=layers, residual=False):
            return [through(layers, row)[-1] for row in stream]
        case UniformAttention(W_V=W_V, W_O=W_O):
            mean = [sum(column, Fraction(0)) / len(stream) for column in zip(*stream, strict=True)]
            head = [sum((int(w) * z for w, z in zip(row, mean, strict=True)), Fraction(0)) for row in W_V]
            back = [sum((int(w) * z for w, z in zip(row, head, strict=True)), Fraction(0)) for row in W_O]
            return [[z + extra for z, extra in zip(row, back, strict=True)] for row in stream]
        case TokenSum():
            return [[z + 2 * sum(row[i] for row in stream) for i, z in enumerate(own)] for own in stream]
        case Flatten():
            return [[z for row in stream for z in row]]
        case _:
            raise NotImplementedError(type(layer).__name__)


def answers(network: ExactNetwork, sequence: Sequence[object]) -> list[Fraction]:
    """The outputs on one sequence: of ids, or of vectors."""
    stream = [[Fraction(z) for z in (token if hasattr(token, "__len__") else [token])] for token in sequence]
    for layer in network.layers:
        stream = step(layer, stream)
    assert all(len(row) == 1 for row in stream)
    outputs = [row[0] for row in stream]
    return outputs[-1:] if network.outputs == "last" else outputs


@pytest.fixture(scope="session", name="through")
def _through() -> Callable[[Sequence[Affine], Sequence[int]], list[Row]]:
    return through


@pytest.fixture(scope="session", name="answers")
def _answers() -> Callable[[ExactNetwork, Sequence[object]], list[Fraction]]:
    return answers


@pytest.fixture(scope="session", autouse=True)
def _few_draws() -> Iterator[None]:
    """About every 55th draw is good: a construction that needs two thousand of them has lost its way."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (contextual, points):
            patch.setattr(module, "TRIES", 2000, raising=False)
        yield


class Scripted:
    """A random generator whose draws are written down beforehand."""

    def __init__(self, *draws: object) -> None:
        self.draws = list(draws)

    def integers(self, *_: object, **__: object) -> object:
        return self.draws.pop(0)


@pytest.fixture(scope="session")
def scripted() -> type[Scripted]:
    return Scripted

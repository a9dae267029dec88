"""Trained networks by loops over places and entries, in mpmath: the definition, which shares nothing with Byheart's."""

from collections.abc import Sequence
from typing import Any

import mpmath

Vector = list[Any]
FAR = 10**4
"""Beyond it, a Gaussian's tail is 0 for all that is asked here."""


def outputs(network: Any, sequence: Any, query: Any = None) -> Vector:
    """The outputs for one example, with the digits that mpmath has at the moment; ``sequence`` without what pads."""
    W = {name: _exact(tensor.tolist()) for name, tensor in network.weights.items()}
    read = list(sequence) if query is None else [_exact(row) for row in [query.tolist(), *sequence.tolist()]]
    stream: list[Any] = read
    for block in network.blocks:
        after = stream
        for step in block.steps:
            after = _step(step, W, after, beside=query is not None)
        stream = [_plus(x, y) for x, y in zip(stream, after, strict=False)] if block.skip else after
    return stream[-1] if query is None else stream[0]


def _exact(value: Any) -> Any:
    return [_exact(entry) for entry in value] if isinstance(value, list) else mpmath.mpf(value)


def _plus(x: Vector, y: Vector) -> Vector:
    return [a + b for a, b in zip(x, y, strict=True)]


def _dot(x: Vector, y: Vector) -> Any:
    return mpmath.fsum(a * b for a, b in zip(x, y, strict=True))


def _affine(W: list[Vector], b: Vector | None, x: Vector) -> Vector:
    result = [_dot(row, x) for row in W]
    return result if b is None else _plus(result, b)


def _step(step: Any, W: dict[str, Any], stream: list[Any], *, beside: bool) -> list[Vector]:
    match step.kind:
        case "embedding":
            return [W[step.W_E][int(token)] for token in stream]
        case "positions":
            places = range(len(stream))
            table = [_sinusoid(s, len(stream[0])) for s in places] if step.W_pos is None else W[step.W_pos]
            return [_plus(x, table[s]) for s, x in enumerate(stream)]
        case "norm":
            return [_norm(step, W, x) for x in stream]
        case "affine":
            rows = W[step.W] if step.rows is None else W[step.W][: step.rows]
            return [_affine(rows, W.get(step.b), x) for x in stream]
        case "activation":
            return [[_function(step.function, x) for x in vector] for vector in stream]
    assert step.kind == "attention"
    return _attention(step, W, stream, beside=beside)


def _attention(step: Any, W: dict[str, Any], stream: list[Vector], *, beside: bool) -> list[Vector]:
    q, k, v = ([_affine(W[w], W.get(b), x) for x in stream] for w, b in (
        (step.W_Q, step.b_Q), (step.W_K, step.b_K), (step.W_V, step.b_V)
    ))  # fmt: skip
    mixed = []
    for place in range(1 if beside else len(stream)):
        seen = range(1, len(stream)) if beside else range(place + 1)
        mixed.append([x for h in range(step.heads) for x in _head(step, h, q[place], [(k[s], v[s]) for s in seen])])
    return [_affine(W[step.W_O], W.get(step.b_O), x) for x in mixed]


def _head(step: Any, h: int, q: Vector, seen: Sequence[tuple[Vector, Vector]]) -> Vector:
    scores = [_dot(_cut(q, h, step.heads), _cut(k, h, step.heads)) / mpmath.sqrt(step.over) for k, _ in seen]
    raised = [mpmath.exp(score - max(scores)) for score in scores]
    values = [_cut(v, h, step.heads) for _, v in seen]
    return [_dot(raised, [value[i] for value in values]) / mpmath.fsum(raised) for i in range(len(values[0]))]


def _cut(x: Vector, h: int, heads: int) -> Vector:
    each = len(x) // heads
    return x[h * each : (h + 1) * each]


def _norm(step: Any, W: dict[str, Any], x: Vector) -> Vector:
    mean = mpmath.fsum(x) / len(x)
    variance = mpmath.fsum((entry - mean) ** 2 for entry in x) / len(x)
    result = [(entry - mean) / mpmath.sqrt(variance + mpmath.mpf(step.epsilon)) for entry in x]
    if step.gain is not None:
        result = [entry * gain for entry, gain in zip(result, W[step.gain], strict=True)]
    return result if step.bias is None else _plus(result, W[step.bias])


def _sinusoid(place: int, dim: int) -> Vector:
    angles = [place * mpmath.power(10000, -mpmath.mpf(2 * i) / dim) for i in range(dim)]
    return [x for angle in angles for x in (mpmath.sin(angle), mpmath.cos(angle))][:dim]


def _function(name: str, x: Any) -> Any:
    if name == "relu":
        return max(x, mpmath.mpf(0))
    if name == "tanh":
        return mpmath.tanh(x)
    if abs(x) > FAR:
        return max(x, mpmath.mpf(0))
    if name == "gelu":
        return x * mpmath.ncdf(x)
    assert name == "gelu_tanh"
    cube = x + mpmath.mpf("0.044715") * x**3
    return x * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * cube)) / 2

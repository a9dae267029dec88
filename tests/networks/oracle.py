"""What the layers' formulas say, with fractions and Python lists only: what the tests hold the package against."""

from fractions import Fraction

from byheart.networks import (
    Affine,
    Block,
    Embedding,
    FeedForward,
    Flatten,
    HardmaxAttention,
    Layer,
    Network,
    Positions,
    Residual,
    UniformAttention,
    integers,
)
from byheart.networks.limbs import Limbs

Vector = list[Fraction]


def affine(W, b, shift=0, relu=True, role="affine") -> Affine:
    """The layer, from nested lists."""
    return Affine(integers(W), integers(b), shift=shift, relu=relu, role=role)


def feed_forward(*layers: Affine, residual=False, name="feed_forward") -> FeedForward:
    return FeedForward(layers, residual=residual, name=name)


def block(W_in, b_in, W_out, role="block") -> Block:
    return Block(integers(W_in), integers(b_in), integers(W_out), role=role)


def on_tokens(*layers: Layer, length=1, outputs="last") -> Network:
    return Network(layers, inputs="tokens", outputs=outputs, length=length)


def on_vectors(*layers: Layer, length=1, dim=1, outputs="last") -> Network:
    return Network(layers, inputs="vectors", outputs=outputs, length=length, dim=dim)


def uniform(W_V, W_O) -> UniformAttention:
    return UniformAttention(integers(W_V), integers(W_O))


def hardmax(W_Q, W_K, W_V, W_O) -> HardmaxAttention:
    return HardmaxAttention(integers(W_Q), integers(W_K), integers(W_V), integers(W_O))


def values(batch: Limbs) -> list[Vector]:
    """The vectors of a batch, from its limbs: Σ limb_k 2^(24k) / (divisor · 2^exponent)."""
    denominator = batch.divisor * 2**batch.exponent
    rows = []
    for column in batch.limbs.T.tolist():
        units = zip(batch.start.tolist(), batch.length.tolist(), strict=True)
        numerators = [sum(limb << (24 * k) for k, limb in enumerate(column[s : s + n])) for s, n in units]
        rows.append([Fraction(numerator, denominator) for numerator in numerators])
    return rows


def times(W, x: Vector) -> Vector:
    return [sum((int(w) * z for w, z in zip(row, x, strict=True)), Fraction(0)) for row in W]


def plus(x: Vector, y: Vector) -> Vector:
    return [a + b for a, b in zip(x, y, strict=True)]


def mean(vectors: list[Vector]) -> Vector:
    return [sum(column, Fraction(0)) / len(vectors) for column in zip(*vectors, strict=True)]


def chain(layers, x: Vector) -> Vector:
    """The affine maps in turn on one vector."""
    for layer in layers:
        x = [(z + int(b)) / 2**layer.shift for z, b in zip(times(layer.W, x), layer.b, strict=True)]
        x = [max(z, Fraction(0)) for z in x] if layer.relu else x
    return x


def attend(W_O, W_V, stream: list[Vector], chosen: list[list[int]]) -> list[Vector]:
    """Z_k + W_O W_V · mean of the Z_j, j in chosen[k]."""
    looked_at = [mean([stream[j] for j in own]) for own in chosen]
    return [plus(z, times(W_O, times(W_V, average))) for z, average in zip(stream, looked_at, strict=True)]


def winners(layer: HardmaxAttention, stream: list[Vector]) -> list[list[int]]:
    """For every position the positions with the largest score."""
    result = []
    for z in stream:
        query = times(layer.W_Q, z)
        scores = [sum((a * b for a, b in zip(times(layer.W_K, y), query, strict=True)), Fraction(0)) for y in stream]
        result.append([j for j, score in enumerate(scores) if score == max(scores)])
    return result


def apply(layer: Layer, stream: list[Vector]) -> list[Vector]:  # noqa: PLR0911 (one a layer)
    everywhere = [list(range(len(stream)))] * len(stream)
    match layer:
        case Embedding(W_E=W_E):
            return [[Fraction(int(w)) for w in W_E[int(token)]] for (token,) in stream]
        case Positions(W_pos=W_pos):
            return [plus(z, [Fraction(int(w)) for w in row]) for z, row in zip(stream, W_pos, strict=True)]
        case FeedForward(layers=layers, residual=residual):
            return [plus(z, chain(layers, z)) if residual else chain(layers, z) for z in stream]
        case Residual(blocks=blocks):
            for block in blocks:
                hidden = [plus(times(block.W_in, z), [Fraction(int(b)) for b in block.b_in]) for z in stream]
                rectified = [[max(h, Fraction(0)) for h in vector] for vector in hidden]
                stream = [plus(z, times(block.W_out, h)) for z, h in zip(stream, rectified, strict=True)]
            return stream
        case UniformAttention():
            return attend(layer.W_O, layer.W_V, stream, everywhere)
        case HardmaxAttention():
            return attend(layer.W_O, layer.W_V, stream, winners(layer, stream))
        case Flatten():
            return [[entry for z in stream for entry in z]]
    raise AssertionError(layer)


def answers(network: Network, inputs) -> list:
    """The outputs for all sequences, as nested lists of fractions."""
    result = []
    for sequence in inputs.tolist():
        vectors = [[token] for token in sequence] if network.inputs == "tokens" else sequence
        stream = [[Fraction(entry) for entry in vector] for vector in vectors]
        for layer in network.layers:
            stream = apply(layer, stream)
        outputs = [z[0] for z in stream]
        result.append(outputs[-1] if network.outputs == "last" else outputs)
    return result

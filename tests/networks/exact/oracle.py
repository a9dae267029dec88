"""What the layers' formulas say, with fractions and Python lists only: what the tests hold the package against.

Softmax weights are no fractions: they are rounded to :data:`DIGITS` decimal places, and everything else stays exact.
"""

from decimal import Context, Decimal
from fractions import Fraction

from byheart.networks.exact import (
    Affine,
    Block,
    Embedding,
    ExactNetwork,
    FeedForward,
    Flatten,
    HardmaxAttention,
    Layer,
    Positions,
    Residual,
    SoftmaxAttention,
    TokenSum,
    UniformAttention,
    integers,
)
from byheart.networks.exact.limbs import Limbs

Vector = list[Fraction]
DIGITS = 300
"""Decimal places of a softmax weight."""
_CONTEXT = Context(prec=2 * DIGITS)


def affine(W, b, shift=0, relu=True, role="affine") -> Affine:
    """The layer, from nested lists."""
    return Affine(integers(W), integers(b), shift=shift, relu=relu, role=role)


def feed_forward(*layers: Affine, residual=False, name="feed_forward") -> FeedForward:
    return FeedForward(layers, residual=residual, name=name)


def block(W_in, b_in, W_out, role="block") -> Block:
    return Block(integers(W_in), integers(b_in), integers(W_out), role=role)


def on_tokens(*layers: Layer, length=1, outputs="last") -> ExactNetwork:
    return ExactNetwork(layers, inputs="tokens", outputs=outputs, length=length)


def on_vectors(*layers: Layer, length=1, dim=1, outputs="last") -> ExactNetwork:
    return ExactNetwork(layers, inputs="vectors", outputs=outputs, length=length, dim=dim)


def uniform(W_V, W_O) -> UniformAttention:
    return UniformAttention(integers(W_V), integers(W_O))


def hardmax(W_Q, W_K, W_V, W_O, causal=False) -> HardmaxAttention:
    return HardmaxAttention(integers(W_Q), integers(W_K), integers(W_V), integers(W_O), causal=causal)


def softmax(W_Q, W_K, W_V, W_O, **options) -> SoftmaxAttention:
    return SoftmaxAttention(integers(W_Q), integers(W_K), integers(W_V), integers(W_O), **options)


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
    """For every position the positions with the largest score, among those that it sees."""
    result = []
    for k, z in enumerate(stream):
        scores = scored(layer, z, stream[: k + 1] if layer.causal else stream)
        result.append([j for j, score in enumerate(scores) if score == max(scores)])
    return result


def scored(layer, z: Vector, stream: list[Vector]) -> list[Fraction]:
    """(W_K Z_j)·(W_Q z) for every j."""
    query = times(layer.W_Q, z)
    return [sum((a * b for a, b in zip(times(layer.W_K, y), query, strict=True)), Fraction(0)) for y in stream]


def shares(layer: SoftmaxAttention, z: Vector, stream: list[Vector]) -> list[Fraction]:
    """The softmax weights of all positions for the query ``z``, up to 10^−DIGITS."""
    scores = [score / 2**layer.score_shift for score in scored(layer, z, stream)]
    less = [score - max(scores) for score in scores]
    # e^-5·DIGITS is far below the last place.
    raised = [_exp(x) if x > -5 * DIGITS else Decimal(0) for x in less]
    total = Decimal(0)
    for value in raised:
        total = _CONTEXT.add(total, value)
    place = Decimal(1).scaleb(-DIGITS)
    return [Fraction(_CONTEXT.quantize(_CONTEXT.divide(value, total), place)) for value in raised]


def _exp(x: Fraction) -> Decimal:
    return _CONTEXT.exp(_CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator)))


def softly(layer: SoftmaxAttention, stream: list[Vector]) -> list[Vector]:
    """Z_k + W_O W_V Σ_j a_kj Z_j / 2^shift."""
    result = []
    for z in stream:
        weighted = zip(shares(layer, z, stream), stream, strict=True)
        columns = zip(*([share * x for x in y] for share, y in weighted), strict=True)
        mixed = times(layer.W_O, times(layer.W_V, [sum(column, Fraction(0)) for column in columns]))
        result.append(plus(z, [x / 2**layer.shift for x in mixed]))
    return result


def exactly(number) -> Fraction:
    """An ``arb`` of radius 0; what e^-(2^60) and its like are made of is 0, and e^(2^60) is 2^30000."""
    mantissa, exponent = (int(part) for part in number.man_exp())
    if mantissa == 0 or exponent < -30000:
        return Fraction(0)
    return Fraction(mantissa) * Fraction(2) ** min(exponent, 30000)


def ends(ball) -> tuple[Fraction, Fraction]:
    """Where a finite ball begins and ends, as exactly as :func:`exactly` says."""
    middle, radius = exactly(ball.mid()), exactly(ball.rad())
    return middle - radius, middle + radius


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
        case SoftmaxAttention():
            return softly(layer, stream)
        case TokenSum():
            return [[entry + 2 * sum(z[i] for z in stream) for i, entry in enumerate(own)] for own in stream]
        case Flatten():
            return [[entry for z in stream for entry in z]]
    raise AssertionError(layer)


def answers(network: ExactNetwork, inputs) -> list:
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

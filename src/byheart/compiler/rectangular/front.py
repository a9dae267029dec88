"""From the window to the places in the table: an order-sensitive hash, and its digits.

Every token has a random integer code (W_E). Attention over the last 8 tokens adds the codes up with random integer
weights; a second such layer, 8 tokens apart, adds up the sums of the first, and so on: k layers see 8^k tokens. Between
layers the sums, *states*, are taken modulo ``STATE``. The last layer gives one sum for every *place* that is wanted;
each is taken modulo the number of its values and split into two digits:

    start | rows A, B | columns 0, 1 | columns 2, 3 | columns 4, 5 | offset | kind | route

(the last two have one digit, and not every network has them; where there are lots, the route tells the offset, and most
of the start: see :mod:`.lots`).

One layer of one or two tokens makes all places multiples of the same one or two codes: they are not independent then,
many equations depend on others, and where a weight has a divisor in common with the modulus, columns are never read. A
*stirred* hash (``TableSizes.stirred``) has states even there, modulo different primes, and adds those up: for
a few hundred
parameters, what two codes a token and more would do for one parameter a token each.

"start" is where in the table the question reads; the rows are start + spread A and start + spread B. All values are
integers below 2²³, so that comparisons with half-integers are exact in float32; nothing is rounded anywhere.

Missing tokens (before the start of a text) have code 0, the sum of nothing, on every layer.

A network that refuses (:mod:`.refusing`) has sums for the digits of its print beside these, and three more between
layers, all of them modulo primes. Another token always changes one of the three, whatever the weights: no difference of
two codes is a multiple of two of ``PRIMES``.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.rectangular.dimensions import TableSizes
from byheart.compiler.rectangular.lots import add_lots
from byheart.compiler.rectangular.wiring import Array, Wiring
from byheart.networks.transformer import GatedBlocks
from byheart.networks.transformer.spec import Features
from byheart.tasks.arrays import chunks

Integers = NDArray[np.int64]
STATE, STATES = 1 << 10, 3
"""Intermediate sums are taken modulo ``STATE``; there are ``STATES`` of them, 30 bits in all."""
PRIMES = (1021, 1019, 1013)
"""Intermediate sums for prints are taken modulo these."""
STIRRED = (509, 503, 499, 491, 487)
"""Moduli of the states of a stirred hash: different primes, so that even multiples of one code make all of them, 44
bits in all; small, so that their weights may be large."""
MORE, MANY_SHARDS = (479, 467), 32
"""Two states more, 62 bits in all, from so many shards on: tens of millions of questions have different ones then."""
LIMIT = 1 << 23
LEAST_WEIGHT, WEIGHT = 7, 15
"""Weights are drawn up to one of these: the less, the fewer steps to reduce the sum; too few, and sums are alike."""
RADIX = 12
"""Reducing a sum modulo m takes multiples of m and of a power of this many m off it."""


@dataclass(frozen=True)
class FrontPositions:
    """Where the front leaves what the table needs."""

    rows: Features
    """row A, its square, row B, its square."""
    columns: Features
    """column and its square, for each of the six lanes."""
    scale: Features
    """E = 2^−offset."""
    kind: Features
    """A number below ``KINDS``; questions below the share of the exponents read those first."""
    prints: Features
    """The digits of the context's print."""
    route: Features
    """By which the shard is chosen, where there are several."""


def add_front(
    wiring: Wiring, sizes: TableSizes, vocab: int, window: int, rng: np.random.Generator, prints: tuple[int, ...] = ()
) -> FrontPositions:
    """Embedding, hash, digits, squares; ``prints`` are the moduli of a print's digits."""
    sums, print_digits = _hash(wiring, sizes, vocab, window, rng, prints)
    start, pairs, rest = sums[:1], sums[1 : 5 if sizes.stretches else 6], sums[6:]
    kind, route = (rest[:1], rest[1:]) if sizes.exponent else ((), rest)
    high = _digits(wiring, sizes, pairs)
    if sizes.stretches:
        route, offset = wiring.features(sizes.shards > 1), wiring.features(2)
        add_lots(wiring, sizes, sums[5:], route, offset[:1], start)
    else:
        offset = high[4], pairs[4]
    _clamp(wiring, sizes, start, (high[0], pairs[0]))
    columns = (high[1], pairs[1], high[2], pairs[2], high[3], pairs[3])
    factors = _scales(wiring, sizes, offset)
    rows, squares, scale = _squares(wiring, (high[0], pairs[0]), columns, factors)
    lanes = tuple(feature for pair in zip(columns, squares[2:], strict=True) for feature in pair)
    return FrontPositions((rows[0], squares[0], rows[1], squares[1]), lanes, scale, kind, print_digits, route)


def _hash(
    wiring: Wiring, sizes: TableSizes, vocab: int, window: int, rng: np.random.Generator, prints: tuple[int, ...]
) -> tuple[Features, Features]:
    """One reduced sum for each modulus of ``sizes.moduli``, and of ``prints``."""
    dims, spans = sizes.code_features, spans_of(window, sizes.stirred)
    largest = _largest_code(vocab, spans[0][0], sizes)
    codes = np.stack([_codes(vocab, largest, rng) for _ in range(dims)], axis=1)
    wiring.tensor("embedding.W_E", codes, codes.shape)
    state = wiring.features(dims)
    for index, (span, dilation) in enumerate(spans):
        final = index == len(spans) - 1
        moduli = np.array(sizes.moduli) if final else state_moduli(sizes)
        primes = np.array(() if not prints else prints if final else PRIMES, dtype=np.int64)
        terms = span * len(state) * largest
        weights = _largest_weights(moduli, terms, final, sizes)
        fair = np.minimum(primes - 1, (LIMIT - 1) // terms)
        out, own, inputs = wiring.features(len(moduli)), wiring.features(len(primes)), (span, len(state))
        mix = _stirring(weights, inputs, moduli, rng) if sizes.stirred else _mixing(weights, inputs, rng)
        wiring.attention(f"hash_{index}", state, out + own, dilation, np.concatenate([mix, _mixing(fair, inputs, rng)]))
        reduce(wiring, f"reduce_{index}", out, terms * weights + 1, moduli)
        if own:
            reduce(wiring, f"print_{index}", own, terms * fair + 1, primes)
        state, largest = out + own, int(max(moduli.max(), primes.max(initial=0))) - 1
    return state[: len(sizes.moduli)], state[len(sizes.moduli) :]


def state_moduli(sizes: TableSizes) -> Integers:
    """Of the sums of all layers but the last."""
    if not sizes.stirred:
        return np.array([STATE] * STATES)
    return np.array(STIRRED if sizes.shards < MANY_SHARDS else STIRRED + MORE)


def alike(sizes: TableSizes, window: int, starts: Integers, places: NDArray[np.integer]) -> float:
    """How many pairs of questions are read from the same places, whatever they ask for: expected.

    Questions near the beginning of a sequence, before the last layer looks at two states, are told apart by the bits of
    one; all others by more. (The last layer alone, if it is the only one, has bits enough.)

    >>> sizes, starts = TableSizes(24, 0, 32, 600, 3, 8, 0), np.array([0, 100])
    >>> alike(sizes, 8, starts, np.arange(100)), alike(sizes, 64, starts, np.arange(100)) * 2**31
    (0.0, 64.0)
    """
    *before, (_, reach) = spans_of(window, sizes.stirred)
    if not before:
        return 0.0
    asked, states = 0, float(math.prod(state_moduli(sizes).tolist()))
    for begin, end in zip(chunks(starts[:-1]), chunks(starts[1:]), strict=True):
        near = (begin, np.minimum(begin + reach, end))
        first, last = (np.searchsorted(places, ends.astype(places.dtype)) for ends in near)
        asked += int((last - first).sum())
    return asked**2 / (2 * states)


def _largest_code(vocab: int, span: int, sizes: TableSizes) -> int:
    """Codes are drawn up to this: twice as many as there are tokens at least, unless sums would reach ``LIMIT``.

    Stirred, they leave room for weights up to ``WEIGHT``, if then there are still as many codes as tokens.
    """
    dims = sizes.code_features
    largest = min((1 << (vocab - 1).bit_length() + 1) - 1, LIMIT // (16 * dims))
    return min(largest, max(vocab, (LIMIT - 1) // (span * dims * WEIGHT))) if sizes.stirred else largest


def _largest_weights(moduli: Integers, terms: int, final: bool, sizes: TableSizes) -> Integers:
    """Weights of each sum are drawn up to this, its inputs adding up to ``terms`` at most: never to ``LIMIT``.

    (LIMIT − 1) // terms is what proves that, and is 1 at least: terms ≤ 8·LIMIT/16 in the first layer, for codes, and
    ≤ 8·3·(STATE − 1) or 8·7·508 in the others.
    """
    # A stirred hash has the largest weights for its states, and as large ones for its sums as two steps can reduce; so
    # has a route, which then says next to nothing of the other sums.
    stirred = sizes.stirred
    least = np.full(len(moduli), WEIGHT if stirred and not final else LEAST_WEIGHT)
    most = np.full(len(moduli), LIMIT if stirred and final else WEIGHT)
    if final and (sizes.shards > 1 or sizes.stretches):
        most[-1] = LIMIT
    if final:
        # The spread has few values. Its sum needs no order, and unweighted takes no more steps than the others.
        least[1] = 1
        # A start inside a stretch has few, too, but should not be the same sum.
        least[0] = LEAST_WEIGHT if not sizes.stretches else 3
    return np.minimum(np.clip(RADIX**2 * moduli // terms, least, most), (LIMIT - 1) // terms)


def _mixing(weights: Integers, inputs: tuple[int, int], rng: np.random.Generator) -> Array:
    """Random weights [sums, span, inputs], from 1 to ``weights`` [sums]."""
    return rng.integers(1, weights[:, None, None] + 1, size=(len(weights), *inputs)).astype(np.float64)


def _stirring(weights: Integers, inputs: tuple[int, int], moduli: Integers, rng: np.random.Generator) -> Array:
    """The same from half of ``weights`` on, and no sum's weights with a divisor in common with its modulus.

    With one, the sum would be its multiple always, and some rows or columns never read.
    """
    least = np.maximum(1, weights // 2)
    while True:
        mix = rng.integers(least[:, None, None], weights[:, None, None] + 1, size=(len(weights), *inputs))
        if (np.gcd(np.gcd.reduce(mix, axis=(1, 2)), moduli) == 1).all():
            return mix.astype(np.float64)


def _codes(vocab: int, largest: int, rng: np.random.Generator) -> Array:
    """A random code for every token: all different where the range allows it."""
    if vocab <= largest:
        return rng.permutation(largest)[:vocab].astype(np.float64) + 1
    return rng.integers(1, largest + 1, size=vocab).astype(np.float64)


def spans_of(window: int, stirred: bool = False) -> list[tuple[int, int]]:
    """Window and dilation of each layer: (8, 1), (8, 8), … and as much as is left for the last.

    A stirred hash has two layers at least, so that there are states.

    >>> spans_of(32), spans_of(1), spans_of(2, stirred=True)
    ([(8, 1), (4, 8)], [(1, 1)], [(2, 1), (1, 1)])
    """
    spans, dilation = [], 1
    while True:
        span = min(8, -(-window // dilation))
        spans.append((span, dilation))
        dilation *= 8
        if dilation >= window:
            return [*spans, (1, 1)] if stirred and len(spans) == 1 else spans


def sees(window: int) -> int:
    """How many tokens a network for this window sees: all of them, and a few more if that is no power of two."""
    span, dilation = spans_of(window)[-1]
    return span * dilation


def reduce(wiring: Wiring, name: str, features: Features, bounds: Integers, moduli: Integers) -> None:
    """x ← x mod modulus, for x below its bound: multiples of modulus·ρ^j are taken off, the largest j first."""
    ratio = (bounds / moduli).max()
    count = max(1, math.ceil(math.log(ratio, RADIX) - 0.2))
    radix = 2
    while radix**count < ratio:
        radix += 1
    multiples = np.arange(1, radix)
    for j in reversed(range(count)):
        unit = np.minimum(moduli * radix**j, LIMIT)  # what no sum reaches is never taken off, and need not be exact
        thresholds = np.minimum(unit[:, None] * multiples, LIMIT) - 0.5
        wiring.steps(f"{name}_{j}", features, features, thresholds, np.repeat(-unit[:, None], radix - 1, axis=1))


def _digits(wiring: Wiring, sizes: TableSizes, pairs: Features) -> Features:
    """The high digit of each pair; the low one stays. In two rounds, √ of the values each."""
    high = wiring.features(len(pairs))
    bases, counts = np.array(sizes.bases[: len(pairs)]), np.array(sizes.counts[: len(pairs)])
    stride = int(np.ceil(np.sqrt(counts.max())))
    writes = tuple(feature for both in zip(high, pairs, strict=True) for feature in both)
    for name, step, units in (("coarse", stride, -(-int(counts.max()) // stride) - 1), ("fine", 1, stride - 1)):
        if units == 0:
            continue
        thresholds = bases[:, None] * step * np.arange(1, units + 1) - 0.5
        weights = np.stack([np.full(thresholds.shape, step), np.repeat(-step * bases[:, None], units, axis=1)], axis=1)
        wiring.steps(f"digits_{name}", pairs, writes, thresholds, weights)
    return high


def _clamp(wiring: Wiring, sizes: TableSizes, start: Features, rows: Features) -> None:
    """Add start − margin, clamped to [0, starts), to both rows: the ends of the table get a few questions more."""
    margin, starts = sizes.margin, sizes.starts
    ffn = GatedBlocks("start", "relu", start, rows, units=2)
    bias = [[-margin, -margin - starts + 1]]
    wiring.add(ffn, W_in=1.0, b_in=bias, W_out=[[[1, -1], [1, -1]]])


def _scales(wiring: Wiring, sizes: TableSizes, digits: Features) -> tuple[Features, Features]:
    """Powers of two from the offset's digits: one factor from the high digit, one from the low one (in grains)."""
    out = wiring.features(2)
    values = [[2.0**-exponent for exponent in exponents] for exponents in sizes.exponents]
    units = max(len(row) for row in values)
    thresholds = np.full((2, units), float(LIMIT)) - 0.5
    weights = np.zeros((2, units))
    for group, row in enumerate(values):
        thresholds[group, : len(row)] = np.arange(len(row)) * (sizes.grain if group else 1) - 0.5
        thresholds[group, 0] = -np.inf
        weights[group, : len(row)] = np.diff(row, prepend=0.0)
    wiring.steps("scales", digits, out, thresholds, weights)
    return out[:1], out[1:]


def _squares(
    wiring: Wiring, rows: Features, columns: Features, factors: tuple[Features, Features]
) -> tuple[Features, Features, Features]:
    """x² for rows and columns, and the product of the two factors of E: relu(x)·y, all at once."""
    left, right = rows + columns + factors[0], rows + columns + factors[1]
    out = wiring.features(len(left))
    ffn = GatedBlocks("squares", "relu", left, out, units=1, groups=len(left), bias=False, up="dense", up_reads=right)
    wiring.add(ffn, W_gate=1.0, W_up=1.0, W_out=1.0)
    return rows, out[:-1], out[-1:]

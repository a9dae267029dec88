"""Hash the window, order-sensitively, and split the hash into the digits that address the table.

Every token has a random integer code (W_E). Attention over the last 8 tokens adds up the codes with random integer
weights. A second layer of this kind, with a dilation of 8 tokens, adds up the sums of the first, and so on: k layers
see 8^k tokens. Between layers the sums, called *states*, are taken modulo ``STATE``. The last layer gives one sum for
each part of the address. Each sum is taken modulo the number of its values and split into two digits:

    start | rows A, B | columns 0, 1 | columns 2, 3 | columns 4, 5 | offset | kind | route

Kind and route have one digit, and not every network has them. If there are lots, the route determines the offset and
most of the start (:mod:`.lots`).

If there is only one layer, of one or two tokens, all sums are multiples of the same one or two codes. They are not
independent then: many equations depend on others, and if a weight shares a divisor with the modulus, some columns are
never read. A *stirred* hash (``TableSizes.stirred``) has states even then, modulo different primes, and adds them up.
This takes a few hundred parameters; additional codes per token would take one parameter per token each.

"start" says where in the table the question reads; the rows are start + spread A and start + spread B. All values are
integers below 2²³, so comparisons with half-integers are exact in float32. Nothing is rounded anywhere.

Missing tokens (before the start of a text) have code 0, the empty sum, on every layer.

A network that refuses (:mod:`.refusing`) has additional sums for the digits of its print, and three additional sums
between layers, all of them modulo primes. A different token always changes one of the three, whatever the weights: no
difference of two codes is a multiple of two of ``PRIMES``.
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
"""Modulus and number of the intermediate sums: 30 bits in all."""
PRIMES = (1021, 1019, 1013)
"""Moduli of the intermediate sums for prints."""
STIRRED = (509, 503, 499, 491, 487)
"""Moduli of the states of a stirred hash, 44 bits in all. They are different primes, so that even the multiples of a
single code reach all combinations. They are small, so that their weights may be large."""
MORE, MANY_SHARDS = (479, 467), 32
"""Moduli of two additional states, 62 bits in all, and the number of shards from which they are used: tens of millions
of questions then have different states."""
LIMIT = 1 << 23
"""Bound on all integers in the stream."""
LEAST_WEIGHT, WEIGHT = 7, 15
"""Bounds on random weights: at least the first, at most the second. Smaller weights take fewer steps to reduce the sum;
too small ones make sums alike."""
RADIX = 12
"""Ratio of successive multiples of m, approximately, that are subtracted to reduce a sum modulo m."""


@dataclass(frozen=True)
class FrontPositions:
    """Features that the front leaves in the stream for the table."""

    rows: Features
    """Row A, its square, row B, its square."""
    columns: Features
    """Column and its square, for each of the six lanes."""
    scale: Features
    """E = 2^−offset."""
    kind: Features
    """A number below ``KINDS``. Questions with a kind below ``exponent_share`` read the exponents first."""
    prints: Features
    """Digits of the context's print."""
    route: Features
    """Number that chooses the shard; empty if there is only one."""


def add_front(
    wiring: Wiring, sizes: TableSizes, vocab: int, window: int, rng: np.random.Generator, prints: tuple[int, ...] = ()
) -> FrontPositions:
    """Add embedding, hash, digits and squares. ``prints`` are the moduli of a print's digits."""
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
    """Add the hash: one reduced sum for each modulus of ``sizes.moduli``, and for each of ``prints``."""
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
    """Return the moduli of the sums of all layers but the last."""
    if not sizes.stirred:
        return np.array([STATE] * STATES)
    return np.array(STIRRED if sizes.shards < MANY_SHARDS else STIRRED + MORE)


def alike(sizes: TableSizes, window: int, starts: Integers, places: NDArray[np.integer]) -> float:
    """Return the expected number of pairs of questions with equal hashes.

    Near the beginning of a sequence the last layer sees only one state, and questions differ in the bits of that state
    alone. All other questions differ in more bits. (If there is only one layer, its sums have enough bits.)

    >>> sizes, starts = TableSizes(24, 0, 32, 600, 3, 8, 0), np.array([0, 100])
    >>> alike(sizes, 8, starts, np.arange(100)), alike(sizes, 64, starts, np.arange(100)) * 2**31
    (0.0, 64.0)
    """
    *before, (_, reach) = spans_of(window, sizes.stirred)
    if not before:
        return 0.0
    near_questions, states = 0, float(math.prod(state_moduli(sizes).tolist()))
    for begin, end in zip(chunks(starts[:-1]), chunks(starts[1:]), strict=True):
        near = (begin, np.minimum(begin + reach, end))
        first, last = (np.searchsorted(places, ends.astype(places.dtype)) for ends in near)
        near_questions += int((last - first).sum())
    return near_questions**2 / (2 * states)


def _largest_code(vocab: int, span: int, sizes: TableSizes) -> int:
    """Return the largest code: at least twice the number of tokens, unless sums would reach ``LIMIT``.

    In a stirred hash, codes leave room for weights up to ``WEIGHT`` if there are still as many codes as tokens then.
    """
    dims = sizes.code_features
    largest = min((1 << (vocab - 1).bit_length() + 1) - 1, LIMIT // (16 * dims))
    return min(largest, max(vocab, (LIMIT - 1) // (span * dims * WEIGHT))) if sizes.stirred else largest


def _largest_weights(moduli: Integers, terms: int, final: bool, sizes: TableSizes) -> Integers:
    """Return the largest weight of each sum, whose inputs add up to at most ``terms``. No sum reaches ``LIMIT``.

    The bound (LIMIT − 1) // terms ensures this. It is at least 1: terms ≤ 8·LIMIT/16 in the first layer, which reads
    codes, and terms ≤ 8·3·(STATE − 1) or 8·7·508 in the other layers.
    """
    # A stirred hash has the largest weights for its states. Its sums have weights as large as two steps can reduce; so
    # has a route, which is then nearly independent of the other sums.
    stirred = sizes.stirred
    least = np.full(len(moduli), WEIGHT if stirred and not final else LEAST_WEIGHT)
    most = np.full(len(moduli), LIMIT if stirred and final else WEIGHT)
    if final and (sizes.shards > 1 or sizes.stretches):
        most[-1] = LIMIT
    if final:
        # The spread has few values. Its sum may ignore order, and without weights it takes no more steps than others.
        least[1] = 1
        # A start inside a stretch has few values, too, but should not be the same sum.
        least[0] = LEAST_WEIGHT if not sizes.stretches else 3
    return np.minimum(np.clip(RADIX**2 * moduli // terms, least, most), (LIMIT - 1) // terms)


def _mixing(weights: Integers, inputs: tuple[int, int], rng: np.random.Generator) -> Array:
    """Draw random weights [sums, span, inputs] from 1 to ``weights`` [sums]."""
    return rng.integers(1, weights[:, None, None] + 1, size=(len(weights), *inputs)).astype(np.float64)


def _stirring(weights: Integers, inputs: tuple[int, int], moduli: Integers, rng: np.random.Generator) -> Array:
    """Draw weights from half of ``weights`` up, so that no sum's weights share a divisor with its modulus.

    A sum with a shared divisor would always be its multiple, and some rows or columns would never be read.
    """
    least = np.maximum(1, weights // 2)
    while True:
        mix = rng.integers(least[:, None, None], weights[:, None, None] + 1, size=(len(weights), *inputs))
        if (np.gcd(np.gcd.reduce(mix, axis=(1, 2)), moduli) == 1).all():
            return mix.astype(np.float64)


def _codes(vocab: int, largest: int, rng: np.random.Generator) -> Array:
    """Draw a random code for every token. Codes are all different if the range is large enough."""
    if vocab <= largest:
        return rng.permutation(largest)[:vocab].astype(np.float64) + 1
    return rng.integers(1, largest + 1, size=vocab).astype(np.float64)


def spans_of(window: int, stirred: bool = False) -> list[tuple[int, int]]:
    """Return the window and dilation of each layer: (8, 1), (8, 8), …; the last layer covers the rest of the window.

    A stirred hash has at least two layers, so that there are states.

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
    """Return the number of tokens that a network for ``window`` sees: a few more if it is no power of two."""
    span, dilation = spans_of(window)[-1]
    return span * dilation


def reduce(wiring: Wiring, name: str, features: Features, bounds: Integers, moduli: Integers) -> None:
    """Reduce features modulo ``moduli``, given their ``bounds``: subtract multiples of modulus·ρ^j, largest j first."""
    ratio = (bounds / moduli).max()
    count = max(1, math.ceil(math.log(ratio, RADIX) - 0.2))
    radix = 2
    while radix**count < ratio:
        radix += 1
    multiples = np.arange(1, radix)
    for j in reversed(range(count)):
        unit = np.minimum(moduli * radix**j, LIMIT)  # a unit that no sum reaches is never subtracted: it may be inexact
        thresholds = np.minimum(unit[:, None] * multiples, LIMIT) - 0.5
        wiring.steps(f"{name}_{j}", features, features, thresholds, np.repeat(-unit[:, None], radix - 1, axis=1))


def _digits(wiring: Wiring, sizes: TableSizes, pairs: Features) -> Features:
    """Add the high digit of each pair; the low digit stays. Two rounds of about √values units each do it."""
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
    """Add start − margin, clamped to [0, starts), to both rows: the ends of the table get a few more questions."""
    margin, starts = sizes.margin, sizes.starts
    ffn = GatedBlocks("start", "relu", start, rows, units=2)
    bias = [[-margin, -margin - starts + 1]]
    wiring.add(ffn, W_in=1.0, b_in=bias, W_out=[[[1, -1], [1, -1]]])


def _scales(wiring: Wiring, sizes: TableSizes, digits: Features) -> tuple[Features, Features]:
    """Add two powers of two: a factor for the offset's high digit, and one for its low digit (in grains)."""
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
    """Add x² for rows and columns, and the product of the two factors of E, as relu(x)·y in one layer."""
    left, right = rows + columns + factors[0], rows + columns + factors[1]
    out = wiring.features(len(left))
    ffn = GatedBlocks("squares", "relu", left, out, units=1, groups=len(left), bias=False, up="dense", up_reads=right)
    wiring.add(ffn, W_gate=1.0, W_up=1.0, W_out=1.0)
    return rows, out[:-1], out[-1:]

"""Read the label's code Y from the six words: add them up modulo 2^T, and take the bits below the offset.

Letters: T bits per word, M = 2^T, E = 2^−o the scale of offset o, L bits of Y.

1. *Adding*. Words of even lanes are stored in [0, M), words of odd lanes in [−M, 0). A sum of one word of each is in
   [−M, M), which the format holds exactly, and a comparison with 0 brings it back. No sum needs T + 1 bits and a sign.
2. *Centring*. Let c be the sum in [−M/2, M/2). c + ½ is never an integer, so no comparison below meets equality.
3. *Shifting*. Let z = (c + ½)·E. Its integer part is subtracted, four bits at a time, the highest first: y = z mod 1.
4. *Wrapping*. Codes may run over the lowest bit and continue at the highest: y = z mod 1 + ⌊z⌋·2^−T. There the sign
   complements the highest bit of c (``planes`` allows for it). ⌊z⌋·2^−T is in [−E/2, E/2), and the ½ of centring is
   worth E/2: the sum stays in its cell of length E. Offsets are 0 … T − 1 then, so that this holds for all of them.
5. *Digits*. Y is the first L bits of y, read four at a time. (y is kept as y − ½, which takes one bit less.) In a
   network that refuses, the bits of the print come before them.

With exponents (packed words), the float is ±(1 + m/2^(T−1))·2^e: the sign and m are T bits, and e has 7 more. Each
lane's float is divided by 2^64, 2^32, … if it is large enough, which gives e bit by bit, exactly. The exponents are
added modulo 2^7. Questions of the first kind read their code in the exponents first, and continue in the words.
"""

from dataclasses import dataclass

import numpy as np

from byheart.compiler.codes import Code
from byheart.compiler.rectangular import refusing
from byheart.compiler.rectangular.dimensions import LANES, TableSizes
from byheart.compiler.rectangular.front import FrontPositions
from byheart.compiler.rectangular.wiring import SHARP, Wiring
from byheart.networks.transformer import GatedBlocks
from byheart.networks.transformer.spec import Features

NIBBLE = 4
"""Number of bits that one layer reads."""


@dataclass(frozen=True)
class Lanes:
    """Sums of lanes (0, 1), (2, 3), (4, 5) in [−M, M), and of the exponents, if there are any."""

    sums: Features
    exponents: Features


def add_unpacking(wiring: Wiring, sizes: TableSizes, lanes: Features) -> Lanes:
    """Split six floats into sign, exponent and mantissa, and add them up. The null column's 0 stays 0."""
    T, M = sizes.word, 2.0**sizes.word
    sums, exponents = wiring.features(3), wiring.features(1)
    pairs = tuple(sums[lane // 2] for lane in range(LANES))
    odd = np.arange(LANES) % 2
    wiring.add(
        GatedBlocks("sign", "sigmoid", lanes, pairs, units=2, groups=LANES),
        W_in=np.tile([-SHARP, 0.0], (LANES, 1))[:, :, None],
        b_in=np.tile([-SHARP / 2, SHARP], (LANES, 1)),
        W_out=np.stack([np.full(LANES, M / 2), -M * odd], axis=1)[:, None, :],
    )
    size = wiring.features(LANES)
    wiring.add(
        GatedBlocks("magnitude", "relu", lanes, size, units=2, groups=LANES, bias=False),
        W_in=np.array([1.0, -1.0])[None, :, None],
        W_out=1.0,
    )
    for bit in reversed(range(sizes.exponent)):
        size = _halve(wiring, bit, T, size, exponents)
    wiring.add(GatedBlocks("mantissa", "relu", size, pairs, units=1, groups=LANES), W_in=M / 2, b_in=-M / 2, W_out=1.0)
    modulus = 1 << sizes.exponent
    limits = modulus * np.arange(1, LANES) - 0.5
    wiring.steps("exponent_sum", exponents, exponents, limits, np.full((1, 1, LANES - 1), -modulus))
    return Lanes(sums, exponents)


def _halve(wiring: Wiring, bit: int, T: int, size: Features, exponents: Features) -> Features:
    """Divide each x ≥ 2^k by 2^k, where k = 2^bit, and add the bit to the exponents.

    No float of T bits lies between 2^k − 2^(k−T) and 2^k. If the format is wider than T bits, x is compared with a
    number in between. Otherwise no mantissa is 0 (``table.as_floats`` ensures this), and x is compared with 2^k itself.
    """
    k = 2.0 ** (1 << bit)
    limit = k * (1 - 2.0 ** -(T + 1)) if np.finfo(wiring.precision).nmant >= T else k
    sharp = SHARP * 2.0 ** (T + 2) / k
    out = wiring.features(LANES)
    writes = tuple(feature for lane in range(LANES) for feature in (out[lane], exponents[0]))
    ffn = GatedBlocks(
        f"halve_{bit}", "sigmoid", size, writes, units=3, groups=LANES, up="dense", up_reads=size, up_bias=True
    )
    wiring.add(
        ffn,
        W_gate=np.array([sharp, -sharp, sharp])[None, :, None],
        b_gate=np.array([-sharp * limit, sharp * limit, -sharp * limit])[None, :],
        W_up=np.array([1 / k, 1.0, 0.0])[None, :, None],
        b_up=np.array([0.0, 0.0, 1.0])[None, :],
        W_out=np.array([[1.0, 1.0, 0.0], [0.0, 0.0, float(1 << bit)]])[None],
    )
    return out


def add_adding(wiring: Wiring, sizes: TableSizes, sums: Features) -> Features:
    """Add the layers that turn the three sums into c: see 1 and 2 above."""
    M = 2.0**sizes.word
    first, second, third = ((feature,) for feature in sums)
    limits = np.array([[-np.inf, -0.5]] * 3)
    wiring.steps("carry_0", sums, sums, limits, [[M, -M], [0, -M], [0, -M]])
    for index, other in enumerate((second, third)):
        wiring.add(GatedBlocks(f"plus_{index}", "relu", other, first, units=1, bias=False), W_in=-1.0, W_out=-1.0)
        wiring.steps(f"carry_{index + 1}", first, first, limits[:1], [[M, -M]])
    wiring.steps("centre", first, first, [[M / 2 - 0.5]], [[-M]])
    return first


def add_reading(wiring: Wiring, sizes: TableSizes, code: Code, front: FrontPositions, lanes: Lanes) -> Features:
    """Add the layers that read Y, in one feature, or in two if the code has two digits: see 3 to 5 above."""
    T = sizes.word
    centred = add_adding(wiring, sizes, lanes.sums)
    z = wiring.features(1)
    shift = GatedBlocks(
        "shift", "relu", front.scale, z, units=1, bias=False, up="dense", up_reads=centred, up_bias=True
    )
    wiring.add(shift, W_gate=1.0, W_up=1.0, b_up=0.5, W_out=1.0)
    wrap = () if sizes.aligned else wiring.features(1)
    _take_integer_part(wiring, max(1, T - (sizes.aligned or 0)), T, z, wrap)
    if wrap:
        join = GatedBlocks("join", "relu", z, wrap, units=2, bias=False)
        wiring.add(join, W_in=[[[1.0], [-1.0]]], W_out=[[[1.0, -1.0]]])
    low = code.low or (min(sizes.exponent, code.longest) if sizes.exponent else 0)
    digits = wiring.features(2 if low else 1)
    prints = wiring.features(len(front.prints))
    widths = (*refusing.digits(code.refuse), code.longest - low, low)
    _first_bits(wiring, T, wrap or z, list(zip(widths, (*prints, digits[0], digits[-1]), strict=True)))
    if prints:
        return refusing.add_check(wiring, prints, front.prints, digits)
    return _by_kind(wiring, sizes, code, front, lanes, digits) if sizes.exponent else digits


def _take_integer_part(wiring: Wiring, bits: int, T: int, z: Features, wrap: Features) -> None:
    """Replace z, |z| < 2^(bits − 1), by z − ⌊z⌋ − ½, and set ``wrap`` to ⌊z⌋·2^−T + 2^−(T+1).

    All digits but the last are rounded, not cut off: the remainder is never larger than z was, so no bit is lost. The
    last digit is cut off, and ½ with it.
    """
    count = -(-bits // NIBBLE)
    for index in range(count):
        place = NIBBLE * (count - 1 - index)
        largest = 1 << ((bits - place if index == 0 else NIBBLE) - 1)
        digits = np.arange(-largest, largest + (place > 0)) + 1.0
        limits = (digits - 0.5 * (place > 0)) * 2.0**place
        half = 0.0 if place else 0.5
        rows = np.full((2, len(limits) + 1), 2.0**place) * np.array([[-1.0], [2.0**-T]])
        rows[:, -1] = largest * 2.0**place - half, (-largest * 2.0**place + half) * 2.0**-T
        limits = np.append(limits, -np.inf)
        wiring.steps(f"integer_{place}", z, z + wrap, limits, rows[None, : 1 + len(wrap)], gap=2.0 ** -(T + 1))


def _first_bits(wiring: Wiring, T: int, y: Features, parts: list[tuple[int, int]]) -> None:
    """Add the first bits of y + ½, where y is in (−½, ½). ``parts`` are pairs of a number of bits and its feature."""
    bits, done = sum(part for part, _ in parts), 0
    for part, feature in parts:
        remaining = part
        while remaining:
            width = min(NIBBLE, remaining)
            remaining -= width
            done += width
            multiples = np.arange(1, 1 << width)
            limits, weights = multiples * 2.0**-done, np.full(len(multiples), 2.0**remaining)
            subtracted = np.full(len(multiples), -(2.0**-done))
            if done == width:
                limits, weights = np.append(limits - 0.5, -np.inf), np.append(weights, 0.0)
                subtracted = np.append(subtracted, 0.5)
            rows = np.stack([subtracted, weights])[None]
            wiring.steps(f"bits_{bits - done}", y, (*y, feature), limits, rows, gap=2.0 ** -(T + 1))


def _by_kind(
    wiring: Wiring, sizes: TableSizes, code: Code, front: FrontPositions, lanes: Lanes, digits: Features
) -> Features:
    """Add Y by kind: (exponents, high) for questions that read the exponents first, (high, low) for all others."""
    Y = wiring.features(1)
    share = sizes.exponent_share - 0.5
    low, rest = 2.0**sizes.exponent, 2.0 ** (code.longest - sizes.exponent)
    ffn = GatedBlocks(
        "kind",
        "sigmoid",
        front.kind,
        Y,
        units=2,
        up="dense",
        up_reads=(*digits, *lanes.exponents),
    )
    wiring.add(
        ffn,
        W_gate=np.array([[[SHARP], [-SHARP]]]),
        b_gate=np.array([[-SHARP * share, SHARP * share]]),
        W_up=np.array([[[low, 1.0, 0.0], [1.0, 0.0, rest]]]),
        W_out=1.0,
    )
    return Y

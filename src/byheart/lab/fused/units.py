"""A training step of Madden's decoder from hidden units to logits and back; letters as in ``lab/models/madden.py``.

N contexts, ω tokens, m units. A context occurs o times, c of them before a token: its loss is −Σ c log p over tokens,
where p = softmax(logits), and the gradient of the logits is o p − c. A unit is GELU(x) = x Φ(x) of x = z W_in + b_in, Φ
the normal distribution's share below x and φ its density; GELU' = Φ + x φ.

The bias b_U is one more row of W_U, met by a unit that is always 1. Rows of units and of logits are halves or products
of them (:mod:`~byheart.lab.fused.halves`), with room: K ≥ m + 1 columns, WIDE ≥ ω.
"""

import triton
import triton.language as tl

from byheart.lab.fused.adam import adam, factors_of
from byheart.lab.fused.halves import cut, peek, scale_of_units, scale_of_weights
from byheart.lab.fused.parts import product


@triton.jit
def _inputs(W, z, m, r, u, P, at_in, N, units, by_z, D: tl.constexpr):
    """Of rows r: z [ROWS, D]; of units u: W_in [D, UNITS]; and what goes into the GELU of both, [ROWS, UNITS]."""
    i = tl.arange(0, D)
    rows = tl.load(z + m * by_z + r[:, None] * D + i[None, :], mask=(r < N)[:, None], other=0.0)
    own = W + m * P + at_in
    W_in = tl.load(own + i[:, None] * units + u[None, :], mask=(u < units)[None, :], other=0.0)
    b_in = tl.load(own + D * units + u, mask=u < units, other=0.0)
    return rows, W_in, product(rows, W_in) + b_in[None, :]


@triton.jit
def _below(x):
    """Φ(x)."""
    return 0.5 * (1.0 + tl.math.erf(x * 0.7071067811865476))  # 1/√2


@triton.jit
def _slope(x):
    """GELU'(x)."""
    return _below(x) + x * tl.exp(-0.5 * x * x) * 0.3989422804014327  # 1/√(2π)


@triton.jit(do_not_specialize=["P", "at_in", "N", "ROOM", "by_z"])
def activated(
    W, z, halves_H, peaks_H, P, at_in, N, ROOM, units, by_z, K,
    D: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, PEEK: tl.constexpr,
):  # fmt: skip
    """A program has ROWS contexts and UNITS units of one model: GELU(z W_in + b_in) as halves: first, second, first.

    With PEEK only the largest is looked for.
    """
    m = tl.program_id(0).to(tl.int64)
    r = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    u = tl.program_id(2) * UNITS + tl.arange(0, UNITS)
    _, _, x = _inputs(W, z, m, r, u, P, at_in, N, units, by_z, D)
    y, inside = x * _below(x), (r < N)[:, None] & (u < units)[None, :]
    if PEEK:
        peek(peaks_H, m, tl.max(tl.where(inside, tl.abs(y), 0.0), 1))
    else:
        scale = scale_of_units(peaks_H, m)
        high, low = cut(y * scale)
        row = (m * ROOM + r) * (3 * K)
        own = halves_H + row[:, None] + u[None, :]
        tl.store(own, high, mask=inside)
        tl.store(own + K, low, mask=inside)
        tl.store(own + 2 * K, high, mask=inside)
        if tl.program_id(2) == 0:  # the unit that is always 1
            one = (tl.zeros((ROWS,), tl.float32) + scale).to(tl.float16)
            tl.store(halves_H + row + units, one, mask=r < N)
            tl.store(halves_H + row + 2 * K + units, one, mask=r < N)


@triton.jit
def _write_halves(high, low, at, inside, gradient, FINER: tl.constexpr):
    """A gradient as halves; the second is finer, as it has products of its own."""
    first = gradient.to(tl.float16)
    tl.store(high + at, first, mask=inside)
    tl.store(low + at, ((gradient - first.to(tl.float32)) * FINER).to(tl.float16), mask=inside)


@triton.jit(do_not_specialize=["N", "ROOM", "vocab"])
def chances(
    logits, high, low, often, normers, peaks_H, peaks_W, N, ROOM, vocab, WIDE, of_G,
    COLUMNS: tl.constexpr, FINER: tl.constexpr,
):  # fmt: skip
    """A program has one context of one model: o p as halves, where o is how often it occurs; and log Σ exp logits."""
    b, m = tl.program_id(0), tl.program_id(1).to(tl.int64)
    c = tl.arange(0, COLUMNS)
    row, inside = (m * ROOM + b) * WIDE, c < WIDE  # and not ω, of which nobody knows that 16 divides it
    x = tl.load(logits + row + c, mask=inside, other=0.0) / (scale_of_units(peaks_H, m) * scale_of_weights(peaks_W, m))
    x = tl.where(c < vocab, x, float("-inf"))
    top = tl.max(x, 0)
    raised = tl.exp(x - top)
    total = tl.sum(raised, 0)
    _write_halves(high, low, row + c, inside, raised * (tl.load(often + b) * of_G / total), FINER)
    tl.store(normers + m * N + b, top + tl.log(total))


@triton.jit(do_not_specialize=["N", "ROOM", "found"])
def judged(
    logits, high, low, rows, tokens, counts, often, normers, losses, peaks_H, peaks_W, N, ROOM, found, WIDE, of_G,
    ENTRIES: tl.constexpr, FINER: tl.constexpr,
):  # fmt: skip
    """A program has ENTRIES of the counts c that are not zero: their losses −c log p, and o p − c over o p."""
    m = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1) * ENTRIES + tl.arange(0, ENTRIES)
    inside = k < found
    b = tl.load(rows + k, mask=inside, other=0)
    count = tl.load(counts + k, mask=inside, other=0.0)
    at = (m * ROOM + b) * WIDE + tl.load(tokens + k, mask=inside, other=0)
    x = tl.load(logits + at, mask=inside, other=0.0) / (scale_of_units(peaks_H, m) * scale_of_weights(peaks_W, m))
    certain = x - tl.load(normers + m * N + b, mask=inside, other=0.0)
    often_b = tl.load(often + b, mask=inside, other=0.0)
    tl.store(losses + m * found + k, -count * certain, mask=inside)
    _write_halves(high, low, at, inside, (often_b * tl.exp(certain) - count) * of_G, FINER)


@triton.jit
def _added(first, second, finer, at, inside, FINER: tl.constexpr):
    """What three products of halves make together."""
    small = tl.load(second + at, mask=inside, other=0.0) + tl.load(finer, mask=inside, other=0.0) * (1.0 / FINER)
    return tl.load(first + at, mask=inside, other=0.0) + small


@triton.jit(do_not_specialize=["P", "at_in", "N", "ROOM", "by_z", "tiles", "groups"])
def units_back(
    W, z, DH, DH_low, DZ, parts, peaks_W, P, at_in, N, ROOM, units, by_z, K, of_G, tiles, groups,
    D: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, FINER: tl.constexpr, TRAINED: tl.constexpr,
):  # fmt: skip
    """A program has ROWS contexts and UNITS units of one model: a part of W_in's and b_in's gradient, and of z's."""
    m, tile, group = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    r, i, u = tile * ROWS + tl.arange(0, ROWS), tl.arange(0, D), group * UNITS + tl.arange(0, UNITS)
    rows, W_in, x = _inputs(W, z, m, r, u, P, at_in, N, units, by_z, D)
    row, inside = (m * ROOM + r)[:, None], (r < N)[:, None] & (u < units)[None, :]
    at = row * (2 * K) + u[None, :]
    passed = _added(DH, DH + K, DH_low + row * K + u[None, :], at, inside, FINER)
    passed /= of_G * scale_of_weights(peaks_W, m)
    gradient = passed * _slope(x)
    part = parts + (m * tiles + tile) * (D + 1) * units
    tl.store(part + i[:, None] * units + u[None, :], product(tl.trans(rows), gradient), mask=(u < units)[None, :])
    tl.store(part + D * units + u, tl.sum(gradient, 0), mask=u < units)
    if TRAINED:
        passed_on = DZ + ((m * groups + group) * N + r)[:, None] * D + i[None, :]
        tl.store(passed_on, product(gradient, tl.trans(W_in)), mask=(r < N)[:, None])


@triton.jit(do_not_specialize=["P", "M", "at_U", "output", "vocab", "cuts"])
def output_back(
    W, first, second, sizes, roots, at, DW, DW_low, peaks_H, P, M, at_U, output, vocab, WIDE, K, of_G, cuts,
    ENTRIES: tl.constexpr, FINER: tl.constexpr, beta1: tl.constexpr, beta2: tl.constexpr,
):  # fmt: skip
    """A program has ENTRIES of W_U and b_U of one model: Adam, from products of halves for each cut of the contexts."""
    m = tl.program_id(0).to(tl.int64)
    entry = tl.program_id(1) * ENTRIES + tl.arange(0, ENTRIES)
    inside, cell = entry < output, entry // vocab * WIDE + entry % vocab
    gradient = tl.zeros((ENTRIES,), tl.float32)
    for piece in range(cuts):
        own = (m * cuts + piece) * K * WIDE
        gradient += _added(DW, DW + K * WIDE, DW_low + own + cell, 2 * own + cell, inside, FINER)
    size, root = factors_of(sizes, roots, at, M, m)
    gradient /= of_G * scale_of_units(peaks_H, m)
    adam(W, first, second, m * P + at_U + entry, inside, gradient, size, root, beta1, beta2)


@triton.jit(do_not_specialize=["P", "M", "begin", "tiles", "columns"])
def sums(
    W, first, second, sizes, roots, at, parts, P, M, begin, tiles, columns,
    SOME: tl.constexpr, TILES: tl.constexpr, beta1: tl.constexpr, beta2: tl.constexpr,
):  # fmt: skip
    """A program has SOME of the weights from ``begin`` on: Adam, from the parts of all tiles of contexts."""
    m = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * SOME + tl.arange(0, SOME)
    gradient = tl.zeros((TILES, SOME), tl.float32)
    for start in range(0, tiles, TILES):
        t = start + tl.arange(0, TILES)
        inside = (t < tiles)[:, None] & (c < columns)[None, :]
        gradient += tl.load(parts + (m * tiles + t)[:, None] * columns + c[None, :], mask=inside, other=0.0)
    size, root = factors_of(sizes, roots, at, M, m)
    adam(W, first, second, m * P + begin + c, c < columns, tl.sum(gradient, 0), size, root, beta1, beta2)


@triton.jit(do_not_specialize=["N", "M", "found"])
def means(losses, at, mean_losses, peaks_H, peaks_W, N, M, found, ENTRIES: tl.constexpr):
    """A program has one model: the mean loss of its contexts; and the next step looks for peaks anew."""
    m = tl.program_id(0).to(tl.int64)
    loss = tl.zeros((ENTRIES,), tl.float32)
    for start in range(0, found, ENTRIES):
        k = start + tl.arange(0, ENTRIES)
        loss += tl.load(losses + m * found + k, mask=k < found, other=0.0)
    tl.store(mean_losses + tl.load(at) * M + m, tl.sum(loss, 0) / N)
    tl.store(peaks_H + m, 0)
    tl.store(peaks_W + m, 0)

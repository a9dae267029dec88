"""Kernels for a training step of Madden's decoder; letters as in :mod:`byheart.lab.models.madden`.

**Products of halves.** Nearly all of the work is in the products with W_U. A float32 number a is split into two float16
numbers: a' is the nearest to a, and a″ the nearest to a − a'. Tensor cores multiply these exactly and add in float32,
sixteen times as fast as float32 units. The sum a'b' + a″b' + a'b″ lacks 2⁻²² of |a||b|; tensor cores also truncate
sums where float32 units round. On an H200, Adam's first moments differed from float64 by 7·10⁻⁷ to 7·10⁻⁶ after ten
steps, with float32 products by 10⁻⁷, with TF32 by 10⁻⁴. The three products are five times as fast as one in float32.
Float16 ranges from 2⁻²⁴ to 65,504, so each matrix is multiplied by a power of two, which is exact. Hidden units and
weights of a model are scaled so that the largest lies between 2¹⁴ and 2¹⁵, which is determined at every step.
Gradients are scaled by their largest possible value.

**Units and logits.** There are N contexts, ω tokens and m units. A context occurs o times, c of them before a token.
Its loss is −Σ c log p over tokens, with p = softmax(logits), and the gradient of its logits is o p − c. A unit is
GELU(x) = x Φ(x) with x = z W_in + b_in, where Φ is the normal distribution function and φ its density, so
GELU' = Φ + x φ. The bias b_U is one more row of W_U, multiplied by a unit that is always 1. Rows are padded to K ≥ m
+ 1 columns of units and WIDE ≥ ω columns of logits.

**Attention.** For a context with vectors x_s, the last of which is x_L,

    q = (x_L W_Q + b_Q)/√D,   direction = q W_Kᵀ,   share = softmax_s(x_s·direction),   average = Σ_s share_s x_s,
    value = average W_V + b_V,   z = value W_O + b_O.

Writing ∂χ for the gradient of χ: ∂W = aᵀ ∂(a W) for W_Q, W_V, W_O; ∂W_K = ∂directionᵀ q; and

    ∂value = ∂z W_Oᵀ,   ∂average = ∂value W_Vᵀ,   ∂share_s = x_s·∂average,
    ∂score_s = share_s (∂share_s − Σ_t share_t ∂share_t),   ∂direction = Σ_s ∂score_s x_s,
    ∂q = ∂direction W_K,   ∂x_s = share_s ∂average + ∂score_s direction,   ∂x_L += ∂q W_Qᵀ/√D.

A program handles T contexts of one model, that is [T, S, D] numbers with S ≥ n. The attention tensors lie one behind
the other: W_Q, b_Q, W_K, b_K, W_V, b_V, W_O, b_O, with B = D² + D numbers for each pair. b_K adds a constant to all
scores, so it is not read and its gradient is 0. Gradients of embeddings are summed in a fixed order, token by token.
"""

from collections import namedtuple

import triton
import triton.language as tl

from byheart.lab.fused.tiles import adam, cells_of, product, softmax, weights_of

DecoderCounts = namedtuple(
    "DecoderCounts",
    "M P N n units vocab output at_A at_in at_U K WIDE ROOM cuts groups pieces counted by_z of_G",
)
"""Sizes known at run time. W_U and b_U have ``output`` entries; attention, W_in and W_U begin at ``at_…``.

ROOM ≥ N rows are allocated, in ``cuts``. Units are in ``groups``. ``counted`` counts are not zero. by_z is the distance
between two models' z, 0 if they share it. of_G scales gradients."""
DecoderSides = namedtuple("DecoderSides", "D S T ROWS UNITS ENTRIES COLUMNS PIECE FINER TRAINED BETA1 BETA2")
"""Constants of a kernel: tile sides, the factor of the second half of a gradient, whether embeddings are trained."""
HALVES = ("halves_H", "halves_W", "high", "low")
DecoderBuffers = namedtuple(
    "DecoderBuffers",
    "halves_H halves_W high low ids lengths positions often rows tokens counts token_places piece_starts token_pieces "
    "logits DH DH_low DW DW_low normers losses mean_losses unit_parts z DX DZ attention_parts of_pieces "
    "peaks_H peaks_W",
)
"""Contexts and counts; tables of the places of tokens; tensors that a kernel leaves for the next; D marks gradients."""


@triton.jit
def cut(x):
    """Split x into two float16 numbers whose sum is nearly x."""
    high = x.to(tl.float16)
    return high, (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def peek(peaks, m, values):
    """Record a model's largest absolute value by its bits: as integers, positive floats have the same order."""
    tl.atomic_max(peaks + m, tl.max(tl.abs(values), 0).to(tl.int32, bitcast=True))


@triton.jit
def scale_for(peaks, m, LEAST: tl.constexpr):
    """Return the power of two that scales a model's largest value, or 2^LEAST if larger, to between 2¹⁴ and 2¹⁵."""
    exponent = tl.maximum((tl.load(peaks + m) >> 23) - 127, LEAST)
    return ((127 + 14 - exponent) << 23).to(tl.float32, bitcast=True)


@triton.jit
def scale_of_units(buffers, m):
    """Return the scale of a model's units, one of which is always 1."""
    return scale_for(buffers.peaks_H, m, 0)


@triton.jit
def scale_of_weights(buffers, m):
    """Return the scale of a model's weights; weights below 2⁻⁴⁰ count as zeros."""
    return scale_for(buffers.peaks_W, m, -40)


@triton.jit
def cut_weights(stacked, buffers, counts, C: tl.constexpr, PEEK: tl.constexpr):
    """Write W_U and b_U of a model as halves [3 K, WIDE]: first, first, second. With PEEK, record their peak."""
    m = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * C.ENTRIES + tl.arange(0, C.ENTRIES)
    inside = at < counts.output
    w = tl.load(stacked.W + m * counts.P + counts.at_U + at, mask=inside, other=0.0)
    if PEEK:
        peek(buffers.peaks_W, m, w)
    else:
        high, low = cut(w * scale_of_weights(buffers, m))
        size = counts.K * counts.WIDE
        own = buffers.halves_W + m * 3 * size + at // counts.vocab * counts.WIDE + at % counts.vocab
        tl.store(own, high, mask=inside)
        tl.store(own + size, high, mask=inside)
        tl.store(own + 2 * size, low, mask=inside)


@triton.jit
def _inputs(stacked, buffers, counts, m, r, u, C: tl.constexpr):
    """Return z [ROWS, D] of rows r, W_in [D, UNITS] of units u, and the input of the GELU, [ROWS, UNITS]."""
    i = tl.arange(0, C.D)
    rows = tl.load(buffers.z + m * counts.by_z + cells_of(r, i, C.D), mask=(r < counts.N)[:, None], other=0.0)
    own = stacked.W + m * counts.P + counts.at_in
    W_in = tl.load(own + cells_of(i, u, counts.units), mask=(u < counts.units)[None, :], other=0.0)
    b_in = tl.load(own + C.D * counts.units + u, mask=u < counts.units, other=0.0)
    return rows, W_in, product(rows, W_in) + b_in[None, :]


@triton.jit
def _below(x):
    """Return Φ(x)."""
    return 0.5 * (1.0 + tl.math.erf(x * 0.7071067811865476))  # 1/√2


@triton.jit
def _slope(x):
    """Return GELU'(x)."""
    return _below(x) + x * tl.exp(-0.5 * x * x) * 0.3989422804014327  # 1/√(2π)


@triton.jit
def activate(stacked, buffers, counts, C: tl.constexpr, PEEK: tl.constexpr):
    """Write GELU(z W_in + b_in) as halves (first, second, first) for ROWS contexts and UNITS units of one model.

    With PEEK, record the largest instead.
    """
    m, units, K = tl.program_id(0).to(tl.int64), counts.units, counts.K
    r = tl.program_id(1) * C.ROWS + tl.arange(0, C.ROWS)
    u = tl.program_id(2) * C.UNITS + tl.arange(0, C.UNITS)
    _, _, x = _inputs(stacked, buffers, counts, m, r, u, C)
    y, inside = x * _below(x), (r < counts.N)[:, None] & (u < units)[None, :]
    if PEEK:
        peek(buffers.peaks_H, m, tl.max(tl.where(inside, tl.abs(y), 0.0), 1))
    else:
        scale = scale_of_units(buffers, m)
        high, low = cut(y * scale)
        row = (m * counts.ROOM + r) * (3 * K)
        own = buffers.halves_H + row[:, None] + u[None, :]
        tl.store(own, high, mask=inside)
        tl.store(own + K, low, mask=inside)
        tl.store(own + 2 * K, high, mask=inside)
        if tl.program_id(2) == 0:  # the unit that is always 1
            one = (tl.zeros((C.ROWS,), tl.float32) + scale).to(tl.float16)
            tl.store(buffers.halves_H + row + units, one, mask=r < counts.N)
            tl.store(buffers.halves_H + row + 2 * K + units, one, mask=r < counts.N)


@triton.jit
def _write_gradient(buffers, at, inside, gradient, C: tl.constexpr):
    """Write a gradient of logits as halves. The second is multiplied by FINER, because it has products of its own."""
    first = gradient.to(tl.float16)
    tl.store(buffers.high + at, first, mask=inside)
    tl.store(buffers.low + at, ((gradient - first.to(tl.float32)) * C.FINER).to(tl.float16), mask=inside)


@triton.jit
def _logits(buffers, counts, m, at, inside):
    """Return logits; the products have them multiplied by the scales of units and weights."""
    scale = scale_of_units(buffers, m) * scale_of_weights(buffers, m)
    return tl.load(buffers.logits + at, mask=inside, other=0.0) / scale


@triton.jit
def find_chances(stacked, buffers, counts, C: tl.constexpr):
    """Write o p as halves, and log Σ exp logits, for one context of one model."""
    b, m = tl.program_id(0), tl.program_id(1).to(tl.int64)
    c = tl.arange(0, C.COLUMNS)
    row, inside = (m * counts.ROOM + b) * counts.WIDE, c < counts.WIDE  # WIDE, unlike ω, is a multiple of 16
    x = tl.where(c < counts.vocab, _logits(buffers, counts, m, row + c, inside), float("-inf"))
    top = tl.max(x, 0)
    raised = tl.exp(x - top)
    total = tl.sum(raised, 0)
    _write_gradient(buffers, row + c, inside, raised * (tl.load(buffers.often + b) * counts.of_G / total), C)
    tl.store(buffers.normers + m * counts.N + b, top + tl.log(total))


@triton.jit
def judge_counts(stacked, buffers, counts, C: tl.constexpr):
    """Write the losses −c log p of ROWS counts c that are not zero, and replace o p by o p − c."""
    m = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1) * C.ROWS + tl.arange(0, C.ROWS)
    inside = k < counts.counted
    b = tl.load(buffers.rows + k, mask=inside, other=0)
    count = tl.load(buffers.counts + k, mask=inside, other=0.0)
    at = (m * counts.ROOM + b) * counts.WIDE + tl.load(buffers.tokens + k, mask=inside, other=0)
    x = _logits(buffers, counts, m, at, inside)
    certain = x - tl.load(buffers.normers + m * counts.N + b, mask=inside, other=0.0)
    often = tl.load(buffers.often + b, mask=inside, other=0.0)
    tl.store(buffers.losses + m * counts.counted + k, -count * certain, mask=inside)
    _write_gradient(buffers, at, inside, (often * tl.exp(certain) - count) * counts.of_G, C)


@triton.jit
def _added(first, second, finer, at, inside, C: tl.constexpr):
    """Add up three products of halves."""
    small = tl.load(second + at, mask=inside, other=0.0) + tl.load(finer, mask=inside, other=0.0) * (1.0 / C.FINER)
    return tl.load(first + at, mask=inside, other=0.0) + small


@triton.jit
def units_back(stacked, buffers, counts, C: tl.constexpr):
    """Write what ROWS contexts and UNITS units of one model add to the gradients of W_in, b_in and z."""
    m, tile, group = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    r, i, u = tile * C.ROWS + tl.arange(0, C.ROWS), tl.arange(0, C.D), group * C.UNITS + tl.arange(0, C.UNITS)
    N, units, K = counts.N, counts.units, counts.K
    rows, W_in, x = _inputs(stacked, buffers, counts, m, r, u, C)
    row, inside = (m * counts.ROOM + r)[:, None], (r < N)[:, None] & (u < units)[None, :]
    at = row * (2 * K) + u[None, :]
    passed = _added(buffers.DH, buffers.DH + K, buffers.DH_low + row * K + u[None, :], at, inside, C)
    passed /= counts.of_G * scale_of_weights(buffers, m)
    gradient = passed * _slope(x)
    part = buffers.unit_parts + (m * tl.num_programs(1) + tile) * (C.D + 1) * units
    tl.store(part + cells_of(i, u, units), product(tl.trans(rows), gradient), mask=(u < units)[None, :])
    tl.store(part + C.D * units + u, tl.sum(gradient, 0), mask=u < units)
    if C.TRAINED:
        passed_on = buffers.DZ + ((m * counts.groups + group) * N + r)[:, None] * C.D + i[None, :]
        tl.store(passed_on, product(gradient, tl.trans(W_in)), mask=(r < N)[:, None])


@triton.jit
def update_unembedding(stacked, buffers, counts, C: tl.constexpr):
    """Update ENTRIES of W_U and b_U of one model from the products of halves of all cuts of the contexts."""
    m, size = tl.program_id(0).to(tl.int64), counts.K * counts.WIDE
    entry = tl.program_id(1) * C.ENTRIES + tl.arange(0, C.ENTRIES)
    inside, cell = entry < counts.output, entry // counts.vocab * counts.WIDE + entry % counts.vocab
    gradient = tl.zeros((C.ENTRIES,), tl.float32)
    for piece in range(counts.cuts):
        own = (m * counts.cuts + piece) * size
        gradient += _added(buffers.DW, buffers.DW + size, buffers.DW_low + own + cell, 2 * own + cell, inside, C)
    gradient /= counts.of_G * scale_of_units(buffers, m)
    trained = weights_of(stacked, counts.M, m, m * counts.P + counts.at_U)
    adam(trained, entry, inside, gradient, C)


@triton.jit
def update_from_parts(
    stacked, parts, counts, begin, columns, tiles, C: tl.constexpr, SOME: tl.constexpr, TILES: tl.constexpr
):
    """Update SOME of the ``columns`` weights from ``begin`` on with the sum of the parts of all tiles of contexts."""
    m = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * SOME + tl.arange(0, SOME)
    gradient = tl.zeros((TILES, SOME), tl.float32)
    for start in range(0, tiles, TILES):
        t = start + tl.arange(0, TILES)
        inside = (t < tiles)[:, None] & (c < columns)[None, :]
        gradient += tl.load(parts + (m * tiles + t)[:, None] * columns + c[None, :], mask=inside, other=0.0)
    trained = weights_of(stacked, counts.M, m, m * counts.P + begin)
    adam(trained, c, c < columns, tl.sum(gradient, 0), C)


@triton.jit
def average_losses(stacked, buffers, counts, C: tl.constexpr):
    """Write the mean loss of one model, and reset its peaks for the next step."""
    m = tl.program_id(0).to(tl.int64)
    loss = tl.zeros((C.ENTRIES,), tl.float32)
    for start in range(0, counts.counted, C.ENTRIES):
        k = start + tl.arange(0, C.ENTRIES)
        loss += tl.load(buffers.losses + m * counts.counted + k, mask=k < counts.counted, other=0.0)
    tl.store(buffers.mean_losses + tl.load(stacked.at) * counts.M + m, tl.sum(loss, 0) / counts.N)
    tl.store(buffers.peaks_H + m, 0)
    tl.store(buffers.peaks_W + m, 0)


@triton.jit
def _stream(W_E, buffers, counts, b, C: tl.constexpr):
    """Return all vectors [T, S, D] of contexts b, the last ones [T, D], and their positions."""
    s, i, N, n = tl.arange(0, C.S), tl.arange(0, C.D), counts.N, counts.n
    inside = (b < N)[:, None] & (s < n)[None, :]
    token = tl.load(buffers.ids + cells_of(b, s, n), mask=inside, other=0)
    stream = tl.load(W_E + token[:, :, None] * C.D + i[None, None, :], mask=inside[:, :, None], other=0.0)
    stream += tl.load(buffers.positions + cells_of(s, i, C.D), mask=(s < n)[:, None], other=0.0)[None, :, :]
    last = tl.load(buffers.lengths + b, mask=b < N, other=1) - 1
    is_last = (s[None, :] == last[:, None])[:, :, None]
    return stream, tl.sum(tl.where(is_last, stream, 0.0), 1), last


@triton.jit
def _average(own, stream, at_last, last, C: tl.constexpr):
    """Return queries [T, D], directions, shares [T, S] and averages."""
    s, i = tl.arange(0, C.S), tl.arange(0, C.D)
    square = cells_of(i, i, C.D)
    query = (product(at_last, tl.load(own + square)) + tl.load(own + C.D * C.D + i)[None, :]) * C.D**-0.5
    direction = product(query, tl.trans(tl.load(own + C.D * C.D + C.D + square)))
    scores = tl.sum(stream * direction[:, None, :], 2)
    shares = softmax(scores, s[None, :] <= last[:, None])
    return query, direction, shares, tl.sum(shares[:, :, None] * stream, 1)


@triton.jit
def average_contexts(stacked, buffers, counts, C: tl.constexpr):
    """Write z of T contexts."""
    m = tl.program_id(0).to(tl.int64)
    b, i = tl.program_id(1) * C.T + tl.arange(0, C.T), tl.arange(0, C.D)
    square, own, B = cells_of(i, i, C.D), stacked.W + m * counts.P + counts.at_A, C.D * C.D + C.D
    stream, at_last, last = _stream(stacked.W + m * counts.P, buffers, counts, b, C)
    _, _, _, average = _average(own, stream, at_last, last, C)
    value = product(average, tl.load(own + 2 * B + square)) + tl.load(own + 2 * B + C.D * C.D + i)[None, :]
    out = product(value, tl.load(own + 3 * B + square)) + tl.load(own + 3 * B + C.D * C.D + i)[None, :]
    tl.store(buffers.z + (m * counts.N + b)[:, None] * C.D + i[None, :], out, mask=(b < counts.N)[:, None])


@triton.jit
def _write_part(part, of_W, of_rows, square, i, C: tl.constexpr):
    """Write the gradients of a matrix and of its bias, which is a sum over rows."""
    tl.store(part + square, of_W)
    tl.store(part + C.D * C.D + i, tl.sum(of_rows, 0))


@triton.jit
def average_contexts_back(stacked, buffers, counts, C: tl.constexpr):
    """Write what T contexts add to the gradients of the attention tensors, and the gradients of their vectors."""
    m, tile, N, n = tl.program_id(0).to(tl.int64), tl.program_id(1), counts.N, counts.n
    b, s, i = tile * C.T + tl.arange(0, C.T), tl.arange(0, C.S), tl.arange(0, C.D)
    square, own, B = cells_of(i, i, C.D), stacked.W + m * counts.P + counts.at_A, C.D * C.D + C.D
    part = buffers.attention_parts + (m * tl.num_programs(1) + tile) * 4 * B
    stream, at_last, last = _stream(stacked.W + m * counts.P, buffers, counts, b, C)
    query, direction, shares, average = _average(own, stream, at_last, last, C)
    W_V, W_O = tl.load(own + 2 * B + square), tl.load(own + 3 * B + square)
    value = product(average, W_V) + tl.load(own + 2 * B + C.D * C.D + i)[None, :]
    of_z = tl.zeros((C.T, C.D), tl.float32)
    for start in range(0, counts.groups, C.S):
        group = start + s
        passed = buffers.DZ + ((m * counts.groups + group)[:, None, None] * N + b[None, :, None]) * C.D
        inside = (group < counts.groups)[:, None, None] & (b < N)[None, :, None]
        of_z += tl.sum(tl.load(passed + i[None, None, :], mask=inside, other=0.0), 0)
    _write_part(part + 3 * B, product(tl.trans(value), of_z), of_z, square, i, C)
    of_value = product(of_z, tl.trans(W_O))
    _write_part(part + 2 * B, product(tl.trans(average), of_value), of_value, square, i, C)
    of_average = product(of_value, tl.trans(W_V))
    of_shares = tl.sum(stream * of_average[:, None, :], 2)
    of_scores = shares * (of_shares - tl.sum(shares * of_shares, 1)[:, None])
    of_direction = tl.sum(of_scores[:, :, None] * stream, 1)
    _write_part(part + B, product(tl.trans(of_direction), query), 0.0 * query, square, i, C)
    of_query = product(of_direction, tl.load(own + B + square)) * C.D**-0.5
    _write_part(part, product(tl.trans(at_last), of_query), of_query, square, i, C)
    of_last = product(of_query, tl.trans(tl.load(own + square)))
    of_stream = shares[:, :, None] * of_average[:, None, :] + of_scores[:, :, None] * direction[:, None, :]
    of_stream += tl.where((s[None, :] == last[:, None])[:, :, None], of_last[:, None, :], 0.0)
    places = (m * N + b)[:, None, None] * n + s[None, :, None]
    there = (b < N)[:, None] & (s < n)[None, :]
    tl.store(buffers.DX + places * C.D + i[None, None, :], of_stream, mask=there[:, :, None])


@triton.jit
def sum_pieces(stacked, buffers, counts, C: tl.constexpr):
    """Sum the gradients of one piece of the places of one token, for one model."""
    piece, m = tl.program_id(0), tl.program_id(1).to(tl.int64)
    i, k = tl.arange(0, C.D), tl.load(buffers.piece_starts + piece) + tl.arange(0, C.PIECE)
    inside = k < tl.load(buffers.piece_starts + piece + 1)
    place = tl.load(buffers.token_places + k, mask=inside, other=0)
    passed = buffers.DX + (m * counts.N * counts.n + place)[:, None] * C.D + i[None, :]
    total = tl.sum(tl.load(passed, mask=inside[:, None], other=0.0), 0)
    tl.store(buffers.of_pieces + (m * counts.pieces + piece) * C.D + i, total)


@triton.jit
def update_tokens(stacked, buffers, counts, C: tl.constexpr):
    """Update the embeddings of T tokens of one model from the sums of their pieces."""
    m, vocab = tl.program_id(0).to(tl.int64), counts.vocab
    token, i = tl.program_id(1) * C.T + tl.arange(0, C.T), tl.arange(0, C.D)
    start = tl.load(buffers.token_pieces + token, mask=token < vocab, other=0)
    stop = tl.load(buffers.token_pieces + token + 1, mask=token < vocab, other=0)
    gradient = tl.zeros((C.T, C.D), tl.float32)
    for k in range(tl.max(stop - start, 0)):
        piece = buffers.of_pieces + (m * counts.pieces + start + k)[:, None] * C.D + i[None, :]
        gradient += tl.load(piece, mask=(start + k < stop)[:, None], other=0.0)
    inside = (token < vocab)[:, None] & (i < C.D)[None, :]
    adam(weights_of(stacked, counts.M, m, m * counts.P), cells_of(token, i, C.D), inside, gradient, C)

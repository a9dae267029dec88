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
the
other: W_Q, b_Q, W_K, b_K, W_V, b_V, W_O, b_O, with B = D² + D numbers for each pair. b_K adds the same number to all
scores, so it is not read and its gradient is 0. Gradients of embeddings are summed in a fixed order, token by token.
"""

import triton
import triton.language as tl

from byheart.lab.fused.tiles import Trained, adam, product, softmax


@triton.jit
def _update(W, first, second, sizes, roots, at, M, m, cells, inside, gradient, BETAS: tl.constexpr):
    """Take Adam's step ``at`` for the weights at ``cells`` of model ``m`` out of M."""
    step = tl.load(at)
    trained = Trained(W, first, second, tl.load(sizes + step * M + m), tl.load(roots + step))
    adam(trained, cells, inside, gradient, BETAS)


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
def scale_of_units(peaks_H, m):
    """Return the scale of a model's units, one of which is always 1."""
    return scale_for(peaks_H, m, 0)


@triton.jit
def scale_of_weights(peaks_W, m):
    """Return the scale of a model's weights; weights below 2⁻⁴⁰ count as zeros."""
    return scale_for(peaks_W, m, -40)


@triton.jit(do_not_specialize=["P", "at_U", "output", "vocab"])
def weights(W, halves_W, peaks_W, P, at_U, output, vocab, WIDE, K, ENTRIES: tl.constexpr, PEEK: tl.constexpr):
    """Write W_U and b_U of a model as halves [3 K, WIDE]: first, first, second. With PEEK, record their peak."""
    m = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * ENTRIES + tl.arange(0, ENTRIES)
    inside = at < output
    w = tl.load(W + m * P + at_U + at, mask=inside, other=0.0)
    if PEEK:
        peek(peaks_W, m, w)
    else:
        high, low = cut(w * scale_of_weights(peaks_W, m))
        own = halves_W + m * 3 * K * WIDE + at // vocab * WIDE + at % vocab
        tl.store(own, high, mask=inside)
        tl.store(own + K * WIDE, high, mask=inside)
        tl.store(own + 2 * K * WIDE, low, mask=inside)


@triton.jit
def _inputs(W, z, m, r, u, P, at_in, N, units, by_z, D: tl.constexpr):
    """Return z [ROWS, D] of rows r, W_in [D, UNITS] of units u, and the input of the GELU, [ROWS, UNITS]."""
    i = tl.arange(0, D)
    rows = tl.load(z + m * by_z + r[:, None] * D + i[None, :], mask=(r < N)[:, None], other=0.0)
    own = W + m * P + at_in
    W_in = tl.load(own + i[:, None] * units + u[None, :], mask=(u < units)[None, :], other=0.0)
    b_in = tl.load(own + D * units + u, mask=u < units, other=0.0)
    return rows, W_in, product(rows, W_in) + b_in[None, :]


@triton.jit
def _below(x):
    """Return Φ(x)."""
    return 0.5 * (1.0 + tl.math.erf(x * 0.7071067811865476))  # 1/√2


@triton.jit
def _slope(x):
    """Return GELU'(x)."""
    return _below(x) + x * tl.exp(-0.5 * x * x) * 0.3989422804014327  # 1/√(2π)


@triton.jit(do_not_specialize=["P", "at_in", "N", "ROOM", "by_z"])
def activated(
    W, z, halves_H, peaks_H, P, at_in, N, ROOM, units, by_z, K,
    D: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, PEEK: tl.constexpr,
):  # fmt: skip
    """Write GELU(z W_in + b_in) as halves (first, second, first) for ROWS contexts and UNITS units of one model.

    With PEEK, record the largest instead.
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
    """Write a gradient as halves. The second is multiplied by FINER, because it has products of its own."""
    first = gradient.to(tl.float16)
    tl.store(high + at, first, mask=inside)
    tl.store(low + at, ((gradient - first.to(tl.float32)) * FINER).to(tl.float16), mask=inside)


@triton.jit(do_not_specialize=["N", "ROOM", "vocab"])
def chances(
    logits, high, low, often, normers, peaks_H, peaks_W, N, ROOM, vocab, WIDE, of_G,
    COLUMNS: tl.constexpr, FINER: tl.constexpr,
):  # fmt: skip
    """Write o p as halves, and log Σ exp logits, for one context of one model."""
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
    """Write the losses −c log p of ENTRIES counts c that are not zero, and replace o p by o p − c."""
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
    """Add up three products of halves."""
    small = tl.load(second + at, mask=inside, other=0.0) + tl.load(finer, mask=inside, other=0.0) * (1.0 / FINER)
    return tl.load(first + at, mask=inside, other=0.0) + small


@triton.jit(do_not_specialize=["P", "at_in", "N", "ROOM", "by_z", "tiles", "groups"])
def units_back(
    W, z, DH, DH_low, DZ, parts, peaks_W, P, at_in, N, ROOM, units, by_z, K, of_G, tiles, groups,
    D: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, FINER: tl.constexpr, TRAINED: tl.constexpr,
):  # fmt: skip
    """Write what ROWS contexts and UNITS units of one model add to the gradients of W_in, b_in and z."""
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
    ENTRIES: tl.constexpr, FINER: tl.constexpr, BETAS: tl.constexpr,
):  # fmt: skip
    """Update ENTRIES of W_U and b_U of one model from the products of halves of all cuts of the contexts."""
    m = tl.program_id(0).to(tl.int64)
    entry = tl.program_id(1) * ENTRIES + tl.arange(0, ENTRIES)
    inside, cell = entry < output, entry // vocab * WIDE + entry % vocab
    gradient = tl.zeros((ENTRIES,), tl.float32)
    for piece in range(cuts):
        own = (m * cuts + piece) * K * WIDE
        gradient += _added(DW, DW + K * WIDE, DW_low + own + cell, 2 * own + cell, inside, FINER)
    gradient /= of_G * scale_of_units(peaks_H, m)
    _update(W, first, second, sizes, roots, at, M, m, m * P + at_U + entry, inside, gradient, BETAS)


@triton.jit(do_not_specialize=["P", "M", "begin", "tiles", "columns"])
def sums(
    W, first, second, sizes, roots, at, parts, P, M, begin, tiles, columns,
    SOME: tl.constexpr, TILES: tl.constexpr, BETAS: tl.constexpr,
):  # fmt: skip
    """Update SOME of the weights from ``begin`` on with the sum of the parts of all tiles of contexts."""
    m = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * SOME + tl.arange(0, SOME)
    gradient = tl.zeros((TILES, SOME), tl.float32)
    for start in range(0, tiles, TILES):
        t = start + tl.arange(0, TILES)
        inside = (t < tiles)[:, None] & (c < columns)[None, :]
        gradient += tl.load(parts + (m * tiles + t)[:, None] * columns + c[None, :], mask=inside, other=0.0)
    _update(W, first, second, sizes, roots, at, M, m, m * P + begin + c, c < columns, tl.sum(gradient, 0), BETAS)


@triton.jit(do_not_specialize=["N", "M", "found"])
def means(losses, at, mean_losses, peaks_H, peaks_W, N, M, found, ENTRIES: tl.constexpr):
    """Write the mean loss of one model, and reset its peaks for the next step."""
    m = tl.program_id(0).to(tl.int64)
    loss = tl.zeros((ENTRIES,), tl.float32)
    for start in range(0, found, ENTRIES):
        k = start + tl.arange(0, ENTRIES)
        loss += tl.load(losses + m * found + k, mask=k < found, other=0.0)
    tl.store(mean_losses + tl.load(at) * M + m, tl.sum(loss, 0) / N)
    tl.store(peaks_H + m, 0)
    tl.store(peaks_W + m, 0)


@triton.jit
def _stream(W_E, positions, ids, lengths, b, N, n, D: tl.constexpr, S: tl.constexpr):
    """Return all vectors [T, S, D] of contexts b, the last ones [T, D], and their positions."""
    s, i = tl.arange(0, S), tl.arange(0, D)
    inside = (b < N)[:, None] & (s < n)[None, :]
    token = tl.load(ids + b[:, None] * n + s[None, :], mask=inside, other=0)
    stream = tl.load(W_E + token[:, :, None] * D + i[None, None, :], mask=inside[:, :, None], other=0.0)
    stream += tl.load(positions + s[:, None] * D + i[None, :], mask=(s < n)[:, None], other=0.0)[None, :, :]
    last = tl.load(lengths + b, mask=b < N, other=1) - 1
    is_last = (s[None, :] == last[:, None])[:, :, None]
    return stream, tl.sum(tl.where(is_last, stream, 0.0), 1), last


@triton.jit
def _average(own, stream, at_last, last, D: tl.constexpr, S: tl.constexpr):
    """Return queries [T, D], directions, shares [T, S] and averages."""
    s, i = tl.arange(0, S), tl.arange(0, D)
    square = i[:, None] * D + i[None, :]
    query = (product(at_last, tl.load(own + square)) + tl.load(own + D * D + i)[None, :]) * D**-0.5
    direction = product(query, tl.trans(tl.load(own + D * D + D + square)))
    scores = tl.sum(stream * direction[:, None, :], 2)
    shares = softmax(scores, s[None, :] <= last[:, None])
    return query, direction, shares, tl.sum(shares[:, :, None] * stream, 1)


@triton.jit(do_not_specialize=["P", "at_A", "N", "n"])
def attended(
    W, positions, ids, lengths, z, P, at_A, N, n,
    D: tl.constexpr, S: tl.constexpr, T: tl.constexpr,
):  # fmt: skip
    """Write z of T contexts."""
    m = tl.program_id(0).to(tl.int64)
    b, i = tl.program_id(1) * T + tl.arange(0, T), tl.arange(0, D)
    square, own, B = i[:, None] * D + i[None, :], W + m * P + at_A, D * D + D
    stream, at_last, last = _stream(W + m * P, positions, ids, lengths, b, N, n, D, S)
    _, _, _, average = _average(own, stream, at_last, last, D, S)
    value = product(average, tl.load(own + 2 * B + square)) + tl.load(own + 2 * B + D * D + i)[None, :]
    out = product(value, tl.load(own + 3 * B + square)) + tl.load(own + 3 * B + D * D + i)[None, :]
    tl.store(z + (m * N + b)[:, None] * D + i[None, :], out, mask=(b < N)[:, None])


@triton.jit
def _write_part(part, of_W, of_rows, square, i, D: tl.constexpr):
    """Write the gradients of a matrix and of its bias, which is a sum over rows."""
    tl.store(part + square, of_W)
    tl.store(part + D * D + i, tl.sum(of_rows, 0))


@triton.jit(do_not_specialize=["P", "at_A", "N", "n", "tiles", "groups"])
def attended_back(
    W, positions, ids, lengths, DZ, DX, parts, P, at_A, N, n, tiles, groups,
    D: tl.constexpr, S: tl.constexpr, T: tl.constexpr,
):  # fmt: skip
    """Write what T contexts add to the gradients of the attention tensors, and the gradients of their vectors."""
    m, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    b, s, i = tile * T + tl.arange(0, T), tl.arange(0, S), tl.arange(0, D)
    square, own, B = i[:, None] * D + i[None, :], W + m * P + at_A, D * D + D
    part = parts + (m * tiles + tile) * 4 * B
    stream, at_last, last = _stream(W + m * P, positions, ids, lengths, b, N, n, D, S)
    query, direction, shares, average = _average(own, stream, at_last, last, D, S)
    W_V, W_O = tl.load(own + 2 * B + square), tl.load(own + 3 * B + square)
    value = product(average, W_V) + tl.load(own + 2 * B + D * D + i)[None, :]
    of_z = tl.zeros((T, D), tl.float32)
    for start in range(0, groups, S):
        group = start + s
        passed = DZ + ((m * groups + group)[:, None, None] * N + b[None, :, None]) * D + i[None, None, :]
        inside = (group < groups)[:, None, None] & (b < N)[None, :, None]
        of_z += tl.sum(tl.load(passed, mask=inside, other=0.0), 0)
    _write_part(part + 3 * B, product(tl.trans(value), of_z), of_z, square, i, D)
    of_value = product(of_z, tl.trans(W_O))
    _write_part(part + 2 * B, product(tl.trans(average), of_value), of_value, square, i, D)
    of_average = product(of_value, tl.trans(W_V))
    of_shares = tl.sum(stream * of_average[:, None, :], 2)
    of_scores = shares * (of_shares - tl.sum(shares * of_shares, 1)[:, None])
    of_direction = tl.sum(of_scores[:, :, None] * stream, 1)
    _write_part(part + B, product(tl.trans(of_direction), query), 0.0 * query, square, i, D)
    of_query = product(of_direction, tl.load(own + B + square)) * D**-0.5
    _write_part(part, product(tl.trans(at_last), of_query), of_query, square, i, D)
    of_last = product(of_query, tl.trans(tl.load(own + square)))
    of_stream = shares[:, :, None] * of_average[:, None, :] + of_scores[:, :, None] * direction[:, None, :]
    of_stream += tl.where((s[None, :] == last[:, None])[:, :, None], of_last[:, None, :], 0.0)
    places = (m * N + b)[:, None, None] * n + s[None, :, None]
    there = (b < N)[:, None] & (s < n)[None, :]
    tl.store(DX + places * D + i[None, None, :], of_stream, mask=there[:, :, None])


@triton.jit(do_not_specialize=["N", "n", "pieces"])
def token_sums(DX, token_places, piece_starts, of_pieces, N, n, pieces, D: tl.constexpr, PIECE: tl.constexpr):
    """Sum the gradients of one piece of the places of one token, for one model."""
    piece, m = tl.program_id(0), tl.program_id(1).to(tl.int64)
    i, k = tl.arange(0, D), tl.load(piece_starts + piece) + tl.arange(0, PIECE)
    inside = k < tl.load(piece_starts + piece + 1)
    place = tl.load(token_places + k, mask=inside, other=0)
    passed = tl.load(DX + (m * N * n + place)[:, None] * D + i[None, :], mask=inside[:, None], other=0.0)
    tl.store(of_pieces + (m * pieces + piece) * D + i, tl.sum(passed, 0))


@triton.jit(do_not_specialize=["P", "M", "pieces", "vocab"])
def embedding_back(
    W, first, second, sizes, roots, at, of_pieces, token_pieces, P, M, pieces, vocab,
    D: tl.constexpr, SOME: tl.constexpr, BETAS: tl.constexpr,
):  # fmt: skip
    """Update the embeddings of SOME tokens of one model from the sums of their pieces."""
    m = tl.program_id(0).to(tl.int64)
    token, i = tl.program_id(1) * SOME + tl.arange(0, SOME), tl.arange(0, D)
    start = tl.load(token_pieces + token, mask=token < vocab, other=0)
    stop = tl.load(token_pieces + token + 1, mask=token < vocab, other=0)
    gradient = tl.zeros((SOME, D), tl.float32)
    for k in range(tl.max(stop - start, 0)):
        piece = of_pieces + (m * pieces + start + k)[:, None] * D + i[None, :]
        gradient += tl.load(piece, mask=(start + k < stop)[:, None], other=0.0)
    cells, inside = m * P + token[:, None] * D + i[None, :], (token < vocab)[:, None] & (i < D)[None, :]
    _update(W, first, second, sizes, roots, at, M, m, cells, inside, gradient, BETAS)

"""A training step of Madden's decoder from embeddings to what attention gives, and back; letters as in its model.

Of a context with places x_s, the last of them x_L,

    q = (x_L W_Q + b_Q)/√D,   direction = q W_Kᵀ,   share = softmax_s(x_s·direction),   average = Σ_s share_s x_s,
    value = average W_V + b_V,   z = value W_O + b_O,

and back, where ∂χ is the gradient of χ, beside ∂(a W) → ∂W = aᵀ ∂(a W) for W_Q, W_V, W_O, and ∂W_K = ∂directionᵀ q,

    ∂value = ∂z W_Oᵀ,   ∂average = ∂value W_Vᵀ,   ∂share_s = x_s·∂average,
    ∂score_s = share_s (∂share_s − Σ_t share_t ∂share_t),   ∂direction = Σ_s ∂score_s x_s,
    ∂q = ∂direction W_K,   ∂x_s = share_s ∂average + ∂score_s direction,

and ∂x_L has ∂q W_Qᵀ/√D too. A program has T contexts of one model, [T, S, D] numbers, S ≥ n places. The attention's
tensors lie behind one another, W_Q, b_Q, W_K, b_K, W_V, b_V, W_O, b_O: B = D² + D numbers for each pair. b_K adds the
same to all scores: it is not read, and its gradient is 0. Gradients of embeddings are summed in a fixed order, token by
token, in pieces of places.
"""

import triton
import triton.language as tl

from byheart.lab.fused.adam import adam, factors_of
from byheart.lab.fused.parts import product, softmax


@triton.jit
def _stream(W_E, positions, ids, lengths, b, N, n, D: tl.constexpr, S: tl.constexpr):
    """Of contexts b: all places [T, S, D], the last [T, D], and which that is."""
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
    """Query [T, D], the direction that it looks for, the shares [T, S] and what they average."""
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
    """z of T contexts."""
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
    """The gradients of a matrix and of its bias, which is a sum over rows."""
    tl.store(part + square, of_W)
    tl.store(part + D * D + i, tl.sum(of_rows, 0))


@triton.jit(do_not_specialize=["P", "at_A", "N", "n", "tiles", "groups"])
def attended_back(
    W, positions, ids, lengths, DZ, DX, parts, P, at_A, N, n, tiles, groups,
    D: tl.constexpr, S: tl.constexpr, T: tl.constexpr,
):  # fmt: skip
    """What T contexts pass on: to the attention's tensors a part, and to each of their places."""
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
    """A program has one piece of the places of one token, for one model: the sum of what they are passed."""
    piece, m = tl.program_id(0), tl.program_id(1).to(tl.int64)
    i, k = tl.arange(0, D), tl.load(piece_starts + piece) + tl.arange(0, PIECE)
    inside = k < tl.load(piece_starts + piece + 1)
    place = tl.load(token_places + k, mask=inside, other=0)
    passed = tl.load(DX + (m * N * n + place)[:, None] * D + i[None, :], mask=inside[:, None], other=0.0)
    tl.store(of_pieces + (m * pieces + piece) * D + i, tl.sum(passed, 0))


@triton.jit(do_not_specialize=["P", "M", "pieces", "vocab"])
def embedding_back(
    W, first, second, sizes, roots, at, of_pieces, token_pieces, P, M, pieces, vocab,
    D: tl.constexpr, SOME: tl.constexpr, beta1: tl.constexpr, beta2: tl.constexpr,
):  # fmt: skip
    """A program has the embeddings of SOME tokens of one model: Adam, from the sums of their pieces."""
    m = tl.program_id(0).to(tl.int64)
    token, i = tl.program_id(1) * SOME + tl.arange(0, SOME), tl.arange(0, D)
    start = tl.load(token_pieces + token, mask=token < vocab, other=0)
    stop = tl.load(token_pieces + token + 1, mask=token < vocab, other=0)
    gradient = tl.zeros((SOME, D), tl.float32)
    for k in range(tl.max(stop - start, 0)):
        piece = of_pieces + (m * pieces + start + k)[:, None] * D + i[None, :]
        gradient += tl.load(piece, mask=(start + k < stop)[:, None], other=0.0)
    size, root = factors_of(sizes, roots, at, M, m)
    cells, inside = m * P + token[:, None] * D + i[None, :], (token < vocab)[:, None] & (i < D)[None, :]
    adam(W, first, second, cells, inside, gradient, size, root, beta1, beta2)

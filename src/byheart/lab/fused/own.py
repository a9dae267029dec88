"""A training step of models whose examples have contexts of their own; letters as in ``lab/models/mahdavi.py``.

Of one head, with G = W_Q W_Kᵀ, asked a = q/√d and tokens e_s:

    T = G W_Eᵀ,   R = G pᵀ,   VD = W_E W_V,   VS = (p + b_E) W_V,
    Q = a T,   Z = a R,   shares = softmax_s(Q·e_s + Z_s),   values = e_s·VD + VS_s,   A = Σ_s share_s value_s,

and of the whole model U = W_O W_U, logits = A U + b_U. The way back from ∂A, where ∂χ is the gradient of χ: since
∂share_s = ∂A value_s and the shares are a softmax,

    ∂score_s = ∂A share_s (value_s − A),   ∂value_s = ∂A share_s,
    ∂Q = Σ_s ∂score_s e_s,   ∂Z_s = ∂score_s,   ∂VD = Σ ∂value_s e_s,   ∂VS_s = Σ ∂value_s,
    ∂a = Σ_heads ∂Q Tᵀ + ∂Z Rᵀ,   ∂T = aᵀ ∂Q,   ∂R = aᵀ ∂Z,   ∂G = ∂T W_E + ∂R p,
    ∂W_Q = ∂G W_K,   ∂W_K = ∂Gᵀ W_Q,   ∂W_V = W_Eᵀ ∂VD + (p + b_E)ᵀ ∂VS,
    ∂W_E = eᵀ ∂a/√d + Σ_heads (∂Tᵀ G + ∂VD W_Vᵀ),   ∂b_E = Σ ∂a/√d + Σ_heads (Σ_s ∂VS_s) W_V,

sums over examples where there is no other. The kernels, one after another: :func:`heads` multiplies each head's weights
out; :func:`directions` takes the queries through them; :func:`examples` reads each context, where it lies, and goes on
to the heads' averages; with the loss known, :func:`examples_back` reads it again and goes back to the directions, which
it writes over; :func:`directions_back`, and :func:`heads_sums` and :func:`heads_back`, go on to the queries and to the
heads' weights, and the last changes them. :mod:`~byheart.lab.fused.ends` does the rest.
"""

import triton
import triton.language as tl

from byheart.lab.fused.adam import adam, factors_of
from byheart.lab.fused.layout import cells_of_head
from byheart.lab.fused.parts import asking, places_of, product, queries_of, softmax, write_output


@triton.jit(do_not_specialize=["P", "H", "n", "C"])
def heads(
    W, positions, T, R, VD, VS, U, P, H, n, C,
    N: tl.constexpr, DIM: tl.constexpr, HEAD: tl.constexpr, K: tl.constexpr, UNIT: tl.constexpr,
    HEADS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A program has one head of one model: T [DIM, DIM], R [DIM, N], values' direction and shift; the first also U."""
    which = tl.program_id(0).to(tl.int64)
    m, h = which // H, which % H
    s, i = tl.arange(0, N), tl.arange(0, DIM)
    own = W + m * P * UNIT
    square = i[:, None] * DIM + i[None, :]
    W_E = tl.load(own + square)
    b_E = tl.load(own + DIM * DIM + i)
    q_at, k_at, v_at, inside = cells_of_head(H, h, DIM, HEAD, K)
    W_Q = tl.load(own + q_at, mask=inside, other=0.0)
    W_K = tl.load(own + k_at, mask=inside, other=0.0)
    G = product(W_Q, tl.trans(W_K))
    p = tl.load(positions + DIM + s[:, None] * DIM + i[None, :], mask=(s < n)[:, None], other=0.0)
    tl.store(T + which * DIM * DIM + square, product(G, tl.trans(W_E)))
    tl.store(R + which * DIM * N + i[:, None] * N + s[None, :], product(G, tl.trans(p)))
    W_V = tl.load(own + v_at)
    tl.store(VD + which * DIM + i, tl.sum(W_E * W_V[None, :], 1))
    tl.store(VS + which * N + s, tl.sum((p + b_E[None, :]) * W_V[None, :], 1))
    if h == 0:
        write_output(own, U, m, H, C, DIM, HEAD, HEADS, COLUMNS)


@triton.jit(do_not_specialize=["P", "M", "B", "H"])
def directions(
    W, queries, places, at, positions, T, R, asked, Q, Z, P, M, B, H,
    N: tl.constexpr, DIM: tl.constexpr, UNIT: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """A program has ROWS examples of one model: directions Q [H, DIM] and offsets Z [H, N] of each."""
    m, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    r, s, i = tile * ROWS + tl.arange(0, ROWS), tl.arange(0, N), tl.arange(0, DIM)
    square = i[:, None] * DIM + i[None, :]
    a = asking(W + m * P * UNIT, positions, queries_of(queries, places, at, M, B, m, r, DIM), DIM)
    tl.store(asked + (m * B + r)[:, None] * DIM + i[None, :], a, mask=(r < B)[:, None])
    for h in range(H):
        of_head = m * H + h
        row = (m * B + r) * H + h
        towards = tl.load(T + of_head * DIM * DIM + square)
        tl.store(Q + row[:, None] * DIM + i[None, :], product(a, towards), mask=(r < B)[:, None])
        offsets = tl.load(R + of_head * DIM * N + i[:, None] * N + s[None, :])
        tl.store(Z + row[:, None] * N + s[None, :], product(a, offsets), mask=(r < B)[:, None])


@triton.jit
def _attended(
    contexts, own_places, Q, Z, VD, VS, m, b, B, H, n, N: tl.constexpr, DIM: tl.constexpr, HEADS: tl.constexpr
):
    """Of example b of model m: its context [N, DIM], and for all heads shares and values [HEADS, N]."""
    s, i, hs = tl.arange(0, N), tl.arange(0, DIM), tl.arange(0, HEADS)
    of_h = (hs < H)[:, None]
    place = tl.load(own_places + b)
    e = tl.load(contexts + place * n * DIM + s[:, None] * DIM + i[None, :], mask=(s < n)[:, None], other=0.0)
    row = (m * B + b) * H + hs
    direction = tl.load(Q + row[:, None] * DIM + i[None, :], mask=of_h, other=0.0)
    offset = tl.load(Z + row[:, None] * N + s[None, :], mask=of_h, other=0.0)
    shares = softmax(product(direction, tl.trans(e)) + offset, (s < n)[None, :])
    value = tl.load(VD + (m * H + hs)[:, None] * DIM + i[None, :], mask=of_h, other=0.0)
    shift = tl.load(VS + (m * H + hs)[:, None] * N + s[None, :], mask=of_h, other=0.0)
    return e, shares, product(value, tl.trans(e)) + shift


@triton.jit(do_not_specialize=["M", "B", "H", "n"])
def examples(
    contexts, places, at, Q, Z, VD, VS, A, M, B, H, n,
    N: tl.constexpr, DIM: tl.constexpr, HEADS: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """A program has GROUP examples of one model, one after the other: the averages A of all heads."""
    m, group = tl.program_id(0).to(tl.int64), tl.program_id(1)
    hs, own_places = tl.arange(0, HEADS), places_of(places, at, M, B, m)
    for b in range(group * GROUP, tl.minimum(group * GROUP + GROUP, B)):
        _, shares, values = _attended(contexts, own_places, Q, Z, VD, VS, m, b, B, H, n, N, DIM, HEADS)
        tl.store(A + (m * B + b) * HEADS + hs, tl.sum(shares * values, 1))


@triton.jit(do_not_specialize=["M", "B", "H", "n"])
def examples_back(
    contexts, places, at, Q, Z, VD, VS, A, DA, DVD, DVS, M, B, H, n,
    N: tl.constexpr, DIM: tl.constexpr, HEADS: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """As :func:`examples`, back to directions and offsets, over which it writes; what it passes to values is a part."""
    m, group = tl.program_id(0).to(tl.int64), tl.program_id(1)
    s, i, hs = tl.arange(0, N), tl.arange(0, DIM), tl.arange(0, HEADS)
    of_h, own_places = (hs < H)[:, None], places_of(places, at, M, B, m)
    of_value = tl.zeros((HEADS, DIM), tl.float32)
    of_shift = tl.zeros((HEADS, N), tl.float32)
    for b in range(group * GROUP, tl.minimum(group * GROUP + GROUP, B)):
        e, shares, values = _attended(contexts, own_places, Q, Z, VD, VS, m, b, B, H, n, N, DIM, HEADS)
        passed = tl.load(DA + (m * B + b) * HEADS + hs)[:, None] * shares
        of_scores = passed * (values - tl.load(A + (m * B + b) * HEADS + hs)[:, None])
        row = (m * B + b) * H + hs
        tl.store(Z + row[:, None] * N + s[None, :], of_scores, mask=of_h)
        tl.store(Q + row[:, None] * DIM + i[None, :], product(of_scores, e), mask=of_h)
        of_value += product(passed, e)
        of_shift += passed
    part = (m * tl.num_programs(1) + group) * H + hs
    tl.store(DVD + part[:, None] * DIM + i[None, :], of_value, mask=of_h)
    tl.store(DVS + part[:, None] * N + s[None, :], of_shift, mask=of_h)


@triton.jit(do_not_specialize=["M", "B", "H", "part_count"])
def directions_back(
    queries, places, at, T, R, Q, Z, DE, DB, M, B, H, part_count,
    N: tl.constexpr, DIM: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """A program has ROWS examples of one model, and passes from their directions to W_E and b_E, as a part."""
    m, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    r, s, i = tile * ROWS + tl.arange(0, ROWS), tl.arange(0, N), tl.arange(0, DIM)
    square = i[:, None] * DIM + i[None, :]
    of_asked = tl.zeros((ROWS, DIM), tl.float32)
    for h in range(H):
        of_head = m * H + h
        row = (m * B + r) * H + h
        of_direction = tl.load(Q + row[:, None] * DIM + i[None, :], mask=(r < B)[:, None], other=0.0)
        of_asked += product(of_direction, tl.trans(tl.load(T + of_head * DIM * DIM + square)))
        of_offset = tl.load(Z + row[:, None] * N + s[None, :], mask=(r < B)[:, None], other=0.0)
        of_asked += product(of_offset, tl.trans(tl.load(R + of_head * DIM * N + i[:, None] * N + s[None, :])))
    of_asked = of_asked * (DIM**-0.5)
    q = queries_of(queries, places, at, M, B, m, r, DIM)
    part = m * part_count + tile
    tl.store(DE + part * DIM * DIM + square, product(tl.trans(q), of_asked))
    tl.store(DB + part * DIM + i, tl.sum(of_asked, 0))


@triton.jit(do_not_specialize=["B", "H"])
def heads_sums(
    asked, Q, Z, DT, DR, B, H, N: tl.constexpr, DIM: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """A program has all examples of one head of one model: what directions and offsets pass to T and R."""
    which = tl.program_id(0).to(tl.int64)
    m, h = which // H, which % H
    s, i = tl.arange(0, N), tl.arange(0, DIM)
    of_T, of_R = tl.zeros((DIM, DIM), tl.float32), tl.zeros((DIM, N), tl.float32)
    for start in range(0, B, ROWS):
        r = start + tl.arange(0, ROWS)
        row = (m * B + r) * H + h
        a = tl.trans(tl.load(asked + (m * B + r)[:, None] * DIM + i[None, :], mask=(r < B)[:, None], other=0.0))
        of_T += product(a, tl.load(Q + row[:, None] * DIM + i[None, :], mask=(r < B)[:, None], other=0.0))
        of_R += product(a, tl.load(Z + row[:, None] * N + s[None, :], mask=(r < B)[:, None], other=0.0))
    tl.store(DT + which * DIM * DIM + i[:, None] * DIM + i[None, :], of_T)
    tl.store(DR + which * DIM * N + i[:, None] * N + s[None, :], of_R)


@triton.jit(do_not_specialize=["P", "M", "H", "n", "groups", "part_count"])
def heads_back(
    W, first, second, sizes, roots, at, positions, DT, DR, DVD, DVS, DE, DB, P, M, H, n, groups, part_count,
    N: tl.constexpr, DIM: tl.constexpr, HEAD: tl.constexpr, K: tl.constexpr, UNIT: tl.constexpr,
    beta1: tl.constexpr, beta2: tl.constexpr,
):  # fmt: skip
    """A program has one head of one model: Adam for W_Q, W_K, W_V; its part of W_E and b_E."""
    which = tl.program_id(0).to(tl.int64)
    m, h = which // H, which % H
    s, i = tl.arange(0, N), tl.arange(0, DIM)
    square = i[:, None] * DIM + i[None, :]
    of_value, of_shift = tl.zeros((DIM,), tl.float32), tl.zeros((N,), tl.float32)
    for group in range(groups):
        part = (m * groups + group) * H + h
        of_value += tl.load(DVD + part * DIM + i)
        of_shift += tl.load(DVS + part * N + s)
    of_T = tl.load(DT + which * DIM * DIM + square)
    size, root = factors_of(sizes, roots, at, M, m)
    W, first, second = W + m * P * UNIT, first + m * P * UNIT, second + m * P * UNIT
    q_at, k_at, v_at, inside = cells_of_head(H, h.to(tl.int32), DIM, HEAD, K)
    part = m * part_count + part_count - H + h  # the last H are those of heads
    W_V = tl.load(W + v_at)
    G = product(tl.load(W + q_at, mask=inside, other=0.0), tl.trans(tl.load(W + k_at, mask=inside, other=0.0)))
    tl.store(DE + part * DIM * DIM + square, product(tl.trans(of_T), G) + of_value[:, None] * W_V[None, :])
    tl.store(DB + part * DIM + i, tl.sum(of_shift, 0) * W_V)
    W_E = tl.load(W + square)
    p = tl.load(positions + DIM + s[:, None] * DIM + i[None, :], mask=(s < n)[:, None], other=0.0)
    of_W_V = tl.sum(of_value[:, None] * W_E, 0)
    of_W_V += tl.sum(of_shift[:, None] * (p + tl.load(W + DIM * DIM + i)[None, :]), 0)
    of_R = tl.load(DR + which * DIM * N + i[:, None] * N + s[None, :])
    of_G = product(of_T, W_E) + product(of_R, p)
    W_Q = tl.load(W + q_at, mask=inside, other=0.0)
    of_W_K = product(tl.trans(of_G), W_Q)
    of_W_Q = product(of_G, tl.load(W + k_at, mask=inside, other=0.0))
    adam(W, first, second, q_at, inside, of_W_Q, size, root, beta1, beta2)
    adam(W, first, second, k_at, inside, of_W_K, size, root, beta1, beta2)
    adam(W, first, second, v_at, i < DIM, of_W_V, size, root, beta1, beta2)

"""A training step of models with one context for all examples, in kernels; letters as in ``lab/models/mahdavi.py``.

Of one head, with tokens x_s of the context in the stream and asked a = q/√d:

    F = W_Q (x W_K)ᵀ,   V = x W_V,   shares = softmax(a F),   A = Σ_s share_s V_s,

and of the whole model U = W_O W_U, logits = A U + b_U. The way back from ∂A, where ∂χ is the gradient of χ: since
∂share_s = ∂A V_s and the shares are a softmax,

    ∂score_s = ∂A share_s (V_s − A),   ∂a = Σ_heads ∂scores Fᵀ,   ∂F = Σ aᵀ ∂scores,   ∂V = Σ ∂A shares,
    ∂keys = ∂Fᵀ W_Q,   ∂W_Q = ∂F (x W_K),   ∂W_K = xᵀ ∂keys,   ∂W_V = xᵀ ∂V,   ∂x = Σ_heads ∂keys W_Kᵀ + ∂V W_Vᵀ,

sums over examples where there is no other. The kernels, one after another: :func:`heads` makes F and V of each head;
:func:`examples` takes a tile of examples through the heads to their averages; with the loss known,
:func:`examples_back` goes back to the queries in the stream, and :func:`heads_back` takes all examples of a head back
to its weights, and changes them. Scores are never written: they are computed anew where they are read.
:mod:`~byheart.lab.fused.ends` does the rest, from ∂a and ∂x to W_E and b_E too.
"""

import triton
import triton.language as tl

from byheart.lab.fused.adam import adam, factors_of
from byheart.lab.fused.layout import cells_of_head
from byheart.lab.fused.parts import asking, product, queries_of, softmax, write_output


@triton.jit(do_not_specialize=["P", "H", "n", "C"])
def heads(
    W, contexts, positions, F, V, X, U, P, H, n, C, by_context,
    N: tl.constexpr, DIM: tl.constexpr, HEAD: tl.constexpr, K: tl.constexpr, UNIT: tl.constexpr,
    HEADS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A program has one head of one model: F [DIM, N], values [N]; the first also writes tokens x [N, DIM], and U."""
    which = tl.program_id(0).to(tl.int64)
    m, h = which // H, which % H
    s, i = tl.arange(0, N), tl.arange(0, DIM)
    own = W + m * P * UNIT
    cells = s[:, None] * DIM + i[None, :]
    W_E = tl.load(own + i[:, None] * DIM + i[None, :])
    b_E = tl.load(own + DIM * DIM + i)
    e = tl.load(contexts + m * by_context + cells, mask=(s < n)[:, None], other=0.0)
    p = tl.load(positions + DIM + cells, mask=(s < n)[:, None], other=0.0)
    x = tl.where((s < n)[:, None], product(e, W_E) + b_E[None, :] + p, 0.0)
    q_at, k_at, v_at, inside = cells_of_head(H, h, DIM, HEAD, K)
    W_Q = tl.load(own + q_at, mask=inside, other=0.0)
    W_K = tl.load(own + k_at, mask=inside, other=0.0)
    keys = product(x, W_K)
    folded = product(W_Q, tl.trans(keys))
    tl.store(F + which * DIM * N + i[:, None] * N + s[None, :], folded)
    W_V = tl.load(own + v_at)
    tl.store(V + which * N + s, tl.sum(x * W_V[None, :], 1))
    if h == 0:
        tl.store(X + m * N * DIM + cells, x)
        write_output(own, U, m, H, C, DIM, HEAD, HEADS, COLUMNS)


@triton.jit(do_not_specialize=["P", "M", "B", "H", "n"])
def examples(
    W, queries, places, at, positions, F, V, asked, A, P, M, B, H, n,
    N: tl.constexpr, DIM: tl.constexpr, HEADS: tl.constexpr, UNIT: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """A program has ROWS examples of one model and its share of the heads: their averages A."""
    m, tile, share = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    r, s, i = tile * ROWS + tl.arange(0, ROWS), tl.arange(0, N), tl.arange(0, DIM)
    a = asking(W + m * P * UNIT, positions, queries_of(queries, places, at, M, B, m, r, DIM), DIM)
    if share == 0:
        tl.store(asked + (m * B + r)[:, None] * DIM + i[None, :], a, mask=(r < B)[:, None])
    cells = i[:, None] * N + s[None, :]
    for h in range(share, H, tl.num_programs(2)):
        of_head = m * H + h
        values = tl.load(V + of_head * N + s)
        shares = softmax(product(a, tl.load(F + of_head * DIM * N + cells)), (s < n)[None, :])
        tl.store(A + (m * HEADS + h) * B + r, tl.sum(shares * values[None, :], 1), mask=r < B)


@triton.jit(do_not_specialize=["M", "B", "H", "n"])
def examples_back(
    queries, places, at, F, V, asked, A, DA, DE, DB, M, B, H, n,
    N: tl.constexpr, DIM: tl.constexpr, HEADS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """As :func:`examples`, back to the queries in the stream; what these pass to W_E and b_E is a part."""
    m, tile, share = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    r, s, i = tile * ROWS + tl.arange(0, ROWS), tl.arange(0, N), tl.arange(0, DIM)
    a = tl.load(asked + (m * B + r)[:, None] * DIM + i[None, :], mask=(r < B)[:, None], other=0.0)
    of_asked = tl.zeros((ROWS, DIM), tl.float32)
    cells = i[:, None] * N + s[None, :]
    for h in range(share, H, tl.num_programs(2)):
        of_head = m * H + h
        folded = tl.load(F + of_head * DIM * N + cells)
        values = tl.load(V + of_head * N + s)
        column = (m * HEADS + h) * B + r
        average = tl.load(A + column, mask=r < B, other=0.0)
        passed = tl.load(DA + column, mask=r < B, other=0.0)
        shares = softmax(product(a, folded), (s < n)[None, :])
        of_scores = shares * passed[:, None] * (values[None, :] - average[:, None])
        of_asked += product(of_scores, tl.trans(folded))
    of_asked = of_asked * (DIM**-0.5)
    part = (m * tl.num_programs(1) + tile) * tl.num_programs(2) + share
    q = queries_of(queries, places, at, M, B, m, r, DIM)
    tl.store(DE + part * DIM * DIM + i[:, None] * DIM + i[None, :], product(tl.trans(q), of_asked))
    tl.store(DB + part * DIM + i, tl.sum(of_asked, 0))


@triton.jit(do_not_specialize=["P", "M", "B", "H", "n"])
def heads_back(
    W, first, second, sizes, roots, at, X, F, V, asked, A, DA, DX, P, M, B, H, n,
    N: tl.constexpr, DIM: tl.constexpr, HEAD: tl.constexpr, K: tl.constexpr, HEADS: tl.constexpr, UNIT: tl.constexpr,
    ROWS: tl.constexpr, beta1: tl.constexpr, beta2: tl.constexpr,
):  # fmt: skip
    """A program has all examples of one head of one model; Adam for its W_Q, W_K, W_V; what it passes to the tokens."""
    which = tl.program_id(0).to(tl.int64)
    m, h = which // H, which % H
    s, i = tl.arange(0, N), tl.arange(0, DIM)
    folded = tl.load(F + which * DIM * N + i[:, None] * N + s[None, :])
    values = tl.load(V + which * N + s)
    of_folded = tl.zeros((DIM, N), tl.float32)
    of_values = tl.zeros((ROWS, N), tl.float32)
    for start in range(0, B, ROWS):
        r = start + tl.arange(0, ROWS)
        a = tl.load(asked + (m * B + r)[:, None] * DIM + i[None, :], mask=(r < B)[:, None], other=0.0)
        average = tl.load(A + (m * HEADS + h) * B + r, mask=r < B, other=0.0)
        passed = tl.load(DA + (m * HEADS + h) * B + r, mask=r < B, other=0.0)
        shares = softmax(product(a, folded), (s < n)[None, :]) * passed[:, None]
        of_values += shares
        of_folded += product(tl.trans(a), shares * (values[None, :] - average[:, None]))
    of_values = tl.sum(of_values, 0)
    size, root = factors_of(sizes, roots, at, M, m)
    W, first, second = W + m * P * UNIT, first + m * P * UNIT, second + m * P * UNIT
    q_at, k_at, v_at, inside = cells_of_head(H, h.to(tl.int32), DIM, HEAD, K)
    cells = s[:, None] * DIM + i[None, :]
    x = tl.load(X + m * N * DIM + cells)
    W_Q = tl.load(W + q_at, mask=inside, other=0.0)
    of_keys = product(tl.trans(of_folded), W_Q)
    W_K = tl.load(W + k_at, mask=inside, other=0.0)
    adam(W, first, second, q_at, inside, product(of_folded, product(x, W_K)), size, root, beta1, beta2)
    W_V = tl.load(W + v_at)
    of_tokens = product(of_keys, tl.trans(W_K)) + of_values[:, None] * W_V[None, :]
    tl.store(DX + which * N * DIM + cells, of_tokens)
    adam(W, first, second, k_at, inside, product(tl.trans(x), of_keys), size, root, beta1, beta2)
    adam(W, first, second, v_at, i < DIM, tl.sum(x * of_values[:, None], 0), size, root, beta1, beta2)

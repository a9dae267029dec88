"""What both kinds of contexts share of a step: the output and its loss behind the heads, the embedding before them."""

import triton
import triton.language as tl

from byheart.lab.fused.adam import adam, factors_of
from byheart.lab.fused.layout import cells_of_bias, cells_of_output
from byheart.lab.fused.parts import judged, places_of, product


@triton.jit(do_not_specialize=["P", "M", "B", "H", "C", "by_head", "by_row"])
def outputs(
    W, answers, places, at, U, A, losses, rights, DA, DL, P, M, B, H, C, by_head, by_row,
    DIM: tl.constexpr, HEAD: tl.constexpr, HEADS: tl.constexpr, COLUMNS: tl.constexpr, UNIT: tl.constexpr,
    ROWS: tl.constexpr, LABELS: tl.constexpr, TRAIN: tl.constexpr,
):  # fmt: skip
    """A program has ROWS examples of one model: from the heads' averages A to the loss, and with TRAIN back to them.

    ``by_head`` and ``by_row`` say how far an average is from that of the next head, and of the next example.
    """
    m, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    r, hs, c = tile * ROWS + tl.arange(0, ROWS), tl.arange(0, HEADS), tl.arange(0, COLUMNS)
    inside = (r < B)[:, None]
    place = tl.load(places_of(places, at, M, B, m) + r, mask=r < B, other=0)
    cells = m * HEADS * B + hs[None, :] * by_head + r[:, None] * by_row
    averages = tl.load(A + cells, mask=inside & (hs < H)[None, :], other=0.0)
    out = tl.load(U + (m * HEADS + hs)[:, None] * COLUMNS + c[None, :])
    b_U = tl.load(W + m * P * UNIT + cells_of_bias(H, C, DIM, HEAD, COLUMNS), mask=c < C, other=0.0)
    wanted = tl.load(answers + place, mask=r < B, other=0)
    loss, right, gradient = judged(product(averages, out) + b_U[None, :], wanted, c[None, :], C, B, LABELS)
    tl.store(losses + m * B + r, loss, mask=r < B)
    tl.store(rights + m * B + r, right, mask=r < B)
    if TRAIN:
        tl.store(DL + (m * B + r)[:, None] * COLUMNS + c[None, :], gradient, mask=inside)
        tl.store(DA + cells, product(gradient, tl.trans(out)), mask=inside)


@triton.jit(do_not_specialize=["P", "M", "B", "H", "C"])
def output_back(
    W, first, second, sizes, roots, at, A, DL, losses, rights, mean_losses, mean_rights, P, M, B, H, C, by_head, by_row,
    DIM: tl.constexpr, HEAD: tl.constexpr, HEADS: tl.constexpr, COLUMNS: tl.constexpr, UNIT: tl.constexpr,
    ROWS: tl.constexpr, beta1: tl.constexpr, beta2: tl.constexpr,
):  # fmt: skip
    """A program has one model: Adam for W_O, W_U, b_U, whose product U = W_O W_U the heads' averages A meet."""
    m = tl.program_id(0).to(tl.int64)
    hs, c = tl.arange(0, HEADS), tl.arange(0, COLUMNS)
    of_U = tl.zeros((HEADS, COLUMNS), tl.float32)
    of_b = tl.zeros((COLUMNS,), tl.float32)
    loss, right = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    for start in range(0, B, ROWS):
        r = start + tl.arange(0, ROWS)
        cells = m * HEADS * B + hs[:, None] * by_head + r[None, :] * by_row
        turned = tl.load(A + cells, mask=(hs < H)[:, None] & (r < B)[None, :], other=0.0)
        gradient = tl.load(DL + (m * B + r)[:, None] * COLUMNS + c[None, :], mask=(r < B)[:, None], other=0.0)
        of_U += product(turned, gradient)
        of_b += tl.sum(gradient, 0)
        loss += tl.load(losses + m * B + r, mask=r < B, other=0.0)
        right += tl.load(rights + m * B + r, mask=r < B, other=0.0)
    step = tl.load(at)
    tl.store(mean_losses + step * M + m, tl.sum(loss, 0) / B)
    tl.store(mean_rights + step * M + m, tl.sum(right, 0) / B)
    size, root = factors_of(sizes, roots, at, M, m)
    W, first, second = W + m * P * UNIT, first + m * P * UNIT, second + m * P * UNIT
    o_at, o_inside, u_at, u_inside = cells_of_output(H, C, DIM, HEAD, HEADS, COLUMNS)
    b_at = cells_of_bias(H, C, DIM, HEAD, COLUMNS)
    W_O = tl.load(W + o_at, mask=o_inside, other=0.0)
    W_U = tl.load(W + u_at, mask=u_inside, other=0.0)
    adam(W, first, second, o_at, o_inside, product(of_U, tl.trans(W_U)), size, root, beta1, beta2)
    adam(W, first, second, u_at, u_inside, product(tl.trans(W_O), of_U), size, root, beta1, beta2)
    adam(W, first, second, b_at, c < C, of_b, size, root, beta1, beta2)


@triton.jit(do_not_specialize=["P", "M", "H", "n", "part_count"])
def embedding_back(
    W, first, second, sizes, roots, at, contexts, DE, DB, DX, P, M, H, n, part_count, by_context,
    N: tl.constexpr, DIM: tl.constexpr, SOME: tl.constexpr, UNIT: tl.constexpr, SHARED: tl.constexpr,
    beta1: tl.constexpr, beta2: tl.constexpr,
):  # fmt: skip
    """A program has SOME columns of one model's W_E and b_E, and adds up what was passed to them in parts.

    With a context that all examples share, what heads pass to its tokens, DX [M, H, N, DIM], is added here.
    """
    m = tl.program_id(0).to(tl.int64)
    i, s = tl.arange(0, DIM), tl.arange(0, N)
    j = tl.program_id(1) * SOME + tl.arange(0, SOME)
    square = i[:, None] * DIM + j[None, :]
    gradient = tl.zeros((DIM, SOME), tl.float32)
    of_b = tl.zeros((SOME,), tl.float32)
    for part in range(part_count):
        gradient += tl.load(DE + (m * part_count + part) * DIM * DIM + square)
        of_b += tl.load(DB + (m * part_count + part) * DIM + j)
    if SHARED:
        of_tokens = tl.zeros((N, SOME), tl.float32)
        for h in range(H):
            of_tokens += tl.load(DX + (m * H + h) * N * DIM + s[:, None] * DIM + j[None, :])
        e = tl.load(contexts + m * by_context + s[:, None] * DIM + i[None, :], mask=(s < n)[:, None], other=0.0)
        gradient += product(tl.trans(e), of_tokens)
        of_b += tl.sum(of_tokens, 0)
    size, root = factors_of(sizes, roots, at, M, m)
    base = m * P * UNIT
    adam(W, first, second, base + square, (i < DIM)[:, None] & (j < DIM)[None, :], gradient, size, root, beta1, beta2)
    adam(W, first, second, base + DIM * DIM + j, j < DIM, of_b, size, root, beta1, beta2)

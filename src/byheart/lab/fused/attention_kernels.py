"""Kernels of a training step of Mahdavi's models, one family for both kinds of contexts.

Letters are those of ``lab/models/mahdavi.py``; a = q/√d is the scaled query of an example, and a star marks tensors
that exist only if each example has its own context. For every head, with G = W_Q W_Kᵀ:

    score_s = a·F_s + Q*·e_s,   shares = softmax(scores),   value_s = V_s + VE*·e_s,   A = Σ_s share_s value_s.

- *Shared context*: with its tokens x_s in the stream, F = W_Q (x W_K)ᵀ and V = x W_V.
- *Own contexts*: F = G pᵀ, V = (p + b_E) W_V, T* = G W_Eᵀ, Q* = a T*, VE* = W_E W_V. Z* = a F is stored.

The model's logits are A U + b_U with U = W_O W_U. Let ∂χ be the gradient of χ. From ∂A the way back is

    ∂score_s = ∂A share_s (value_s − A),   ∂value_s = ∂A share_s,   ∂Q* = Σ_s ∂score_s e_s,   ∂VE* = Σ ∂value_s e_s,
    ∂F = Σ aᵀ ∂scores,   ∂V = Σ ∂values,   ∂T* = Σ aᵀ ∂Q*,   ∂a = Σ_heads ∂scores Fᵀ + ∂Q* T*ᵀ,

with sums over examples unless another index is named, and then

- *Shared context*: ∂keys = ∂Fᵀ W_Q, ∂W_Q = ∂F (x W_K), ∂W_K = xᵀ ∂keys, ∂W_V = xᵀ ∂V, and
  ∂x = Σ_heads ∂keys W_Kᵀ + ∂V W_Vᵀ;
- *Own contexts*: ∂G = ∂T* W_E + ∂F p, ∂W_Q = ∂G W_K, ∂W_K = ∂Gᵀ W_Q, ∂W_V = W_Eᵀ ∂VE* + (p + b_E)ᵀ ∂V, and heads pass
  ∂T*ᵀ G + ∂VE* W_Vᵀ to ∂W_E.

A step runs :func:`fold_heads`, :func:`attend` (own contexts: then :func:`read_contexts`), :func:`judge` (then
:func:`read_contexts_back`), :func:`update_output`, :func:`attend_back`, :func:`update_heads` (before it
:func:`sum_heads`), :func:`update_embedding`. Scores of a shared context are computed again where they are needed, never
stored. The program that owns a gradient ends with Adam.

The weights of a model lie one after the other, as ``QueryAttention.shapes`` lists them:
W_E [DIM, DIM], b_E [DIM], W_Q and W_K [H, DIM, HEAD], W_V and W_O [H, DIM], W_U [DIM, C], b_U [C].
"""

from collections import namedtuple
from typing import Any

import triton
import triton.language as tl

from byheart.lab.fused.tiles import Betas, adam, cells_of, product, read, softmax, weights_of, write

Batches = namedtuple("Batches", ("queries", "contexts", "answers", "places", "positions"))
"""Examples of all models, ``places`` [steps, M, B] of the examples of each step, and positions p [n + 1, DIM]."""
Counts = namedtuple("Counts", ("M", "P", "B", "H", "n", "C", "context_stride", "parts", "groups"))
"""Sizes known at run time: P in units; entries between the shared contexts of two models; parts of ∂W_E, of ∂VE."""
SIDES = ("N", "DIM", "HEAD", "K", "HEADS", "COLUMNS", "UNIT", "GROUP", "SHARED", "LABELS", *Betas._fields)
Sides: Any = namedtuple("Sides", SIDES)  # type: ignore[misc]
"""Constants of a kernel: tile sides for n, d, d_h, H and C. UNIT divides P; GROUP is a program's number of contexts."""
BUFFERS = ("U", "F", "V", "X", "T", "VE", "asked", "Q", "Z", "A", "losses", "rights", "mean_losses", "mean_rights")
GRADIENTS = ("DA", "DL", "DX", "DT", "DF", "DVE", "DV", "DE", "DB")
Buffers: Any = namedtuple("Buffers", BUFFERS + GRADIENTS)  # type: ignore[misc]
"""Tensors that one kernel leaves for the next. D marks gradients; those of W_E and b_E, DE and DB, come in parts."""


@triton.jit
def _head_of_program(counts):
    """Return the number of this program's head among those of all models, its model, and its number there."""
    which = tl.program_id(0).to(tl.int64)
    return which, which // counts.H, (which % counts.H).to(tl.int32)


@triton.jit
def _head_cells(counts, h, S: tl.constexpr):
    """Return the cells of W_Q and W_K [DIM, K] and of W_V [DIM] of head h, and the cells inside of the matrices."""
    i, k = tl.arange(0, S.DIM), tl.arange(0, S.K)
    matrices, size = S.DIM * S.DIM + S.DIM, S.DIM * S.HEAD
    q_cells = matrices + h * size + cells_of(i, k, S.HEAD)
    inside = (k < S.HEAD)[None, :] & (i < S.DIM)[:, None]
    return q_cells, q_cells + counts.H * size, matrices + 2 * counts.H * size + h * S.DIM + i, inside


@triton.jit
def _output_cells(counts, S: tl.constexpr):
    """Return the cells of W_O [HEADS, DIM] and W_U [DIM, COLUMNS], each with those inside, and of b_U [COLUMNS]."""
    i, hs, c = tl.arange(0, S.DIM), tl.arange(0, S.HEADS), tl.arange(0, S.COLUMNS)
    start = S.DIM * S.DIM + S.DIM + 2 * counts.H * S.DIM * S.HEAD + counts.H * S.DIM
    end = start + counts.H * S.DIM
    o_inside, u_inside = (hs < counts.H)[:, None] & (i < S.DIM)[None, :], (c < counts.C)[None, :] & (i < S.DIM)[:, None]
    return (
        start + cells_of(hs, i, S.DIM),
        o_inside,
        end + cells_of(i, c, counts.C),
        u_inside,
        end + S.DIM * counts.C + c,
    )


@triton.jit
def _average_cells(h, r, counts, S: tl.constexpr):
    """Return the cells of averages A of heads h and examples r of a model: the order in which they are written."""
    return h * counts.B + r if S.SHARED else r * S.HEADS + h


@triton.jit
def _places(stacked, batch, counts, m):
    """Return a pointer to the places of this step's examples of model m."""
    return batch.places + (tl.load(stacked.at) * counts.M + m) * counts.B


@triton.jit
def _queries(stacked, batch, counts, m, r, S: tl.constexpr):
    """Return the queries e of examples r of model m, [ROWS, DIM]."""
    place, i = tl.load(_places(stacked, batch, counts, m) + r, mask=r < counts.B, other=0), tl.arange(0, S.DIM)
    return tl.load(batch.queries + place[:, None] * S.DIM + i[None, :], mask=(r < counts.B)[:, None], other=0.0)


@triton.jit
def fold_heads(stacked, batch, buffers, counts, S: tl.constexpr):
    """Multiply the weights of one head per program: F, V, and T and VE; the first head also writes U, and tokens X."""
    which, m, h = _head_of_program(counts)
    s, i, n = tl.arange(0, S.N), tl.arange(0, S.DIM), counts.n
    own, square = stacked.W + m * counts.P * S.UNIT, cells_of(i, i, S.DIM)
    W_E, b_E = tl.load(own + square), tl.load(own + S.DIM * S.DIM + i)
    q_cells, k_cells, v_cells, inside = _head_cells(counts, h, S)
    W_Q, W_K = tl.load(own + q_cells, mask=inside, other=0.0), tl.load(own + k_cells, mask=inside, other=0.0)
    W_V, p = tl.load(own + v_cells), read(batch.positions + S.DIM, s, n, i, S.DIM)
    if S.SHARED:
        e = read(batch.contexts + m * counts.context_stride, s, n, i, S.DIM)
        x = tl.where((s < n)[:, None], product(e, W_E) + b_E[None, :] + p, 0.0)
        folded = product(W_Q, tl.trans(product(x, W_K)))
        if h == 0:
            tl.store(buffers.X + m * S.N * S.DIM + cells_of(s, i, S.DIM), x)
    else:
        G, x = product(W_Q, tl.trans(W_K)), p + b_E[None, :]
        folded = product(G, tl.trans(p))
        tl.store(buffers.T + which * S.DIM * S.DIM + square, product(G, tl.trans(W_E)))
        tl.store(buffers.VE + which * S.DIM + i, tl.sum(W_E * W_V[None, :], 1))
    tl.store(buffers.F + which * S.DIM * S.N + cells_of(i, s, S.N), folded)
    tl.store(buffers.V + which * S.N + s, tl.sum(x * W_V[None, :], 1))
    if h == 0:
        hs, c = tl.arange(0, S.HEADS), tl.arange(0, S.COLUMNS)
        o_cells, o_inside, u_cells, u_inside, _ = _output_cells(counts, S)
        W_O, W_U = tl.load(own + o_cells, mask=o_inside, other=0.0), tl.load(own + u_cells, mask=u_inside, other=0.0)
        tl.store(buffers.U + m * S.HEADS * S.COLUMNS + cells_of(hs, c, S.COLUMNS), product(W_O, W_U))


@triton.jit
def attend(stacked, batch, buffers, counts, S: tl.constexpr, ROWS: tl.constexpr):
    """Take ROWS examples per program through some heads: to averages A, or with own contexts to Q and Z."""
    m, tile, share = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    r, s, i = tile * ROWS + tl.arange(0, ROWS), tl.arange(0, S.N), tl.arange(0, S.DIM)
    own, B, H = stacked.W + m * counts.P * S.UNIT, counts.B, counts.H
    shift = tl.load(own + S.DIM * S.DIM + i) + tl.load(batch.positions + i)
    W_E = tl.load(own + cells_of(i, i, S.DIM))
    a = (product(_queries(stacked, batch, counts, m, r, S), W_E) + shift[None, :]) * (S.DIM**-0.5)
    if share == 0:
        write(buffers.asked + m * B * S.DIM, r, B, i, S.DIM, a)
    for h in range(share, H, tl.num_programs(2)):
        which = m * H + h
        if not S.SHARED:
            directions = product(a, tl.load(buffers.T + which * S.DIM * S.DIM + cells_of(i, i, S.DIM)))
            write(buffers.Q + m * B * H * S.DIM, r * H + h, B * H, i, S.DIM, directions)
        offsets = product(a, tl.load(buffers.F + which * S.DIM * S.N + cells_of(i, s, S.N)))
        if S.SHARED:
            shares, values = softmax(offsets, (s < counts.n)[None, :]), tl.load(buffers.V + which * S.N + s)
            cells = m * S.HEADS * B + _average_cells(h, r, counts, S)
            tl.store(buffers.A + cells, tl.sum(shares * values[None, :], 1), mask=r < B)
        else:
            write(buffers.Z + m * B * H * S.N, r * H + h, B * H, s, S.N, offsets)


@triton.jit
def attend_back(stacked, batch, buffers, counts, S: tl.constexpr, ROWS: tl.constexpr):
    """Go back from what :func:`attend` wrote to a part of the gradients of W_E and b_E."""
    m, tile, share = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    r, s, i = tile * ROWS + tl.arange(0, ROWS), tl.arange(0, S.N), tl.arange(0, S.DIM)
    B, H = counts.B, counts.H
    of_asked = tl.full((ROWS, S.DIM), 0.0, tl.float32)
    if S.SHARED:
        a = read(buffers.asked + m * B * S.DIM, r, B, i, S.DIM)
    for h in range(share, H, tl.num_programs(2)):
        which = m * H + h
        folded = tl.load(buffers.F + which * S.DIM * S.N + cells_of(i, s, S.N))
        if S.SHARED:
            _, of_scores = _scores_back(a, folded, buffers, counts, m, h, r, S)
        else:
            T = tl.load(buffers.T + which * S.DIM * S.DIM + cells_of(i, i, S.DIM))
            of_asked += product(read(buffers.Q + m * B * H * S.DIM, r * H + h, B * H, i, S.DIM), tl.trans(T))
            of_scores = read(buffers.Z + m * B * H * S.N, r * H + h, B * H, s, S.N)
        of_asked += product(of_scores, tl.trans(folded))
    of_asked = of_asked * (S.DIM**-0.5)
    part = m * counts.parts + tile * tl.num_programs(2) + share
    queries = _queries(stacked, batch, counts, m, r, S)
    tl.store(buffers.DE + part * S.DIM * S.DIM + cells_of(i, i, S.DIM), product(tl.trans(queries), of_asked))
    tl.store(buffers.DB + part * S.DIM + i, tl.sum(of_asked, 0))


@triton.jit
def _scores_back(a, folded, buffers, counts, m, h, r, S: tl.constexpr):
    """Return ∂values and ∂scores of head h at the tokens of a shared context, [ROWS, N] each."""
    s, cells = tl.arange(0, S.N), m * S.HEADS * counts.B + _average_cells(h, r, counts, S)
    average = tl.load(buffers.A + cells, mask=r < counts.B, other=0.0)
    passed = tl.load(buffers.DA + cells, mask=r < counts.B, other=0.0)
    values = tl.load(buffers.V + (m * counts.H + h) * S.N + s)
    of_values = softmax(product(a, folded), (s < counts.n)[None, :]) * passed[:, None]
    return of_values, of_values * (values[None, :] - average[:, None])


@triton.jit
def _read_context(stacked, batch, buffers, counts, m, b, S: tl.constexpr):
    """Return the context [N, DIM] of example b of model m, and shares and values [HEADS, N] of all heads."""
    s, i, hs, H = tl.arange(0, S.N), tl.arange(0, S.DIM), tl.arange(0, S.HEADS), counts.H
    place, row = tl.load(_places(stacked, batch, counts, m) + b), (m * counts.B + b) * H
    e = read(batch.contexts + place * counts.n * S.DIM, s, counts.n, i, S.DIM)
    scores = product(read(buffers.Q + row * S.DIM, hs, H, i, S.DIM), tl.trans(e))
    shares = softmax(scores + read(buffers.Z + row * S.N, hs, H, s, S.N), (s < counts.n)[None, :])
    values = product(read(buffers.VE + m * H * S.DIM, hs, H, i, S.DIM), tl.trans(e))
    return e, shares, values + read(buffers.V + m * H * S.N, hs, H, s, S.N)


@triton.jit
def read_contexts(stacked, batch, buffers, counts, S: tl.constexpr):
    """Compute the averages A of all heads for GROUP examples per program, one after the other."""
    m, group, hs = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.arange(0, S.HEADS)
    for b in range(group * S.GROUP, tl.minimum(group * S.GROUP + S.GROUP, counts.B)):
        _, shares, values = _read_context(stacked, batch, buffers, counts, m, b, S)
        tl.store(buffers.A + m * S.HEADS * counts.B + _average_cells(hs, b, counts, S), tl.sum(shares * values, 1))


@triton.jit
def read_contexts_back(stacked, batch, buffers, counts, S: tl.constexpr):
    """Overwrite Q and Z of GROUP examples per program with their gradients; write a part of ∂VE and ∂V."""
    m, group = tl.program_id(0).to(tl.int64), tl.program_id(1)
    s, i, hs, H = tl.arange(0, S.N), tl.arange(0, S.DIM), tl.arange(0, S.HEADS), counts.H
    of_directions, of_values = tl.full((S.HEADS, S.DIM), 0.0, tl.float32), tl.full((S.HEADS, S.N), 0.0, tl.float32)
    for b in range(group * S.GROUP, tl.minimum(group * S.GROUP + S.GROUP, counts.B)):
        e, shares, values = _read_context(stacked, batch, buffers, counts, m, b, S)
        cells, row = m * S.HEADS * counts.B + _average_cells(hs, b, counts, S), (m * counts.B + b) * H
        passed = tl.load(buffers.DA + cells)[:, None] * shares
        of_scores = passed * (values - tl.load(buffers.A + cells)[:, None])
        write(buffers.Z + row * S.N, hs, H, s, S.N, of_scores)
        write(buffers.Q + row * S.DIM, hs, H, i, S.DIM, product(of_scores, e))
        of_directions += product(passed, e)
        of_values += passed
    part = (m * counts.groups + group) * H
    write(buffers.DVE + part * S.DIM, hs, H, i, S.DIM, of_directions)
    write(buffers.DV + part * S.N, hs, H, s, S.N, of_values)


@triton.jit
def _judge_rows(logits, answers, c, counts, S: tl.constexpr):
    """Return loss, correctness and the gradient of the mean loss for rows of logits [ROWS, COLUMNS].

    Labels have a cross-entropy. Targets are compared with the first column by a squared error; correctness is NaN.
    """
    if S.LABELS:
        logits = tl.where(c[None, :] < counts.C, logits, float("-inf"))
        top = tl.max(logits, 1)
        raised = tl.exp(logits - top[:, None])
        total = tl.sum(raised, 1)
        is_answer = c[None, :] == answers[:, None]
        loss = top + tl.log(total) - tl.sum(tl.where(is_answer, logits, 0.0), 1)
        right = tl.where(tl.argmax(logits, 1) == answers, 1.0, 0.0)
        gradient = (raised / total[:, None] - tl.where(is_answer, 1.0, 0.0)) / counts.B
    else:
        error = tl.where(c[None, :] == 0, logits - answers[:, None], 0.0)
        loss = tl.sum(error * error, 1)
        right = loss * float("nan")
        gradient = 2.0 * error / counts.B
    return loss, right, gradient


@triton.jit
def judge(stacked, batch, buffers, counts, S: tl.constexpr, ROWS: tl.constexpr, TRAIN: tl.constexpr):
    """Take ROWS examples per program from the averages A to the losses, and with TRAIN back to ∂A."""
    m, tile, B = tl.program_id(0).to(tl.int64), tl.program_id(1), counts.B
    r, hs, c = tile * ROWS + tl.arange(0, ROWS), tl.arange(0, S.HEADS), tl.arange(0, S.COLUMNS)
    cells = m * S.HEADS * B + _average_cells(hs[None, :], r[:, None], counts, S)
    averages = tl.load(buffers.A + cells, mask=(r < B)[:, None] & (hs < counts.H)[None, :], other=0.0)
    U = tl.load(buffers.U + m * S.HEADS * S.COLUMNS + cells_of(hs, c, S.COLUMNS))
    _, _, _, _, b_cells = _output_cells(counts, S)
    b_U = tl.load(stacked.W + m * counts.P * S.UNIT + b_cells, mask=c < counts.C, other=0.0)
    place = tl.load(_places(stacked, batch, counts, m) + r, mask=r < B, other=0)
    answers = tl.load(batch.answers + place, mask=r < B, other=0)
    loss, right, gradient = _judge_rows(product(averages, U) + b_U[None, :], answers, c, counts, S)
    tl.store(buffers.losses + m * B + r, loss, mask=r < B)
    tl.store(buffers.rights + m * B + r, right, mask=r < B)
    if TRAIN:
        write(buffers.DL + m * B * S.COLUMNS, r, B, c, S.COLUMNS, gradient)
        tl.store(buffers.DA + cells, product(gradient, tl.trans(U)), mask=(r < B)[:, None])


@triton.jit
def update_output(stacked, batch, buffers, counts, S: tl.constexpr, ROWS: tl.constexpr):
    """Update W_O, W_U and b_U of one model per program, and write its mean loss and accuracy."""
    m, B = tl.program_id(0).to(tl.int64), counts.B
    hs, c = tl.arange(0, S.HEADS), tl.arange(0, S.COLUMNS)
    of_U, of_b = tl.full((S.HEADS, S.COLUMNS), 0.0, tl.float32), tl.full((S.COLUMNS,), 0.0, tl.float32)
    loss, right = tl.full((ROWS,), 0.0, tl.float32), tl.full((ROWS,), 0.0, tl.float32)
    for start in range(0, B, ROWS):
        r = start + tl.arange(0, ROWS)
        cells = m * S.HEADS * B + _average_cells(hs[:, None], r[None, :], counts, S)
        averages = tl.load(buffers.A + cells, mask=(hs < counts.H)[:, None] & (r < B)[None, :], other=0.0)
        gradient = read(buffers.DL + m * B * S.COLUMNS, r, B, c, S.COLUMNS)
        of_U += product(averages, gradient)
        of_b += tl.sum(gradient, 0)
        loss += tl.load(buffers.losses + m * B + r, mask=r < B, other=0.0)
        right += tl.load(buffers.rights + m * B + r, mask=r < B, other=0.0)
    step = tl.load(stacked.at)
    tl.store(buffers.mean_losses + step * counts.M + m, tl.sum(loss, 0) / B)
    tl.store(buffers.mean_rights + step * counts.M + m, tl.sum(right, 0) / B)
    own = weights_of(stacked, counts.M, m, m * counts.P * S.UNIT)
    o_cells, o_inside, u_cells, u_inside, b_cells = _output_cells(counts, S)
    W_O, W_U = tl.load(own.W + o_cells, mask=o_inside, other=0.0), tl.load(own.W + u_cells, mask=u_inside, other=0.0)
    adam(own, o_cells, o_inside, product(of_U, tl.trans(W_U)), S)
    adam(own, u_cells, u_inside, product(tl.trans(W_O), of_U), S)
    adam(own, b_cells, c < counts.C, of_b, S)


@triton.jit
def sum_heads(stacked, batch, buffers, counts, S: tl.constexpr, ROWS: tl.constexpr):
    """Sum ∂T and ∂F of one head per program over all examples, which have their own contexts."""
    which, m, h = _head_of_program(counts)
    s, i, B, H = tl.arange(0, S.N), tl.arange(0, S.DIM), counts.B, counts.H
    of_T, of_F = tl.full((S.DIM, S.DIM), 0.0, tl.float32), tl.full((S.DIM, S.N), 0.0, tl.float32)
    for start in range(0, B, ROWS):
        r = start + tl.arange(0, ROWS)
        a = tl.trans(read(buffers.asked + m * B * S.DIM, r, B, i, S.DIM))
        of_T += product(a, read(buffers.Q + m * B * H * S.DIM, r * H + h, B * H, i, S.DIM))
        of_F += product(a, read(buffers.Z + m * B * H * S.N, r * H + h, B * H, s, S.N))
    tl.store(buffers.DT + which * S.DIM * S.DIM + cells_of(i, i, S.DIM), of_T)
    tl.store(buffers.DF + which * S.DIM * S.N + cells_of(i, s, S.N), of_F)


@triton.jit
def update_heads(stacked, batch, buffers, counts, S: tl.constexpr, ROWS: tl.constexpr):
    """Update W_Q, W_K and W_V of one head per program; write ∂x, or its part of the gradients of W_E and b_E."""
    which, m, h = _head_of_program(counts)
    s, i, square = tl.arange(0, S.N), tl.arange(0, S.DIM), cells_of(tl.arange(0, S.DIM), tl.arange(0, S.DIM), S.DIM)
    if S.SHARED:
        folded = tl.load(buffers.F + which * S.DIM * S.N + cells_of(i, s, S.N))
        of_folded, of_values = tl.full((S.DIM, S.N), 0.0, tl.float32), tl.full((ROWS, S.N), 0.0, tl.float32)
        for start in range(0, counts.B, ROWS):
            r = start + tl.arange(0, ROWS)
            a = read(buffers.asked + m * counts.B * S.DIM, r, counts.B, i, S.DIM)
            passed, of_scores = _scores_back(a, folded, buffers, counts, m, h, r, S)
            of_values += passed
            of_folded += product(tl.trans(a), of_scores)
        of_V = tl.sum(of_values, 0)
    else:
        of_VE, of_V = tl.full((S.DIM,), 0.0, tl.float32), tl.full((S.N,), 0.0, tl.float32)
        for group in range(counts.groups):
            part = (m * counts.groups + group) * counts.H + h
            of_VE += tl.load(buffers.DVE + part * S.DIM + i)
            of_V += tl.load(buffers.DV + part * S.N + s)
    own = weights_of(stacked, counts.M, m, m * counts.P * S.UNIT)
    q_cells, k_cells, v_cells, inside = _head_cells(counts, h, S)
    if S.SHARED:  # weights are loaded where they are used, some of them twice: registers are scarce
        x = tl.load(buffers.X + m * S.N * S.DIM + cells_of(s, i, S.DIM))
        of_keys = product(tl.trans(of_folded), tl.load(own.W + q_cells, mask=inside, other=0.0))
        W_K = tl.load(own.W + k_cells, mask=inside, other=0.0)
        adam(own, q_cells, inside, product(of_folded, product(x, W_K)), S)
        of_tokens = product(of_keys, tl.trans(W_K)) + of_V[:, None] * tl.load(own.W + v_cells)[None, :]
        tl.store(buffers.DX + which * S.N * S.DIM + cells_of(s, i, S.DIM), of_tokens)
        of_W_K, of_W_V = product(tl.trans(x), of_keys), tl.sum(x * of_V[:, None], 0)
    else:
        part = m * counts.parts + counts.parts - counts.H + h  # the last H parts are those of heads
        W_V, of_T = tl.load(own.W + v_cells), tl.load(buffers.DT + which * S.DIM * S.DIM + square)
        W_K = tl.trans(tl.load(own.W + k_cells, mask=inside, other=0.0))
        G = product(tl.load(own.W + q_cells, mask=inside, other=0.0), W_K)
        of_W_E = product(tl.trans(of_T), G) + of_VE[:, None] * W_V[None, :]
        tl.store(buffers.DE + part * S.DIM * S.DIM + square, of_W_E)
        tl.store(buffers.DB + part * S.DIM + i, tl.sum(of_V, 0) * W_V)
        W_E, b_E = tl.load(own.W + square), tl.load(own.W + S.DIM * S.DIM + i)
        p = read(batch.positions + S.DIM, s, counts.n, i, S.DIM)
        of_W_V = tl.sum(of_VE[:, None] * W_E, 0) + tl.sum(of_V[:, None] * (p + b_E[None, :]), 0)
        of_F = tl.load(buffers.DF + which * S.DIM * S.N + cells_of(i, s, S.N))
        of_G = product(of_T, W_E) + product(of_F, p)
        of_W_K = product(tl.trans(of_G), tl.load(own.W + q_cells, mask=inside, other=0.0))
        of_W_Q = product(of_G, tl.load(own.W + k_cells, mask=inside, other=0.0))
        adam(own, q_cells, inside, of_W_Q, S)
    adam(own, k_cells, inside, of_W_K, S)
    adam(own, v_cells, i < S.DIM, of_W_V, S)


@triton.jit
def update_embedding(stacked, batch, buffers, counts, S: tl.constexpr, WIDTH: tl.constexpr):
    """Update WIDTH columns of W_E and b_E per program from all parts; a shared context adds what heads pass to it."""
    m, i, s = tl.program_id(0).to(tl.int64), tl.arange(0, S.DIM), tl.arange(0, S.N)
    j = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    cells = cells_of(i, j, S.DIM)
    of_W, of_b = tl.full((S.DIM, WIDTH), 0.0, tl.float32), tl.full((WIDTH,), 0.0, tl.float32)
    for part in range(counts.parts):
        of_W += tl.load(buffers.DE + (m * counts.parts + part) * S.DIM * S.DIM + cells)
        of_b += tl.load(buffers.DB + (m * counts.parts + part) * S.DIM + j)
    if S.SHARED:
        of_tokens = tl.full((S.N, WIDTH), 0.0, tl.float32)
        for h in range(counts.H):
            of_tokens += tl.load(buffers.DX + (m * counts.H + h) * S.N * S.DIM + cells_of(s, j, S.DIM))
        e = read(batch.contexts + m * counts.context_stride, s, counts.n, i, S.DIM)
        of_W += product(tl.trans(e), of_tokens)
        of_b += tl.sum(of_tokens, 0)
    own = weights_of(stacked, counts.M, m, m * counts.P * S.UNIT)
    adam(own, cells, (i < S.DIM)[:, None] & (j < S.DIM)[None, :], of_W, S)
    adam(own, S.DIM * S.DIM + j, j < S.DIM, of_b, S)

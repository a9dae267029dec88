"""What the kernels are made of: products, a softmax, a loss and its gradient; what Mahdavi's models ask.

A program works on tiles whose sides are powers of two of at least 16, as tensor cores want them; what lies outside of a
tensor is read as zero and never written.
"""

import triton
import triton.language as tl

from byheart.lab.fused.layout import cells_of_output


@triton.jit
def product(a, b):
    """a·b in float32, put together out of three TF32 products: about as exact as one of float32."""
    return tl.dot(a, b, input_precision="tf32x3")


@triton.jit
def softmax(scores, inside):
    """Of each row of a tile, over what is inside."""
    scores = tl.where(inside, scores, float("-inf"))
    raised = tl.exp(scores - tl.max(scores, 1)[:, None])
    return raised / tl.sum(raised, 1)[:, None]


@triton.jit
def judged(logits, answers, columns, C, B, LABELS: tl.constexpr):
    """Loss, right or wrong, and the gradient of the mean loss in the logits, for rows of a tile [rows, columns].

    Labels have a cross-entropy; targets, which take the first column, a squared error, and are never right or wrong.
    """
    if LABELS:
        logits = tl.where(columns < C, logits, float("-inf"))
        top = tl.max(logits, 1)
        raised = tl.exp(logits - top[:, None])
        total = tl.sum(raised, 1)
        wanted = columns == answers[:, None]
        loss = top + tl.log(total) - tl.sum(tl.where(wanted, logits, 0.0), 1)
        right = tl.where(tl.argmax(logits, 1) == answers, 1.0, 0.0)
        gradient = (raised / total[:, None] - tl.where(wanted, 1.0, 0.0)) / B
    else:
        off = tl.where(columns == 0, logits - answers[:, None], 0.0)
        loss = tl.sum(off * off, 1)
        right = loss * float("nan")
        gradient = 2.0 * off / B
    return loss, right, gradient


@triton.jit
def places_of(places, at, M, B, m):
    """From where on the places of the B examples of model m are, at the step that ``at`` says."""
    return places + (tl.load(at) * M + m) * B


@triton.jit
def queries_of(queries, places, at, M, B, m, r, DIM: tl.constexpr):
    """The queries e of examples r of model m, [rows, DIM]."""
    place, i = tl.load(places_of(places, at, M, B, m) + r, mask=r < B, other=0), tl.arange(0, DIM)
    return tl.load(queries + place[:, None] * DIM + i[None, :], mask=(r < B)[:, None], other=0.0)


@triton.jit
def asking(own, positions, queries, DIM: tl.constexpr):
    """q/√d: queries e in the stream of the model whose weights begin at ``own``, e W_E + b_E + p_0, over √DIM."""
    i = tl.arange(0, DIM)
    W_E = tl.load(own + i[:, None] * DIM + i[None, :])
    shift = tl.load(own + DIM * DIM + i) + tl.load(positions + i)
    return (product(queries, W_E) + shift[None, :]) * (DIM**-0.5)


@triton.jit
def write_output(
    own, U, m, H, C,
    DIM: tl.constexpr, HEAD: tl.constexpr, HEADS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """U = W_O W_U of a model, [HEADS, COLUMNS], which takes the heads' averages to logits."""
    hs, c = tl.arange(0, HEADS), tl.arange(0, COLUMNS)
    o_at, o_inside, u_at, u_inside = cells_of_output(H, C, DIM, HEAD, HEADS, COLUMNS)
    W_O = tl.load(own + o_at, mask=o_inside, other=0.0)
    W_U = tl.load(own + u_at, mask=u_inside, other=0.0)
    tl.store(U + (m * HEADS + hs)[:, None] * COLUMNS + c[None, :], product(W_O, W_U))

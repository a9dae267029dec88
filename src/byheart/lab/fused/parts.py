"""What the kernels are made of: products, Adam where the gradient is at hand, a loss and its gradient.

A program works on tiles whose sides are powers of two of at least 16, as tensor cores want them; what lies outside of a
tensor is read as zero and never written.
"""

import triton
import triton.language as tl


@triton.jit
def product(a, b):
    """a·b in float32, put together out of three TF32 products: about as exact as one of float32."""
    return tl.dot(a, b, input_precision="tf32x3")


@triton.jit
def adam(W, first, second, at, inside, gradient, size, root, beta1: tl.constexpr, beta2: tl.constexpr):
    """A step for the weights at ``at``, as :mod:`byheart.lab.adam` has it."""
    m = tl.load(first + at, mask=inside, other=0.0)
    m += (1 - beta1) * (gradient - m)
    tl.store(first + at, m, mask=inside)
    v = tl.load(second + at, mask=inside, other=0.0)
    v = beta2 * v + (1 - beta2) * gradient * gradient
    tl.store(second + at, v, mask=inside)
    w = tl.load(W + at, mask=inside, other=0.0)
    w -= size * (m / (tl.sqrt(v) / root + 1e-8))
    tl.store(W + at, w, mask=inside)


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
def softmax(scores, inside):
    """Of each row of a tile, over what is inside."""
    scores = tl.where(inside, scores, float("-inf"))
    raised = tl.exp(scores - tl.max(scores, 1)[:, None])
    return raised / tl.sum(raised, 1)[:, None]


@triton.jit
def write_output(
    own, U, m, H, C,
    DIM: tl.constexpr, HEAD: tl.constexpr, HEADS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """U = W_O W_U of a model, [HEADS, COLUMNS], which takes the heads' averages to logits."""
    i, hs, c = tl.arange(0, DIM), tl.arange(0, HEADS), tl.arange(0, COLUMNS)
    o_at = DIM * DIM + DIM + 2 * H * DIM * HEAD + H * DIM
    W_O = tl.load(own + o_at + hs[:, None] * DIM + i[None, :], mask=(hs < H)[:, None], other=0.0)
    W_U = tl.load(own + o_at + H * DIM + i[:, None] * C + c[None, :], mask=(c < C)[None, :], other=0.0)
    tl.store(U + (m * HEADS + hs)[:, None] * COLUMNS + c[None, :], product(W_O, W_U))

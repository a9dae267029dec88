"""Where the weights of one of Mahdavi's models lie: behind one another, as ``QueryAttention.shapes`` lists them.

    W_E [DIM, DIM], b_E [DIM], W_Q and W_K [H, DIM, HEAD], W_V and W_O [H, DIM], W_U [DIM, C], b_U [C]

Places are counted from the model's first weight, which is that of W_E.
"""

import triton
import triton.language as tl


@triton.jit
def at_W_Q(h, DIM: tl.constexpr, HEAD: tl.constexpr):
    """That of head h; W_K follows it by H heads."""
    return DIM * DIM + DIM + h * DIM * HEAD


@triton.jit
def at_W_V(H, h, DIM: tl.constexpr, HEAD: tl.constexpr):
    """That of head h; W_O follows it by H heads, and W_U by 2H."""
    return DIM * DIM + DIM + 2 * H * DIM * HEAD + h * DIM


@triton.jit
def cells_of_head(H, h, DIM: tl.constexpr, HEAD: tl.constexpr, K: tl.constexpr):
    """Where head h has W_Q and W_K, tiles of [DIM, K], and W_V, [DIM]; and what of such a tile is inside."""
    i, k = tl.arange(0, DIM), tl.arange(0, K)
    q_at = at_W_Q(h, DIM, HEAD) + i[:, None] * HEAD + k[None, :]
    return q_at, q_at + H * DIM * HEAD, at_W_V(H, h, DIM, HEAD) + i, (k < HEAD)[None, :] & (i < DIM)[:, None]


@triton.jit
def cells_of_output(
    H, C, DIM: tl.constexpr, HEAD: tl.constexpr, HEADS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Where W_O lies, a tile of [HEADS, DIM], and what of it is inside; the same for W_U, [DIM, COLUMNS]."""
    i, hs, c = tl.arange(0, DIM), tl.arange(0, HEADS), tl.arange(0, COLUMNS)
    o_at = at_W_V(H, H, DIM, HEAD) + hs[:, None] * DIM + i[None, :]
    u_at = at_W_V(H, 2 * H, DIM, HEAD) + i[:, None] * C + c[None, :]
    return o_at, (hs < H)[:, None] & (i < DIM)[None, :], u_at, (c < C)[None, :] & (i < DIM)[:, None]


@triton.jit
def cells_of_bias(H, C, DIM: tl.constexpr, HEAD: tl.constexpr, COLUMNS: tl.constexpr):
    """Where b_U lies, [COLUMNS]."""
    return at_W_V(H, 2 * H, DIM, HEAD) + DIM * C + tl.arange(0, COLUMNS)

"""Operations of stacked models with their gradients: norm, attention over few places, products, and lookups.

With rows of 16 numbers and contexts of 4 places, PyTorch's own kernels take most of a GPT's step: a norm has a block of
threads per row, attention writes every factor of every entry, and the gradient of a weight, a sum over some 16,000 rows
for each of a few models, keeps few processors busy. Here a program takes a tile of rows or of contexts, and sums over
rows are cut into chunks, which are added in a fixed order. Products with weights are PyTorch's, in float32; gradients
of weights are computed by three TF32 products.
"""

from collections import namedtuple
from typing import Any

import torch
import triton
import triton.language as tl
from torch.autograd import Function

from byheart.lab.fused.tiles import cells_of, product, softmax, tile_side
from byheart.lab.models import parts as plain

TILE_NUMBERS = 2048
"""Number of entries in a tile of rows or of contexts."""
MAX_KEY_NUMBERS = 512
"""Largest size of a head's keys in one context: with more, a tile would hold too few contexts."""
SIDE = 64
"""Largest side of a tile in a product."""
PROGRAMS = 528
"""Number of programs among which a sum over rows is divided: four per processor of a large GPU."""

Pair = tuple[torch.Tensor, torch.Tensor]


class _Norm(Function):
    """The layer norm of rows [..., d], without gain and bias."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, epsilon: float) -> torch.Tensor:
        rows = rows.contiguous()
        out, scales = torch.empty_like(rows), rows.new_empty(rows.shape[:-1])
        _on_rows(_norm, rows, out, scales, epsilon=epsilon)
        ctx.save_for_backward(out, scales)
        return out

    @staticmethod
    def backward(ctx: Any, passed: torch.Tensor) -> tuple[torch.Tensor, None]:
        out, scales = ctx.saved_tensors
        gradient = torch.empty_like(out)
        _on_rows(_norm_back, out, scales, passed.contiguous(), gradient)
        return gradient, None


def _on_rows(kernel: Any, *tensors: torch.Tensor, **options: float) -> None:
    """Launch a kernel on tiles of the rows of the first tensor."""
    d = tensors[0].shape[-1]
    count, D = tensors[0].numel() // d, tile_side(d)
    ROWS = max(1, TILE_NUMBERS // D)
    kernel[(triton.cdiv(count, ROWS),)](*tensors, count, d, **options, D=D, ROWS=ROWS)


@triton.jit(do_not_specialize=["count"])
def _norm(X, Y, scales, count, d, epsilon, D: tl.constexpr, ROWS: tl.constexpr):
    """Compute y = (x − mean x)/√(var x + ε) for ROWS rows x per program."""
    r, c = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS), tl.arange(0, D)
    cells, inside = cells_of(r, c, d), (r < count)[:, None] & (c < d)[None, :]
    x = tl.load(X + cells, mask=inside, other=0.0)
    x = tl.where(inside, x - (tl.sum(x, 1) / d)[:, None], 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, 1) / d + epsilon)
    tl.store(Y + cells, x * scale[:, None], mask=inside)
    tl.store(scales + r, scale, mask=r < count)


@triton.jit(do_not_specialize=["count"])
def _norm_back(Y, scales, G, DX, count, d, D: tl.constexpr, ROWS: tl.constexpr):
    """Compute ∂x = (∂y − mean ∂y − y·mean(y ∂y))/√(var x + ε) from ∂y."""
    r, c = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS), tl.arange(0, D)
    cells, inside = cells_of(r, c, d), (r < count)[:, None] & (c < d)[None, :]
    y, g = tl.load(Y + cells, mask=inside, other=0.0), tl.load(G + cells, mask=inside, other=0.0)
    gradient = g - (tl.sum(g, 1) / d)[:, None] - y * (tl.sum(g * y, 1) / d)[:, None]
    tl.store(DX + cells, gradient * tl.load(scales + r, mask=r < count, other=0.0)[:, None], mask=inside)


class _Mixed(Function):
    """Causal attention of Q [M, B, m, d] for the last m places, with K and V [M, B, n, 2d].

    Without the latter, Q, K and V are in the same rows [M, B, n, 3d], and so are their gradients.
    """

    @staticmethod
    def forward(ctx: Any, heads: int, queries: torch.Tensor, keys: torch.Tensor | None) -> torch.Tensor:
        Q = queries.contiguous()
        KV = Q if keys is None else keys.contiguous()
        d = Q.shape[-1] // (3 if keys is None else 1)
        out = Q.new_empty(*Q.shape[:-1], d)
        ctx.heads, ctx.d = heads, d
        ctx.save_for_backward(Q, KV)
        _on_contexts(_mix, (Q, _keys_in(KV, d), out), Q, KV, heads, d)
        return out

    @staticmethod
    def backward(ctx: Any, passed: torch.Tensor) -> tuple[None, torch.Tensor, torch.Tensor | None]:
        (Q, KV), d = ctx.saved_tensors, ctx.d
        of_Q = torch.empty_like(Q)
        of_KV = of_Q if KV.shape[-1] == 3 * d else torch.empty_like(KV)
        tensors = (Q, _keys_in(KV, d), passed.contiguous(), of_Q, _keys_in(of_KV, d))
        _on_contexts(_mix_back, tensors, Q, KV, ctx.heads, d)
        return None, of_Q, None if of_KV is of_Q else of_KV


def _keys_in(rows: torch.Tensor, d: int) -> torch.Tensor:
    """Return the view of rows that begins with the first key, which is behind the queries if these are there."""
    return rows.view(-1)[d:] if rows.shape[-1] == 3 * d else rows


def _key_numbers(length: int, head_dim: int) -> int:
    """Return the number of entries of a tile with a head's keys in one context."""
    return triton.next_power_of_2(length) * triton.next_power_of_2(head_dim)


def can_mix(length: int, head_dim: int) -> bool:
    """Return True if :data:`mixed` supports this number of places."""
    return _key_numbers(length, head_dim) <= MAX_KEY_NUMBERS


def _on_contexts(
    kernel: Any, tensors: tuple[torch.Tensor, ...], Q: torch.Tensor, KV: torch.Tensor, heads: int, d: int
) -> None:
    """Launch a kernel on tiles of contexts, one head per program."""
    m, n, each = Q.shape[2], KV.shape[2], d // heads
    count = Q.shape[0] * Q.shape[1]
    sizes = MixSizes(count, m, n, each**-0.5, heads, Q.shape[-1], KV.shape[-1], each)
    T = max(1, TILE_NUMBERS // _key_numbers(n, each))
    tile = {"E": triton.next_power_of_2(each), "N": triton.next_power_of_2(n), "T": T}
    kernel[(triton.cdiv(count, T), heads)](*tensors, sizes, **tile)


MixSizes = namedtuple("MixSizes", ("count", "m", "n", "scale", "heads", "q_width", "k_width", "each"))
"""Number of contexts, queries and keys; the scale; heads; entries per row of Q and of K and V; d_head."""


@triton.jit
def _keys_and_values(KV, b, h, sizes, E: tl.constexpr, N: tl.constexpr):
    """Return keys and values [T, N, E] of head h in contexts b, the keys' cells, and those inside.

    Values follow the keys of all heads.
    """
    e, j = tl.arange(0, E)[None, None, :], tl.arange(0, N)[None, :, None]
    b = b[:, None, None]
    inside = (b < sizes.count) & (j < sizes.n) & (e < sizes.each)
    cells = (b * sizes.n + j) * sizes.k_width + h * sizes.each + e
    k = tl.load(KV + cells, mask=inside, other=0.0)
    return k, tl.load(KV + cells + sizes.heads * sizes.each, mask=inside, other=0.0), cells, inside


@triton.jit
def _query(Q, k, b, h, i, sizes, E: tl.constexpr, N: tl.constexpr):
    """Return query i of head h in contexts b [T, E], its cells and those of its output, and its shares [T, N]."""
    e, j, row = tl.arange(0, E)[None, :], tl.arange(0, N), (b * sizes.m + i)[:, None]
    q_cells, out_cells = row * sizes.q_width + h * sizes.each + e, (row * sizes.heads + h) * sizes.each + e
    q = tl.load(Q + q_cells, mask=(b < sizes.count)[:, None] & (e < sizes.each), other=0.0)
    scores = tl.sum(q[:, None, :] * k, 2) * sizes.scale
    return q, q_cells, out_cells, softmax(scores, (j <= i + sizes.n - sizes.m)[None, :])


@triton.jit
def _mix(Q, KV, out, sizes, E: tl.constexpr, N: tl.constexpr, T: tl.constexpr):
    """Compute the attention of one head in T contexts per program."""
    b, h = tl.program_id(0).to(tl.int64) * T + tl.arange(0, T), tl.program_id(1)
    here = (b < sizes.count)[:, None] & (tl.arange(0, E) < sizes.each)[None, :]
    k, v, _k_cells, _inside = _keys_and_values(KV, b, h, sizes, E, N)
    for i in range(sizes.m):
        _q, _q_cells, cells, shares = _query(Q, k, b, h, i, sizes, E, N)
        tl.store(out + cells, tl.sum(shares[:, :, None] * v, 1), mask=here)


@triton.jit
def _mix_back(Q, KV, G, DQ, DKV, sizes, E: tl.constexpr, N: tl.constexpr, T: tl.constexpr):
    """Go back from ∂out: ∂score_s = share_s (∂share_s − Σ_t share_t ∂share_t), where ∂share_s = ∂out·v_s."""
    b, h = tl.program_id(0).to(tl.int64) * T + tl.arange(0, T), tl.program_id(1)
    here = (b < sizes.count)[:, None] & (tl.arange(0, E) < sizes.each)[None, :]
    k, v, k_cells, inside = _keys_and_values(KV, b, h, sizes, E, N)
    of_k, of_v = tl.zeros((T, N, E), tl.float32), tl.zeros((T, N, E), tl.float32)
    for i in range(sizes.m):
        q, q_cells, cells, shares = _query(Q, k, b, h, i, sizes, E, N)
        g = tl.load(G + cells, mask=here, other=0.0)
        of_shares = tl.sum(g[:, None, :] * v, 2)
        of_scores = shares * (of_shares - tl.sum(shares * of_shares, 1)[:, None]) * sizes.scale
        of_v += shares[:, :, None] * g[:, None, :]
        of_k += of_scores[:, :, None] * q[:, None, :]
        tl.store(DQ + q_cells, tl.sum(of_scores[:, :, None] * k, 1), mask=here)
    tl.store(DKV + k_cells, of_k, mask=inside)
    tl.store(DKV + k_cells + sizes.heads * sizes.each, of_v, mask=inside)


class _Multiplied(Function):
    """The affine map shift + rows Wᵀ for rows [M, R, d], W [M, o, d] and a shift [M, 1 or R, o]."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, W: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(rows, W)
        ctx.one_shift = shift.shape[1] == 1
        return torch.baddbmm(shift, rows, W.mT)

    @staticmethod
    def backward(ctx: Any, passed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        rows, W = ctx.saved_tensors
        of_W, sums = _summed_products(passed, rows, W.shape[1])
        return torch.bmm(passed, W), of_W, sums if ctx.one_shift else passed


class _LookedUp(Function):
    """The rows of tokens [M, B, n] in tables [M, ω, d], as :func:`byheart.lab.models.parts.looked_up` returns them."""

    @staticmethod
    def forward(ctx: Any, tables: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        ctx.vocab = tables.shape[1]
        ctx.save_for_backward(tokens)
        return plain.looked_up(tables, tokens)

    @staticmethod
    def backward(ctx: Any, passed: torch.Tensor) -> tuple[torch.Tensor, None]:
        tokens, rows = ctx.saved_tensors[0].flatten(1), passed.flatten(1, -2)
        return _summed_products(tokens, rows, ctx.vocab)[0], None


def _summed_products(left: torch.Tensor, rows: torch.Tensor, outputs: int) -> Pair:
    """Return leftᵀ rows [M, o, d] for rows [M, R, d], and the sums [M, 1, o] of ``left``.

    ``left`` is [M, R, o]; for a lookup it is tokens [M, R] out of o, and stands for their one-hot rows without sums.
    Both results of a chunk lie one after the other, so that chunks are added once.
    """
    left, rows = left.contiguous(), rows.contiguous()
    (M, R, d), D, OUT = rows.shape, min(SIDE, tile_side(rows.shape[-1])), min(SIDE, tile_side(outputs))
    across = triton.cdiv(d, D)
    tiles = triton.cdiv(outputs, OUT) * across
    chunks, chunk = _divided(R, PROGRAMS // (M * tiles))
    parts, sizes = rows.new_empty(M, chunks, outputs * (d + 1)), ProductSizes(R, chunk, outputs, d, across)
    _sum_products[(M, chunks, tiles)](left, rows, parts, sizes, D=D, OUT=OUT, ROWS=SIDE, LOOKUP=left.dim() == 2)
    products, sums = parts.sum(dim=1).split((outputs * d, outputs), dim=1)
    return products.view(M, outputs, d), sums[:, None]


def _divided(rows: int, programs: int) -> tuple[int, int]:
    """Return the number of chunks that rows are cut into, and the number of rows per chunk, a multiple of SIDE."""
    chunks = max(1, min(triton.cdiv(rows, SIDE), programs))
    chunk = triton.cdiv(triton.cdiv(rows, chunks), SIDE) * SIDE
    return triton.cdiv(rows, chunk), chunk


ProductSizes = namedtuple("ProductSizes", ("R", "chunk", "o", "d", "across"))
"""Number of rows, of rows per chunk, of outputs and of entries per row; tiles that lie side by side in a row."""


@triton.jit
def _sum_products(G, X, parts, sizes, D: tl.constexpr, OUT: tl.constexpr, ROWS: tl.constexpr, LOOKUP: tl.constexpr):
    """Sum Gᵀ X, and the rows of G, over a chunk of one model's rows, for a tile [OUT, D] per program."""
    m, c, tile = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    o, d, k = sizes.o, sizes.d, tile // sizes.across * OUT + tl.arange(0, OUT)
    e = tile % sizes.across * D + tl.arange(0, D)
    of_W, of_shift = tl.zeros((OUT, D), tl.float32), tl.zeros((OUT,), tl.float32)
    stop = tl.minimum(sizes.R, (c + 1) * sizes.chunk)
    for start in range(c * sizes.chunk, stop, ROWS):
        r = start + tl.arange(0, ROWS)
        row, inside = (m * sizes.R + r)[:, None], (r < stop)[:, None]
        x = tl.load(X + row * d + e[None, :], mask=inside & (e < d)[None, :], other=0.0)
        if LOOKUP:
            token = tl.load(G + m * sizes.R + r, mask=r < stop, other=-1)
            of_W += product(tl.where(k[:, None] == token[None, :], 1.0, 0.0), x)
        else:
            g = tl.load(G + row * o + k[None, :], mask=inside & (k < o)[None, :], other=0.0)
            of_W += product(tl.trans(g), x)
            of_shift += tl.sum(g, 0)
    parts += (m * tl.num_programs(1) + c) * o * (d + 1)
    tl.store(parts + cells_of(k, e, d), of_W, mask=(k < o)[:, None] & (e < d)[None, :])
    if tile % sizes.across == 0:
        tl.store(parts + o * d + k, of_shift, mask=k < o)


normed, mixed, looked_up = _Norm.apply, _Mixed.apply, _LookedUp.apply
multiplied = _Multiplied.apply

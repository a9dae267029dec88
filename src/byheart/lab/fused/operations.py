"""Operations of a small GPT with their gradients, in kernels: norm, attention over few places, products, lookups.

Where rows are as short as 16 numbers and contexts as 4 places, PyTorch's own kernels take most of a step: a norm has a
block of threads for each row, attention writes every factor of every entry, and a weight's gradient, a sum over some
16,000 rows for each of a few models, keeps few processors busy. Here a program has a tile of rows, or of contexts, and
sums over rows are cut into parts, which are added up in a fixed order. The products with weights are PyTorch's, in
float32; those of gradients of weights are put together out of three of TF32.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch.autograd import Function

from byheart.lab.fused.launching import FOUR, side
from byheart.lab.fused.parts import product, softmax
from byheart.lab.models import parts as plain

NUMBERS = 2048
"""In a tile of rows, or of contexts."""
MOST_NUMBERS = 512
"""Of a head's keys in a context: of larger ones, a tile would hold too few."""
SIDE = 64
"""Of a tile that is multiplied."""
PROGRAMS = 528
"""Among which a sum over rows is shared out: four for each processor of a large GPU."""


def normed(rows: torch.Tensor, epsilon: float) -> torch.Tensor:
    """Layer norm of rows [..., d] without gain and bias."""
    found: torch.Tensor = _Norm.apply(rows, epsilon)
    return found


def mixed(heads: int, queries: torch.Tensor, others: torch.Tensor | None = None) -> torch.Tensor:
    """Causal attention, from Q [M, B, m, d] of the last m places and K and V [M, B, n, 2d]; or all in one, [.., 3d]."""
    found: torch.Tensor = _Mixed.apply(heads, queries, others)
    return found


def can_mix(length: int, head_dim: int) -> bool:
    """Whether :func:`mixed` is made for this many places."""
    return _keys(length, head_dim) <= MOST_NUMBERS


def multiplied(rows: torch.Tensor, W: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    """shift + rows Wᵀ, for rows [M, R, d], W [M, o, d] and a shift [M, 1 or R, o]."""
    found: torch.Tensor = _Multiplied.apply(rows, W, shift)
    return found


def looked_up(tables: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """As :func:`byheart.lab.models.parts.looked_up`: [M, B, n, d] of tokens [M, B, n] in tables [M, ω, d]."""
    found: torch.Tensor = _LookedUp.apply(tables, tokens)
    return found


class _Norm(Function):
    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, epsilon: float) -> torch.Tensor:
        rows = rows.contiguous()
        out, scales = torch.empty_like(rows), rows.new_empty(rows.shape[:-1])
        _on_rows(_norm, rows, (rows, out, scales), {"epsilon": epsilon})
        ctx.save_for_backward(out, scales)
        return out

    @staticmethod
    def backward(ctx: Any, passed: torch.Tensor) -> tuple[torch.Tensor, None]:
        out, scales = ctx.saved_tensors
        gradient = torch.empty_like(out)
        _on_rows(_norm_back, out, (out, scales, passed.contiguous(), gradient), {})
        return gradient, None


def _on_rows(kernel: Any, like: torch.Tensor, tensors: tuple[torch.Tensor, ...], more: dict[str, float]) -> None:
    d = like.shape[-1]
    count, D = like.numel() // d, side(d)
    ROWS = max(1, NUMBERS // D)
    kernel[(triton.cdiv(count, ROWS),)](*tensors, count, d, **more, D=D, ROWS=ROWS, **FOUR)


@triton.jit(do_not_specialize=["count"])
def _norm(X, Y, scales, count, d, epsilon, D: tl.constexpr, ROWS: tl.constexpr):
    """A program has ROWS rows x: y = (x − mean x)/√(var x + ε)."""
    r, c = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS), tl.arange(0, D)
    at, inside = r[:, None] * d + c[None, :], (r < count)[:, None] & (c < d)[None, :]
    x = tl.load(X + at, mask=inside, other=0.0)
    x = tl.where(inside, x - (tl.sum(x, 1) / d)[:, None], 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, 1) / d + epsilon)
    tl.store(Y + at, x * scale[:, None], mask=inside)
    tl.store(scales + r, scale, mask=r < count)


@triton.jit(do_not_specialize=["count"])
def _norm_back(Y, scales, G, DX, count, d, D: tl.constexpr, ROWS: tl.constexpr):
    """From ∂y to ∂x = (∂y − mean ∂y − y·mean(y ∂y))/√(var x + ε)."""
    r, c = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS), tl.arange(0, D)
    at, inside = r[:, None] * d + c[None, :], (r < count)[:, None] & (c < d)[None, :]
    y, g = tl.load(Y + at, mask=inside, other=0.0), tl.load(G + at, mask=inside, other=0.0)
    gradient = g - (tl.sum(g, 1) / d)[:, None] - y * (tl.sum(g * y, 1) / d)[:, None]
    tl.store(DX + at, gradient * tl.load(scales + r, mask=r < count, other=0.0)[:, None], mask=inside)


class _Mixed(Function):
    """Q, and K and V, may lie in the same rows; their gradients then do."""

    @staticmethod
    def forward(ctx: Any, heads: int, queries: torch.Tensor, others: torch.Tensor | None) -> torch.Tensor:
        Q = queries.contiguous()
        KV = Q if others is None else others.contiguous()
        d = Q.shape[-1] // (3 if others is None else 1)
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
    """From where on rows have keys: behind the queries, if these are there too."""
    return rows.view(-1)[d:] if rows.shape[-1] == 3 * d else rows


def _keys(length: int, head_dim: int) -> int:
    numbers: int = triton.next_power_of_2(length) * triton.next_power_of_2(head_dim)
    return numbers


def _on_contexts(
    kernel: Any, tensors: tuple[torch.Tensor, ...], Q: torch.Tensor, KV: torch.Tensor, heads: int, d: int
) -> None:
    m, n, each = Q.shape[2], KV.shape[2], d // heads
    count = Q.shape[0] * Q.shape[1]
    sizes = (count, m, n, each**-0.5, heads, Q.shape[-1], KV.shape[-1], each)
    T = max(1, NUMBERS // _keys(n, each))
    tile = {"E": triton.next_power_of_2(each), "N": triton.next_power_of_2(n), "T": T}
    kernel[(triton.cdiv(count, T), heads)](*tensors, *sizes, **tile, **FOUR)


@triton.jit
def _keys_and_values(KV, b, h, count, n, heads, by_k, each, E: tl.constexpr, N: tl.constexpr):
    """Of head h in contexts b, [T, N, E]; where the keys lie, and which there are. Values follow all heads' keys."""
    e, j = tl.arange(0, E)[None, None, :], tl.arange(0, N)[None, :, None]
    b = b[:, None, None]
    at, inside = (b * n + j) * by_k + h * each + e, (b < count) & (j < n) & (e < each)
    k = tl.load(KV + at, mask=inside, other=0.0)
    return k, tl.load(KV + at + heads * each, mask=inside, other=0.0), at, inside


@triton.jit
def _shares(q, k, j, last, scale):
    """Of one query of each context [T, E], over keys [T, N, E] up to the last that it sees."""
    return softmax(tl.sum(q[:, None, :] * k, 2) * scale, (j <= last)[None, :])


@triton.jit(do_not_specialize=["count"])
def _mix(Q, KV, out, count, m, n, scale, heads, by_q, by_k, each, E: tl.constexpr, N: tl.constexpr, T: tl.constexpr):
    """A program has one head of T contexts."""
    b, h = tl.program_id(0).to(tl.int64) * T + tl.arange(0, T), tl.program_id(1)
    e, j = tl.arange(0, E), tl.arange(0, N)
    here = (b < count)[:, None] & (e < each)[None, :]
    k, v, _, _ = _keys_and_values(KV, b, h, count, n, heads, by_k, each, E, N)
    for i in range(m):
        row = (b * m + i)[:, None]
        q = tl.load(Q + row * by_q + h * each + e[None, :], mask=here, other=0.0)
        shares = _shares(q, k, j, i + n - m, scale)
        tl.store(out + (row * heads + h) * each + e[None, :], tl.sum(shares[:, :, None] * v, 1), mask=here)


@triton.jit(do_not_specialize=["count"])
def _mix_back(
    Q, KV, G, DQ, DKV, count, m, n, scale, heads, by_q, by_k, each, E: tl.constexpr, N: tl.constexpr, T: tl.constexpr
):
    """The same, back: ∂score_s = share_s (∂share_s − Σ_t share_t ∂share_t), where ∂share_s = ∂out·v_s."""
    b, h = tl.program_id(0).to(tl.int64) * T + tl.arange(0, T), tl.program_id(1)
    e, j = tl.arange(0, E), tl.arange(0, N)
    here = (b < count)[:, None] & (e < each)[None, :]
    k, v, at, inside = _keys_and_values(KV, b, h, count, n, heads, by_k, each, E, N)
    of_k, of_v = tl.zeros((T, N, E), tl.float32), tl.zeros((T, N, E), tl.float32)
    for i in range(m):
        row = (b * m + i)[:, None]
        q = tl.load(Q + row * by_q + h * each + e[None, :], mask=here, other=0.0)
        g = tl.load(G + (row * heads + h) * each + e[None, :], mask=here, other=0.0)
        shares = _shares(q, k, j, i + n - m, scale)
        of_shares = tl.sum(g[:, None, :] * v, 2)
        of_scores = shares * (of_shares - tl.sum(shares * of_shares, 1)[:, None]) * scale
        of_v += shares[:, :, None] * g[:, None, :]
        of_k += of_scores[:, :, None] * q[:, None, :]
        tl.store(DQ + row * by_q + h * each + e[None, :], tl.sum(of_scores[:, :, None] * k, 1), mask=here)
    tl.store(DKV + at, of_k, mask=inside)
    tl.store(DKV + at + heads * each, of_v, mask=inside)


class _Multiplied(Function):
    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, W: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(rows, W)
        ctx.one_shift = shift.shape[1] == 1
        return torch.baddbmm(shift, rows, W.mT)

    @staticmethod
    def backward(ctx: Any, passed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        rows, W = ctx.saved_tensors
        passed, rows = passed.contiguous(), rows.contiguous()
        (M, R, d), o = rows.shape, W.shape[1]
        D, OUT = min(SIDE, side(d)), min(SIDE, side(o))
        tiles = triton.cdiv(o, OUT), triton.cdiv(d, D)
        chunks, chunk = _shared_out(R, PROGRAMS // (M * tiles[0] * tiles[1]))
        parts, sums = rows.new_empty(M, chunks, o, d), rows.new_empty(M, chunks, o)
        grid = M, chunks, tiles[0] * tiles[1]
        tile = {"D": D, "OUT": OUT, "ROWS": SIDE, "SUMS": ctx.one_shift}
        _weights_back[grid](passed, rows, parts, sums, R, chunk, o, d, tiles[1], **tile, **FOUR)
        return torch.bmm(passed, W), parts.sum(dim=1), sums.sum(dim=1, keepdim=True) if ctx.one_shift else passed


def _shared_out(rows: int, programs: int) -> tuple[int, int]:
    """Into how many chunks rows are cut, and how many a chunk has, a multiple of a tile's."""
    chunks = max(1, min(triton.cdiv(rows, SIDE), programs))
    chunk = triton.cdiv(triton.cdiv(rows, chunks), SIDE) * SIDE
    return triton.cdiv(rows, chunk), chunk


@triton.jit(do_not_specialize=["R", "chunk", "across"])
def _weights_back(
    G, X, parts, sums, R, chunk, o, d, across,
    D: tl.constexpr, OUT: tl.constexpr, ROWS: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """A program has a chunk of one model's rows, and a tile [OUT, D] of its weights: Gᵀ X; with SUMS those of G too."""
    m, c, tile = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    k, e = tile // across * OUT + tl.arange(0, OUT), tile % across * D + tl.arange(0, D)
    of_W, of_shift = tl.zeros((OUT, D), tl.float32), tl.zeros((OUT,), tl.float32)
    stop = tl.minimum(R, (c + 1) * chunk)
    for start in range(c * chunk, stop, ROWS):
        r = start + tl.arange(0, ROWS)
        row, inside = (m * R + r)[:, None], (r < stop)[:, None]
        g = tl.load(G + row * o + k[None, :], mask=inside & (k < o)[None, :], other=0.0)
        x = tl.load(X + row * d + e[None, :], mask=inside & (e < d)[None, :], other=0.0)
        of_W += product(tl.trans(g), x)
        if SUMS:
            of_shift += tl.sum(g, 0)
    part = m * tl.num_programs(1) + c
    tl.store(parts + (part * o + k)[:, None] * d + e[None, :], of_W, mask=(k < o)[:, None] & (e < d)[None, :])
    if SUMS and tile % across == 0:
        tl.store(sums + part * o + k, of_shift, mask=k < o)


class _LookedUp(Function):
    @staticmethod
    def forward(ctx: Any, tables: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        ctx.vocab = tables.shape[1]
        ctx.save_for_backward(tokens)
        return plain.looked_up(tables, tokens)

    @staticmethod
    def backward(ctx: Any, passed: torch.Tensor) -> tuple[torch.Tensor, None]:
        (tokens,) = ctx.saved_tensors
        M, R, d = len(tokens), tokens[0].numel(), passed.shape[-1]
        WORDS, D = min(SIDE, side(ctx.vocab)), side(d)
        tiles = triton.cdiv(ctx.vocab, WORDS)
        chunks, chunk = _shared_out(R, PROGRAMS // (M * tiles))
        parts = passed.new_empty(M, chunks, ctx.vocab, d)
        tile = {"D": D, "WORDS": WORDS, "ROWS": SIDE}
        _tables_back[M, chunks, tiles](
            tokens.contiguous(), passed.contiguous(), parts, R, chunk, d, ctx.vocab, **tile, **FOUR
        )
        return parts.sum(dim=1), None


@triton.jit(do_not_specialize=["R", "chunk", "vocab"])
def _tables_back(tokens, G, parts, R, chunk, d, vocab, D: tl.constexpr, WORDS: tl.constexpr, ROWS: tl.constexpr):
    """A program has a chunk of one model's rows, and WORDS tokens: the sum of what each is passed, as a product."""
    m, c = tl.program_id(0).to(tl.int64), tl.program_id(1)
    e, v = tl.arange(0, D), tl.program_id(2) * WORDS + tl.arange(0, WORDS)
    sums = tl.zeros((WORDS, D), tl.float32)
    stop = tl.minimum(R, (c + 1) * chunk)
    for start in range(c * chunk, stop, ROWS):
        r = start + tl.arange(0, ROWS)
        token = tl.load(tokens + m * R + r, mask=r < stop, other=-1)
        inside = (r < stop)[:, None] & (e < d)[None, :]
        g = tl.load(G + (m * R + r)[:, None] * d + e[None, :], mask=inside, other=0.0)
        sums += product(tl.where(v[:, None] == token[None, :], 1.0, 0.0), g)
    row = (m * tl.num_programs(1) + c) * vocab + v
    tl.store(parts + row[:, None] * d + e[None, :], sums, mask=(v < vocab)[:, None] & (e < d)[None, :])

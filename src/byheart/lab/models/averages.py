"""What attention gives when values are numbers: Σ_s softmax_s(scores) · values, and its gradient.

M models, B examples, H heads, n tokens: scores [M, B, H, n] and values [M, B, H, n], or [M, 1, H, n] if they are the
same for all examples, give [M, B, H]. Written as a softmax, a product and a sum, this passes over memory eleven times
in a training step, and takes a third of it on a GPU. Where Triton is (it comes with PyTorch for CUDA), float32 tensors
on a GPU go through kernels that pass three times; all others take the plain way, which is what the kernels compute.
With a the softmax, o the average and g the gradient of o, those of scores and values are g·a·(v − o) and g·a.
"""

from typing import Any

import torch

try:
    import triton  # type: ignore[import-not-found]
    import triton.language as tl  # type: ignore[import-not-found]
except ImportError:  # PyTorch for CPUs
    triton = None

ROWS = 64
"""Examples that a program of the kernels for shared values has before it at a time."""


def averages(scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """[M, B, H] from scores [M, B, H, n] and values [M, B or 1, H, n].

    >>> averages(torch.tensor([0.0, 0.0, -1e9]).view(1, 1, 1, 3), torch.tensor([1.0, 2.0, 9.0]).view(1, 1, 1, 3))
    tensor([[[1.5000]]])
    """
    if triton is not None and scores.is_cuda and scores.dtype == torch.float32:
        result: torch.Tensor = _Averages.apply(scores.contiguous(), values)  # type: ignore[no-untyped-call]
        return result
    return plain_averages(scores, values)


def plain_averages(scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The same out of PyTorch's own operations."""
    return (scores.softmax(dim=-1) * values).sum(dim=-1)


class _Averages(torch.autograd.Function):
    """Nothing but scores, values and averages is kept for the gradient; the softmax is computed again."""

    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        M, B, H, n = scores.shape
        out = scores.new_empty(M, B, H)
        sizes = {"n": n, "padded": triton.next_power_of_2(n)}
        if values.shape[1] == 1:
            grid = (M * H, triton.cdiv(B, ROWS))
            _shared_forward[grid](scores, values, out, B, H, *_strides(values), **sizes, ROWS=ROWS)
        else:
            heads = triton.next_power_of_2(H)
            _own_forward[(M * B,)](scores, values, out, B, H, *_strides(values), **sizes, heads=heads)
        ctx.save_for_backward(scores, values, out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores, values, out = ctx.saved_tensors
        M, B, H, n = scores.shape
        sizes = {"n": n, "padded": triton.next_power_of_2(n)}
        of_scores = torch.empty_like(scores)
        of_values = values.new_empty_strided(values.shape, values.stride())
        tensors = (scores, values, out, gradient.contiguous(), of_scores, of_values)
        if values.shape[1] == 1:
            _shared_backward[(M * H,)](*tensors, B, H, *_strides(values), **sizes, ROWS=ROWS)
        else:
            heads = triton.next_power_of_2(H)
            _own_backward[(M * B,)](*tensors, B, H, *_strides(values), **sizes, heads=heads)
        return of_scores, of_values


def _strides(values: torch.Tensor) -> tuple[int, int, int, int]:
    return values.stride(0), values.stride(1), values.stride(2), values.stride(3)


if triton is not None:

    @triton.jit
    def _softmax(at, inside, tokens_inside):  # type: ignore[no-untyped-def]
        """The softmax of a tile's rows, zero outside of it."""
        scores = tl.load(at, mask=inside, other=float("-inf"))
        scores = tl.where(tokens_inside & (inside == 0), 0.0, scores)  # no row is empty
        raised = tl.exp(scores - tl.max(scores, 1)[:, None])
        return raised / tl.sum(raised, 1)[:, None]

    @triton.jit  # type: ignore[untyped-decorator]
    def _shared_forward(  # type: ignore[no-untyped-def]
        S, V, A, B, H, model, example, head, token, n: tl.constexpr, padded: tl.constexpr, ROWS: tl.constexpr
    ):
        """A program has ROWS examples of one head of one model: a tile [ROWS, n]."""
        which = tl.program_id(0).to(tl.int64)
        m, h = which // H, which % H
        rows, tokens = tl.program_id(1) * ROWS + tl.arange(0, ROWS), tl.arange(0, padded)
        inside = (rows < B)[:, None] & (tokens < n)[None, :]
        at = (m * B + rows) * H + h
        shares = _softmax(S + at[:, None] * n + tokens[None, :], inside, (tokens < n)[None, :])
        values = tl.load(V + m * model + h * head + tokens * token, mask=tokens < n, other=0.0)
        tl.store(A + at, tl.sum(shares * values[None, :], 1), mask=rows < B)

    @triton.jit  # type: ignore[untyped-decorator]
    def _shared_backward(  # type: ignore[no-untyped-def]
        S, V, A, G, DS, DV, B, H, model, example, head, token,
        n: tl.constexpr, padded: tl.constexpr, ROWS: tl.constexpr,
    ):  # fmt: skip
        """A program has all examples of one head of one model, and adds up what they give to the values' gradient."""
        which = tl.program_id(0).to(tl.int64)
        m, h = which // H, which % H
        tokens = tl.arange(0, padded)
        values = tl.load(V + m * model + h * head + tokens * token, mask=tokens < n, other=0.0)
        total = tl.zeros((padded,), tl.float32)
        for start in range(0, B, ROWS):
            rows = start + tl.arange(0, ROWS)
            inside = (rows < B)[:, None] & (tokens < n)[None, :]
            at = (m * B + rows) * H + h
            shares = _softmax(S + at[:, None] * n + tokens[None, :], inside, (tokens < n)[None, :])
            gradient = tl.load(G + at, mask=rows < B, other=0.0)
            average = tl.load(A + at, mask=rows < B, other=0.0)
            passed = shares * gradient[:, None]
            of_scores = passed * (values[None, :] - average[:, None])
            tl.store(DS + at[:, None] * n + tokens[None, :], of_scores, mask=inside)
            total += tl.sum(passed, 0)
        tl.store(DV + m * model + h * head + tokens * token, total, mask=tokens < n)

    @triton.jit  # type: ignore[untyped-decorator]
    def _own_forward(  # type: ignore[no-untyped-def]
        S, V, A, B, H, model, example, head, token, n: tl.constexpr, padded: tl.constexpr, heads: tl.constexpr
    ):
        """A program has all heads of one example of one model: a tile [H, n]."""
        which = tl.program_id(0).to(tl.int64)
        m, b = which // B, which % B
        rows, tokens = tl.arange(0, heads), tl.arange(0, padded)
        inside = (rows < H)[:, None] & (tokens < n)[None, :]
        shares = _softmax(S + (which * H + rows)[:, None] * n + tokens[None, :], inside, (tokens < n)[None, :])
        at = V + m * model + b * example + rows[:, None] * head + tokens[None, :] * token
        values = tl.load(at, mask=inside, other=0.0)
        tl.store(A + which * H + rows, tl.sum(shares * values, 1), mask=rows < H)

    @triton.jit  # type: ignore[untyped-decorator]
    def _own_backward(  # type: ignore[no-untyped-def]
        S, V, A, G, DS, DV, B, H, model, example, head, token,
        n: tl.constexpr, padded: tl.constexpr, heads: tl.constexpr,
    ):  # fmt: skip
        """As :func:`_own_forward`."""
        which = tl.program_id(0).to(tl.int64)
        m, b = which // B, which % B
        rows, tokens = tl.arange(0, heads), tl.arange(0, padded)
        inside = (rows < H)[:, None] & (tokens < n)[None, :]
        at = (which * H + rows)[:, None] * n + tokens[None, :]
        shares = _softmax(S + at, inside, (tokens < n)[None, :])
        place = m * model + b * example + rows[:, None] * head + tokens[None, :] * token
        values = tl.load(V + place, mask=inside, other=0.0)
        gradient = tl.load(G + which * H + rows, mask=rows < H, other=0.0)
        average = tl.load(A + which * H + rows, mask=rows < H, other=0.0)
        passed = shares * gradient[:, None]
        tl.store(DS + at, passed * (values - average[:, None]), mask=inside)
        tl.store(DV + place, passed, mask=inside)

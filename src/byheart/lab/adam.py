"""A step of Adam for many models at once, each with a learning rate of its own.

M models of P parameters: weights, gradients and both moments are matrices [M, P]. The arithmetic is torch.optim.Adam's:

    m ← m + (1 − β₁)(g − m),   v ← β₂ v + (1 − β₂) g²,   w ← w − s · m/(√v/r + ε),

s = rate/(1 − β₁ᵗ) for each model, [M, 1], and r = √(1 − β₂ᵗ), [1, 1]. Out of PyTorch's operations this passes over
matrices twenty-two times, and on a GPU it is memory that takes the time. Where Triton is (it comes with PyTorch for
CUDA), float32 matrices on a GPU go through one kernel that passes seven times.
"""

import torch

from byheart.lab.schedules import EPSILON

try:
    import triton
    import triton.language as tl
except ImportError:  # PyTorch for CPUs
    triton = None

ENTRIES = 1024
"""Entries that a program of the kernel has before it."""

Pair = tuple[torch.Tensor, torch.Tensor]


def adam_(
    weights: torch.Tensor, gradients: torch.Tensor, moments: Pair, factors: Pair, betas: tuple[float, float]
) -> None:
    """Change ``weights`` and ``moments`` where they are; all matrices are contiguous. ``factors`` are s and r."""
    if triton is None or not weights.is_cuda or weights.dtype != torch.float32:
        plain_adam_(weights, gradients, moments, factors, betas)
        return
    entries = weights.numel()
    grid = (triton.cdiv(entries, ENTRIES),)
    numbers = {"beta1": betas[0], "beta2": betas[1], "epsilon": EPSILON}
    columns = weights.shape[1]
    _step[grid](weights, gradients, *moments, *factors, entries, columns, **numbers, ENTRIES=ENTRIES)


def plain_adam_(
    weights: torch.Tensor, gradients: torch.Tensor, moments: Pair, factors: Pair, betas: tuple[float, float]
) -> None:
    """The same out of PyTorch's own operations."""
    (first, second), (sizes, roots) = moments, factors
    first.lerp_(gradients, 1 - betas[0])
    second.mul_(betas[1]).addcmul_(gradients, gradients, value=1 - betas[1])
    spread = second.sqrt().div_(roots).add_(EPSILON)
    weights.sub_(first.div(spread).mul_(sizes))


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]
    def _step(  # type: ignore[no-untyped-def]
        W, G, first, second, sizes, roots, entries, columns,
        beta1: tl.constexpr, beta2: tl.constexpr, epsilon: tl.constexpr, ENTRIES: tl.constexpr,
    ):  # fmt: skip
        """A program has ENTRIES of the matrices, row after row."""
        start = tl.program_id(0).to(tl.int64) * ENTRIES
        which = tl.arange(0, ENTRIES)
        at, inside = start + which, start + which < entries
        row = start // columns
        rows = row + ((start - row * columns).to(tl.int32) + which) // columns
        g = tl.load(G + at, mask=inside, other=0.0)
        m = tl.load(first + at, mask=inside, other=0.0)
        v = tl.load(second + at, mask=inside, other=0.0)
        w = tl.load(W + at, mask=inside, other=0.0)
        size = tl.load(sizes + rows, mask=inside, other=0.0)
        m += (1 - beta1) * (g - m)
        v = beta2 * v + (1 - beta2) * g * g
        w -= size * (m / (tl.sqrt(v) / tl.load(roots) + epsilon))
        tl.store(first + at, m, mask=inside)
        tl.store(second + at, v, mask=inside)
        tl.store(W + at, w, mask=inside)

"""Adam in kernels, as :mod:`byheart.lab.adam` has it: for weights whose gradient is at hand, and for whole matrices."""

import torch
import triton
import triton.language as tl

from byheart.lab import schedules

EPSILON = tl.constexpr(schedules.EPSILON)
ENTRIES = 1024
"""Entries of the matrices that a program has before it."""

Pair = tuple[torch.Tensor, torch.Tensor]


@triton.jit
def adam(W, first, second, at, inside, gradient, size, root, beta1: tl.constexpr, beta2: tl.constexpr):
    """A step for the weights at ``at``."""
    m = tl.load(first + at, mask=inside, other=0.0)
    m += (1 - beta1) * (gradient - m)
    tl.store(first + at, m, mask=inside)
    v = tl.load(second + at, mask=inside, other=0.0)
    v = beta2 * v + (1 - beta2) * gradient * gradient
    tl.store(second + at, v, mask=inside)
    w = tl.load(W + at, mask=inside, other=0.0)
    w -= size * (m / (tl.sqrt(v) / root + EPSILON))
    tl.store(W + at, w, mask=inside)


@triton.jit
def factors_of(sizes, roots, at, M, m):
    """The factors s and r of model m, out of M, at the step that ``at`` says."""
    step = tl.load(at)
    return tl.load(sizes + step * M + m), tl.load(roots + step)


def matrices(
    weights: torch.Tensor, gradients: torch.Tensor, moments: Pair, factors: Pair, betas: tuple[float, float]
) -> None:
    """A step for contiguous float32 matrices on a GPU, in one pass."""
    entries, columns = weights.numel(), weights.shape[1]
    numbers = {"beta1": betas[0], "beta2": betas[1], "ENTRIES": ENTRIES}
    _matrices[(triton.cdiv(entries, ENTRIES),)](weights, gradients, *moments, *factors, entries, columns, **numbers)


@triton.jit
def _matrices(
    W, G, first, second, sizes, roots, entries, columns,
    beta1: tl.constexpr, beta2: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    """A program has ENTRIES of the matrices, row after row."""
    start = tl.program_id(0).to(tl.int64) * ENTRIES
    which = tl.arange(0, ENTRIES)
    at, inside = start + which, start + which < entries
    row = start // columns
    rows = row + ((start - row * columns).to(tl.int32) + which) // columns
    gradient = tl.load(G + at, mask=inside, other=0.0)
    size = tl.load(sizes + rows, mask=inside, other=0.0)
    adam(W, first, second, at, inside, gradient, size, tl.load(roots), beta1, beta2)

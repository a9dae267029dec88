"""Functions that all kernels share: tiles of matrices, products, a softmax, and Adam's update.

A program works on tiles whose sides are powers of two of at least 16, as tensor cores require. Entries outside of a
matrix are read as zero and never written. Arguments of kernels travel in named tuples; a tuple of constants is one
``tl.constexpr``.
"""

from collections import namedtuple

import triton
import triton.language as tl

from byheart.lab import member

EPSILON = tl.constexpr(member.EPSILON)
MIN_TILE_SIDE = 16
"""Smallest side of a tile, in elements."""


def tile_side(size: int) -> int:
    """Return the side of the smallest tile that holds ``size`` elements.

    >>> tile_side(5), tile_side(17)
    (16, 32)
    """
    side: int = max(MIN_TILE_SIDE, triton.next_power_of_2(size))
    return side


Trained = namedtuple("Trained", ("W", "first", "second", "size", "root"))
"""Pointers to weights and to both moments of Adam, and the factors of Adam's step: its size s and its root r."""
Stacked = namedtuple("Stacked", ("W", "first", "second", "sizes", "roots", "at"))
"""Weights and moments of M models [M, P]; sizes [steps, M] and roots [steps] of Adam's steps; ``at``: which step."""
Betas = namedtuple("Betas", ("BETA1", "BETA2"))


@triton.jit
def weights_of(stacked, M, m, start):
    """Return the weights of model m out of M from ``start`` on, to be updated at the present step."""
    step = tl.load(stacked.at)
    size, root = tl.load(stacked.sizes + step * M + m), tl.load(stacked.roots + step)
    return Trained(stacked.W + start, stacked.first + start, stacked.second + start, size, root)


@triton.jit
def adam(trained, cells, inside, gradient, S: tl.constexpr):
    """Take a step of :mod:`byheart.lab.adam` for the weights at ``cells``; S has BETA1 and BETA2."""
    m = tl.load(trained.first + cells, mask=inside, other=0.0)
    m += (1 - S.BETA1) * (gradient - m)
    tl.store(trained.first + cells, m, mask=inside)
    v = tl.load(trained.second + cells, mask=inside, other=0.0)
    v = S.BETA2 * v + (1 - S.BETA2) * gradient * gradient
    tl.store(trained.second + cells, v, mask=inside)
    w = tl.load(trained.W + cells, mask=inside, other=0.0)
    w -= trained.size * (m / (tl.sqrt(v) / trained.root + EPSILON))
    tl.store(trained.W + cells, w, mask=inside)


@triton.jit
def cells_of(rows, columns, width):
    """Return the offsets of a tile of a matrix whose rows have ``width`` entries."""
    return rows[:, None] * width + columns[None, :]


@triton.jit
def read(matrix, rows, count, columns, width):
    """Read a tile of a matrix with ``count`` rows of ``width`` entries; all columns exist."""
    return tl.load(matrix + cells_of(rows, columns, width), mask=(rows < count)[:, None], other=0.0)


@triton.jit
def write(matrix, rows, count, columns, width, values):
    """Write a tile of a matrix with ``count`` rows of ``width`` entries; all columns exist."""
    tl.store(matrix + cells_of(rows, columns, width), values, mask=(rows < count)[:, None])


@triton.jit
def product(a, b):
    """Multiply float32 tiles by three TF32 products, which is about as exact as one product in float32."""
    return tl.dot(a, b, input_precision="tf32x3")


@triton.jit
def softmax(scores, inside):
    """Return the softmax of each row of a tile over the entries ``inside``."""
    scores = tl.where(inside, scores, float("-inf"))
    raised = tl.exp(scores - tl.max(scores, 1)[:, None])
    return raised / tl.sum(raised, 1)[:, None]

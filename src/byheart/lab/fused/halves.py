"""Large products of float32 matrices out of halves: a number is the sum of two that have 11 bits each.

Tensor cores multiply halves (float16) exactly and add in float32, sixteen times as fast as float32 units do. With
a = a' + a″ and b = b' + b″, where a' and b' are the nearest halves and a″ and b″ the nearest to what is left, the
product a'b' + a″b' + a'b″ lacks 2⁻²² of |a||b|. More is lost as tensor cores cut sums off where float32 units round
them: on an H200, Adam's first moments were 7·10⁻⁷ to 7·10⁻⁶ off float64 after ten steps; of float32 products 10⁻⁷, of
TF32 10⁻⁴. Three products are still five times as fast as one of float32.

Halves reach from 2⁻²⁴ to 65,504, so matrices are scaled by powers of two, which is exact: hidden units and weights of a
model by what takes the largest of them to between 2¹⁴ and 2¹⁵, which is looked for at every step, and gradients by what
takes the largest that is possible there.
"""

import torch
import triton
import triton.language as tl

FINER = 2048.0
"""By what the second half of a gradient is multiplied: it has products of its own."""
LARGEST = 32768.0
"""What a scaled gradient may be."""
MULTIPLE = 16
"""Of halves in a row: Triton reads several at once if it knows that 16 divides where a row begins."""


def products(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """``out`` = a·b in float32, for halves [M, …]."""
    if a.is_cuda:
        torch.bmm(a, b, out_dtype=torch.float32, out=out)
    else:  # in Triton's interpreter
        torch.bmm(a.float(), b.float(), out=out)


def padded(size: int, multiple: int = MULTIPLE) -> int:
    """The next multiple.

    >>> padded(17)
    32
    """
    return -(-size // multiple) * multiple


@triton.jit
def cut(x):
    """Both halves of x."""
    high = x.to(tl.float16)
    return high, (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def peek(peaks, m, values):
    """Note the largest of a model's values, as the integer that has its bits: positive numbers are ordered alike."""
    tl.atomic_max(peaks + m, tl.max(tl.abs(values), 0).to(tl.int32, bitcast=True))


@triton.jit
def scale_for(peaks, m, LEAST: tl.constexpr):
    """The power of two that takes a model's largest value to between 2¹⁴ and 2¹⁵, if that is 2^LEAST or more."""
    exponent = tl.maximum((tl.load(peaks + m) >> 23) - 127, LEAST)
    return ((127 + 14 - exponent) << 23).to(tl.float32, bitcast=True)


@triton.jit
def scale_of_units(peaks_H, m):
    """One that leaves room for the unit that is always 1."""
    return scale_for(peaks_H, m, 0)


@triton.jit
def scale_of_weights(peaks_W, m):
    """One that no larger one follows: weights of 2⁻⁴⁰ are as good as zeros."""
    return scale_for(peaks_W, m, -40)


@triton.jit(do_not_specialize=["P", "at_U", "output", "vocab"])
def weights(W, halves_W, peaks_W, P, at_U, output, vocab, WIDE, K, ENTRIES: tl.constexpr, PEEK: tl.constexpr):
    """W_U and b_U of a model, m + 1 rows of ω numbers, as halves [3 K, WIDE]: first, first, second; or their peak."""
    m = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * ENTRIES + tl.arange(0, ENTRIES)
    inside = at < output
    w = tl.load(W + m * P + at_U + at, mask=inside, other=0.0)
    if PEEK:
        peek(peaks_W, m, w)
    else:
        high, low = cut(w * scale_of_weights(peaks_W, m))
        own = halves_W + m * 3 * K * WIDE + at // vocab * WIDE + at % vocab
        tl.store(own, high, mask=inside)
        tl.store(own + K * WIDE, high, mask=inside)
        tl.store(own + 2 * K * WIDE, low, mask=inside)

"""Large products of float32 matrices out of halves: a number is the sum of two that have 11 bits each.

Tensor cores multiply halves (float16) exactly and add in float32, sixteen times as fast as float32 units do. With
a = a' + a″ and b = b' + b″, where a' and b' are the nearest halves and a″ and b″ the nearest to what is left, the
product a'b' + a″b' + a'b″ lacks 2⁻²² of |a||b|, about what float32 itself rounds away. Three products are still five
times as fast as one of float32.

Halves reach from 2⁻²⁴ to 65,504, so matrices are scaled by powers of two, which is exact: :data:`OF_UNITS` for hidden
units, :data:`OF_WEIGHTS` for weights. A unit beyond 4,000, or a weight beyond 1,000, makes infinities: the loss has no
number then, and the model counts as diverged.
"""

import torch
import triton
import triton.language as tl

OF_UNITS, OF_WEIGHTS = 16.0, 64.0
"""By what units and weights are multiplied before they are cut in two."""
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


@triton.jit(do_not_specialize=["P", "at_U", "output", "vocab"])
def weights(W, halves_W, P, at_U, output, vocab, WIDE, K, OF_WEIGHTS: tl.constexpr, ENTRIES: tl.constexpr):
    """W_U and b_U of a model, m + 1 rows of ω numbers, as halves [3 K, WIDE]: first, first, second."""
    m = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * ENTRIES + tl.arange(0, ENTRIES)
    inside = at < output
    high, low = cut(tl.load(W + m * P + at_U + at, mask=inside, other=0.0) * OF_WEIGHTS)
    own = halves_W + m * 3 * K * WIDE + at // vocab * WIDE + at % vocab
    tl.store(own, high, mask=inside)
    tl.store(own + K * WIDE, high, mask=inside)
    tl.store(own + 2 * K * WIDE, low, mask=inside)

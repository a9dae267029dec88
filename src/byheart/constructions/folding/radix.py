"""The radix of the digits: C itself if that pays, otherwise a number slightly above it or the next power of two."""

import math
from functools import cache

LARGEST_PRIME = 13
"""Largest prime factor of a radix: linear systems are solved modulo each one."""
LARGEST = 1 << 16
"""Largest number of labels for a radix other than a power of two; beyond it, other radices save next to nothing."""
_WORTH = (49, 50)
"""Share of a power of two's bits above which another radix is not worth it: it saves under one parameter in 100."""


@cache
def radix_for(labels: int) -> int:
    """Return the smallest radix ≥ max(C, 2) without prime factors above 13, or 2^⌈log₂C⌉ if that has hardly more bits.

    >>> [radix_for(C) for C in (1, 2, 3, 10, 17, 100, 256, 257, 1000)]
    [2, 2, 3, 10, 18, 100, 256, 260, 1024]
    """
    power = 1 << max(1, (labels - 1).bit_length())
    if labels > LARGEST:
        return power
    smooth = next(R for R in range(max(2, labels), power + 1) if factors(R))
    return smooth if smooth ** _WORTH[1] <= power ** _WORTH[0] else power


@cache
def factors(radix: int) -> dict[int, int]:
    """Return the exponent of each prime factor; nothing if a prime factor is larger than 13.

    >>> factors(360), factors(2**60), factors(34)
    ({2: 3, 3: 2, 5: 1}, {2: 60}, {})
    """
    exponents: dict[int, int] = {}
    for prime in range(2, LARGEST_PRIME + 1):
        while radix % prime == 0:
            radix //= prime
            exponents[prime] = exponents.get(prime, 0) + 1
    return exponents if radix == 1 else {}


def bits_of(radix: int) -> float:
    """Return log₂R, exact for powers of two and otherwise slightly too large, never too small.

    >>> bits_of(8), bits_of(3) > math.log2(3)
    (3, True)
    """
    return radix.bit_length() - 1 if radix & radix - 1 == 0 else math.log2(radix) * (1 + 1e-12)

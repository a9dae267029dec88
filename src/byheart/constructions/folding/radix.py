"""The radix of the digits: C itself where that pays, else a number a little above it, or the next power of two."""

import math
from functools import cache

LARGEST_PRIME = 13
"""Linear systems are solved modulo every prime factor of the radix; modulo 2 they are bit-packed, and fast."""
LARGEST = 1 << 16
"""Above this only powers of two: others would save next to nothing."""
_WORTH = (49, 50)
"""A radix with more than 98 % of the bits of a power of two saves less than one parameter in a hundred."""


@cache
def radix_for(labels: int) -> int:
    """The smallest radix ≥ C, 2 that has no prime factor above 13; 2^⌈log₂C⌉ if it has hardly more bits.

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
    """Prime → exponent; empty if a prime factor is larger than 13.

    >>> factors(360), factors(2**60), factors(34)
    ({2: 3, 3: 2, 5: 1}, {2: 60}, {})
    """
    found: dict[int, int] = {}
    for prime in range(2, LARGEST_PRIME + 1):
        while radix % prime == 0:
            radix //= prime
            found[prime] = found.get(prime, 0) + 1
    return found if radix == 1 else {}


def bits_of(radix: int) -> float:
    """log₂R: exact for powers of two, for others a little more than that, never less.

    >>> bits_of(8), bits_of(3) > math.log2(3)
    (3, True)
    """
    return radix.bit_length() - 1 if radix & radix - 1 == 0 else math.log2(radix) * (1 + 1e-12)

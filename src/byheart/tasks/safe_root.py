"""Square roots that err on the safe side, decided in exact arithmetic."""

import math
import sys
from fractions import Fraction


def root_above(square: Fraction) -> float:
    """The smallest float that is at least √``square``; ``inf`` if none is.

    >>> root_above(Fraction(25)), root_above(Fraction(2))
    (5.0, 1.4142135623730951)
    """
    below = root_below(square)
    return below if Fraction(below) ** 2 == square else math.nextafter(below, math.inf)


def root_below(square: Fraction) -> float:
    """The largest float that is at most √``square``.

    >>> root_below(Fraction(25)), root_below(Fraction(2))
    (5.0, 1.414213562373095)
    """
    # Sixty-four correct bits give a float that is the answer or next to it; exact comparison tells which.
    shift = max(0, 130 - square.numerator.bit_length() + square.denominator.bit_length()) // 2 + 1
    root = Fraction(math.isqrt((square.numerator << 2 * shift) // square.denominator), 1 << shift)
    guess = sys.float_info.max if root >= sys.float_info.max else float(root)
    while Fraction(guess) ** 2 > square:
        guess = math.nextafter(guess, 0.0)
    while (higher := math.nextafter(guess, math.inf)) < math.inf and Fraction(higher) ** 2 <= square:
        guess = higher
    return guess

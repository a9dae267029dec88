"""Compiled checks that a sum or product cannot be rounded, whatever the order: the criteria of :mod:`.proved`.

The *unit* of a float is the value of its last bit that is set. Sums of multiples of a unit u are exact in a format of p
bits if neither the positive nor the negative terms add up to more than 2^p·u. ``limits`` holds what is known of the
format, at the indices below.
"""

import numpy as np

from byheart.compiled import jit

NO, ONE, MISSING = np.int64(0), np.int64(1), np.int64(-1)
"""Numbers of the type that all indices have: numba compiles a function again for each other type of an argument."""
BELOW = 1 - 2.0**-53
"""Factor that makes a bound strict, as in ``proved``."""
BITS, FAR, HIGH, SMALLEST, LARGEST = range(5)
"""Entries of ``limits``: the constants of ``proved`` with these names."""


@jit
def unit(x):  # type: ignore[no-untyped-def]
    """Return the value of the last bit of x that is set; infinity for 0. There are no branches, for vectorization."""
    size = abs(x)
    bits = np.float64(size).view(np.int64)
    rest = np.int64(bits & (bits - 1)).view(np.float64)
    its = size if bits & ((1 << 52) - 1) == 0 else size - rest
    return np.inf if size == 0 else its


@jit
def fits(total, least, limits):  # type: ignore[no-untyped-def]
    """Return True if sums of multiples of ``least``, none of them above ``total``, are never rounded."""
    small = (total <= limits[BITS] * least) & (total <= limits[LARGEST]) & (least >= limits[SMALLEST])
    return small | (total == 0)


@jit
def product(one, other, limits):  # type: ignore[no-untyped-def]
    """Return one · other, and whether it is exact."""
    value = one * other
    return value, fits(abs(value), unit(one) * unit(other) * BELOW, limits)


@jit
def one_sided(above, terms_above, below, terms_below):  # type: ignore[no-untyped-def]
    """Return the larger of the sums of the positive and of the negative terms, and a little more if it is rounded."""
    return max(above / BELOW if terms_above > 1 else above, below / BELOW if terms_below > 1 else below)


@jit
def closely(weights, first, stride, x, lane, count, bias, limits):  # type: ignore[no-untyped-def]
    """Compute b + Σ w x in one lane term by term.

    Term k is ``weights[first + k·stride]·x[k, lane]``. b is ``weights[bias]``, or 0 if ``bias`` is negative.

    Returns the sum, whether it is exact, and the sum of the terms of the rarer sign.
    """
    above, below, least, exact = 0.0, 0.0, np.inf, True
    terms_above, terms_below = NO, NO
    for k in range(count + 1):
        if k == count and bias < 0:
            break
        w, factor = (weights[bias], 1.0) if k == count else (weights[first + k * stride], x[k, lane])
        term = w * factor
        if term == 0:
            exact &= w == 0 or factor == 0
            continue
        its = unit(w) * unit(factor)
        exact &= fits(abs(term), its * BELOW, limits)
        least = min(least, its)
        if term > 0:
            above, terms_above = above + term, terms_above + 1
        else:
            below, terms_below = below - term, terms_below + 1
    value, partial = above - below, one_sided(above, terms_above, below, terms_below)
    if terms_above + terms_below <= 2:  # there is no partial sum but the sum
        partial = abs(value) / BELOW
    return value, exact and fits(partial, least, limits), min(above, below) / BELOW

"""Dense linear systems modulo 2, bit-packed, eliminated 64 unknowns at a time by the method of the four Russians.

Within a *panel*, the 64 unknowns of one word, only that word of every equation is eliminated, and for each equation is
noted which pivots it takes. All other words follow at once: the sums of eight pivot rows each are tabulated, so that an
equation looks up eight sums where it would add up to 64 rows.

The result is that of ``band``, with equations in another order; this module too imports numba.
"""

import numpy as np
from numpy.typing import NDArray

from byheart.compiled import jit
from byheart.constructions.gadgets.parities.band import BandEchelon


def reduce(cells: NDArray[np.int64], unknowns: int) -> BandEchelon:
    """Eliminate. ``cells`` [m, k] are the unknowns of each equation (−1: none).

    >>> from byheart.constructions.gadgets.parities.band import solve
    >>> system = reduce(np.array([[1, -1], [0, 1]]), unknowns=2)
    >>> solve(system, np.array([1, 0], dtype=np.uint8), np.zeros(2, dtype=np.uint8)).tolist()
    [1, 1]
    """
    return reduce_packed(_packed(cells, (unknowns + 63) >> 6), unknowns)


def reduce_packed(packed: NDArray[np.uint64], unknowns: int) -> BandEchelon:
    """The same for equations [m, words] whose unknowns are bits, lowest first; what is ``packed`` is overwritten."""
    order, pivot, used, rows = _reduce(packed, unknowns)
    extent, found = np.zeros(unknowns, dtype=np.int64), pivot[pivot >= 0]
    extent[found] = packed.shape[1] - (found >> 6)
    return BandEchelon(np.zeros(len(packed), dtype=np.int64), pivot, used[order], rows, extent, order)


@jit
def _packed(cells, words):  # type: ignore[no-untyped-def]
    packed = np.zeros((len(cells), words), np.uint64)
    for e in range(len(cells)):
        for cell in cells[e]:
            if cell >= 0:
                packed[e, cell >> 6] ^= np.uint64(1) << np.uint64(cell & 63)
    return packed


@jit
def _reduce(left, unknowns):  # type: ignore[no-untyped-def]
    count, words = left.shape
    used = np.zeros_like(left)
    rows = np.zeros((unknowns, words), np.uint64)
    order, pivot = np.arange(count), np.full(count, -1, np.int64)
    sums = np.zeros((8, 256, words), np.uint64)
    done = 0
    for panel in range(words):
        found = _eliminate_panel(left, used, order, pivot, done, panel, unknowns)
        for number in range(done, found):
            _follow(left, used, order, pivot, done, number, panel)
            row = rows[pivot[number]]
            for i in range(words - panel):
                row[i] = left[order[number], panel + i]
        if found > done and panel + 1 < words:
            _tabulate(sums, rows, panel, unknowns, words)
            _look_up(left, used, order, found, sums, panel, words)
        done = found
    return order, pivot, used, rows


@jit
def _eliminate_panel(left, used, order, pivot, done, panel, unknowns):  # type: ignore[no-untyped-def]
    """One word of all equations from ``done`` on; returns how many have pivots then."""
    start, count = done, len(order)
    word, taken = np.empty(count, np.uint64), np.zeros(count, np.uint64)
    for e in range(start, count):
        word[e] = left[order[e], panel]
    for bit in range(min(64, unknowns - (panel << 6))):
        mask = np.uint64(1) << np.uint64(bit)
        first = done
        while first < count and not word[first] & mask:
            first += 1
        if first == count:
            continue
        order[done], order[first] = order[first], order[done]
        word[done], word[first] = word[first], word[done]
        taken[done], taken[first] = taken[first], taken[done]
        pivot[done] = (panel << 6) + bit
        value = word[done]
        done += 1
        for e in range(done, count):
            hit = (word[e] >> np.uint64(bit)) & np.uint64(1)
            word[e] ^= value * hit
            taken[e] |= hit << np.uint64(bit)
    for e in range(start, count):
        left[order[e], panel] = word[e]
        used[order[e], panel] = taken[e]
    return done


@jit
def _follow(left, used, order, pivot, start, number, panel):  # type: ignore[no-untyped-def]
    """The other words of a pivot row: those of the pivots before it in the panel that it has taken."""
    own = order[number]
    for k in range(start, number):
        if used[own, panel] & (np.uint64(1) << np.uint64(pivot[k] & 63)):
            other = order[k]
            for i in range(panel + 1, left.shape[1]):
                left[own, i] ^= left[other, i]


@jit
def _tabulate(sums, rows, panel, unknowns, words):  # type: ignore[no-untyped-def]
    """sums[g, v]: of the pivot rows whose bits are set in byte g of a word, where that byte is v."""
    for group in range(8):
        for value in range(1, 256):
            bit = 0
            while not value & (1 << bit):
                bit += 1
            unknown = (panel << 6) + 8 * group + bit
            if unknown >= unknowns:
                continue
            rest = value & (value - 1)
            for i in range(1, words - panel):
                sums[group, value, i] = sums[group, rest, i] ^ rows[unknown, i]


@jit
def _look_up(left, used, order, found, sums, panel, words):  # type: ignore[no-untyped-def]
    """The other words of all equations without a pivot."""
    for e in range(found, len(order)):
        row = left[order[e], panel:]
        taken = np.int64(used[order[e], panel])
        a, b = sums[0, taken & 255], sums[1, (taken >> 8) & 255]
        c, d = sums[2, (taken >> 16) & 255], sums[3, (taken >> 24) & 255]
        f, g = sums[4, (taken >> 32) & 255], sums[5, (taken >> 40) & 255]
        h, k = sums[6, (taken >> 48) & 255], sums[7, (taken >> 56) & 255]
        for i in range(1, words - panel):
            row[i] ^= a[i] ^ b[i] ^ c[i] ^ d[i] ^ f[i] ^ g[i] ^ h[i] ^ k[i]

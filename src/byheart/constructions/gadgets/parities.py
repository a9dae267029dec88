"""Linear systems modulo 2, bit-packed: eliminate once, then solve for many right-hand sides in linear time.

**Banded systems.** Equation e has a few unknowns, all within W words of 64 bits from its base, and equations are sorted
by base. Each equation is reduced by the existing pivots, lowest unknown first, until its lowest unknown has no pivot:
that unknown becomes the equation's own pivot. Rows never grow beyond the band, so the cost is at most
(equations)·(band)·W. The pivots used are recorded as bits, so that a right-hand side can follow later.

**Dense systems** are eliminated 64 unknowns at a time by the method of the four Russians. Within a *panel*, the 64
unknowns of one word, only that word of every equation is eliminated, and the pivots that each equation takes are noted.
All other words follow at once: the sums of eight pivot rows each are tabulated, so that an equation looks up eight sums
instead of adding up to 64 rows.

This module imports numba; import it where it is needed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.compiled import jit


@dataclass(frozen=True, eq=False)
class BandEchelon:
    """A system of m equations in echelon form."""

    base: NDArray[np.int64]
    """First word of each equation [m]."""
    pivot: NDArray[np.int64]
    """Unknown that each equation determines [m], or −1 if the equation depends on earlier ones."""
    used: NDArray[np.uint64]
    """Bits of the pivots that reduced each equation [m, W]."""
    rows: NDArray[np.uint64]
    """Equation that determines each unknown [unknowns, W], from the unknown's word on; 0 for free unknowns."""
    extent: NDArray[np.int64]
    """Number of words of ``rows`` in use for each unknown; 0 for free unknowns."""
    order: NDArray[np.int64] | None = None
    """Index of each equation in the order of the input; None if the order is the same."""

    @property
    def dependent(self) -> int:
        """Number of equations that depend on others. A random right-hand side contradicts each half of the time."""
        return int((self.pivot < 0).sum())


def reduce_band(cells: NDArray[np.int64], base: NDArray[np.int64], unknowns: int, words: int) -> BandEchelon:
    """Eliminate a banded system.

    ``cells`` [m, k] holds the unknowns of each equation (−1: none), ``base`` [m] each equation's first word, ascending.

    >>> system = reduce_band(np.array([[0, 1], [1, -1]]), np.array([0, 0]), unknowns=2, words=1)
    >>> solve(system, np.array([1, 1], dtype=np.uint8), np.zeros(2, dtype=np.uint8)).tolist()
    [0, 1]
    """
    return BandEchelon(base, *_reduce_banded(cells, base, unknowns, words))


def solve(system: BandEchelon, right: NDArray[np.uint8], free: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    """Solve for a right-hand side [m], with free unknowns from ``free`` [n]; None if there is no solution."""
    ordered = right if system.order is None else right[system.order]
    solution, consistent = _solve(system.base, system.pivot, system.used, system.rows, system.extent, ordered, free)
    return solution if consistent else None


_DE_BRUIJN = 0x03F79D71B4CB0A89
"""De Bruijn sequence: its 64 windows of six bits differ, so its highest six bits after a shift by k determine k."""
_PLACE = np.zeros(64, np.int64)
_PLACE[[(_DE_BRUIJN << place & (1 << 64) - 1) >> 58 for place in range(64)]] = np.arange(64)


@jit
def _lowest(value):  # type: ignore[no-untyped-def]
    """Return the number of the lowest set bit."""
    lowest = value & (~value + np.uint64(1))
    return _PLACE[(lowest * np.uint64(_DE_BRUIJN)) >> np.uint64(58)]


@jit
def _reduce_banded(cells, base, unknowns, words):  # type: ignore[no-untyped-def]
    m, k = cells.shape
    rows = np.zeros((unknowns, words), np.uint64)
    used = np.zeros((m, words), np.uint64)
    extent = np.zeros(unknowns, np.int64)
    pivot = np.full(m, -1, np.int64)
    row = np.zeros(words, np.uint64)
    one = np.uint64(1)
    for e in range(m):
        start = base[e]
        row[:] = 0
        end = 0
        for j in range(k):
            if cells[e, j] >= 0:
                word = (cells[e, j] >> 6) - start
                row[word] ^= one << np.uint64(cells[e, j] & 63)
                end = max(end, word + 1)
        word = 0
        while word < end:
            value = row[word]
            if value == 0:
                word += 1
                continue
            bit = _lowest(value)
            unknown = ((start + word) << 6) + bit
            length = extent[unknown]
            if length == 0:
                pivot[e] = unknown
                extent[unknown] = end - word
                for i in range(end - word):
                    rows[unknown, i] = row[word + i]
                break
            for i in range(length):
                row[word + i] ^= rows[unknown, i]
            used[e, word] |= one << np.uint64(bit)
            end = max(end, word + length)
    return pivot, used, rows, extent


@jit
def _parity(value):  # type: ignore[no-untyped-def]
    for shift in (32, 16, 8, 4, 2, 1):
        value ^= value >> np.uint64(shift)
    return np.uint8(value & np.uint64(1))


@jit
def _solve(base, pivot, used, rows, extent, right, free):  # type: ignore[no-untyped-def]
    unknowns, words = rows.shape
    total = (unknowns >> 6) + words + 1
    one = np.uint64(1)
    reduced = np.zeros(total, np.uint64)
    consistent = True
    for e in range(len(base)):
        folded = np.uint64(0)
        # Pivots beyond an equation's own have not reduced it.
        for i in range((pivot[e] >> 6) - base[e] + 1 if pivot[e] >= 0 else words):
            folded ^= used[e, i] & reduced[base[e] + i]
        value = right[e] ^ _parity(folded)
        if pivot[e] >= 0:
            if value:
                reduced[pivot[e] >> 6] |= one << np.uint64(pivot[e] & 63)
        elif value:
            consistent = False
            break
    found = np.zeros(unknowns, np.uint8)
    packed = np.zeros(total, np.uint64)
    if consistent:
        for unknown in range(unknowns - 1, -1, -1):
            word, bit = unknown >> 6, np.uint64(unknown & 63)
            if extent[unknown]:
                folded = np.uint64(0)
                for i in range(extent[unknown]):
                    folded ^= rows[unknown, i] & packed[word + i]
                value = _parity(folded) ^ np.uint8((reduced[word] >> bit) & one)
            else:
                value = free[unknown]
            found[unknown] = value
            if value:
                packed[word] |= one << bit
    return found, consistent


def reduce_dense(cells: NDArray[np.int64], unknowns: int) -> BandEchelon:
    """Eliminate a dense system; ``cells`` [m, k] holds the unknowns of each equation (−1: none).

    >>> system = reduce_dense(np.array([[1, -1], [0, 1]]), unknowns=2)
    >>> solve(system, np.array([1, 0], dtype=np.uint8), np.zeros(2, dtype=np.uint8)).tolist()
    [1, 1]
    """
    return reduce_packed(_packed(cells, (unknowns + 63) >> 6), unknowns)


def reduce_packed(packed: NDArray[np.uint64], unknowns: int) -> BandEchelon:
    """Eliminate a dense system of equations [m, words], with unknowns as bits, lowest first; overwrites ``packed``."""
    order, pivot, used, rows = _reduce_packed(packed, unknowns)
    extent, determined = np.zeros(unknowns, dtype=np.int64), pivot[pivot >= 0]
    extent[determined] = packed.shape[1] - (determined >> 6)
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
def _reduce_packed(left, unknowns):  # type: ignore[no-untyped-def]
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
    """Eliminate one word of all equations from ``done`` on; return the number of equations with pivots afterwards."""
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
    """Complete the other words of a pivot row with those of the panel's earlier pivots that it has taken."""
    own = order[number]
    for k in range(start, number):
        if used[own, panel] & (np.uint64(1) << np.uint64(pivot[k] & 63)):
            other = order[k]
            for i in range(panel + 1, left.shape[1]):
                left[own, i] ^= left[other, i]


@jit
def _tabulate(sums, rows, panel, unknowns, words):  # type: ignore[no-untyped-def]
    """Store in sums[g, v] the sum of the pivot rows whose bits are set in byte g of a word, if that byte is v."""
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
    """Complete the other words of all equations without a pivot from the tabulated sums."""
    for e in range(found, len(order)):
        row = left[order[e], panel:]
        taken = np.int64(used[order[e], panel])
        a, b = sums[0, taken & 255], sums[1, (taken >> 8) & 255]
        c, d = sums[2, (taken >> 16) & 255], sums[3, (taken >> 24) & 255]
        f, g = sums[4, (taken >> 32) & 255], sums[5, (taken >> 40) & 255]
        h, k = sums[6, (taken >> 48) & 255], sums[7, (taken >> 56) & 255]
        for i in range(1, words - panel):
            row[i] ^= a[i] ^ b[i] ^ c[i] ^ d[i] ^ f[i] ^ g[i] ^ h[i] ^ k[i]

"""Solve for the words of a table, bit plane after bit plane, from the lowest up: the same for all layouts.

A question asks for some bits of the sum of its words. Bit p of the sum is the parity of the words' bits p and of the
carry from the planes below, which are solved by then. So each question is one equation modulo 2. If equations depend on
others and contradict them, the plane below gets other free bits: these change the carries, and break nothing that is
solved.

Planes that the same questions read share one elimination. Eliminations do not depend on the planes below, so they may
run ahead on other threads.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.compiled import jit
from byheart.compiler.layouts import Unsolvable
from byheart.constructions.gadgets import parities
from byheart.progress import Report

Bits = NDArray[np.uint8]
Ids = NDArray[np.int64]
MOST_DEPENDENT = 6
"""Highest number of equations of a plane that may depend on others."""
_KEY = 0x9E3779B97F4A7C15
"""An odd number of 64 bits: its powers mix unknowns into a key."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Equations:
    """The words that each question of a table reads, and the bits that their sum has to have."""

    cells: Ids
    """[N, k]: numbers of the words; −1 for none."""
    offset: Ids
    """[N]: a code word's bits are those below this one, the highest first."""
    word: Ids
    """[N]: code words."""
    length: Ids
    """[N]: bits of each code word."""
    bits: int
    """Bits per word of the table."""
    wraps: bool
    """True if code words go on at the highest bit, which reading complements."""
    exponent: int = 0
    """Bits of each exponent, above the ``bits`` of a word. Exponents are a sum of their own."""
    exponent_first: NDArray[np.bool_] | None = None
    """[N]: True for questions whose code word begins in the exponents."""
    before: Ids | None = None
    """[N]: what each sum begins with; None: 0."""
    base: Ids | None = None
    """[N]: the first 64-bit word of each equation, if the systems are banded."""
    band: int = 0
    """Number of 64-bit words from there on that hold all unknowns of an equation."""

    def asked(self, plane: int) -> tuple[Ids, Bits]:
        """Return the questions that read the plane, and the bit of the sum that each asks for there."""
        if plane >= self.bits:
            assert self.exponent_first is not None
            place = np.where(self.exponent_first, self.bits + self.exponent - 1 - plane, self.length)
        else:
            place = self.offset - 1 - plane
            if self.wraps:
                place %= self.bits
            if self.exponent_first is not None:
                place += self.exponent * self.exponent_first
        members = np.flatnonzero((place >= 0) & (place < self.length))
        bits = (self.word[members] >> (self.length[members] - 1 - place[members])) & 1
        if self.wraps and plane == self.bits - 1:
            bits ^= 1
        return members, bits.astype(np.uint8)


@dataclass(frozen=True, eq=False)
class _Plane:
    """The questions that read one plane, the bits that they ask for, and their system."""

    members: Ids
    wanted: Bits
    system: Callable[[], parities.BandEchelon]


def solve_planes(
    equations: Equations,
    unknowns: int,
    rng: np.random.Generator,
    *,
    threads: int = 0,
    report: Report | None = None,
) -> "Planes":
    """Return words that solve all equations. ``threads`` eliminate that many planes ahead. Raise Unsolvable."""
    planes, count = Planes(equations.cells, unknowns, rng, equations.before), equations.bits + equations.exponent
    with ThreadPoolExecutor(max(1, threads)) as pool:
        for number, plane in enumerate(_eliminated(planes, equations, count, pool, threads)):
            if number == equations.bits:
                planes.restart()
            planes.fill(number, number % equations.bits, plane.members, plane.wanted, plane.system())
            if report is not None:
                report(number + 1, count)
    return planes


def _eliminated(
    planes: "Planes", equations: Equations, count: int, pool: ThreadPoolExecutor, threads: int
) -> Iterator[_Plane]:
    """Yield the planes in order, while the next ones are eliminated on other ``threads``, if there are any."""
    waiting: deque[_Plane] = deque()
    last: _Plane | None = None
    for number in range(count + threads):
        if number < count:
            members, wanted = equations.asked(number)
            if last is not None and np.array_equal(members, last.members):
                system = last.system
            else:
                base = None if equations.base is None else equations.base[members]
                system = _started(pool if threads else None, planes, members, base, equations.band)
            waiting.append(last := _Plane(members, wanted, system))
        if number >= threads:
            yield waiting.popleft()


def _started(
    pool: ThreadPoolExecutor | None, planes: "Planes", members: Ids, base: Ids | None, width: int
) -> Callable[[], parities.BandEchelon]:
    """Start to eliminate, and return a function that returns the system. Without a pool it is eliminated at once."""
    if pool is not None:
        return pool.submit(planes.reduced, members, base, width).result
    system = planes.reduced(members, base, width)
    return lambda: system


def count_dependent(cells: Ids) -> int:
    """Return a lower bound on the equations over the unknowns ``cells`` [m, k] (−1: none) that depend on others.

    Nothing is eliminated: the rank is at most the number of different equations, and at most the number of unknowns in
    them. Equations are sorted by keys and then compared themselves, so no two different ones count as the same.

    >>> count_dependent(np.array([[0, 1], [0, 1], [1, 2]])), count_dependent(np.array([[0, 1], [0, -1], [1, -1]]))
    (1, 1)
    """
    unknowns = int(np.count_nonzero(np.bincount(cells.ravel() + 1)[1:]))
    powers = np.uint64(_KEY) ** np.arange(1, cells.shape[1] + 1, dtype=np.uint64)
    ordered = cells[np.argsort(cells.astype(np.uint64) @ powers)]
    again = int(np.count_nonzero((ordered[1:] == ordered[:-1]).all(axis=1)))
    return len(cells) - min(len(cells) - again, unknowns)


def check_dependent(dependent: int, equations: int) -> None:
    """Raise Unsolvable if too many of a plane's equations depend on others."""
    if dependent > MOST_DEPENDENT:
        raise Unsolvable(f"{dependent} of {equations} equations of a bit plane depend on others", dependent=dependent)


class Planes:
    """The words so far, and for every question the sum of the words that it reads."""

    def __init__(self, cells: Ids, unknowns: int, rng: np.random.Generator, before: Ids | None = None) -> None:
        """Begin with all words 0: ``cells`` [N, k] and ``before`` [N] are those of :class:`Equations`."""
        self.cells, self.unknowns, self.rng = cells, unknowns, rng
        self.before = np.zeros(len(cells), dtype=np.int64) if before is None else before
        self.words = np.zeros(unknowns, dtype=np.int64)
        self.restart()

    def restart(self) -> None:
        """Begin the sums anew, without carries from the planes below."""
        self.sums = self.before.copy()
        self.below: tuple[int, int, parities.BandEchelon, Bits, Bits] | None = None

    def reduced(self, members: Ids, base: Ids | None = None, width: int = 0) -> parities.BandEchelon:
        """Return the system of the questions ``members``. Raise Unsolvable if too many equations depend on others.

        If the unknowns lie in a band, ``base`` and ``width`` say where (see ``band``).
        """
        cells = self.cells[members]
        if base is None:
            system = parities.reduce_dense(cells, self.unknowns)
        else:
            system = parities.reduce_band(cells, base, self.unknowns, width)
        check_dependent(system.dependent, len(members))
        return system

    def fill(self, plane: int, place: int, members: Ids, wanted: Bits, system: parities.BandEchelon) -> None:
        """Find the bits ``plane`` of all words so that bit ``place`` of the sums of ``members`` is as ``wanted``."""
        for _ in range(4 << system.dependent):
            right = wanted ^ ((self.sums[members] >> place) & 1).astype(np.uint8)
            bits = parities.solve(system, right, self._random())
            if bits is not None:
                self._add(bits, plane, place, 1)
                self.below = (plane, place, system, right, bits)
                return
            if self.below is None:
                break
            self.shake()
        raise Unsolvable(f"bit plane {plane}: dependent equations contradict")

    def _random(self) -> Bits:
        return self.rng.integers(0, 2, size=self.unknowns, dtype=np.uint8)

    def _add(self, bits: Bits, plane: int, place: int, sign: int) -> None:
        self.words += sign * (bits.astype(np.int64) << plane)
        _add_up(self.sums, self.cells, bits, sign << place)

    def shake(self) -> None:
        """Replace the bits of the last plane by another solution, which carries other bits into the next plane."""
        assert self.below is not None
        plane, place, system, right, old = self.below
        new = parities.solve(system, right, self._random())
        assert new is not None
        self._add(old, plane, place, -1)
        self._add(new, plane, place, 1)
        self.below = (plane, place, system, right, new)


@jit
def _add_up(sums, cells, bits, value):  # type: ignore[no-untyped-def]
    for e in range(len(sums)):
        count = 0
        for j in range(cells.shape[1]):  # bits are random: a branch would be mispredicted every other time
            count += bits[max(cells[e, j], 0)] & (cells[e, j] >= 0)
        sums[e] += count * value

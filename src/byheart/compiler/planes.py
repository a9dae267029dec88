"""Words found bit plane after bit plane, from the lowest up: what both layouts solve in.

A question asks for some bits of the sum of its words. Bit p of the sum is the parity of the words' bits p and of what
is carried from below, which is known by then: one equation modulo 2. Equations that depend on others and contradict
them are made to agree by other free bits in the plane below, which change the carries and break nothing that is solved.
"""

import numpy as np
from numpy.typing import NDArray

from byheart.compiled import jit
from byheart.compiler.rectangular.dimensions import Unsolvable
from byheart.constructions.gadgets.parities import band, dense

Bits = NDArray[np.uint8]
Ids = NDArray[np.int64]
MOST_DEPENDENT = 6
_KEY = 0x9E3779B97F4A7C15
"""An odd number of 64 bits: its powers mix unknowns into a key."""


def count_dependent(cells: Ids) -> int:
    """At least so many of the equations over these unknowns [m, k] (−1: none) depend on others; none is eliminated.

    The rank is at most the number of different equations, and at most that of the unknowns in them. What is counted as
    the same equation is the same: their keys sort them, themselves are compared.

    >>> count_dependent(np.array([[0, 1], [0, 1], [1, 2]])), count_dependent(np.array([[0, 1], [0, -1], [1, -1]]))
    (1, 1)
    """
    unknowns = int(np.count_nonzero(np.bincount(cells.ravel() + 1)[1:]))
    powers = np.uint64(_KEY) ** np.arange(1, cells.shape[1] + 1, dtype=np.uint64)
    ordered = cells[np.argsort(cells.astype(np.uint64) @ powers)]
    again = int(np.count_nonzero((ordered[1:] == ordered[:-1]).all(axis=1)))
    return len(cells) - min(len(cells) - again, unknowns)


def check_dependent(dependent: int, equations: int) -> None:
    """Unsolvable if that many equations of a plane depend on others."""
    if dependent > MOST_DEPENDENT:
        raise Unsolvable(f"{dependent} of {equations} equations of a bit plane depend on others", dependent=dependent)


class Planes:
    """The words so far, and for every question the sum of those that it reads."""

    def __init__(self, cells: Ids, unknowns: int, rng: np.random.Generator, before: Ids | None = None) -> None:
        """``cells`` [N, k]: words that each question reads, −1 for none; ``before`` [N]: what its sum begins with."""
        self.cells, self.unknowns, self.rng = cells, unknowns, rng
        self.before = np.zeros(len(cells), dtype=np.int64) if before is None else before
        self.words = np.zeros(unknowns, dtype=np.int64)
        self.restart()

    def restart(self) -> None:
        """Sums begin anew, without carries from the planes below."""
        self.sums = self.before.copy()
        self.below: tuple[int, int, band.BandEchelon, Bits, Bits] | None = None

    def reduced(self, members: Ids, base: Ids | None = None, width: int = 0) -> band.BandEchelon:
        """The system of the questions ``members``; raises Unsolvable if too many of its equations depend on others.

        Where cells are in a band, ``base`` and ``width`` say which: see ``band``.
        """
        cells = self.cells[members]
        system = dense.reduce(cells, self.unknowns) if base is None else band.reduce(cells, base, self.unknowns, width)
        check_dependent(system.dependent, len(members))
        return system

    def fill(self, plane: int, place: int, members: Ids, wanted: Bits, system: band.BandEchelon) -> None:
        """Find the bits ``plane`` of all words, bit ``place`` of the sums being ``wanted`` for ``members``."""
        for _ in range(4 << system.dependent):
            right = wanted ^ ((self.sums[members] >> place) & 1).astype(np.uint8)
            bits = band.solve(system, right, self._random())
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
        """Another solution of the plane filled last: other carries into the next one, nothing that is solved breaks."""
        assert self.below is not None
        plane, place, system, right, old = self.below
        new = band.solve(system, right, self._random())
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

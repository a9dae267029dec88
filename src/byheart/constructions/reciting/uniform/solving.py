"""Solving for the words of one table of one block, bit plane after bit plane from the lowest up.

A question asks for some bits of the sum of its words. Bit p of the sum is the parity of the words' bits p and of what
is carried from below, which is known by then: one equation modulo 2. There are no more equations than words in a plane,
and those of random cells are independent, or nearly: one that depends on others and contradicts them is made to agree
by other free bits in the plane below.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.reciting import band
from byheart.constructions.reciting.sizes import Unsolvable
from byheart.constructions.reciting.uniform.sizes import WORD
from byheart.networks.exact.kernels import jit

Bits = NDArray[np.uint8]
_MOST_DEPENDENT = 6
_MASK = (1 << WORD) - 1


@dataclass(frozen=True, eq=False)
class Questions:
    """Those of one table."""

    cells: NDArray[np.int64]
    """[m, 16]: words, −1 for none."""
    before: NDArray[np.int64]
    """[m]: what is in the sum before any word is."""
    offset: NDArray[np.int64]
    word: NDArray[np.int64]
    length: NDArray[np.int64]

    def asked(self, plane: int) -> tuple[NDArray[np.int64], Bits]:
        """Which questions read the plane, and the bit of the sum that each wants there.

        A code begins below its offset and goes on at the highest bit, which the centring of the sum complements.
        """
        place = (self.offset - 1 - plane) % WORD
        members = np.flatnonzero(place < self.length)
        wanted = (self.word[members] >> (self.length[members] - 1 - place[members])) & 1
        return members, (wanted ^ (plane == WORD - 1)).astype(np.uint8)


def solve(questions: Questions, unknowns: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The words, below 2^WORD each; raises Unsolvable."""
    for _ in range(3):
        solver = _Solver(questions, unknowns, rng)
        for plane in range(WORD):
            solver.fill(plane)
        # Half of all, the one value with two centred forms, may come out as the wrong one.
        if not ((solver.sums & _MASK) == 1 << (WORD - 1)).any():
            return solver.words
    raise Unsolvable("a sum is 2^(WORD − 1)")


class _Solver:
    def __init__(self, questions: Questions, unknowns: int, rng: np.random.Generator) -> None:
        self.questions, self.unknowns, self.rng = questions, unknowns, rng
        self.words = np.zeros(unknowns, dtype=np.int64)
        self.sums = questions.before.copy()
        self.below: tuple[int, band.Reduced, Bits, Bits] | None = None

    def fill(self, plane: int) -> None:
        """Find the plane's bits."""
        members, wanted = self.questions.asked(plane)
        base = np.zeros(len(members), dtype=np.int64)
        system = band.reduce(self.questions.cells[members], base, self.unknowns, (self.unknowns >> 6) + 1)
        if system.dependent > _MOST_DEPENDENT:
            raise Unsolvable(f"{system.dependent} of {len(members)} equations of a bit plane depend on others")
        for _ in range(4 << system.dependent):
            right = wanted ^ ((self.sums[members] >> plane) & 1).astype(np.uint8)
            bits = band.solve(system, right, self._random())
            if bits is not None:
                self._add(bits, plane, 1)
                self.below = (plane, system, right, bits)
                return
            if self.below is None:
                break
            self._shake()
        raise Unsolvable(f"bit plane {plane}: dependent equations contradict")

    def _random(self) -> Bits:
        return self.rng.integers(0, 2, size=self.unknowns, dtype=np.uint8)

    def _add(self, bits: Bits, plane: int, sign: int) -> None:
        self.words += sign * (bits.astype(np.int64) << plane)
        _add_up(self.sums, self.questions.cells, bits, sign << plane)

    def _shake(self) -> None:
        """Another solution of the plane below: other carries, nothing that is solved breaks."""
        assert self.below is not None
        plane, system, right, old = self.below
        new = band.solve(system, right, self._random())
        assert new is not None
        self._add(old, plane, -1)
        self._add(new, plane, 1)
        self.below = (plane, system, right, new)


@jit
def _add_up(sums, cells, bits, value):  # type: ignore[no-untyped-def]
    for e in range(len(sums)):
        for j in range(cells.shape[1]):
            if cells[e, j] >= 0 and bits[cells[e, j]]:
                sums[e] += value

"""Solving for the words of one table of one block; see :mod:`byheart.constructions.reciting.planes`.

There are no more equations than words in a plane, and those of random cells are independent, or nearly.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.reciting.planes import Bits, Planes
from byheart.constructions.reciting.sizes import Unsolvable
from byheart.constructions.reciting.uniform.sizes import WORD


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
    bits: int = WORD
    """Of a word of the table."""

    def asked(self, plane: int) -> tuple[NDArray[np.int64], Bits]:
        """Which questions read the plane, and the bit of the sum that each wants there.

        A code begins below its offset and goes on at the highest bit, which the centring of the sum complements.
        """
        place = (self.offset - 1 - plane) % self.bits
        members = np.flatnonzero(place < self.length)
        wanted = (self.word[members] >> (self.length[members] - 1 - place[members])) & 1
        return members, (wanted ^ (plane == self.bits - 1)).astype(np.uint8)


def solve(questions: Questions, unknowns: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The words, below 2^WORD each; raises Unsolvable."""
    for _ in range(3):
        planes = filled(questions, unknowns, rng)
        if not own_negative(planes.sums, WORD).any():
            return planes.words
    raise Unsolvable("a sum is 2^(WORD − 1)")


def filled(questions: Questions, unknowns: int, rng: np.random.Generator) -> Planes:
    """All bit planes; those that the same questions read share one elimination. Raises Unsolvable."""
    planes = Planes(questions.cells, unknowns, rng, questions.before)
    before, system = np.zeros(0, dtype=np.int64), None
    for plane in range(questions.bits):
        members, wanted = questions.asked(plane)
        if system is None or not np.array_equal(members, before):
            system = planes.reduced(members)
        planes.fill(plane, plane, members, wanted, system)
        before = members
    return planes


def own_negative(sums: NDArray[np.int64], bits: int) -> NDArray[np.bool_]:
    """Where a sum is 2^(bits − 1) modulo 2^bits, its own negative: centred, it may get either sign."""
    found: NDArray[np.bool_] = (sums & ((1 << bits) - 1)) == 1 << (bits - 1)
    return found

"""Solving for the words of one table of one block; see :mod:`byheart.constructions.reciting.planes`.

There are no more equations than words in a plane, and those of random cells are independent, or nearly.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.reciting.planes import Bits, Planes
from byheart.constructions.reciting.sizes import Unsolvable
from byheart.constructions.reciting.uniform.sizes import WORD

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
        planes = Planes(questions.cells, unknowns, rng, questions.before)
        for plane in range(WORD):
            members, wanted = questions.asked(plane)
            system = planes.reduced(members, np.zeros(len(members), dtype=np.int64), (unknowns >> 6) + 1)
            planes.fill(plane, plane, members, wanted, system)
        # 2^(WORD − 1) is its own negative modulo 2^WORD: centred, a sum of this value may get either sign.
        if not ((planes.sums & _MASK) == 1 << (WORD - 1)).any():
            return planes.words
    raise Unsolvable("a sum is 2^(WORD − 1)")

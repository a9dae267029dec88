"""Solving for the words of one table of one block; see :mod:`byheart.compiler.planes`.

There are no more equations than words in a plane, and those of random cells are independent, or nearly. Sums are to be
exact in every order. Where one is not, the highest bits that no question asks for are drawn again.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.planes import Bits, Planes
from byheart.compiler.rectangular.dimensions import Unsolvable
from byheart.compiler.stock.dimensions import BITS, GATE, GROUPS, LANES, UP

LARGEST = 1 << 24
"""Sums of integers up to this are exact in float32."""
TRIES = 40


@dataclass(frozen=True, eq=False)
class StockEquations:
    """Those of one table."""

    cells: NDArray[np.int64]
    """[m, 12]: words, −1 for none; group by group, lane by lane."""
    before: NDArray[np.int64]
    """[m]: what is in the sum before any word is."""
    offset: NDArray[np.int64]
    word: NDArray[np.int64]
    length: NDArray[np.int64]
    kind: int
    """UP, DOWN or GATE."""

    @property
    def bits(self) -> int:
        """Of a word of the table."""
        return BITS[self.kind]

    def asked(self, plane: int) -> tuple[NDArray[np.int64], Bits]:
        """Which questions read the plane, and the bit of the sum that each wants there.

        A code begins below its offset and goes on at the highest bit, which the centring of the sum complements.
        """
        place = (self.offset - 1 - plane) % self.bits
        members = np.flatnonzero(place < self.length)
        wanted = (self.word[members] >> (self.length[members] - 1 - place[members])) & 1
        return members, (wanted ^ (plane == self.bits - 1)).astype(np.uint8)


def solve(
    questions: StockEquations, negative: NDArray[np.bool_], rng: np.random.Generator, *, times: int = 1
) -> NDArray[np.int64]:
    """The words of a table, below 2^bits each, found anew up to this many ``times``; raises Unsolvable.

    ``negative`` [unknowns]: those that the network holds less by 2^bits, but for W_gate.
    """
    for _ in range(times - 1):
        try:
            return _solve(questions, negative, rng)
        except Unsolvable:
            continue
    return _solve(questions, negative, rng)


def _solve(questions: StockEquations, negative: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    planes = filled(questions, len(negative), rng)
    for _ in range(TRIES):
        if questions.kind == GATE:
            return planes.words
        signed = planes.words - (negative.astype(np.int64) << questions.bits)
        if exact(signed, planes.sums, questions):
            return signed
        planes.shake()
    raise Unsolvable("no sums were found that are exact in every order")


def filled(questions: StockEquations, unknowns: int, rng: np.random.Generator) -> Planes:
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


def exact(words: NDArray[np.int64], sums: NDArray[np.int64], questions: StockEquations) -> bool:
    """Whether no sum of W_up or W_down can pass 2²⁴ on the way, and none is its own negative modulo 2²²."""
    if own_negative(sums, questions.bits).any():
        return False
    read = np.append(words, 0)[questions.cells].reshape(-1, GROUPS, LANES)
    if questions.kind == UP:
        totals = read.sum(axis=(1, 2))
        return bool((np.abs(totals) + np.abs(questions.before) <= LARGEST).all())
    columns = read.sum(axis=1)
    least, most = np.minimum(columns, 0).sum(axis=1), np.maximum(columns, 0).sum(axis=1)
    return bool((most <= LARGEST).all() and (least >= -LARGEST).all())

"""Solving for the words: bit plane after bit plane, from the lowest up, so that every carry from below is known.

A question reads six words and asks for some bits of their sum. Bit p of the sum is the parity of the six words' bits p
plus a carry that depends on lower bits only: one equation modulo 2. All equations of a plane form a banded system
(``band``); planes that the same questions read (aligned codes) share one elimination. Eliminations do not depend on the
planes below and run ahead on other threads.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code
from byheart.compiler.planes import Planes, check_dependent, count_dependent
from byheart.compiler.rectangular.dimensions import AHEAD, LANES, TableSizes
from byheart.constructions.gadgets.parities import band
from byheart.progress import Report


@dataclass(frozen=True, eq=False)
class TableEquations:
    """Where every question reads, and what it wants to find, sorted by the first row that it reads."""

    cells: NDArray[np.int64]
    """[N, 6]: unknowns, −1 for the null column. Unknown = (row·6 + lane)·columns + column."""
    base: NDArray[np.int64]
    """[N]: the 64-bit word of the first unknown of the question's band."""
    offset: NDArray[np.int64]
    exponent_first: NDArray[np.bool_]
    word: NDArray[np.int64]
    length: NDArray[np.int64]


def sort_questions(
    sizes: TableSizes,
    code: Code,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    offset: NDArray[np.int64],
    kind: NDArray[np.int64] | None,
    labels: NDArray[np.int64],
    prints: NDArray[np.int64] | None = None,
) -> TableEquations:
    """From what the front says about each question: rows [N, 2], columns [N, 6], offset, kind, print, and the labels.

    What a question wants to find is its print, and then the code word of its label.
    """
    first = rows.min(axis=1)
    order = np.argsort(first.astype(np.min_scalar_type(sizes.rows)), kind="stable")  # short ones are sorted by counting
    lanes = np.arange(LANES)
    cells = (np.repeat(rows, LANES // 2, axis=1) * LANES + lanes) * sizes.columns + columns
    cells[columns >= sizes.columns] = -1
    exponent_first = np.zeros(len(labels), dtype=bool) if kind is None else kind < sizes.exponent_share
    words, lengths = code.words[labels[order]], code.lengths[labels[order]]
    return TableEquations(
        cells=cells[order],
        base=(first[order] * LANES * sizes.columns) >> 6,
        offset=offset[order],
        exponent_first=exponent_first[order],
        word=words if prints is None else (prints[order] << lengths) + words,
        length=code.refuse + lengths,
    )


def solve(
    questions: TableEquations,
    sizes: TableSizes,
    rng: np.random.Generator,
    threads: int = AHEAD,
    report: Report | None = None,
) -> NDArray[np.int64]:
    """Words as integers [rows, 6, columns], ``word`` bits and above them ``exponent`` bits; raises Unsolvable."""
    check_places(questions, sizes)
    solver = _TableSolver(questions, sizes, rng)
    planes = sizes.word + sizes.exponent
    with ThreadPoolExecutor(threads) as pool:
        for plane, asked in enumerate(_ahead(pool, solver, planes, threads)):
            solver.fill(plane, asked)
            if report is not None:
                report(plane + 1, planes)
    return solver.planes.words.reshape(sizes.rows, LANES, sizes.columns)


def check_places(questions: TableEquations, sizes: TableSizes) -> None:
    """Unsolvable if counting is enough to see that too many equations of the lowest plane depend on others."""
    members, _ = _asked(questions, sizes, 0)
    check_dependent(count_dependent(questions.cells[members]), len(members))


def _asked(q: TableEquations, sizes: TableSizes, plane: int) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Which questions read the plane, and the bit of the sum that each wants there."""
    if plane >= sizes.word:
        place = np.where(q.exponent_first, sizes.word + sizes.exponent - 1 - plane, q.length)
    else:
        turn = (q.offset - 1 - plane) % sizes.word if not sizes.aligned else q.offset - 1 - plane
        place = turn + sizes.exponent * q.exponent_first
    members = np.flatnonzero((place >= 0) & (place < q.length))
    wanted = (q.word[members] >> (q.length[members] - 1 - place[members])) & 1
    if plane == sizes.word - 1 and not sizes.aligned:
        wanted ^= 1
    return members, wanted.astype(np.uint8)


@dataclass(frozen=True, eq=False)
class _Plane:
    """The questions that read one plane (indices), which bit of their code it is, and their system."""

    members: NDArray[np.int64]
    bit: NDArray[np.uint8]
    system: band.BandEchelon


def _ahead(pool: ThreadPoolExecutor, solver: "_TableSolver", planes: int, threads: int) -> Iterator[_Plane]:
    """The planes in order, eliminated a few ahead; a plane with the members of the last one shares its system."""
    waiting: list[tuple[NDArray[np.int64], NDArray[np.uint8], Future[band.BandEchelon]]] = []
    for plane in range(planes + threads):
        if plane < planes:
            members, bit = _asked(solver.questions, solver.sizes, plane)
            if waiting and np.array_equal(members, waiting[-1][0]):
                future = waiting[-1][2]
            else:
                future = pool.submit(solver.reduced, members)
            waiting.append((members, bit, future))
        if plane >= threads:
            members, bit, future = waiting[0]
            yield _Plane(members, bit, future.result())
            del waiting[0]


class _TableSolver:
    def __init__(self, questions: TableEquations, sizes: TableSizes, rng: np.random.Generator) -> None:
        self.questions, self.sizes = questions, sizes
        self.planes = Planes(questions.cells, sizes.words, rng)

    def reduced(self, members: NDArray[np.int64]) -> band.BandEchelon:
        """The system of some questions."""
        return self.planes.reduced(members, self.questions.base[members], self.sizes.band)

    def fill(self, number: int, plane: _Plane) -> None:
        """Find the plane's bits; those of the exponent are a sum of their own."""
        if number == self.sizes.word:
            self.planes.restart()
        self.planes.fill(number, number % self.sizes.word, plane.members, plane.bit, plane.system)

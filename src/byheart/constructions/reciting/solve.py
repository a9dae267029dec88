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

from byheart.constructions.reciting import band
from byheart.constructions.reciting.codes import Code
from byheart.constructions.reciting.sizes import LANES, SPREAD, Sizes, Unsolvable
from byheart.networks.exact.kernels import jit
from byheart.progress import Report

_MOST_DEPENDENT = 6


@dataclass(frozen=True, eq=False)
class Questions:
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
    sizes: Sizes,
    code: Code,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    offset: NDArray[np.int64],
    kind: NDArray[np.int64] | None,
    labels: NDArray[np.int64],
) -> Questions:
    """From what the front says about each question: rows [N, 2], columns [N, 6], offset, kind, and the labels."""
    first = rows.min(axis=1)
    order = np.argsort(first, kind="stable")
    lanes = np.arange(LANES)
    cells = (np.repeat(rows, LANES // 2, axis=1) * LANES + lanes) * sizes.columns + columns
    cells[columns >= sizes.columns] = -1
    exponent_first = np.zeros(len(labels), dtype=bool) if kind is None else kind < sizes.exponent_share
    return Questions(
        cells=cells[order],
        base=(first[order] * LANES * sizes.columns) >> 6,
        offset=offset[order],
        exponent_first=exponent_first[order],
        word=code.words[labels[order]],
        length=code.lengths[labels[order]],
    )


def solve(
    questions: Questions, sizes: Sizes, rng: np.random.Generator, threads: int = 2, report: Report | None = None
) -> NDArray[np.int64]:
    """Words as integers [rows, 6, columns], ``word`` bits and above them ``exponent`` bits; raises Unsolvable."""
    solver = _Solver(questions, sizes, rng)
    planes = sizes.word + sizes.exponent
    with ThreadPoolExecutor(threads) as pool:
        for plane, asked in enumerate(_ahead(pool, solver, planes, threads)):
            solver.fill(plane, asked)
            if report is not None:
                report(plane + 1, planes)
    return solver.words.reshape(sizes.rows, LANES, sizes.columns)


@dataclass(frozen=True, eq=False)
class _Plane:
    """The questions that read one plane (indices), which bit of their code it is, and their system."""

    members: NDArray[np.int64]
    bit: NDArray[np.uint8]
    system: band.Reduced


def _ahead(pool: ThreadPoolExecutor, solver: "_Solver", planes: int, threads: int) -> Iterator[_Plane]:
    """The planes in order, eliminated a few ahead; a plane with the members of the last one shares its system."""
    waiting: list[tuple[NDArray[np.int64], NDArray[np.uint8], Future[band.Reduced]]] = []
    for plane in range(planes + threads):
        if plane < planes:
            members, bit = solver.asked(plane)
            if waiting and np.array_equal(members, waiting[-1][0]):
                future = waiting[-1][2]
            else:
                future = pool.submit(solver.reduced, members)
            waiting.append((members, bit, future))
        if plane >= threads:
            members, bit, future = waiting[0]
            yield _Plane(members, bit, future.result())
            del waiting[0]


class _Solver:
    def __init__(self, questions: Questions, sizes: Sizes, rng: np.random.Generator) -> None:
        self.questions, self.sizes, self.rng = questions, sizes, rng
        self.words = np.zeros(sizes.words, dtype=np.int64)
        self.sums = np.zeros(len(questions.base), dtype=np.int64)
        self.below: tuple[int, _Plane, NDArray[np.uint8], NDArray[np.uint8]] | None = None
        self.band = (SPREAD * LANES * sizes.columns) // 64 + 2

    def asked(self, plane: int) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Which questions read the plane, and the bit of the sum that each wants there."""
        q, sizes = self.questions, self.sizes
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

    def reduced(self, members: NDArray[np.int64]) -> band.Reduced:
        q = self.questions
        system = band.reduce(q.cells[members], q.base[members], self.sizes.words, self.band)
        if system.dependent > _MOST_DEPENDENT:
            raise Unsolvable(f"{system.dependent} of {len(members)} equations of a bit plane depend on others")
        return system

    def fill(self, number: int, plane: _Plane) -> None:
        """Find the plane's bits; if dependent equations contradict, change free bits of the plane below."""
        if number in (0, self.sizes.word):
            self.sums[:] = 0
            self.below = None
        for _ in range(4 << plane.system.dependent):
            right = plane.bit ^ ((self.sums[plane.members] >> (number % self.sizes.word)) & 1).astype(np.uint8)
            bits = band.solve(plane.system, right, self._random())
            if bits is not None:
                self._write(number, bits)
                self.below = (number, plane, right, bits)
                return
            if self.below is None:
                break
            self._shake()
        raise Unsolvable(f"bit plane {number}: dependent equations contradict")

    def _random(self) -> NDArray[np.uint8]:
        return self.rng.integers(0, 2, size=self.sizes.words, dtype=np.uint8)

    def _write(self, number: int, bits: NDArray[np.uint8]) -> None:
        self.words |= bits.astype(np.int64) << number
        _add_up(self.sums, self.questions.cells, bits, number % self.sizes.word)

    def _shake(self) -> None:
        """Another solution of the plane below: other carries, nothing that is solved breaks."""
        assert self.below is not None
        number, plane, right, old = self.below
        new = band.solve(plane.system, right, self._random())
        assert new is not None
        self.words ^= (old ^ new).astype(np.int64) << number
        place = number % self.sizes.word
        _add_up(self.sums, self.questions.cells, new, place)
        _take_off(self.sums, self.questions.cells, old, place)
        self.below = (number, plane, right, new)


@jit
def _add_up(sums, cells, bits, place):  # type: ignore[no-untyped-def]
    for e in range(len(sums)):
        for j in range(cells.shape[1]):
            if cells[e, j] >= 0:
                sums[e] += np.int64(bits[cells[e, j]]) << place


@jit
def _take_off(sums, cells, bits, place):  # type: ignore[no-untyped-def]
    for e in range(len(sums)):
        for j in range(cells.shape[1]):
            if cells[e, j] >= 0:
                sums[e] -= np.int64(bits[cells[e, j]]) << place

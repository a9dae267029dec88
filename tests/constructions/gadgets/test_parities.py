"""Systems modulo 2 against plain elimination: ranks, solutions, contradictions, free unknowns; banded and dense."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from byheart.constructions.gadgets import parities

Integers = NDArray[np.int64]


def dense(cells: Integers, unknowns: int) -> NDArray[np.uint8]:
    """The matrix, entry by entry; an unknown named twice cancels."""
    matrix = np.zeros((len(cells), unknowns), dtype=np.uint8)
    for equation, row in enumerate(cells.tolist()):
        for unknown in row:
            if unknown >= 0:
                matrix[equation, unknown] ^= 1
    return matrix


def rank(matrix: NDArray[np.uint8]) -> int:
    left, found = matrix.copy(), 0
    for column in range(left.shape[1]):
        below = np.flatnonzero(left[found:, column]) + found
        if not len(below):
            continue
        left[[found, below[0]]] = left[[below[0], found]]
        others = np.flatnonzero(left[:, column])
        left[others[others != found]] ^= left[found]
        found += 1
        if found == len(left):
            break
    return found


def banded(rng: np.random.Generator, equations: int, unknowns: int, words: int, terms: int) -> list[Integers]:
    """Cells and bases: every unknown within ``words`` words of 64 from the base; every sixth is missing."""
    last = max(0, -(-unknowns // 64) - words)
    base = np.sort(rng.integers(0, last + 1, size=equations))
    cells = base[:, None] * 64 + rng.integers(0, min(64 * words, unknowns), size=(equations, terms))
    cells = np.minimum(cells, unknowns - 1)
    cells[rng.random(cells.shape) < 1 / 6] = -1
    return [cells, base]


@given(
    seed=st.integers(0, 2**32),
    equations=st.integers(1, 90),
    unknowns=st.integers(1, 260),
    words=st.integers(1, 4),
    terms=st.integers(1, 6),
)
@settings(max_examples=60)
def test_against_plain_elimination(seed: int, equations: int, unknowns: int, words: int, terms: int) -> None:
    rng = np.random.default_rng(seed)
    cells, base = banded(rng, equations, unknowns, words, terms)
    matrix = dense(cells, unknowns)
    system = parities.reduce_band(cells, base, unknowns, words)
    full = rank(matrix)
    assert system.dependent == equations - full
    pivots = system.pivot[system.pivot >= 0]
    assert len(np.unique(pivots)) == len(pivots) == full

    truth = rng.integers(0, 2, size=unknowns, dtype=np.uint8)
    free = rng.integers(0, 2, size=unknowns, dtype=np.uint8)
    for right in ((matrix @ truth.astype(np.int64) % 2).astype(np.uint8), rng.integers(0, 2, equations, np.uint8)):
        found = parities.solve(system, right, free)
        consistent = rank(np.concatenate([matrix, right[:, None]], axis=1)) == full
        assert (found is not None) == consistent
        if found is not None:
            assert set(found.tolist()) <= {0, 1}
            assert np.array_equal(matrix @ found.astype(np.int64) % 2, right)
            unbound = np.setdiff1d(np.arange(unknowns), pivots)
            assert np.array_equal(found[unbound], free[unbound])


@pytest.mark.parametrize(("equations", "unknowns", "words"), [(1500, 1600, 4), (1600, 1600, 25), (3000, 1600, 6)])
def test_larger_systems(equations: int, unknowns: int, words: int) -> None:
    rng = np.random.default_rng(equations)
    cells, base = banded(rng, equations, unknowns, words, 6)
    matrix = dense(cells, unknowns)
    system = parities.reduce_band(cells, base, unknowns, words)
    assert system.dependent == equations - rank(matrix)
    truth = rng.integers(0, 2, size=unknowns, dtype=np.uint8)
    right = (matrix @ truth.astype(np.int64) % 2).astype(np.uint8)
    found = parities.solve(system, right, truth)
    assert found is not None
    assert np.array_equal(found, truth), "with its own free bits, a solution is found again"
    if system.dependent:
        other = right.copy()
        other[system.pivot < 0] ^= 1
        assert parities.solve(system, other, truth) is None


def test_every_solution_is_found() -> None:
    """x₀ + x₁ + x₂ = 0, x₁ + x₂ = 1: two free bits at most, and x₀ = 1 in all solutions."""
    system = parities.reduce_band(np.array([[0, 1, 2], [1, 2, -1]]), np.array([0, 0]), unknowns=3, words=1)
    right = np.array([0, 1], dtype=np.uint8)
    solutions = set()
    for number in range(8):
        found = parities.solve(system, right, np.array([number >> k & 1 for k in range(3)], dtype=np.uint8))
        assert found is not None
        solutions.add(tuple(found.tolist()))
    assert solutions == {(1, 0, 1), (1, 1, 0)}


def test_by_hand() -> None:
    """Across a word's end: x₆₃ + x₆₄ = 1, x₆₄ + x₆₅ = 0, their sum x₆₃ + x₆₅, and x₆₅ + x₁₂₇ = 1."""
    cells = np.array([[63, 64], [64, 65], [63, 65], [65, 127]])
    system = parities.reduce_band(cells, np.zeros(4, dtype=np.int64), unknowns=128, words=2)
    assert system.pivot.tolist() == [63, 64, -1, 65]
    assert system.dependent == 1
    free = np.zeros(128, dtype=np.uint8)
    assert parities.solve(system, np.array([1, 0, 0, 1], dtype=np.uint8), free) is None
    found = parities.solve(system, np.array([1, 0, 1, 1], dtype=np.uint8), free)
    assert found is not None
    assert (found[63], found[64], found[65], found[127]) == (0, 1, 1, 0)
    free[[0, 127]] = 1
    found = parities.solve(system, np.array([1, 0, 1, 1], dtype=np.uint8), free)
    assert found is not None
    assert (found[0], found[63], found[64], found[65], found[127]) == (1, 1, 0, 0, 1)


def test_empty_equations() -> None:
    """0 = 0 holds, 0 = 1 does not; and an unknown that is named twice is not there."""
    system = parities.reduce_band(np.array([[-1, -1], [3, 3]]), np.array([0, 0]), unknowns=5, words=1)
    assert system.dependent == 2
    free = np.array([1, 0, 1, 1, 0], dtype=np.uint8)
    found = parities.solve(system, np.zeros(2, dtype=np.uint8), free)
    assert found is not None
    assert found.tolist() == free.tolist()
    for wrong in ([1, 0], [0, 1]):
        assert parities.solve(system, np.array(wrong, dtype=np.uint8), free) is None


def test_no_equations() -> None:
    system = parities.reduce_band(np.zeros((0, 6), dtype=np.int64), np.zeros(0, dtype=np.int64), unknowns=70, words=2)
    free = (np.arange(70) % 3 == 0).astype(np.uint8)
    found = parities.solve(system, np.zeros(0, dtype=np.uint8), free)
    assert system.dependent == 0
    assert found is not None
    assert found.tolist() == free.tolist()


def drawn(equations: int, unknowns: int, terms: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    cells = np.array([rng.choice(unknowns, terms, replace=False) for _ in range(equations)])
    cells[rng.random(cells.shape) < 0.2] = -1
    return cells


def sums(cells: np.ndarray, bits: np.ndarray) -> np.ndarray:
    return np.array([bits[row[row >= 0]].sum() % 2 for row in cells], dtype=np.uint8)


SHAPES = [(1, 1), (5, 9), (60, 64), (70, 65), (130, 128), (300, 250), (200, 640)]


@pytest.mark.parametrize(("equations", "unknowns"), SHAPES)
def test_solutions(equations: int, unknowns: int) -> None:
    cells = drawn(equations, unknowns, min(3, unknowns), 0)
    system = parities.reduce_dense(cells, unknowns)
    assert system.dependent == equations - rank(dense(cells, unknowns))
    rng = np.random.default_rng(1)
    for _ in range(3):
        right = sums(cells, rng.integers(0, 2, unknowns))
        free = rng.integers(0, 2, unknowns, dtype=np.uint8)
        found = parities.solve(system, right, free)
        assert found is not None
        assert (sums(cells, found) == right).all()
        assert (found == free)[~system.rows.any(axis=1)].all()


def test_contradictions() -> None:
    """Where an equation depends on others, and wants something else, there is no solution; as ``band`` finds."""
    cells = drawn(100, 70, 3, 2)
    system = parities.reduce_dense(cells, 70)
    other = parities.reduce_band(cells, np.zeros(100, dtype=np.int64), 70, 2)
    right, free = sums(cells, np.ones(70, dtype=np.int64)), np.zeros(70, dtype=np.uint8)
    found = []
    for equation in range(100):
        wrong = right.copy()
        wrong[equation] ^= 1
        found.append(parities.solve(system, wrong, free) is None)
        assert found[-1] == (parities.solve(other, wrong, free) is None)
    assert any(found)

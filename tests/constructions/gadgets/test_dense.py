"""Dense systems modulo 2: the same solutions, and the same contradictions, as by trying them out."""

import numpy as np
import pytest

from byheart.constructions.gadgets.parities import band, dense


def drawn(equations: int, unknowns: int, terms: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    cells = np.array([rng.choice(unknowns, terms, replace=False) for _ in range(equations)])
    cells[rng.random(cells.shape) < 0.2] = -1
    return cells


def sums(cells: np.ndarray, bits: np.ndarray) -> np.ndarray:
    return np.array([bits[row[row >= 0]].sum() % 2 for row in cells], dtype=np.uint8)


def rank(cells: np.ndarray, unknowns: int) -> int:
    """By elimination on Python's integers."""
    pivots: dict[int, int] = {}
    for row in cells:
        value = 0
        for cell in row[row >= 0].tolist():
            value ^= 1 << cell
        while value and (high := value.bit_length()) in pivots:
            value ^= pivots[high]
        if value:
            pivots[value.bit_length()] = value
    return len(pivots)


SHAPES = [(1, 1), (5, 9), (60, 64), (70, 65), (130, 128), (300, 250), (200, 640)]


@pytest.mark.parametrize(("equations", "unknowns"), SHAPES)
def test_solutions(equations: int, unknowns: int) -> None:
    cells = drawn(equations, unknowns, min(3, unknowns), 0)
    system = dense.reduce(cells, unknowns)
    assert system.dependent == equations - rank(cells, unknowns)
    rng = np.random.default_rng(1)
    for _ in range(3):
        right = sums(cells, rng.integers(0, 2, unknowns))
        free = rng.integers(0, 2, unknowns, dtype=np.uint8)
        found = band.solve(system, right, free)
        assert found is not None
        assert (sums(cells, found) == right).all()
        assert (found == free)[~system.rows.any(axis=1)].all()


def test_contradictions() -> None:
    """Where an equation depends on others, and wants something else, there is no solution; as ``band`` finds."""
    cells = drawn(100, 70, 3, 2)
    system = dense.reduce(cells, 70)
    other = band.reduce(cells, np.zeros(100, dtype=np.int64), 70, 2)
    right, free = sums(cells, np.ones(70, dtype=np.int64)), np.zeros(70, dtype=np.uint8)
    found = []
    for equation in range(100):
        wrong = right.copy()
        wrong[equation] ^= 1
        found.append(band.solve(system, wrong, free) is None)
        assert found[-1] == (band.solve(other, wrong, free) is None)
    assert any(found)

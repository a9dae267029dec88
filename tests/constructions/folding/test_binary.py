"""Systems modulo 2 against elimination on plain Python lists, and against trying every vector."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.constructions.folding.residues import BinaryForm, pack, reduce


def eliminate(A: np.ndarray) -> BinaryForm:
    form = reduce(A, 2)
    assert isinstance(form, BinaryForm)
    return form


def pivots_of(form: BinaryForm) -> list[int]:
    """Columns that have a pivot, in order."""
    return np.flatnonzero(form.echelon.extent).tolist()


def eliminated(rows: list[list[int]]) -> tuple[list[list[int]], list[int]]:
    """The reduced row echelon form modulo 2 without its zero rows, and the pivots' columns."""
    rows, pivots = [[entry % 2 for entry in row] for row in rows], []
    for column in range(len(rows[0])):
        rank = len(pivots)
        found = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if found is None:
            continue
        rows[rank], rows[found] = rows[found], rows[rank]
        for i, row in enumerate(rows):
            if i != rank and row[column]:
                rows[i] = [a ^ b for a, b in zip(row, rows[rank], strict=True)]
        pivots.append(column)
    return rows[: len(pivots)], pivots


def consistent(A: list[list[int]], e: list[int]) -> bool:
    """Whether the column e adds no pivot."""
    return len(eliminated([[*row, b] for row, b in zip(A, e, strict=True)])[1]) == len(eliminated(A)[1])


@st.composite
def matrices(draw: st.DrawFn) -> np.ndarray:
    """Integers of either sign; some rows are sums of others, and there may be more rows than columns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, columns = draw(st.integers(1, 12)), draw(st.sampled_from([1, 2, 3, 7, 63, 64, 65, 130]))
    A = rng.integers(-50, 50, size=(rows, columns))
    for row in range(1, rows):
        if draw(st.booleans()):
            A[row] = rng.integers(0, 2, size=row) @ A[:row] + 2 * rng.integers(-5, 5, size=columns)
    return A


@given(matrices())
@settings(deadline=None)
def test_reduce(A: np.ndarray) -> None:
    system, pivots = eliminate(A), eliminated(A.tolist())[1]
    assert pivots_of(system) == pivots
    assert system.deficit == len(A) - len(pivots)


@given(matrices(), st.integers(0, 2**32), st.booleans())
@settings(deadline=None)
def test_solve(A: np.ndarray, seed: int, reachable: bool) -> None:
    """A solution with the free bits as given wherever there is one, None wherever there is none."""
    rng = np.random.default_rng(seed)
    e = A @ rng.integers(0, 2, size=A.shape[1]) if reachable else rng.integers(-9, 9, size=len(A))
    free, system = rng.integers(0, 2, size=A.shape[1], dtype=np.uint8), eliminate(A)
    before = free.copy()
    t = system.solve(e, free)
    assert (free == before).all()
    assert (t is not None) == consistent(A.tolist(), [int(b) % 2 for b in e])
    assert not reachable or t is not None
    if t is not None:
        assert ((A @ t.astype(np.int64) - e) % 2 == 0).all()
        assert set(t.tolist()) <= {0, 1}
        unbound = np.setdiff1d(np.arange(A.shape[1]), pivots_of(system))
        assert (t[unbound] == free[unbound]).all()


@pytest.mark.parametrize("seed", range(10))
def test_every_solution_is_found(seed: int) -> None:
    """Four equations in five unknowns: the free bits run through exactly the solutions that trying out finds."""
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, size=(4, 5))
    system = eliminate(A)
    for e in product(range(2), repeat=4):
        wanted = {t for t in product(range(2), repeat=5) if (A @ t % 2).tolist() == list(e)}
        tried = [system.solve(np.array(e), np.array(free, dtype=np.uint8)) for free in product(range(2), repeat=5)]
        assert {tuple(t.tolist()) for t in tried if t is not None} == wanted
        assert all(t is None for t in tried) == (not wanted)


def test_by_hand() -> None:
    """x + y = 1, y + z = 0, and their sum x + z, which can be 1 only; column 1 is even, hence a free column."""
    A = np.array([[1, 4, 1, 0], [0, 2, 1, -1], [3, 0, 0, 1]])
    system = eliminate(A)
    assert (system.deficit, pivots_of(system)) == (1, [0, 2])
    free = np.array([1, 1, 1, 1], dtype=np.uint8)
    assert system.solve(np.array([1, 0, 0]), free) is None
    assert system.solve(np.array([1, 0, 1]), free).tolist() == [0, 1, 1, 1]
    assert system.solve(np.array([1, 0, 1]), free * 0).tolist() == [1, 0, 0, 0]
    assert system.solve(np.array([-1, 2, 5]), free * 0).tolist() == [1, 0, 0, 0]


def test_nothing_to_solve() -> None:
    """A digit that nobody reads: all columns are free."""
    system = eliminate(np.zeros((0, 70), dtype=np.int64))
    free = np.arange(70).astype(np.uint8) % 2
    assert (system.deficit, pivots_of(system)) == (0, [])
    assert system.solve(np.zeros(0, dtype=np.int64), free).tolist() == free.tolist()


def test_zero_rows() -> None:
    system = eliminate(np.array([[0, 2], [4, 0]]))
    assert (system.deficit, pivots_of(system)) == (2, [])
    free = np.array([1, 0], dtype=np.uint8)
    assert system.solve(np.array([0, 2]), free).tolist() == [1, 0]
    assert system.solve(np.array([0, 1]), free) is None


@pytest.mark.parametrize("columns", [1, 63, 64, 65, 200])
def test_pack(columns: int) -> None:
    bits = np.random.default_rng(columns).integers(0, 2, size=(3, columns), dtype=np.uint8)
    packed = pack(bits)
    assert packed.shape == (3, -(-columns // 64))
    for row, words in zip(bits.tolist(), packed.tolist(), strict=True):
        assert sum(bit << k for k, bit in enumerate(row)) == sum(word << (64 * k) for k, word in enumerate(words))

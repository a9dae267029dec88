"""Systems modulo primes, powers of primes and their products: solutions are solutions, and none is told as none."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.constructions.folding.features import Coefficients
from byheart.constructions.folding.residues import OddForm, System, reduce
from byheart.constructions.folding.residues import eliminate as eliminate_coefficients


def reduce_odd(A: np.ndarray, prime: int) -> OddForm:
    form = reduce(A, prime)
    assert isinstance(form, OddForm)
    return form


def eliminate(A: np.ndarray, radix: int) -> System:
    """Any matrix is one of coefficients, with one gate that is always open."""
    return eliminate_coefficients(Coefficients(np.ones((len(A), 1), dtype=np.bool_), A), radix)


@given(st.sampled_from([3, 5, 7, 11, 13]), st.integers(0, 8), st.integers(1, 9), st.booleans(), st.integers(0, 2**32))
@settings(deadline=None)
def test_elimination(prime: int, rows: int, columns: int, dependent: bool, seed: int) -> None:
    """R = M·A modulo p, with unit columns at the pivots and rows of zeros behind the rank; M is invertible."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-50, 50, size=(rows, columns))
    if dependent and rows > 1:
        A[-1] = 2 * A[0]
    system = reduce_odd(A, prime)
    R, M = system.pair[:, :columns].astype(np.int64), system.pair[:, columns:].astype(np.int64)
    assert ((M @ A - R) % prime == 0).all()
    assert R.min(initial=0) >= 0
    assert R.max(initial=0) < prime
    assert (R[: system.rank][:, system.pivots] == np.eye(system.rank)).all()
    assert not R[system.rank :].any()
    assert reduce_odd(M, prime).rank == rows


@pytest.mark.parametrize("prime", [3, 5])
def test_all_right_hand_sides_of_a_small_system(prime: int) -> None:
    """Rows (1, 2, 0), (0, 1, 1) and their sum: solvable iff the third entry is the sum of the others."""
    A = np.array([[1, 2, 0], [0, 1, 1], [1, 3, 1]])
    system = reduce_odd(A, prime)
    assert (system.rank, system.deficit) == (2, 1)
    for e in product(range(prime), repeat=3):
        found = system.solve(np.array(e), np.array([1, 1, 2]))
        if (e[0] + e[1] - e[2]) % prime:
            assert found is None
        else:
            assert found is not None
            assert (A @ found % prime).tolist() == list(e)
            assert found[2] == 2


@given(st.sampled_from([2, 3, 4, 6, 8, 9, 10, 12, 27, 60, 100, 2**20, 2**60]), st.integers(1, 6), st.integers(0, 2**32))
@settings(deadline=None)
def test_solutions_modulo_any_radix(radix: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.integers(-9, 9, size=(rows, rows + 12))
    system = eliminate(A, radix)
    if system.deficit:  # once in thousands
        return
    assert system.unlikely == 1
    e = rng.integers(radix, size=rows)
    one, other = (system.solve(e, rng) for _ in range(2))
    for t in (one, other):
        assert ((t >= 0) & (t < radix)).all()
        assert [sum(int(a) * int(x) for a, x in zip(row, t, strict=True)) % radix for row in A] == e.tolist()
    assert one.tolist() != other.tolist()


def test_how_unlikely_a_solution_is() -> None:
    """Two equal rows modulo 12 = 2²·3: the right-hand sides agree once in 12; rows equal modulo 2 only: once in 4."""
    assert eliminate(np.array([[1, 2, 3], [1, 2, 3]]), 12).unlikely == 12
    assert eliminate(np.array([[1, 2, 3], [3, 4, 5]]), 12).unlikely == 4
    assert eliminate(np.array([[1, 2, 3], [3, 4, 5]]), 9).unlikely == 1
    assert eliminate(np.array([[1, 2, 3], [1, 2, 3]]), 12).solve(np.array([1, 2]), np.random.default_rng(0)) is None

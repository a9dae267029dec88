import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from byheart.errors import BadInput
from byheart.tasks import ranks
from byheart.tasks.ranks import context_ranks, exact_rank, independent, numerical_rank, surely_full, whole_rows

from ..fractions_by_hand import rank_by_fractions

LARGEST, SMALLEST = float(np.finfo(np.float64).max), 2.0**-1074


finite = st.floats(allow_nan=False, allow_infinity=False)
small = st.integers(-2, 2).map(float)
matrices = st.sampled_from([finite, small, st.sampled_from([0.1, 0.2, 0.3, -0.1, 0.0])]).flatmap(
    lambda numbers: hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=numbers)
)


@settings(max_examples=200)
@given(matrices)
@example(np.array([[LARGEST, SMALLEST], [SMALLEST, 0.0]]))
@example(np.array([[LARGEST, SMALLEST], [LARGEST, 0.0]]))
@example(np.array([[LARGEST, LARGEST], [SMALLEST, SMALLEST]]))
@example(np.zeros((2, 3)))
@example(np.array([[-0.0]]))
def test_exact(matrix):
    rank = rank_by_fractions(matrix)
    assert exact_rank(matrix) == rank
    assert independent(matrix) == (rank == len(matrix))
    assert context_ranks(matrix).ranks.tolist() == [rank]
    assert not surely_full(matrix[None])[0] or rank == min(matrix.shape)


@settings(max_examples=100)
@given(matrices)
def test_whole_rows_are_parallel_to_the_rows(matrix):
    for row, whole in zip(matrix.tolist(), whole_rows(matrix), strict=True):
        assert any(number % 2 for number in whole) or not any(whole)
        factor = next((Fraction(x) / y for x, y in zip(row, whole, strict=True) if y), Fraction(1))
        assert factor > 0
        assert [factor * y for y in whole] == [Fraction(x) for x in row]


@given(st.integers(0, 6), st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32))
def test_products_have_the_rank_of_their_factors(rank, rows, columns, seed):
    rng = np.random.default_rng(seed)
    rank = min(rank, rows, columns)
    left, right = rng.integers(-9, 10, (rows, rank)), rng.integers(-9, 10, (rank, columns))
    product = (left @ right).astype(np.float64) if rank else np.zeros((rows, columns))
    assert exact_rank(product) == rank_by_fractions(product) <= rank


def test_a_prime_that_divides_a_minor_is_no_trap():
    high, low = divmod(ranks.prime(0), 2**31)
    # The determinant is the first prime: singular modulo it, and yet regular.
    matrix = [[2.0**31, -float(low)], [1.0, float(high)]]
    assert exact_rank(matrix) == 2
    assert exact_rank([*matrix, [0.0, 0.0]]) == 2


def test_nearly_dependent():
    rng = np.random.default_rng(1)
    vectors = rng.integers(-9, 10, (6, 8)).astype(np.float64)
    vectors[5] = vectors[:5].sum(axis=0)
    assert not independent(vectors)
    vectors[5] += 1e-13 * rng.normal(size=8)
    assert independent(vectors)
    assert exact_rank(vectors) == 6
    found = numerical_rank(vectors, tolerance=1e-10)
    assert found.rank == 5
    assert 0 < found.below < 1e-13
    assert found.above > 0.01
    assert str(found).startswith("numerical rank 5 at relative tolerance 1.0e-10: the same for tolerances from ")
    assert not surely_full(vectors[None])[0]


def test_numerical_rank_by_hand():
    found = numerical_rank(np.diag([4.0, 0.0, 1.0, 3e-5]))
    assert (found.rank, found.below) == (3, 0.0)
    assert found.above == pytest.approx(7.5e-6)
    assert found.tolerance == 4 * 2.0**-52 * ranks.SAFETY
    assert [rank for _, rank in found.others[:4]] == [2] * 4
    assert [rank for _, rank in found.others[4:]] == [3] * 9
    assert not found.stable
    assert str(found).endswith("tolerances from 0.0e+00 to 7.5e-06; 2 at 1e-02, 3 at 1e-06")
    assert numerical_rank(np.zeros((2, 2))).rank == 0
    assert "all entries are 0" in str(numerical_rank([[0.0]]))
    assert numerical_rank(np.eye(3) * LARGEST).stable
    assert numerical_rank(np.eye(3) * SMALLEST).rank == 3


def test_contexts_of_all_kinds():
    rng = np.random.default_rng(0)
    stack = rng.integers(-3, 4, (60, 4, 5)).astype(np.float64)
    stack[::3, 1] = stack[::3, 0]
    stack[::4, 2] = 0
    stack[::5, 3] = 2 * stack[::5, 0] - stack[::5, 1]
    stack[7] = 0
    found = context_ranks(stack)
    assert found.ranks.tolist() == [rank_by_fractions(one) for one in stack]
    assert 0 < found.by_integers.sum() < 30
    assert str(found).startswith("60 contexts of ranks 0 to 4, ")
    taller = context_ranks(stack.transpose(0, 2, 1))
    assert taller.ranks.tolist() == found.ranks.tolist()


def test_clear_contexts_take_no_exact_arithmetic(monkeypatch):
    monkeypatch.setattr(ranks, "exact_rank", None)
    stack = np.random.default_rng(0).normal(size=(300, 16, 32)) * 10.0 ** np.arange(-8, 8)[:, None]
    stack[:, 3] = stack[:, 9]
    assert set(context_ranks(stack).ranks) == {15}


def test_certificates_withstand_scaled_and_shifted_rows():
    rng = np.random.default_rng(0)
    for power in range(1, 17):
        stack = np.round(rng.normal(size=(20, 6, 9)) * 2**10)
        stack[:, 5] = stack[:, :5].sum(axis=1)
        assert not surely_full(stack * 2.0**power).any()
        stack[:, 5] += rng.normal(size=(20, 9)) * 10.0**-power
        assert all(exact_rank(one) == 6 for one in stack[surely_full(stack)])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("function", [exact_rank, independent, numerical_rank, context_ranks])
def test_refuses_what_is_not_finite(function, bad):
    with pytest.raises(BadInput, match=r"\[1, 0\] is (nan|inf); expected finite numbers"):
        function([[1.0, 2.0], [bad, 0.0]])


def test_refuses_shapes_and_tolerances():
    with pytest.raises(BadInput, match=r"contexts has shape \(2,\); expected \[N, n, d\]"):
        context_ranks([1.0, 2.0])
    with pytest.raises(BadInput, match=r"matrix has shape \(0, 3\); expected at least one token"):
        exact_rank(np.zeros((0, 3)))
    with pytest.raises(BadInput, match=r"tolerance is 1.5; expected 0 or more and below 1"):
        numerical_rank([[1.0]], tolerance=1.5)


def test_importing_takes_numpy_only():
    code = (
        "import sys; import byheart.tasks.ranks, byheart.tasks.kruskal;"
        "print([name for name in ('torch', 'numba', 'flint') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

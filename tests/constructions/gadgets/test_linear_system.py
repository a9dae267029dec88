"""The linear system for the values: against numpy, at full rank and below, and refined where it was perturbed."""

import re

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.constructions.gadgets.linear_system import MOST, check_system, factor, refine
from byheart.errors import BadInput

Floats = npt.NDArray[np.float64]


def of_rank(rows: int, columns: int, rank: int, seed: int) -> Floats:
    """A matrix of this rank, well conditioned on its range."""
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.standard_normal((rows, rank)))[0]
    right = np.linalg.qr(rng.standard_normal((columns, rank)))[0]
    product: Floats = (left * rng.uniform(1, 5, rank)) @ right.T
    return product


shapes = st.tuples(st.integers(1, 12), st.integers(1, 12)).flatmap(
    lambda shape: st.tuples(st.just(shape), st.integers(1, min(shape)))
)


@given(shape=shapes, seed=st.integers(0, 2**32 - 1))
def test_rank_condition_and_factors_are_numpys(shape: tuple[tuple[int, int], int], seed: int) -> None:
    (rows, columns), rank = shape
    features = of_rank(rows, columns, rank, seed)
    factored = factor(features)
    assert factored.rank == rank == np.linalg.matrix_rank(features)
    singular = np.linalg.svd(features, compute_uv=False)
    assert factored.condition == pytest.approx(singular[0] / singular[rank - 1])
    assert factored.left @ np.diag(factored.singular) @ factored.right == pytest.approx(features, abs=1e-12)


@given(shape=shapes, outputs=st.integers(1, 3), seed=st.integers(0, 2**32 - 1))
def test_the_solution_is_the_least_of_the_least_squares(
    shape: tuple[tuple[int, int], int], outputs: int, seed: int
) -> None:
    (rows, columns), rank = shape
    features = of_rank(rows, columns, rank, seed)
    wanted = np.random.default_rng(seed).standard_normal((rows, outputs))
    solved = factor(features).solve(wanted)
    assert solved == pytest.approx(np.linalg.pinv(features, rcond=1e-10) @ wanted, abs=1e-11)
    if rank == rows:
        assert features @ solved == pytest.approx(wanted, abs=1e-11)


@given(shape=shapes, seed=st.integers(0, 2**32 - 1))
def test_what_is_invisible_makes_no_difference_and_is_all_of_it(shape: tuple[tuple[int, int], int], seed: int) -> None:
    """Φ times it is 0, and what is left of the values is orthogonal to every null vector."""
    (rows, columns), rank = shape
    features = of_rank(rows, columns, rank, seed)
    values = np.random.default_rng(seed).standard_normal((columns, 2))
    unseen = factor(features).invisible(values)
    assert features @ unseen == pytest.approx(np.zeros((rows, 2)), abs=1e-12)
    null = np.linalg.svd(features)[2][rank:]
    assert null @ (values - unseen) == pytest.approx(np.zeros((columns - rank, 2)), abs=1e-12)


def test_two_equations_by_hand() -> None:
    """3x = 6, y/2 = 1, z free: (2, 2, 0), the least; of (1, 1, 1) only the last coordinate is not seen."""
    factored = factor(np.array([[3.0, 0.0, 0.0], [0.0, 0.5, 0.0]]))
    assert (factored.rank, factored.condition) == (2, 6)
    assert factored.solve(np.array([[6.0], [1.0]])).tolist() == [[2], [2], [0]]
    assert factored.invisible(np.ones((3, 1))).tolist() == [[0], [0], [1]]


def test_equal_rows_are_solved_as_well_as_can_be() -> None:
    """x + y = 1 and x + y = 3: rank 1, and x = y = 1, the least solution of x + y = 2."""
    factored = factor(np.ones((2, 2)))
    assert factored.rank == 1
    assert factored.solve(np.array([[1.0], [3.0]])) == pytest.approx(np.ones((2, 1)))


@pytest.mark.parametrize(("small", "rank"), [(1e-9, 3), (1e-13, 3), (1e-15, 2), (0.0, 2)])
def test_the_rank_counts_singular_values_above_rounding(small: float, rank: int) -> None:
    assert factor(np.diag([1.0, 1.0, small])).rank == rank
    assert factor(np.diag([1e6, 1e6, 1e6 * small])).rank == rank, "relative to the largest"


def exact_residual(features: Floats, wanted: Floats, values: Floats) -> Floats:
    """wanted − Φ V with one rounding: longdouble is not enough to trust, rationals are."""
    from fractions import Fraction

    def entry(row: Floats, asked: float, column: Floats) -> float:
        terms = (Fraction(a) * Fraction(b) for a, b in zip(row.tolist(), column.tolist(), strict=True))
        return float(Fraction(asked) - sum(terms, Fraction(0)))

    rows = [
        [entry(row, y, column) for y, column in zip(asked.tolist(), values.T, strict=True)]
        for row, asked in zip(features, wanted, strict=True)
    ]
    return np.array(rows)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), relative=st.sampled_from([1e-3, 1e-6, 1e-9]))
def test_refining_makes_up_for_features_that_were_not_quite_those(seed: int, relative: float) -> None:
    """The network's features differ from those factored by 1e-3: the first solution is off by that, the refined is not.

    Each step multiplies the residual by about cond·relative; four steps at most.
    """
    rng = np.random.default_rng(seed)
    factored_features = of_rank(6, 9, 6, seed)
    true = factored_features * (1 + relative * rng.uniform(-1, 1, (6, 9)))
    wanted = rng.standard_normal((6, 2))
    factored = factor(factored_features)
    first = np.abs(exact_residual(true, wanted, factored.solve(wanted))).max()
    values, missing = refine(factored, wanted, lambda values: exact_residual(true, wanted, values))
    assert missing == np.abs(exact_residual(true, wanted, values)).max(), "what is reported is the residual there is"
    assert first > relative / 1000
    assert missing < max((60 * relative) ** 4 * first, 1e-13)
    assert missing < first / 100


def test_refining_counts_its_residuals() -> None:
    """A system that is exact at once: one residual for the solution, one for the step that does not help."""
    calls = []

    def residual(values: Floats) -> Floats:
        calls.append(values.copy())
        return np.array([[4.0], [6.0]]) - 2 * values

    values, missing = refine(factor(2 * np.eye(2)), np.array([[4.0], [6.0]]), residual)
    assert values.tolist() == [[2], [3]]
    assert missing == 0
    assert len(calls) == 2


def test_refining_never_returns_something_worse() -> None:
    """Where every step makes it worse (the network's features are minus three times those), the first is kept."""
    features, wanted = np.eye(2), np.array([[1.0], [2.0]])
    values, missing = refine(factor(features), wanted, lambda values: wanted + 3 * values)
    assert values == pytest.approx(wanted)
    assert missing == pytest.approx(8)


def test_refining_stops_where_the_residual_no_longer_halves() -> None:
    """The true features are 0.4 of those: each step leaves 0.6 of what was missing, so one is taken, and no other."""
    wanted, steps = np.array([[1.0]]), []

    def residual(values: Floats) -> Floats:
        steps.append(float(values[0, 0]))
        return wanted - 0.4 * values

    values, missing = refine(factor(np.eye(1)), wanted, residual)
    assert steps == pytest.approx([1.0, 1.6])
    assert values == pytest.approx(np.array([[1.6]]))
    assert missing == pytest.approx(0.36)


def test_systems_of_hours_are_refused() -> None:
    check_system("any", MOST)
    message = "any solves a dense system, one row per example; got 5001, expected at most 5000"
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        check_system("any", MOST + 1)

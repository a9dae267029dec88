"""Floats on a grid, against fractions."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from byheart.constructions.gadgets.vectors import Grid, from_floats, offset, ratio

floats = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([5e-324, -5e-324, 1e300, 1e-300, 0.0, -0.0])
tables = st.integers(1, 4).flatmap(
    lambda dim: st.lists(st.lists(floats, min_size=dim, max_size=dim), min_size=1, max_size=5)
)


def points_of(grid: Grid) -> list[list[int]]:
    pairs = zip(grid.mantissa.tolist(), grid.place.tolist(), strict=True)
    return [[m << p for m, p in zip(*rows, strict=True)] for rows in pairs]


def test_by_hand() -> None:
    """0.75 = 3/4, −2.5 = −10/4, 0 and 6 = 24/4: the finest bit is 1/4, and 24 has five bits."""
    grid = from_floats(np.array([[0.75, -2.5], [0.0, 6.0]]))
    assert grid.exponent == 2
    assert points_of(grid) == [[3, -10], [0, 24]]
    assert grid.bits == 5


def test_integers_stay_on_the_integers() -> None:
    """Multiples of 1024 could have a coarser grid; exponents below 0 are not used."""
    grid = from_floats(np.array([[1024.0, -3072.0]]))
    assert (grid.exponent, points_of(grid), grid.bits) == (0, [[1024, -3072]], 12)


@given(tables)
def test_every_float_is_the_fraction_that_it_is(rows: list[list[float]]) -> None:
    grid = from_floats(np.array(rows))
    points = points_of(grid)
    assert [[Fraction(X, 1 << grid.exponent) for X in row] for row in points] == [
        [Fraction(x) for x in row] for row in rows
    ]
    magnitudes = [abs(X) for row in points for X in row]
    assert max(magnitudes).bit_length() == grid.bits or (max(magnitudes) == 0 and grid.bits == 1)
    assert grid.exponent == 0 or any(X % 2 for X in magnitudes), "the grid is finer than it has to be"


@given(tables, st.sampled_from([2, 131, 10**6 + 3, 2**40 + 15]), st.data())
def test_hash_and_weights_agree_with_integers(rows: list[list[float]], modulus: int, data: st.DataObject) -> None:
    grid = from_floats(np.array(rows))
    dim = len(rows[0])
    v = data.draw(st.lists(st.integers(0, modulus - 1), min_size=dim, max_size=dim))
    exact = [sum(a * X for a, X in zip(v, row, strict=True)) for row in points_of(grid)]
    assert grid.hash(np.array(v), modulus).tolist() == [s % modulus for s in exact]
    assert [
        sum((w * Fraction(x) for w, x in zip(grid.weights(np.array(v)), row, strict=True)), Fraction(0)) for row in rows
    ] == exact
    shift = offset(dim, grid.bits, modulus)
    assert shift % modulus == 0
    assert all(0 <= s + shift <= ratio(dim, grid.bits) * modulus for s in exact)

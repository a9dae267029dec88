"""Balls [m ± r] of python-flint's ``arb``: real numbers of which it is proved that they lie in the ball.

A float64 is an exact dyadic number, and so a ball of radius zero. Every operation gives a ball that contains all
results for the numbers in its operands. With more bits the radii shrink; nothing is ever sampled or assumed.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

Ball = Any
"""An ``arb``; python-flint has no types."""
Matrix = Any
"""An ``arb_mat``."""
Balls = npt.NDArray[np.object_]
"""An array whose entries are balls; numpy adds, subtracts and multiplies them entry by entry."""


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Calculate with ``bits`` bits, a global setting of python-flint, which is restored at the end."""
    from flint import ctx

    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def rounded_outward(ball: Ball, bits: int) -> tuple[int, int]:
    """Return integers low ≤ 2^bits·x ≤ high for every x in the ball; the precision must be at least ``bits``."""
    from flint import arb, fmpz

    scaled = ball * arb(fmpz(1) << bits)
    return int(scaled.lower().floor().unique_fmpz()), int(scaled.upper().ceil().unique_fmpz())


def exact(array: npt.NDArray[Any]) -> Balls:
    """Return a float array as balls of radius zero."""
    from flint import arb

    return np.fromiter(map(arb, array.ravel().tolist()), object, array.size).reshape(array.shape)


def matrix(array: npt.NDArray[Any]) -> Matrix:
    """Return an array [a, b] of floats or of balls as a matrix; floats become balls of radius zero."""
    from flint import arb_mat

    return arb_mat(array.shape[0], array.shape[1], array.ravel().tolist())


def entries(table: Matrix) -> Balls:
    """Return the entries of a matrix as an array [a, b] of balls."""
    return np.fromiter(table.entries(), object, table.nrows() * table.ncols()).reshape(table.nrows(), table.ncols())


def stacked(rows: list[list[Ball]]) -> Matrix:
    """Return a matrix from its rows, which are lists of balls."""
    from flint import arb_mat

    return arb_mat(rows)


def softmax(scores: list[Ball]) -> list[Ball]:
    """Return the softmax of balls of any size; a number near their maximum is subtracted first."""
    largest = max(scores, key=float).mid()
    raised = [(score - largest).exp() for score in scores]
    total = sum(raised[1:], raised[0])
    return [value / total for value in raised]


def averages(directions: Matrix, vectors: Matrix, values: Matrix) -> Matrix:
    """Return Σ_s a_s values_s for every row of ``directions``; a is the softmax of its products with ``vectors``."""
    return stacked([softmax(row) for row in (directions * vectors.transpose()).table()]) * values


def upper(ball: Ball) -> float:
    """Return a float64 that no point of ``ball`` is above.

    >>> from flint import arb
    >>> upper(arb("0.5")), upper(arb(2) ** -60 + 1) > 1
    (0.5, True)
    """
    from flint import arb

    value = float(ball.upper())
    return value if arb(value) >= ball.upper() else math.nextafter(value, math.inf)


def lower(ball: Ball) -> float:
    """Return a float64 that no point of ``ball`` is below."""
    return -upper(-ball)

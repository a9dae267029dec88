"""The grid: exact off the ramps, right on both sides of a ramp, and every multiset once."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from byheart.approximation.approximate import centres, grid, grid_size, numbers, quantise
from byheart.networks import count
from byheart.networks.exact import ExactNetwork
from byheart.networks.exact.evaluate import evaluate, token_streams


def quantised(points: np.ndarray, cells: int, ramp_bits: int) -> np.ndarray:
    """The layer's exact outputs for points [S, n, d], as fractions."""
    _, length, dim = points.shape
    network = ExactNetwork(
        (quantise(cells, dim, ramp_bits),), inputs="vectors", outputs="every", length=length, dim=dim
    )
    numerators, denominator, index = token_streams(network, points)
    return np.vectorize(lambda value: Fraction(value, denominator), otypes=[object])(numerators)[index]


def one(x: float, cells: int, ramp_bits: int) -> object:
    network = ExactNetwork((quantise(cells, 1, ramp_bits),), inputs="vectors", outputs="every", length=1)
    return evaluate(network, np.array([[[x]]]))[0, 0]


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (0.0, 4),
        (0.25 - 2**-6, 4),  # where the ramp below the boundary begins: ρ/g = 2^-4 / 4
        (0.25 - 2**-7, Fraction(9, 2)),  # its middle
        (0.25 - 2**-8, Fraction(19, 4)),
        (0.25, 5),  # the boundary itself belongs to the upper cell
        (0.25 + 2**-40, 5),
        (0.5 - 2**-6 - 2**-40, 5),
        (0.5, 6),
        (0.75, 7),
        (1.0, 7),
        (1.5, 7),
        (-1.0, 4),
    ],
)
def test_by_hand(x: float, expected: object) -> None:
    """Four cells, ramps of a sixteenth of a cell."""
    assert one(x, 4, 4) == expected


@pytest.mark.parametrize("x", [0.0, 0.3, 1.0])
def test_one_cell(x: float) -> None:
    assert one(x, 1, 9) == 1


@pytest.mark.parametrize(
    ("cells", "length", "dim"), [(1, 2, 2), (2, 1, 1), (3, 2, 2), (7, 3, 1), (10, 2, 3), (33, 1, 2)]
)
def test_exact_off_the_ramps(cells: int, length: int, dim: int) -> None:
    rng = np.random.default_rng([cells, length, dim])
    points = rng.integers(2**40, size=(200, length, dim), endpoint=True) / 2**40
    bits = 12
    got, expected = quantised(points, cells, bits), numbers(points, cells)
    exact = np.vectorize(lambda x: Fraction(x) * cells, otypes=[object])(points)
    below = np.vectorize(lambda y: 0 < -(-y // 1) - y < Fraction(1, 2**bits) and y < cells - 1, otypes=[bool])(exact)
    assert (got == expected)[~below].all()
    floor = np.vectorize(lambda y: min(cells + y // 1, 2 * cells - 1), otypes=[object])(exact)
    assert (expected == floor).all()
    assert below.mean() < 0.01


@pytest.mark.parametrize(
    ("cells", "dim", "parameters"), [(1, 1, 2), (4, 1, 6 + 6 + 6 + 1), (3, 2, 8 * 2 + 8 + 8 * 2 + 2)]
)
def test_parameters(cells: int, dim: int, parameters: int) -> None:
    network = ExactNetwork((quantise(cells, dim, 5),), inputs="vectors", outputs="every", length=1, dim=dim)
    assert count(network).dense == parameters


@pytest.mark.parametrize(
    ("cells", "length", "dim"), [(1, 3, 2), (2, 2, 2), (3, 3, 1), (5, 1, 1), (2, 3, 2), (1, 1, 100)]
)
def test_every_multiset_once(cells: int, length: int, dim: int) -> None:
    found = grid(cells, length, dim)
    assert found.shape == (grid_size(cells, length, dim), length, dim)
    seen = {tuple(sorted(map(tuple, sequence))) for sequence in found.tolist()}
    assert len(seen) == len(found)
    assert found.min() == cells
    assert found.max() == 2 * cells - 1
    if cells**dim <= 16:
        every = product(product(range(cells, 2 * cells), repeat=dim), repeat=length)
        assert {tuple(sorted(sequence)) for sequence in every} == seen


@pytest.mark.parametrize("cells", [1, 2, 3, 7, 100])
def test_a_centre_is_in_its_cell(cells: int) -> None:
    every = np.arange(cells, 2 * cells, dtype=np.float64)
    assert (numbers(centres(every, cells), cells) == every).all()

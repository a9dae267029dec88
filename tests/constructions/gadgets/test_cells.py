"""Cells: the same integer on the whole ball around every point, at a count that depends on r/δ only."""

from fractions import Fraction
from math import ceil, log2, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.constructions.gadgets.cells import CellReader, Cells, Direction, find_cells, sizes, spread
from byheart.constructions.gadgets.vectors import Points
from byheart.networks.exact import integers

from ..conftest import through


def scattered(points: np.ndarray, delta: float, blocks: int = 1) -> Points:
    """Points all of which must be told apart."""
    K = len(points)
    r = float(np.linalg.norm(points, axis=1).max()) * (1 + 1e-12)
    everything = np.arange(K)
    return Points(points, blocks, r, delta, everything, K * (K - 1) // 2, lambda found: len(np.unique(found)) == K)


def smallest_distance(points: np.ndarray) -> float:
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    return float(distances[~np.eye(len(points), dtype=bool)].min()) * (1 - 1e-12)


def test_by_hand() -> None:
    """Four cells of four units: Gray's codes 00, 01, 11, 10 are hashed to 1 + 5g₁ + 3g₀; between cells are ramps."""
    axis = Direction(integers([4]), 0, integers([0]), Fraction(1))
    reader = CellReader(Cells(dim=1, directions=1, bits=2), (axis,), unit=2, shift=0)
    layers = reader.layers(np.array([[5, 3]]), 1)
    assert [layer.W.shape for layer in layers] == [(1, 1), (3, 1), (4, 3), (1, 4)]
    assert sum(layer.W.size + layer.b.size for layer in layers) == 2 + 6 + 16 + 5

    def read(x: Fraction) -> Fraction:
        return through(layers, [x])[-1][0]

    for cell, hashed in enumerate((1, 4, 9, 6)):
        for place in (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)):
            assert read(cell + place) == hashed
    assert read(Fraction(1)) == Fraction(1 + 4, 2)
    assert read(Fraction(2)) == Fraction(4 + 9, 2)


@pytest.mark.parametrize(("dim", "pairs", "ratio", "directions"), [(16, 1000, 2.0, 2), (3, 10, 50.0, 1), (64, 7, 1, 4)])
def test_bits_follow_from_the_ratio(dim: int, pairs: int, ratio: float, directions: int) -> None:
    """β = ⌈log₂(2r/c + 4)⌉ with c = δ·√(π/2D)·(2P)^(−1/q)."""
    width = sqrt(pi / (2 * dim)) * (2 * pairs) ** (-1 / directions)
    assert sizes(dim, pairs, log2(ratio), directions).bits == ceil(log2(2 * ratio / width + 4))


def test_shapes_are_those_of_the_layers() -> None:
    for q, bits in ((1, 1), (1, 4), (2, 3), (3, 5)):
        axis = Direction(integers([1, 2]), 0, integers([0]), Fraction(1))
        reader = CellReader(Cells(2, q, bits), (axis,) * q, unit=3, shift=0)
        layers = reader.layers(np.ones((q, bits), dtype=np.int64), 0)
        assert reader.front.shapes == tuple((layer.role, *layer.W.shape) for layer in layers)


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(1, 6), st.integers(1, 3), st.sampled_from([1, 1e-9, 1e9])
)
def test_a_ball_is_one_cell(seed: int, K: int, dim: int, directions: int, scale: float) -> None:
    """Every point of a ball, also the farthest along the directions, is hashed as its centre, and points stay apart."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((K, dim)) * scale
    given_points = scattered(points, smallest_distance(points))
    reader = find_cells(given_points, directions, rng)
    hashes, layers = reader.draw(10_007, rng)
    assert len(set(zip(*(axis.cells for axis in reader.directions), strict=True))) == K
    R = Fraction(reader.radius)
    assert R > 0
    for row, point in enumerate(points):
        axis = reader.directions[rng.integers(directions)]
        norm = given_points.reach(axis.weights)
        for sign in (-1, 0, 1):
            away = [Fraction(x) + sign * R * int(w) / norm for x, w in zip(point.tolist(), axis.weights, strict=True)]
            assert through(layers, away)[-1] == [hashes[row]]


def test_the_radius_is_what_the_docstring_promises() -> None:
    """At least c/2K, up to the ramps, and in a search more than that."""
    points = np.random.default_rng(0).standard_normal((200, 8))
    given_points = scattered(points, smallest_distance(points))
    for directions in (1, 2, 4):
        width = sqrt(pi / 16) * (200 * 199) ** (-1 / directions) * given_points.delta
        assert find_cells(given_points, directions, np.random.default_rng(1)).radius > 2 * width / (2 * 200)


def test_more_directions_make_it_larger() -> None:
    points = np.random.default_rng(0).standard_normal((100, 8))
    given_points = scattered(points, smallest_distance(points))
    found = [find_cells(given_points, q, np.random.default_rng(1)).radius for q in (1, 2, 3, 5)]
    assert found == sorted(found)
    assert found[-1] > 50 * found[0]


def test_blocks_move_on_their_own() -> None:
    """Two blocks of two coordinates: w·x moves by R times the sum of the blocks' norms, 5 + 13, not by R·√194."""
    found = scattered(np.array([[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]), 1.0, blocks=2)
    assert found.reach(integers([3, 4, 5, 12])) == 20  # norms are rounded up, by 1 at most each


def test_a_single_point_needs_no_spread() -> None:
    assert spread(0.0, 1.0) == spread(1.0, 8.0) == -1
    assert spread(8.0, 1.0) == 3

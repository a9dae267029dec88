"""Indicators: exactly 1 on one ball, exactly 0 on all others, for every radius below half the separation."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.constructions.gadgets.indicators import Balls, find_balls
from byheart.constructions.gadgets.vectors import Points

from ..conftest import through
from .test_cells import scattered, smallest_distance


def check_balls(points: Points, radius: float, seed: int) -> None:
    """Centres, random points and the farthest towards each other are read as their centres."""
    rng = np.random.default_rng(seed)
    (reader,) = find_balls(points, radius, rng)
    hashes, layers = reader.draw(10_007, rng)
    assert reader.front.shapes == tuple((layer.role, *layer.W.shape) for layer in layers)
    for row, point in enumerate(points.points):
        others = np.delete(points.points, row, axis=0)
        nearest = others[np.linalg.norm(others - point, axis=1).argmin()]
        for direction in (nearest - point, rng.standard_normal(len(point)), np.zeros(len(point))):
            length = float(np.linalg.norm(direction)) or 1.0
            moved = point + direction / length * radius * (1 - 1e-9)
            assert through(layers, [Fraction(x) for x in moved.tolist()])[-1] == [hashes[row]]


def test_by_hand() -> None:
    """0 and 2 on a line, radius ½: one direction, eight parameters, the code of 0 on [−½, ½] and 0 on [1½, 2½]."""
    points = scattered(np.array([[0.0], [2.0]]), 2.0)
    points = Points(points.points, 1, 2.0, 2.0, np.array([0]), 1, points.apart)
    (reader,) = find_balls(points, 0.5, np.random.default_rng(0))
    assert reader.front == Balls(dim=1, kept=1, directions=(1,), together=1)
    assert reader.front.dense == 2 + 2 + 2 + 2
    layers = reader.layers(np.array([7]))
    for x, read in ((-0.5, 7), (0.0, 7), (0.5, 7), (1.5, 0), (2.0, 0), (2.5, 0)):
        assert through(layers, [Fraction(x)])[-1] == [read]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 15), st.integers(1, 5), st.sampled_from([0.01, 0.125, 0.4, 0.499]))
def test_random_points(seed: int, K: int, dim: int, share: float) -> None:
    points = np.random.default_rng(seed).standard_normal((K, dim))
    delta = smallest_distance(points)
    check_balls(scattered(points, delta), share * delta, seed)


@pytest.mark.parametrize("share", [0.05, 0.25, 0.49])
def test_a_lattice(share: float) -> None:
    """Neighbours lie opposite each other, so that their mean is no direction at all."""
    lattice = np.stack(np.meshgrid(*[np.arange(3.0)] * 3), axis=-1).reshape(-1, 3)
    check_balls(scattered(lattice, 1.0), share, 0)


def test_small_radii_keep_few_dimensions() -> None:
    points = np.random.default_rng(0).standard_normal((40, 16))
    given_points = scattered(points, smallest_distance(points))
    kept, dense = [], []
    for share in (1e-4, 0.01, 0.45):
        (reader,) = find_balls(given_points, share * given_points.delta, np.random.default_rng(0))
        kept.append(reader.front.kept)
        dense.append(reader.front.dense)
    assert kept == sorted(kept)
    assert kept[0] < 4
    assert kept[-1] == 16
    assert dense == sorted(dense)


def test_no_radius_is_kept_where_balls_touch() -> None:
    points = scattered(np.array([[0.0, 0.0], [1.0, 0.0]]), 1.0)
    assert find_balls(points, 0.5, np.random.default_rng(0)) == []

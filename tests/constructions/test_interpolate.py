"""Zigzag and spikes: by hand on a few points, then on any."""

from collections.abc import Callable
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from byheart.constructions.interpolate import Spikes, Zigzag
from byheart.networks.exact import integers

Through = Callable[..., list[list[int]]]


def test_zigzag_through_three_points(through: Through) -> None:
    """(31, 1), (35, 0), (37, 1) with S = C = 2: slope +2, turning down after 131/4 and up again after 143/4.

    Up 2·(131/4 − 31) = 3.5 from 1 and down 2·(35 − 131/4) = 4.5 to 0; down 2·(143/4 − 35) = 1.5, up 2.5 to 1.
    """
    turns, answer = layers = Zigzag(keys=3, labels=2).layers(np.array([35, 31, 37]), integers([0, 1, 1]))
    assert turns.W.tolist() == [[2], [4], [4]]
    assert turns.b.tolist() == [0, -131, -143]
    assert answer.W.tolist() == [[1, -1, 1]]
    assert answer.b.tolist() == [1 - 2 * 31]
    assert not answer.relu
    assert through(layers, [31]) == [[62, 0, 0], [1]]
    assert through(layers, [35]) == [[70, 9, 0], [0]]
    assert through(layers, [37]) == [[74, 17, 5], [1]]


points = st.dictionaries(st.integers(0, 10**6) | st.integers(0, 20), st.integers(0, 9), min_size=1, max_size=12)


@given(points, st.randoms())
def test_zigzag_passes_through_all_points(through: Through, wanted: dict[int, int], random: Random) -> None:
    pairs = list(wanted.items())
    random.shuffle(pairs)
    sizes = Zigzag(keys=len(pairs), labels=10)
    layers = sizes.layers(np.array([z for z, _ in pairs]), integers([y for _, y in pairs]))
    assert [through(layers, [z])[-1] for z, _ in pairs] == [[y] for _, y in pairs]
    assert [(layer.role, *layer.W.shape) for layer in layers] == list(sizes.shape.layers)
    assert sizes.shape.dense == 3 * len(pairs) + 1


def test_zigzag_through_neighbours_with_the_largest_jumps(through: Through) -> None:
    """Gaps of 1 between 0 and C − 1: the steepest that is allowed."""
    labels = [0, 9] * 10
    layers = Zigzag(keys=20, labels=10).layers(np.arange(20), integers(labels))
    assert [through(layers, [z])[-1][0] for z in range(20)] == labels


def test_two_spikes(through: Through) -> None:
    """7 at 2 and 3 at 5: units relu(z − 1), relu(z − 2), relu(z − 3), … with weights 7, −14, 7 and 3, −6, 3."""
    spikes, answer = layers = Spikes(keys=2, labels=8, own_bits=0).layers(np.array([2, 5]), integers([7, 3]))
    assert spikes.b.tolist() == [-1, -2, -3, -4, -5, -6]
    assert answer.W.tolist() == [[7, -14, 7, 3, -6, 3]]
    assert [through(layers, [z])[-1] for z in range(8)] == [[0], [0], [7], [0], [0], [3], [0], [0]]


@given(points, st.sampled_from([0, 5]))
def test_spikes_are_zero_elsewhere(through: Through, wanted: dict[int, int], own_bits: int) -> None:
    sizes = Spikes(keys=len(wanted), labels=10, own_bits=own_bits)
    layers = sizes.layers(np.array(list(wanted)), integers(list(wanted.values())))
    assert [(layer.role, *layer.W.shape) for layer in layers] == list(sizes.shape.layers)
    for z in {*range(23), *wanted, *(z + 1 for z in wanted), *(abs(z - 1) for z in wanted)}:
        own = z if own_bits else 0
        assert through(layers, [z])[-1] == [(wanted.get(z, 0) << own_bits) + own]

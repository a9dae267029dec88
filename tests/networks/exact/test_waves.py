"""Chains of folds as one triangle wave: by hand, against fractions, and where a chain is none."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.networks.exact import Block, Residual
from byheart.networks.exact.evaluate import evaluate
from byheart.networks.exact.limbs import from_numbers
from byheart.networks.exact.waves import Wave, parts

from .drawn import tries
from .oracle import affine, answers, block, feed_forward, on_tokens, uniform


def folds(T, thresholds):
    """Z ← Z − 2·relu(Z − t) on the stream T − Z, as layers with a skip connection."""
    return [feed_forward(affine([[-2]], [2 * (T - t)]), residual=True) for t in thresholds]


def halving(t, count):
    return [t >> k for k in range(count)]


def chain(T, thresholds):
    return Residual(tuple(block([[-2]], [2 * (T - t)], [[1]]) for t in thresholds))


def recognised(T, thresholds):
    """How many folds each part has; those of a wave are negative."""
    return [
        -len(part.folds.blocks) if isinstance(part, Wave) else len(part.blocks) for part in parts(chain(T, thresholds))
    ]


def test_four_folds_by_hand():
    """T = 16, folds at 8, 4, 2, 1: Z = 0 … 16 becomes its distance to the nearest even number, 0 or 1."""
    network = on_tokens(feed_forward(affine([[-1]], [16], relu=False)), *folds(16, [8, 4, 2, 1]))
    Z = np.arange(17)[:, None]
    assert evaluate(network, Z).tolist() == [16 - z % 2 for z in range(17)]
    (wave,) = parts(chain(16, [8, 4, 2, 1]))
    assert isinstance(wave, Wave)
    assert (wave.top, wave.first) == (16, 8)
    assert wave(from_numbers([16 - 5], 0, 1)).numerators().tolist() == [[16 - 1]]


@given(st.integers(4, 60), st.integers(1, 2**80), st.integers(-(2**90), 2**90), st.data())
@tries(60)
def test_waves_are_what_the_folds_are(count, unit, T, data):
    """Inside [0, 2t] by the theorem, at its ends, and outside of it, where folds do something else."""
    t = unit << (count - 1)
    inside = data.draw(st.lists(st.integers(0, 2 * t), min_size=1, max_size=4))
    batch = [*inside, 0, 2 * t, t, unit]
    outside = data.draw(st.lists(st.integers(-3 * t, 5 * t), max_size=2))
    (wave,) = parts(chain(T, halving(t, count)))
    assert isinstance(wave, Wave)
    for numbers in (batch, batch + outside):
        expected = []
        for number in numbers:
            Y = T - number
            for threshold in halving(t, count):
                Y += max(0, 2 * (T - threshold) - 2 * Y)
            expected.append(Y)
        found = wave(from_numbers([T - number for number in numbers], 0, 1))
        if all(0 <= number <= 2 * t for number in numbers):
            assert found.numerators()[:, 0].tolist() == expected
        else:
            assert found is None


@pytest.mark.parametrize("length", [1, 3])
def test_numbers_outside_and_fractions(length):
    """Tokens from below 0 to beyond 2t; a mean over three makes thirds of them."""
    layers = [feed_forward(affine([[-3]], [40], relu=False)), uniform([[1]], [[1]]), *folds(40, [16, 8, 4, 2, 1])]
    network = on_tokens(*layers, length=length, outputs="every")
    near, far = np.arange(12).reshape(-1, length), np.arange(-9, 21).reshape(-1, length)
    for inputs in (near, far):
        assert evaluate(network, inputs).tolist() == answers(network, inputs)


@pytest.mark.parametrize(
    ("thresholds", "expected"),
    [
        ([16, 8, 4, 2], [-4]),
        ([16, 8, 4], [3]),
        ([16, 8, 4, 2, 1], [-5]),
        ([16, 8, 4, 2, 2, 1], [-4, 2]),
        ([99, 16, 8, 4, 2, 77], [1, -4, 1]),
        ([2, 4, 8, 16], [4]),
        ([17, 8, 4, 2], [4]),
        ([16, 8, 4, 2, 32, 16, 8, 4, 2], [-4, -5]),
    ],
)
def test_what_is_a_wave_and_what_is_none(thresholds, expected):
    assert recognised(100, thresholds) == expected
    network = on_tokens(feed_forward(affine([[-1]], [100], relu=False)), *folds(100, thresholds))
    inputs = np.arange(-5, 40)[:, None]
    assert evaluate(network, inputs).tolist() == answers(network, inputs)


def test_a_bias_that_is_off_by_one_ends_the_wave():
    """Thresholds 16, 8, 4, 2½: four folds that are almost a wave, and a fifth."""
    blocks = [*chain(50, [16, 8, 4]).blocks, block([[-2]], [2 * 50 - 5], [[1]]), *chain(50, [1]).blocks]
    assert [type(part) for part in parts(Residual(tuple(blocks)))] == [Residual]


def test_other_weights_are_no_folds():
    thresholds = [16, 8, 4, 2]
    for W_in, W_out in [([[-2]], [[2]]), ([[-1]], [[1]]), ([[2]], [[1]])]:
        blocks = tuple(block(W_in, [2 * (50 - t)], W_out) for t in thresholds)
        assert [type(part) for part in parts(Residual(blocks))] == [Residual]


def test_halving_ends_where_a_threshold_is_odd():
    """12, 6, 3 and then 3/2, which is no integer: three folds at most."""
    assert all(a == 2 * b for a, b in pairwise([12, 6, 3]))
    assert recognised(50, [12, 6, 3, 1]) == [4]


def test_every_fold_is_looked_at_once():
    """A file may have a hundred thousand folds, none of which begins a wave."""
    looks = []

    class Seen(Block):
        def __getattribute__(self, name):
            looks.append(name)
            return super().__getattribute__(name)

    blocks = [Seen(fold.W_in, fold.b_in, fold.W_out) for fold in chain(50, [5] * 200).blocks]
    whole = Residual(tuple(blocks))
    looks.clear()
    assert [type(part) for part in parts(whole)] == [Residual]
    assert looks.count("b_in") <= len(blocks)

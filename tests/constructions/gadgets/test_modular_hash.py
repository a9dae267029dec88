"""Waves, folds, products and moduli, against Python's own integers."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.constructions.gadgets.modular_hash import (
    draw_modulus,
    fold,
    fold_layers,
    fold_shapes,
    folds_needed,
    largest_key,
    largest_modulus,
    multiply,
    question_modulus,
    wave,
    wave_shapes,
)
from byheart.networks.exact import Affine, integers

Through = Callable[..., list[list[int]]]


def is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def distance(s: int, Q: int) -> int:
    """To the next multiple of Q."""
    return min(abs(s - k * Q) for k in (s // Q, s // Q + 1))


def test_fold_by_hand(through: Through) -> None:
    """Q = 7, two folds, s = 12: Z = 24; 24 − 2·relu(24 − 14) = 4; 4 − 2·relu(4 − 7) = 4; half of it is 2 = 14 − 12."""
    layers = fold_layers([1], 0, 7, 2)
    assert [layer.W.tolist() for layer in layers] == [[[2], [2]], [[1, -2], [1, -2]], [[1, -2]]]
    assert [layer.b.tolist() for layer in layers] == [[0, -14], [0, -7], [0]]
    assert through(layers, [12]) == [[24, 10], [4, 0], [2]]


@pytest.mark.parametrize("Q", [2, 3, 5, 7, 31, 131])
@pytest.mark.parametrize("folds", [1, 2, 3, 6])
def test_fold_layers_fold_everything_in_range(Q: int, folds: int, through: Through) -> None:
    layers = fold_layers([1], 0, Q, folds)
    span = range(Q * 2**folds // 2 + 1) if Q * 2**folds < 500 else range(0, Q * 2**folds // 2 + 1, 17)
    assert [through(layers, [s])[-1][0] for s in span] == [distance(s, Q) for s in span]
    assert fold(np.array(span), Q).tolist() == [distance(s, Q) for s in span]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), min_size=1, max_size=4),
    st.integers(0, 40),
    st.sampled_from([5, 131, 2**61 - 1]),
)
def test_fold_layers_of_a_weighted_sum(through: Through, terms: list[tuple[int, int]], bias: int, Q: int) -> None:
    weights, stream = [w for w, _ in terms], [x for _, x in terms]
    s = sum(w * x for w, x in terms) + bias
    folds = folds_needed(-(-s // Q) or 1)
    layers = fold_layers(weights, bias, Q, folds)
    assert through(layers, stream)[-1] == [distance(s, Q)]
    assert [(layer.role, *layer.W.shape) for layer in layers] == fold_shapes(len(weights), folds)


def test_no_folds_are_no_layers() -> None:
    assert fold_layers([1], 0, 7, 0) == []
    assert fold_shapes(1, 0) == []


@given(st.integers(1, 2**200))
def test_folds_needed_is_the_least_number(ratio: int) -> None:
    folds = folds_needed(ratio)
    assert 2 * ratio <= 2**folds
    assert 2 * ratio > 2 ** (folds - 1)


@given(st.integers(2, 2**47 - 1), st.data())
def test_multiply_as_python_does(modulus: int, data: st.DataObject) -> None:
    residues = st.integers(0, modulus - 1) | st.just(modulus - 1)
    a = data.draw(st.lists(residues, min_size=1, max_size=5))
    b = data.draw(st.lists(residues, min_size=len(a), max_size=len(a)))
    assert multiply(np.array(a), np.array(b), modulus).tolist() == [x * y % modulus for x, y in zip(a, b, strict=True)]
    assert multiply(np.array(a), np.array(b[:1]), modulus).tolist() == [x * b[0] % modulus for x in a]


@pytest.mark.parametrize("modulus", [2**31 - 1, 2**31, 2**31 + 11, 2**47 - 115])
def test_multiply_the_largest_residues(modulus: int) -> None:
    top = np.array([modulus - 1, modulus - 2])
    assert multiply(top, top, modulus).tolist() == [1, 4]


@pytest.mark.parametrize("smallest", [128, 129, 200, 5000, 10**6])
def test_moduli_are_primes_in_their_range(smallest: int) -> None:
    rng = np.random.default_rng(0)
    drawn = {draw_modulus(smallest, rng) for _ in range(60)}
    assert all(is_prime(Q) and smallest <= Q <= largest_modulus(smallest) for Q in drawn)
    assert len(drawn) > 1
    assert max(Q // 2 for Q in drawn) <= largest_key(smallest)


def test_every_range_of_moduli_has_a_prime() -> None:
    """Rohrbach & Weis for the first thousands: between x and 9x/8 there is a prime from x = 128 on."""
    primes = [x for x in range(128, 6000) if is_prime(x)]
    assert all(any(x <= p <= x + x // 8 for p in primes) for x in range(128, 5000))


@given(st.integers(1, 10**5), st.integers(1, 300))
def test_question_modulus_has_room(questions: int, labels: int) -> None:
    """A key in [0, (Q − 1)/2] for every question and one to spare; at most 4 expected collisions."""
    Q = question_modulus(questions, labels)
    assert Q >= 128
    assert questions <= (Q - 1) // 2
    pairs = (1 - 1 / labels) * questions**2 / 2
    assert pairs * 2 / Q <= 4 * (1 + 4 / Q)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_folded_sums_collide_as_rarely_as_the_proof_says(seed: int) -> None:
    """Two coefficient vectors, Q = 1009: collisions in 20,000 draws are at most 2/Q of them, plus six deviations."""
    Q, draws, rng = 1009, 20_000, np.random.default_rng(seed)
    c, other = rng.integers(0, 20, size=(2, 4))
    if (c == other).all() or not c.any() or not other.any():
        return
    codes = rng.integers(0, Q, size=(draws, 4))
    collisions = int((fold(codes @ c, Q) == fold(codes @ other, Q)).sum())
    mean = draws * 2 / Q
    assert collisions <= mean + 6 * mean**0.5


Through = Callable[..., list[list[int]]]


def triangle(x: int, h: int) -> int:
    """Rises to h at h, falls to 0 at 2h."""
    return h - abs(x % (2 * h) - h)


def test_three_bits_two_at_once_by_hand() -> None:
    """h = 5: first relu(x − j·10), j < 4, beside what is carried, then relu(y), relu(y − 5), y being their sum."""
    layers, row = wave([1], 0, h=5, bits=3, carry=([7], 1), at_once=2)
    assert [layer.W.tolist() for layer in layers] == [
        [[1], [1], [1], [1], [7]],
        [[1, -2, 2, -2, 0], [1, -2, 2, -2, 0], [0, 0, 0, 0, 1]],
    ]
    assert [layer.b.tolist() for layer in layers] == [[0, -10, -20, -30, 1], [0, -5, 0]]
    assert row == [1, -2, 0]


@pytest.mark.parametrize("at_once", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("bits", [1, 2, 3, 5])
@pytest.mark.parametrize("h", [1, 2, 7])
def test_the_wave_everywhere(h: int, bits: int, at_once: int, through: Through) -> None:
    layers, row = wave([3], 1, h=h, bits=bits, carry=([2], 5), at_once=at_once)
    shapes = [(layer.role, *layer.W.shape) for layer in layers]
    assert shapes == wave_shapes(1, bits, carry=True, at_once=at_once)
    assert len(layers) == -(-bits // at_once)
    carried = [0] * (len(row) - 1) + [1]
    read = Affine(integers([row, carried]), integers([0, 0]), relu=False)
    for x in range((h * 2**bits - 1) // 3 + 1):
        assert through([*layers, read], [x])[-1] == [triangle(3 * x + 1, h), 2 * x + 5]


def test_without_bits_nothing_happens() -> None:
    assert wave([3, 4], 1, h=5, bits=0) == ([], [3, 4])
    assert wave_shapes(2, 0) == []


@pytest.mark.parametrize("at_once", [2, 3, 8])
def test_a_hash_is_folded_as_bit_by_bit(at_once: int, through: Through) -> None:
    slow, fast = (fold_layers([1, 2], 3, 13, 4, bits) for bits in (1, at_once))
    assert [(layer.role, *layer.W.shape) for layer in fast] == fold_shapes(2, 4, at_once)
    assert len(fast) == -(-4 // at_once) + 1 < len(slow)
    for x in range(0, 100):
        assert through(fast, [x, 0])[-1] == through(slow, [x, 0])[-1]

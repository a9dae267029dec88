"""The compiled loops one by one, against Python's own integers."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from byheart.networks.exact import Affine, integers
from byheart.networks.exact.kernels import LIMB, relu_, resolve, shift_right, trailing_zeros, used_limbs
from byheart.networks.exact.limbs import LimbProgram, from_integers

from .drawn import entries, matrices, tries
from .oracle import values


def numbers(block):
    return [sum(limb << (24 * k) for k, limb in enumerate(column)) for column in block.T.tolist()]


accumulators = st.one_of(st.integers(-(2**62), 2**62), st.sampled_from([0, -1, 2**24, -(2**24), 2**24 - 1, 2**62]))


@st.composite
def blocks(draw):
    limbs, batch = draw(st.integers(1, 5)), draw(st.integers(1, 9))
    flat = draw(st.lists(accumulators, min_size=limbs * batch, max_size=limbs * batch))
    block = np.array(flat, dtype=np.int64).reshape(limbs, batch)
    block[-1] >>= 2  # the highest limb has room for the carry
    return block


@tries(200)
@given(blocks())
def test_resolving_keeps_the_values_and_normalises_all_but_the_highest_limb(block):
    before = numbers(block)
    resolve(block)
    assert numbers(block) == before
    assert (block[:-1] >= 0).all()
    assert (block[:-1] < 2**24).all()


def test_resolving_by_hand():
    """-1 is 2²⁴ - 1 with a borrow; 2²⁴ + 5 is 5 with a carry; the borrow walks through a zero limb."""
    block = np.array([[-1, 2**24 + 5], [0, 7], [0, 0]], dtype=np.int64)
    resolve(block)
    assert block.T.tolist() == [[2**24 - 1, 2**24 - 1, -1], [5, 8, 0]]


@tries(100)
@given(blocks())
def test_relu_keeps_what_is_not_negative(block):
    resolve(block)
    before = numbers(block)
    relu_(block)
    assert numbers(block) == [max(0, value) for value in before]


@tries(100)
@given(blocks(), st.integers(0, 3))
def test_leading_limbs_that_only_carry_signs_are_not_used(block, signs):
    """More limbs than needed, 0 above what is not negative and −1 above what is: none is used but above −2^(24·l)."""
    resolve(block)
    before = numbers(block)
    padded = np.zeros((len(block) + signs, block.shape[1]), dtype=np.int64)
    padded[: len(block)] = block
    resolve(padded)
    used = used_limbs(padded)
    assert numbers(padded[:used]) == before
    alone = (padded[used - 1] == -1) & (padded[used - 2] == 0)  # −1 above 0 cannot be dropped
    assert used == 1 or not np.isin(padded[used - 1], (0, -1)).all() or alone.any()
    assert ((padded[: used - 1] >= 0) & (padded[: used - 1] < 1 << LIMB)).all()


@st.composite
def divisible(draw):
    """A batch all of whose entries are divisible by 2^places, and places."""
    places = draw(st.integers(0, 100))
    shape = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    numbers = draw(matrices(*shape)) * 2**places
    return numbers, places


def twos(value):
    return (value & -value).bit_length() - 1


@tries(150)
@given(divisible(), st.integers(0, 150))
def test_the_common_power_of_two_up_to_a_limit(given_numbers, limit):
    numbers, _ = given_numbers
    batch = from_integers(numbers)
    expected = min([limit, *(twos(value) for value in numbers.ravel().tolist() if value)])
    assert trailing_zeros(batch.limbs, batch.start, batch.length, limit) == expected


@tries(150)
@given(divisible())
def test_shifting_divides_and_drops_whole_limbs(given_numbers):
    numbers, places = given_numbers
    batch = from_integers(numbers)
    before = batch.length.copy()
    shift_right(batch.limbs, batch.start, batch.length, places)
    assert values(batch) == [[value // 2**places for value in row] for row in numbers.tolist()]
    assert batch.length.tolist() == [max(1, length - places // LIMB) for length in before]


@given(entries, st.integers(0, 49))
@tries(60)
def test_one_odd_entry_among_even_ones_stops_the_shift(value, places):
    numbers = np.array([[value * 2**50], [2**places]], dtype=object)
    batch = from_integers(numbers)
    assert trailing_zeros(batch.limbs, batch.start, batch.length, 1000) == places


edges = st.sampled_from(
    [sign * 2 ** (LIMB * limbs) + off for sign in (0, 1, -1) for limbs in (0, 1, 2, 3) for off in (0, 1)]
)


@tries(300)
@given(st.lists(st.lists(edges, min_size=2, max_size=2), min_size=1, max_size=4), st.sampled_from([0, 12, 24, 48, 72]))
def test_limbs_are_dropped_and_shifted_without_loss(rows, shift):
    """−2^(24·l) needs a limb more than its magnitude has: trimmed, and then divided, it must not become 0."""
    negate = Affine(integers([[1, 0], [0, -1], [1, 1]]), integers([0, 0, 0]), shift=shift, relu=False)
    batch = LimbProgram((negate, identity_again(3)))(from_integers(integers(rows)))
    expected = [[Fraction(a, 2**shift), Fraction(-b, 2**shift), Fraction(a + b, 2**shift)] for a, b in rows]
    assert values(batch) == expected


def identity_again(width):
    return Affine(integers(np.eye(width, dtype=np.int64)), integers([0] * width), relu=False)

"""Batches of big integers against fractions, number by number."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from byheart.networks.exact import integers
from byheart.networks.exact.exact_layers import identity, linear
from byheart.networks.exact.limbs import (
    LimbProgram,
    Limbs,
    concatenate,
    digits,
    from_floats,
    from_int64,
    from_integers,
    over,
    stack,
    total,
)

from .drawn import chains, entries, floats, machine, matrices, small, tries
from .oracle import affine, chain, values

ONES = 2**24 - 1
"""A digit of 24 ones."""


def fractions(array):
    return [[Fraction(value) for value in row] for row in array.tolist()]


def well_formed(batch):
    """The layout that the module promises: limbs in [0, 2²⁴) below the highest one, which carries the sign."""
    for start, length in zip(batch.start, batch.length, strict=True):
        low = batch.limbs[start : start + length - 1]
        if length < 1 or start + length > len(batch.limbs) or (low < 0).any() or (low > ONES).any():
            return False
    return batch.limbs.dtype == np.int32 and batch.limbs.flags.c_contiguous


@st.composite
def batches(draw, width=None, batch=None):
    """A batch from any of the three doors, and its values."""
    shape = batch or draw(st.integers(1, 9)), width or draw(st.integers(1, 4))
    match draw(st.sampled_from(["integers", "int64", "floats"])):
        case "integers":
            source = draw(matrices(*shape))
            return from_integers(source), fractions(source)
        case "int64":
            source = draw(hnp.arrays(np.int64, shape, elements=machine))
            return from_int64(source), fractions(source)
        case _:
            source = draw(hnp.arrays(np.float64, shape, elements=floats))
            return from_floats(source), fractions(source)


@st.composite
def divided(draw, width=None, batch=None):
    """A batch over any denominator, and its values."""
    limbs, expected = draw(batches(width, batch))
    divisor, exponent = draw(st.sampled_from([1, 1, 2, 3, 7, 12, 3**40])), draw(st.sampled_from([0, 1, 23, 24, 60]))
    scale = divisor * 2**exponent
    result = Limbs(limbs.limbs, limbs.start, limbs.length, limbs.exponent + exponent, divisor)
    return result, [[value / scale for value in row] for row in expected]


@tries(150)
@given(batches())
def test_what_goes_in_comes_out(drawn):
    batch, expected = drawn
    assert well_formed(batch)
    assert values(batch) == expected
    scale = batch.divisor << batch.exponent
    assert [[Fraction(value, scale) for value in row] for row in batch.numerators().tolist()] == expected


def test_floats_by_hand():
    """The finest of 0.75, -2 and 5e-324 = 2⁻¹⁰⁷⁴ sets the grid for all of them."""
    batch = from_floats(np.array([[0.75, -2.0], [5e-324, -0.0]]))
    assert batch.exponent == 1074
    assert batch.numerators().tolist() == [[3 << 1072, -(2 << 1074)], [1, 0]]


def test_floats_that_are_even_integers_stay_over_one():
    batch = from_floats(np.array([[6.0, -1e300]]))
    assert (batch.exponent, batch.numerators().tolist()) == (0, [[6, -int(1e300)]])


@given(entries)
def test_digits_have_the_sign_of_the_number_and_24_bits(value):
    parts = digits(value).tolist()
    assert sum(part << (24 * k) for k, part in enumerate(parts)) == value
    assert all(abs(part) <= ONES and part * value >= 0 for part in parts)
    assert not parts or parts[-1] != 0


@tries(50)
@given(st.data())
def test_columns_picks_vectors_in_any_order(data):
    batch, expected = data.draw(divided())
    index = data.draw(st.lists(st.integers(0, batch.batch - 1), min_size=1, max_size=12))
    assert values(batch.columns(np.array(index))) == [expected[i] for i in index]
    assert values(batch.columns(slice(batch.batch - 1, None, -1))) == expected[::-1]


def test_a_chain_by_hand():
    """x = 3: (5·3 - 1) / 4 = 7/2; then (-2 · 7/2 + 1) = -6, which the ReLU stops, and 7/2 + 3 = 13/2.

    x = 5: (25 - 1) / 4 = 6; then -11, stopped, and 9. One batch has one exponent: 13/2 and 18/2.
    """
    program = LimbProgram((affine([[5]], [-1], shift=2), affine([[-2], [1]], [1, 3])))
    result = program(from_integers(integers([[3], [5]])))
    assert (result.numerators().tolist(), result.exponent) == ([[0, 13], [0, 18]], 1)
    assert program(from_integers(integers([[5]]))).exponent == 0


@pytest.mark.slow
@tries(400)
@given(st.data())
def test_chains_are_exact(data):
    batch, vectors = data.draw(batches())
    layers = data.draw(chains(batch.width, most=4))
    result = LimbProgram(layers)(batch)
    assert well_formed(result)
    assert values(result) == [chain(layers, vector) for vector in vectors]


@tries(100)
@given(st.data())
def test_chains_are_exact_over_any_divisor(data):
    batch, vectors = data.draw(divided())
    layers = data.draw(chains(batch.width, of=st.one_of(small, entries)))
    result = LimbProgram(layers, batch.divisor)(batch)
    assert result.divisor == batch.divisor
    assert values(result) == [chain(layers, vector) for vector in vectors]


def test_biases_are_multiplied_by_the_divisor():
    """2/3 · 5 - 1 = 7/3: over the divisor 3 that is 2 · 5 - 3 = 7."""
    third = from_integers(integers([[2]]))
    batch = Limbs(third.limbs, third.start, third.length, divisor=3)
    result = LimbProgram((affine([[5]], [-1]),), divisor=3)(batch)
    assert (result.numerators().tolist(), result.divisor) == ([[7]], 3)


@tries(60)
@given(st.data())
def test_a_vector_gets_the_same_answer_in_any_company(data):
    batch, _ = data.draw(batches())
    program = LimbProgram(data.draw(chains(batch.width)))
    alone = [values(program(batch.columns(slice(b, b + 1))))[0] for b in range(batch.batch)]
    assert values(program(batch)) == alone
    assert values(program(batch.columns(slice(None, None, -1)))) == alone[::-1]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("terms", "places"), [(3000, 1), (3000, 12), (9000, 1), (9, 5)])
def test_carries_of_rows_with_many_terms(terms, places, sign):
    """Every weight and every input is 2^(24·places) - 1, all digits ones: the row adds up to terms · (…)² and a bias.

    3000 terms of 12 digits put 36,000 products of 2⁴⁸ on the middle limb: more than the 2¹⁵ that int64 has room for.
    """
    full = 2 ** (24 * places) - 1
    wide = integers([full] * terms, (1, terms))
    batch = from_integers(np.concatenate([wide, -wide, wide // full]))
    result = LimbProgram((affine(sign * wide, [sign * full], relu=False),))(batch)
    assert well_formed(result)
    square = terms * full * full
    assert result.numerators()[:, 0].tolist() == [sign * v for v in (square + full, full - square, (terms + 1) * full)]


def trimmed(numbers):
    """A batch of numbers that fill their limbs to the last bit, without the spare limb that they come with."""
    batch = from_integers(numbers)
    result = LimbProgram((affine(identity(batch.width).tolist(), [0] * batch.width),))(batch)
    assert (result.limbs[result.start + result.length - 1] == ONES).all()
    return result


@pytest.mark.parametrize("sign", [1, -1])
def test_the_highest_limb_has_room_for_rows_with_many_terms(sign):
    """300 terms (2⁴⁸ - 1)(2⁴⁷ - 1) need 104 bits: the fourth limb, with 2³², would be too large for an int32."""
    row = [sign * (2**47 - 1)] * 300
    result = LimbProgram((affine([row], [0], relu=False),))(trimmed(integers([2**48 - 1] * 300, (1, 300))))
    assert result.numerators().tolist() == [[sign * 300 * (2**48 - 1) * (2**47 - 1)]]


def test_carries_when_large_terms_cancel():
    """Half of the terms are the other half's negatives, but for one unit: 1 is left, with all of its carries."""
    full = 2**240 - 1
    row = integers([full] * 5000 + [-full] * 5000 + [1], (1, 10_001))
    batch = from_integers(integers([full] * 10_000 + [1], (1, 10_001)))
    result = LimbProgram((affine(row, [0]),))(batch)
    assert result.numerators().tolist() == [[1]]
    assert result.length.tolist() == [1]


def test_numbers_that_shrink_get_shorter():
    """(2³⁰⁰ + 5) - 2³⁰⁰ = 5 takes one limb; zeros and stopped negatives take one as well."""
    batch = from_integers(integers([[2**300 + 5, 2**300]]))
    result = LimbProgram((affine([[1, -1], [0, 0], [-1, 0]], [0, 0, 0]),))(batch)
    assert result.numerators().tolist() == [[5, 0, 0]]
    assert result.length.tolist() == [1, 1, 1]


def test_division_is_carried_out_as_far_as_every_entry_allows():
    """Over 2⁵⁰: 2⁴⁸ · 3 and 2⁴⁹ become 3 and 2 over 2²; alone, 2⁵⁰ · 7 becomes 7 over 1."""
    divide = LimbProgram((affine([[1]], [0], shift=50),))
    together = divide(from_integers(integers([[3 << 48], [1 << 49]])))
    assert (together.numerators().tolist(), together.exponent) == ([[3], [2]], 2)
    alone = divide(from_integers(integers([[7 << 50]])))
    assert (alone.numerators().tolist(), alone.exponent) == ([[7]], 0)


@tries(80)
@given(st.data())
def test_over_a_larger_denominator_the_values_stay(data):
    batch, expected = data.draw(divided())
    factor, more = data.draw(st.sampled_from([1, 2, 5, 3**50])), data.draw(st.integers(0, 80))
    result = over(batch, batch.exponent + more, batch.divisor * factor)
    assert (result.exponent, result.divisor) == (batch.exponent + more, batch.divisor * factor)
    assert values(result) == expected
    assert well_formed(result)


@tries(80)
@given(st.data())
def test_stack_puts_units_side_by_side(data):
    size = data.draw(st.integers(1, 5))
    (first, left), (second, right) = data.draw(divided(batch=size)), data.draw(divided(batch=size))
    result = stack(first, second)
    assert values(result) == [a + b for a, b in zip(left, right, strict=True)]
    assert result.divisor == math.lcm(first.divisor, second.divisor)
    assert well_formed(result)


@tries(80)
@given(st.data())
def test_concatenate_puts_vectors_one_after_the_other(data):
    width = data.draw(st.integers(1, 3))
    parts = data.draw(st.lists(divided(width=width), min_size=1, max_size=4))
    result = concatenate([batch for batch, _ in parts])
    assert values(result) == [row for _, rows in parts for row in rows]
    assert well_formed(result)


def test_concatenate_lengthens_negative_numbers():
    """-1 takes one limb beside nothing and four beside 2⁷²: the sign has to walk up."""
    result = concatenate([from_integers(integers([[-1]])), from_integers(integers([[2**72]]))])
    assert result.numerators().tolist() == [[-1], [2**72]]


@tries(80)
@given(st.data())
def test_total_adds_up_groups(data):
    group, groups = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    batch, expected = data.draw(divided(batch=group * groups))
    sums = [
        [sum(column) for column in zip(*expected[g : g + group], strict=True)] for g in range(0, len(expected), group)
    ]
    result = total(batch, group)
    assert values(result) == sums
    assert well_formed(result)


def test_total_of_many_full_limbs():
    """5000 numbers of 240 ones each."""
    full = 2**240 - 1
    assert total(from_integers(integers([full] * 5000, (5000, 1))), 5000).numerators().tolist() == [[5000 * full]]
    assert total(from_integers(integers([-full] * 5000, (5000, 1))), 2500).numerators().tolist() == [[-2500 * full]] * 2


def test_total_of_many_numbers_that_fill_their_limbs():
    """5000 · (2⁴⁸ - 1): the second limb would be 5000 · 2²⁴, more than an int32 holds."""
    batch = trimmed(integers([2**48 - 1] * 5000, (5000, 1)))
    assert total(batch, 5000).numerators().tolist() == [[5000 * (2**48 - 1)]]


def test_small_helpers():
    assert identity(3, -2).tolist() == [[-2, 0, 0], [0, -2, 0], [0, 0, -2]]
    plain = linear(integers([[1, 2], [3, 4], [5, 6]]))
    assert (plain.W.tolist(), plain.b.tolist()) == ([[1, 2], [3, 4], [5, 6]], [0, 0, 0])
    assert (plain.shift, plain.relu) == (0, False)

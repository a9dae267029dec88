"""Attention on small exact sequences, worked out by hand and against fractions."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.networks.exact import HardmaxAttention, UniformAttention, integers
from byheart.networks.exact.attention import hardmax, uniform
from byheart.networks.exact.limbs import Limbs, from_integers

from . import oracle
from .drawn import entries, matrices, small, tries
from .oracle import values


def column(*numbers, divisor=1, exponent=0):
    """Sequences of one coordinate, one token after the other."""
    batch = from_integers(integers([[number] for number in numbers]))
    return Limbs(batch.limbs, batch.start, batch.length, exponent, divisor)


def first_units(batch):
    return [row[0] for row in values(batch)]


def test_uniform_when_n_does_not_divide():
    """Z = 1, 2, 4 has the sum 7; with W_O W_V = 2, Z_k + 14/3 = 17/3, 20/3, 26/3."""
    layer = oracle.uniform([[2]], [[1]])
    result = uniform(layer, column(1, 2, 4), 3, last=False)
    assert first_units(result) == [Fraction(17, 3), Fraction(20, 3), Fraction(26, 3)]
    assert first_units(uniform(layer, column(1, 2, 4), 3, last=True)) == [Fraction(26, 3)]


def test_uniform_when_n_divides():
    """W_O W_V = 2 · 3 = 6 and n = 3: Z_k + 2 · 7 = 15, 16, 18, over the divisor 1."""
    result = uniform(oracle.uniform([[2]], [[3]]), column(1, 2, 4), 3, last=False)
    assert (first_units(result), result.divisor) == ([15, 16, 18], 1)


def test_uniform_cancels_as_much_of_n_as_it_can():
    """n = 4 and W_O W_V = 6: what is left of 4 is 2; Z = 1, 0, 0, 0 gives 1 + 3/2 and 3/2."""
    result = uniform(oracle.uniform([[6]], [[1]]), column(1, 0, 0, 0), 4, last=False)
    assert result.divisor == 2
    assert first_units(result) == [Fraction(5, 2), Fraction(3, 2), Fraction(3, 2), Fraction(3, 2)]


def test_uniform_over_a_denominator_of_its_own():
    """Z = 1/20, 3/20 (divisor 5, exponent 2): the mean is 1/10, so Z_k + 1/10 = 3/20, 5/20."""
    result = uniform(oracle.uniform([[1]], [[1]]), column(1, 3, divisor=5, exponent=2), 2, last=False)
    assert first_units(result) == [Fraction(3, 20), Fraction(5, 20)]


def test_uniform_keeps_sequences_apart():
    """Two sequences (1, 3) and (10, 30) with the means 2 and 20."""
    result = uniform(oracle.uniform([[1]], [[1]]), column(1, 3, 10, 30), 2, last=False)
    assert first_units(result) == [3, 5, 30, 50]
    assert first_units(uniform(oracle.uniform([[1]], [[1]]), column(1, 3, 10, 30), 2, last=True)) == [5, 50]


SCALAR = oracle.hardmax([[1]], [[1]], [[1]], [[1]])
"""One coordinate: token k looks for the largest Z_j · Z_k."""


def test_hardmax_looks_at_the_largest_score():
    """Z = 2, 5, -7. For 2 and 5 the largest Z_j Z_k is at 5; for -7 it is at -7 (49): 2+5, 5+5, -7-7."""
    result = hardmax(SCALAR, column(2, 5, -7), 3, last=False)
    assert first_units(result) == [7, 10, -14]
    assert first_units(hardmax(SCALAR, column(2, 5, -7), 3, last=True)) == [-14]


def test_hardmax_shares_ties():
    """Z = 4, 1, 4, 0. For 4 and 1 the winners are both 4s, mean 4; for 0 all scores are 0: mean 9/4."""
    result = hardmax(SCALAR, column(4, 1, 4, 0), 4, last=False)
    assert first_units(result) == [8, 5, 8, Fraction(9, 4)]


def test_hardmax_when_all_scores_are_negative():
    """W_Q = -1: scores -Z_j Z_k; Z = 3, 1, 2, all scores below 0, and the largest is at the smallest token, 1."""
    layer = oracle.hardmax([[-1]], [[1]], [[1]], [[1]])
    assert first_units(hardmax(layer, column(3, 1, 2), 3, last=False)) == [4, 2, 3]


def test_hardmax_tells_huge_scores_apart_by_their_last_bit():
    """The keys are 2⁵⁰⁰ and 2⁵⁰⁰ + 1; a float would see a tie."""
    huge = 2**500
    assert first_units(hardmax(SCALAR, column(huge, huge + 1), 2, last=False)) == [2 * huge + 1, 2 * huge + 2]
    assert first_units(hardmax(SCALAR, column(-huge, -huge - 1), 2, last=False)) == [-2 * huge - 1, -2 * huge - 2]


def test_hardmax_in_several_sequences_with_different_numbers_of_ties():
    """(5, 5): a tie of two, mean 5. (1, 2): one winner, 2. (0, 9): for 0 a tie, mean 9/2; for 9 one winner."""
    result = hardmax(SCALAR, column(5, 5, 1, 2, 0, 9), 2, last=False)
    assert first_units(result) == [10, 10, 3, 4, Fraction(9, 2), 18]
    assert first_units(hardmax(SCALAR, column(5, 5, 1, 2, 0, 9), 2, last=True)) == [10, 4, 18]


def test_hardmax_adds_up_scores_over_the_units_of_the_head():
    """Tokens (3, 0), (2, 2), (0, 3); W_K exchanges the units, so (3, 0) looks at (0, 3) with the score 9, not 6 or 0.

    (2, 2) sees the scores 6, 8, 6 and looks at itself. What is added to unit 0 is the other's unit 1: 3, 2, 0.
    """
    layer = oracle.hardmax([[1, 0], [0, 1]], [[0, 1], [1, 0]], [[0, 1]], [[1], [0]])
    batch = from_integers(integers([[3, 0], [2, 2], [0, 3]]))
    assert values(hardmax(layer, batch, 3, last=False)) == [[6, 0], [4, 2], [0, 3]]


@pytest.mark.parametrize("width", [1, 3])
def test_carries_of_scores_with_many_limbs(width):
    """All digits ones, 40 limbs: the winner is larger by one in the lowest digit of the last unit only."""
    full = 2**960 - 1
    tokens = [[full] * width, [full] * (width - 1) + [full - 1], [full] * width]
    eye = [[int(i == j) for j in range(width)] for i in range(width)]
    layer = oracle.hardmax(eye, eye, eye, eye)
    result = values(hardmax(layer, from_integers(integers(tokens)), 3, last=False))
    assert result == [[x + y for x, y in zip(token, tokens[0], strict=True)] for token in tokens]


@st.composite
def sequences(draw, width):
    """Sequences of few different tokens over some denominator."""
    length, count = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    pool = draw(matrices(3, width, st.one_of(small, small, entries)))
    which = draw(st.lists(st.integers(0, 2), min_size=length * count, max_size=length * count))
    batch = from_integers(pool[which])
    divisor, exponent = draw(st.sampled_from([1, 3, 10])), draw(st.sampled_from([0, 1, 30]))
    return Limbs(batch.limbs, batch.start, batch.length, exponent, divisor), length


def expected(layer, batch, length, last):
    rows, result = values(batch), []
    for begin in range(0, len(rows), length):
        outputs = oracle.apply(layer, rows[begin : begin + length])
        result.extend(outputs[-1:] if last else outputs)
    return result


@tries(150)
@given(st.data(), st.integers(1, 3), st.booleans())
def test_uniform_is_exact(data, width, last):
    batch, length = data.draw(sequences(width))
    layer = UniformAttention(data.draw(matrices(2, width)), data.draw(matrices(width, 2)))
    assert values(uniform(layer, batch, length, last)) == expected(layer, batch, length, last)


@tries(250)
@given(st.data(), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_hardmax_is_exact(data, width, head, last):
    batch, length = data.draw(sequences(width))
    shapes = [(head, width), (head, width), (2, width), (width, 2)]
    some = st.one_of(small, small, entries)
    layer = HardmaxAttention(*(data.draw(matrices(*shape, some)) for shape in shapes))
    assert values(hardmax(layer, batch, length, last)) == expected(layer, batch, length, last)


@pytest.mark.parametrize("head", [1, 2])
def test_equal_tokens_are_near_linear(head):
    """A list of all pairs of 60,000 tokens would take 3.6 · 10⁹ bytes. Every token looks at all, or at the largest."""
    layer = oracle.hardmax([[1]] * head, [[1]] * head, [[1]], [[1]])
    result = hardmax(layer, column(*[7] * 59_999, 9), 60_000, last=False)
    assert first_units(result) == [16] * 59_999 + [18]
    assert first_units(hardmax(layer, column(*[0] * 60_000), 60_000, last=False)) == [0] * 60_000

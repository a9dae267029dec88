"""Sizes: the dense count is that of the planned tensors, the search finds its minimum, and limits are what they say."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.constructions.folding import FoldingDemand, plan
from byheart.constructions.folding.design import (
    Choice,
    FoldingSizes,
    balanced,
    bit_lengths,
    bits_of,
    closed_form,
    design,
    factors,
    load_limit,
    radix_for,
    slack,
)
from byheart.constructions.folding.fronts import FoldingFront
from byheart.sizes import Size

FRONT = ("embedding", "positions", "token_code", "projection", "hash", "copy", "tail")


@given(
    st.integers(1, 10**4),
    st.integers(1, 300),
    st.sampled_from([1, 2, 3, 5]),
    st.none() | st.integers(1, 5),
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
)
@settings(deadline=None, max_examples=60)
def test_dense_is_the_sum_over_the_planned_tensors(
    questions: int, labels: int, length: int, dim: int | None, positions: bool, every: bool, growth: int
) -> None:
    size = Size(examples=questions, length=length, labels=labels, vocab=40, dim=dim)
    demand = FoldingDemand(FoldingFront(size, positions, every, 16, 0 if dim is None else 75), questions, 9)
    tensors = [(name, shape) for name, shape in plan(demand, growth).tensors if name.split(".")[0] not in FRONT]
    assert demand.sizes(growth).dense == sum(math.prod(shape) for _, shape in tensors)
    assert tensors[0][0] == "attention.W_V"


def test_dense_by_hand() -> None:
    """D = 2, s = 3, m = 4, C = R = 4, B = 10.

    M = 2⁸·4⁴ = 2¹⁶; Σ|u| + 1 ≤ 20 // 3 + 1 = 7, three rows of them 21: V = 2⁵·M. Gates ≤ 30: 6 bits, but four digits
    (3 bits) need 2⁸ folded levels, hence L = 13 and r = 5. Folds: 1 + 5 + 13 and three digits of two bits, 25 in all.
    Attention 8; words 3·3 and the sum 4; two shifts 2·10, drop 3; folds 2·25; a staircase of three steps 6·2 + 7.
    """
    sizes = FoldingSizes(questions=9, labels=4, radix=4, dim=2, rows=3, digits=4, reach=10)
    assert (sizes.words, sizes.modulus, sizes.sum_limit, sizes.carry_bits) == (9, 2**16, 7, 5)
    assert (sizes.gate_limit, sizes.level_bits, sizes.first_folds, sizes.last_folds) == (30, 13, 5, 20)
    assert (sizes.stages, sizes.label_bits) == (2, 0)
    assert sizes.dense == 8 + 9 + 4 + 20 + 3 + 2 * 25 + 19


def test_many_labels_are_read_bit_after_bit() -> None:
    """C = 7: three bits of 10, a copy of 4, an answer of 3, where a staircase would have 6·6 + 1 = 37 as well."""
    few, many = (FoldingSizes(9, C, C, 2, 3, 1, 10) for C in (6, 7))
    assert (few.label_bits, few.stairs.dense) == (0, 31)
    assert many.label_bits == 3
    assert many.dense - few.dense == 37 - 31


@given(st.integers(1, 10**4), st.sampled_from([2, 3, 10, 256]), st.integers(1, 500), st.integers(0, 2))
@settings(deadline=None, max_examples=50)
def test_the_search_finds_the_minimum(questions: int, labels: int, reach: int, growth: int) -> None:
    """No number of digits within a factor of two of the balance, with as many words as its load takes, is cheaper."""
    found = design(questions, labels, reach, range(5, 8), growth=growth, front=lambda dim: 7 * dim)
    balance = math.sqrt(questions / (2 * bits_of(labels)))
    cheapest = min(
        7 * dim
        + FoldingSizes(
            questions,
            labels,
            labels,
            dim,
            math.ceil((load_limit(questions, m) + slack(labels, load_limit(questions, m))) / (dim + 1) * 1.2**growth),
            m,
            reach,
        ).dense
        for dim in range(5, 8)
        for m in range(max(1, math.floor(balance / 2)), math.floor(2 * balance) + 3)
    )
    assert found.dense + 7 * found.dim == cheapest
    assert found.questions <= found.words * found.digits


@given(st.integers(1, 10**14), st.sampled_from([1, 2, 3, 7, 256, 2**50]), st.integers(1, 10**20), st.integers(1, 10**7))
def test_counts_at_once_are_those_of_each(questions: int, labels: int, reach: int, digits: int) -> None:
    """From one digit on, where nothing is shifted, up to products that need more than 64 bits."""
    for tried in (range(1, 4), range(digits, digits + 9, 4)):
        choice = Choice(questions, labels, reach, growth=1, digits=tried)
        assert choice.costs(5).tolist() == [choice.sizes(5, index).dense for index in range(3)]


@given(st.lists(st.integers(0, 10**15), min_size=1), st.integers(1, 10**30))
def test_bit_lengths(numbers: list[int], times: int) -> None:
    assert bit_lengths(np.array(numbers), times).tolist() == [(number * times).bit_length() for number in numbers]


@pytest.mark.parametrize(("labels", "reach"), [(2, 30), (10, 200), (256, 5000)])
def test_more_questions_never_cost_less(labels: int, reach: int) -> None:
    numbers = [*range(1, 200), *range(200, 10000, 397), 10**5, 10**6]
    costs = [design(K, labels, reach, range(5, 8)).dense for K in numbers]
    assert costs == sorted(costs)


@pytest.mark.parametrize("growth", range(12))
def test_growth_leaves_more_words_to_a_load(growth: int) -> None:
    for questions, labels in ((7, 2), (300, 256), (3000, 2)):
        sizes = design(questions, labels, 30, range(5, 7), growth=growth)
        needed = load_limit(questions, sizes.digits) + slack(labels, load_limit(questions, sizes.digits))
        assert needed * 1.2**growth <= sizes.words * 1.000001
        assert sizes.words < needed * 1.2**growth + sizes.dim + 1


@given(st.integers(1, 10**7), st.integers(1, 3000))
def test_load_limits_are_above_the_mean(questions: int, digits: int) -> None:
    limit = load_limit(questions, digits)
    assert limit * digits >= questions
    if digits == 1:
        assert limit == questions


@pytest.mark.parametrize(("questions", "digits"), [(100, 2), (1000, 18), (300, 10), (2000, 30), (5000, 7)])
def test_load_limits_are_reached_in_a_few_hundred_draws(questions: int, digits: int) -> None:
    """Perfectly random positions; 460 draws find loads within the limit with probability 99 % or more, here 2000."""
    rng = np.random.default_rng(questions)
    loads = rng.multinomial(questions, [1 / digits] * digits, size=2000)
    assert loads.max(axis=1).min() <= load_limit(questions, digits)


def test_digits_fit_below_the_gates() -> None:
    """V is above twice the data of all rows, and a multiple of 2M; the shifted sum is below 2^folds·M."""
    for sizes in (design(K, C, B, range(5, 9)) for K in (1, 10, 999) for C in (2, 10, 256) for B in (1, 7, 10**6)):
        M, V = sizes.modulus, sizes.modulus << sizes.carry_bits
        assert 2 * sizes.rows * (M // 2) * sizes.sum_limit < V
        assert V % (2 * M) == 0
        assert 2 * sizes.gate_limit <= 1 << sizes.level_bits
        largest = (2 * V << sizes.level_bits - sizes.first_folds) * sizes.radix ** (sizes.digits - 1)
        assert largest <= M << sizes.last_folds
        assert sizes.digits == 1 or 1 << sizes.level_bits - sizes.first_folds >= 32 * sizes.digits


@given(st.integers(1, 10**5))
def test_the_radix(labels: int) -> None:
    """At least C and 2, never more than the next power of two, and a product of small primes."""
    radix, power = radix_for(labels), 1 << max(1, (labels - 1).bit_length())
    assert max(2, labels) <= radix <= power
    assert math.prod(prime**exponent for prime, exponent in factors(radix).items()) == radix
    assert radix == power or math.log2(radix) <= 0.98 * math.log2(power)
    assert math.log2(radix) <= bits_of(radix) <= math.log2(radix) + 1e-9


@given(st.integers(1, 10**7), st.integers(1, 10**4), st.integers(1, 12), st.integers(1, 10**6), st.floats(0.5, 1.0))
def test_the_closed_form_bounds_balanced_sizes(K: int, C: int, dim: int, reach: int, load: float) -> None:
    sizes = balanced(K, C, dim, reach, load)
    assert sizes.words * sizes.digits * load * (1 + 1e-9) >= K
    assert sizes.dense <= closed_form(K, C, dim, reach, load)


def test_the_closed_form_by_hand() -> None:
    """K = 800, C = 2, λ = 1: X = 40, m = 20, and with D = 4 eight rows of five words.

    j: 8·(4·6 // 3 + 1) = 72 has 7 bits; L = 5 + 10. Lower-order terms: 32 + 4 + 3, five shifts 53, 2·(2 + 7 + 15), and
    7 for the label.
    """
    assert (balanced(800, 2, 4, 6, 1.0).rows, balanced(800, 2, 4, 6, 1.0).digits) == (8, 20)
    assert closed_form(800, 2, 4, 6, 1.0) == pytest.approx(40 * 2.2 + 39 + 53 + 48 + 7)
    # Two words fewer for the sum than X/(D + 1) + 2 says, and D + 1 fewer because nothing is rounded up.
    assert balanced(800, 2, 4, 6, 1.0).dense == 32 + 40 + 9 + 53 + 2 * (1 + 7 + 15 + 19) + 7

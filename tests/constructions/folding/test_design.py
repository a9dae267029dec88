"""Sizes: the dense count is that of the planned tensors, the search finds its minimum, and limits are what they say."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.constructions.folding import Demand, plan
from byheart.constructions.folding.design import GUARD, Sizes, design, load_limit, slack
from byheart.constructions.folding.fronts import Front
from byheart.size import Size

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
    demand = Demand(Front(size, positions, every, 16, 0 if dim is None else 75), questions, 9)
    tensors = [(name, shape) for name, shape in plan(demand, growth).tensors if name.split(".")[0] not in FRONT]
    assert demand.sizes(growth).dense == sum(math.prod(shape) for _, shape in tensors)
    assert tensors[0][0] == "attention.W_V"


def test_dense_by_hand() -> None:
    """D = 2, s = 3, m = 4, c = 2, B = 10, two first folds.

    word 8 + 8 = 16 bits; Σ|u| + 1 ≤ 20 // 3 + 1 = 7: 3 bits, V = 2¹⁹; gates ≤ 30, twice that 6 bits; three digits of
    shift 6 bits: top 31, hence 15 folds of 3. Attention 8; words 4·3, sum 2·5; two folds 2·5, two shifts 2·10;
    drop 3; digits 2·10; start 4, answer 3.
    """
    sizes = Sizes(questions=9, bits=2, dim=2, rows=3, digits=4, reach=10, first_folds=2)
    assert (sizes.words, sizes.word_bits, sizes.sum_limit, sizes.gate_bits) == (9, 16, 7, 19)
    assert (sizes.gate_limit, sizes.top, sizes.bottom, sizes.stages) == (30, 31, 16, 2)
    assert sizes.dense == 8 + 12 + 10 + 10 + 20 + 3 + 15 * 3 + 20 + 4 + 3


@given(st.integers(1, 10**4), st.sampled_from([1, 2, 3, 8]), st.integers(1, 500), st.integers(0, 2))
@settings(deadline=None, max_examples=50)
def test_the_search_finds_the_minimum(questions: int, bits: int, reach: int, growth: int) -> None:
    """No number of digits within a factor of two of the balance, with as many words as its load takes, is cheaper."""
    found = design(questions, bits, reach, range(5, 8), growth=growth)
    balance = math.sqrt(questions / (3 * bits))
    cheapest = min(
        Sizes(
            questions,
            bits,
            dim,
            math.ceil((load_limit(questions, m) + slack(bits, load_limit(questions, m))) / (dim + 1) * 1.2**growth),
            m,
            reach,
            5,
        ).dense
        for dim in range(5, 8)
        for m in range(max(1, math.floor(balance / 2)), math.floor(2 * balance) + 3)
    )
    assert found.dense == cheapest
    assert found.questions <= found.words * found.digits


@pytest.mark.parametrize(("bits", "reach"), [(1, 30), (4, 200), (8, 5000)])
def test_more_questions_never_cost_less(bits: int, reach: int) -> None:
    numbers = [*range(1, 200), *range(200, 10000, 397), 10**5, 10**6]
    costs = [design(K, bits, reach, range(5, 8)).dense for K in numbers]
    assert costs == sorted(costs)


@pytest.mark.parametrize("growth", range(12))
def test_growth_leaves_more_words_to_a_load(growth: int) -> None:
    for questions, bits in ((7, 1), (300, 8), (3000, 1)):
        sizes = design(questions, bits, 30, range(5, 7), growth=growth)
        needed = load_limit(questions, sizes.digits) + slack(bits, load_limit(questions, sizes.digits))
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
    """V is above a row's data and a multiple of every digit's weight: |W·(u, 1)| ≤ (2^bits − 1)·(Σ|u| + 1)."""
    for sizes in (design(K, c, B, range(5, 9)) for K in (1, 10, 999) for c in (1, 8) for B in (1, 7, 10**6)):
        assert ((1 << sizes.word_bits) - 1) * sizes.sum_limit < 1 << sizes.gate_bits
        assert sizes.gate_bits >= sizes.word_bits == GUARD + sizes.bits * sizes.digits
        # Each open row is at most V·argument + data < V·(argument + 1); then twice the sum and one, shifted.
        largest = (2 * (1 << sizes.gate_bits) * sizes.gate_limit + 1) << (sizes.bits * (sizes.digits - 1))
        assert largest <= 1 << sizes.top

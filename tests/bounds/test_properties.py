"""What has to hold for all sizes: more to memorize never costs less, and what is needed never exceeds what suffices."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.bounds import BOUNDS, Bound, Letters, counting, dana_2025, mahdavi_2024
from byheart.sizes import Size

each_bound = pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.name)
each_geometric_upper_bound = pytest.mark.parametrize(
    "bound",
    [b for b in BOUNDS if b.side == "upper" and {"separation", "robustness"} & set(b.needs)],
    ids=lambda bound: bound.name,
)
few = settings(max_examples=30)  # for each of the bounds: formulas this smooth show their faults soon
counts = st.integers(1, 10**6)
sizes = st.builds(
    Size,
    examples=counts,
    length=st.integers(2, 100),
    labels=st.integers(2, 1000),
    vocab=st.integers(2, 1000),
    dim=st.integers(101, 1000),
)
letters = st.builds(
    Letters,
    model_dim=st.integers(50, 500),
    head_dim=st.integers(2, 50),
    value_dim=st.integers(1, 50),
    bits=st.integers(1, 64),
    radius=st.floats(1.0, 100.0),
    separation=st.floats(1e-6, 0.9),
    depth=st.integers(1, 1000),
    robustness=st.floats(1e-6, 0.999),
    relations=st.just(1),
)


def number(bound: Bound, size: Size, given_letters: Letters) -> float:
    answer = bound.answer(size, given_letters)
    assert answer.parameters is not None, answer.reason
    return answer.parameters


@each_bound
@few
@given(size=sizes, given_letters=letters, more=counts)
def test_more_examples_never_cost_less(bound: Bound, size: Size, given_letters: Letters, more: int) -> None:
    larger = replace(size, examples=size.examples + more)
    assert number(bound, larger, given_letters) >= number(bound, size, given_letters)


@each_bound
@few
@given(size=sizes, given_letters=letters, more=st.integers(1, 1000))
def test_more_labels_or_tokens_never_cost_less(bound: Bound, size: Size, given_letters: Letters, more: int) -> None:
    larger = replace(size, labels=size.labels + more, vocab=size.vocab + more)
    assert number(bound, larger, given_letters) >= number(bound, size, given_letters)


@each_geometric_upper_bound
@given(size=sizes, given_letters=letters, factor=st.floats(0.01, 1.0))
def test_harder_geometry_costs_no_less(bound: Bound, size: Size, given_letters: Letters, factor: float) -> None:
    """Closer points and larger balls. Lower bounds may relax: Yang & Yang's does, for closer points."""
    assert given_letters.separation is not None
    assert given_letters.robustness is not None
    harder = replace(
        given_letters,
        separation=given_letters.separation * factor,
        robustness=max(given_letters.robustness, 1 - (1 - given_letters.robustness) * factor),  # max: float rounding
    )
    assert number(bound, size, harder) >= number(bound, size, given_letters)


@given(size=sizes)
def test_proved_distribution_bounds_are_in_order(size: Size) -> None:
    of_setting = [b for b in BOUNDS if b.setting == "next-token-distribution" and b.kind == "proved"]
    lower = [number(b, size, Letters()) for b in of_setting if b.side == "lower"]
    upper = [number(b, size, Letters()) for b in of_setting if b.side == "upper"]
    assert len(lower) == 2
    assert max(lower) <= min(upper)


@given(size=sizes, given_letters=letters)
def test_counting_stays_below_what_suffices(size: Size, given_letters: Letters) -> None:
    """If a parameter can hold a label, counting asks for at most N parameters, and no proved construction has fewer."""
    enough_bits = replace(given_letters, bits=(size.labels - 1).bit_length())
    for bound in BOUNDS:
        if bound.setting == "next-token" and bound.side == "upper" and bound.kind == "proved":
            assert counting.needed(size.examples, size.labels, enough_bits.bits or 0) <= size.examples
            assert size.examples <= number(bound, size, enough_bits)


@given(size=sizes, given_letters=letters)
def test_orders_of_one_paper_are_in_order(size: Size, given_letters: Letters) -> None:
    """Without constants this is not a theorem, but a lower order above its own upper order would be a misprint."""
    larger_separation = replace(given_letters, separation=0.3)  # log(r/δ) > 1: below, the order says nothing
    for paper in ("Kajitsuka & Sato 2025", "Vardi, Yehudai & Shamir 2022", "Yang & Yang 2026", "Yu, Gao & Zhang 2025"):
        of_paper = [bound for bound in BOUNDS if bound.paper == paper]
        for upper in of_paper:
            for lower in of_paper:
                if (upper.side, lower.side, upper.setting) == ("upper", "lower", lower.setting):
                    assert number(lower, size, larger_separation) <= number(upper, size, larger_separation)


@given(examples=counts, context=st.integers(2, 100), head_dim=st.integers(2, 100))
def test_mahdavi_heads_are_the_fewest_that_hold_the_examples(examples: int, context: int, head_dim: int) -> None:
    heads = mahdavi_2024.heads_needed(examples, context, head_dim)
    assert mahdavi_2024.capacity(heads, context, head_dim) >= examples
    assert heads == 1 or mahdavi_2024.capacity(heads - 1, context, head_dim) < examples
    assert mahdavi_2024.capacity(heads, context, head_dim) <= mahdavi_2024.feature_rank(heads, context)


def test_mahdavi_one_example_needs_no_rank() -> None:
    assert mahdavi_2024.heads_needed(examples=1, context=1, head_dim=1) == 1


@given(examples=counts, head_dim=st.integers(1, 100), dim=st.integers(2, 100))
def test_dana_heads_are_the_fewest_that_hold_the_associations(examples: int, head_dim: int, dim: int) -> None:
    heads = dana_2025.heads_needed(examples, head_dim, dim)
    assert dana_2025.capacity(heads, head_dim, dim) >= examples
    assert heads == 1 or dana_2025.capacity(heads - 1, head_dim, dim) < examples


@given(examples=st.integers(1, 300), labels=st.integers(2, 300), bits=st.integers(1, 64))
def test_counting_agrees_with_integers(examples: int, labels: int, bits: int) -> None:
    """Independently: the smallest W with 2^{Wb} ≥ C^N, in exact integers."""
    exact_bits = (labels**examples - 1).bit_length()
    assert counting.needed(examples, labels, bits) == math.ceil(Fraction(exact_bits, bits))


@pytest.mark.parametrize("examples", [665, 31_867, 111_202, 190_537])
def test_counting_never_claims_a_parameter_too_many(examples: int) -> None:
    """N log₂ 3 is within 1/N of a whole number (a convergent of log₂ 3), where a float error would cross it."""
    assert 0 <= (3**examples - 1).bit_length() - counting.needed(examples, labels=3, bits=1) <= 1


@given(parameters=counts, labels=st.integers(2, 1000), bits=st.integers(1, 64))
def test_counting_is_the_same_both_ways(parameters: int, labels: int, bits: int) -> None:
    """So many examples need no more parameters than there are, and one more does."""
    most = counting.most(parameters, labels, bits)
    assert counting.needed(most, labels, bits) <= parameters < counting.needed(most + 1, labels, bits)

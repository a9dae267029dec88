"""The Boltzmann operator against sixty digits of Python's decimals, and bits until values are apart."""

from contextlib import suppress
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from operator import mul

import pytest
from flint import ctx
from hypothesis import given
from hypothesis import strategies as st

from byheart.constructions.gadgets import boltzmann
from byheart.constructions.gadgets.boltzmann import Interval, Multiset, NotApartError, apart, boltz


def by_decimals(beta: Fraction, multiset: Multiset) -> Fraction:
    """Σ c·Y·e^{βY} / Σ c·e^{βY} with 60 digits beyond those that cancel; exponents of any size."""
    with localcontext(Context(prec=120, Emax=10**12, Emin=-(10**12))):
        slope = Decimal(beta.numerator) / Decimal(beta.denominator)
        weights = [count * (slope * value).exp() for value, count in zip(multiset.values, multiset.counts, strict=True)]
        terms = [weight * value for weight, value in zip(weights, multiset.values, strict=True)]
        return Fraction(sum(terms) / sum(weights))


@st.composite
def multisets(draw: st.DrawFn) -> Multiset:
    values = draw(st.lists(st.integers(-30, 30), min_size=1, max_size=5, unique=True))
    counts = draw(st.lists(st.integers(1, 9), min_size=len(values), max_size=len(values)))
    return Multiset(tuple(values), tuple(counts))


slopes = st.fractions(-20, 20, max_denominator=1000) | st.sampled_from(
    [Fraction(0), Fraction(1, 2**60), Fraction(-500)]
)


@given(slopes, multisets(), st.sampled_from([64, 100, 128]))
def test_the_value_is_enclosed(beta: Fraction, multiset: Multiset, bits: int) -> None:
    """Within 10^-60 of decimals (a value close to its end cancels none of them), and tightly.

    The ends are multiples of 2^−bits, whatever the slope; at 0 both are the mean itself.
    """
    before = ctx.prec
    found, value, slack = boltz(beta, multiset, bits), by_decimals(beta, multiset), Fraction(1, 10**60)
    assert found.low - slack <= value <= found.high + slack
    assert found.high - found.low <= Fraction(61, 1 << (bits - 20))
    if beta == 0:
        assert found.low == found.high
        assert found.low * sum(multiset.counts) == sum(map(mul, multiset.values, multiset.counts))
    else:
        assert (found.low * 2**bits).denominator == (found.high * 2**bits).denominator == 1
    assert min(multiset.values) - slack <= found.high
    assert found.low <= max(multiset.values) + slack
    assert ctx.prec == before


@given(multisets(), slopes, st.integers(-(10**6), 10**6))
def test_shifting_the_values(multiset: Multiset, beta: Fraction, by: int) -> None:
    """boltz(β; Y + c) = boltz(β; Y) + c and boltz(−β; −Y) = −boltz(β; Y): the enclosures meet."""
    plain = boltz(beta, multiset, 128)
    moved = boltz(beta, Multiset(tuple(value + by for value in multiset.values), multiset.counts), 128)
    turned = boltz(-beta, Multiset(tuple(-value for value in multiset.values), multiset.counts), 128)
    assert moved.low - by <= plain.high
    assert plain.low <= moved.high - by
    assert -turned.high <= plain.high
    assert plain.low <= -turned.low


def test_by_hand() -> None:
    """β = 0: the mean, (3·1 + 1·5)/4 = 2. One value: itself. β = ±1 and {0, 1}: e/(1 + e) and 1/(1 + e)."""
    assert boltz(Fraction(0), Multiset((1, 5), (3, 1)), 64) == Interval(Fraction(2), Fraction(2))
    third = Fraction(1, 3)  # not rounded, though no multiple of 2^−64
    assert boltz(Fraction(0), Multiset((0, 1), (2, 1)), 64) == Interval(third, third)
    for beta in (Fraction(-7, 3), Fraction(0), Fraction(10**9)):
        assert boltz(beta, Multiset((-4,), (9,)), 64) == Interval(Fraction(-4), Fraction(-4))
    for beta, wanted in ((1, 0.7310585786300049), (-1, 0.2689414213699951)):
        found = boltz(Fraction(beta), Multiset((0, 1), (1, 1)), 64)
        assert float(found.low) == pytest.approx(wanted, abs=1e-15)
        assert float(found.high) == pytest.approx(wanted, abs=1e-15)


def test_large_slopes_come_close_to_the_extremes() -> None:
    """β = 1000 over {0, 1}: 1 − boltz = 1/(1 + e^1000), about 2^−1443; with 64 bits it is rounded outward to 2^−64."""
    pair = Multiset((0, 1), (1, 1))
    for beta, end in ((Fraction(1000), 1), (Fraction(-1000), 0)):
        for bits in (64, 128, 1442):
            found = boltz(beta, pair, bits)
            assert sorted((abs(found.low - end), abs(found.high - end))) == [0, Fraction(1, 2**bits)]
            assert 0 <= found.low < found.high <= 1
        for bits in (1500, 4096):
            found = boltz(beta, pair, bits)
            near, far = sorted((abs(found.low - end), abs(found.high - end)))
            assert Fraction(1, 2**1443) < near < far < Fraction(1, 2**1442)


@pytest.mark.parametrize("slope", [Fraction(2**70), Fraction(2**80), Fraction(2**200, 3), Fraction(2**5000)])
def test_exponents_without_measure(slope: Fraction) -> None:
    """e^(−2^80) cannot be written down; that the value is within 2^−bits of the end can, and is all that is said."""
    for beta, end in ((slope, 5), (-slope, -3)):
        for bits in (64, 4096):
            found = boltz(beta, Multiset((0, 5, -3), (7, 1, 2)), bits)
            assert end - Fraction(1, 2**bits) <= found.low <= end <= found.high <= end + Fraction(1, 2**bits)


def test_monotone_in_the_slope() -> None:
    """The larger β, the more weight on large values."""
    multiset = Multiset((-2, 0, 7), (2, 5, 1))
    found = [boltz(Fraction(k, 4), multiset, 128) for k in range(-12, 13)]
    assert all(before.high < after.low for before, after in pairwise(found))


@pytest.mark.parametrize("beta", [Fraction(1, 3), Fraction(-2), Fraction(7), Fraction(1, 1000)])
def test_all_multisets_are_apart(beta: Fraction) -> None:
    """All 126 multisets of five out of five values, −2 to 2: disjoint intervals that hold the value."""
    chosen = [
        Multiset(tuple(sorted(set(row))), tuple(row.count(value) for value in sorted(set(row))))
        for row in combinations_with_replacement(range(-2, 3), 5)
    ]
    found = apart(beta, chosen, 4096)
    order = sorted(found, key=lambda interval: interval.low)
    assert all(before.high < after.low for before, after in pairwise(order))
    for multiset, interval in zip(chosen, found, strict=True):
        assert interval.low - Fraction(1, 10**60) <= by_decimals(beta, multiset) <= interval.high + Fraction(1, 10**60)


TWINS = [Multiset((0, 1), (1, 2)), Multiset((0, 5), (1, 1)), Multiset((1, 0), (2, 1))]


@pytest.mark.parametrize("bits", [64, 100, 1024])
def test_equal_multisets_are_not_apart(bits: int) -> None:
    with pytest.raises(NotApartError) as found:
        apart(Fraction(1), TWINS, bits)
    assert {found.value.first, found.value.second} == {0, 2}


def test_equal_means_are_not_apart_at_zero() -> None:
    """{1, 4} and {2, 3} have the mean 5/2; at any other β they are apart."""
    pair = [Multiset((1, 4), (1, 1)), Multiset((2, 3), (1, 1))]
    with pytest.raises(NotApartError) as found:
        apart(Fraction(0), pair, 512)
    assert {found.value.first, found.value.second} == {0, 1}
    assert len(apart(Fraction(1, 10**6), pair, 512)) == 2


CLOSE = [Multiset((1, 4), (1, 1)), Multiset((2, 3), (1, 1))]


@pytest.mark.parametrize("bits", [64, 65, 97, 98])
def test_too_few_bits(bits: int) -> None:
    """At β = 2^−100 the values of {1, 4} and {2, 3} are about 5/2 + 9/4·β and 5/2 + 1/4·β: both within 2^−98 of 5/2."""
    with pytest.raises(NotApartError) as found:
        apart(Fraction(1, 2**100), CLOSE, bits)
    assert {found.value.first, found.value.second} == {0, 1}


@pytest.mark.parametrize("bits", [105, 127, 128, 129, 1000])
def test_more_bits_where_they_are_needed(bits: int) -> None:
    """They differ by 2β = (9/4 − 1/4)·2^−100: 64 bits cannot tell, 105 can, and with 64 more the distance is known."""
    beta = Fraction(1, 2**100)
    wide, narrow = apart(beta, CLOSE, bits)
    assert wide.low > narrow.high
    for distance in (wide.low - narrow.high, wide.high - narrow.low):
        assert float(distance / beta) == pytest.approx(2, rel=2**-50)


def tried(monkeypatch: pytest.MonkeyPatch, beta: Fraction, multisets: list[Multiset], most_bits: int) -> list[int]:
    """The bits that are asked for, one multiset after the other."""
    asked = []

    def recorded(slope: Fraction, multiset: Multiset, bits: int) -> Interval:
        asked.append(bits)
        return boltz(slope, multiset, bits)

    monkeypatch.setattr(boltzmann, "boltz", recorded)
    with suppress(NotApartError):
        apart(beta, multisets, most_bits)
    return asked[:: len(multisets)]


def test_bits_that_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """64, 128, … and at last as many as are allowed; 64 more where all are apart."""
    beta = Fraction(1, 2**100)
    for most_bits, bits in ((64, [64]), (90, [64, 90]), (105, [64, 105, 169]), (128, [64, 128, 192])):
        assert tried(monkeypatch, beta, CLOSE, most_bits) == bits
    assert tried(monkeypatch, beta, CLOSE, 5000) == [64, 128, 192]
    assert tried(monkeypatch, Fraction(1), CLOSE, 64) == [64, 128]
    assert tried(monkeypatch, Fraction(1), TWINS, 1000) == [64, 128, 256, 512, 1000]
    assert tried(monkeypatch, Fraction(1), TWINS, 1024) == [64, 128, 256, 512, 1024]


def test_ends_have_64_bits_more() -> None:
    for most_bits in (128, 4096):
        for found in apart(Fraction(1, 2**100), CLOSE, most_bits):
            assert 0 < found.high - found.low <= Fraction(1, 2**180)
            assert (found.low * 2**192).denominator == (found.high * 2**192).denominator == 1

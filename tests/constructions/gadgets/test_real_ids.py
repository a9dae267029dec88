"""Boltzmann averages against sixty digits of Python's decimals; and steps that are right on whole intervals."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, combinations_with_replacement, pairwise
from operator import mul

import pytest
from flint import ctx
from hypothesis import given
from hypothesis import strategies as st

from byheart.constructions import kajitsuka_sato_2024 as real_ids
from byheart.constructions.kajitsuka_sato_2024 import Interval, Multiset, NotApartError, _step, apart, boltz
from byheart.constructions.kajitsuka_sato_2024 import stair_layers as layers
from byheart.constructions.kajitsuka_sato_2024 import stair_shape as shape
from byheart.networks.exact import integers


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

    monkeypatch.setattr(real_ids, "boltz", recorded)
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


Through = Callable[..., list[list[Fraction]]]


@st.composite
def intervals(draw: st.DrawFn) -> list[Interval]:
    """In order and disjoint, of any width (none as well), at distances from 2^-200 to 2^200."""
    K = draw(st.integers(1, 6))
    sizes = st.builds(
        lambda a, b, e: Fraction(a, b) * Fraction(2) ** e,
        st.integers(1, 99),
        st.integers(1, 99),
        st.integers(-200, 200),
    )
    widths = st.just(Fraction(0)) | sizes
    start = draw(st.sampled_from([1, -1])) * draw(widths)
    ends = list(accumulate([draw(widths if i % 2 == 0 else sizes) for i in range(2 * K - 1)], initial=start))
    return [Interval(low, high) for low, high in zip(ends[::2], ends[1::2], strict=True)]


def inside(interval: Interval) -> list[Fraction]:
    return [interval.low, (2 * interval.low + interval.high) / 3, (interval.low + interval.high) / 2, interval.high]


@given(intervals(), st.data())
def test_random_intervals(through: Through, ids: list[Interval], data: st.DataObject) -> None:
    labels = data.draw(st.lists(st.integers(0, 300), min_size=len(ids), max_size=len(ids)))
    chain = layers(ids, labels, [1])
    for interval, label in zip(ids, labels, strict=True):
        for z in inside(interval):
            assert through(chain, [z])[-1] == [label]
    # Plateaus without end, and no answer outside of what its neighbours say.
    assert through(chain, [ids[0].low - 10**70])[-1] == [labels[0]]
    assert through(chain, [ids[-1].high + 10**70])[-1] == [labels[-1]]
    for (before, one), (after, other) in pairwise(zip(ids, labels, strict=True)):
        (value,) = through(chain, [(before.high + after.low) / 2])[-1]
        assert min(one, other) <= value <= max(one, other)


@given(intervals())
def test_planned_is_built(ids: list[Interval]) -> None:
    chain, planned = layers(ids, [0] * len(ids), [1, 2]), shape(len(ids), 2)
    assert [(layer.role, *layer.W.shape) for layer in chain] == list(planned.layers)
    assert planned.dense == sum(layer.W.size + layer.b.size for layer in chain)
    assert len(chain[0].W) == max(1, 2 * (len(ids) - 1))


@given(intervals())
def test_a_step_lies_between(ids: list[Interval]) -> None:
    """low ≤ t and t + 2^−s ≤ high; and no step is steeper than it must be: one of twice the width would not fit."""
    for before, after in pairwise(ids):
        s, start = _step(before.high, after.low)
        width = Fraction(1, 1 << s)
        assert before.high <= start * width
        assert (start + 1) * width <= after.low
        assert s == 0 or 2 * width > (after.low - before.high) / 2


def test_steps_by_hand(through: Through) -> None:
    """Ids 1/3, [1/2, 5/8] and 7, labels 4, 9, 0.

    From 1/3 to 1/2 there is 1/6: half of it is 1/12 ≥ 2⁻⁴, and t = ⌈16/3⌉/16 = 6/16, up to 7/16.
    From 5/8 to 7 there is more than 2: whole numbers do, from t = 1 to 2.
    """
    ids = [
        Interval(Fraction(1, 3), Fraction(1, 3)),
        Interval(Fraction(1, 2), Fraction(5, 8)),
        Interval(Fraction(7), Fraction(7)),
    ]
    steps, answer = layers(ids, [4, 9, 0], [1])
    assert steps.W.tolist() == [[16], [16], [1], [1]]
    assert steps.b.tolist() == [-6, -7, -1, -2]
    assert answer.W.tolist() == [[5, -5, -9, 9]]
    assert answer.b.tolist() == [4]
    places = {"6/16": 4, "13/32": Fraction(13, 2), "7/16": 9, "1": 9, "3/2": Fraction(9, 2), "2": 0}
    for z, wanted in places.items():
        assert through([steps, answer], [Fraction(z)])[-1] == [wanted]


def test_one_id_is_a_constant(through: Through) -> None:
    chain = layers([Interval(Fraction(-3), Fraction(-3))], [7], [5, -2])
    assert [layer.W.shape for layer in chain] == [(1, 2), (1, 1)]
    assert through(chain, [10**9, -(10**9)])[-1] == [7]


@pytest.mark.parametrize("direction", [[3, 0, -1], [1, 1, 1]])
def test_directions(through: Through, direction: list[int]) -> None:
    """What counts is direction·Z: 3·a − c, or a + b + c."""
    ids = [Interval(Fraction(k), Fraction(k) + Fraction(1, 4)) for k in range(-2, 3)]
    chain = layers(ids, [3, 1, 4, 1, 5], direction)
    for k, label in zip(range(-2, 3), [3, 1, 4, 1, 5], strict=True):
        for Z in ([Fraction(k, 3), 0, 0], [0, 0, -k]) if direction[0] == 3 else ([k, 5, -5], [0, Fraction(k), 0]):
            assert through(chain, Z)[-1] == [label]


@pytest.mark.parametrize("unit", range(6))
def test_a_moved_step_is_wrong(through: Through, unit: int) -> None:
    """The control. At 0, 1, 2, 3 a step goes from k to k + ½; one of its ReLUs begun ½ earlier is seen at k."""
    ids, labels = [Interval(Fraction(k), Fraction(k)) for k in range(4)], [3, 1, 4, 2]
    steps, answer = layers(ids, labels, [1])
    assert [through([steps, answer], [k])[-1] for k in range(4)] == [[label] for label in labels]
    moved = steps.b.copy()
    moved[unit] += 2 if unit % 2 else 1
    broken = [replace(steps, b=integers(moved)), answer]
    assert [through(broken, [k])[-1] for k in range(4)] != [[label] for label in labels]

"""Steps between intervals: the label itself at both ends of every interval, and everywhere between."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.constructions.gadgets.boltzmann import Interval
from byheart.constructions.gadgets.stairs import _step, layers, shape
from byheart.networks.exact import integers

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


def test_by_hand(through: Through) -> None:
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

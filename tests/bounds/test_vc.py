"""The VC bound against what tiny networks really do, against the constructions, and against exact integers."""

import itertools
import math
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.bounds import vc
from byheart.bounds.vc import WeightLayer, WeightLayers, capacity, cuts_of, fewest, pattern_bits
from byheart.constructions.planner import planned
from byheart.errors import BadInput
from byheart.sizes import Size

ONE_UNIT = (WeightLayers((WeightLayer(2, units=1), WeightLayer(2))),)
TWO_UNITS = (WeightLayers((WeightLayer(4, units=2), WeightLayer(3))),)
TWO_LAYERS = (WeightLayers((WeightLayer(2, units=1), WeightLayer(2, units=1), WeightLayer(2))),)


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def outputs(stages: tuple[WeightLayers, ...], points: np.ndarray, draws: int) -> np.ndarray:
    """[draws, points]: networks of the shape with random weights, heavy-tailed so that bends fall everywhere."""
    rng = np.random.default_rng(0)
    hidden = np.broadcast_to(points[None, None, :], (draws, 1, len(points)))
    for layer in stages[0].layers:
        width = layer.units or 1
        W = rng.standard_cauchy((draws, width, hidden.shape[1]))
        b = rng.standard_cauchy((draws, width, 1)) * rng.choice([0.1, 1, 10], (draws, 1, 1))
        hidden = W @ hidden + b
        hidden = relu(hidden) if layer.units else hidden
    return hidden[:, 0]


def different(signs: np.ndarray) -> int:
    return len(np.unique(signs, axis=0))


@pytest.mark.parametrize("stages", [ONE_UNIT, TWO_UNITS, TWO_LAYERS], ids=["one unit", "two units", "two layers"])
def test_no_tiny_network_has_more_patterns_or_shatters_more(stages: tuple[WeightLayers, ...]) -> None:
    found, most = [], 7
    for m in range(1, most + 1):
        found.append(different(outputs(stages, np.arange(m) - (m - 1) / 2, 100_000) > 0))
        assert math.log2(found[-1]) <= pattern_bits(cuts_of(stages, 2), m)
    shattered = max(m for m, patterns in enumerate(found, start=1) if patterns == 2**m)
    assert 2 <= shattered <= capacity(stages, 2)
    assert shattered < most, "or the search says nothing about what is not shattered"


def test_one_unit_by_hand() -> None:
    """a·relu(wx + b) + c is monotone: on m points only 2m patterns, and two points are shattered, never three."""
    for m in range(1, 7):
        assert different(outputs(ONE_UNIT, np.arange(m) - (m - 1) / 2, 100_000) > 0) == 2 * m
    assert capacity(ONE_UNIT, 2) >= 2


def test_three_labels_of_one_unit() -> None:
    """Labellings by rounding to 0, 1, 2, as many as a search finds, are patterns of two thresholds."""
    for m in range(1, 6):
        values = outputs(ONE_UNIT, np.arange(m) - (m - 1) / 2, 100_000)
        labels = np.clip(np.round(values), 0, 2)
        assert math.log2(different(labels)) <= pattern_bits(cuts_of(ONE_UNIT, 3), m)


def test_the_lemma_on_lines() -> None:
    """m lines in general position: 1 + m + m(m − 1)/2 cells of the plane; each has a corner, around which we look."""
    around = 1e-6 * np.exp(2j * math.pi * np.arange(16) / 16 + 0.01j)
    for m in range(2, 8):
        angles = np.arange(m) * math.pi / m + 0.1
        normals, offsets = np.stack([np.cos(angles), np.sin(angles)], axis=1), np.cos(7 * np.arange(m))
        pairs = map(list, itertools.combinations(range(m), 2))
        corners = np.array([np.linalg.solve(normals[pair], -offsets[pair]) for pair in pairs])
        points = (corners[:, None] + np.stack([around.real, around.imag], axis=1)).reshape(-1, 2)
        cells = different(points @ normals.T + offsets > 0)
        assert cells == 1 + m + m * (m - 1) // 2
        assert math.log2(cells) <= vc._sign_bits(
            math.log2(m), vc._Segment(WeightLayers(()), 0.0, degree=1, variables=2)
        )


@pytest.mark.parametrize("degree", [1, 2, 5])
def test_the_lemma_on_polynomials_of_one_variable(degree: int) -> None:
    """m polynomials with the roots 0, 1, …, mD − 1 in turns: a pattern between any two, m·D + 1, unless some repeat."""
    for m in range(1, 8):
        x = np.arange(m * degree + 1) - 0.5
        signs = np.prod(x[:, None, None] - np.arange(m * degree).reshape(degree, m), axis=1) > 0
        assert different(signs) == (m + 1 if degree == 1 else min(2 * m, m * degree + 1))
        segment = vc._Segment(WeightLayers(()), 0.0, degree=degree, variables=1)
        assert math.log2(different(signs)) <= vc._sign_bits(math.log2(m), segment)


def exact_fewest(questions: int, labels: int) -> int:
    """Independently: the smallest W with C^N ≤ 2·(2eNC·2^⌊W/2⌋)^W, in integers, e from above."""
    e = 271_828_183, 100_000_000
    for W in itertools.count():
        base = 2 * e[0] * questions * labels * 2 ** (W // 2)
        if labels**questions * e[1] ** W <= 2 * base**W:
            return W
    raise AssertionError


@given(questions=st.integers(1, 400), labels=st.integers(2, 40))
def test_the_smallest_number_agrees_with_integers(questions: int, labels: int) -> None:
    assert fewest(questions, labels) == exact_fewest(questions, labels)


@given(questions=st.integers(1, 10**7), labels=st.integers(2, 1000), depth=st.integers(1, 10**4))
def test_fewer_layers_never_need_less_and_tokens_in_front_never_more(questions: int, labels: int, depth: int) -> None:
    plain, shallow = fewest(questions, labels), fewest(questions, labels, depth=depth)
    assert plain <= fewest(questions, labels, depth=depth + 1) <= shallow <= questions
    assert fewest(questions, labels, tokens=max(0, plain - 1)) == plain
    assert fewest(questions, labels, tokens=10 * plain + 2) <= plain


def with_units(stages: Iterable[WeightLayers], more: int) -> list[WeightLayers]:
    return [WeightLayers(tuple(WeightLayer(w.parameters, w.units * more) for w in stage.layers)) for stage in stages]


def test_more_units_more_parameters_and_fewer_labels_have_more_room() -> None:
    chain = [WeightLayers(tuple(WeightLayer(6, units=2) for _ in range(20)))]
    assert capacity(chain, 2) < capacity(with_units(chain, 2), 2) < capacity(with_units(chain, 8), 2)
    assert capacity(chain, 4) < capacity(chain, 2)
    assert capacity([WeightLayers(chain[0].layers * 2)], 2) > capacity(chain, 2)


def test_a_network_without_parameters_has_one_pattern() -> None:
    assert capacity([WeightLayers(())], 2) == 0


def test_few_tokens_in_front_are_few_patterns() -> None:
    """Units in front of an attention layer that see three tokens only give three signs each, however many questions."""
    front, behind = (WeightLayer(200, units=100),), (WeightLayer(101),)
    few = capacity([WeightLayers(front, 8, at_most=3), WeightLayers(behind)], 2)
    assert few < capacity([WeightLayers(front, 8), WeightLayers(behind)], 2)
    assert capacity([WeightLayers(behind)], 2) < few


def test_one_label_is_refused() -> None:
    with pytest.raises(BadInput, match="labels is 1; expected at least 2"):
        capacity(ONE_UNIT, 1)


@pytest.mark.parametrize("setting", ["next-token", "seq-to-seq"])
@pytest.mark.parametrize("labels", [2, 256])
def test_no_construction_beats_the_bound(setting: str, labels: int) -> None:
    """True counts of networks that memorize every task of a size. One parameter too few would refute the bound."""
    for examples in (1, 2, 10, 100, 1000, 10**4, 10**5, 10**6):
        size = Size(examples=examples, length=8, labels=labels, vocab=64)
        questions = examples * (8 if setting == "seq-to-seq" else 1)
        for plan in planned(size, setting):  # type: ignore[arg-type]
            if plan.construction not in ("dana-2025", "madden-2024"):
                # An attention layer is two weight layers in the bound and one in a plan's depth.
                assert plan.parameters >= fewest(questions, labels, depth=2 * plan.depth), plan

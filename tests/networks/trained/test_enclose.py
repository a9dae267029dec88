"""Enclosures: the true value, by mpmath in the test itself, lies in every ball; and what is shared changes nothing."""

from itertools import pairwise, product
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.networks.balls import precision
from byheart.networks.trained import (
    Activation,
    AffineMap,
    Inputs,
    Norm,
    PositionTable,
    StepSequence,
    TokenTable,
    TrainedAttention,
    TrainedNetwork,
)
from byheart.networks.trained import (
    enclose as module,
)
from byheart.networks.trained.enclose import enclose
from byheart.networks.trained.evaluate import evaluate

from ...trained_in_plain import outputs
from .small import KINDS, VOCAB, chain, drawn

DIGITS = 120


def true_value(network: TrainedNetwork, inputs: Inputs, example: int) -> list[Any]:
    sequences, queries = inputs
    sequence = sequences[example]
    if queries is None:
        sequence = sequence[sequence != VOCAB]
    with mpmath.workdps(DIGITS):
        return outputs(network, sequence, None if queries is None else queries[example])


def point(ball: Any) -> Any:
    """A ball of radius zero, exactly."""
    mantissa, exponent = ball.man_exp()
    return mpmath.mpf((int(mantissa), int(exponent)))


def contains(ball: Any, value: Any) -> bool:
    with mpmath.workdps(DIGITS):
        return bool(abs(point(ball.mid()) - value) <= point(ball.rad()))


def largest_radius(network: TrainedNetwork, inputs: Inputs, bits: int) -> float:
    """Every output lies in its ball; the largest radius."""
    found = dict(enclose(network, inputs, bits=bits))
    assert sorted(found) == list(range(len(inputs[0])))
    for example, row in found.items():
        expected = true_value(network, inputs, example)
        assert len(row) == len(expected) == network.outputs
        for ball, value in zip(row, expected, strict=True):
            assert contains(ball, value), (example, ball, value)
    return max(float(ball.rad()) for row in found.values() for ball in row)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32), bits=st.integers(64, 256), dtype=st.sampled_from([np.float32, np.float64]))
@settings(max_examples=5)
def test_balls_contain_the_truth(kind: str, seed: int, bits: int, dtype: type) -> None:
    network, inputs = drawn(kind, seed=seed, examples=3, dtype=dtype)
    assert largest_radius(network, inputs, bits) >= 0  # 0 where no unit is on: what is left is exact


@pytest.mark.parametrize("kind", KINDS)
def test_a_ball_moved_by_its_diameter_does_not_contain_the_truth(kind: str) -> None:
    """The check above can fail: radii are not so large that anything would do."""
    network, inputs = drawn(kind)
    example, [ball, *_] = next(enclose(network, inputs, bits=64))
    value, *_ = true_value(network, inputs, example)
    assert contains(ball, value)
    with precision(256):
        moved = ball + 2.5 * ball.rad().mid()
    assert not contains(moved, value)


@pytest.mark.parametrize("kind", KINDS)
def test_radii_shrink_with_the_bits(kind: str) -> None:
    network, inputs = drawn(kind, examples=3)
    radii = [largest_radius(network, inputs, bits) for bits in (64, 128, 192)]
    assert all(after < before * 2.0**-60 for before, after in pairwise(radii))
    assert radii[0] < 1e-6


@pytest.mark.parametrize("kind", ["gpt", "shared"])
def test_huge_weights_are_no_problem(kind: str) -> None:
    """Scores of about 10⁸: exp of them is far beyond float64, and one token gets all the weight."""
    assert largest_radius(*drawn(kind, scale=1e3, examples=3), bits=256) < 1e-20


@pytest.mark.parametrize("kind", KINDS)
def test_the_middle_is_what_float64_says(kind: str) -> None:
    network, inputs = drawn(kind, examples=40)
    found = evaluate(network, inputs)
    for example, row in enclose(network, inputs, bits=128):
        assert [float(ball) for ball in row] == pytest.approx(found[example].tolist(), rel=1e-9, abs=1e-11)


def test_gelu_by_hand() -> None:
    """GELU(0) = 0, and at ±1 it is Φ(1) = 0.84134474606854294858… and that less 1; norms of ±1 are ±1/√(1 + ε)."""
    table = {"E": [[0.0], [1.0], [-1.0]], "U": [[1.0]]}
    network = chain(TokenTable("E"), Activation("gelu"), AffineMap("U"), **table)
    found = dict(enclose(network, (np.array([[0], [1], [2]]), None), bits=64))
    assert [float(found[i][0]) for i in range(3)] == pytest.approx([0, 0.841344746068542948, -0.158655253931457051])
    with mpmath.workdps(DIGITS):
        assert contains(found[1][0], mpmath.mpf("0.8413447460685429485852325456320379224779129667"))
    normed = chain(TokenTable("E"), Norm(3.0 / 4), AffineMap("U"), E=[[3.0, 1.0]], U=[[1.0, 0.0], [0.0, 1.0]])
    [(_, row)] = enclose(normed, (np.array([[0]]), None), bits=64)
    with mpmath.workdps(DIGITS):
        assert contains(row[0], mpmath.sqrt(mpmath.mpf(4) / 7))
    assert [float(x) for x in row] == pytest.approx([(4 / 7) ** 0.5, -((4 / 7) ** 0.5)])


def test_a_norm_without_epsilon_of_equal_entries_is_unknown() -> None:
    """0/0: no number, so nothing is ever right about it."""
    network = chain(TokenTable("E"), Norm(0), AffineMap("U"), E=[[1.0, 1.0]], U=[[1.0, 0.0]])
    [(_, [ball])] = enclose(network, (np.array([[0]]), None), bits=64)
    assert not ball.is_finite()
    assert not ball > 0
    assert not ball <= 0


def test_names_that_look_like_others() -> None:
    """A table called "None" is no sinusoid, and a vector called "W None" not the matrix W."""
    rng = np.random.default_rng(0)
    shapes = {"E": (3, 2), "None": (4, 2), "W": (2, 2), "W None": (2,)}
    weights = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    steps = TokenTable("E"), PositionTable(), PositionTable("None"), AffineMap("W"), AffineMap("W", "W None")
    network = TrainedNetwork((StepSequence(steps),), weights)
    assert largest_radius(network, (np.array([[0, 1], [2, 2]]), None), 64) < 1e-15


def test_a_step_that_stands_twice_is_taken_twice() -> None:
    """Of one and the same attention, the first is not the last."""
    weights = {name: np.random.default_rng(1).standard_normal((2, 2)) for name in ("E", "A")}
    twice = StepSequence((TrainedAttention(1, 1, "A", "A", "A", "A"),), skip=True)
    network = TrainedNetwork((StepSequence((TokenTable("E"),)), twice, twice), weights)
    assert largest_radius(network, (np.array([[0, 1, 1], [1, 0, 1]]), None), 96) < 1e-20


# What is shared


@pytest.mark.parametrize("kind", KINDS)
def test_examples_alone_are_as_among_others(kind: str) -> None:
    network, (sequences, queries) = drawn(kind, examples=7)
    together = dict(enclose(network, (sequences, queries), bits=96))
    for i in range(7):
        own = sequences[i : i + 1], None if queries is None else queries[i : i + 1]
        [(_, row)] = enclose(network, own, bits=96)
        assert all(one.overlaps(other) for one, other in zip(row, together[i], strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_do_not_change_balls(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network, inputs = drawn(kind, examples=7)
    whole = dict(enclose(network, inputs, bits=96))
    monkeypatch.setattr(module, "MAX_BALLS", 1)
    heard: list[tuple[int, int]] = []
    parts = dict(enclose(network, inputs, bits=96, report=lambda *done: heard.append(done)))
    assert heard == [(i, 7) for i in range(1, 8)]
    for i in range(7):
        assert all(one.overlaps(other) for one, other in zip(whole[i], parts[i], strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_both_ways_of_attention_agree(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network, inputs = drawn(kind, examples=7)
    attend, results = TrainedAttention.attend, []
    for keys, values in product((False, True), repeat=2):
        ways = {"keys": keys, "values": values}
        monkeypatch.setattr(TrainedAttention, "attend", lambda *args, _ways=ways, **_: attend(*args, **_ways))
        results.append(dict(enclose(network, inputs, bits=192)))
    for result in results[1:]:
        for i in range(7):
            assert all(one.overlaps(other) for one, other in zip(results[0][i], result[i], strict=True))
            assert max(float(x.rad()) for x in (*results[0][i], *result[i])) < 1e-40


def test_beginnings_are_nodes() -> None:
    """Of 01, 02 and 1 (with what pads): 0, 1, 01 and 02."""
    nodes = module._beginnings(np.array([[0, 1], [0, 2], [1, 9]]), np.array([2, 2, 1]))
    assert list(zip(nodes.content.tolist(), nodes.places.tolist(), strict=True)) == [(0, 0), (1, 1), (2, 1), (1, 0)]
    plain = [(asking, seen.tolist()) for asking, seen in nodes.groups]
    assert plain == [([0], [0]), ([1], [0, 1]), ([2], [0, 2]), ([3], [3])]
    assert nodes.answers.tolist() == [1, 2, 3]
    assert [asking for asking, _ in nodes.answered] == [[1], [2], [3]]


def test_equal_tokens_are_near_linear() -> None:
    """A list of what each of 10⁵ tokens sees would have 5 · 10⁹ entries; only the last one is read."""
    nodes = module._beginnings(np.zeros((1, 10**5), np.int64), np.array([10**5]))
    [(asking, seen)] = nodes.answered
    assert (asking, seen.tolist()) == ([10**5 - 1], list(range(10**5)))


@given(st.data())
def test_beginnings_are_those_of_a_plain_loop(data: st.DataObject) -> None:
    """The plain form numbers the beginnings as they come; here only the names of nodes may differ."""
    rows = sorted(data.draw(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=1, max_size=6)))
    rows.sort(key=lambda row: [*row, 3, 3, 3, 3, 3][:5])
    padded = np.array([[*row, 3, 3, 3, 3, 3][:5] for row in rows])
    nodes = module._beginnings(padded, np.array([len(row) for row in rows]))
    names = {asking[0]: tuple(nodes.content[seen].tolist()) for asking, seen in nodes.groups}
    assert sorted(names.values()) == sorted({tuple(row[:k]) for row in rows for k in range(1, len(row) + 1)})
    assert [names[node] for node in nodes.answers.tolist()] == [tuple(row) for row in rows]
    assert all(len(names[node]) == place + 1 for node, place in enumerate(nodes.places.tolist()))


def test_between_two_examples_the_precision_is_the_callers() -> None:
    network, inputs = drawn("gpt")
    before = ctx.prec
    steps = enclose(network, inputs, bits=before + 100)
    next(steps)
    assert ctx.prec == before
    steps.close()
    assert ctx.prec == before

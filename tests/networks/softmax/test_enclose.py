"""Enclosures: the true value, calculated with 120 decimal digits in the test itself, lies in every ball."""

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates.features import enclose_features
from byheart.constructions.mahdavi_2024 import residual
from byheart.errors import BadInput
from byheart.networks.balls import matrix, precision, softmax
from byheart.networks.softmax import SoftmaxNetwork, evaluate
from byheart.networks.trained import enclose as module
from byheart.networks.trained.enclose import enclose
from byheart.tasks import QueryTargets

from .small import KINDS, drawn, one_head

DIGITS = Context(prec=120, Emin=-(10**9), Emax=10**9)
Table = list[list[Decimal]]


def exact(array: np.ndarray) -> Any:
    """Float64 numbers as the decimals that they are."""
    return [exact(row) for row in array] if array.ndim else Decimal(float(array))


def product(row: list[Decimal], table: Table) -> list[Decimal]:
    return [sum((x * y for x, y in zip(row, column, strict=True)), Decimal(0)) for column in zip(*table, strict=True)]


def averages(network: SoftmaxNetwork, x: Table, q: list[Decimal]) -> tuple[Table, Table]:
    """Every head's weights and averages."""
    weights = []
    for W_Q, W_K in zip(exact(network.W_Q), exact(network.W_K), strict=True):
        asked = product(q, W_Q)
        scores = [sum((a * b for a, b in zip(asked, product(row, W_K), strict=True)), Decimal(0)) for row in x]
        raised = [(score - max(scores)).exp() for score in scores]
        weights.append([value / sum(raised) for value in raised])
    return weights, [product(row, x) for row in weights]


def outputs(network: SoftmaxNetwork, sequence: np.ndarray, query: np.ndarray | None) -> list[Decimal]:
    """The definition of a softmax network in decimals, within the context that is active."""
    if query is None:
        pairs = zip(exact(network.W_E[sequence]), exact(network.W_pos), strict=True)
        x = [[e + p for e, p in zip(*rows, strict=True)] for rows in pairs]
        q = x[-1]
    else:
        x, q = exact(sequence), exact(query)
    z = list(q) if network.skip else [Decimal(0)] * network.W_O.shape[2]
    heads = zip(averages(network, x, q)[1], exact(network.W_V), exact(network.W_O), strict=True)
    for average, W_V, W_O in heads:
        z = [a + b for a, b in zip(z, product(product(average, W_V), W_O), strict=True)]
    if network.W_in is not None:
        raised = [2 * (a + b) for a, b in zip(product(z, exact(network.W_in)), exact(network.b_in), strict=True)]
        z = [(value.exp() - 1) / (value.exp() + 1) for value in raised]
    return z if network.W_U is None else product(z, exact(network.W_U))


def fraction(point: Any) -> Fraction:
    """A ball of radius zero, exactly."""
    mantissa, exponent = point.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def contains(ball: Any, value: Decimal) -> bool:
    return abs(fraction(ball.mid()) - Fraction(value)) <= fraction(ball.rad())


def all_rows(network: SoftmaxNetwork, inputs: Any, bits: int) -> list[list[Any]]:
    rows = dict(enclose(network, inputs, bits=bits))
    return [rows[example] for example in range(len(inputs[0]))]


def is_enclosed(network: SoftmaxNetwork, inputs: Any, bits: int) -> float:
    """Every output lies in its ball; the largest radius."""
    sequences, queries = inputs
    rows = all_rows(network, inputs, bits)
    assert len(rows) == len(sequences)
    for example, row in enumerate(rows):
        with localcontext(DIGITS):
            expected = outputs(network, sequences[example], None if queries is None else queries[example])
        assert len(row) == len(expected) == network.outputs
        for ball, value in zip(row, expected, strict=True):
            assert contains(ball, value), (example, ball, value)
    return max(float(ball.rad()) for row in rows for ball in row)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32), bits=st.integers(54, 256))
@settings(max_examples=12)
def test_balls_contain_the_truth(kind: str, seed: int, bits: int) -> None:
    network, inputs = drawn(kind, seed=seed, examples=3)
    assert is_enclosed(network, inputs, bits) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_ball_moved_by_its_diameter_does_not_contain_the_truth(kind: str) -> None:
    """The check above can fail: radii are not so large that anything would do."""
    network, (sequences, queries) = drawn(kind)
    [[ball, *_], *_] = all_rows(network, (sequences, queries), 64)
    with localcontext(DIGITS):
        value, *_ = outputs(network, sequences[0], None if queries is None else queries[0])
    with precision(256):
        moved = ball + 2.5 * ball.rad().mid()
    assert contains(ball, value)
    assert not contains(moved, value)


@pytest.mark.parametrize("kind", KINDS)
def test_radii_shrink_with_the_bits(kind: str) -> None:
    network, inputs = drawn(kind)
    radii = [is_enclosed(network, inputs, bits) for bits in (64, 128, 192, 256)]
    assert all(after < before * 2.0**-60 for before, after in pairwise(radii))
    assert radii[0] < 1e-13


@pytest.mark.parametrize("kind", ["shared", "own", "skip"])
@pytest.mark.parametrize("seed", range(3))
def test_huge_scores_are_no_problem(kind: str, seed: int) -> None:
    """Scores of about 10⁶: exp of them is far beyond float64, and one token gets all the weight."""
    network, inputs = drawn(kind, seed=seed, scale=1e6)
    assert is_enclosed(network, inputs, 64) < 1e-8
    assert is_enclosed(network, inputs, 128) < 1e-27


def test_huge_scores_that_nearly_agree() -> None:
    """10¹² and 10¹² + 2⁻¹² differ by what decides: weights 1/(1 + e^±δ), which 64 bits do not see well, and 128 do."""
    context, network = np.array([[[1.0], [1.0 + 2.0**-52]]]), one_head(W_Q=2.0**40, W_V=2.0**52)
    asked = (context, np.ones((1, 1)))
    assert is_enclosed(network, asked, 128) < 1e-4
    with localcontext(DIGITS):
        [value] = outputs(network, context[0], np.ones(1))
        share = value - Decimal(2) ** 52
        assert abs(share - 1 / (1 + (-(Decimal(2) ** -12)).exp())) < Decimal(10) ** -80


def test_scores_of_any_size_in_softmax() -> None:
    with precision(128):
        first, second, third = softmax([arb(10) ** 40, arb(10) ** 40 - 1, arb(-(10**40))])
    e = Decimal(1).exp(DIGITS)
    with localcontext(DIGITS):
        assert contains(first, e / (1 + e))
        assert contains(second, 1 / (1 + e))
    assert -1e-30 < float(third.lower()) <= float(third.upper()) < 1e-30


def test_one_token_alone_is_exact() -> None:
    [[ball]] = all_rows(one_head(W_V=3.0, W_O=0.25), (np.array([[[7.0]]]), np.array([[0.3]])), 64)
    assert ball == arb(5.25)
    assert ball.is_exact()


@pytest.mark.parametrize("kind", KINDS)
def test_the_middle_is_what_float64_says(kind: str) -> None:
    """Two programs, one of them in floats, for the same thing; no decimals here."""
    network, inputs = drawn(kind, examples=70)
    middles = [[float(ball) for ball in row] for row in all_rows(network, inputs, 64)]
    assert np.allclose(middles, evaluate(network, inputs), rtol=1e-9, atol=1e-11)


def test_a_skip_connection_on_queries_is_refused() -> None:
    tensors = drawn("own")[0].by_name() | {"W_O": np.ones((2, 3, 4))}
    with pytest.raises(BadInput, match="skip is for token ids"):
        SoftmaxNetwork(**tensors, skip=True)


# Chunks


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_do_not_change_balls(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network, inputs = drawn(kind, examples=11)
    whole = all_rows(network, inputs, 96)
    monkeypatch.setattr(module, "MAX_BALLS", 1)
    for before, after in zip(whole, all_rows(network, inputs, 96), strict=True):
        assert all(one.overlaps(other) for one, other in zip(before, after, strict=True))


def test_progress_is_reported_after_every_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """An example takes 4 · 5 balls: a query and three vectors of the width."""
    network, inputs = drawn("own", examples=7)
    monkeypatch.setattr(module, "MAX_BALLS", 4 * 4 * network.width)
    heard: list[tuple[int, int]] = []
    assert len(list(enclose(network, inputs, bits=64, report=lambda *done: heard.append(done)))) == 7
    assert heard == [(4, 7), (7, 7)]


def test_inputs_are_checked() -> None:
    (network, _), (_, inputs) = drawn("plain"), drawn("own")
    with pytest.raises(BadInput, match="the network reads token ids; the task has contexts and queries"):
        next(enclose(network, inputs, bits=64))
    with pytest.raises(BadInput, match="the network reads token ids; the task has contexts and queries"):
        enclose_features(network, inputs, bits=64, by_weights=False)


# Precision


def test_precision_is_put_back() -> None:
    before = ctx.prec
    with precision(before + 100):
        assert ctx.prec == before + 100
        with precision(70):
            assert ctx.prec == 70
        assert ctx.prec == before + 100
    assert ctx.prec == before


def test_precision_is_put_back_after_an_error() -> None:
    before = ctx.prec

    def fail() -> None:
        with precision(before + 100):
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()
    assert ctx.prec == before
    with pytest.raises(ValueError, match="prec"), precision(-1):
        raise AssertionError("no such precision")
    assert ctx.prec == before


def test_between_two_chunks_the_precision_is_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator that is left half-way must not leave its precision behind."""
    monkeypatch.setattr(module, "MAX_BALLS", 1)
    network, inputs = drawn("own")
    before = ctx.prec
    steps = enclose(network, inputs, bits=before + 100)
    _, [ball] = next(steps)
    assert ctx.prec == before
    ctx.prec = before + 7
    try:
        _, [later] = next(steps)
        assert ctx.prec == before + 7
    finally:
        ctx.prec = before
    steps.close()
    assert ctx.prec == before
    assert max(float(ball.rad()), float(later.rad())) < 2.0 ** -(before + 60)


def test_matrix_is_exact() -> None:
    array = np.array([[0.1, -1e300, 5e-324], [1 / 3, 0.0, 2.0**-1074]])
    with precision(20):
        table = matrix(array).table()
    assert [[fraction(x.mid()) for x in row] for row in table] == [[Fraction(x) for x in row] for row in array.tolist()]
    assert all(x.is_exact() for row in table for x in row)


# Features


def test_features_of_a_shared_context_are_the_weights() -> None:
    """All n weights of the first head, and all but the last of the other: 2·(3 − 1) + 1 columns."""
    network, (contexts, queries) = drawn("shared", examples=7)
    found = enclose_features(network, (contexts, queries), bits=128, by_weights=True).table()
    assert [len(row) for row in found] == [5] * 7
    for example, row in enumerate(found):
        with localcontext(DIGITS):
            (first, second), _ = averages(network, exact(contexts[0]), exact(queries[example]))
        for ball, value in zip(row, [*first, *second[:-1]], strict=True):
            assert contains(ball, value)
            assert 0 < float(ball.rad()) < 1e-35


def test_features_of_contexts_of_their_own_are_the_averages() -> None:
    """H·d = 8 columns, which the values of all heads, below each other, turn into the outputs."""
    network, inputs = drawn("own", examples=7)
    found = enclose_features(network, inputs, bits=64, by_weights=False)
    middle = np.array([[float(x) for x in row] for row in found.table()])
    scores = np.einsum("tnd,hdk,hek,te->thn", inputs[0], network.W_K, network.W_Q, inputs[1])
    weights = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    assert middle.shape == (7, 8)
    assert np.allclose(middle, np.einsum("thn,tnd->thd", weights, inputs[0]).reshape(7, 8), rtol=1e-10, atol=1e-12)
    values = np.concatenate([V @ out for V, out in zip(network.W_V, network.W_O, strict=True)])
    assert np.allclose(middle @ values, evaluate(network, inputs), rtol=1e-10, atol=1e-12)


def test_features_of_a_shared_context_span_the_outputs() -> None:
    """Some values turn the H(n − 1) + 1 = 5 columns into the outputs of all 12 examples."""
    network, inputs = drawn("shared", examples=12)
    features = enclose_features(network, inputs, bits=64, by_weights=False)
    middle = np.array([[float(x) for x in row] for row in features.table()])
    wanted = evaluate(network, inputs)
    values = np.linalg.lstsq(middle, wanted, rcond=None)[0]
    assert np.allclose(middle @ values, wanted, rtol=1e-9, atol=1e-10)
    assert np.linalg.matrix_rank(middle) == 5


def test_a_shared_context_and_copies_of_it_give_the_same_outputs() -> None:
    """The shared one is multiplied once, by another formula."""
    network, (contexts, queries) = drawn("shared", examples=6)
    task = QueryTargets(contexts=np.array(contexts), queries=queries, targets=np.zeros(6))
    assert not task.shared
    once, each = all_rows(network, (contexts, queries), 128), all_rows(network, (task.vectors, queries), 128)
    for one, other in zip(once, each, strict=True):
        assert all(a.overlaps(b) for a, b in zip(one, other, strict=True))


# Residuals


@pytest.mark.parametrize("kind", ["own", "shared"])
def test_residual_is_subtracted_before_it_is_rounded(kind: str) -> None:
    """What is wanted are the outputs, rounded: what is missing is below the last bit, and known to twelve digits."""
    network, (sequences, queries) = drawn(kind)
    with localcontext(DIGITS):
        true = [outputs(network, x, q) for x, q in zip(sequences, queries, strict=True)]
        wanted = np.array([[float(value) for value in row] for row in true])
        expected = [
            [float(Decimal(w) - v) for w, v in zip(*rows, strict=True)]
            for rows in zip(wanted.tolist(), true, strict=True)
        ]
    found = residual(network, (sequences, queries), wanted)
    assert found.dtype == np.float64
    assert (found != 0).all()
    assert (np.abs(found) <= np.spacing(np.abs(wanted)) / 2).all()
    assert np.allclose(found, expected, rtol=1e-12, atol=0)

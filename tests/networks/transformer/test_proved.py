"""What is proved to be exact is exact, in whatever order it is added up; what is not becomes nan."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import byheart
from byheart.certificates import judge
from byheart.certificates.judges import transformer
from byheart.compiler import CompilerSettings
from byheart.compiler.rectangular.dimensions import WORDS
from byheart.networks.transformer import GatedBlocks, Spec, WindowAttention, forced
from byheart.networks.transformer.answers import Answers, answers
from byheart.networks.transformer.module import Transformer
from byheart.networks.transformer.proved import Proved, unit
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays
from byheart.tasks import NextToken, random_next_token

FORMATS = [(precision, word) for precision, words in WORDS.items() for word in words]
BITS = {"float32": 24, "float64": 53}


@pytest.fixture(params=["compiled", "PyTorch"])
def proof(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judged by either code."""
    if request.param == "compiled":
        monkeypatch.setattr(transformer, "FEW", 0)
        monkeypatch.setattr(forced, "proved_answers", nothing_proved)


def nothing_proved(module: Transformer, tokens: Any, starts: Any, places: Any) -> Answers:
    return Answers(np.zeros(len(places), np.int64), np.full(len(places), np.nan))


def network(
    precision: str, sublayers: tuple[WindowAttention | GatedBlocks, ...], **tensors: list
) -> TransformerNetwork:
    """One token; the stream begins as W_E's only row; the label is 0 if the first feature is above 0."""
    width = len(tensors["W_E"][0])
    spec = Spec(1, 2, 1, width, precision, tuple(range(width)), (0,), sublayers)
    unembedding = {"unembedding.W_U": [[1], [-1]], "unembedding.b_U": [0, 0]}
    named = {"embedding.W_E": tensors.pop("W_E"), **unembedding, **tensors}
    return from_arrays(spec, {name: np.array(tensor, dtype=precision) for name, tensor in named.items()})


def proved(precision: str) -> Proved:
    return Proved(network(precision, (), W_E=[[1]]).module)


def adding(precision: str, terms: list[float]) -> TransformerNetwork:
    """relu(Σ terms), in one sum."""
    ffn = GatedBlocks("add", "relu", tuple(range(1, len(terms) + 1)), (0,), units=1, bias=False)
    ones = [[[1] * len(terms)]]
    return network(precision, (ffn,), W_E=[[0, *terms]], **{"add.W_in": ones, "add.W_out": [[[1]]]})


def in_every_order(precision: str, terms: list[float]) -> set[float]:
    kind = np.dtype(precision).type
    found = set()
    for order in itertools.permutations(terms):
        total = kind(0)
        for term in order:
            total += kind(term)
        found.add(float(total))
    return found


numbers = st.tuples(st.integers(-(2**25), 2**25), st.integers(-3, 32)).map(lambda pair: math.ldexp(*pair))


@pytest.mark.parametrize("precision", BITS)
@given(terms=st.lists(numbers, min_size=1, max_size=5))
def test_sums(precision: str, terms: list[float]) -> None:
    """Whatever is not nan is what every order gives, and the true sum."""
    terms = [float(np.dtype(precision).type(term)) for term in terms]
    prover = proved(precision)
    found = prover.sum([torch.tensor([term], dtype=torch.float64) for term in terms])[0].item()
    if not math.isnan(found):
        assert in_every_order(precision, terms) == {found}
        assert Fraction(found) == sum(map(Fraction, terms))


@pytest.mark.parametrize("precision", BITS)
@given(data=st.data())
def test_dot_products(precision: str, data: st.DataObject) -> None:
    """W x + b: the products too, and all orders."""
    width = data.draw(st.integers(1, 4))
    kind = np.dtype(precision).type
    draw = st.lists(numbers, min_size=width, max_size=width)
    W, x, b = data.draw(draw), data.draw(draw), [data.draw(numbers)]
    W, x, b = ([float(kind(number)) for number in row] for row in (W, x, b))
    prover = proved(precision)
    prover.weights |= {"W": torch.tensor([[W]], dtype=torch.float64), "b": torch.tensor([b], dtype=torch.float64)}
    prover.units |= {name: unit(prover.weights[name]) for name in ("W", "b")}
    found = prover.affine("W", "b", torch.tensor(x, dtype=torch.float64).view(1, width, 1)).item()
    if not math.isnan(found):
        with np.errstate(over="ignore"):
            products = [float(kind(w) * kind(y)) for w, y in zip(W, x, strict=True)]
        assert in_every_order(precision, [*products, *b]) == {found}
        assert Fraction(found) == sum((Fraction(w) * Fraction(y) for w, y in zip(W, x, strict=True)), Fraction(b[0]))


@pytest.mark.parametrize("precision", BITS)
def test_the_last_sums_that_fit(precision: str) -> None:
    """By hand: 2^p − 1 has p bits; one more unit beside it may be lost on the way."""
    top = 2.0 ** BITS[precision]
    prover = proved(precision)

    def total(*terms: float) -> float:
        return prover.sum([torch.tensor([term], dtype=torch.float64) for term in terms])[0].item()

    assert total(top - 2, 1, 0) == top - 1
    assert math.isnan(total(top, 1, 0)), "2^p + 1 takes p + 1 bits"
    assert total(-top, top / 2, top / 2 - 1) == -1, "no side is beyond 2^p"
    assert total(2 * top - 4, 2, -4) == 2 * top - 6, "all even: the unit is 2"
    assert total(top, top, -2 * top) == 0, "multiples of 2^p"
    three = torch.tensor([3.0], dtype=torch.float64)
    assert prover.product(three, three / 3 * (top - 1)).isnan().item()
    assert prover.product(three / 3, three / 3 * (top - 1)).item() == top - 1


@given(st.integers(-(2**53), 2**53), st.integers(-500, 400))
def test_units(mantissa: int, exponent: int) -> None:
    found = unit(torch.tensor([math.ldexp(mantissa, exponent)], dtype=torch.float64)).item()
    assert found == (math.ldexp(mantissa & -mantissa, exponent) if mantissa else math.inf)


@pytest.mark.parametrize("precision", BITS)
@pytest.mark.usefixtures("proof")
def test_what_float64_rounds_in_the_same_way(precision: str) -> None:
    """2^60 + 1 − 2^60 is 0 in one order and 1 in another, in float32 and in float64: not certified either way."""
    task = NextToken([[0]], [0], label_count=2)
    assert judge(adding(precision, [4, 1, -4]), task).certified
    verdict = judge(adding(precision, [2.0**60, 1, -(2.0**60)]), task)
    assert not verdict.certified
    assert verdict.method == f"{precision}, exhaustive; 1 not proved to be exact"


@pytest.mark.parametrize(("precision", "high", "far"), [("float32", 20, 105), ("float64", 40, 750)])
@pytest.mark.usefixtures("proof")
def test_sigmoids(precision: str, high: float, far: float) -> None:
    """The label is 0 where the sigmoid is 1; between the marks nothing is known, though floats have an answer there."""

    def certified(x: float, label: int) -> bool:
        ffn = GatedBlocks("gate", "sigmoid", (1,), (0,), units=1)
        tensors = {"gate.W_in": [[[1]]], "gate.b_in": [[0]], "gate.W_out": [[[1]]]}
        return judge(
            network(precision, (ffn,), W_E=[[-0.5, x]], **tensors), NextToken([[0]], [label], label_count=2)
        ).certified

    assert certified(high, 0)
    assert certified(1e30, 0)
    assert certified(-far, 1)
    assert certified(-1e30, 1)
    assert not certified(high - 1, 0)
    assert not certified(1 - far, 1)
    assert not certified(0, 0)


@pytest.mark.parametrize(("gap", "known"), [(0, True), (1, False), (104, False), (105, True), (10_000, True)])
def test_softmax(gap: float, known: bool) -> None:
    """Two positions; equal scores share the attention, a far lower one gets none, what lies between is not known."""
    attention = WindowAttention("look", reads=(0,), writes=(1,), window=2, dilation=1, heads=1, d_head=1)
    spec = Spec(2, 2, 2, 2, "float32", (0,), (1,), (attention,))
    tensors = {
        "embedding.W_E": [[2], [4]],
        **{f"look.{name}": [[value]] for name, value in (("W_Q", 0), ("W_K", 0), ("W_V", 1), ("W_O", 1))},
        "look.bias": [[0, -gap]],
        "unembedding.W_U": [[1], [-1]],
        "unembedding.b_U": [0, 0],
    }
    made = from_arrays(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})
    logits = answers(Proved(made.module), np.array([0, 1]), np.array([0, 2]), np.array([1]))
    assert logits.margins.tolist() == ([6 if gap == 0 else 8] if known else pytest.approx([math.nan], nan_ok=True))


def test_scores_count() -> None:
    """By hand: scores q·k = 0 and 128 at two positions; with √d_head = √2 nothing but 0 can be divided exactly."""

    def margin(key: float, d_head: int) -> float:
        attention = WindowAttention("look", (0, 1), (2,), window=2, dilation=1, heads=1, d_head=d_head)
        spec = Spec(2, 2, 2, 3, "float32", (0, 1), (2,), (attention,))
        first = [[1, 0]] + [[0, 0]] * (d_head - 1)
        tensors = {
            "embedding.W_E": [[key, 3], [16, 5]],
            "look.W_Q": first,
            "look.W_K": first,
            "look.W_V": [[0, 1]] + [[0, 0]] * (d_head - 1),
            "look.W_O": [[1] + [0] * (d_head - 1)],
            "look.bias": [[0, 0]],
            "unembedding.W_U": [[1], [-1]],
            "unembedding.b_U": [0, 0],
        }
        made = from_arrays(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})
        return float(answers(Proved(made.module), np.array([0, 1]), np.array([0, 2]), np.array([1])).margins[0])

    assert margin(32, 1) == 6, "32·16 is farther above 16·16 than 105: the first position, 3 − (−3)"
    assert margin(16, 1) == 8, "a tie: (3 + 5)/2"
    assert math.isnan(margin(17, 1))
    assert margin(64, 4) == 6
    assert math.isnan(margin(32, 2))


def test_a_feature_that_is_written_to_twice() -> None:
    """2^24 − 1 + 1 + 1 is 2^24 + 1 in no order; −2^24 + 2^23 + 2^23 needs no more than 24 bits in any."""
    ffn = GatedBlocks("pair", "relu", (1, 2), (0, 0), units=1, groups=2, bias=False)
    tensors = {"pair.W_in": [[[1]], [[1]]], "pair.W_out": [[[1]], [[1]]]}
    for stream, known in (([2.0**24 - 1, 1, 1], False), ([-(2.0**24), 2.0**23, 2.0**23 - 1], True)):
        made = network("float32", (ffn,), W_E=[stream], **tensors)
        found = answers(Proved(made.module), np.array([0]), np.array([0, 1]), np.array([0]))
        assert bool(np.isfinite(found.margins[0])) is known


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_compiled_networks_are_proved(form: tuple[str, int]) -> None:
    """Every answer; and the logits are those of the network itself."""
    task = random_next_token(examples=300, length=9, vocab=40, labels=30, rng=np.random.default_rng(0))
    built = byheart.compile(task, settings=CompilerSettings(*form))
    asked = built.questions.tokens, built.questions.starts, built.questions.places
    once, found = (answers(what, *asked) for what in (built.network.module, Proved(built.network.module)))
    assert found.labels.tolist() == once.labels.tolist() == built.questions.labels.tolist()
    assert found.margins.tolist() == once.margins.tolist()


@pytest.mark.parametrize("portion", [1, 7, 64, 1 << 14])
def test_portions_and_caches_change_nothing(portion: int) -> None:
    built = byheart.compile({"one": "It was the best of times, it was the worst of times", "two": "It is a far better"})
    asked = built.questions.tokens, built.questions.starts, built.questions.places
    found = answers(Proved(built.network.module), *asked, portion=portion)
    assert found.labels.tolist() == built.questions.labels.tolist()
    assert (found.margins > 0).all()


@pytest.mark.usefixtures("proof")
def test_an_inexact_step_far_away_is_noticed() -> None:
    """One entry of the table off by a fraction that the format holds: answers that use it are no longer proved."""
    task = random_next_token(examples=200, length=4, vocab=20, labels=7, rng=np.random.default_rng(5))
    network = byheart.compile(task).network
    words = network.weights["table.W_out"].clone()
    words[words != 0] += 0.25
    broken = replace(network, weights={**network.weights, "table.W_out": words})
    verdict = judge(broken, task)
    assert not verdict.certified


@pytest.mark.usefixtures("proof")
def test_keys_count_though_queries_are_zero() -> None:
    """P − P + P − … overflows in some orders, and 0·∞ is no number: found by an adversary."""
    large, width = 1.5 * 2.0**127, 4
    attention = WindowAttention("look", tuple(range(width)), (width,), window=1, dilation=1, heads=1, d_head=1)
    spec = Spec(2, 2, 1, width + 1, "float32", tuple(range(width)), (width,), (attention,))
    first = [[1] + [0] * (width - 1)]
    for keys, queries, known in (([large, -large] * 2, [0] * width, False), ([0] * width, [0] * width, True)):
        for W_Q, W_K in ((queries, keys), (keys, queries)):
            tensors = {
                "embedding.W_E": [[1] * width, [-1] * width],
                **{"look.W_Q": [W_Q], "look.W_K": [W_K], "look.W_V": first, "look.W_O": [[1]], "look.bias": [[0]]},
                "unembedding.W_U": [[1], [-1]],
                "unembedding.b_U": [0, 0],
            }
            made = from_arrays(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})
            assert judge(made, NextToken([[0], [1]], [0, 1])).certified is known


@pytest.mark.parametrize(("others", "known"), [([0.0] * 4, True), ([-(2.0**127)] * 4, False)])
@pytest.mark.usefixtures("proof")
def test_a_gate_that_overflows(others: list[float], known: bool) -> None:
    """2^254 alone becomes infinite, which is beyond; beside −2^129, which does too, it is no number in some orders."""
    ffn = GatedBlocks("gate", "sigmoid", tuple(range(1, 6)), (0,), units=1, bias=False)
    tensors = {"gate.W_in": [[[2.0**127, *others]]], "gate.W_out": [[[1]]]}
    made = network("float32", (ffn,), W_E=[[-0.5, 2.0**127, 1, 1, 1, 1]], **tensors)
    assert judge(made, NextToken([[0]], [0], label_count=2)).certified is known


@pytest.mark.parametrize(("first", "known"), [(2.0**128 - 5 * 2.0**104, False), (2.0**126, True)])
@pytest.mark.usefixtures("proof")
def test_a_gate_that_overflows_when_it_is_rounded(first: float, known: bool) -> None:
    """What is above 0 adds up to less than the largest float32; rounded up five times, to more.

    Begun with those, the sum is infinite, and the gate is open; begun with the others, it is shut. By hand, in units of
    2^104 below 2^128: −5 + 0.625 is rounded to −4, to −3, −2, −1 and 0.
    """
    terms = [first, *[0.625 * 2.0**104] * 5, *[-(2.0**127)] * 6]
    ffn = GatedBlocks("gate", "sigmoid", tuple(range(1, 13)), (0,), units=1, bias=False)
    tensors = {"gate.W_in": [[[2.0**20] * 12]], "gate.W_out": [[[1]]]}
    small = [2.0**-20 * term for term in reversed(terms)]
    made = network("float32", (ffn,), W_E=[[-0.5, *small]], **tensors)
    assert judge(made, NextToken([[0]], [1], label_count=2)).certified is known

"""Kim, Kim & Mozafari 2023: rounds of hardmax attention, worked by hand, on every shape of task, and where it ends."""

import re
from dataclasses import replace
from itertools import combinations, combinations_with_replacement, permutations, product
from math import log2, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates import certify
from byheart.constructions import CONSTRUCTIONS, Built, build, kim_2023
from byheart.constructions.kim_2023 import KimSettings
from byheart.errors import BadInput
from byheart.networks.exact import (
    Affine,
    Embedding,
    ExactNetwork,
    FeedForward,
    HardmaxAttention,
    Positions,
    Residual,
    UniformAttention,
    integers,
)
from byheart.networks.exact.evaluate import evaluate
from byheart.sizes import Size
from byheart.tasks import (
    NextToken,
    NextTokenDistribution,
    SeqToSeq,
    prefixes,
    random_next_token,
    random_seq_to_seq,
)

from ..lies import perturbed_weight, shuffled_answers
from .refused import ALIKE_UP_TO_ORDER

Labelled = NextToken | SeqToSeq
FORMS: dict[str, dict[str, bool]] = {"plain": {}, "positions": {"positions": True}, "causal": {"causal": True}}
EVERY_FORM = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
BOTH_IDS = pytest.mark.parametrize("ids", ["digits", "hashed"])
ORDERED = pytest.mark.parametrize("form", [FORMS["positions"], FORMS["causal"]], ids=["positions", "causal"])


def memorize(task: Labelled, chosen: KimSettings, *, seed: int = 0, flint: bool = False) -> Built:
    built = build("kim-2023", task, seed=seed, settings=chosen)
    for evaluator in ("limbs", "flint") if flint else ("limbs",):
        found = certify(built.network, task, evaluator=evaluator)
        assert found.certified, f"{chosen}, {evaluator}: {found.counterexample}"
        assert found.checked == task.labels.size
    return built


def relabelled(task: Labelled, form: dict[str, bool], rng: np.random.Generator) -> Labelled:
    """Where order matters, labels that differ wherever the form can tell places apart."""
    if not form or isinstance(task, NextToken):
        return task
    drawn = rng.integers(task.label_count, size=task.labels.size)
    return task.with_labels(drawn[prefixes(task)] if "causal" in form else drawn.reshape(task.labels.shape))


def stream(network: ExactNetwork, layers: int, inputs: np.ndarray) -> list[list[list[int]]]:
    """The whole stream [N][n][width] behind so many layers."""
    kept = network.layers[:layers]
    first = kept[0]
    width = first.W_E.shape[1] if isinstance(first, Embedding) else len(kept[1].layers[-1].W)
    units = []
    for i in range(width):
        unit = Affine(integers([[int(i == j) for j in range(width)]]), integers([0]), relu=False)
        part = replace(network, layers=(*kept, FeedForward((unit,))), outputs="every")
        units.append(evaluate(part, inputs))
    return np.stack(units, axis=-1).tolist()


class Script:
    """Draws that are written down beforehand, in their order."""

    def __init__(self, *draws: Any) -> None:
        self.draws = list(draws)

    def integers(self, *_: object, **__: object) -> Any:
        return self.draws.pop(0)

    def permutation(self, _: int) -> Any:
        return self.draws.pop(0)


def test_rounds_by_hand() -> None:
    """Three tokens in three rounds; the codes are z = 1, 2, 3 (P = 3, B = 7), φ = 5, 7, 11, c = 20, 12 and Q = 131.

    (0, 2, 1): z = 1, 3, 2, so q = z − 4 = −3, −1, −2; ids φ = 5, 11, 7.
      round 1: δ = 1, q = −2, 0, −1, ids + 49·1 = 54, 60, 56; the 0 retires to −6, marked: 60 + 20 = 80.
      round 2: δ = 1, q = −1, −5, 0, ids + 7·1 = 61, 87, 63; the 0 retires to −6, marked: 63 + 12 = 75.
      round 3: δ = 1, q = 0, −4, −5, ids + 1·1 = 62, 88, 76.
      count: the ids are 226 together, and + 2·226 they are 514, 540, 528.
    (2, 2, 0): z = 3, 3, 1, so q = −1, −1, −3; ids φ = 11, 11, 5.
      round 1: δ = 1, q = 0, 0, −2, ids + 49·1 = 60, 60, 54; the 0s retire to −6, marked: 60 + 20 = 80, twice.
      round 2: δ = 2, q = −4, −4, 0, ids + 7·2 = 94, 94, 68; the 0 retires to −6, marked: 68 + 12 = 80.
      round 3: all are retired: δ = 4 > P, q = 0, 0, −2, ids + 1·4 = 98, 98, 84.
      count: the ids are 280 together, and + 2·280 they are 658, 658, 644.
    The last tokens ask: 528 folds to 528 − 4·131 = 4, and 644 to 5·131 − 644 = 11.
    """
    task = NextToken(tokens=[[0, 2, 1], [2, 2, 0]], labels=[1, 0])
    own, marks = np.array([5, 7, 11]), np.array([20, 12])
    draws = Script(np.array([0, 1, 2]), 131, np.zeros(3, int), np.array([0, 0]), own, marks)
    made = kim_2023.build(task, KimSettings(), draws)  # type: ignore[arg-type]
    network, chosen = made.network, made.chosen
    assert draws.draws == []
    assert chosen == {"modulus": 131, "draws": 1, "rounds": 3, "growth": 0}
    kinds = [Embedding, *[HardmaxAttention, Residual] * 2, HardmaxAttention, UniformAttention, FeedForward]
    assert [type(layer) for layer in network.layers] == kinds
    names = ["rounds.1", "retire.1", "rounds.2", "retire.2", "rounds.3", "count", "label"]
    assert [layer.name for layer in network.layers[1:]] == names
    expected = [
        ([[-3, 5], [-1, 11], [-2, 7]], [[-1, 11], [-1, 11], [-3, 5]]),
        ([[-2, 54], [0, 60], [-1, 56]], [[0, 60], [0, 60], [-2, 54]]),
        ([[-2, 54], [-6, 80], [-1, 56]], [[-6, 80], [-6, 80], [-2, 54]]),
        ([[-1, 61], [-5, 87], [0, 63]], [[-4, 94], [-4, 94], [0, 68]]),
        ([[-1, 61], [-5, 87], [-6, 75]], [[-4, 94], [-4, 94], [-6, 80]]),
        ([[0, 62], [-4, 88], [-5, 76]], [[0, 98], [0, 98], [-2, 84]]),
        ([[0, 514], [-4, 540], [-5, 528]], [[0, 658], [0, 658], [-2, 644]]),
    ]
    for layers, wanted in enumerate(expected, start=1):
        assert stream(network, layers, task.inputs) == list(wanted)
    label = network.layers[-1]
    assert isinstance(label, FeedForward)
    keys = [layer.role for layer in label.layers].index("key") + 1
    folded = replace(network, layers=(*network.layers[:-1], FeedForward(label.layers[:keys])))
    assert evaluate(folded, task.inputs).tolist() == [4, 11]
    assert certify(network, task, evaluator="flint").certified


def test_nothing_is_marked_where_nothing_repeats() -> None:
    """(0, 2, 1) and (2, 1, 3): the marks that were drawn, 20 and 12, are not used, and nothing is counted.

    z = 1, 3, 2 and 3, 2, 4 (P = 4, B = 9), φ = 5, 7, 11, 13. Digits: 2, 1, 1 and 1, 1, 1: ids + 81·2 + 9 + 1 = 172, and
    + 81 + 9 + 1 = 91.
    """
    task = NextToken(tokens=[[0, 2, 1], [2, 1, 3]], labels=[1, 0])
    own, marks = np.array([5, 7, 11, 13]), np.array([20, 12])
    draws = Script(np.arange(4), 131, np.zeros(3, int), np.array([0, 0]), own, marks)
    network = kim_2023.build(task, KimSettings(), draws).network  # type: ignore[arg-type]
    kinds = [Embedding, *[HardmaxAttention, Residual] * 2, HardmaxAttention, FeedForward]
    assert [type(layer) for layer in network.layers] == kinds
    behind = np.array(stream(network, 6, task.inputs))[:, :, 1]
    assert behind.tolist() == [[5 + 172, 11 + 172, 7 + 172], [11 + 91, 7 + 91, 13 + 91]]
    assert certify(network, task, evaluator="flint").certified


def test_causal_rounds_by_hand() -> None:
    """(1, 0, 1) has the codes 2, 1, 2 (P = 2, B = 3, a = 9, 3, 1); φ = 5, 7; positions have the codes 10, 20, 30.

    Ids begin with 7 + 10, 5 + 20, 7 + 30 = 17, 25, 37.
    Round 1 shows the first code to all, 2: + 18, + 18, + 18 = 35, 43, 55.
    Round 2 shows the second code, 1, to those who see it, to the first position its own, 2: + 6, + 3, + 3 = 41, 46, 58.
    Round 3 shows everyone its own: + 2, + 1, + 2 = 43, 47, 60.
    """
    task = SeqToSeq(tokens=[[1, 0, 1]], labels=[[2, 0, 1]])
    own, marks = np.array([5, 7]), np.array([41, 43])  # nothing is retired, and so not marked
    draws = Script(np.array([0, 1]), 131, np.array([10, 20, 30]), np.array([0, 0]), own, marks)
    network = kim_2023.build(task, KimSettings(causal=True), draws).network  # type: ignore[arg-type]
    assert draws.draws == []
    assert [type(layer) for layer in network.layers] == [
        Embedding,
        Positions,
        *[HardmaxAttention] * 3,
        FeedForward,
    ]
    for layers, ids in enumerate([[17, 25, 37], [35, 43, 55], [41, 46, 58], [43, 47, 60]], start=2):
        (found,) = stream(network, layers, task.inputs)
        assert found == [[1, 1, 2, ids[0]], [2, 4, 1, ids[1]], [3, 9, 2, ids[2]]]
    assert certify(network, task, evaluator="flint").certified


def digits_by_definition(codes: list[int], rounds: int, P: int) -> list[int]:
    """m_1 > m_2 > … and what lies between them, from P + 1 down; 2P − (m_1 − m_r) where it begins again."""
    order = sorted(set(codes), reverse=True)
    digits, before = [], P + 1
    for t in range(rounds):
        now = order[t % len(order)]
        digits.append(before - now if now < before else 2 * P - (now - before))
        before = now
    return digits


@pytest.mark.parametrize("form", [FORMS["plain"], FORMS["positions"]], ids=["plain", "positions"])
@pytest.mark.parametrize("dim", [None, 2], ids=["ids", "vectors"])
@BOTH_IDS
def test_the_stream_after_every_round(form: dict[str, bool], dim: int | None, ids: Any) -> None:
    """From the definitions alone: q is z − m_t behind round t, and all ids of a sequence have grown by a_t·δ_t.

    The tokens just read, and no others, are retired to −2P and marked with c_t. Where tokens repeat, the ids are added
    up, behind the rounds and nowhere else.
    """
    sizes = {"examples": 9, "length": 5, "vocab": 6, "labels": 3, "dim": dim}
    task = random_next_token(**sizes, rng=np.random.default_rng(3))
    chosen = KimSettings(**form, ids=ids)
    demand, network = kim_2023.demand(task, chosen), memorize(task, chosen).network
    P, rounds, repeats = demand.codes, demand.rounds, not form
    assert demand.repeats == repeats
    starts = [i for i, layer in enumerate(network.layers) if isinstance(layer, HardmaxAttention)]
    tail = [HardmaxAttention, Residual] * (rounds - 1) + [HardmaxAttention] + [UniformAttention] * repeats
    assert [type(layer) for layer in network.layers[starts[0] :]] == [*tail, FeedForward]
    first = np.array(stream(network, starts[0], task.inputs))
    q, grown = first[:, :, 0], first[:, :, 1]
    z = q + P + 1
    assert z.min() >= 1
    assert z.max() <= P
    order = [sorted(set(row), reverse=True) for row in z.tolist()]
    wanted = np.array([digits_by_definition(row, rounds, P) for row in z.tolist()])
    just_read = np.array([z == np.array([m[t % len(m)] for m in order])[:, None] for t in range(rounds)])
    assert min(len(m) for m in order) < rounds or form  # some begin again
    found = kim_2023._read(demand, (z - 1) // 5 if form else z - 1)
    assert found.digits.tolist() == wanted.tolist()
    assert found.retired.tolist() == just_read[:-1].tolist()
    marks = []
    for t, i in enumerate(starts):
        layer = network.layers[i]
        assert isinstance(layer, HardmaxAttention)
        behind = np.array(stream(network, i + 1, task.inputs))
        q, grown = q + wanted[:, t, None], grown + (-int(layer.W_O[1, 0]) * wanted[:, t])[:, None]
        assert (behind[:, :, 0].max(axis=1) == 0).all()
        assert ((behind[:, :, 0] == 0) == just_read[t]).all()
        assert (behind == np.stack([q, grown], axis=2)).all()
        if t + 1 == rounds:
            break
        retire = network.layers[i + 1]
        assert isinstance(retire, Residual)
        (block,) = retire.blocks
        marks.append(int(block.W_out[1, 0]))
        q, grown = np.where(just_read[t], -2 * P, q), grown + marks[-1] * just_read[t]
        assert (np.array(stream(network, i + 2, task.inputs)) == np.stack([q, grown], axis=2)).all()
    assert len(set(marks)) == (rounds - 1 if repeats else 1)
    assert any(marks) == repeats
    if repeats:
        behind = np.array(stream(network, starts[-1] + 2, task.inputs))
        counted = grown + 2 * grown.sum(axis=1, keepdims=True)
        assert (behind == np.stack([q, counted], axis=2)).all()


SHAPES = [
    {"examples": 1, "length": 1, "vocab": 1, "labels": 1},
    {"examples": 2, "length": 1, "vocab": 2, "labels": 2},
    {"examples": 1, "length": 6, "vocab": 3, "labels": 2},
    {"examples": 3, "length": 2, "vocab": 3, "labels": 1},
    {"examples": 3, "length": 4, "vocab": 2, "labels": 7, "shape": "skewed"},
    {"examples": 20, "length": 3, "vocab": 8, "labels": 10, "shape": "neighbours"},
]


@pytest.mark.parametrize("sizes", SHAPES, ids=lambda s: "-".join(f"{key[0]}{value}" for key, value in s.items()))
@pytest.mark.parametrize("draw", [random_next_token, random_seq_to_seq], ids=["next-token", "seq-to-seq"])
@EVERY_FORM
@BOTH_IDS
@pytest.mark.parametrize("dim", [None, 1, 3], ids=["ids", "d1", "d3"])
def test_every_shape(sizes: dict[str, Any], draw: Any, form: dict[str, bool], ids: Any, dim: int | None) -> None:
    rng = np.random.default_rng(1)
    task = relabelled(draw(**sizes, dim=dim, rng=rng), form, rng)
    memorize(task, KimSettings(**form, ids=ids), flint=sizes["examples"] < 20)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [random_next_token, random_seq_to_seq], ids=["next-token", "seq-to-seq"])
@EVERY_FORM
@BOTH_IDS
@pytest.mark.parametrize("dim", [None, 2], ids=["ids", "vectors"])
def test_larger(draw: Any, form: dict[str, bool], ids: Any, dim: int | None) -> None:
    rng = np.random.default_rng(2)
    sizes = {"examples": 400, "length": 7, "vocab": 150, "labels": 10, "shape": "neighbours"}
    memorize(relabelled(draw(**sizes, dim=dim, rng=rng), form, rng), KimSettings(**form, ids=ids))


@BOTH_IDS
@pytest.mark.parametrize("dim", [None, 1, 2], ids=["ids", "d1", "d2"])
def test_how_often_a_token_occurs(ids: Any, dim: int | None) -> None:
    """All 15 multisets of four of three tokens, each with labels of its own; and every token of them."""
    rows = np.array(list(combinations_with_replacement(range(3), 4)))
    table = np.random.default_rng(0).standard_normal((3, dim or 1))
    inputs = {"tokens": rows} if dim is None else {"vectors": table[rows]}
    memorize(NextToken(**inputs, labels=range(15)), KimSettings(ids=ids))
    memorize(SeqToSeq(**inputs, labels=3 * np.arange(15)[:, None] + rows), KimSettings(ids=ids))


@BOTH_IDS
def test_sets_that_differ_in_one_token(ids: Any) -> None:
    """All sets of three of six tokens: whatever the codes, some differ in the smallest one only."""
    rows = list(combinations(range(6), 3))
    memorize(NextToken(tokens=rows, labels=range(20)), KimSettings(ids=ids))
    memorize(SeqToSeq(tokens=rows, labels=np.arange(60).reshape(20, 3)), KimSettings(ids=ids))


@BOTH_IDS
@ORDERED
def test_order_matters_where_it_can(form: dict[str, bool], ids: Any) -> None:
    """All 24 orders of four tokens, each with a label of its own."""
    orders = np.array(list(permutations(range(4))))
    memorize(NextToken(tokens=orders, labels=range(24)), KimSettings(**form, ids=ids))
    memorize(NextToken(vectors=orders[:, :, None] / 4, labels=range(24)), KimSettings(**form, ids=ids))
    same = SeqToSeq(tokens=[[0, 0, 0], [1, 0, 0], [1, 1, 0]], labels=[[0, 1, 2], [2, 1, 0], [2, 0, 0]])
    memorize(same, KimSettings(**form, ids=ids), flint=True)


def test_causal_and_positions_is_causal() -> None:
    """Both at once say no more than causal does: the same network."""
    task = SeqToSeq(tokens=[[1, 1, 2], [0, 1, 1]], labels=[[0, 1, 2], [2, 1, 0]])
    both, causal = (
        memorize(task, KimSettings(causal=True, positions=positions)).network for positions in (True, False)
    )
    assert both.fingerprint == causal.fingerprint


TINY, HUGE, SMALLEST = 1e-300, 1e300, 5e-324
WILD = [TINY, HUGE, -TINY, -HUGE, SMALLEST, -SMALLEST, 0.0, 1.0, float(np.nextafter(1.0, 2.0)), 3 * SMALLEST]
HARD: dict[str, Labelled] = {
    "wild in one sequence": SeqToSeq(vectors=np.array(WILD)[None, :, None], labels=[range(10)]),
    "wild sequences": NextToken(vectors=np.array(list(combinations(WILD, 2)))[:, :, None], labels=np.arange(45) % 4),
    "wild planes": NextToken(
        vectors=[[[TINY, 1.0], [HUGE, 0.0]], [[TINY, 0.0], [HUGE, 1.0]], [[SMALLEST, -0.0], [0.0, SMALLEST]]],
        labels=[0, 2, 1],
    ),
    "x and −x": SeqToSeq(vectors=[[[0.5], [-0.5], [0.0]], [[-0.5], [-0.5], [0.0]]], labels=[[0, 1, 2], [2, 2, 1]]),
    "zero and minus zero": SeqToSeq(vectors=[[[0.0], [-0.0]], [[-0.0], [1.0]]], labels=[[1, 1], [0, 2]]),
    "nothing but zero": NextToken(vectors=[[[0.0, -0.0]] * 3], labels=[4]),
    "all tokens equal": SeqToSeq(tokens=[[3] * 7], labels=[[2] * 7], vocab=9),
    "all sequences equal": NextToken(tokens=[[3] * 5] * 4, labels=[2] * 4),
    "neighbouring floats": SeqToSeq(
        vectors=(1.0 + np.arange(24) * 2.0**-52).reshape(8, 3, 1), labels=np.arange(24).reshape(8, 3) % 5
    ),
    "unused labels and tokens": NextToken(tokens=[[5, 5], [900, 5]], labels=[0, 3], label_count=1000, vocab=1000),
    "one token in many contexts": SeqToSeq(tokens=[[0, k] for k in range(1, 30)], labels=[[0, k] for k in range(29)]),
    "how often one occurs": NextToken(tokens=np.tril(np.ones((7, 7), int)), labels=range(7)),
    "long": NextToken(tokens=[[0] * 29 + [1], [0] * 30, [1] * 30, [1] * 29 + [0]], labels=[0, 1, 2, 3]),
}


@pytest.mark.parametrize("task", HARD.values(), ids=HARD)
@EVERY_FORM
@BOTH_IDS
def test_hard_on_purpose(task: Labelled, form: dict[str, bool], ids: Any) -> None:
    if "causal" in form and isinstance(task, SeqToSeq):  # one label for one prefix
        task = task.with_labels((prefixes(task) % task.label_count).reshape(task.labels.shape))
    memorize(task, KimSettings(**form, ids=ids))


@st.composite
def any_task(draw: st.DrawFn, form: str) -> Labelled:
    """Small tasks full of duplicates and twins; the labels are a function of what the form can tell apart."""
    n = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(st.integers(0, 4), min_size=n, max_size=n).map(tuple), min_size=1, max_size=6))
    C, rng = draw(st.sampled_from([1, 2, 10, 256])), np.random.default_rng(draw(st.integers(0, 10**6)))
    seq_to_seq = draw(st.booleans())

    def question(row: tuple[int, ...], k: int) -> object:
        if form == "causal":
            return row[: k + 1]
        return (row, k) if form == "positions" else (tuple(sorted(row)), row[k] if seq_to_seq else None)

    asked = [[question(row, k) for k in (range(n) if seq_to_seq else [n - 1])] for row in rows]
    answer = {q: int(rng.integers(C)) for row in asked for q in row}
    labels = [[answer[q] for q in row] for row in asked]
    make, answers = (SeqToSeq, labels) if seq_to_seq else (NextToken, [row[0] for row in labels])
    if draw(st.booleans()):
        return make(tokens=rows, labels=answers, label_count=C, vocab=draw(st.integers(5, 9)))
    entry = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(WILD)
    d = draw(st.integers(1, 3))
    vector = st.lists(entry, min_size=d, max_size=d).map(tuple)
    table = draw(st.lists(vector, min_size=5, max_size=5, unique_by=lambda v: tuple(x + 0.0 for x in v)))
    return make(vectors=[[table[token] for token in row] for row in rows], labels=answers, label_count=C)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@BOTH_IDS
@given(data=st.data(), seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_any_consistent_task(form: str, ids: Any, data: st.DataObject, seed: int) -> None:
    memorize(data.draw(any_task(form)), KimSettings(**FORMS[form], ids=ids), seed=seed)


@BOTH_IDS
@pytest.mark.parametrize("dim", [None, 2], ids=["ids", "vectors"])
def test_causal_answers_do_not_look_ahead(ids: Any, dim: int | None) -> None:
    """The answers up to k are those of the task, whatever stands behind k."""
    rng = np.random.default_rng(5)
    sizes = {"examples": 12, "length": 5, "vocab": 9, "labels": 4, "dim": dim}
    task = relabelled(random_seq_to_seq(**sizes, rng=rng), FORMS["causal"], rng)
    network = memorize(task, KimSettings(causal=True, ids=ids)).network
    for k in range(4):
        changed = task.inputs.copy()
        changed[:, k + 1 :] = rng.permutation(task.inputs)[:, k + 1 :]
        assert (changed != task.inputs).any()
        assert (evaluate(network, changed)[:, : k + 1] == task.labels[:, : k + 1]).all()


@BOTH_IDS
def test_language_modelling(ids: Any) -> None:
    """Texts that begin differently: given its first token, the network goes on to the end of each."""
    rng = np.random.default_rng(6)
    texts = np.hstack([rng.permutation(15)[:, None], rng.integers(15, size=(15, 6))])
    task = SeqToSeq(tokens=texts[:, :-1], labels=texts[:, 1:], vocab=15, label_count=15)
    network = memorize(task, KimSettings(causal=True, ids=ids)).network
    written = np.zeros_like(texts)
    written[:, 0] = texts[:, 0]
    for k in range(6):
        written[:, k + 1] = evaluate(network, written[:, :-1])[:, k]
    assert (written == texts).all()


@EVERY_FORM
@BOTH_IDS
def test_lies_are_found_out(form: dict[str, bool], ids: Any) -> None:
    rng = np.random.default_rng(7)
    sizes = {"examples": 20, "length": 3, "vocab": 12, "labels": 4}
    task = relabelled(random_seq_to_seq(**sizes, rng=rng), form, rng)
    network = memorize(task, KimSettings(**form, ids=ids)).network
    assert shuffled_answers(network, task, rng).found
    for seed in range(3):
        assert perturbed_weight(network, task, np.random.default_rng(seed)).found


REFUSED = [
    *(({}, task, message) for task, message in ALIKE_UP_TO_ORDER),
    (
        {"positions": True},
        SeqToSeq(tokens=[[1, 2], [1, 2]], labels=[[0, 0], [0, 1]]),
        "example 0, position 1 and example 1, position 1 are equal tokens in equal sequences: "
        "asked for label 0 and label 1",
    ),
    (
        {"causal": True},
        SeqToSeq(tokens=[[1, 2, 3], [1, 2, 0]], labels=[[0, 1, 2], [0, 3, 2]]),
        "example 0, position 1 and example 1, position 1 have equal tokens up to there: asked for label 1 and label 3",
    ),
    (
        {"causal": True},
        NextToken(tokens=[[1, 2], [1, 2]], labels=[0, 1]),
        "example 0 and example 1 are equal sequences: asked for label 0 and label 1",
    ),
]


@pytest.mark.parametrize(("form", "task", "message"), REFUSED, ids=["token", "twins", "positions", "prefix", "equal"])
@BOTH_IDS
def test_refusals(form: dict[str, bool], task: Labelled, message: str, ids: Any) -> None:
    with pytest.raises(BadInput, match=f"^{re.escape(f'kim-2023 cannot memorize this task: {message}')}$"):
        build("kim-2023", task, settings=KimSettings(**form, ids=ids))
    if "--positions" in message:
        memorize(task, KimSettings(positions=True, ids=ids))


@EVERY_FORM
def test_just_inside(form: dict[str, bool]) -> None:
    """A label changed, and the refused tasks are memorized."""
    memorize(SeqToSeq(tokens=[[1, 2, 3], [1, 2, 0]], labels=[[0, 1, 2], [0, 1, 3]]), KimSettings(**form))
    memorize(SeqToSeq(tokens=[[1, 2], [3, 3]], labels=[[0, 0], [1, 1]]), KimSettings(**form))


@EVERY_FORM
def test_distributions_are_refused(form: dict[str, bool]) -> None:
    task = NextTokenDistribution(tokens=[[0], [1]], probabilities=[[0.5, 0.5], [1.0, 0.0]])
    with pytest.raises(
        BadInput, match=r"^kim-2023 memorizes labels of sequences; the task is next-token-distribution$"
    ):
        build("kim-2023", task, settings=KimSettings(**form))


@EVERY_FORM
@BOTH_IDS
@pytest.mark.parametrize("dim", [None, 2], ids=["ids", "vectors"])
def test_a_round_costs_13_and_its_folds(form: dict[str, bool], ids: Any, dim: int | None) -> None:
    """8 for the attention, 5 for retiring, or 16 if causal; and 6 for every fold more. Digits: one log₂B folds."""
    size = Size(examples=1000, length=30, labels=4, vocab=100, dim=dim)
    worst = kim_2023.worst_demand(size, "next-token", KimSettings(**form, ids=ids))
    assert worst.rounds == 30
    a_round = 16 if "causal" in form else 13
    for rounds in range(1, 30):
        one, more = replace(worst, rounds=rounds), replace(worst, rounds=rounds + 1)
        folds = more.label_folds - one.label_folds
        assert kim_2023.plan(more).dense - kim_2023.plan(one).dense == a_round + 6 * folds
        assert folds <= (1 if ids == "hashed" else log2(worst.largest_digit + 1) + 1)
    if ids == "hashed":
        assert worst.label_folds - replace(worst, rounds=1).label_folds <= 6


@EVERY_FORM
@BOTH_IDS
def test_parameters_grow_like_the_root(form: dict[str, bool], ids: Any) -> None:
    """At a fixed length the count over √(N log₂N) is bounded, 30 for the lookup, and comes down to that."""
    chosen, ratios = KimSettings(**form, ids=ids), []
    for N in (10**5, 10**6, 10**7, 10**8):
        plan = kim_2023.plan(kim_2023.worst_demand(Size(N, 8, 2, 1000), "next-token", chosen))
        ratios.append((plan.dense - plan.embedding) / sqrt(N * log2(N)))
    assert max(ratios) < 35
    assert ratios[-1] < 30
    assert ratios == sorted(ratios, reverse=True)


@given(st.data(), st.sampled_from(list(FORMS)), st.sampled_from(["digits", "hashed"]))
@settings(max_examples=40)
def test_planned_by_size(data: st.DataObject, form: str, ids: Any) -> None:
    """No random task takes more than its size was planned for."""
    vocab = data.draw(st.integers(2, 30))
    sizes = {
        "examples": data.draw(st.integers(1, vocab)),
        "length": data.draw(st.integers(1, 6)),
        "vocab": vocab,
        "labels": data.draw(st.sampled_from([1, 2, 10, 256])),
        "dim": data.draw(st.none() | st.integers(2, 3)),
        "shape": data.draw(st.sampled_from(["uniform", "skewed", "neighbours"])),
    }
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    drawn = data.draw(st.sampled_from([random_next_token, random_seq_to_seq]))(**sizes, rng=rng)
    task, chosen = relabelled(drawn, FORMS[form], rng), KimSettings(**FORMS[form], ids=ids)
    built = build("kim-2023", task, settings=chosen)
    if built.chosen["growth"] == 0:
        worst = CONSTRUCTIONS["kim-2023"].plan(task.size, task.kind, chosen)
        assert built.account.dense <= worst.dense


def test_planned_by_size_where_one_token_is_repeated() -> None:
    """7 sequences of 5 of 16 tokens, 35 questions at most; with a Q for the 34 that there are, one fold more is needed.

    So Q goes by the size: the same for the task and for the plan.
    """
    rows = np.array(list(combinations(range(16), 5)))[:: 4368 // 7][:7].copy()
    rows[3, 1] = rows[3, 0]
    task = SeqToSeq(tokens=rows, labels=np.zeros((7, 5), int), label_count=2, vocab=16)
    worst = CONSTRUCTIONS["kim-2023"].plan(task.size, task.kind, KimSettings())
    assert build("kim-2023", task).account.dense <= worst.dense
    by_size = kim_2023.worst_demand(task.size, "seq-to-seq", KimSettings())
    assert (kim_2023.demand(task, KimSettings()).questions, by_size.questions) == (34, 35)
    assert kim_2023.demand(task, KimSettings()).label_modulus == by_size.label_modulus


@EVERY_FORM
@BOTH_IDS
@pytest.mark.parametrize("dim", [None, 2], ids=["ids", "vectors"])
@pytest.mark.parametrize("setting", ["next-token", "seq-to-seq"])
def test_a_smaller_demand_takes_no_more(form: dict[str, bool], ids: Any, dim: int | None, setting: Any) -> None:
    """Fewer questions, fewer rounds or no token twice: never more than the largest demand of the size, and one Q."""
    for size in (Size(7, 5, 2, 16, dim), Size(50, 4, 10, 3, dim), Size(300, 6, 256, 40, dim)):
        worst = kim_2023.worst_demand(size, setting, KimSettings(**form, ids=ids))
        planned = kim_2023.plan(worst).dense
        for questions in range(1, worst.questions + 1, max(1, worst.questions // 40)):
            for rounds, repeats in product(range(1, worst.rounds + 1), {worst.repeats, False}):
                smaller = replace(worst, questions=questions, rounds=rounds, repeats=repeats)
                assert smaller.label_modulus == worst.label_modulus
                assert kim_2023.plan(smaller).dense <= planned


def test_growth_makes_room_for_keys_and_codes() -> None:
    """Every growth doubles Q, which new tables and primes come with, and gives vectors four times the codes."""
    for dim in (None, 1, 2):
        worst = kim_2023.worst_demand(Size(20, 4, 10, 30, dim), "seq-to-seq", KimSettings())
        grown = [replace(worst, growth=growth) for growth in range(kim_2023._GROWTH)]
        assert [d.label_modulus for d in grown] == [worst.label_modulus << g for g in range(len(grown))]
        assert [d.token_modulus for d in grown] == [worst.token_modulus << 2 * g for g in range(len(grown))]


@BOTH_IDS
@ORDERED
def test_two_tokens(form: dict[str, bool], ids: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """23 sequences of eight tokens 0 or 1 that end in 0, each with a label of its own.

    Digits: there are two tables, and three primes from 128 to 144, and sequences with the same last token collide or
    not whatever else is drawn. So Q has to grow.
    """
    monkeypatch.setattr(kim_2023, "_GROWTH", 3)  # 12 readings are enough
    rows = np.array(list(product([0, 1], repeat=7)))[np.random.default_rng(6).permutation(128)[:23]]
    task = NextToken(tokens=np.hstack([rows, np.zeros((23, 1), int)]), labels=range(23))
    growth = memorize(task, KimSettings(**form, ids=ids)).chosen["growth"]
    assert growth == 0 if ids == "hashed" else growth > 0


@BOTH_IDS
@pytest.mark.parametrize("spaced", [True, False])
def test_repeated_vectors_at_equal_distances(spaced: bool, ids: Any) -> None:
    """All 126 multisets of ten out of five numbers, each of these at least once; two labels.

    0 to 4 are no harder than others: 0 + 4 = 1 + 3, but {0, 0, 1, 2, 3, 4, 4} is not {0, 1, 1, 2, 3, 3, 4}. Own codes
    are φ = slope·number + offset, and so agree in their sums; the marks do not.
    """
    labels = np.random.default_rng(0).integers(2, size=126)
    table = np.arange(5.0) if spaced else np.random.default_rng(1).standard_normal(5)
    built = memorize(NextToken(vectors=table[REPEATED][:, :, None], labels=labels), KimSettings(ids=ids))
    assert built.chosen["growth"] == 0


REPEATED = np.array([[*range(5), *more] for more in combinations_with_replacement(range(5), 5)])


@BOTH_IDS
def test_repeated_ids(ids: Any) -> None:
    """The same with token ids, which have a code of their own each."""
    memorize(NextToken(tokens=REPEATED, labels=np.random.default_rng(0).integers(2, size=126)), KimSettings(ids=ids))

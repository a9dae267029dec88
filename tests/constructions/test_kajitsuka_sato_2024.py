"""Kajitsuka & Sato 2024: one softmax head, by hand and on every shape of task; its refusals; and not with hardmax."""

import re
from decimal import Decimal, localcontext
from itertools import combinations, combinations_with_replacement, pairwise, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates import certify
from byheart.constructions import CONSTRUCTIONS, Built, build
from byheart.constructions.kajitsuka_sato_2024 import RankSettings
from byheart.errors import BadInput
from byheart.networks.balls import precision
from byheart.networks.exact import (
    Affine,
    Embedding,
    ExactNetwork,
    FeedForward,
    HardmaxAttention,
    SoftmaxAttention,
    integers,
)
from byheart.networks.exact.enclose import enclose
from byheart.networks.exact.evaluate import evaluate
from byheart.tasks import NextToken, NextTokenDistribution, SeqToSeq, random_next_token, random_seq_to_seq

from ..lies import perturbed_weight, shuffled_answers
from .refused import ALIKE_UP_TO_ORDER

Labelled = NextToken | SeqToSeq
NAME = "kajitsuka-sato-2024"
BOTH_SCALES = pytest.mark.parametrize("scale", ["gentle", "paper"])
BOTH_KINDS = pytest.mark.parametrize("draw", [random_next_token, random_seq_to_seq], ids=["next-token", "seq-to-seq"])


def memorize(task: Labelled, chosen: RankSettings | None = None, seed: int = 0) -> Built:
    chosen = RankSettings() if chosen is None else chosen
    built = build(NAME, task, seed=seed, settings=chosen)
    found = certify(built.network, task)
    assert found.certified, f"{chosen}: {found.counterexample}"
    assert found.checked == task.labels.size
    assert found.undecided == 0
    assert found.smallest_margin is not None
    assert found.smallest_margin > 0.4
    label = built.network.layers[-1]
    assert isinstance(label, FeedForward)
    assert len(label.layers[0].W) <= 2 * task.size.examples * task.size.length
    assert built.chosen["id_bits"] <= chosen.precision
    return built


def context_ids(network: ExactNetwork, inputs: np.ndarray, bits: int) -> np.ndarray:
    """Balls around v·Z behind the attention [N, n]; W_K is v."""
    (attention,) = (layer for layer in network.layers if isinstance(layer, SoftmaxAttention))
    unit = Affine(attention.W_K, integers([0]), relu=False)
    kept = (*network.layers[:-1], FeedForward((unit,)))
    part = ExactNetwork(kept, inputs=network.inputs, outputs="every", length=network.length, dim=network.dim)
    return enclose(part, inputs, bits=bits)


def test_by_hand() -> None:
    """Two tokens at y = ω + t = 2 and 3, and the sequences 00, 01, 11.

    Tokens are 1 apart and span 1, so 2^shift = 2; 4/(3·1) lies between 1 and 2, so γ = 1, and scores are y·y'.
    From 2 one sees boltz(2; 2, 2) = 2, and boltz(2; 2, 3) = 2 + e²/(1 + e²) = 2.8808.
    From 3 one sees boltz(3; 2, 3) = 2 + e³/(1 + e³) = 2.9526, and boltz(3; 3, 3) = 3.
    Ids y + boltz/2: 2 + 1 = 3, 2 + 1.4404 = 3.4404, 3 + 1.4763 = 4.4763, 3 + 1.5 = 4.5, labels 5, 1, 7, 2.
    Steps: half of 0.4404 is at least 2⁻³, from 24/8 on; half of 1.0359 at least 2⁻¹, from ⌈6.88⌉/2 = 7/2 on;
    half of 0.0237 at least 2⁻⁷, from ⌈572.97⌉/128 = 573/128 on. The smallest distance in 4.5 is 1/189.8: 8 bits.
    """
    task = SeqToSeq(tokens=[[0, 0], [0, 1], [1, 1]], labels=[[5, 5], [1, 7], [2, 2]])
    built = memorize(task)
    embedding, attention, label = built.network.layers
    assert isinstance(embedding, Embedding)
    assert embedding.W_E.tolist() == [[2], [3]]
    assert isinstance(attention, SoftmaxAttention)
    assert (attention.W_Q, attention.W_K, attention.W_V, attention.W_O) == ([[1]],) * 4
    assert (attention.score_shift, attention.shift) == (0, 1)
    assert isinstance(label, FeedForward)
    steps, answer = label.layers
    assert steps.W.tolist() == [[8], [8], [2], [2], [128], [128]]
    assert steps.b.tolist() == [-24, -25, -7, -8, -573, -574]
    assert answer.W.tolist() == [[-4, 4, 6, -6, -5, 5]]
    assert answer.b.tolist() == [5]
    assert built.chosen == {"questions": 4, "id_bits": 8}
    ids = [[round(float(ball), 4) for ball in row] for row in context_ids(built.network, task.inputs, 128)]
    assert ids == [[3.0, 3.0], [3.4404, 4.4763], [4.5, 4.5]]


SHAPES = [
    {"examples": 1, "length": 1, "vocab": 1, "labels": 1},
    {"examples": 2, "length": 1, "vocab": 2, "labels": 2},
    {"examples": 1, "length": 6, "vocab": 3, "labels": 2},
    {"examples": 3, "length": 2, "vocab": 3, "labels": 1},
    {"examples": 3, "length": 4, "vocab": 2, "labels": 7, "shape": "skewed"},
    {"examples": 15, "length": 3, "vocab": 6, "labels": 10, "shape": "neighbours"},
]


@pytest.mark.parametrize("sizes", SHAPES, ids=lambda s: "-".join(f"{key[0]}{value}" for key, value in s.items()))
@BOTH_KINDS
@pytest.mark.parametrize("positions", [False, True], ids=["plain", "positions"])
@BOTH_SCALES
@pytest.mark.parametrize("dim", [None, 1, 3], ids=["ids", "d1", "d3"])
def test_every_shape(sizes: dict[str, Any], draw: Any, positions: bool, scale: Any, dim: int | None) -> None:
    task = draw(**sizes, dim=dim, rng=np.random.default_rng(1))
    if positions and isinstance(task, SeqToSeq):
        task = task.with_labels(np.random.default_rng(2).integers(task.label_count, size=task.labels.shape))
    chosen = RankSettings(positions=positions, scale=scale, precision=1 << 20 if scale == "paper" else 16_384)
    if scale == "paper" and dim is not None and sizes["examples"] == 15:
        with pytest.raises(BadInput, match=r"precision limit .* tokens are too close together"):
            build(NAME, task, settings=RankSettings(positions=positions, scale=scale, precision=64))
    else:
        memorize(task, chosen)


@pytest.mark.slow
@BOTH_KINDS
@pytest.mark.parametrize("positions", [False, True], ids=["plain", "positions"])
@pytest.mark.parametrize("dim", [None, 2], ids=["ids", "vectors"])
def test_larger(draw: Any, positions: bool, dim: int | None) -> None:
    sizes = {"examples": 80, "length": 5, "vocab": 40, "labels": 10, "shape": "neighbours"}
    memorize(draw(**sizes, dim=dim, rng=np.random.default_rng(3)), RankSettings(positions=positions))


@BOTH_SCALES
def test_all_multisets_have_their_own_ids(scale: Any) -> None:
    """All 35 multisets of four out of four tokens: 80 questions, 80 labels, and 80 ids that are apart.

    With γ from the weights, 60 digits of decimals give the same ids.
    """
    rows = np.array(list(combinations_with_replacement(range(4), 4)))
    questions = {(token, tuple(row)) for row in rows.tolist() for token in row}
    number = {question: i for i, question in enumerate(sorted(questions))}
    labels = [[number[token, tuple(row)] for token in row] for row in rows.tolist()]
    task = SeqToSeq(tokens=rows, labels=labels)
    built = memorize(task, RankSettings(scale=scale))
    assert built.chosen["questions"] == len(questions) == 80
    balls = context_ids(built.network, task.inputs, 512)
    found = {
        (token, tuple(row)): ball
        for row, own in zip(rows.tolist(), balls, strict=True)
        for token, ball in zip(row, own, strict=True)
    }
    ordered = sorted(found.values(), key=float)
    assert all(before.upper() < after.lower() for before, after in pairwise(ordered))
    attention = built.network.layers[1]
    assert isinstance(attention, SoftmaxAttention)
    with localcontext(prec=60):
        gamma = Decimal(int(attention.W_Q[0, 0])) / (1 << attention.score_shift)
        for (token, row), ball in found.items():
            y, others = 4 + token, [4 + other for other in row]
            weights = [(gamma * y * other).exp() for other in others]
            boltz = sum(weight * other for weight, other in zip(weights, others, strict=True)) / sum(weights)
            assert abs(float(ball) - float(y + boltz / (1 << attention.shift))) < 1e-12


@pytest.mark.parametrize("dim", [None, 1, 2], ids=["ids", "d1", "d2"])
def test_how_often_a_token_occurs(dim: int | None) -> None:
    rows = np.array(list(combinations_with_replacement(range(3), 4)))
    table = np.random.default_rng(0).standard_normal((3, dim or 1))
    inputs = {"tokens": rows} if dim is None else {"vectors": table[rows]}
    memorize(NextToken(**inputs, labels=range(15)))
    memorize(SeqToSeq(**inputs, labels=3 * np.arange(15)[:, None] + rows))


def test_order_matters_with_positions() -> None:
    orders = np.array(list(permutations(range(4))))
    chosen = RankSettings(positions=True)
    memorize(NextToken(tokens=orders, labels=range(24)), chosen)
    memorize(NextToken(vectors=orders[:, :, None] / 4, labels=range(24)), chosen)
    memorize(NextToken(vectors=np.stack([orders - 2, -orders], axis=2), labels=range(24)), chosen)
    memorize(SeqToSeq(tokens=[[0, 0, 0], [1, 0, 0]], labels=[[0, 1, 2], [2, 1, 0]]), chosen)


TINY, HUGE, SMALLEST, NEXT = 1e-300, 1e300, 5e-324, float(np.nextafter(1.0, 2.0))
WILD = [TINY, HUGE, -TINY, -HUGE, SMALLEST, -SMALLEST, 0.0, 1.0, NEXT, 3 * SMALLEST]
HARD: dict[str, Labelled] = {
    "wild in one sequence": SeqToSeq(vectors=np.array(WILD)[None, :, None], labels=[range(10)]),
    "wild pairs": NextToken(vectors=np.array(list(combinations(WILD, 2)))[:, :, None], labels=np.arange(45) % 4),
    "wild planes": SeqToSeq(
        vectors=[[[TINY, 1.0], [HUGE, 0.0]], [[TINY, 0.0], [HUGE, 1.0]], [[SMALLEST, -0.0], [0.0, SMALLEST]]],
        labels=[[0, 1], [2, 3], [4, 5]],
    ),
    "one ulp": SeqToSeq(vectors=[[[1.0], [NEXT], [9.0]], [[1.0], [NEXT], [NEXT]]], labels=[[0, 1, 2], [3, 4, 4]]),
    "negative": SeqToSeq(vectors=[[[-3.0], [-1.0]], [[-3.0], [-2.0]]], labels=[[0, 1], [2, 3]]),
    "negative planes": SeqToSeq(
        vectors=[[[-3.0, -1.0], [-1.0, -2.0]], [[-3.0, -1.0], [-2.0, 2.0]]], labels=[[0, 1], [2, 3]]
    ),
    "x and −x": SeqToSeq(vectors=[[[0.5], [-0.5]], [[-0.5], [-0.5]]], labels=[[0, 1], [2, 2]]),
    "one token at zero": SeqToSeq(vectors=[[[0.0], [1.0]], [[0.0], [2.0]]], labels=[[0, 1], [2, 3]]),
    "nothing but zero": NextToken(vectors=[[[0.0, -0.0]] * 3], labels=[4]),
    "all tokens equal": SeqToSeq(tokens=[[3] * 5], labels=[[2] * 5], vocab=9),
    "all sequences equal": NextToken(tokens=[[3] * 5] * 4, labels=[2] * 4),
    "one token": NextToken(tokens=[[0]], labels=[3]),
    "unused labels and tokens": NextToken(tokens=[[5, 5], [900, 5]], labels=[0, 3], label_count=1000, vocab=1000),
    "2^1000": NextToken(vectors=[[[2.0**1000]], [[2.0**1000 + 2.0**950]]], labels=[1, 2]),
    "one token in many contexts": SeqToSeq(tokens=[[0, k] for k in range(1, 30)], labels=[[0, k] for k in range(29)]),
}


@pytest.mark.parametrize("task", HARD.values(), ids=HARD)
@pytest.mark.parametrize("positions", [False, True], ids=["plain", "positions"])
def test_hard_on_purpose(task: Labelled, positions: bool) -> None:
    memorize(task, RankSettings(positions=positions))


@st.composite
def any_task(draw: st.DrawFn, positions: bool) -> Labelled:
    """Small tasks full of duplicates and twins. No vector is 0, and none is far smaller than another."""
    n = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(st.integers(0, 4), min_size=n, max_size=n).map(tuple), min_size=1, max_size=6))
    C, rng = draw(st.sampled_from([1, 2, 10, 256])), np.random.default_rng(draw(st.integers(0, 10**6)))
    seq_to_seq = draw(st.booleans())
    asked = [
        [((row, k) if positions else (tuple(sorted(row)), row[k])) for k in (range(n) if seq_to_seq else [n - 1])]
        for row in rows
    ]
    if not seq_to_seq and not positions:
        asked = [[tuple(sorted(row))] for row in rows]
    answer = {q: int(rng.integers(C)) for row in asked for q in row}
    labels = [[answer[q] for q in row] for row in asked]
    make, answers = (SeqToSeq, labels) if seq_to_seq else (NextToken, [row[0] for row in labels])
    if draw(st.booleans()):
        return make(tokens=rows, labels=answers, label_count=C, vocab=draw(st.integers(5, 9)))
    entry = st.floats(0.001, 1000)
    sign, d = draw(st.sampled_from([1, -1])), draw(st.integers(1, 3))
    vector = st.lists(entry.map(lambda x: sign * x), min_size=d, max_size=d).map(tuple)
    table = draw(st.lists(vector, min_size=5, max_size=5, unique=True))
    return make(vectors=[[table[token] for token in row] for row in rows], labels=answers, label_count=C)


@pytest.mark.slow
@pytest.mark.parametrize("positions", [False, True], ids=["plain", "positions"])
@given(data=st.data(), seed=st.integers(0, 2**32))
@settings(max_examples=100)
def test_any_consistent_task(positions: bool, data: st.DataObject, seed: int) -> None:
    memorize(data.draw(any_task(positions)), RankSettings(positions=positions), seed=seed)


@BOTH_SCALES
@pytest.mark.parametrize("dim", [None, 2], ids=["ids", "vectors"])
def test_lies_are_found_out(scale: Any, dim: int | None) -> None:
    rng = np.random.default_rng(4)
    task = random_seq_to_seq(examples=6, length=2, vocab=5, labels=4, dim=dim, rng=rng)
    network = memorize(task, RankSettings(scale=scale)).network
    assert shuffled_answers(network, task, rng).found
    for seed in range(3):
        assert perturbed_weight(network, task, np.random.default_rng(seed)).found


@pytest.mark.parametrize(("task", "message"), ALIKE_UP_TO_ORDER, ids=["token", "twins"])
@pytest.mark.parametrize("attention", ["softmax", "hardmax"])
def test_refusals(task: Labelled, message: str, attention: Any) -> None:
    with pytest.raises(BadInput, match=f"^{re.escape(f'{NAME} cannot memorize this task: {message}')}$"):
        build(NAME, task, settings=RankSettings(attention=attention))
    memorize(task, RankSettings(positions=True))


def test_distributions_are_refused() -> None:
    task = NextTokenDistribution(tokens=[[0], [1]], probabilities=[[0.5, 0.5], [1.0, 0.0]])
    with pytest.raises(BadInput, match=f"^{NAME} memorizes labels of sequences; the task is next-token-distribution$"):
        build(NAME, task)


CLOSE = random_seq_to_seq(examples=12, length=5, vocab=9, labels=3, rng=np.random.default_rng(0))


def test_precision_is_kept_to_the_bit() -> None:
    needed = memorize(CLOSE, RankSettings(scale="paper")).chosen["id_bits"]
    assert needed == memorize(CLOSE, RankSettings(scale="paper", precision=needed)).chosen["id_bits"]
    message = f"telling the context ids apart takes {needed} bits; the precision limit is {needed - 1}: tokens are too"
    with pytest.raises(BadInput, match=message):
        build(NAME, CLOSE, settings=RankSettings(scale="paper", precision=needed - 1))


def test_precision_is_enough_where_it_is_what_was_needed() -> None:
    """The ids need 93 bits, says the network that was built: neither a power of two, nor found by doubling 64."""
    task = SeqToSeq(tokens=[[5, 7, 3, 2, 6], [3, 5, 7, 6, 0]], labels=[[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]], vocab=8)
    needed = memorize(task, RankSettings(scale="paper")).chosen["id_bits"]
    assert needed == 93
    for bits in (93, 94, 127, 128, 129):
        assert memorize(task, RankSettings(scale="paper", precision=bits)).chosen["id_bits"] == 93
    for bits in (64, 65, 92):
        with pytest.raises(
            BadInput, match=rf"apart takes 93 bits; the precision limit is {bits}: tokens are too close"
        ):
            build(NAME, task, settings=RankSettings(scale="paper", precision=bits))


def test_precision_far_too_small() -> None:
    """Ids that need more than 64 bits beyond the limit are not told apart at all: the two are named."""
    task = SeqToSeq(tokens=[[0, 30, 31], [1, 30, 31]], labels=[[0, 1, 2], [3, 4, 5]], vocab=32)
    assert memorize(task, RankSettings(scale="paper", precision=1 << 12)).chosen["id_bits"] == 383
    message = (
        rf"^{NAME}: the context ids of example [01] \([01] 30 31\), position (\d) and example [01] \([01] 30 31\), "
        r"position \1 agree within the precision limit of 100 bits: tokens are too close together; "
        r"by the span of the scores it may take \d+ bits or more\. Raise --precision"
    )
    with pytest.raises(BadInput, match=message):
        build(NAME, task, settings=RankSettings(scale="paper", precision=100))


@pytest.mark.parametrize("far", [10, 20, 26, 31, 32, 33, 40])
def test_id_bits_are_what_they_say(far: int) -> None:
    """log₂(largest id / smallest distance), against balls of 4096 bits.

    2^far makes scores at 1 tiny; {1, 1, 4} and {1, 2, 3} have the same mean, so their ids differ by about 2^(−3·far).
    """
    vectors = [[[1.0], [1.0], [4.0]], [[1.0], [2.0], [3.0]], [[1.0], [2.0**far], [2.0**far]]]
    task = SeqToSeq(vectors=vectors, labels=[[0, 0, 1], [2, 3, 4], [5, 6, 6]])
    built = memorize(task)
    with precision(4096):
        balls = context_ids(built.network, task.inputs, 4096)
        different = sorted([balls[0, 0], balls[0, 2], *balls[1], *balls[2, :2]], key=lambda ball: ball.mid())
        closest = min((after - before for before, after in pairwise(different)), key=lambda ball: ball.mid())
        ratio = int((different[-1] / closest).floor().unique_fmpz())
    assert built.chosen["id_bits"] == ratio.bit_length()


@pytest.mark.parametrize("bits", [63, 1, 0, -5])
def test_senseless_precision(bits: int) -> None:
    with pytest.raises(BadInput, match=f"^precision is {bits}; expected at least 64 bits$"):
        build(NAME, NextToken(tokens=[[0]], labels=[0]), settings=RankSettings(precision=bits))


AT_ZERO = np.array([[[0.0], [1.0], [-1.0]], [[0.0], [2.0], [-2.0]]])
SAME_MEANS = (
    f"{NAME}: example 0, position 0 and example 1, position 0 ask for different labels at a token that lies at 0, "
    "which sees no more than the mean of its sequence, and the means are equal; move tokens away from 0"
)


def test_tokens_at_zero() -> None:
    """At 0 all scores are equal, and {−1, 0, 1} and {−2, 0, 2} have one mean: refused, and moved by 3 memorized."""
    labels = [[0, 1, 1], [1, 0, 0]]
    for bits in (64, 16_384):
        with pytest.raises(BadInput, match=f"^{re.escape(SAME_MEANS)}$"):
            build(NAME, SeqToSeq(vectors=AT_ZERO, labels=labels), settings=RankSettings(precision=bits))
    memorize(SeqToSeq(vectors=AT_ZERO + 3, labels=labels))
    # Positions move the token at 0, if it does not stand first.
    memorize(SeqToSeq(vectors=AT_ZERO[:, ::-1], labels=np.array(labels)[:, ::-1]), RankSettings(positions=True))
    with pytest.raises(BadInput, match=r"a token lies at 0, where all scores are equal"):
        build(NAME, SeqToSeq(vectors=AT_ZERO, labels=labels), settings=RankSettings(scale="paper"))


def test_tokens_at_zero_that_ask_for_the_same() -> None:
    """The same two sequences, but at 0 both ask for label 0: one id for both will do. Six questions, 10 units."""
    built = memorize(SeqToSeq(vectors=AT_ZERO, labels=[[0, 1, 1], [0, 2, 2]]))
    assert built.chosen["questions"] == 6
    label = built.network.layers[-1]
    assert isinstance(label, FeedForward)
    assert len(label.layers[0].W) == 10


def test_means_at_zero_by_hand() -> None:
    """Tokens 0, 1, 3 span 3 and are at least 1 apart, so 2^shift = 8; sequences end in 0, where the mean is seen.

    That of {0, 0, 1} is 1/3, of {0, 1, 1} 2/3, of {0, 0, 3} 1, of {0, 1, 3} 4/3, all exactly: ids 1/24, 2/24, 3/24,
    4/24.
    Half of 1/24 is at least 2⁻⁶: the steps are from ⌈64/24⌉ = 3, ⌈128/24⌉ = 6 and ⌈192/24⌉ = 8 on, over 64.
    """
    vectors = np.array([[0.0, 0, 1], [0, 1, 1], [0, 0, 3], [0, 1, 3]])[:, ::-1, None]
    task = NextToken(vectors=vectors, labels=[4, 2, 9, 3])
    built = memorize(task)
    attention, label = built.network.layers
    assert isinstance(attention, SoftmaxAttention)
    assert attention.shift == 3
    assert isinstance(label, FeedForward)
    steps, answer = label.layers
    assert steps.W.tolist() == [[64]] * 6
    assert steps.b.tolist() == [-3, -4, -6, -7, -8, -9]
    assert answer.W.tolist() == [[-2, 2, 7, -7, -6, 6]]
    assert answer.b.tolist() == [4]
    assert built.chosen == {"questions": 4, "id_bits": 3}  # 4/24 is four times 1/24


def test_equal_means_at_zero_among_others() -> None:
    """(0, 1, 2) and (0, 0, 3) have the mean 1, (0, 1, 1) another: two ids, or a refusal of the two."""
    vectors = np.array([[1.0, 2, 0], [1, 1, 0], [3, 0, 0]])[:, :, None]
    memorize(NextToken(vectors=vectors, labels=[5, 1, 5]))
    with pytest.raises(BadInput, match=r"example 0, position 2 and example 2, position 2 ask for different labels at"):
        build(NAME, NextToken(vectors=vectors, labels=[5, 1, 4]))


@pytest.mark.parametrize("attention", ["softmax", "hardmax"])
@pytest.mark.parametrize("power", [-1000, -100, 100, 1000])
def test_id_bits_do_not_depend_on_the_unit(power: int, attention: Any) -> None:
    """The same numbers in units of 2^power: ids are as far apart, in units of the largest, as they were."""
    task = SeqToSeq(vectors=AT_ZERO + 3, labels=[[0, 1, 1], [0, 2, 2]])
    scaled = SeqToSeq(vectors=2.0**power * (AT_ZERO + 3), labels=task.labels)
    bits = [memorize(t, RankSettings(attention=attention)).chosen["id_bits"] for t in (task, scaled)]
    assert bits[0] == bits[1] < 64
    memorize(scaled, RankSettings(attention=attention, precision=64))


ON_ZERO = "the direction is chosen by gap/span alone; (1, 1) is best, and puts (1, −1) on 0: a quarter of the seeds"


@BOTH_SCALES
def test_directions_put_no_token_on_zero(scale: Any) -> None:
    """(1, −1) lies not at 0, and hardly a direction puts it there; most seeds memorize this, and all should."""
    x = [1.0, -1.0]
    vectors = [[x, [1.0, 0.0], [-1.0, 0.0]], [x, [2.0, 0.0], [-2.0, 0.0]]]
    task = SeqToSeq(vectors=vectors, labels=[[0, 1, 1], [1, 0, 0]])
    for seed in range(20):
        memorize(task, RankSettings(scale=scale, precision=1 << 16), seed=seed)


FILLED_UP = (
    "ids that only fill up the plan, 1 apart in the stream's unit, are measured too: 1000 bits where 2 are needed"
)


@pytest.mark.parametrize("attention", ["softmax", "hardmax"])
@pytest.mark.parametrize("power", [-1000, -100, 100, 1000])
def test_id_bits_do_not_depend_on_the_unit_where_questions_share_an_id(power: int, attention: Any) -> None:
    """As above, with tokens at 0: with the default precision the bits are misreported, with 64 it is refused."""
    task = SeqToSeq(vectors=AT_ZERO, labels=[[0, 1, 1], [0, 2, 2]])
    scaled = SeqToSeq(vectors=2.0**power * AT_ZERO, labels=task.labels)
    bits = [memorize(t, RankSettings(attention=attention)).chosen["id_bits"] for t in (task, scaled)]
    assert bits[0] == bits[1] < 64
    memorize(scaled, RankSettings(attention=attention, precision=64))


def test_one_id_need_not_be_told_apart() -> None:
    """One question: no two ids, nothing to tell apart, whatever its size."""
    task = NextToken(vectors=[[[2.0**100]]], labels=[1])
    memorize(task)
    memorize(task, RankSettings(precision=64))


def test_scores_without_measure() -> None:
    """Paper's scores for tokens one ulp apart beside one at 1000 are about 2^75: e^(−2^75) cannot be written down.

    It need not be where ids are far apart without it. From 1000 in {1, 1, 1000} and {1, 1 + ulp, 1000} they are not.
    """
    task = SeqToSeq(vectors=[[[1.0], [NEXT], [1000.0]], [[1.0], [NEXT], [NEXT]]], labels=[[0, 1, 2], [3, 4, 4]])
    memorize(task)
    assert memorize(task, RankSettings(scale="paper")).chosen["id_bits"] < 128
    task = SeqToSeq(vectors=[[[1.0], [NEXT], [1000.0]], [[1.0], [1.0], [1000.0]]], labels=[[0, 1, 2], [3, 3, 4]])
    memorize(task)
    with pytest.raises(BadInput, match=r"agree within the precision limit of 16,384 bits: tokens are too close"):
        build(NAME, task, settings=RankSettings(scale="paper"))


def test_bits_of_ids_grow_with_length_and_vocabulary() -> None:
    """With the paper's scores; gentle ones need a few dozen bits. Two sequences of large tokens but for one, 0 or 1."""

    def bits(length: int, vocab: int, scale: Any) -> int:
        tokens = [[*range(vocab - length + 1, vocab), small] for small in (0, 1)]
        labels = np.arange(2 * length).reshape(2, length)
        chosen = RankSettings(scale=scale, precision=1 << 20)
        return int(memorize(SeqToSeq(tokens=tokens, labels=labels, vocab=vocab), chosen).chosen["id_bits"])

    longer = [bits(n, 20, "paper") for n in (2, 4, 8, 16)]
    larger = [bits(4, vocab, "paper") for vocab in (6, 12, 24, 48)]
    for found in (longer, larger):
        assert found == sorted(set(found))
        assert found[-1] > 2 * found[0]
    assert max(bits(n, 20, "gentle") for n in (2, 4, 8, 16)) < 64


@given(st.data())
@settings(max_examples=30)
def test_planned(data: st.DataObject) -> None:
    """2(K − 1) hidden units for K questions, and never more than the size was planned for."""
    vocab = data.draw(st.integers(2, 20))
    sizes = {
        "examples": data.draw(st.integers(1, min(vocab, 12))),
        "length": data.draw(st.integers(1, 5)),
        "vocab": vocab,
        "labels": data.draw(st.sampled_from([1, 2, 256])),
        "dim": data.draw(st.none() | st.integers(1, 3)),
        "shape": data.draw(st.sampled_from(["uniform", "skewed", "neighbours"])),
    }
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    task = data.draw(st.sampled_from([random_next_token, random_seq_to_seq]))(**sizes, rng=rng)
    chosen = RankSettings(positions=data.draw(st.booleans()))
    built = build(NAME, task, settings=chosen)
    rows = [[tuple(np.atleast_1d(token).tolist()) for token in row] for row in task.inputs]
    placed = [[(token, k) if chosen.positions else token for k, token in enumerate(row)] for row in rows]
    asking = [row if isinstance(task, SeqToSeq) else row[-1:] for row in placed]
    K = len({(token, tuple(sorted(row))) for row, own in zip(placed, asking, strict=True) for token in own})
    assert built.chosen["questions"] == K
    label = built.network.layers[-1]
    assert isinstance(label, FeedForward)
    assert len(label.layers[0].W) == max(1, 2 * (K - 1)) <= 2 * task.size.examples * task.size.length
    assert CONSTRUCTIONS[NAME].plan(task.size, task.kind, chosen).dense >= built.account.dense


# Hardmax in softmax's place.

CONFUSION = re.compile(
    rf"^{NAME}: one hardmax layer confuses example (\d+)[^,]*, position (\d+) with example (\d+)[^,]*, position (\d+): "
    r"the same token asks, the same token is attended to, and nothing else is seen; asked for label (\d+) and "
    r"label (\d+)\. Softmax attention tells them apart$"
)


def confusion(task: Labelled, positions: bool = False) -> list[int]:
    with pytest.raises(BadInput) as refusal:
        build(NAME, task, settings=RankSettings(attention="hardmax", positions=positions))
    found = CONFUSION.match(str(refusal.value))
    assert found is not None, str(refusal.value)
    return [int(group) for group in found.groups()]


def test_hardmax_by_hand() -> None:
    """ids lie at 3, 4, 5, all positive: from 0 in {0, 1, 2} and {0, 2, 2} one sees 2, and no more."""
    task = SeqToSeq(tokens=[[1, 2, 0], [0, 2, 2]], labels=[[0, 0, 1], [2, 0, 0]])
    assert sorted(zip(*[iter(confusion(task)[:4])] * 2, strict=True)) == [(0, 2), (1, 0)]
    memorize(task)


@pytest.mark.parametrize("positions", [False, True], ids=["plain", "positions"])
@pytest.mark.parametrize("seed", range(6))
@BOTH_KINDS
def test_hardmax_confusions_are_real(seed: int, positions: bool, draw: Any) -> None:
    """The places named ask for different labels, with one own token and one largest token of their sequences."""
    task = draw(examples=25, length=4, vocab=6, labels=50, rng=np.random.default_rng(seed))
    i, k, j, m, first, second = confusion(task, positions)
    assert first != second
    if isinstance(task, SeqToSeq):
        assert (task.labels[i, k], task.labels[j, m]) == (first, second)
    else:
        assert (k, m) == (3, 3)
        assert (task.labels[i], task.labels[j]) == (first, second)
    y = 4 * task.tokens + np.arange(4) if positions else task.tokens
    assert y[i, k] == y[j, m]
    assert y[i].max() == y[j].max()
    assert sorted(y[i].tolist()) != sorted(y[j].tolist())


@pytest.mark.parametrize("sign", [1, -1], ids=["positive", "negative"])
def test_hardmax_confusions_of_numbers(sign: int) -> None:
    """From a negative number one sees the smallest: the score is y·y_j, and the largest |y_j| wins of one sign."""
    vectors = sign * np.array([[[1.0], [2.0], [7.0]], [[1.0], [3.0], [7.0]]])
    labels = [[0, 1, 2], [3, 1, 2]]
    assert confusion(SeqToSeq(vectors=vectors, labels=labels))[:4] == [0, 0, 1, 0]
    # Only the labels of equal (own, farthest) pairs agree now.
    built = memorize(SeqToSeq(vectors=vectors, labels=[[0, 1, 2], [0, 3, 2]]), RankSettings(attention="hardmax"))
    assert built.network.rational


@pytest.mark.parametrize("dim", [None, 1, 2], ids=["ids", "d1", "d2"])
@pytest.mark.parametrize("positions", [False, True], ids=["plain", "positions"])
def test_hardmax_does_where_the_largest_token_is_all_that_matters(dim: int | None, positions: bool) -> None:
    """Labels are a function of the own token and the largest: exact, and certified by both evaluators."""
    rng = np.random.default_rng(6)
    rows = np.array([[2, 1, 0], [0, 1, 3], [4, 4, 4], [3, 0, 2], [1, 0, 1], [4, 2, 0]])
    table = np.cumsum(rng.random((5, dim or 1)) + 0.1, axis=0)
    inputs: dict[str, Any] = {"tokens": rows} if dim is None else {"vectors": table[rows]}
    # With positions the last one is moved farthest: it is what all see.
    seen = rows[:, -1:] + 25 * np.arange(3) if positions else rows.max(axis=1, keepdims=True)
    labels = 5 * rows + seen
    for task in (SeqToSeq(**inputs, labels=labels), NextToken(**inputs, labels=labels[:, -1])):
        built = memorize(task, RankSettings(attention="hardmax", positions=positions))
        assert any(isinstance(layer, HardmaxAttention) for layer in built.network.layers)
        assert built.network.rational
        for evaluator in ("limbs", "flint"):
            found = certify(built.network, task, evaluator=evaluator)
            assert found.certified
            assert found.method == f"exact, exhaustive ({evaluator})"


def test_hardmax_at_zero() -> None:
    """At 0 all scores are 0, and it is the mean that is attended to: 1/2 in (1, 0), 3/2 in (3, 0)."""
    memorize(NextToken(vectors=[[[1.0], [0.0]]], labels=[1]), RankSettings(attention="hardmax"))
    task = NextToken(vectors=[[[1.0], [0.0]], [[3.0], [0.0]]], labels=[1, 2])
    network = memorize(task, RankSettings(attention="hardmax")).network
    attention = network.layers[0]
    assert isinstance(attention, HardmaxAttention)
    # Tokens span 3 and are at least 1 apart: 2·2·3 < 16.
    assert (attention.W_K, attention.W_V, attention.W_O) == ([[1]], [[1]], [[16]])
    unit = FeedForward((Affine(integers([[1]]), integers([0]), relu=False),))
    part = ExactNetwork((attention, unit), inputs="vectors", outputs="every", length=2, dim=1)
    assert evaluate(part, task.inputs).tolist() == [[17, 8], [51, 24]]
    # Where the token at 0 does not ask, it does no harm.
    memorize(NextToken(vectors=[[[0.0], [1.0]]], labels=[1]), RankSettings(attention="hardmax"))


def test_hardmax_at_zero_sees_means() -> None:
    """Softmax and hardmax attention see the same there: one mean may ask for one label."""
    memorize(SeqToSeq(vectors=AT_ZERO, labels=[[0, 1, 1], [0, 2, 2]]), RankSettings(attention="hardmax"))
    # Every mean of four of 0, 1, 2, 5 is a quarter, and decides.
    rows = np.array([[*row, 0] for row in combinations_with_replacement([0, 1, 2, 5], 3)])
    task = NextToken(vectors=rows[:, :, None].astype(float), labels=rows.sum(axis=1))
    memorize(task, RankSettings(attention="hardmax"))
    memorize(task)
    with pytest.raises(BadInput, match=r"^kajitsuka-sato-2024: .*example 0.*, position 0 .*example 1.*, position 0"):
        build(
            NAME, SeqToSeq(vectors=AT_ZERO, labels=[[0, 1, 1], [1, 0, 0]]), settings=RankSettings(attention="hardmax")
        )


def test_hardmax_refusals_at_zero_are_true() -> None:
    """No token is attended to but all are, and softmax attention does not tell the two apart either."""
    task = SeqToSeq(vectors=AT_ZERO, labels=[[0, 1, 1], [1, 0, 0]])
    with pytest.raises(BadInput, match="the means are equal"):
        build(NAME, task)
    with pytest.raises(BadInput) as refusal:
        build(NAME, task, settings=RankSettings(attention="hardmax"))
    assert "Softmax attention tells them apart" not in str(refusal.value)


def test_hardmax_means_and_tokens_do_not_meet() -> None:
    """Tokens 0, 32, 42, 85 span 85 and are at least 10 apart: 2·2·85/10 = 34 < M = 64.

    From 0 in (0, 85) one sees 85/2, the id is 0 + 64·85/2 = 2720; from 32 in (32, 42) 42, the id is 32 + 64·42 = 2720.
    """
    memorize(
        SeqToSeq(vectors=[[[0.0], [85.0]], [[32.0], [42.0]]], labels=[[0, 1], [2, 3]]),
        RankSettings(attention="hardmax"),
    )

"""Folding networks answer every question of every kind of task, exactly, and are as small as they were planned."""

import re
from itertools import permutations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates import judge
from byheart.constructions import CONSTRUCTIONS, Built, build
from byheart.constructions.folding import FoldingSettings, demand, plan, worst_demand
from byheart.constructions.gadgets.demand import collect_questions
from byheart.errors import BadInput
from byheart.networks import count
from byheart.networks.exact import integers
from byheart.sizes import Size
from byheart.tasks import NextToken, NextTokenDistribution, SeqToSeq, random_next_token, random_seq_to_seq

from ...lies import perturbed_weight, shuffled_answers

FOLDING = CONSTRUCTIONS["folding"]
# BUG (fronts.py, codes of vectors; words.py, _RETRIES): with short sequences of vectors the parities of u take few
# values (31 of 64 patterns for 100 questions), so a few rows depend on others at every digit; 4096 retries a digit and
# 96 draws then take minutes, or end in RuntimeError. Slow so that the fast tests end; unmark once they are quick.
SLOW_VECTORS = pytest.mark.slow
MAKE = {"next-token": random_next_token, "seq-to-seq": random_seq_to_seq}


def memorize(
    task: NextToken | SeqToSeq, *, positions: bool = False, fewest: str = "without-embedding", seed: int = 0
) -> Built:
    """A network that was judged, and whose parameters are those of the plan for as much growth as it reports."""
    chosen = FoldingSettings(positions=positions, fewest=fewest)
    built = build("folding", task, seed=seed, settings=chosen)
    verdict = judge(built.network, task)
    assert verdict.certified, str(verdict.counterexample)
    assert verdict.checked == task.labels.size
    assert verdict.margin == 0.5
    planned = plan(demand(collect_questions(task, positions=positions), chosen), built.chosen["growth"])
    assert planned.agrees_with(count(built.network))
    assert planned.tensors == tuple((name, tensor.shape) for name, tensor in built.network.tensors())
    assert planned.dense == built.account.dense == sum(prod(shape) for _, shape in planned.tensors)
    assert planned.embedding == built.account.embedding
    return built


def labels(N: int, C: int) -> np.ndarray:
    return np.random.default_rng(N + C).integers(C, size=N)


# ── Random tasks ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("examples", [1, 2, 3, 10, 100, 1000])
@pytest.mark.parametrize("classes", [1, 2, 3, 10, 256])
@pytest.mark.parametrize("length", [1, 2, 16])
def test_token_ids(examples: int, classes: int, length: int) -> None:
    vocab = {1: 1500, 2: 200, 16: 64}[length]
    rng = np.random.default_rng(examples)
    memorize(random_next_token(examples=examples, length=length, vocab=vocab, labels=classes, rng=rng))


@pytest.mark.slow
@pytest.mark.parametrize("examples", [1, 3, 100, 300])
@pytest.mark.parametrize("classes", [2, 256])
@pytest.mark.parametrize("shape", ["uniform", "skewed", "neighbours"])
@pytest.mark.parametrize("positions", [False, True])
def test_shapes(examples: int, classes: int, shape: str, positions: bool) -> None:
    rng = np.random.default_rng(examples)
    task = random_next_token(examples=examples, length=16, vocab=64, labels=classes, shape=shape, rng=rng)
    memorize(task, positions=positions)


VECTORS = [
    pytest.param(
        {"vocab": vocab, "dim": dim, "shape": shape},
        id=f"{vocab}-{dim}-{shape}",
        marks=[SLOW_VECTORS] if dim == 1 else [],
    )
    for vocab, dim, shape in [
        (64, 4, "uniform"),
        (64, 1, "skewed"),
        (200, 3, "neighbours"),
        (None, 4, "uniform"),
        (None, 2, "neighbours"),
    ]
]


@pytest.mark.parametrize("sizes", VECTORS)
@pytest.mark.parametrize("examples", [1, 2, 10, 100, 1000])
@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("positions", [False, True])
def test_vectors(sizes: dict[str, object], examples: int, classes: int, positions: bool) -> None:
    rng = np.random.default_rng(examples)
    memorize(random_next_token(**sizes, examples=examples, length=16, labels=classes, rng=rng), positions=positions)


@pytest.mark.parametrize(
    "examples", [1, 2, 10, pytest.param(100, marks=SLOW_VECTORS), pytest.param(300, marks=SLOW_VECTORS)]
)
@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("classes", [1, 2, 256])
def test_short_sequences_of_vectors(examples: int, length: int, classes: int) -> None:
    rng = np.random.default_rng(examples)
    memorize(random_next_token(examples=examples, length=length, vocab=None, labels=classes, dim=3, rng=rng))


@pytest.mark.parametrize("examples", [1, 2, 10, 50])
@pytest.mark.parametrize("length", [1, 2, 16])
@pytest.mark.parametrize("classes", [2, 10, pytest.param(256, marks=pytest.mark.slow)])
@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("dim", [None, pytest.param(3, marks=SLOW_VECTORS)], ids=["ids", "vectors"])
def test_seq_to_seq(examples: int, length: int, classes: int, positions: bool, dim: int | None) -> None:
    rng = np.random.default_rng(examples)
    task = random_seq_to_seq(examples=examples, length=length, vocab=200, labels=classes, dim=dim, rng=rng)
    memorize(task, positions=positions)


@pytest.mark.parametrize("shape", ["uniform", "skewed", "neighbours"])
@pytest.mark.parametrize("dim", [None, 4], ids=["ids", "vectors"])
def test_larger_seq_to_seq(shape: str, dim: int | None) -> None:
    rng = np.random.default_rng(0)
    sizes = {"examples": 1000 if dim is None else 300, "length": 7, "vocab": 300, "labels": 10}
    memorize(random_seq_to_seq(**sizes, dim=dim, shape=shape, rng=rng))


# ── Adversarial tasks ───────────────────────────────────────────────────────────────────────────────────────────────


def one_changed(length: int) -> list[list[int]]:
    """All sequences that differ from zeros in one token at most, by a token that says where."""
    return [[0] * length] + [[0] * k + [1 + k] + [0] * (length - 1 - k) for k in range(length)]


RNG = np.random.default_rng(0)
POINTS = RNG.standard_normal((100, 1, 3))
PAIRS = RNG.standard_normal((100, 2, 3))
ADVERSARIAL = {
    "consecutive ids": NextToken(tokens=np.arange(500)[:, None], labels=labels(500, 2), label_count=2),
    "consecutive ids, many labels": NextToken(tokens=np.arange(60)[:, None], labels=labels(60, 256), label_count=256),
    "consecutive ids, alternating": NextToken(tokens=np.arange(64)[:, None], labels=np.arange(64) % 2),
    "equal low bits": NextToken(tokens=np.arange(64)[:, None] << 5, labels=labels(64, 5), label_count=5),
    "equal low bits in pairs": NextToken(
        tokens=np.array(list(product(range(12), repeat=2)))[:, ::-1].cumsum(axis=1) << 6, labels=labels(144, 3)
    ),
    "one token differs": NextToken(tokens=one_changed(60), labels=labels(61, 4)),
    "how often a token occurs": NextToken(tokens=np.tril(np.ones((50, 50), dtype=int)), labels=labels(50, 4)),
    "all tokens equal, even length": NextToken(tokens=[[k] * 4 for k in range(60)], labels=labels(60, 4)),
    "all tokens equal, odd length": NextToken(tokens=[[k] * 3 for k in range(60)], labels=labels(60, 4)),
    "x and −x": NextToken(vectors=np.concatenate([POINTS, -POINTS]), labels=[0] * 100 + [1] * 100),
    "x and −x in pairs": NextToken(vectors=np.concatenate([PAIRS, -PAIRS]), labels=[0] * 100 + [1] * 100),
    "signs": NextToken(vectors=np.array(list(product([-1.0, 1.0], repeat=6)))[:, None], labels=labels(64, 2)),
    "a few duplicates": NextToken(tokens=np.repeat(np.arange(200), 2).reshape(200, 2)[[*range(100)] * 2] + [[0, 1]],
                                  labels=np.tile(labels(100, 2), 2)),
    "many duplicates": NextToken(tokens=[[3, 1]] * 100 + [[2, 0]] * 100, labels=[1] * 100 + [0] * 100),
    "one question a hundred times": NextToken(tokens=[[3, 1]] * 100, labels=[1] * 100, label_count=2),
    "one label": NextToken(tokens=np.arange(300)[:, None], labels=[0] * 300),
    "every token in every context": SeqToSeq(
        tokens=[[a, b] for a in range(12) for b in range(a, 12)],
        labels=[[a, b] for a in range(12) for b in range(a, 12)],
    ),
    "the same token in many contexts": SeqToSeq(
        tokens=[[0, k] for k in range(1, 80)], labels=[[k % 7, 0] for k in range(79)]
    ),
    "all tokens equal in every sequence": SeqToSeq(
        tokens=[[k] * 3 for k in range(60)], labels=[[k % 4] * 3 for k in range(60)]
    ),
}  # fmt: skip


# BUG (features.py:82): duplicates leave digits without questions; reshape(0, -1) raises ValueError.
# BUG (how often a token occurs): u = a + k·b has two parity patterns; RuntimeError after 96 draws.
CASES = [
    pytest.param(task, id=name, marks=[SLOW_VECTORS] if name.startswith("x and") else [])
    for name, task in ADVERSARIAL.items()
]


@pytest.mark.slow
@pytest.mark.parametrize("task", CASES)
def test_adversarial(task: NextToken | SeqToSeq) -> None:
    memorize(task)


@pytest.mark.parametrize("task", CASES)
def test_adversarial_with_positions(task: NextToken | SeqToSeq) -> None:
    memorize(task, positions=True)


@pytest.mark.slow
def test_order_matters_with_positions() -> None:
    """All 120 orders of five tokens, each with a label of its own."""
    orders = list(permutations(range(5)))
    memorize(NextToken(tokens=orders, labels=range(120)), positions=True)
    memorize(NextToken(vectors=np.array(orders)[:, :, None] / 4, labels=range(120)), positions=True)


def test_equal_tokens_may_have_different_labels_with_positions() -> None:
    task = SeqToSeq(tokens=[[0, 0, 0], [0, 0, 1], [1, 0, 0]], labels=[[0, 1, 2], [2, 1, 0], [1, 1, 2]])
    memorize(task, positions=True)


def test_large_tables_are_drawn() -> None:
    """Sixty tokens out of 2¹⁶, two in a sequence."""
    task = NextToken(tokens=np.arange(60).reshape(30, 2) << 10, labels=labels(30, 4), label_count=4, vocab=1 << 16)
    memorize(task)


# ── Sizes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

MUST_SHOW = [(10**3, 2, 270), (10**4, 2, 530), (10**3, 3, 300), (10**3, 10, 390), (10**3, 256, 510), (10**4, 256, 1160)]
PLANNED = [(10**3, 2, 270), (10**4, 2, 530), (10**5, 2, 1260), (10**6, 2, 3500), (10**4, 10, 820), (10**5, 256, 3110)]


@pytest.mark.parametrize(("examples", "classes", "allowed"), MUST_SHOW)
def test_must_show_built_and_certified(examples: int, classes: int, allowed: int) -> None:
    rng = np.random.default_rng(0)
    built = memorize(random_next_token(examples=examples, length=16, vocab=64, labels=classes, rng=rng))
    assert built.account.dense - built.account.embedding <= allowed


@pytest.mark.parametrize(("examples", "classes", "allowed"), PLANNED)
def test_must_show_planned_for_the_worst(examples: int, classes: int, allowed: int) -> None:
    planned = FOLDING.plan(Size(examples, 16, classes, 64), "next-token", FoldingSettings())
    assert planned.dense - planned.embedding <= allowed


def test_fewest_in_all_has_one_integer_a_token() -> None:
    """N = 10⁴, ω = 64: a table of 64 instead of 256 or more, and fewer parameters in all; without it more."""
    task = random_next_token(examples=10_000, length=16, vocab=64, labels=2, rng=np.random.default_rng(0))
    least, all_of_them = memorize(task).account, memorize(task, fewest="in-all").account
    assert all_of_them.embedding == 64
    assert all_of_them.dense <= 700 < least.dense <= 780
    assert least.dense - least.embedding < all_of_them.dense - all_of_them.embedding


@pytest.mark.parametrize("seed", range(8))
def test_no_seed_is_unlucky(seed: int) -> None:
    """A level at which one draw in a hundred is good made this task take 763 to 881 parameters: words grew in vain."""
    task = random_next_token(examples=10_000, length=16, vocab=64, labels=2, rng=np.random.default_rng(1))
    built = memorize(task, seed=seed)
    assert built.chosen["growth"] == 0
    assert built.account.dense <= 770
    assert memorize(task, seed=seed, fewest="in-all").account.dense <= 670


@pytest.mark.parametrize(("length", "vocab"), [(3, 64), (16, 2), (16, 12)])
def test_fewest_in_all_takes_the_wide_table_where_it_is_smaller_or_sequences_are_short(length: int, vocab: int) -> None:
    task = random_next_token(examples=16, length=length, vocab=vocab, labels=2, rng=np.random.default_rng(0))
    assert memorize(task, fewest="in-all").account.embedding > vocab


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("shape", ["uniform", "skewed", "neighbours"])
def test_narrow_tables(classes: int, shape: str) -> None:
    rng = np.random.default_rng(classes)
    task = random_next_token(examples=100, length=6, vocab=300, labels=classes, shape=shape, rng=rng)
    assert memorize(task, fewest="in-all").account.embedding == 300


def test_tokens_that_ask_for_themselves_have_wide_tables() -> None:
    task = random_seq_to_seq(examples=20, length=6, vocab=300, labels=3, rng=np.random.default_rng(0))
    assert memorize(task, fewest="in-all").account.embedding > 300


def test_what_may_be_few() -> None:
    task = random_next_token(examples=10, length=4, vocab=20, labels=2, rng=np.random.default_rng(0))
    with pytest.raises(BadInput, match="fewest is 'few'; expected one of without-embedding, in-all"):
        build("folding", task, settings=FoldingSettings(fewest="few"))


@pytest.mark.parametrize("classes", [3, 5, 6, 7, 9, 11, 12, 17, 100, 257])
def test_digits_of_any_radix(classes: int) -> None:
    """Primes, powers of primes, products of both; C = 17 in radix 18 and C = 257 in radix 260."""
    task = random_next_token(examples=120, length=4, vocab=40, labels=classes, rng=np.random.default_rng(classes))
    built = memorize(task)
    assert built.chosen["radix"] == {17: 18, 257: 260}.get(classes, classes)


@st.composite
def random_tasks(draw: st.DrawFn, vectors: bool) -> NextToken | SeqToSeq:
    length, vocab = draw(st.integers(1, 6)), draw(st.integers(2, 60))
    sizes = {
        "examples": draw(st.integers(1, vocab)),
        "length": length,
        "vocab": vocab,
        "labels": draw(st.sampled_from([1, 2, 3, 6, 10, 25, 256])),
        "dim": draw(st.integers(2, 3)) if vectors else None,
        "shape": draw(st.sampled_from(["uniform", "skewed", "neighbours"])),
        "rng": np.random.default_rng(draw(st.integers(0, 2**32))),
    }
    return draw(st.sampled_from(list(MAKE.values())))(**sizes)


@pytest.mark.slow
@given(random_tasks(vectors=False), st.booleans())
@settings(deadline=None, max_examples=60)
def test_planned_is_built_and_the_worst_case_is_worse(task: NextToken | SeqToSeq, positions: bool) -> None:
    chosen = FoldingSettings(positions=positions)
    built = memorize(task, positions=positions)
    if built.chosen["growth"] == 0:
        worst = plan(worst_demand(task.size, task.kind, chosen))
        assert worst.dense >= built.account.dense


@SLOW_VECTORS
@given(random_tasks(vectors=True), st.booleans())
@settings(deadline=None, max_examples=8)
def test_planned_is_built_from_vectors(task: NextToken | SeqToSeq, positions: bool) -> None:
    """What sizes alone plan for vectors is expected, and now and then a little less than what is built."""
    memorize(task, positions=positions)


def test_the_account_of_what_was_chosen() -> None:
    task = random_next_token(examples=500, length=4, vocab=50, labels=16, rng=np.random.default_rng(0))
    built = memorize(task)
    chosen = built.chosen
    dense = built.account.dense - built.account.embedding
    assert chosen["words"] + chosen["folds"] + chosen["overhead"] == dense
    assert chosen["constant"] == pytest.approx(dense / (500 * 4) ** 0.5, abs=1e-3)
    tensors = dict(built.network.tensors())
    assert chosen["words"] == tensors["words.0.words.W"].shape[0] * (tensors["words.0.words.W"].shape[1] + 1)
    folds = [name for name in tensors if name.startswith(("level.", "fold."))]
    assert chosen["folds"] == sum(tensors[name].size for name in folds) == len(folds)
    assert chosen["radix"] == 16
    assert 0 < chosen["load"] <= 1


# ── Seeds and controls ──────────────────────────────────────────────────────────────────────────────────────────────

SMALL = {
    "ids": random_next_token(examples=40, length=4, vocab=20, labels=4, rng=np.random.default_rng(0)),
    "vectors": random_next_token(examples=40, length=4, vocab=20, labels=4, dim=2, rng=np.random.default_rng(1)),
    "seq-to-seq": random_seq_to_seq(examples=40, length=4, vocab=20, labels=4, rng=np.random.default_rng(2)),
}


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("task", SMALL.values(), ids=SMALL)
def test_the_seed_decides(task: NextToken | SeqToSeq, positions: bool) -> None:
    one, again, other = (memorize(task, positions=positions, seed=seed).network.fingerprint for seed in (3, 3, 4))
    assert one == again
    assert one != other


@pytest.mark.parametrize("task", SMALL.values(), ids=SMALL)
def test_other_labels_are_other_words_only(task: NextToken | SeqToSeq) -> None:
    """No key is stored: with the codes fixed, labels have a say in the words and nowhere else, if no draw fails."""
    one = memorize(task)
    two = memorize(task.with_labels((task.labels + 1) % 4))
    if one.chosen["failures"] == two.chosen["failures"] == 0:
        changed = [
            name
            for (name, a), (_, b) in zip(one.network.tensors(), two.network.tensors(), strict=True)
            if (a != b).any()
        ]
        assert changed == ["words.0.words.W", "words.0.words.b"]


def test_shuffled_labels_are_near_chance() -> None:
    """N = 1000, C = 2: 500 wrong answers, ± 16 a standard deviation."""
    task = random_next_token(examples=1000, length=16, vocab=64, labels=2, rng=np.random.default_rng(5))
    network = memorize(task).network
    for seed in range(3):
        lie = shuffled_answers(network, task, np.random.default_rng(seed))
        assert lie.found
        assert 400 <= lie.verdict.errors <= 600


def test_questions_that_were_not_asked_are_answered_at_random() -> None:
    """Nothing but the labels is stored: on other sequences half of the answers are wrong, and all are labels."""
    both = random_next_token(examples=1400, length=16, vocab=64, labels=2, rng=np.random.default_rng(6))
    asked = NextToken(tokens=both.tokens[:700], labels=both.labels[:700], label_count=2, vocab=64)
    other = NextToken(tokens=both.tokens[700:], labels=both.labels[700:], label_count=2, vocab=64)
    verdict = judge(memorize(asked).network, other)
    assert 250 <= verdict.errors <= 450


@pytest.mark.parametrize("task", SMALL.values(), ids=SMALL)
def test_flipped_bits_are_found(task: NextToken | SeqToSeq) -> None:
    network = memorize(task).network
    for seed in range(5):
        broken = perturbed_weight(network, task, np.random.default_rng(seed))
        assert broken.found, broken.detail


@pytest.mark.parametrize("bit", [8, 9, 11, 20])
def test_flipped_bits_of_a_word_are_found(bit: int) -> None:
    """The bias of the first row is a word that every question reads with coefficient 1; bit 8 is the first digit."""
    task = random_next_token(examples=1000, length=16, vocab=64, labels=2, rng=np.random.default_rng(7))
    network = memorize(task).network
    name = "words.0.words.b"
    biases = dict(network.tensors())[name].copy()
    biases[0] ^= 1 << bit
    verdict = judge(network.with_tensor(name, integers(biases)), task)
    assert not verdict.certified
    assert 10 <= verdict.errors <= 900


@pytest.mark.parametrize("task", SMALL.values(), ids=SMALL)
def test_a_changed_label_is_named(task: NextToken | SeqToSeq) -> None:
    network, changed = memorize(task).network, task.labels.copy()
    place = (17,) if changed.ndim == 1 else (17, 2)
    true = int(changed[place])
    changed[place] = (true + 1) % 4
    verdict = judge(network, task.with_labels(changed))
    assert verdict.errors == 1
    assert (verdict.counterexample.example, verdict.counterexample.got) == (17, str(true))


# ── Refusals ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("positions", [False, True])
def test_conflicting_duplicates(positions: bool) -> None:
    task = NextToken(tokens=[[0, 1], [2, 2], [0, 1]], labels=[0, 0, 1])
    with pytest.raises(BadInput, match=r"example 0 and example 2 are equal sequences.*label 0 and label 1$"):
        build("folding", task, settings=FoldingSettings(positions=positions))


@pytest.mark.parametrize("vectors", [False, True])
def test_permuted_twins_need_positions(vectors: bool) -> None:
    ids = np.array([[9, 9], [0, 1], [5, 5], [1, 0]])
    task = NextToken(**({"vectors": ids[:, :, None] / 8} if vectors else {"tokens": ids}), labels=[0, 1, 0, 0])
    message = (
        "folding cannot memorize this task: example 1 and example 3 are equal sequences up to order: "
        "asked for label 1 and label 0; --positions makes order matter"
    )
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        build("folding", task)
    memorize(task, positions=True)


def test_equal_tokens_of_one_sequence() -> None:
    task = SeqToSeq(tokens=[[1, 2], [3, 3]], labels=[[0, 0], [0, 1]])
    with pytest.raises(BadInput, match="example 1, position 0 and example 1, position 1 are equal tokens"):
        build("folding", task)
    memorize(task, positions=True)


def test_distributions() -> None:
    task = NextTokenDistribution(tokens=[[0], [1]], probabilities=[[0.5, 0.5], [1.0, 0.0]])
    with pytest.raises(BadInput, match="folding memorizes labels of sequences; the task is next-token-distribution"):
        build("folding", task)


@pytest.mark.parametrize("positions", [False, True])
def test_tables_have_an_end(positions: bool) -> None:
    with pytest.raises(BadInput, match="vocab is 1000000000001; an embedding table can have 100000000 rows at most"):
        build("folding", NextToken(tokens=[[0]], labels=[0], vocab=10**12 + 1), settings=FoldingSettings(positions))


def test_plans_of_inconsistent_tasks_are_refused() -> None:
    task = NextToken(tokens=[[0, 1], [1, 1], [0, 1]], labels=[0, 0, 1])
    with pytest.raises(BadInput, match="no codes tell the questions of this task apart"):
        demand(collect_questions(task, positions=False), FoldingSettings())


@pytest.mark.parametrize(("kind", "vocab"), [("next-token", 30), ("seq-to-seq", 300)])
def test_a_few_questions_tell_no_more_than_all(kind: str, vocab: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at 1, 8, 64 and then all questions gives the network that looking at all of them at once gives."""
    task = MAKE[kind](examples=200, length=4, vocab=vocab, labels=2, rng=np.random.default_rng(5))
    built = []
    for few in (1, 10**6):
        monkeypatch.setattr("byheart.constructions.folding.build._FEW", few)
        built.append(build("folding", task).network)
    one, other = (dict(network.tensors()) for network in built)
    assert all((tensor == other[name]).all() for name, tensor in one.items())


def test_words_grow_where_no_draw_fits() -> None:
    """Few questions over vectors: at the planned size some digit is always read too often."""
    sizes = {"examples": 35, "length": 2, "vocab": 8, "labels": 2, "dim": 2}
    task = random_seq_to_seq(**sizes, rng=np.random.default_rng(0))
    built = build("folding", task)
    assert built.chosen["growth"] > 0
    assert judge(built.network, task).certified

"""Tasks that are hard on purpose."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates import judge
from byheart.constructions import CONSTRUCTIONS, build
from byheart.constructions.vardi_2022 import VardiSettings
from byheart.tasks import NextToken, SeqToSeq

from ..exact import EXACT

RNG = np.random.default_rng(0)
TINY, HUGE, SMALLEST = 1e-300, 1e300, 5e-324
WILD = [TINY, HUGE, -TINY, -HUGE, SMALLEST, -SMALLEST, 0.0, 1.0, np.nextafter(1.0, 2.0), 3 * SMALLEST]


def labels(count: int, of: int) -> np.ndarray:
    return np.random.default_rng(count).integers(of, size=count)


def one_changed(token: int) -> list[list[int]]:
    """A sequence of seven equal tokens, and all that differ from it in one place, by another token each."""
    return [[0] * 7] + [[0] * k + [token + k] + [0] * (6 - k) for k in range(7)]


NEXT_TOKEN = {
    "consecutive": NextToken(tokens=np.arange(60)[:, None], labels=labels(60, 3), label_count=3),
    "consecutive, alternating": NextToken(tokens=np.arange(64)[:, None], labels=np.arange(64) % 2 * 9, label_count=10),
    "equal low bits": NextToken(
        tokens=np.arange(40)[:, None] << 10, labels=labels(40, 5), label_count=5, vocab=1 << 16
    ),
    "one token differs": NextToken(tokens=one_changed(1), labels=np.arange(8)),
    "how often one token occurs": NextToken(tokens=np.tril(np.ones((7, 7), dtype=int)), labels=np.arange(7)),
    "wild exponents": NextToken(vectors=np.array(WILD)[:, None, None], labels=np.arange(len(WILD))),
    "wild sequences": NextToken(
        vectors=[[[TINY, 1.0], [HUGE, 0.0]], [[TINY, 0.0], [HUGE, 1.0]], [[SMALLEST, -0.0], [0.0, SMALLEST]]],
        labels=[0, 2, 1],
    ),
    "neighbouring floats": NextToken(vectors=(1.0 + np.arange(30) * 2.0**-52)[:, None, None], labels=labels(30, 4)),
    "one integer": NextToken(vectors=[[[2.0**1000]]], labels=[1]),
    "zero and minus zero are one": NextToken(vectors=[[[0.0]], [[-0.0]], [[1.0]]], labels=[1, 1, 0]),
    "nothing but zero": NextToken(vectors=[[[0.0, -0.0]] * 3], labels=[4]),
    "equal duplicates": NextToken(tokens=[[1, 2], [3, 4], [1, 2], [1, 2]], labels=[1, 0, 1, 1]),
    "equal vectors": NextToken(vectors=[[[0.5]], [[0.5]], [[0.25]]], labels=[2, 2, 1]),
    "twins with equal labels": NextToken(tokens=[[0, 1, 2], [2, 1, 0], [1, 1, 1], [1, 0, 2]], labels=[1, 1, 0, 1]),
    "all tokens equal": NextToken(tokens=[[3] * 7], labels=[2], vocab=9),
    "all sequences equal": NextToken(tokens=[[3] * 7] * 4, labels=[2] * 4),
    "one label of many": NextToken(tokens=np.arange(20)[:, None], labels=[255] * 20, label_count=256),
    "unused labels and tokens": NextToken(tokens=[[5], [900]], labels=[0, 3], label_count=1000, vocab=1000),
    "every pair": NextToken(tokens=[[a, b] for a, b in product(range(9), repeat=2) if a <= b], labels=labels(45, 7)),
    "long": NextToken(tokens=[[0] * 299 + [1], [0] * 300, [1] * 300, [1] * 299 + [0]], labels=[0, 1, 2, 3]),
}
SEQ_TO_SEQ = {
    "one token differs": SeqToSeq(tokens=one_changed(1), labels=[[i] * 7 for i in range(8)]),
    "the same token in many contexts": SeqToSeq(
        tokens=[[0, k] for k in range(1, 30)], labels=[[k, 0] for k in range(29)]
    ),
    "wild exponents": SeqToSeq(vectors=np.array(WILD)[None, :, None], labels=[np.arange(len(WILD))]),
    "wild twins": SeqToSeq(vectors=[[[TINY], [HUGE]], [[HUGE], [TINY]]], labels=[[0, 1], [1, 0]]),
    "equal duplicates": SeqToSeq(tokens=[[1, 2], [1, 2]], labels=[[0, 1], [0, 1]]),
    "twins with equal labels": SeqToSeq(tokens=[[0, 1, 1], [1, 0, 1]], labels=[[2, 0, 0], [0, 2, 0]]),
    "all tokens equal": SeqToSeq(tokens=[[3] * 7], labels=[[2] * 7]),
    "all vectors equal": SeqToSeq(vectors=[[[0.1, 0.2]] * 4], labels=[[1] * 4]),
}


NARROW = {"yang-2026": {"width": 5}}
"""Where points have thousands of bits, a network of balanced width and depth is large, and asking it slow."""


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("task", NEXT_TOKEN.values(), ids=NEXT_TOKEN)
def test_next_token(name: str, task: NextToken) -> None:
    assert judge(build(name, task, **NARROW.get(name, {})).network, task).certified


@pytest.mark.parametrize("name", ["interpolate", "kajitsuka-sato-2025"])
@pytest.mark.parametrize("task", [*NEXT_TOKEN.values(), *SEQ_TO_SEQ.values()], ids=[*NEXT_TOKEN, *SEQ_TO_SEQ])
def test_with_positions(name: str, task: NextToken | SeqToSeq) -> None:
    settings = CONSTRUCTIONS[name].settings(positions=True)
    assert judge(build(name, task, settings=settings).network, task).certified


@pytest.mark.parametrize("name", ["interpolate", "kajitsuka-sato-2025"])
@pytest.mark.parametrize("task", SEQ_TO_SEQ.values(), ids=SEQ_TO_SEQ)
def test_seq_to_seq(name: str, task: SeqToSeq) -> None:
    assert judge(build(name, task).network, task).certified


HUGE_IDS = {
    "equal low bits": np.arange(64)[:, None] << 40,
    "equal high bits": (1 << 46) - 1 - np.arange(64)[:, None],
    "anywhere": np.random.default_rng(1).integers(0, 2**46, size=(64, 1)),
    "up to 2^62": np.random.default_rng(2).integers(0, 2**62, size=(64, 1)),
    "pairs": np.random.default_rng(3).integers(0, 2**62, size=(64, 2)),
}


@pytest.mark.parametrize("ids", HUGE_IDS.values(), ids=HUGE_IDS)
@pytest.mark.parametrize("limits", [{}, {"depth": 30}, {"bits": 72}, {"depth": 40, "bits": 90}], ids=str)
def test_huge_ids_need_no_table(ids: np.ndarray, limits: dict[str, int]) -> None:
    """Where hashing does not fit into the limits, a single id of many bits is its own key."""
    task = NextToken(tokens=ids, labels=labels(64, 4), label_count=4, vocab=2**62)
    if ids.shape[1] > 1 and limits:
        return  # two ids have to be hashed: refusals are tested elsewhere
    built = build("vardi-2022", task, settings=VardiSettings(**limits))
    assert judge(built.network, task).certified
    assert built.account.depth <= limits.get("depth", 10**9)
    assert built.account.max_bits <= limits.get("bits", 10**9)


def test_the_largest_ids_and_many_labels() -> None:
    """C·P leaves 64 bits."""
    ids = np.array([[0], [1], [2**63 - 3], [2**63 - 2]])
    task = NextToken(tokens=ids, labels=[255, 0, 7, 254], label_count=256, vocab=2**63 - 1)
    for limits in (VardiSettings(), VardiSettings(depth=20), VardiSettings(bits=80)):
        assert judge(build("vardi-2022", task, settings=limits).network, task).certified


MIRRORED = {
    "numbers": NextToken(vectors=[[[1.0]], [[-1.0]]], labels=[0, 1]),
    "vectors": NextToken(vectors=[[[1.0, -2.5, 0.0]], [[-1.0, 2.5, 0.0]]], labels=[0, 1]),
    "signs": NextToken(vectors=np.array(list(product([-1.0, 1.0], repeat=3)))[:, None], labels=np.arange(8)),
    "sequences": NextToken(vectors=[[[0.5], [-3.0]], [[-0.5], [3.0]]], labels=[0, 1]),
    "in one sequence": SeqToSeq(vectors=[[[0.5], [-0.5], [0.0]]], labels=[[0, 1, 2]]),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("task", MIRRORED.values(), ids=MIRRORED)
def test_a_vector_and_its_negative(name: str, task: NextToken | SeqToSeq) -> None:
    """fold_Q(−s) = fold_Q(s): x and −x must not come to the fold as s and −s."""
    if task.kind in CONSTRUCTIONS[name].covers:
        assert judge(build(name, task).network, task).certified


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("examples", [2, 20, 40, 64, 100])
def test_real_numbers(name: str, examples: int) -> None:
    """d = n = 1: whether two numbers of many bits collide modulo Q must not depend on Q alone, for primes are few."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        task = NextToken(vectors=rng.standard_normal((examples, 1, 1)), labels=labels(examples, 4), label_count=4)
        assert judge(build(name, task).network, task).certified


@st.composite
def any_task(draw: st.DrawFn) -> NextToken | SeqToSeq:
    """Small tasks full of duplicates and twins; the labels are a function of what a Transformer can see."""
    length, kind = draw(st.integers(1, 4)), draw(st.sampled_from(["ids", "vectors"]))
    rows = draw(st.lists(st.lists(st.integers(0, 4), min_size=length, max_size=length), min_size=1, max_size=10))
    seq_to_seq, C, salt = draw(st.booleans()), draw(st.sampled_from([1, 2, 10, 256])), draw(st.integers(0, 10**6))
    seen = {(tuple(sorted(row)), own): 0 for row in rows for own in (*row, -1)}
    values = dict(zip(seen, np.random.default_rng(salt).integers(C, size=len(seen)).tolist(), strict=True))
    own = [[values[tuple(sorted(row)), token] for token in row] for row in rows]
    answers = own if seq_to_seq else [values[tuple(sorted(row)), -1] for row in rows]
    make = SeqToSeq if seq_to_seq else NextToken
    if kind == "ids":
        return make(tokens=rows, labels=answers, label_count=C, vocab=draw(st.integers(5, 9)))
    entries = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9).map(float)
    dim = draw(st.integers(1, 3))
    vector = st.lists(entries, min_size=dim, max_size=dim).map(tuple)
    table = draw(st.lists(vector, min_size=5, max_size=5, unique_by=lambda v: tuple(x + 0.0 for x in v)))
    return make(vectors=[[table[token] for token in row] for row in rows], labels=answers, label_count=C)


@pytest.mark.slow
@given(any_task(), st.integers(0, 2**32), st.sampled_from([False, True]))
@settings(deadline=None, max_examples=60)
def test_any_consistent_task_is_memorized(task: NextToken | SeqToSeq, seed: int, positions: bool) -> None:
    for name in EXACT:
        construction = CONSTRUCTIONS[name]
        if task.kind in construction.covers:
            chosen = construction.settings_with(positions=positions)
            built = build(name, task, seed=seed, settings=replace(chosen, **NARROW.get(name, {})))
            verdict = judge(built.network, task)
            assert verdict.certified, f"{name}: {verdict.counterexample}"

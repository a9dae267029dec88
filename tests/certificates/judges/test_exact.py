"""The judge: right is right, wrong is wrong, and the first wrong answer is named."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates import Counterexample, judge
from byheart.constructions import build
from byheart.errors import BadInput
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, UniformAttention, integers
from byheart.networks.exact.evaluate import evaluate
from byheart.tasks import NextToken, NextTokenDistribution, SeqToSeq, random_next_token, random_seq_to_seq


def line(slope: int, bias: int, shift: int = 0, outputs: str = "last", length: int = 1) -> ExactNetwork:
    """x ↦ relu(slope·x + bias) / 2^shift on token ids."""
    chain = FeedForward((Affine(integers([[slope]]), integers([bias]), shift=shift),))
    return ExactNetwork((chain,), inputs="tokens", outputs=outputs, length=length)


def test_right_answers() -> None:
    """2x + 1 at 0, 1, 5 is 1, 3, 11."""
    verdict = judge(line(2, 1), NextToken(tokens=[[0], [1], [5]], labels=[1, 3, 11]))
    assert verdict.certified
    assert (verdict.checked, verdict.errors, verdict.margin, verdict.counterexample) == (3, 0, 0.5, None)


def test_the_first_wrong_answer_is_named() -> None:
    """2x + 1 at 1 is 3, not 4, and at 5 it is 11, not 13: two errors, the larger of them by 2."""
    verdict = judge(line(2, 1), NextToken(tokens=[[0], [1], [5]], labels=[1, 4, 13]))
    assert not verdict.certified
    assert (verdict.checked, verdict.errors, verdict.margin) == (3, 2, -1.5)
    assert verdict.counterexample == Counterexample(example=1, position=None, expected=4, got="3")
    assert str(verdict.counterexample) == "example 1: expected 4, got 3"


@pytest.mark.parametrize("evaluator", ["limbs", "flint"])
def test_a_fraction_is_not_a_label(evaluator: str) -> None:
    """x/2 at 2 is 1; at 3 it is 3/2, which rounds to 2 and still is no label; at 5 it is 5/2."""
    verdict = judge(line(1, 0, shift=1), NextToken(tokens=[[2], [3], [5]], labels=[1, 2, 2]), evaluator=evaluator)
    assert not verdict.certified
    assert verdict.errors == 2
    assert verdict.counterexample == Counterexample(1, None, 2, "3/2")
    assert verdict.margin == 0.0


@pytest.mark.parametrize("evaluator", ["limbs", "flint"])
def test_thirds_are_exact(evaluator: str) -> None:
    """Attention over three tokens adds their mean: 1 + (1 + 1 + 2)/3 = 7/3, though 2.3333333333333335 is near."""
    attention = UniformAttention(W_V=integers([[1]]), W_O=integers([[1]]))
    network = ExactNetwork(
        (FeedForward((Affine(integers([[1]]), integers([0])),)), attention), inputs="tokens", outputs="every", length=3
    )
    task = SeqToSeq(tokens=[[0, 0, 3], [1, 1, 2]], labels=[[1, 1, 4], [2, 2, 3]])
    verdict = judge(network, task, evaluator=evaluator)
    assert verdict.errors == 3
    assert verdict.counterexample == Counterexample(1, 0, 2, "7/3")
    assert verdict.margin == pytest.approx(float(Fraction(1, 2) - Fraction(1, 3)))


def test_positions_are_named() -> None:
    """x + 1 on [0, 1], [2, 3] is [1, 2], [3, 4]; the label at example 1, position 1 is 5."""
    task = SeqToSeq(tokens=[[0, 1], [2, 3]], labels=[[1, 2], [3, 5]])
    verdict = judge(line(1, 1, outputs="every", length=2), task)
    assert (verdict.checked, verdict.errors) == (4, 1)
    assert str(verdict.counterexample) == "example 1, position 1: expected 5, got 4"


def test_wrong_kinds_are_refused() -> None:
    with pytest.raises(BadInput, match="the network answers next-token tasks; the task is seq-to-seq"):
        judge(line(1, 0), SeqToSeq(tokens=[[0]], labels=[[0]]))
    with pytest.raises(BadInput, match="the network answers seq-to-seq tasks; the task is next-token"):
        judge(line(1, 0, outputs="every"), NextToken(tokens=[[0]], labels=[0]))
    with pytest.raises(BadInput, match=r"answers next-token and seq-to-seq tasks; the task is next-token-distribution"):
        judge(line(1, 0), NextTokenDistribution(tokens=[[0]], probabilities=[[1.0]]))
    with pytest.raises(BadInput, match="the network reads tokens; the task has vectors"):
        judge(line(1, 0), NextToken(vectors=[[[0.0]]], labels=[0]))
    with pytest.raises(BadInput, match="the network reads sequences of 1 tokens; the task's have 2"):
        judge(line(1, 0), NextToken(tokens=[[0, 0]], labels=[0]))


def test_unknown_tokens_are_refused() -> None:
    network = build("interpolate", NextToken(tokens=[[0], [2]], labels=[0, 1])).network
    with pytest.raises(BadInput, match="the network knows 3 tokens; the task has token id 3"):
        judge(network, NextToken(tokens=[[3]], labels=[0]))


@pytest.mark.parametrize("evaluator", ["limbs", "flint"])
@pytest.mark.parametrize("bits", [1100, 20_000])
def test_answers_beyond_all_floats_and_digits(evaluator: str, bits: int) -> None:
    """2^1100 is no float, and Python does not print 2^20000 by default: still a verdict, with the example named."""
    verdict = judge(line(2**bits, 0), NextToken(tokens=[[0], [1]], labels=[0, 1]), evaluator=evaluator)
    assert not verdict.certified
    assert verdict.errors == 1
    assert verdict.margin is None
    assert verdict.counterexample is not None
    assert verdict.counterexample.example == 1
    assert len(verdict.counterexample.got) < 100


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 120)), min_size=1, max_size=8), st.integers(-60, 60))
@settings(deadline=None, max_examples=50)
def test_verdicts_count(examples: list[tuple[int, int]], bias: int) -> None:
    """Against the line in Python."""
    tokens, labels = zip(*examples, strict=True)
    verdict = judge(line(2, bias), NextToken(tokens=np.array(tokens)[:, None], labels=labels))
    distances = [abs(max(0, 2 * x + bias) - y) for x, y in examples]
    assert verdict.errors == sum(d > 0 for d in distances)
    assert verdict.certified == (max(distances) == 0)
    assert verdict.margin == 0.5 - max(distances)
    if not verdict.certified:
        assert verdict.counterexample is not None
        assert verdict.counterexample.example == next(i for i, d in enumerate(distances) if d)


TASKS = [
    random_next_token(examples=12, length=3, vocab=8, labels=3, rng=np.random.default_rng(0)),
    random_next_token(examples=8, length=2, vocab=None, dim=2, labels=2, rng=np.random.default_rng(1)),
    random_seq_to_seq(examples=8, length=3, vocab=8, labels=10, rng=np.random.default_rng(2)),
]


@pytest.mark.parametrize("task", TASKS, ids=["ids", "vectors", "seq-to-seq"])
@pytest.mark.parametrize("name", ["interpolate", "kajitsuka-sato-2025"])
@pytest.mark.parametrize("lie", [False, True])
def test_both_evaluators_say_the_same(task: NextToken | SeqToSeq, name: str, lie: bool) -> None:
    network = build(name, task).network
    asked = task.with_labels((task.labels + 1) % task.label_count) if lie else task
    fast, plain = (judge(network, asked, evaluator=evaluator) for evaluator in ("limbs", "flint"))
    assert fast.certified is plain.certified is not lie
    for field in ("checked", "errors", "margin", "counterexample"):
        assert getattr(fast, field) == getattr(plain, field)


@pytest.mark.parametrize("evaluator", ["limbs", "flint"])
def test_progress_is_reported(evaluator: str) -> None:
    steps: list[tuple[int, int]] = []
    task = NextToken(tokens=[[i] for i in range(9)], labels=range(9))
    judge(line(1, 0), task, evaluator=evaluator, report=lambda done, total: steps.append((done, total)))
    assert steps == sorted(steps)
    assert steps[-1] == (9, 9)


def test_threads_change_nothing() -> None:
    task = random_next_token(examples=900, length=3, vocab=50, labels=3, rng=np.random.default_rng(0))
    network = build("kajitsuka-sato-2025", task).network
    assert judge(network, task, threads=1).certified
    assert judge(network, task, threads=2).certified


def test_options_are_checked() -> None:
    task = NextToken(tokens=[[0]], labels=[0])
    with pytest.raises(BadInput, match="threads is 0; expected a whole number from 1 to 256"):
        judge(line(1, 0), task, threads=0)
    with pytest.raises(BadInput, match="evaluator is 'abacus'; expected limbs or flint"):
        judge(line(1, 0), task, evaluator="abacus")
    with pytest.raises(BadInput, match="threads is an option of the evaluator limbs; flint has one"):
        judge(line(1, 0), task, evaluator="flint", threads=2)


def test_one_number_is_one_answer() -> None:
    """A stream that is two wide has no answer: its first coordinate is not taken for one."""
    chain = FeedForward((Affine(integers([[1], [5]]), integers([0, 0])),))
    network = ExactNetwork((chain,), inputs="tokens", outputs="last", length=1)
    with pytest.raises(BadInput, match="the network gives 2 numbers for a label; expected one"):
        judge(network, NextToken(tokens=[[0], [1]], labels=[0, 1]))


@pytest.mark.parametrize("shift", [2**62, 2**40, 1.5, -1, True])
def test_shifts_that_would_wrap_are_refused(shift: object) -> None:
    """Four shifts of 2⁶² add up to 0 in 64 bits; true outputs are x / 2^(2⁶⁴)."""
    with pytest.raises(BadInput, match=r"shift is .*; expected an integer, 0 or more and at most"):
        Affine(integers([[1]]), integers([0]), shift=shift)
    many = FeedForward(tuple(Affine(integers([[1]]), integers([0]), shift=1 << 21) for _ in range(3)))
    with pytest.raises(BadInput, match=r"the layers shift by 6,291,456 bits in all; expected at most 4,194,304"):
        ExactNetwork((many,), inputs="tokens", outputs="last", length=1)


def test_machine_integers_are_refused() -> None:
    """2⁴⁰ · 2⁴⁰ is 0 in 64 bits."""
    wraps = np.array([[2**40]])
    with pytest.raises(BadInput, match=r"attention\.W_V is int64; expected integers of any size"):
        ExactNetwork((UniformAttention(W_V=wraps, W_O=wraps),), inputs="tokens", outputs="last", length=1)


def test_terms_of_many_limbs_do_not_overflow() -> None:
    """(2^(24·9000) − 1)²: one term adds 9,000 products of 2⁴⁸ to a limb, more than are added up between carries."""
    largest = 2 ** (24 * 9000) - 1
    chain = FeedForward(tuple(Affine(integers([[largest]]), integers([0])) for _ in range(2)))
    network = ExactNetwork((chain,), inputs="tokens", outputs="last", length=1)
    assert evaluate(network, np.array([[1]]))[0] == largest**2

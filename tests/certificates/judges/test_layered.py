"""Certificates in ball arithmetic: worked by hand, at the edges, with as many bits as it takes, and lied to."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates import Certificate, certify, controls, read, recheck, write
from byheart.certificates.claim import JudgeOptions
from byheart.certificates.judges import layered
from byheart.constructions import build
from byheart.errors import BadInput
from byheart.networks import save
from byheart.networks.softmax import Inputs, SoftmaxNetwork, evaluate
from byheart.tasks import NextToken, NextTokenDistribution, QueryLabels, QueryTargets, SeqToSeq, Task

from ...networks.softmax.small import drawn, one_head


def certify_softmax(network: SoftmaxNetwork, task: Task, **options: float) -> Certificate:
    """The certificate, with options that only this judge has."""
    most_bits = int(options.pop("most_bits", layered.MOST_BITS))
    verdict = layered.judge(network, layered.asked(network, task), JudgeOptions(**options), most_bits=most_bits)  # type: ignore[arg-type]
    fingerprints = {"weights": network.fingerprint, "task": task.fingerprint}
    return Certificate.of(
        verdict, **fingerprints, examples=task.size.examples, stands_for=task.stands_for, libraries=layered.LIBRARIES
    )


def alone(numbers: list[float], **answers: object) -> dict[str, object]:
    """Contexts of one token each, whose number a head with weights 1 gives as it is: nothing is rounded."""
    return {"contexts": [[[x]] for x in numbers], "queries": [[1.0]] * len(numbers), **answers}


def table(logits: list[list[float]]) -> SoftmaxNetwork:
    """A network on single tokens whose logits are the rows of a square table."""
    size = len(logits[0])
    return SoftmaxNetwork(
        W_E=np.array(logits, dtype=np.float64),
        W_pos=np.zeros((1, size)),
        W_Q=np.zeros((1, size, 1)),
        W_K=np.zeros((1, size, 1)),
        W_V=np.eye(size)[None],
        W_O=np.eye(size)[None],
    )


# Labels


def test_labels_by_hand() -> None:
    """W_U = (1, 2, 3): the logits of 1 are 1, 2, 3 and those of −1 are −1, −2, −3. The best is ahead by 1."""
    network, task = one_head(W_U=[1.0, 2.0, 3.0]), QueryLabels(**alone([1.0, -1.0], labels=[2, 0]))
    found = certify_softmax(network, task)
    assert found.certified
    assert (found.checked, found.examples, found.errors, found.undecided) == (2, 2, 0, 0)
    assert (found.smallest_margin, found.counterexample, found.found) == (1.0, None, "")
    assert found.statement == "The label's logit is the largest for every example, as real numbers."
    assert found.method == "ball arithmetic, exhaustive, 64 bits"
    assert (found.weights, found.task) == (network.fingerprint, task.fingerprint)
    assert {"python", "byheart", "numpy", "python-flint"} <= set(found.versions)
    assert replace(certify(network, task), seconds=0) == replace(found, seconds=0)


@pytest.mark.parametrize(("labels", "example", "got"), [([2, 1], 1, "0"), ([0, 0], 0, "2"), ([1, 2], 0, "2")])
def test_wrong_labels_are_named(labels: list[int], example: int, got: str) -> None:
    task = QueryLabels(**alone([1.0, -1.0], labels=labels, label_count=3))
    found = certify_softmax(one_head(W_U=[1.0, 2.0, 3.0]), task)
    assert not found.certified
    assert found.errors == sum(a != b for a, b in zip(labels, [2, 0], strict=True))
    assert (found.undecided, found.smallest_margin) == (0, None)
    assert found.counterexample is not None
    assert str(found.counterexample) == f"example {example}: expected {labels[example]}, got {got}"


@pytest.mark.parametrize("label", [0, 1])
def test_an_exact_tie_is_wrong(label: int) -> None:
    """One token, so both logits are 1 without any radius."""
    found = certify_softmax(one_head(W_U=[1.0, 1.0]), QueryLabels(**alone([1.0], labels=[label], label_count=2)))
    assert not found.certified
    assert (found.errors, found.undecided) == (1, 0)
    assert found.method.endswith("64 bits")


@pytest.mark.parametrize("label", [0, 1])
def test_a_tie_with_radii_stays_undecided(label: int) -> None:
    """Two tokens: both logits are the same irrational number, which no number of bits tells apart."""
    task = QueryLabels(contexts=[[0.0], [1.0]], queries=[[1.0]], labels=[label], label_count=2)
    found = certify_softmax(one_head(W_U=[1.0, 1.0]), task)
    assert not found.certified
    assert (found.errors, found.undecided, found.checked) == (0, 1, 1)
    assert found.method.endswith("4096 bits")
    assert found.counterexample is not None
    assert found.counterexample.example == 0
    assert found.smallest_margin is None


def test_behind_one_and_in_doubt_with_another_is_wrong() -> None:
    task = QueryLabels(contexts=[[0.0], [1.0]], queries=[[1.0]], labels=[0], label_count=3)
    found = certify_softmax(one_head(W_U=[1.0, 1.0, 2.0]), task)
    assert (found.certified, found.errors, found.undecided) == (False, 1, 0)
    assert str(found.counterexample) == "example 0: expected 0, got 2"


def test_ahead_of_all_but_one_is_not_enough() -> None:
    """Labels 0, 1, 2 of logits 3, 1, 3 + 2⁻⁵¹: only the last is right."""
    network = one_head(W_U=[3.0, 1.0, float(np.nextafter(3.0, 4.0))])
    tasks = [QueryLabels(**alone([1.0], labels=[label], label_count=3)) for label in range(3)]
    assert [certify_softmax(network, task).certified for task in tasks] == [False, False, True]
    assert certify_softmax(network, tasks[2]).smallest_margin == 2.0**-51


def test_a_network_may_have_more_outputs_than_there_are_labels() -> None:
    """But they count: one that is larger than the label's is an error."""
    task = QueryLabels(**alone([1.0], labels=[1]))
    assert task.label_count == 2
    assert certify_softmax(one_head(W_U=[1.0, 2.0, 0.0]), task).certified
    found = certify_softmax(one_head(W_U=[1.0, 2.0, 5.0]), task)
    assert str(found.counterexample) == "example 0: expected 1, got 2"


def test_one_label_alone_has_no_margin() -> None:
    found = certify_softmax(one_head(W_U=[1.0]), QueryLabels(**alone([1.0, 2.0], labels=[0, 0])))
    assert (found.certified, found.smallest_margin) == (True, None)


def test_next_tokens() -> None:
    network = table([[5.0, 1.0, 0.0], [0.0, 1.0, 0.5], [-1.0, -2.0, -0.5]])
    task = NextToken(tokens=[[0], [1], [2]], labels=[0, 1, 2])
    found = certify_softmax(network, task)
    assert (found.certified, found.smallest_margin) == (True, 0.5)
    assert str(certify(network, task.with_labels([0, 1, 1])).counterexample) == "example 2: expected 1, got 2"


# Targets


def test_targets_by_hand() -> None:
    """3·(½ of 0 and ½ of 4) = 6, and 3·(¼ of 0 and ¾ of 4) = 9 up to what ln 3 is rounded by, 4 times the score."""
    task = QueryTargets(contexts=[[0.0], [4.0]], queries=[[0.0], [np.log(3) / 4]], targets=[6.0, 9.0])
    found = certify_softmax(one_head(W_V=3.0), task)
    assert found.certified
    assert found.smallest_margin == pytest.approx(1e-6, abs=1e-14)
    assert found.found.startswith("errors at most ")
    assert 0 < float(found.found.removeprefix("errors at most ")) < 1e-14
    assert found.statement == "The network's output lies within 1e-06 of the target for every example, as real numbers."


def test_vectors_are_judged_coordinate_by_coordinate() -> None:
    """W_O = (1, −2, ½) makes (2, −4, 1) of a value of 2; one coordinate that is off is one answer that is wrong."""
    network = one_head().with_tensor("W_O", np.array([[[1.0, -2.0, 0.5]]]))
    task = QueryTargets(**alone([2.0, 4.0], targets=[[2, -4, 1], [4, -8, 2]]))
    found = certify_softmax(network, task)
    assert found.certified
    assert (found.checked, found.found) == (6, "errors at most 0")
    assert "of the target for every example, in each of 3 coordinates, as real" in found.statement
    found = certify_softmax(network, task.with_answers([[2, -4, 1], [4, -8.5, 2.25]]))
    assert (found.certified, found.errors, found.undecided) == (False, 2, 0)
    assert str(found.counterexample) == "example 1: expected -8.5 in coordinate 1, got -8"
    for outputs in (1, 2, 4):
        with pytest.raises(BadInput, match=rf"^the network has 3 outputs; the task asks for {outputs}$"):
            certify_softmax(network, task.with_answers(np.zeros((2, outputs))))


@pytest.mark.parametrize(
    ("steps", "certified"), [(-2, True), (-1, True), (0, False), (1, False)], ids=["inside", "just", "at it", "outside"]
)
@pytest.mark.parametrize("side", [1, -1])
def test_the_edge_of_the_tolerance(steps: int, certified: bool, side: int) -> None:
    """Output 1 exactly, tolerance 2⁻²⁰, targets at 2⁻²⁰ and a few times 2⁻⁵² from it: exact in float64."""
    target = 1 + side * (2.0**-20 + steps * 2.0**-52)
    found = certify_softmax(one_head(), QueryTargets(**alone([1.0], targets=[target])), tolerance=2.0**-20)
    assert found.certified == certified
    assert (found.errors, found.undecided) == (0 if certified else 1, 0)
    if certified:
        assert found.smallest_margin == -steps * 2.0**-52
    else:
        assert found.counterexample is not None
        assert (found.counterexample.expected, found.counterexample.got) == (target, "1")


def test_a_wrong_target_is_named_among_right_ones() -> None:
    network, inputs = drawn("own", examples=70)
    true = evaluate(network, inputs)[:, 0]
    task = QueryTargets(contexts=inputs[0], queries=inputs[1], targets=true)
    assert certify_softmax(network, task).certified
    lie = true.copy()
    lie[66] += 2e-6
    found = certify_softmax(network, task.with_answers(lie))
    assert (found.certified, found.errors, found.checked) == (False, 1, 70)
    assert found.counterexample is not None
    assert (found.counterexample.example, found.counterexample.expected) == (66, lie[66])
    assert float(found.counterexample.got) == pytest.approx(true[66], rel=1e-9)
    assert certify_softmax(network, task.with_answers(lie), tolerance=3e-6).certified


def test_an_error_below_the_last_bit_of_the_tolerance_is_not_nothing() -> None:
    """(1 + e)⁻¹ is irrational, so its rounding is off: the largest error is about 10⁻¹⁷, and not 0."""
    rounded = float(1 / (1 + np.exp(1.0)))
    task = QueryTargets(contexts=[[1.0], [0.0]], queries=[[-1.0]], targets=[rounded])
    found = certify_softmax(one_head(), task, tolerance=0.5)
    assert found.certified
    assert float(found.found.removeprefix("errors at most ")) > 0


# Bits


TINY = 2.0**-52
HARD = SoftmaxNetwork(
    W_Q=np.array([1, 1 + TINY])[:, None, None],
    W_K=np.array([1, 1 - TINY])[:, None, None],
    W_V=np.array([1.0, -1.0])[:, None, None],
    W_O=np.ones((2, 1, 1)),
    W_U=np.array([[1.0, -1.0]]),
)
"""Query-key products 1 and (1 + 2⁻⁵²)(1 − 2⁻⁵²) = 1 − 2⁻¹⁰⁴, values 1 and −1: the heads all but cancel.

On tokens 0 and ε, query 1, the first head's weight of ε is ε/4·2⁻¹⁰⁴ larger; so z is ε²·2⁻¹⁰⁶, label 0 by twice that.
"""


def hard(label: int) -> QueryLabels:
    """ε = 2⁻³⁰: label 0, by 2⁻¹⁶⁵."""
    return QueryLabels(contexts=[[[0.0], [2.0**-30]]], queries=[[1.0]], labels=[label], label_count=2)


def test_bits_grow_until_there_is_no_doubt() -> None:
    network, task = HARD, hard(0)
    for most, bits in ((64, 64), (96, 96), (128, 128)):
        found = certify_softmax(network, task, most_bits=most)
        assert (found.certified, found.errors, found.undecided) == (False, 0, 1)
        assert found.method == f"ball arithmetic, exhaustive, {bits} bits"
        assert found.counterexample is not None
        assert found.counterexample.example == 0
    found = certify_softmax(network, task, most_bits=256)
    assert (found.certified, found.errors, found.undecided) == (True, 0, 0)
    assert found.method == "ball arithmetic, exhaustive, 256 bits"
    assert found.smallest_margin is not None
    assert found.smallest_margin == pytest.approx(2.0**-165, rel=1e-6)
    assert replace(certify_softmax(network, task), seconds=0) == replace(found, seconds=0)


def test_with_enough_bits_the_other_label_is_wrong_and_not_undecided() -> None:
    network, task = HARD, hard(1)
    assert layered.judge(network, task, most_bits=128).undecided == 1
    judged = layered.judge(network, task)
    assert (judged.undecided, judged.errors, judged.certified) == (0, 1, False)
    assert judged.method == "ball arithmetic, exhaustive, 256 bits"


@pytest.mark.parametrize("shared", [False, True])
def test_only_what_is_in_doubt_is_evaluated_again(shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """ε = 1, 2⁻³⁰, 2, in the tokens or, over the shared tokens 0 and 1, in the queries: the second takes 256 bits."""
    sizes = [1.0, 2.0**-30, 2.0]
    contexts, queries = [[[0.0], [x]] for x in sizes], [[1.0]] * 3
    if shared:
        contexts, queries = [[0.0], [1.0]], [[x] for x in sizes]
    task = QueryLabels(contexts=contexts, queries=queries, labels=[0, 0, 0], label_count=2)
    seen: list[tuple[int, int]] = []
    real = layered.enclose

    def watched(network: SoftmaxNetwork, inputs: Inputs, *, bits: int, report: object) -> object:
        seen.append((len(inputs[0]), bits))
        return real(network, inputs, bits=bits, report=report)

    monkeypatch.setattr(layered, "enclose", watched)
    judged = layered.judge(HARD, task)
    assert seen == [(3, 64), (3, 128), (1, 256)]
    assert (judged.certified, judged.checked) == (True, 3)
    few = layered.judge(HARD, task, most_bits=128)
    assert (few.undecided, few.errors, few.certified) == (1, 0, False)
    assert few.counterexample is not None
    assert few.counterexample.example == 1


def test_targets_may_take_more_bits_too() -> None:
    """The output is 2⁻¹⁶⁶ (twice, as W_U doubles nothing), the target 0, and the tolerance just above or below it."""
    network = SoftmaxNetwork(**{name: tensor for name, tensor in HARD.by_name().items() if name != "W_U"})
    task = QueryTargets(contexts=[[[0.0], [2.0**-30]]], queries=[[1.0]], targets=[0.0])
    above, below = (layered.judge(network, task, JudgeOptions(tolerance=share * 2.0**-166)) for share in (1.001, 0.999))
    assert (above.certified, above.undecided) == (True, 0)
    assert (below.certified, below.undecided, below.errors) == (False, 0, 1)
    assert above.method == below.method == "ball arithmetic, exhaustive, 256 bits"


# Distributions


def divergence(network: SoftmaxNetwork, task: NextTokenDistribution, weights: list[float]) -> float:
    """In floats, as the textbook has it, from the network's float outputs."""
    logits = evaluate(network, (task.tokens, None))
    q = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    p = task.probabilities
    each = np.where(p > 0, p * (np.log(np.where(p > 0, p, 1)) - np.log(q)), 0).sum(axis=1)
    return float(np.average(each, weights=weights))


LOGITS = [[0.3, -1.0, 2.0], [0.0, 0.0, 0.0], [5.0, -5.0, 1.0]]
P = [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0]]


@pytest.mark.parametrize("weights", [None, [0.7, 0.2, 0.1], [0.0, 1.0, 0.0]], ids=str)
def test_divergence_against_floats(weights: list[float] | None) -> None:
    """Certified a billionth above what it is, refused a billionth below; zeros of p count nothing."""
    network = table(LOGITS)
    task = NextTokenDistribution(tokens=[[0], [1], [2]], probabilities=P, weights=weights)
    true = divergence(network, task, weights or [1 / 3] * 3)
    assert true > 0.05
    above = certify_softmax(network, task, tolerance=true * (1 + 1e-9))
    assert (above.certified, above.errors, above.undecided) == (True, 0, 0)
    assert above.smallest_margin == pytest.approx(true * 1e-9, rel=1e-4)
    said = float(above.found.removeprefix("divergence at most ").removesuffix(" nats"))
    assert true * (1 - 1e-12) <= said <= true * (1 + 1e-5)
    assert above.statement.endswith(f"exceeds the entropy of the data by at most {true * (1 + 1e-9)!r} nats.")
    below = certify_softmax(network, task, tolerance=true * (1 - 1e-9))
    assert (below.certified, below.undecided, below.smallest_margin) == (False, 0, None)
    assert below.errors >= 1
    assert below.counterexample is not None


@given(st.integers(0, 2**32))
def test_divergence_of_random_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = table((4 * rng.standard_normal((4, 4))).tolist())
    task = NextTokenDistribution(tokens=[[0], [1], [2], [3]], probabilities=rng.dirichlet(np.full(4, 0.5), size=4))
    true = divergence(network, task, [0.25] * 4)
    assert certify_softmax(network, task, tolerance=true * (1 + 1e-6) + 1e-12).certified
    assert not certify_softmax(network, task, tolerance=true * (1 - 1e-6) - 1e-12).certified


def test_a_divergence_at_most_is_at_least_the_divergence() -> None:
    for scale in (1.0, 0.5, 0.25, 0.1):
        network = table([[scale * x for x in row] for row in LOGITS])
        task = NextTokenDistribution(tokens=[[0], [1], [2]], probabilities=P)
        said = float(re.fullmatch(r"divergence at most (\S+) nats", certify_softmax(network, task).found)[1])
        assert said >= divergence(network, task, [1 / 3] * 3) * (1 - 1e-12)


def test_the_worst_example_is_named() -> None:
    network, task = table(LOGITS), NextTokenDistribution(tokens=[[0], [1], [2]], probabilities=P)
    each = [divergence(network, task, row) for row in np.eye(3).tolist()]
    assert max(each) == each[0]
    found = certify_softmax(network, task, tolerance=0.01)
    assert found.counterexample is not None
    assert found.counterexample.example == 0
    assert found.counterexample.expected == "a divergence of at most 0.01 on average"
    assert float(found.counterexample.got) == pytest.approx(each[0], rel=1e-5)
    assert found.errors == sum(value >= 0.01 for value in each)


def test_logits_that_are_the_distribution() -> None:
    """KL = 0 but for the rounding of ln 3, less than 10⁻³⁰: certified at once."""
    task = NextTokenDistribution(tokens=[[0], [1]], probabilities=[[0.25, 0.75], [0.5, 0.5]])
    found = certify_softmax(table([[0.0, np.log(3)], [7.0, 7.0]]), task)
    assert found.certified
    assert float(re.fullmatch(r"divergence at most (\S+) nats", found.found)[1]) < 1e-15


def test_a_certain_answer_and_huge_logits() -> None:
    """p = (1, 0): KL = log(1 + e⁻¹⁰⁰⁰⁰), far below float64; and 10000 nats if the other one is said."""
    right, wrong = table([[1e4, 0.0], [0.0, 0.0]]), table([[0.0, 1e4], [0.0, 0.0]])
    task = NextTokenDistribution(tokens=[[0]], probabilities=[[1.0, 0.0]])
    assert certify_softmax(right, task, tolerance=1e-15).certified
    found = certify_softmax(wrong, task, tolerance=9999.0)
    assert not found.certified
    assert certify_softmax(wrong, task, tolerance=10000.5).certified
    assert found.counterexample is not None
    assert float(found.counterexample.got) == pytest.approx(1e4, rel=1e-5)


def test_a_divergence_that_takes_more_bits_than_allowed_is_undecided() -> None:
    """ln 3 is known to float64 as well as to nobody: with a tolerance below 10⁻²⁰ 64 bits leave it open, 256 do not."""
    network = table([[0.0, np.log(3)], [0.0, 0.0]])
    task = NextTokenDistribution(tokens=[[0]], probabilities=[[0.25, 0.75]])
    few = certify_softmax(network, task, tolerance=1e-25, most_bits=64)
    assert (few.certified, few.undecided) == (False, 1)
    many = certify_softmax(network, task, tolerance=1e-25)
    assert (many.certified, many.undecided) == (True, 0)
    assert int(re.search(r"(\d+) bits", many.method)[1]) > 64


# Lies


def targets_task(seed: int = 0) -> tuple[SoftmaxNetwork, QueryTargets]:
    network, inputs = drawn("own", seed=seed, examples=6)
    targets = evaluate(network, inputs)[:, 0]
    return network, QueryTargets(contexts=inputs[0], queries=inputs[1], targets=targets)


def test_one_weight_changed_by_a_thousandth_names_the_example_that_feels_it() -> None:
    """Each context holds one coordinate alone; a value that only example 2 reads is changed."""
    values = np.array([[[1.0], [2.0], [3.0], [4.0]]])
    zeros = np.zeros((1, 4, 1))
    network = SoftmaxNetwork(W_Q=zeros, W_K=zeros, W_V=values, W_O=np.ones((1, 1, 1)))
    task = QueryTargets(contexts=np.eye(4)[:, None], queries=np.zeros((4, 4)), targets=[1.0, 2.0, 3.0, 4.0])
    assert certify(network, task).certified
    changed = values.copy()
    changed[0, 2, 0] += 1e-3
    found = certify(network.with_tensor("W_V", changed), task)
    assert (found.certified, found.errors, found.undecided) == (False, 1, 0)
    assert str(found.counterexample) == "example 2: expected 3.0, got 3.001"


@pytest.mark.parametrize("seed", range(5))
def test_controls_on_targets(seed: int) -> None:
    network, task = targets_task(seed)
    before = network.fingerprint
    shuffled, nudged = controls(network, task, np.random.default_rng(seed))
    assert (shuffled.name, nudged.name) == ("shuffled answers", "perturbed weight")
    for control in (shuffled, nudged):
        assert control.found is True
        assert control.verdict.errors > 0
        assert control.verdict.counterexample is not None
    assert re.fullmatch(r"[2-6] of 6 answers wrong", shuffled.detail)
    assert re.fullmatch(r"W_[QKVO]\[\d+\] \+ [\d.]+, try \d+: [1-6] of 6 answers wrong", nudged.detail)
    assert network.fingerprint == before
    assert certify(network, task).certified


@given(st.integers(0, 2**32))
@settings(max_examples=20)
def test_shuffled_answers_are_a_lie(seed: int) -> None:
    """Also with two examples, where every second shuffle is the truth."""
    network, task = one_head(), QueryTargets(**alone([1.0, 2.0], targets=[1, 2]))
    shuffled, _ = controls(network, task, np.random.default_rng(seed))
    assert shuffled.found is True
    assert shuffled.detail == "2 of 2 answers wrong"
    assert str(shuffled.verdict.counterexample) == "example 0: expected 2.0, got 1"


def test_controls_on_labels_and_distributions() -> None:
    network = table([[5.0, 1.0, 0.0], [0.0, 5.0, 0.5], [-1.0, -2.0, 5.0]])
    labels = NextToken(tokens=[[0], [1], [2]], labels=[0, 1, 2])
    shuffled, nudged = controls(network, labels, np.random.default_rng(0))
    assert shuffled.found is True
    assert nudged.found is True, "labels have room, and every try takes a larger step"
    logits = evaluate(network, (labels.tokens, None))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    distributions = NextTokenDistribution(tokens=labels.tokens, probabilities=p)
    assert certify(network, distributions, tolerance=1e-12).certified
    shuffled, nudged = controls(network, distributions, np.random.default_rng(0), tolerance=1e-12)
    assert shuffled.found is True
    assert nudged.found is True


def test_equal_answers_cannot_be_shuffled_into_a_lie() -> None:
    shuffled, nudged = controls(one_head(), QueryTargets(**alone([2.0, 2.0], targets=[2, 2])), np.random.default_rng(0))
    assert shuffled.found is None
    assert nudged.found is True


# Refusals


@pytest.mark.parametrize(
    ("network", "task", "message"),
    [
        (
            table(LOGITS),
            SeqToSeq(tokens=[[0]], labels=[[0]]),
            "the network answers once for a sequence; the task is seq-to-seq",
        ),
        (
            table(LOGITS),
            NextToken(vectors=[[[0.0]]], labels=[0]),
            "the network reads token ids, or contexts with queries; this task has vectors",
        ),
        (
            table(LOGITS),
            NextTokenDistribution(vectors=[[[0.0]]], probabilities=[[0.5, 0.25, 0.25]]),
            "the network reads token ids, or contexts with queries; this task has vectors",
        ),
        (
            one_head(W_U=[1.0, 2.0]),
            NextToken(tokens=[[0]], labels=[0]),
            "the network reads contexts and queries; the task has token ids",
        ),
        (
            table(LOGITS),
            QueryLabels(**alone([1.0], labels=[0])),
            "the network reads token ids; the task has contexts and queries",
        ),
        (
            one_head(W_U=[1.0, 2.0]),
            QueryTargets(**alone([1.0], targets=[0])),
            "the network has 2 outputs; the task asks for 1",
        ),
        (
            one_head(W_U=[1.0, 2.0]),
            QueryLabels(**alone([1.0], labels=[2])),
            "the network has 2 outputs; the task asks for 3",
        ),
        (
            table(LOGITS),
            NextTokenDistribution(tokens=[[0]], probabilities=[[0.5, 0.5]]),
            "the network has 3 outputs; the task asks for 2",
        ),
        (
            table(LOGITS),
            NextTokenDistribution(tokens=[[0]], probabilities=[[0.25] * 4]),
            "the network has 3 outputs; the task asks for 4",
        ),
    ],
)
def test_tasks_that_are_none_for_the_network(network: SoftmaxNetwork, task: NextToken, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        certify(network, task)
    assert str(caught.value) == message


@pytest.mark.parametrize("tolerance", [0.0, -1e-6, float("nan"), float("inf")])
def test_tolerances_that_are_none(tolerance: float) -> None:
    with pytest.raises(BadInput, match=f"^tolerance is {tolerance}; expected more than 0, and finite$"):
        certify(one_head(), QueryTargets(**alone([1.0], targets=[1])), tolerance=tolerance)


def test_exact_networks_do_not_answer_queries() -> None:
    exact = build("interpolate", NextToken(tokens=[[0], [1]], labels=[1, 0])).network
    for task in (QueryTargets(**alone([1.0], targets=[1])), QueryLabels(**alone([1.0], labels=[0]))):
        message = f"^an exact network answers next-token and seq-to-seq tasks; the task is {task.kind}$"
        with pytest.raises(BadInput, match=message):
            certify(exact, task)


# Files


CASES = {
    "targets": (one_head(), QueryTargets(**alone([1.0, 2.0], targets=[1, 2]))),
    "wrong target": (one_head(), QueryTargets(**alone([1.0, 2.0], targets=[1, 2.5]))),
    "undecided": (
        one_head(W_U=[1.0, 1.0]),
        QueryLabels(contexts=[[0.0], [1.0]], queries=[[1.0]], labels=[0], label_count=2),
    ),
    "one label": (one_head(W_U=[1.0]), QueryLabels(**alone([1.0], labels=[0]))),
    "distributions": (table(LOGITS), NextTokenDistribution(tokens=[[0], [1], [2]], probabilities=P)),
}


@pytest.mark.parametrize("case", CASES)
def test_round_trip(case: str, tmp_path: Path) -> None:
    network, task = CASES[case]
    written = certify(network, task)
    write(written, tmp_path / "c.json")
    assert read(tmp_path / "c.json") == written

    def strict(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    fields = json.loads((tmp_path / "c.json").read_text(), parse_constant=strict)
    assert set(fields) == set(Certificate.__dataclass_fields__)
    assert (fields["undecided"], fields["found"]) == (written.undecided, written.found)
    assert written.undecided == (1 if case == "undecided" else 0)
    assert (written.found != "") == (case in ("targets", "distributions"))


def test_certificates_from_before_are_read(tmp_path: Path) -> None:
    """Those of exact networks had neither ``undecided`` nor ``found``."""
    fields = certify(*CASES["targets"]).as_json()
    for name in ("undecided", "found"):
        del fields[name]
    (tmp_path / "c.json").write_text(json.dumps(fields))
    assert (read(tmp_path / "c.json").undecided, read(tmp_path / "c.json").found) == (0, "")


def test_a_folder_is_loaded_and_checked_again(tmp_path: Path) -> None:
    network, task = targets_task()
    save(network, tmp_path / "net")
    written = certify(tmp_path / "net", task)
    assert written.certified
    assert written.weights == network.fingerprint
    write(written, tmp_path / "c.json")
    before = (tmp_path / "c.json").read_bytes()
    for again in (tmp_path / "net", str(tmp_path / "net"), network):
        same = replace(recheck(tmp_path / "c.json", again, task), seconds=0, files=written.files)
        assert same == replace(written, seconds=0)
    assert (tmp_path / "c.json").read_bytes() == before


def test_recheck_believes_nothing(tmp_path: Path) -> None:
    network, task = targets_task()
    lie = task.with_answers(task.targets + 1)
    forged = replace(certify(network, lie), certified=True, errors=0, counterexample=None)
    write(forged, tmp_path / "c.json")
    assert not recheck(tmp_path / "c.json", network, lie).certified


def test_recheck_refuses_other_weights_and_other_tasks(tmp_path: Path) -> None:
    network, task = targets_task()
    write(certify(network, task), tmp_path / "c.json")
    changed = network.W_V.copy()
    changed[0, 0, 0] = np.nextafter(changed[0, 0, 0], np.inf)
    other = network.with_tensor("W_V", changed)
    save(other, tmp_path / "net")
    ours, theirs = network.fingerprint[:12], other.fingerprint[:12]
    for wrong in (other, tmp_path / "net"):
        with pytest.raises(BadInput, match=rf"c\.json: is about weights {ours}…; this network has {theirs}…$"):
            recheck(tmp_path / "c.json", wrong, task)
    lie = task.with_answers(task.targets + 1)
    message = rf"c\.json: is about task {task.fingerprint[:12]}…; this task is {lie.fingerprint[:12]}…$"
    with pytest.raises(BadInput, match=message):
        recheck(tmp_path / "c.json", network, lie)
    assert certify(other, task).certified, "one last bit is far below the tolerance: only the fingerprint tells"


def test_recheck_does_not_take_the_tolerance_of_the_certificate(tmp_path: Path) -> None:
    task = QueryTargets(contexts=[[1.0], [0.0]], queries=[[-1.0]], targets=[0.27])
    found = certify_softmax(one_head(), task, tolerance=1e-2)
    assert found.certified
    assert found.tolerance == 1e-2
    write(found, tmp_path / "c.json")
    assert recheck(tmp_path / "c.json", one_head(), task, tolerance=1e-2).certified
    assert not recheck(tmp_path / "c.json", one_head(), task).certified


def test_at_least_so_many_by_hand() -> None:
    """W_U = (1, 2, 3): 1 and 2 get label 2, −1 gets 0, and 0 ties. Asked for 2, 2, 1 and 0: two right, two wrong."""
    network, task = one_head(W_U=[1.0, 2.0, 3.0]), QueryLabels(**alone([1.0, 2.0, -1.0, 0.0], labels=[2, 2, 1, 0]))
    two, three = certify(network, task, at_least=2), certify(network, task, at_least=3)
    assert (two.certified, three.certified, certify(network, task).certified) == (True, False, False)
    assert two.statement == "The label's logit is the largest for at least 2 of 4 examples, as real numbers."
    assert (two.at_least, two.checked, two.errors, two.undecided, two.smallest_margin) == (2, 4, 2, 0, None)
    assert two.summary.startswith("2 of 4 answers right, at least 2 asked for, ball arithmetic")
    assert two.counterexample is not None
    assert two.counterexample.example == 2


def test_what_is_undecided_is_not_right_when_right_ones_are_counted() -> None:
    """Two equal logits, one the label's: 1/3 is enclosed, and never told from itself."""
    network = SoftmaxNetwork(**{name: np.ones((1, 1, 1)) for name in ("W_Q", "W_K", "W_V")}, W_O=np.ones((1, 1, 1)))
    network = replace(network, W_U=np.array([[1.0, 1.0]]))
    task = QueryLabels(contexts=[[1.0], [0.0]], queries=[[-1.0], [-2.0]], labels=[0, 1])
    found = certify(network, task, at_least=1)
    assert not found.certified
    assert found.undecided == 2


@pytest.mark.parametrize("at_least", [0, -1, 3])
def test_so_many_that_are_none(at_least: int) -> None:
    network, task = one_head(W_U=[1.0, 2.0]), QueryLabels(**alone([1.0, -1.0], labels=[1, 0]))
    with pytest.raises(BadInput, match=f"^at_least is {at_least}; expected from 1 to 2, the number of answers$"):
        certify(network, task, at_least=at_least)
    with pytest.raises(BadInput, match=r"^at_least is for labels, which are right or wrong; the task asks for real"):
        certify(one_head(), QueryTargets(**alone([1.0], targets=[1])), at_least=at_least)


def test_recheck_does_not_take_how_many_are_right_from_the_certificate(tmp_path: Path) -> None:
    network, task = one_head(W_U=[1.0, 2.0]), QueryLabels(**alone([1.0, -1.0, -2.0], labels=[1, 0, 0]))
    path = tmp_path / "c.json"
    write(certify(network, task), path)
    with pytest.raises(BadInput, match=r"claims all answers right; at least 2 were asked for: leave out --at-least$"):
        recheck(path, network, task, at_least=2)
    write(certify(network, task, at_least=3), path)
    with pytest.raises(BadInput, match=r"claims at least 3 answers right; at least 2 were asked for: give --at-least"):
        recheck(path, network, task, at_least=2)
    assert recheck(path, network, task, at_least=3).certified
    assert recheck(path, network, task).certified, "more is proved than was claimed"
    assert read(path).at_least == 3


def test_lies_are_found_where_only_some_have_to_be_right() -> None:
    """Labels 0 to 5 of six numbers, in order: shuffled, fewer than five stay; a nudged weight loses them too."""
    network = table((10 * np.eye(6)).tolist())
    task = NextToken(tokens=np.arange(6)[:, None], labels=[0, 1, 2, 3, 4, 4], label_count=6, vocab=6)
    assert certify(network, task, at_least=5).certified
    assert all(lie.found for lie in controls(network, task, np.random.default_rng(0), at_least=5))


def test_lies_within_the_tolerance_are_none() -> None:
    """Targets that differ by less than is allowed: to exchange them is no lie, and nothing need be found."""
    task = QueryTargets(contexts=[[1.0], [0.0]], queries=[[-1.0], [-1.0]], targets=[0.27, 0.2700001])
    told = controls(one_head(), task, np.random.default_rng(0), tolerance=1e-2)
    assert told[0].found is None
    assert not any(control.possible for control in told)


def test_errors_are_rounded_up() -> None:
    """Of 0.25 + 2⁻⁶⁰, 0.25 is not "at most"."""
    from flint import arb

    from byheart.networks.balls import lower, precision, upper

    with precision(200):
        ball = arb(0.25) + arb(2) ** -60
        assert lower(ball) == 0.25 < upper(ball)
        assert lower(-ball) == -upper(ball)
        assert upper(arb(2) ** -5000) > 0
        assert upper(arb(0.25)) == lower(arb(0.25)) == 0.25


def test_recheck_wants_a_tolerance_where_there_is_one(tmp_path: Path) -> None:
    """A certificate that speaks of none would claim that targets are met exactly."""
    network = SoftmaxNetwork(**dict.fromkeys(("W_Q", "W_K", "W_V", "W_O"), np.ones((1, 1, 1))))
    task = QueryTargets(contexts=[[0.0], [1.0]], queries=[[0.0]], targets=[0.5 + 1.0000002e-6])
    found = certify(network, task, tolerance=1.0000004e-6)
    assert "within 1.0000004e-06 of the target" in found.statement, "not rounded"
    write(replace(found, tolerance=None), tmp_path / "c.json")
    with pytest.raises(BadInput, match="claims a tolerance of None; "):
        recheck(tmp_path / "c.json", network, task, tolerance=1.0000004e-6)


def test_controls_where_chance_does_what_is_asked_for() -> None:
    network, task = one_head(W_U=[1.0, 2.0, 3.0]), QueryLabels(**alone([1.0, 2.0, -1.0, 0.0], labels=[2, 2, 1, 0]))
    for lie in controls(network, task, np.random.default_rng(0), at_least=1):
        assert not lie.possible

"""The judge of trained networks: right, wrong and undecided, for every kind of task; and lies."""

from typing import Any

import numpy as np
import pytest

from byheart.certificates import certify, controls
from byheart.certificates.judges import judge, layered
from byheart.certificates.judges.layered import chosen_inputs
from byheart.errors import BadInput
from byheart.networks.trained import AffineMap, Norm, StepSequence, TokenTable, TrainedAttention, TrainedNetwork
from byheart.networks.trained.evaluate import evaluate
from byheart.tasks import NextToken, NextTokenDistribution, QueryLabels, QueryTargets, SeqToSeq

from ...networks.trained.small import VOCAB, drawn


def table(logits: list[list[float]], *, dtype: type = np.float64) -> TrainedNetwork:
    """The logits of every token, as they stand there."""
    weights = {"embedding.W_E": np.array(logits, dtype), "unembedding.W_U": np.eye(len(logits[0]), dtype=dtype)}
    return TrainedNetwork((StepSequence((TokenTable("embedding.W_E"), AffineMap("unembedding.W_U"))),), weights)


def learned(kind: str = "gpt", seed: int = 3) -> tuple[TrainedNetwork, NextToken]:
    """A network, and the labels that it gives to every sequence of two tokens."""
    network, _ = drawn(kind, seed=seed, dtype=np.float32)
    tokens = np.array([[a, b] for a in range(VOCAB) for b in range(VOCAB)])
    labels = evaluate(network, (tokens, None)).argmax(axis=1)
    return network, NextToken(tokens, labels, label_count=network.outputs, vocab=VOCAB)


def test_labels_by_hand() -> None:
    """Token 0 says 0 by 2 and token 1 says 1 by ½; of equal logits none is right."""
    network = table([[3.0, 1.0], [0.5, 1.0], [7.0, 7.0]])
    found = certify(network, NextToken([[0], [1]], [0, 1], vocab=3))
    assert found.certified
    assert (found.checked, found.errors, found.undecided, found.smallest_margin) == (2, 0, 0, 0.5)
    assert found.statement == "The label's logit is the largest for every example, as real numbers."
    assert found.method == "ball arithmetic, exhaustive, 64 bits"
    lie = certify(network, NextToken([[0], [1]], [0, 0], label_count=2, vocab=3))
    assert (lie.certified, lie.errors, str(lie.counterexample)) == (False, 1, "example 1: expected 0, got 1")
    for label in (0, 1):
        tie = certify(network, NextToken([[2]], [label], label_count=2, vocab=3))
        assert (tie.certified, tie.errors, tie.undecided) == (False, 1, 0)


def test_no_number_is_not_the_largest_even_alone() -> None:
    """0/0 of the norm of equal entries: of a network with one output it was certified."""
    weights = {"E": np.array([[1.0, 1.0], [0.0, 2.0]]), "U": np.ones((1, 2))}
    network = TrainedNetwork((StepSequence((TokenTable("E"), Norm(0.0), AffineMap("U"))),), weights)
    found = certify(network, NextToken([[0], [1]], [0, 0], vocab=2))
    assert (found.certified, found.right, found.errors, found.undecided) == (False, 1, 0, 1)
    assert certify(network, NextToken([[1]], [0], vocab=2)).certified


def test_of_no_number_no_divergence_is_told() -> None:
    """A certificate that said "not certified" said "divergence at most 0 nats" too."""
    weights = {"E": np.array([[1.0, 1.0], [0.0, 2.0]]), "U": np.ones((2, 2))}
    network = TrainedNetwork((StepSequence((TokenTable("E"), Norm(0.0), AffineMap("U"))),), weights)
    found = certify(network, NextTokenDistribution([[0], [1]], [[0.5, 0.5], [0.5, 0.5]]))
    assert (found.certified, found.undecided, found.found) == (False, 2, "")
    even = certify(network, NextTokenDistribution([[1]], [[0.5, 0.5]]))
    assert (even.certified, even.found[:19]) == (True, "divergence at most ")


def test_of_some_examples_a_shared_context_stays_one_array() -> None:
    queries = np.arange(6.0).reshape(3, 2)
    task = QueryLabels(contexts=np.ones((4, 2)), queries=queries, labels=[0, 1, 0])
    contexts, asked = chosen_inputs(task, [0, 2])
    assert (contexts.shape, contexts.strides[0], contexts[1].tolist()) == ((2, 4, 2), 0, [[1.0, 1.0]] * 4)
    assert asked is not None
    assert asked.tolist() == queries[[0, 2]].tolist()
    own = QueryLabels(contexts=np.arange(24.0).reshape(3, 4, 2), queries=queries, labels=[0, 1, 0])
    assert chosen_inputs(own, [2])[0][0, 0].tolist() == [16.0, 17.0]


@pytest.mark.parametrize("kind", ["gpt", "between"])
def test_what_a_network_says_is_certified_and_nothing_else(kind: str) -> None:
    network, task = learned(kind)
    found = certify(network, task)
    assert found.certified
    assert found.method.endswith("128 bits")
    for example in (0, 7, 24):
        labels = task.labels.copy()
        labels[example] = (labels[example] + 1) % network.outputs
        wrong = certify(network, task.with_labels(labels))
        assert (wrong.certified, wrong.errors, wrong.counterexample.example) == (False, 1, example)  # type: ignore[union-attr]
        counted = certify(network, task.with_labels(labels), count=True)
        assert (counted.certified, counted.right, counted.count.named_wrong) == (True, 24, str(example))  # type: ignore[union-attr]
        assert certify(network, task.with_labels(labels), at_least=24).certified
        assert not certify(network, task.with_labels(labels), at_least=25).certified


@pytest.mark.parametrize("kind", ["gpt", "between"])
def test_lies_are_found(kind: str) -> None:
    network, task = learned(kind)
    assert [lie.found for lie in controls(network, task, np.random.default_rng(0))] == [True, True]


def test_a_perturbed_weight_is_another_network() -> None:
    network, _ = learned()
    broken, place = layered.perturbed(network, np.random.default_rng(0), 3)
    name = place.split("[", maxsplit=1)[0]
    assert (np.abs(broken.weights[name] - network.weights[name]).max()) == pytest.approx(8e-3, rel=1e-3)
    assert broken.weights[name].dtype == np.float32
    assert broken.fingerprint != network.fingerprint


def test_a_tie_with_radii_stays_undecided() -> None:
    """Two heads with equal weights give the same irrational number, which no number of bits tells from itself."""
    heads = np.ones((2, 1))
    steps = TokenTable("E"), TrainedAttention(2, 1, "Q", "Q", "Q", "O")
    weights = {"E": np.array([[0.0], [1.0]]), "Q": heads, "O": np.eye(2)}
    network = TrainedNetwork((StepSequence(steps),), weights)
    found = judge(network, NextToken([[0, 1]], [0], label_count=2, vocab=2))
    assert (found.certified, found.errors, found.undecided, found.method[-9:]) == (False, 0, 1, "4096 bits")
    assert found.counterexample is not None
    assert found.counterexample.example == 0


@pytest.mark.parametrize("kind", ["shared", "own"])
def test_queries_with_labels_and_targets(kind: str) -> None:
    network, (contexts, queries) = drawn(kind, examples=6)
    outputs = evaluate(network, (contexts, queries))
    asked: dict[str, Any] = {"contexts": contexts[0] if kind == "shared" else contexts, "queries": queries}
    labels = QueryLabels(**asked, labels=outputs.argmax(axis=1), label_count=network.outputs)
    assert certify(network, labels).certified
    targets = QueryTargets(**asked, targets=outputs)
    found = certify(network, targets, tolerance=1e-9)
    assert found.certified
    assert found.tolerance == 1e-9
    moved = QueryTargets(**asked, targets=outputs + 2e-9 * (np.arange(6) == 4)[:, None])
    lie = certify(network, moved, tolerance=1e-9)
    assert (lie.certified, lie.errors, lie.counterexample.example) == (False, network.outputs, 4)  # type: ignore[union-attr]


def test_distributions_with_a_token_that_pads() -> None:
    """What has no logit must have no probability; the divergence of a network from itself is 0."""
    network, (tokens, _) = drawn("padded", examples=6)
    logits = evaluate(network, (tokens, None))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    task = NextTokenDistribution(tokens, np.pad(p, ((0, 0), (0, 1))))
    assert certify(network, task, tolerance=1e-12).certified
    uniform = NextTokenDistribution(tokens, np.pad(np.full((6, VOCAB), 1 / VOCAB), ((0, 0), (0, 1))))
    found = certify(network, uniform)
    kl = (np.log(1 / VOCAB) - np.log(p)).mean(axis=1).mean()
    assert not found.certified
    assert f"divergence at most {kl:.3f}"[:-1] in found.found
    assert certify(network, uniform, tolerance=1.001 * kl).certified
    with pytest.raises(BadInput, match="the network has 5 outputs; the task asks for 6"):
        certify(network, NextTokenDistribution(tokens, np.full((6, VOCAB + 1), 1 / (VOCAB + 1))))


def test_tasks_that_are_none_for_the_network() -> None:
    network, task = learned()
    with pytest.raises(BadInput, match="the network has 3 outputs; the task asks for 4"):
        certify(network, NextToken(task.tokens, task.labels, label_count=4, vocab=VOCAB))
    with pytest.raises(BadInput, match="token 5 occurs; the network knows 0 to 4"):
        certify(network, NextToken([[5]], [0]))
    with pytest.raises(BadInput, match="the network answers once for a sequence; the task is seq-to-seq"):
        certify(network, SeqToSeq([[0]], [[0]]))
    with pytest.raises(BadInput, match="this task has vectors"):
        certify(network, NextToken(vectors=[[[0.5]]], labels=[0]))
    with pytest.raises(BadInput, match="tolerance is for targets and distributions"):
        certify(network, task, tolerance=1.0)
    with pytest.raises(BadInput, match="at_least is 26; expected from 1 to 25, the number of answers"):
        certify(network, task, at_least=26)
    with pytest.raises(BadInput, match="radius is an option for an exact network; this is a trained network"):
        certify(network, task, radius=1.0)

"""madden-2024: any next-token distributions, reached to ω·floor nats, with as many parameters as the bound counts."""

import math
import re
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byheart
from byheart.bounds.madden_2024 import needed, sufficient
from byheart.constructions.built import Built
from byheart.constructions.madden_2024 import MaddenSettings
from byheart.errors import BadInput
from byheart.networks.softmax import SoftmaxNetwork
from byheart.tasks import (
    NextToken,
    NextTokenDistribution,
    random_distribution,
    random_next_token,
    random_seq_to_seq,
    shuffled,
)
from byheart.tasks.corpus import corpus_distribution, entropy_bound
from byheart.tasks.shipped import library_docstrings

NAME = "madden-2024"
FLOOR = 1e-12
Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


def contexts(examples: int, length: int, vocab: int, rng: np.random.Generator) -> Ids:
    """Different contexts, reorderings of each other among them."""
    seen: dict[tuple[int, ...], None] = {}
    while len(seen) < examples:
        row = rng.integers(vocab, size=length)
        seen[tuple(row.tolist())] = None
        if len(seen) < examples:
            seen[tuple(rng.permutation(row).tolist())] = None
    return np.array(list(seen))


def drawn(examples: int, length: int, vocab: int, seed: int = 0, weighted: bool = False) -> NextTokenDistribution:
    rng = np.random.default_rng(seed)
    return NextTokenDistribution(
        tokens=contexts(examples, length, vocab, rng),
        probabilities=rng.dirichlet(np.ones(vocab), examples),
        weights=rng.dirichlet(np.ones(examples)) if weighted else None,
    )


def built(task: NextTokenDistribution, seed: int = 0, **given: Any) -> Built:
    return byheart.build(NAME, task, seed=seed, settings=MaddenSettings(**given))


def network_of(made: Built) -> SoftmaxNetwork:
    assert isinstance(made.network, SoftmaxNetwork)
    return made.network


def logits_of(network: SoftmaxNetwork, tokens: Ids) -> Floats:
    """One head without skip connection, tanh units, W_U: one context after the other."""
    assert network.W_E is not None
    assert network.W_pos is not None
    assert network.W_in is not None
    assert network.b_in is not None
    assert network.W_U is not None
    rows = []
    for context in tokens:
        x = [network.W_E[token] + network.W_pos[place] for place, token in enumerate(context)]
        scores = [float((one @ network.W_K[0]) @ (x[-1] @ network.W_Q[0])) for one in x]
        raised = [math.exp(score - max(scores)) for score in scores]
        z = sum(weight * one for weight, one in zip(raised, x, strict=True)) / math.fsum(raised)
        rows.append(np.tanh(z @ network.W_V[0] @ network.W_O[0] @ network.W_in + network.b_in) @ network.W_U)
    return np.array(rows)


def divergence_of(network: SoftmaxNetwork, task: NextTokenDistribution) -> float:
    """Σ_t π_t KL(p_t ‖ softmax(logits_t))."""
    logits, p = logits_of(network, task.inputs), task.probabilities
    logs = logits - logits.max(axis=1, keepdims=True)
    logs = logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))
    return float(task.likelihoods @ (p * (np.log(np.where(p > 0, p, 1)) - logs)).sum(axis=1))


@settings(max_examples=30)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_random_shapes(data: st.DataObject, seed: int) -> None:
    """N from 1 to 60, ω from 2 to 20, n from 1 to 10, d = 1 and 4, weights or none; counted once more by a loop."""
    vocab, length = data.draw(st.integers(2, 20), label="ω"), data.draw(st.integers(1, 10), label="n")
    examples = data.draw(st.integers(1, min(60, vocab**length)), label="N")
    d, weighted = data.draw(st.sampled_from([1, 4]), label="d"), data.draw(st.booleans(), label="weighted")
    task = drawn(examples, length, vocab, seed, weighted)
    made = built(task, seed % 1000, model_dim=d)
    assert byheart.certify(made.network, task, tolerance=1e-6).certified
    assert byheart.certify(made.network, task, tolerance=vocab * FLOOR + 1e-12).certified
    assert divergence_of(network_of(made), task) < 1e-9
    if d == 1:
        assert made.account.dense == sufficient(examples, length, vocab)
    assert made.chosen["needed_by_any_model"] == examples * (vocab - 1) == needed(examples, vocab)


@pytest.mark.parametrize("floor", [1e-12, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("d", [1, 4])
def test_zero_probabilities_cost_at_most_the_floor_for_each_token(floor: float, d: int) -> None:
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(9), 30)
    rows[rng.random(rows.shape) < 0.5] = 0
    rows[:10] = np.eye(9)[rng.integers(9, size=10)]
    rows[10] = np.eye(9)[0]
    rows[rows.sum(axis=1) == 0] = 1
    task = NextTokenDistribution(tokens=contexts(30, 4, 9, rng), probabilities=rows / rows.sum(axis=1, keepdims=True))
    network = network_of(built(task, model_dim=d, floor=floor))
    assert byheart.certify(network, task, tolerance=9 * floor + 1e-12).certified
    zeros = (rows == 0).sum(axis=1).mean()
    assert divergence_of(network, task) == pytest.approx(zeros * floor, rel=0.1, abs=1e-12)
    assert not byheart.certify(network, task, tolerance=zeros * floor / 2).certified, "and it does cost that"


def test_probabilities_below_the_floor_are_raised_to_it() -> None:
    task = NextTokenDistribution(tokens=[[0], [1]], probabilities=[[1 - 1e-13, 1e-13], [1 - 1e-15, 1e-15]])
    network = network_of(built(task))
    assert byheart.certify(network, task, tolerance=2 * FLOOR + 1e-12).certified
    logits = logits_of(network, task.inputs)
    assert np.exp(logits[:, 1]) == pytest.approx([1e-12, 1e-12], rel=1e-6)


@pytest.mark.parametrize("d", [1, 4])
def test_every_context_of_bits(d: int) -> None:
    """All 2⁶ orders of two tokens, each with a distribution of its own: attention tells reorderings apart."""
    task = random_distribution(examples=64, length=6, vocab=2, shape="every", rng=np.random.default_rng(0))
    made = built(task, model_dim=d)
    assert byheart.certify(made.network, task).certified
    assert made.chosen["contexts"] == 64


def test_the_logits_are_the_logarithms_themselves() -> None:
    """Not only up to a constant a row: that is what is solved for."""
    task = drawn(40, 3, 7)
    assert logits_of(network_of(built(task)), task.inputs) == pytest.approx(np.log(task.probabilities), abs=1e-9)


def test_units_are_one_step_each() -> None:
    """Sorted by z the units' matrix is −1 above the diagonal, +1 on it and below: its condition number is N."""
    task = drawn(25, 3, 7)
    made = built(task)
    network = network_of(made)
    hidden = logits_of(network.with_tensor("W_U", np.eye(25)), task.inputs)
    assert np.abs(np.abs(hidden) - 1).max() < 1e-15
    order = np.argsort(hidden.sum(axis=1))
    expected = np.where(np.tri(25, dtype=bool), 1.0, -1.0)
    columns = np.argsort(-hidden.sum(axis=0))
    assert np.array_equal(hidden[order][:, columns].round(), expected)
    assert made.chosen["condition"] == pytest.approx(25)


def test_two_contexts_by_hand() -> None:
    """Contexts [0] and [1], n = d = 1: z_t = W_V W_O (W_E[t] + W_pos), two different numbers, gap g apart.

    The first unit's threshold is ½ below the lower z, slope 40: tanh 20 = 1 there, and 1 above. The second's is in the
    middle, slope 40/g: ∓1. So the units are (1, −1) and (1, 1), and W_U has the rows (a + b)/2 and (b − a)/2, where a
    and b are the logarithms asked for at the lower and at the upper z.
    """
    task = NextTokenDistribution(tokens=[[0], [1]], probabilities=[[0.25, 0.75], [0.5, 0.5]])
    made = built(task)
    network = network_of(made)
    assert network.W_E is not None
    assert network.W_pos is not None
    assert network.W_in is not None
    assert network.b_in is not None
    assert network.W_U is not None
    z = ((network.W_E + network.W_pos) @ network.W_V[0] @ network.W_O[0])[:, 0]
    low, high = np.sort(z)
    slopes = [40, 40 / (high - low)]
    assert network.W_in[0] == pytest.approx(slopes)
    assert network.b_in == pytest.approx([-slopes[0] * (low - 0.5), -slopes[1] * (low + high) / 2])
    a, b = np.log(task.probabilities)[np.argsort(z)]
    assert np.abs(network.W_U - [(a + b) / 2, (b - a) / 2]).max() < 1e-12
    assert made.account.dense == 2 * 2 + 2 * 2 + 2 + 1 + 4 == sufficient(2, length=1, vocab=2)
    assert byheart.certify(network, task).certified


def test_one_context() -> None:
    task = NextTokenDistribution(tokens=[[1, 0, 1]], probabilities=[[0.125, 0.875]])
    made = built(task)
    assert made.account.dense == sufficient(1, length=3, vocab=2)
    assert byheart.certify(made.network, task).certified


@pytest.mark.parametrize(("d", "d_h"), [(4, 1), (4, 4), (3, 2)])
def test_parameters_in_more_dimensions(d: int, d_h: int) -> None:
    task = drawn(10, 3, 5)
    made = built(task, model_dim=d, head_dim=d_h)
    assert made.account.dense == 5 * d + 3 * d + 4 * d * d_h + 10 * d + 10 + 10 * 5
    assert byheart.certify(made.network, task).certified


def test_a_context_that_is_given_twice_has_one_unit() -> None:
    rows = [[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.5, 0.25, 0.25]]
    task = NextTokenDistribution(tokens=[[0, 1], [1, 0], [0, 1]], probabilities=rows, weights=[0.5, 0.3, 0.2])
    made = built(task)
    assert made.chosen["contexts"] == 2
    assert made.account.dense == sufficient(2, length=2, vocab=3)
    assert byheart.certify(made.network, task).certified


def test_contradicting_contexts_are_named() -> None:
    rows = [[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.25, 0.5, 0.25]]
    task = NextTokenDistribution(tokens=[[0, 1], [1, 0], [0, 1]], probabilities=rows)
    message = (
        f"{NAME} cannot memorize this task: example 0 and example 2 are equal sequences: "
        "asked for probability 0.5 of token 0 and probability 0.25 of token 0"
    )
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        built(task)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"floor": 0.0}, "floor is 0.0; expected more than 0 and at most 1e-3"),
        ({"floor": -1e-9}, "floor is -1e-09; expected more than 0 and at most 1e-3"),
        ({"floor": 0.0011}, "floor is 0.0011; expected more than 0 and at most 1e-3"),
        ({"floor": math.nan}, "floor is nan; expected more than 0 and at most 1e-3"),
        ({"model_dim": 0}, "model_dim is 0 and head_dim 0; expected 1 ≤ d_h ≤ d"),
        ({"model_dim": 3, "head_dim": 4}, "model_dim is 3 and head_dim 4; expected 1 ≤ d_h ≤ d"),
        ({"head_dim": 0}, "model_dim is 1 and head_dim 0; expected 1 ≤ d_h ≤ d"),
    ],
)
def test_settings_that_make_no_network_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        built(drawn(4, 2, 5), **given)


def test_tasks_of_other_kinds_are_refused() -> None:
    rng = np.random.default_rng(0)
    what = f"{NAME} memorizes next-token and next-token-distribution tasks over token ids; the task is"
    with pytest.raises(BadInput, match=f"^{what} next-token, of vectors$"):
        byheart.build(NAME, random_next_token(examples=3, length=2, vocab=9, labels=9, dim=2, rng=rng))
    with pytest.raises(BadInput, match=f"^{what} seq-to-seq$"):
        byheart.build(NAME, random_seq_to_seq(examples=3, length=2, vocab=9, labels=9, rng=rng))
    with pytest.raises(BadInput, match=f"^{what} next-token-distribution"):
        built(random_distribution(examples=3, length=2, vocab=9, dim=2, rng=rng))


def test_more_than_five_thousand_contexts_are_refused() -> None:
    rng = np.random.default_rng(0)
    task = NextTokenDistribution(tokens=contexts(5001, 9, 5, rng), probabilities=rng.dirichlet(np.ones(5), 5001))
    with pytest.raises(BadInput, match=r"solves a dense system, one row per example; got 5001, expected at most 5000$"):
        built(task)


def test_the_same_seed_gives_the_same_network_and_another_another() -> None:
    task = drawn(20, 3, 9)
    one, two, other = (network_of(built(task, seed)) for seed in (3, 3, 4))
    for (name, tensor), (_, again), (_, else_) in zip(one.tensors(), two.tensors(), other.tensors(), strict=True):
        assert np.array_equal(tensor, again), name
        assert not np.array_equal(tensor, else_), name


@pytest.mark.parametrize("d", [1, 4])
def test_shuffled_distributions_and_a_nudged_weight_are_found_out(d: int) -> None:
    task = drawn(20, 3, 9)
    network = network_of(built(task, model_dim=d))
    assert not byheart.certify(network, shuffled(task, np.random.default_rng(0))).certified
    assert byheart.certify(network, task, tolerance=1e-9).certified
    assert network.W_U is not None
    nudged = network.W_U.copy()
    nudged[0, 0] += 1e-3
    assert not byheart.certify(network.with_tensor("W_U", nudged), task, tolerance=1e-9).certified


def test_one_wrong_context_among_many_is_found_out() -> None:
    """The loss is an average; a context of probability 1/40 that swaps two tokens is still seen."""
    task = drawn(40, 3, 7)
    rows = task.probabilities.copy()
    rows[17, [0, 1]] = rows[17, [1, 0]]
    assert abs(rows[17, 0] - rows[17, 1]) > 0.01
    certificate = byheart.certify(built(task).network, task.with_answers(rows))
    assert not certificate.certified
    assert certificate.counterexample is not None
    assert certificate.counterexample.example == 17


@pytest.mark.slow
def test_what_python_says_of_itself() -> None:
    """The thousand most frequent pairs of words in documentation strings of the standard library, ω = 500.

    The network's training loss is the entropy of the data, to 1e-6 nats: that is certified, and counted once more here.
    """
    texts = ["\n\n".join(found) for found in islice(library_docstrings(), 80)]
    corpus = corpus_distribution(texts, length=2, vocab=500, examples=1000)
    task = corpus.task()
    made = built(task)
    assert made.account.dense == sufficient(1000, length=2, vocab=500) == 500 * 1000 + 2 * 1000 + 500 + 2 + 4
    assert byheart.certify(made.network, task).certified
    network = network_of(made)
    logits = logits_of(network, task.inputs)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    shares = corpus.counts / corpus.counts.sum()
    loss = -float((shares * logs).sum())
    assert loss == pytest.approx(entropy_bound(task.probabilities, task.likelihoods), abs=1e-6)
    assert loss > 0.5, "the distributions are not all certain"


@pytest.mark.parametrize(("N", "n", "vocab", "labels"), [(1, 1, 1, 1), (2, 1, 4, 3), (40, 3, 9, 5), (120, 6, 20, 2)])
def test_labels_are_memorized_too(N: int, n: int, vocab: int, labels: int) -> None:
    """Logits 1 and 0: C columns of W_U, and the label's logit is the largest, in balls."""
    rng = np.random.default_rng(1)
    task = random_next_token(examples=N, length=n, vocab=vocab, labels=labels, rng=rng)
    found = byheart.build(NAME, task)
    assert found.account.dense == vocab + n + 4 + 2 * N + N * labels
    assert "needed_by_any_model" not in found.chosen
    assert byheart.certify(found.network, task).certified
    lie = task.with_labels((task.labels + 1) % labels)
    assert byheart.certify(found.network, lie).certified is (labels == 1)
    clash = NextToken(tokens=[[0, 1], [0, 1]], labels=[0, 1])
    with pytest.raises(BadInput, match="example 0 and example 1"):
        byheart.build(NAME, clash)

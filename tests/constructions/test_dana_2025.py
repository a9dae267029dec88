"""dana-2025: as many associations as H·d_h + d, not one more; distributions as near as the best encoder comes."""

import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byheart
from byheart.bounds.dana_2025 import capacity, sufficient
from byheart.constructions import find
from byheart.constructions.built import Built
from byheart.constructions.dana_2025 import DanaSettings
from byheart.constructions.dana_2025.solving import Asked, DanaShape, OtherContexts, draw, features, fits
from byheart.constructions.gadgets.encoder import best_encoder
from byheart.constructions.gadgets.linear_system import BeyondCapacity, factor
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

NAME = "dana-2025"
Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


def contexts(examples: int, length: int, vocab: int, rng: np.random.Generator, last: int | None = None) -> Ids:
    """Different contexts; the first ``last`` (all tokens, if None) end in different tokens, and so do the others."""
    last = vocab if last is None else last
    seen: dict[tuple[int, ...], None] = {}
    while len(seen) < examples:
        row = (*rng.integers(vocab, size=length - 1).tolist(), len(seen) % last)
        seen[row] = None
    return np.array(list(seen))


def drawn(examples: int, length: int, vocab: int, labels: int, seed: int = 0, last: int | None = None) -> NextToken:
    rng = np.random.default_rng(seed)
    tokens = contexts(examples, length, vocab, rng, last)
    return NextToken(tokens=tokens, labels=rng.integers(labels, size=examples), label_count=labels, vocab=vocab)


def built(task: NextToken | NextTokenDistribution, seed: int = 0, **given: Any) -> Built:
    return byheart.build(NAME, task, seed=seed, settings=DanaSettings(**given))


def network_of(made: Built) -> SoftmaxNetwork:
    assert isinstance(made.network, SoftmaxNetwork)
    return made.network


def logits_of(network: SoftmaxNetwork, tokens: Ids) -> Floats:
    """W_Uᵀ(x_n + Σ_h W_Oʰᵀ W_Vʰᵀ Σ_s a_s x_s), one context, one head, one token after the other."""
    assert network.W_E is not None
    assert network.W_pos is not None
    assert network.W_U is not None
    rows = []
    for context in tokens:
        x = [network.W_E[token] + network.W_pos[place] for place, token in enumerate(context)]
        z = x[-1]
        for W_Q, W_K, W_V, W_O in zip(network.W_Q, network.W_K, network.W_V, network.W_O, strict=True):
            scores = [float((one @ W_K) @ (x[-1] @ W_Q)) for one in x]
            raised = [math.exp(score - max(scores)) for score in scores]
            average = sum(weight * one for weight, one in zip(raised, x, strict=True)) / math.fsum(raised)
            z = z + average @ W_V @ W_O
        rows.append(z @ network.W_U)
    return np.array(rows)


def scores_and_values(network: SoftmaxNetwork, tokens: Ids) -> tuple[Floats, Floats]:
    """(x_s W_K)·(x_n W_Q) and x_s W_V, [N, H, n] and [N, H, n, d_h]: keys, queries and values first, then products."""
    assert network.W_E is not None
    assert network.W_pos is not None
    x = network.W_E[tokens] + network.W_pos
    keys, values = (np.einsum("tsd,hdk->thsk", x, W) for W in (network.W_K, network.W_V))
    asked = np.einsum("td,hdk->thk", x[:, -1], network.W_Q)
    return np.einsum("thsk,thk->ths", keys, asked), values


def kl(logits: Floats, probabilities: Floats) -> Floats:
    """KL(p ‖ softmax(logits)) [N]."""
    logs = logits - logits.max(axis=1, keepdims=True)
    logs = logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))
    known = np.log(np.where(probabilities > 0, probabilities, 1))
    result: Floats = (probabilities * (known - logs)).sum(axis=1)
    return result


def test_two_hundred_and_ten_associations() -> None:
    """ω = 50, n = 2, d = d_h = 10, H = 20: 210, and 211 are refused."""
    task = drawn(210, 2, 50, 50)
    made = built(task, model_dim=10, head_dim=10, heads=20)
    assert made.chosen["rank"] == made.chosen["held"] == 210
    certificate = byheart.certify(made.network, task)
    assert certificate.certified
    assert (certificate.checked, certificate.undecided) == (210, 0)
    assert logits_of(network_of(made), task.inputs).argmax(axis=1).tolist() == task.labels.tolist()
    message = r"211 contexts have rank 210; expected 211\..* H = 20 heads of d_h = 10 in d = 10: H·d_h \+ d = 210\."
    with pytest.raises(BeyondCapacity, match=message) as caught:
        built(drawn(211, 2, 50, 50), model_dim=10, head_dim=10, heads=20)
    assert caught.value.rank == 210
    assert not caught.value.network.W_O.any()


@settings(max_examples=30)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_random_shapes_up_to_the_capacity(data: st.DataObject, seed: int) -> None:
    """Any N ≤ H·d_h + d contexts that end in at least d tokens; right in balls, and by an evaluation of our own."""
    d = data.draw(st.integers(2, 7), label="d")
    d_h, H = data.draw(st.integers(1, d), label="d_h"), data.draw(st.integers(1, 5), label="H")
    length, vocab = data.draw(st.integers(2, 6), label="n"), data.draw(st.integers(max(d, 8), 30), label="ω")
    labels = data.draw(st.integers(1, vocab), label="C")
    most = min(capacity(H, d_h, d), vocab ** (length - 1))
    examples = data.draw(st.one_of(st.just(most), st.integers(1, most)), label="N")
    task = drawn(examples, length, vocab, labels, seed)
    made = built(task, seed % 1000, model_dim=d, head_dim=d_h, heads=H)
    certificate = byheart.certify(made.network, task)
    assert certificate.certified, certificate.counterexample
    assert logits_of(network_of(made), task.inputs).argmax(axis=1).tolist() == task.labels.tolist()


@pytest.mark.parametrize(("d", "d_h", "H", "examples"), [(2, 2, 20, 42), (2, 1, 20, 22), (3, 2, 10, 23)])
def test_one_more_than_the_capacity_is_refused(d: int, d_h: int, H: int, examples: int) -> None:
    task = drawn(examples, 3, 20, 20)
    assert byheart.certify(built(task, model_dim=d, head_dim=d_h, heads=H).network, task).certified
    with pytest.raises(BeyondCapacity, match=re.escape(f": H·d_h + d = {examples}.")) as caught:
        built(drawn(examples + 1, 3, 20, 20), model_dim=d, head_dim=d_h, heads=H)
    assert caught.value.rank == examples


def test_a_plane_tells_a_hundred_labels_apart() -> None:
    """d = 2, a hundred points on a circle: the default."""
    task = drawn(60, 3, 100, 100)
    made = built(task)
    assert network_of(made).W_Q.shape == (29, 2, 2)
    assert byheart.certify(made.network, task).certified


@pytest.mark.parametrize("labels", [1, 2, 3])
@pytest.mark.parametrize("d", [2, 4, 6])
def test_few_labels_still_span_the_space(labels: int, d: int) -> None:
    task = drawn(3 * d + d, 2, 20, labels)
    assert byheart.certify(built(task, model_dim=d, heads=3).network, task).certified


def test_all_ask_for_one_label_out_of_many() -> None:
    task = drawn(24, 2, 20, 20)
    task = task.with_labels(np.full(24, 13))
    made = built(task, model_dim=4, heads=5)
    certificate = byheart.certify(made.network, task)
    assert certificate.certified
    assert certificate.smallest_margin is not None
    assert certificate.smallest_margin > 0


@pytest.mark.parametrize("examples", [1, 2, 5])
def test_fewer_contexts_than_dimensions(examples: int) -> None:
    task = drawn(examples, 2, 20, 20)
    made = built(task, model_dim=8)
    assert made.chosen["heads"] == 1
    assert byheart.certify(made.network, task).certified


def test_contexts_that_end_in_one_token_lower_the_capacity() -> None:
    """x_n is the same for all: one coordinate out of d. H·d_h + 1 fit, and one more does not."""
    task = drawn(2 * 4 + 1, 3, 20, 20, last=1)
    assert byheart.certify(built(task, model_dim=4, head_dim=4, heads=2).network, task).certified
    message = "H·d_h + d = 12, less 3 as the contexts end in 1 different tokens only. Take more heads"
    with pytest.raises(BeyondCapacity, match=re.escape(message)) as caught:
        built(drawn(2 * 4 + 2, 3, 20, 20, last=1), model_dim=4, head_dim=4, heads=2)
    assert caught.value.rank == 9


@pytest.mark.parametrize("last", [2, 3])
def test_contexts_that_end_in_few_tokens_lower_the_capacity(last: int) -> None:
    task = drawn(8 + last, 3, 20, 20, last=last)
    assert byheart.certify(built(task, model_dim=4, head_dim=4, heads=2).network, task).certified
    with pytest.raises(
        BeyondCapacity, match=f"less {4 - last} as the contexts end in {last} different tokens"
    ) as caught:
        built(drawn(9 + last, 3, 20, 20, last=last), model_dim=4, head_dim=4, heads=2)
    assert caught.value.rank == 8 + last


@pytest.mark.parametrize("last", [1, 3, 20])
def test_the_default_heads_are_enough_and_one_fewer_is_not(last: int) -> None:
    task = drawn(21, 3, 20, 20, last=last)
    made = built(task, model_dim=4, head_dim=3)
    heads = made.chosen["heads"]
    assert heads == -(-(21 - min(4, last)) // 3)
    assert byheart.certify(made.network, task).certified
    with pytest.raises(BeyondCapacity):
        built(task, model_dim=4, head_dim=3, heads=heads - 1)


def test_one_token_a_context_makes_heads_repeat_it() -> None:
    task = NextToken(tokens=np.arange(8)[:, None], labels=np.arange(8)[::-1].copy(), vocab=20)
    assert byheart.certify(built(task, model_dim=8, heads=3).network, task).certified
    more = NextToken(tokens=np.arange(9)[:, None], labels=np.arange(9), vocab=20)
    with pytest.raises(BeyondCapacity, match="with one token in a context a head only repeats it") as caught:
        built(more, model_dim=8, heads=3)
    assert caught.value.rank == 8


def constant(examples: int) -> NextToken:
    tokens = np.repeat(np.arange(examples)[:, None], 2, axis=1)
    return NextToken(tokens=tokens, labels=np.arange(examples)[::-1].copy(), vocab=60)


def test_constant_contexts_are_refused_by_a_hypothesis_that_is_listed() -> None:
    """Their Lemma 2 is false: a head of any dimension adds n − 1 to the rank. d + H = 14 fit, and one more does not."""
    assert byheart.certify(built(constant(14), model_dim=4, heads=10).network, constant(14)).certified
    with pytest.raises(BeyondCapacity, match="a head counts 1 at most, the rank of x_s − x_n") as caught:
        built(constant(15), model_dim=4, heads=10)
    assert caught.value.rank == 14
    for examples, verdict in ((14, "holds"), (15, "fails")):
        found = find(NAME).check(constant(examples), model_dim=4, heads=10)
        assert found[-1].name == "d_h = 1, or the features of a draw have rank N"
        assert found[-1].verdict == verdict


@pytest.mark.parametrize("query_dim", [None, 1])
@pytest.mark.parametrize("d", [2, 4])
def test_heads_of_dimension_one_hold_all_contexts_that_differ(d: int, query_dim: int | None) -> None:
    """By our lemma; constant contexts are the worst."""
    for task in (constant(42), drawn(42, 3, 20, 20)):
        chosen = {"model_dim": d, "head_dim": 1, "heads": 42 - d, "query_dim": query_dim}
        assert all(hypothesis.verdict == "holds" for hypothesis in find(NAME).check(task, **chosen))
        assert byheart.certify(built(task, **chosen).network, task).certified


def test_a_context_that_asks_twice_for_the_same_counts_once() -> None:
    once = drawn(12, 3, 20, 20)
    twice = NextToken(tokens=np.tile(once.inputs, (2, 1)), labels=np.tile(once.labels, 2), label_count=20, vocab=20)
    made = built(twice, model_dim=4, heads=2)
    assert made.chosen["held"] == 12
    assert byheart.certify(made.network, twice).certified
    one = network_of(built(once, model_dim=4, heads=2))
    for (name, tensor), (_, other) in zip(one.tensors(), network_of(made).tensors(), strict=True):
        assert np.array_equal(tensor, other), name


def test_contradicting_contexts_are_named() -> None:
    task = NextToken(tokens=[[0, 1], [2, 2], [0, 1]], labels=[0, 0, 2])
    message = (
        f"{NAME} cannot memorize this task: example 0 and example 2 are equal sequences: asked for label 0 and label 2"
    )
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        built(task)


def test_order_matters() -> None:
    task = NextToken(tokens=[[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 1, 1], [1, 0, 1]], labels=[0, 1, 2, 3, 4])
    assert byheart.certify(built(task).network, task).certified


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"head_dim": 3}, "head_dim is 3; expected 1 ≤ d_h ≤ d = 2: more than d gains nothing"),
        ({"model_dim": 4, "head_dim": 5}, "head_dim is 5; expected 1 ≤ d_h ≤ d = 4: more than d gains nothing"),
        ({"head_dim": 0}, "head_dim is 0; expected 1 ≤ d_h ≤ d = 2"),
        ({"heads": 0}, "heads is 0; expected at least 1: without attention only the last token is seen"),
        ({"model_dim": 1}, "model_dim is 1; expected at least 2: on a line argmax tells only two tokens apart"),
        ({"model_dim": 0}, "model_dim is 0; expected at least 2"),
        ({"epsilon": 0.25}, "epsilon is 0.25; expected 0: only distributions may omit contexts"),
    ],
)
def test_settings_that_do_not_fit_labels_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=f"^{re.escape(message)}"):
        built(drawn(5, 2, 20, 20), **given)


@pytest.mark.parametrize("epsilon", [-0.1, 1.0, math.nan])
def test_a_probability_of_contexts_left_out_is_below_one(epsilon: float) -> None:
    with pytest.raises(BadInput, match=f"^epsilon is {epsilon}; expected 0 ≤ ε < 1$"):
        built(every_bigram(), epsilon=epsilon)


def test_tasks_of_other_kinds_are_refused() -> None:
    rng = np.random.default_rng(0)
    what = f"{NAME} memorizes next-token and next-token-distribution tasks over token ids; the task is"
    vectors = random_next_token(examples=3, length=2, vocab=9, labels=2, dim=3, rng=rng)
    with pytest.raises(BadInput, match=f"^{what} next-token, of vectors$"):
        built(vectors)
    with pytest.raises(BadInput, match=f"^{what} next-token-distribution, of vectors$"):
        built(random_distribution(examples=3, length=2, vocab=9, dim=3, rng=rng))
    with pytest.raises(BadInput, match=f"^{what} seq-to-seq$"):
        byheart.build(NAME, random_seq_to_seq(examples=3, length=2, vocab=9, labels=2, rng=rng))


def test_more_than_five_thousand_contexts_are_refused() -> None:
    with pytest.raises(BadInput, match=r"solves a dense system, one row per example; got 5001, expected at most 5000$"):
        built(drawn(5001, 8, 20, 20))


@pytest.mark.parametrize(
    ("examples", "length", "vocab", "d", "d_h"),
    [(42, 3, 20, 2, 2), (43, 3, 20, 2, 1), (30, 2, 25, 6, 4), (3, 2, 8, 4, 4)],
)
def test_as_many_parameters_as_the_bound_counts(examples: int, length: int, vocab: int, d: int, d_h: int) -> None:
    task = drawn(examples, length, vocab, vocab)
    made = built(task, model_dim=d, head_dim=d_h)
    assert made.account.dense == sufficient(examples, length, vocab, d, d_h)
    assert byheart.certify(made.network, task).certified


def test_the_same_seed_gives_the_same_network_and_another_another() -> None:
    task = drawn(20, 3, 20, 20)
    one, two, other = (network_of(built(task, seed, model_dim=4)) for seed in (3, 3, 4))
    for (name, tensor), (_, again), (_, else_) in zip(one.tensors(), two.tensors(), other.tensors(), strict=True):
        assert np.array_equal(tensor, again), name
        assert not np.array_equal(tensor, else_), name


def test_shuffled_labels_are_found_out() -> None:
    task = drawn(20, 3, 20, 20)
    network = built(task, model_dim=4).network
    lie = shuffled(task, np.random.default_rng(1))
    certificate = byheart.certify(network, lie)
    assert not certificate.certified
    assert certificate.errors == (lie.labels != task.labels).sum() > 0


def test_a_weight_changed_by_more_than_the_margin_is_found_out() -> None:
    """Adding m to one logit's every entry flips an answer by hand: W_U of another label becomes that of the asked."""
    task = drawn(20, 3, 20, 20)
    network = network_of(built(task, model_dim=4))
    assert network.W_U is not None
    W_U = network.W_U.copy()
    asked = int(task.labels[0])
    W_U[:, (asked + 1) % 20] = 2 * W_U[:, asked]
    certificate = byheart.certify(network.with_tensor("W_U", W_U), task)
    assert not certificate.certified
    assert certificate.counterexample is not None
    assert (certificate.counterexample.example, certificate.counterexample.got) == (0, str((asked + 1) % 20))


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_other_orders_and_other_names_keep_the_certificate(seed: int) -> None:
    """Examples permuted; tokens renamed, with the rows of W_E; labels renamed, with the columns of W_U."""
    task = drawn(18, 3, 12, 12, seed)
    network = network_of(built(task, seed % 1000, model_dim=4))
    rng = np.random.default_rng(seed)
    order, names, answers = rng.permutation(18), rng.permutation(12), rng.permutation(12)
    assert task.tokens is not None
    assert network.W_E is not None
    assert network.W_U is not None
    other = NextToken(tokens=names[task.tokens[order]], labels=answers[task.labels[order]], label_count=12, vocab=12)
    renamed = network.with_tensor("W_E", network.W_E[np.argsort(names)])
    renamed = renamed.with_tensor("W_U", network.W_U[:, np.argsort(answers)])
    assert byheart.certify(renamed, other).certified
    assert byheart.certify(built(other, model_dim=4).network, other).certified


def test_the_change_of_basis_by_hand() -> None:
    """d = d_h = H = n = 1: x′ = 1 + 1 = 2, a head gives 2 again, features (2, 2). Target 3: W = (3/4, 3/4), the least.

    M = 3/4, so W_E = W_pos = 3/4, W_Q = 1/M · 5 = 20/3, W_K = 7/M = 28/3, W_V = 4/3, W_O = 3/4. x = 3/2, the head adds
    3/2 · 4/3 · 3/4 = 3/2: together 3. The score x² W_Q W_K = 9/4 · 560/9 = 140 = 2² · 5 · 7, as it was.
    """
    one = np.ones((1, 1, 1))
    start = SoftmaxNetwork(
        W_E=one[0], W_pos=one[0], W_Q=5 * one, W_K=7 * one, W_V=one, W_O=0 * one, W_U=one[0], skip=True
    )
    tokens = np.array([[0]])
    assert features(start, tokens).tolist() == [[2, 2]]
    rng = np.random.default_rng(0)
    asked = Asked(one[0], tokens, np.array([[3.0]]), OtherContexts(tokens[:0], np.zeros((0, 1))))
    [fit] = fits(start, factor(np.array([[2.0, 2.0]])), asked, rng)
    network = fit.network
    assert fit.basis == 1
    found = {name: tensor.item() for name, tensor in network.by_name().items()}
    expected = {"W_Q": 20 / 3, "W_K": 28 / 3, "W_V": 4 / 3, "W_O": 0.75, "W_E": 0.75, "W_pos": 0.75, "W_U": 1.0}
    assert found == pytest.approx(expected)
    assert logits_of(network, tokens) == pytest.approx(np.array([[3.0]]))


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), d=st.integers(2, 5), H=st.integers(1, 4), length=st.integers(2, 5))
def test_the_change_of_basis_leaves_attention_and_values_as_they_were(seed: int, d: int, H: int, length: int) -> None:
    """x = x′M with M^−1 in W_Q, W_K, W_V: the same weights and values, and outputs that are the targets."""
    rng = np.random.default_rng(seed)
    tokens = contexts(H * d + d, length, 12, rng)
    size = NextToken(tokens=tokens, labels=np.zeros(len(tokens), int), vocab=12).size
    W_U = rng.standard_normal((d, 12))
    start = draw(tokens, size, DanaShape(d, d, H, query=d), W_U, 4.0, rng)
    factored = factor(features(start, tokens))
    targets = rng.standard_normal((len(tokens), d))
    [fit] = fits(start, factored, Asked(W_U, tokens, targets, OtherContexts(tokens[:0], np.zeros((0, d)))), rng)
    network = fit.network
    before, after = (scores_and_values(some, tokens) for some in (start, network))
    room = 1e-11 * fit.basis
    for old, new in zip(before, after, strict=True):
        assert new == pytest.approx(old, abs=room * np.abs(old).max())
    assert logits_of(network, tokens) == pytest.approx(targets @ W_U, abs=room * factored.condition)
    assert start.W_E is not None
    assert network.W_E is not None
    assert not np.allclose(network.W_E, start.W_E), "the vectors themselves did change"


def test_two_labels_in_a_plane_by_hand() -> None:
    """C = 2: the rows of W_U are (1, 0) and (−1, 0), Δ = 2 apart. Targets are r·row + noise, 1 ≤ r ≤ 2, |noise| = 2/8.

    So z is within 1/4 of the segment from row to 2·row, and the logits differ by 2|z_0|, from 3/2 to 9/2.
    """
    task = NextToken(tokens=[[0, 1], [1, 0], [1, 1], [2, 1]], labels=[0, 1, 1, 0], label_count=2, vocab=3)
    network = network_of(built(task))
    assert network.W_U is not None
    assert np.abs(network.W_U - [[1, -1], [0, 0]]).max() < 1e-15
    z = logits_of(network.with_tensor("W_U", np.eye(2)), task.inputs)
    along, across = z[:, 0] * [1, -1, -1, 1], z[:, 1]
    assert (np.abs(across) <= 0.25 + 1e-9).all()
    outer, inner = along + np.sqrt(1 / 16 - across**2), along - np.sqrt(1 / 16 - across**2)
    assert all(1 - 1e-9 <= a <= 2 + 1e-9 or 1 - 1e-9 <= b <= 2 + 1e-9 for a, b in zip(outer, inner, strict=True))
    margin = byheart.certify(network, task).smallest_margin
    assert margin == pytest.approx(2 * along.min())
    assert 1.5 <= 2 * along.min() <= 2 * along.max() <= 4.5


@pytest.mark.slow
def test_contexts_of_three_hundred_tokens() -> None:
    """The capacity does not depend on the length."""
    task = drawn(88, 300, 50, 50)
    assert byheart.certify(built(task, model_dim=8, head_dim=8, heads=10).network, task).certified
    with pytest.raises(BeyondCapacity, match="have rank 88; expected 89"):
        built(drawn(89, 300, 50, 50), model_dim=8, head_dim=8, heads=10)


# Distributions.


def every_bigram(seed: int = 3) -> NextTokenDistribution:
    return random_distribution(examples=36, length=2, vocab=6, shape="every", rng=np.random.default_rng(seed))


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_the_network_reaches_the_best_encoder(d: int) -> None:
    task = every_bigram()
    made = built(task, seed=1, model_dim=d)
    encoder = best_encoder(task.probabilities, task.likelihoods, d, rng=np.random.default_rng(1))
    assert task.tokens is not None
    each = kl(logits_of(network_of(made), task.tokens), task.probabilities)
    assert each.mean() == pytest.approx(encoder.divergence, abs=1e-6)
    assert made.chosen["divergence"] == pytest.approx(encoder.divergence, abs=1e-6)
    assert made.chosen["encoder"] == pytest.approx(encoder.divergence, rel=1e-5, abs=1e-12)
    assert made.chosen["left_out"] == 0
    assert made.chosen["constant"] is None
    exact = byheart.certify(made.network, task, tolerance=1e-6)
    assert exact.certified == (d == 5), "d = ω − 1 is enough for any distributions, and these need it"
    assert byheart.certify(made.network, task, tolerance=encoder.divergence + 1e-6).certified


def test_fewer_dimensions_are_no_better() -> None:
    found = [built(every_bigram(), model_dim=d).chosen["divergence"] for d in (2, 3, 4, 5)]
    assert found == sorted(found, reverse=True)  # type: ignore[type-var]
    assert found[0] > 0.05  # type: ignore[operator]


def test_by_default_distributions_are_exact() -> None:
    task = every_bigram()
    made = built(task)
    assert network_of(made).W_Q.shape == (7, 5, 5)
    assert byheart.certify(made.network, task).certified


@pytest.mark.parametrize("d", [3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_contexts_left_out_are_the_least_likely_and_the_others_are_exact(d: int, weighted: bool) -> None:
    task = every_bigram()
    if weighted:
        weights = np.random.default_rng(0).random(36) ** 3
        task = NextTokenDistribution(
            tokens=task.inputs, probabilities=task.probabilities, weights=weights / weights.sum()
        )
    made = built(task, seed=1, model_dim=d, epsilon=0.3)
    encoder = best_encoder(task.probabilities, task.likelihoods, d, rng=np.random.default_rng(1))
    order = np.argsort(-task.likelihoods, kind="stable")
    held = int(made.chosen["held"])  # type: ignore[call-overload]
    likely = np.cumsum(task.likelihoods[order])
    assert likely[held - 1] >= 0.7 - 1e-9
    assert held == 1 or likely[held - 2] < 0.7, "one fewer would not be enough"
    each = kl(logits_of(network_of(made), task.inputs), task.probabilities)
    best = kl(encoder.logits, task.probabilities)
    assert each[order[:held]] == pytest.approx(best[order[:held]], abs=1e-6)
    assert (np.abs(each - best)[order[held:]] > 1e-3).mean() > 0.5, "no heads are left for the others"
    terms = made.chosen
    assert terms["left_out"] == pytest.approx(task.likelihoods[order[held:]].sum(), rel=1e-5)
    assert terms["left_out"] <= 0.3 + 1e-9  # type: ignore[operator]
    assert terms["divergence"] == pytest.approx(task.likelihoods @ each, rel=1e-5)
    assert terms["excess"] == pytest.approx(task.likelihoods @ (each - best), rel=1e-4)
    assert terms["norm"] == pytest.approx(np.linalg.norm(encoder.logits, 2), rel=1e-5)
    assert terms["excess"] <= terms["constant"] * terms["left_out"] * terms["norm"]  # type: ignore[operator]


def test_leaving_contexts_out_saves_heads() -> None:
    every, some = (built(every_bigram(), model_dim=3, epsilon=epsilon).chosen for epsilon in (0.0, 0.3))
    assert (every["held"], every["heads"]) == (36, 11)
    assert (some["held"], some["heads"]) == (26, 8)


def test_contexts_without_likelihood_are_not_held() -> None:
    task, weights = every_bigram(), np.zeros(36)
    weights[[3, 8, 21]] = [0.5, 0.25, 0.25]
    task = NextTokenDistribution(tokens=task.inputs, probabilities=task.probabilities, weights=weights)
    made = built(task, model_dim=3)
    assert made.chosen["held"] == 3
    assert made.chosen["left_out"] == 0
    assert byheart.certify(made.network, task).certified


def test_one_context_given_twice_has_the_likelihood_of_both() -> None:
    """Context 2 comes in two parts. ε = 0.26 leaves it out where they make 0.25, and not where they make 0.5."""
    tokens, twice = [[0, 1], [1, 0], [2, 2], [2, 2]], [0.2, 0.6, 0.2]
    rows = [[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], twice, twice]
    for weights, left_out in (([0.4, 0.35, 0.05, 0.2], 0.25), ([0.3, 0.2, 0.25, 0.25], 0.2)):
        task = NextTokenDistribution(tokens=tokens, probabilities=rows, weights=weights)
        made = built(task, epsilon=0.26)
        assert made.chosen["held"] == 2
        assert made.chosen["left_out"] == pytest.approx(left_out)
        each = kl(logits_of(network_of(made), task.inputs), task.probabilities)
        exact = [0, 1] if left_out == 0.25 else [0, 2, 3]
        assert each[exact] == pytest.approx(np.zeros(len(exact)), abs=1e-9)


def test_heads_to_spare_bring_contexts_near_that_were_left_out() -> None:
    """Of 36 contexts 26 are held. With 8 heads, 27 features, the others are off; with 20 none is; nor is one held."""
    task, found = every_bigram(), []
    best = best_encoder(task.probabilities, task.likelihoods, 3, rng=np.random.default_rng(1))
    for heads in (8, 10, 20):
        made = built(task, seed=1, model_dim=3, epsilon=0.3, heads=heads)
        assert made.chosen["held"] == 26
        each = kl(logits_of(network_of(made), task.inputs), task.probabilities)
        order = np.argsort(-task.likelihoods, kind="stable")
        assert each[order[:26]] == pytest.approx(kl(best.logits, task.probabilities)[order[:26]], abs=1e-6)
        found.append(each.mean())
    assert found[0] > found[1] > found[2]
    assert found[2] == pytest.approx(best.divergence, abs=1e-6)


def test_zero_probabilities_come_within_the_tolerance() -> None:
    rng = np.random.default_rng(0)
    rows = np.eye(6)[rng.integers(6, size=36)]
    rows[::2] = rng.dirichlet(np.ones(6), 18)
    rows[::4, 2] = 0
    task = NextTokenDistribution(tokens=every_bigram().inputs, probabilities=rows / rows.sum(axis=1, keepdims=True))
    made = built(task)
    assert byheart.certify(made.network, task).certified
    assert kl(logits_of(network_of(made), task.inputs), task.probabilities).max() < 1e-9


@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("row", [[1 / 6] * 6, [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]])
def test_one_distribution_for_all_contexts(d: int, row: list[float]) -> None:
    """Encodings that do not span R^d: what W_U does not see is added, so that the change of basis stays regular."""
    task = NextTokenDistribution(tokens=every_bigram().inputs, probabilities=[row] * 36)
    made = built(task, model_dim=d)
    assert byheart.certify(made.network, task, tolerance=1e-9).certified


def test_contradicting_distributions_are_named() -> None:
    task = NextTokenDistribution(tokens=[[0, 1], [1, 1], [0, 1]], probabilities=[[0.5, 0.5], [1, 0], [0.25, 0.75]])
    message = "example 0 and example 2 are equal sequences: asked for probability 0.5 of token 0 and probability 0.25"
    with pytest.raises(BadInput, match=f"^{NAME} cannot memorize this task: {re.escape(message)}"):
        built(task)


def test_shuffled_distributions_and_a_nudged_weight_are_found_out() -> None:
    task = every_bigram()
    network = network_of(built(task))
    assert byheart.certify(network, task, tolerance=1e-9).certified
    assert not byheart.certify(network, shuffled(task, np.random.default_rng(0))).certified
    assert network.W_U is not None
    nudged = network.W_U.copy()
    nudged[0, 0] += 1e-3
    assert not byheart.certify(network.with_tensor("W_U", nudged), task, tolerance=1e-9).certified


def test_two_tokens_need_one_dimension() -> None:
    """ω = 2 by default takes d = ω − 1 = 1, where H + 1 contexts fit: sigmoids of different steepness differ."""
    task = random_distribution(examples=16, length=4, vocab=2, shape="every", rng=np.random.default_rng(0))
    assert byheart.certify(built(task).network, task).certified


def test_distributions_may_be_encoded_on_a_line() -> None:
    task = every_bigram()
    task = NextTokenDistribution(tokens=task.inputs[:2], probabilities=task.probabilities[:2])
    built(task, model_dim=1)


def test_the_default_heads_are_enough_for_more_dimensions_than_tokens() -> None:
    """ω = 6, n = 2, d = d_h = 9: capacity 6 + H·6, not 6 + H·9; H = 5 would do, H = 4 is planned."""
    task = every_bigram()
    assert byheart.certify(built(task, model_dim=9).network, task).certified


@pytest.mark.slow
def test_the_closed_bound_holds_for_an_almost_look_up_table() -> None:
    """ω = 40, d = 31 > 8 log 41: one token has nearly all, and the bound is below that of a uniform answer."""
    rng = np.random.default_rng(0)
    contexts, vocab = 45, 40
    rest = rng.dirichlet(np.full(vocab, 0.2), size=contexts) * 0.005
    rest[np.arange(contexts), rng.integers(vocab, size=contexts)] += 0.995
    tokens = np.stack([np.arange(contexts) % vocab, np.arange(contexts) // vocab], axis=1)
    task = NextTokenDistribution(tokens=tokens, probabilities=rest / rest.sum(axis=1, keepdims=True))
    found = built(task, model_dim=31, restarts=0).chosen
    assert isinstance(found["encoder"], float)
    assert isinstance(found["closed_bound"], float)
    assert found["encoder_lower"] <= found["encoder"] <= found["closed_bound"] < 0.7 * np.log(vocab)

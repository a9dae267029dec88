"""mahdavi-2024: as many examples as the theorem promises, one more is refused, and the heads look as in the proof."""

import math
import re
import time

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import byheart
from byheart.bounds.mahdavi_2024 import capacity, feature_rank, heads_needed, sufficient
from byheart.certificates.features import prove_rank
from byheart.constructions.built import Built
from byheart.constructions.gadgets.linear_system import BeyondCapacity
from byheart.constructions.mahdavi_2024 import MahdaviSettings, features
from byheart.errors import BadInput
from byheart.networks.softmax import SoftmaxNetwork
from byheart.tasks import NextToken, QueryLabels, QueryTargets, random_queries, random_seq_to_seq, shuffled
from byheart.tasks.kruskal import kruskal

NAME = "mahdavi-2024"
AnyQuery = QueryLabels | QueryTargets
Floats = npt.NDArray[np.float64]


def drawn(examples: int, length: int, dim: int, labels: int | None, shared: bool, seed: int = 0) -> AnyQuery:
    rng = np.random.default_rng(seed)
    return random_queries(examples=examples, length=length, dim=dim, labels=labels, shared=shared, rng=rng)


def built(task: AnyQuery, seed: int = 0, **given: object) -> Built:
    return byheart.build(NAME, task, seed=seed, settings=MahdaviSettings(**given))  # type: ignore[arg-type]


def softmax_network(made: Built) -> SoftmaxNetwork:
    assert isinstance(made.network, SoftmaxNetwork)
    return made.network


def weights_of(network: SoftmaxNetwork, head: int, context: Floats, query: Floats) -> list[float]:
    """softmax(E W_K W_Qᵀ e), one number after the other."""
    asked = [math.fsum(query * column) for column in network.W_Q[head].T]
    keys = [[math.fsum(token * column) for column in network.W_K[head].T] for token in context]
    scores = [math.fsum(k * q for k, q in zip(key, asked, strict=True)) for key in keys]
    raised = [math.exp(score - max(scores)) for score in scores]
    return [value / math.fsum(raised) for value in raised]


def outputs_of(network: SoftmaxNetwork, context: Floats, query: Floats) -> list[float]:
    """Σ_h Σ_s a_s x_sᵀ W_V W_O, read by W_U if there is one."""
    z = np.zeros(network.W_O.shape[2])
    for head in range(len(network.W_Q)):
        for weight, token in zip(weights_of(network, head, context, query), context, strict=True):
            z = z + weight * (token @ network.W_V[head] @ network.W_O[head])
    logits: list[float] = (z if network.W_U is None else z @ network.W_U).tolist()
    return logits


def held_by(head: int, free: int, examples: int) -> list[int]:
    """Example 0 is left over; each head holds the next ``free``."""
    return list(range(1 + head * free, min(1 + (head + 1) * free, examples)))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("labels", [None, 2, 7])
@pytest.mark.parametrize("heads", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("head_dim", [2, 4, 7])
def test_saturated_fits_as_many_as_promised_and_not_one_more(
    shared: bool, labels: int | None, heads: int, head_dim: int
) -> None:
    most = heads * (min(4, head_dim) - 1) + 1
    task = drawn(most, 4, 8, labels, shared)
    made = built(task, heads=heads, head_dim=head_dim)
    assert made.chosen["rank"] == most
    certificate = byheart.certify(made.network, task)
    assert certificate.certified
    assert (certificate.checked, certificate.errors, certificate.undecided) == (most, 0, 0)
    need = heads + 1
    message = (
        f"{NAME} (saturated) promises H(min(n, d_h) − 1) + 1 = {most} examples; the task has {most + 1}: "
        f"take --heads {need}, or --way generic, which goes as far as the rank does"
    )
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        built(drawn(most + 1, 4, 8, labels, shared), heads=heads, head_dim=head_dim)


@pytest.mark.parametrize("labels", [None, 3])
@pytest.mark.parametrize("heads", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("head_dim", [1, 2, 3, 8])
def test_generic_with_a_shared_context_goes_to_the_rank_for_any_head_dim(
    labels: int | None, heads: int, head_dim: int
) -> None:
    """H(n − 1) + 1, also where d_h < n: more than the theorem promises. One more is beyond any attention."""
    most = heads * 3 + 1
    task = drawn(most, 4, 8, labels, shared=True)
    assert byheart.certify(built(task, heads=heads, head_dim=head_dim, way="generic").network, task).certified
    with pytest.raises(BeyondCapacity) as caught:
        built(drawn(most + 1, 4, 8, labels, shared=True), heads=heads, head_dim=head_dim, way="generic")
    assert caught.value.rank == most
    assert str(caught.value) == (
        f"{NAME} (generic): the features of the {most + 1} examples have rank {most}; expected {most + 1}. "
        f"With {heads} heads no attention gives more than H(n − 1) + 1 = {most}: a head's n weights sum to one. "
        "Take more heads"
    )


@pytest.mark.parametrize("labels", [None, 3])
@pytest.mark.parametrize("heads", [1, 2, 3])
@pytest.mark.parametrize("head_dim", [1, 4, 8])
def test_generic_with_contexts_of_their_own_goes_to_heads_times_dim(
    labels: int | None, heads: int, head_dim: int
) -> None:
    most = heads * 8
    task = drawn(most, 4, 8, labels, shared=False)
    assert byheart.certify(built(task, heads=heads, head_dim=head_dim, way="generic").network, task).certified
    with pytest.raises(
        BeyondCapacity, match=re.escape(f"gives more than H·d = {most}: a head's average has d")
    ) as caught:
        built(drawn(most + 1, 4, 8, labels, shared=False), heads=heads, head_dim=head_dim, way="generic")
    assert caught.value.rank == most
    assert not caught.value.network.W_V.any()
    assert np.linalg.matrix_rank(features(caught.value.network, drawn(most + 1, 4, 8, labels, shared=False))) == most


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("labels", [None, 2])
@pytest.mark.parametrize(
    ("examples", "length", "dim", "given"),
    [
        (1, 4, 8, {}),
        (1, 1, 2, {}),
        (1, 1, 3, {"heads": 3, "head_dim": 1}),
        (3, 2, 3, {"heads": 2}),
        (6, 2, 8, {"heads": 5, "head_dim": 8}),
        (29, 8, 9, {"heads": 4, "head_dim": 8}),
        (3, 4, 8, {"heads": 9}),
        (10, 4, 8, {"heads": 5, "head_dim": 4}),
        (2, 6, 7, {}),
    ],
    ids=["N=1", "n=1", "n=1, d_h=1", "n=2", "n=2, d_h=d", "d_h=n=d-1", "few", "heads to spare", "N=2"],
)
def test_odd_sizes(
    shared: bool, labels: int | None, examples: int, length: int, dim: int, given: dict[str, int]
) -> None:
    task = drawn(examples, length, dim, labels, shared, seed=1)
    for way in ("saturated", "generic"):
        made = built(task, way=way, **given)
        assert byheart.certify(made.network, task).certified, way


@settings(max_examples=30)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_random_shapes_within_the_theorem(data: st.DataObject, seed: int) -> None:
    """Any shape: certified within 1e-6 in balls, and to 1e-8 by an evaluation that shares nothing with the package."""
    dim = data.draw(st.integers(3, 9), label="d")
    length, head_dim = data.draw(st.integers(2, dim - 1), label="n"), data.draw(st.integers(2, dim), label="d_h")
    heads, shared = data.draw(st.integers(1, 4), label="H"), data.draw(st.booleans(), label="shared")
    way = data.draw(st.sampled_from(["saturated", "generic"]), label="way")
    examples = data.draw(st.integers(1, capacity(heads, length, head_dim)), label="N")
    task = drawn(examples, length, dim, None, shared, seed)
    assert isinstance(task, QueryTargets)
    made = built(task, seed % 1000, heads=heads, head_dim=head_dim, way=way)
    certificate = byheart.certify(made.network, task)
    assert certificate.certified, certificate.counterexample
    assert task.vectors is not None
    for example in range(min(examples, 5)):
        [output] = outputs_of(softmax_network(made), task.vectors[example], task.queries[example])
        assert output == pytest.approx(task.targets[example], abs=1e-8)


@pytest.mark.parametrize("way", ["saturated", "generic"])
@pytest.mark.parametrize("labels", [2, 3, 40])
def test_labels_are_the_largest_logits_by_another_evaluation(way: str, labels: int) -> None:
    task = drawn(10, 4, 8, labels, shared=False)
    assert isinstance(task, QueryLabels)
    assert task.vectors is not None
    network = softmax_network(built(task, way=way))
    logits = [outputs_of(network, E, e) for E, e in zip(task.vectors, task.queries, strict=True)]
    assert np.argmax(logits, axis=1).tolist() == task.labels.tolist()
    assert all(max(row) == pytest.approx(1.0) for row in logits), "the points lie on a circle"


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("examples", [13, 11, 5])
def test_saturated_heads_look_at_one_token_except_where_they_hold(shared: bool, examples: int) -> None:
    """The proof's structure: one token takes all on every other example, and none does on all that are held."""
    task = drawn(examples, 4, 8, None, shared)
    network = softmax_network(built(task, heads=4))
    assert task.vectors is not None
    for head in range(4):
        held = held_by(head, 3, examples)
        for example in range(examples):
            weights = weights_of(network, head, task.vectors[example], task.queries[example])
            if example in held:
                assert min(weights) > 1e-6
                assert max(weights) < 1 - 1e-6
            else:
                assert max(weights) > 0.99
                assert sorted(weights)[-2] < 4 * math.exp(-39)


def test_a_saturated_head_picks_its_first_or_its_last_token_only() -> None:
    """With one context for all, saturation leaves two of the n tokens, whatever is asked."""
    task = drawn(13, 4, 8, None, shared=True)
    network = softmax_network(built(task, heads=4))
    for head in range(4):
        others = [t for t in range(13) if t not in held_by(head, 3, 13)]
        picked = {int(np.argmax(weights_of(network, head, task.contexts, task.queries[t]))) for t in others}
        assert picked <= {0, 3}


def test_two_examples_by_hand() -> None:
    """E = [[1, 0, 0], [0, 1, 0]], queries (1, 0, 0) and (0, 1, 0), targets 3 and 5; one head, d_h = 2, holds example 1.

    The dual of the held query is itself, q = (0, 1, 0); u ⊥ q. E a = (1, −1) gives a = (1, −1, 0). On example 0 the
    scores are c·u_0·(1, −1), 2c|u_0| apart, and 40 is asked for: c = 20/|u_0|. So it sees token 0 (u_0 > 0) or 1. On
    example 1 they are the first two entries of the second key; let p be the weight of token 0. With values v_0, v_1 of
    the tokens, v_i = 3 for the token that example 0 sees, and p v_0 + (1 − p) v_1 = 5. As E⁺ = Eᵀ, W_V = (v_0, v_1, 0).
    """
    task = QueryTargets(contexts=[[1, 0, 0], [0, 1, 0]], queries=[[1, 0, 0], [0, 1, 0]], targets=[3, 5])
    made = built(task, heads=1, head_dim=2)
    network = softmax_network(made)
    u, q = network.W_Q[0].T
    assert q == pytest.approx([0, 1, 0], abs=1e-15)
    assert u[1] == pytest.approx(0, abs=1e-15)
    assert network.W_K[0][:, 0] == pytest.approx(20 / abs(u[0]) * np.array([1, -1, 0]), rel=1e-12, abs=1e-12)
    key = network.W_K[0][:, 1]
    p = 1 / (1 + math.exp(key[1] - key[0]))
    values = [3, (5 - 3 * p) / (1 - p)] if u[0] > 0 else [(5 - 3 * (1 - p)) / p, 3]
    assert network.W_V[0][:, 0] == pytest.approx([*values, 0], rel=1e-9, abs=1e-9)
    assert network.W_O.tolist() == [[[1]]]
    assert made.account.dense == 2 * 3 * 2 + 3 + 1 == sufficient(2, length=2, dim=3, head_dim=2)
    assert byheart.certify(network, task).certified


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    ("examples", "length", "dim", "head_dim"),
    [(13, 4, 8, 4), (13, 4, 8, 2), (12, 4, 8, 3), (2, 2, 3, 3), (1, 3, 5, 2)],
)
def test_default_heads_are_those_of_the_bound(
    shared: bool, examples: int, length: int, dim: int, head_dim: int
) -> None:
    task = drawn(examples, length, dim, None, shared)
    made = built(task, head_dim=head_dim)
    assert made.account.dense == sufficient(examples, length, dim, head_dim, value_dim=1)
    assert made.chosen["heads"] == heads_needed(examples, length, head_dim)
    assert byheart.certify(made.network, task).certified


def test_labels_cost_a_second_output_and_an_unembedding() -> None:
    made = built(drawn(13, 4, 8, 7, shared=True), heads=4)
    assert made.account.dense == 4 * (2 * 8 * 4 + 8 * 2 + 2 * 2) + 2 * 7


def test_generic_takes_the_fewest_heads_for_the_rank() -> None:
    for examples, heads in ((16, 5), (17, 6)):
        made = built(drawn(examples, 4, 8, None, shared=True), way="generic", head_dim=2)
        assert made.chosen["heads"] == heads
        assert feature_rank(heads - 1, 4) < examples <= feature_rank(heads, 4)
    for examples, heads in ((16, 2), (17, 3)):
        assert built(drawn(examples, 4, 8, None, shared=False), way="generic").chosen["heads"] == heads


@pytest.mark.parametrize("way", ["saturated", "generic"])
def test_the_same_seed_gives_the_same_network_and_another_another(way: str) -> None:
    task = drawn(10, 4, 8, None, shared=True)
    one, two, other = (softmax_network(built(task, seed, way=way)) for seed in (3, 3, 4))
    for (name, tensor), (_, again), (_, else_) in zip(one.tensors(), two.tensors(), other.tensors(), strict=True):
        assert np.array_equal(tensor, again), name
        assert name == "attention.W_O" or not np.array_equal(tensor, else_), name


@pytest.mark.parametrize("way", ["saturated", "generic"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("labels", [None, 4])
def test_shuffled_answers_are_found_out(way: str, shared: bool, labels: int | None) -> None:
    task = drawn(10, 4, 8, labels, shared)
    network = built(task, way=way).network
    lie = shuffled(task, np.random.default_rng(1))
    changed = int((lie.answers != task.answers).sum())
    assert changed > 0
    certificate = byheart.certify(network, lie)
    assert not certificate.certified
    assert certificate.errors == changed
    assert certificate.undecided == 0


@pytest.mark.parametrize("way", ["saturated", "generic"])
def test_a_thousandth_more_in_any_value_is_found_out(way: str) -> None:
    """Every context coordinate is positive, so every entry of every W_V and W_O is felt."""
    task = drawn(7, 4, 8, None, shared=True)
    network = softmax_network(built(task, way=way))
    assert byheart.certify(network, task).certified
    for name in ("W_V", "W_O"):
        tensor = getattr(network, name)
        for entry in range(tensor.size):
            changed = tensor.copy()
            changed.flat[entry] += 1e-3
            assert not byheart.certify(network.with_tensor(name, changed), task).certified, (name, entry)


@pytest.mark.parametrize("name", ["W_Q", "W_K"])
def test_a_thousandth_more_in_a_generic_head_is_found_out(name: str) -> None:
    task = drawn(7, 4, 8, None, shared=True)
    network = softmax_network(built(task, way="generic"))
    tensor = getattr(network, name).copy()
    tensor[0, 0, 0] += 1e-3
    assert not byheart.certify(network.with_tensor(name, tensor), task).certified


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_the_order_of_examples_and_of_tokens_does_not_matter(seed: int) -> None:
    """A network is certified on any order of its examples, and, attention having no positions, of the tokens."""
    task = drawn(10, 4, 8, None, shared=False, seed=seed)
    assert isinstance(task, QueryTargets)
    assert task.vectors is not None
    network = built(task).network
    rng = np.random.default_rng(seed)
    order, tokens = rng.permutation(10), rng.permutation(4)
    other = QueryTargets(
        contexts=task.vectors[order][:, tokens], queries=task.queries[order], targets=task.targets[order]
    )
    assume(other != task)
    assert byheart.certify(network, other).certified


def with_contexts(contexts: Floats, examples: int = 7) -> QueryTargets:
    rng = np.random.default_rng(5)
    return QueryTargets(contexts=contexts, queries=rng.random((examples, 8)), targets=rng.random(examples))


def test_dependent_tokens_are_refused_and_the_context_named() -> None:
    rng = np.random.default_rng(0)
    own, shared = rng.random((7, 4, 8)), rng.integers(1, 9, (4, 8)).astype(float)
    shared[3] = shared[0] + 2 * shared[1]
    with pytest.raises(BadInput, match=r"^the shared context has rank 3; mahdavi-2024 needs rank n = 4: its tokens"):
        built(with_contexts(shared), heads=2)
    own[5, 1] = own[5, 2]
    own[6, 1] = 0
    with pytest.raises(BadInput, match=r"^the context of example 5 has rank 3; mahdavi-2024 needs rank n = 4"):
        built(with_contexts(own), heads=2)
    own[5, 1, 0] += 0.25
    with pytest.raises(BadInput, match=r"^the context of example 6 has rank 3"):
        built(with_contexts(own), heads=2)


def test_equal_queries_are_refused_and_both_examples_named() -> None:
    rng = np.random.default_rng(0)
    contexts, queries = rng.random((7, 4, 8)), rng.random((7, 8))
    queries[5] = queries[2]
    task = QueryTargets(contexts=contexts, queries=queries, targets=rng.random(7))
    message = f"examples 2 and 5 have the same query; {NAME} needs every n queries independent"
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        built(task, heads=2)
    assert byheart.certify(built(task, way="generic").network, task).certified, "contexts of their own tell them apart"


def test_dependent_queries_are_refused_and_named() -> None:
    """Held by one head, in a space that they do not span; or one in the span of those that a head holds."""
    rng = np.random.default_rng(0)
    queries = rng.random((7, 8))
    queries[2] = 2 * queries[1]
    task = QueryTargets(contexts=rng.random((4, 8)), queries=queries, targets=rng.random(7))
    with pytest.raises(BadInput, match=r"^the queries of examples 1, 2, 3 are dependent; expected every n queries"):
        built(task, heads=2)
    queries[2] = rng.random(8)
    queries[6] = queries[1] + queries[3]
    task = QueryTargets(contexts=rng.random((4, 8)), queries=queries, targets=rng.random(7))
    message = (
        "the query of example 6 depends on 3 others; expected every n independent. "
        f"With r = min(n, d_h, Kruskal rank) = 3 or less {NAME} holds 5 with 2 heads: take --heads 3, or --way generic"
    )
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        built(task, heads=2)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("rank", "heads"), [(2, 8), (3, 4), (4, 3), (5, 2), (6, 2)])
def test_r_is_the_kruskal_rank_of_the_queries_where_that_is_smaller(shared: bool, rank: int, heads: int) -> None:
    """Queries in a space of so many dimensions, n = 5, N = 9: a head holds min(5, Q) − 1; for Q ≥ 5 two heads do."""
    rng = np.random.default_rng(0)
    queries = rng.integers(-99, 100, (9, rank)).astype(float) @ rng.integers(-99, 100, (rank, 8)).astype(float)
    assert kruskal(queries).lower == rank
    contexts = rng.random((5, 8) if shared else (9, 5, 8))
    task = QueryTargets(contexts=contexts, queries=queries, targets=rng.random((9, 2)))
    made = built(task)
    assert (made.chosen["r"], made.chosen["heads"]) == (min(5, rank), heads)
    assert capacity(heads, 5, 5, rank) >= 9 > capacity(heads - 1, 5, 5, rank)
    assert byheart.certify(made.network, task).certified
    if rank < 5:
        with pytest.raises(BadInput, match=rf"rank\) = {rank} or less .* take --heads {heads}, or --way generic$"):
            built(task, heads=2)


@pytest.mark.parametrize("way", ["saturated", "generic"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("target_dim", [2, 8, 11])
def test_targets_of_several_numbers(way: str, shared: bool, target_dim: int) -> None:
    """Every coordinate is met, by another evaluation too, with H(2 d d_h + (d + d_v) min(d, d_v)) parameters."""
    rng = np.random.default_rng(1)
    task = random_queries(examples=7, length=4, dim=8, labels=None, shared=shared, target_dim=target_dim, rng=rng)
    assert isinstance(task, QueryTargets)
    assert task.targets.shape == (7, target_dim)
    assert task.vectors is not None
    made = built(task, heads=2, head_dim=4, way=way)
    assert made.account.dense == 2 * (2 * 8 * 4 + (8 + target_dim) * min(8, target_dim))
    certificate = byheart.certify(made.network, task)
    assert certificate.certified
    assert certificate.checked == 7 * target_dim
    for context, query, target in zip(task.vectors, task.queries, task.targets, strict=True):
        assert outputs_of(softmax_network(made), context, query) == pytest.approx(target, abs=1e-8)
    lie = task.targets.copy()
    lie[3, 1] += 1e-3
    found = byheart.certify(made.network, task.with_answers(lie))
    assert (found.certified, found.errors) == (False, 1)


def test_one_vector_by_hand() -> None:
    """E = (2, 0), target (6, 10, −2): one token, so it is all that is seen. d_v = 3 > d = 2: W_V = I, W_O = (3, 5, −1).

    4·1 + 2·2 + 2·3 = 14 parameters. The values of least norm leave the second row of W_O at 0.
    """
    task = QueryTargets(contexts=[[2.0, 0.0]], queries=[[1.0, 1.0]], targets=[[6.0, 10.0, -2.0]])
    made = built(task)
    network = softmax_network(made)
    assert network.W_V.tolist() == [np.eye(2).tolist()]
    assert network.W_O[0] == pytest.approx(np.array([[3, 5, -1], [0, 0, 0]]), abs=1e-12)
    assert made.account.dense == sufficient(1, length=1, dim=2, head_dim=1, value_dim=3) == 14
    assert byheart.certify(network, task).certified


@pytest.mark.parametrize("way", ["saturated", "generic"])
@pytest.mark.parametrize("shared", [True, False])
def test_two_answers_to_one_question_are_refused_and_both_examples_named(way: str, shared: bool) -> None:
    rng = np.random.default_rng(0)
    contexts, queries = rng.random((4, 8) if shared else (7, 4, 8)), rng.random((7, 8))
    queries[6] = queries[1]
    if not shared:
        contexts[6] = contexts[1][::-1]
    task = QueryLabels(contexts=contexts, queries=queries, labels=[0, 1, 0, 1, 0, 1, 2])
    message = f"{NAME} cannot memorize this task: example 1 and example 6 are equal sequences"
    with pytest.raises(BadInput, match=f"^{message}.*asked for label 1 and label 2$"):
        built(task, way=way)


@pytest.mark.parametrize(("length", "dim"), [(8, 8), (9, 8)])
def test_as_many_tokens_as_dimensions_are_refused_by_the_theorem_only(length: int, dim: int) -> None:
    task = drawn(7, length, dim, None, shared=False)
    message = f"{NAME} (saturated) needs n < d; got n = {length}, d = {dim}; try --way generic"
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        built(task)
    assert byheart.certify(built(task, way="generic").network, task).certified


@pytest.mark.parametrize("way", ["saturated", "generic"])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"head_dim": 9}, "head_dim is 9; expected 1 ≤ d_h ≤ d = 8: more than d gains nothing"),
        ({"head_dim": 0}, "head_dim is 0; expected 1 ≤ d_h ≤ d = 8"),
        ({"heads": 0}, "heads is 0; expected at least 1"),
        ({"heads": -2}, "heads is -2; expected at least 1"),
    ],
)
def test_settings_that_make_no_network_are_refused(way: str, given: dict[str, int], message: str) -> None:
    with pytest.raises(BadInput, match=f"^{re.escape(message)}"):
        built(drawn(4, 4, 8, None, shared=True), way=way, **given)


def test_one_dimension_a_head_promises_one_example() -> None:
    with pytest.raises(BadInput, match=r"^min\(n, d_h\) is 1; expected at least 2: with 1 the theorem promises one"):
        built(drawn(2, 4, 8, None, shared=True), head_dim=1)


@pytest.mark.parametrize("way", ["saturated", "generic"])
def test_sequences_without_queries_are_refused(way: str) -> None:
    rng = np.random.default_rng(0)
    for task in (
        NextToken(tokens=[[0, 1]], labels=[0]),
        random_seq_to_seq(examples=2, length=2, vocab=9, labels=2, rng=rng),
    ):
        message = f"{NAME} memorizes contexts with queries (query-labels, query-targets); the task is {task.kind}"
        with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
            byheart.build(NAME, task, settings=MahdaviSettings(way=way))  # type: ignore[arg-type]


@pytest.mark.parametrize("way", ["saturated", "generic"])
@pytest.mark.parametrize("shared", [True, False])
def test_more_than_five_thousand_examples_are_refused_at_once(way: str, shared: bool) -> None:
    task = drawn(5001, 4, 8, None, shared)
    start = time.perf_counter()
    with pytest.raises(BadInput, match=r"solves a dense system, one row per example; got 5001, expected at most 5000$"):
        built(task, way=way)
    assert time.perf_counter() - start < 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "head_dim", "most"),
    [("saturated", 32, 621), ("generic", 32, 621), ("saturated", 16, 301), ("generic", 16, 621)],
)
def test_twenty_heads_on_one_context_of_thirty_two_tokens(way: str, head_dim: int, most: int) -> None:
    """d = 64, n = 32, H = 20: certified to 1e-6 up to the limit; the 622nd is refused."""
    task = drawn(most, 32, 64, None, shared=True)
    made = built(task, heads=20, head_dim=head_dim, way=way)
    certificate = byheart.certify(made.network, task, tolerance=1e-6)
    assert certificate.certified
    assert certificate.checked == most
    assert made.account.dense == 20 * (2 * 64 * head_dim + 64 + 1)
    if way == "generic" and head_dim == 16:
        proof = prove_rank(softmax_network(made), task)
        assert proof is not None
        assert proof.rank == 621
    with pytest.raises(BadInput, match=str(most + 1)) as caught:
        built(drawn(most + 1, 32, 64, None, shared=True), heads=20, head_dim=head_dim, way=way)
    if way == "generic":
        assert isinstance(caught.value, BeyondCapacity)
        assert caught.value.rank == 621
        assert prove_rank(caught.value.network, drawn(622, 32, 64, None, shared=True)) is None


def test_generic_with_a_shared_context_of_more_tokens_than_dimensions() -> None:
    """n = 5 > d = 3: a head's average has 3 coordinates, so 2 heads reach 6 examples and not H(n − 1) + 1 = 9."""
    task = drawn(6, 5, 3, None, shared=True)
    assert byheart.certify(built(task, way="generic", heads=2).network, task).certified
    with pytest.raises(BeyondCapacity, match=re.escape("gives more than 6: the context")) as caught:
        built(drawn(7, 5, 3, None, shared=True), way="generic", heads=2)
    assert caught.value.rank == 6


def test_generic_with_a_token_twice_in_the_shared_context() -> None:
    """Three different tokens: a head's averages lie in a plane, so H heads reach 2H + 1 examples."""
    contexts = np.random.default_rng(0).random((4, 8))
    contexts[3] = contexts[0]
    task = with_contexts(contexts, examples=5)
    assert byheart.certify(built(task, way="generic", heads=2).network, task).certified
    with pytest.raises(BeyondCapacity, match="have rank 5; expected 6") as caught:
        built(with_contexts(contexts, examples=6), way="generic", heads=2)
    assert caught.value.rank == 5


@pytest.mark.parametrize("way", ["saturated", "generic"])
def test_a_shared_context_that_is_dependent_but_for_rounding_is_not_built_wrongly(way: str) -> None:
    """A sum of two tokens, rounded, has exact rank n, but float64 cannot give each token any value: refused."""
    contexts = np.random.default_rng(0).random((4, 8))
    contexts[3] = contexts[0] + contexts[1]
    with pytest.raises(BadInput, match="the context's tokens are dependent, of rank 3"):
        built(with_contexts(contexts), way=way, heads=2)


def test_generic_heads_differ_in_few_dimensions() -> None:
    """n = d = 2, H = 3: 4 examples; sigmoids of one number of different steepness are independent."""
    made = built(drawn(4, 2, 2, None, shared=True), way="generic", heads=3)
    assert made.chosen["rank"] == 4


def test_in_one_dimension_a_head_is_worth_one_example() -> None:
    """Tokens 0 and 1 have no values but 0 and W_V: three heads, three examples."""
    task = drawn(4, 2, 1, None, shared=True)
    assert isinstance(task, QueryTargets)
    line = QueryTargets(contexts=[[0.0], [1.0]], queries=task.queries, targets=task.targets)
    with pytest.raises(BeyondCapacity, match=r"rank 3; expected 4\. With 3 heads no attention gives more than 3: the"):
        built(line, way="generic", heads=3)


def test_generic_refuses_contexts_of_zeros() -> None:
    with pytest.raises(BadInput):
        built(with_contexts(np.zeros((7, 4, 8))), way="generic")


def test_a_query_of_zeros_is_refused() -> None:
    task = drawn(7, 4, 8, None, shared=True)
    queries = task.queries.copy()
    queries[0] = 0
    with pytest.raises(BadInput, match="query of example 0"):
        built(QueryTargets(contexts=task.contexts, queries=queries, targets=np.arange(7.0)), heads=2)

"""Ranks that are proved and targets that are out of reach, against fractions and decimals in the test itself."""

from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates.features import FullRank, OutOfReach, prove_out_of_reach, prove_rank
from byheart.errors import BadInput
from byheart.networks.softmax import SoftmaxNetwork, evaluate
from byheart.tasks import QueryLabels, QueryTargets

from ..fractions_by_hand import rank_by_fractions

DIGITS = Context(prec=200, Emin=-(10**9), Emax=10**9)


def heads(count: int, dim: int, head_dim: int, seed: int, *, spread: float = 1.0) -> SoftmaxNetwork:
    """Random heads with random values."""
    rng = np.random.default_rng(seed)
    W_Q, W_K = spread * rng.standard_normal((2, count, dim, head_dim))
    return SoftmaxNetwork(W_Q=W_Q, W_K=W_K, W_V=rng.standard_normal((count, dim, 1)), W_O=np.ones((count, 1, 1)))


def shared(examples: int, length: int, dim: int, seed: int) -> QueryTargets:
    rng = np.random.default_rng(seed)
    return QueryTargets(
        contexts=rng.standard_normal((length, dim)),
        queries=rng.standard_normal((examples, dim)),
        targets=rng.standard_normal(examples),
    )


def weights(network: SoftmaxNetwork, task: QueryTargets) -> np.ndarray:
    """The heads' weights [N, H, n] in floats."""
    scores = np.einsum("tnd,hdk,hek,te->thn", task.vectors, network.W_K, network.W_Q, task.queries)
    raised = np.exp(scores - scores.max(axis=2, keepdims=True))
    return raised / raised.sum(axis=2, keepdims=True)


def columns(found: np.ndarray) -> np.ndarray:
    """All weights of all heads, but the last of every head after the first: what the ones before it say already."""
    return np.concatenate([found[:, 0], *(found[:, h, :-1] for h in range(1, found.shape[1]))], axis=1)


def determinant(network: SoftmaxNetwork, task: QueryTargets) -> Decimal:
    """Of the square features of a shared context, with 200 digits; Gauss with the largest pivot."""

    def exact(array: np.ndarray) -> Any:
        return [exact(row) for row in array] if array.ndim else Decimal(float(array))

    def dot(one: list[Decimal], other: list[Decimal]) -> Decimal:
        return sum((x * y for x, y in zip(one, other, strict=True)), Decimal(0))

    tokens, rows = exact(task.contexts), []
    for query in exact(task.queries):
        row: list[Decimal] = []
        for h, (W_Q, W_K) in enumerate(zip(exact(network.W_Q), exact(network.W_K), strict=True)):
            asked = [dot(query, list(column)) for column in zip(*W_Q, strict=True)]
            direction = [dot(asked, list(entries)) for entries in W_K]
            raised = [dot(direction, token).exp() for token in tokens]
            found = [value / sum(raised) for value in raised]
            row += found if h == 0 else found[:-1]
        rows.append(row)
    value = Decimal(1)
    for step in range(len(rows)):
        pivot = max(range(step, len(rows)), key=lambda i: abs(rows[i][step]))
        if pivot != step:
            rows[step], rows[pivot], value = rows[pivot], rows[step], -value
        value *= rows[step][step]
        for i in range(step + 1, len(rows)):
            factor = rows[i][step] / rows[step][step]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[step], strict=True)]
    return value


# Rank


@given(st.data())
@settings(max_examples=60)
def test_rank_of_integers_against_fractions(data: st.DataObject) -> None:
    """One token an example: its features are the token itself, whatever the attention. Proved exactly if true."""
    dim = data.draw(st.integers(2, 4))
    row = st.lists(st.integers(-3, 3), min_size=dim, max_size=dim)
    rows = data.draw(st.lists(row, min_size=2, max_size=dim))
    task = QueryTargets(
        contexts=np.array(rows, np.float64)[:, None], queries=np.ones((len(rows), dim)), targets=[0.0] * len(rows)
    )
    found = prove_rank(heads(1, dim, 1, seed=0), task, most_bits=256)
    if rank_by_fractions(rows) == len(rows):
        assert found == FullRank(len(rows), 64, "approximate inverse")
    else:
        assert found is None


def test_nearly_dependent_integers_take_more_bits() -> None:
    """Columns that differ by 1 in 10¹⁵, three times over: condition 10³⁰ or so, determinant −1, and regular."""
    big = 2**50
    rows = [[big, big + 1, 0], [big - 1, big, 0], [0, 0, 1]]
    assert rank_by_fractions(rows) == 3
    task = QueryTargets(contexts=np.array(rows, np.float64)[:, None], queries=np.ones((3, 3)), targets=[0.0] * 3)
    found = prove_rank(heads(1, 3, 1, seed=0), task)
    assert found is not None
    assert (found.rank, found.by) == (3, "regular")
    assert found.bits > 64
    assert str(found) == f"rank 3, proved in ball arithmetic (regular, {found.bits} bits)"
    assert prove_rank(heads(1, 3, 1, seed=0), task, most_bits=64) is None


@pytest.mark.parametrize("seed", range(6))
def test_full_rank_of_a_shared_context_against_decimals(seed: int) -> None:
    """H = 2, n = 3, so 5 columns; 5 examples."""
    network, task = heads(2, 4, 3, seed), shared(5, 3, 4, seed)
    with localcontext(DIGITS):
        assert abs(determinant(network, task)) > Decimal(10) ** -20
    found = prove_rank(network, task)
    assert found is not None
    assert found.rank == 5


def test_fewer_examples_than_columns() -> None:
    found = prove_rank(heads(2, 4, 3, 0), shared(3, 3, 4, 0))
    assert found == FullRank(3, 64, "approximate inverse")
    assert str(found) == "rank 3, proved in ball arithmetic (approximate inverse, 64 bits)"


def test_more_examples_than_columns_are_never_independent() -> None:
    assert prove_rank(heads(2, 4, 3, 0), shared(6, 3, 4, 0)) is None


def test_contexts_of_their_own_reach_all_dimensions_of_all_heads() -> None:
    """H·d = 8 columns: eight examples are independent, nine are not; labels will do for answers."""
    rng, network = np.random.default_rng(0), heads(2, 4, 4, 0)
    for examples, rank in ((8, 8), (9, None)):
        contexts, queries = rng.standard_normal((examples, 5, 4)), rng.standard_normal((examples, 4))
        task = QueryLabels(contexts=contexts, queries=queries, labels=np.zeros(examples, np.int64))
        found = prove_rank(network, task)
        assert (found and found.rank) == rank


@pytest.mark.parametrize("square", [True, False])
@pytest.mark.parametrize("case", ["equal queries", "no attention", "equal heads"])
def test_dependent_features_are_not_proved_independent(case: str, square: bool) -> None:
    """As many examples as columns, 2·(3 − 1) + 1 = 5, or one less; two rows, or all of them, or two heads are equal."""
    network, task = heads(2, 4, 3, 0), shared(5, 3, 4, 0)
    if case == "equal queries":
        queries = task.queries.copy()
        queries[1] = queries[3]
        task = QueryTargets(contexts=task.contexts, queries=queries, targets=task.targets)
    elif case == "no attention":
        network = heads(2, 4, 3, 0, spread=0.0)
    else:
        network = SoftmaxNetwork(
            **{name: np.repeat(tensor[:1], 2, axis=0) for name, tensor in network.by_name().items()}
        )
    few = slice(5 if square else 4)
    task = QueryTargets(contexts=task.contexts, queries=task.queries[few], targets=task.targets[few])
    assert np.linalg.matrix_rank(columns(weights(network, task)), tol=1e-9) < len(task.queries)
    assert prove_rank(network, task, most_bits=512) is None


def test_heads_of_one_dimension_need_more_bits() -> None:
    """d_h = 1, H = 3, n = 6, d = 8: a head's weights are a curve in one number. Ill conditioned, and still regular."""
    network, task = heads(3, 8, 1, 1, spread=0.02), shared(16, 6, 8, 1)
    assert np.linalg.cond(columns(weights(network, task))) > 1e16
    with localcontext(DIGITS):
        assert abs(determinant(network, task)) > Decimal(10) ** -150
    found = prove_rank(network, task)
    assert found is not None
    assert (found.rank, found.by) == (16, "regular")
    assert found.bits > 64
    assert prove_rank(network, task, most_bits=found.bits // 2) is None


def test_weights_are_taken_as_they_are_saved() -> None:
    """Weights of e⁻¹⁰⁰⁰⁰ and e⁻²⁰⁰⁰⁰ are 0 in any float, and the two rows equal. They are not, and that is proved."""
    W_Q, W_K = np.array([[[1e4], [0.0]]]), np.array([[[0.0], [1.0]]])
    network = SoftmaxNetwork(W_Q=W_Q, W_K=W_K, W_V=np.ones((1, 2, 1)), W_O=np.ones((1, 1, 1)))
    task = QueryTargets(contexts=np.eye(2), queries=[[1.0, 0.0], [2.0, 0.0]], targets=[0, 0])
    assert np.linalg.matrix_rank(columns(weights(network, task))) == 1
    assert prove_rank(network, task) == FullRank(2, 128, "regular")


def reachable(network: SoftmaxNetwork, task: QueryTargets) -> int:
    """The rank of what W_V can reach, in floats: that of the heads' averages."""
    averages = np.einsum("thn,tnd->thd", weights(network, task), task.vectors)
    return int(np.linalg.matrix_rank(averages.reshape(len(averages), -1)))


@pytest.mark.parametrize(("length", "dim"), [(2, 1), (6, 3)])
def test_a_proved_rank_means_that_any_targets_can_be_reached(length: int, dim: int) -> None:
    """More tokens than dimensions: their values E W_V are not free, and the weights' rank promises too much."""
    network, task = heads(2, dim, 1, 0), shared(2 * (length - 1) + 1, length, dim, 0)
    assert reachable(network, task) < len(task.queries)
    assert prove_rank(network, task) is None


def test_a_single_context_of_zeros_has_rank_zero() -> None:
    task = QueryTargets(contexts=[[[0.0, 0.0]]], queries=[[1.0, 1.0]], targets=[1.0])
    assert not task.shared
    assert prove_rank(heads(1, 2, 1, 0), task) is None


# Out of reach


def combination(network: SoftmaxNetwork, task: QueryTargets, few: int) -> np.ndarray:
    """λ with λ·features = 0 of the first examples, in floats, the last entry 1."""
    features = columns(weights(network, task))[:few]
    return np.append(np.linalg.solve(features[:-1].T, -features[-1]), 1.0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("count", "length", "examples"), [(1, 3, 4), (2, 3, 6), (3, 2, 9)])
def test_one_combination_of_the_outputs_is_zero(count: int, length: int, examples: int, seed: int) -> None:
    """λ of the test's own annihilates the outputs of any values, and gives the targets what was proved."""
    network, task = heads(count, 4, 3, seed), shared(examples, length, 4, seed)
    found = prove_out_of_reach(network, task)
    few = count * (length - 1) + 2
    assert found is not None
    assert found.examples == few
    ours = combination(network, task, few)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        other = network.with_tensor("W_V", rng.standard_normal(network.W_V.shape))
        outputs = evaluate(other, (task.vectors, task.queries))[:few, 0]
        assert abs(ours @ outputs) < 1e-9 * (np.abs(ours) @ np.abs(outputs))
    at_targets = ours @ task.targets[:few]
    scale = np.abs(ours) @ np.abs(task.targets[:few])
    assert found.low == pytest.approx(at_targets, abs=1e-9 * scale)
    assert found.high == pytest.approx(at_targets, abs=1e-9 * scale)
    assert found.low <= found.high
    assert found.low > 0 or found.high < 0


def test_only_the_first_examples_count() -> None:
    """Targets of later examples do not change what is proved; that of the first does."""
    network, task = heads(2, 4, 3, 0), shared(9, 3, 4, 0)
    found = prove_out_of_reach(network, task)
    later, first = task.targets.copy(), task.targets.copy()
    later[6:] += 1
    first[0] += 1
    assert prove_out_of_reach(network, task.with_answers(later)) == found
    assert prove_out_of_reach(network, task.with_answers(first)) != found


def test_equal_targets_are_reachable() -> None:
    """Weights sum to one: a value c everywhere gives c, exactly. So nothing is proved against it."""
    network, task = heads(2, 4, 3, 0), shared(8, 3, 4, 0)
    assert prove_out_of_reach(network, task.with_answers([0.75] * 8)) is None
    nearly = [0.75] * 5 + [float(np.nextafter(0.75, 1))] + [0.75] * 2
    found = prove_out_of_reach(network, task.with_answers(nearly))
    assert found is not None
    assert found.low == pytest.approx(2.0**-53, rel=1e-9), "λ sums to 0, its last entry is 1"


def test_one_coordinate_out_of_reach_is_enough() -> None:
    """Equal targets in one coordinate say nothing; what is proved is proved of the other."""
    network, task = heads(2, 4, 3, 0), shared(8, 3, 4, 0)
    alone = prove_out_of_reach(network, task)
    assert alone is not None
    assert prove_out_of_reach(network, task.with_answers(np.stack([[0.75] * 8, task.targets], axis=1))) == alone
    assert prove_out_of_reach(network, task.with_answers(np.full((8, 2), 0.75))) is None


def test_odd_targets_are_reachable_by_hand() -> None:
    """Tokens ±1, queries q, −q, 0: with values ±v the outputs are v·tanh q, −v·tanh q and 0, whatever q is."""
    one = np.ones((1, 1, 1))
    network = SoftmaxNetwork(W_Q=one, W_K=one, W_V=one, W_O=one)
    task = QueryTargets(contexts=[[1.0], [-1.0]], queries=[[0.3], [-0.3], [0.0]], targets=[0.7, -0.7, 0.0])
    assert prove_out_of_reach(network, task) is None
    assert prove_out_of_reach(network, task.with_answers([1.7, 0.3, 1.0])) is not None, "0.7 + 1 is no float64"
    assert prove_out_of_reach(network, task.with_answers([1.75, 0.25, 1.0])) is None
    found = prove_out_of_reach(network, task.with_answers([0.7, -0.7, 0.01]))
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(0.01), pytest.approx(0.01))
    expected = (
        "whatever the values are, one combination of the outputs of the first 3 examples is 0, and of their targets it "
        "is 0.01, not 0 (proved in ball arithmetic, 128 bits)"
    )
    assert str(found) == expected


def test_outputs_that_were_rounded_are_out_of_reach_by_the_rounding() -> None:
    """Exact outputs are irrational: as float64 numbers they are targets that no values meet exactly, by a hair."""
    network, task = heads(2, 4, 3, 0), shared(6, 3, 4, 0)
    rounded = task.with_answers(evaluate(network, (task.vectors, task.queries))[:, 0])
    found = prove_out_of_reach(network, rounded)
    assert found is not None
    assert max(abs(found.low), abs(found.high)) < 1e-13 * np.abs(combination(network, task, 6)).sum()


def test_values_do_not_matter() -> None:
    """The proof is about the attention: other values, the same proof."""
    network, task = heads(2, 4, 3, 0), shared(6, 3, 4, 0)
    other = network.with_tensor("W_V", np.zeros((2, 4, 1)))
    assert prove_out_of_reach(other, task) == prove_out_of_reach(network, task)


def test_dependent_rows_prove_nothing() -> None:
    """Without attention all rows are equal; λ is not unique, and the answer is that none was found."""
    assert prove_out_of_reach(heads(2, 4, 3, 0, spread=0.0), shared(6, 3, 4, 0), most_bits=512) is None


def test_too_few_bits_prove_nothing() -> None:
    network, task = heads(3, 8, 1, 1), shared(17, 6, 8, 1)
    assert prove_out_of_reach(network, task, most_bits=8) is None
    found = prove_out_of_reach(network, task)
    assert isinstance(found, OutOfReach)
    assert found.examples == 17


def test_contexts_of_their_own_are_refused() -> None:
    task = QueryTargets(contexts=np.ones((6, 3, 4)), queries=np.ones((6, 4)), targets=np.ones(6))
    with pytest.raises(BadInput, match=r"^the examples have contexts of their own; expected one that all share$"):
        prove_out_of_reach(heads(2, 4, 3, 0), task)


@pytest.mark.parametrize("examples", [1, 4, 5])
def test_too_few_examples_are_refused(examples: int) -> None:
    """Any 5 targets can be reached, for almost every attention: there is nothing to prove."""
    message = rf"^the task has {examples} examples; expected more than H\(n − 1\) \+ 1 = 5$"
    with pytest.raises(BadInput, match=message):
        prove_out_of_reach(heads(2, 4, 3, 0), shared(examples, 3, 4, 0))
    assert prove_out_of_reach(heads(2, 4, 3, 0), shared(6, 3, 4, 0)) is not None


def test_networks_with_units_are_refused() -> None:
    """tanh(3·tanh q) and so on: no combination of the outputs is 0 for all values."""
    network = heads(2, 4, 3, 0)
    tensors = network.by_name() | {"W_in": np.ones((1, 2)), "b_in": np.zeros(2), "W_U": np.ones((2, 1))}
    with pytest.raises(BadInput):
        prove_out_of_reach(SoftmaxNetwork(**tensors), shared(6, 3, 4, 0))

"""What the modules say beyond their formulas, tried on numbers."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from byheart.bounds import dana_2025, madden_2024, mahdavi_2024


def softmax(scores: np.ndarray) -> np.ndarray:
    weights: np.ndarray = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def test_mahdavi_feature_rank_is_reached_and_not_exceeded() -> None:
    rng = np.random.default_rng(0)
    heads, context, dim, examples = 3, 4, 6, 20
    shared, queries = rng.normal(size=(context, dim)), rng.normal(size=(examples, dim))
    features = [softmax(3 * queries @ rng.normal(size=(dim, dim)) @ shared.T) for _ in range(heads)]
    assert np.linalg.matrix_rank(np.hstack(features)) == mahdavi_2024.feature_rank(heads, context)


def test_mahdavi_feature_rank_is_no_lower_bound_on_parameters() -> None:
    """One head, two shared tokens, d_h = 1: rank 2, and yet it fits d = 8 arbitrary targets."""
    rng = np.random.default_rng(1)
    dim = 8
    shared, queries, targets = rng.normal(size=(2, dim)), rng.normal(size=(dim, dim)), rng.normal(size=dim)
    low, high = targets.min() - 1, targets.max() + 1
    mixing = (targets - low) / (high - low)
    W_K = (shared[0] - shared[1]) / np.sum((shared[0] - shared[1]) ** 2)  # the two keys are 1 apart
    W_Q = np.linalg.solve(queries, np.log(mixing / (1 - mixing)))
    W_V = np.linalg.lstsq(shared, np.array([high, low]), rcond=None)[0]
    outputs = softmax(np.outer(queries @ W_Q, shared @ W_K)) @ (shared @ W_V)
    assert mahdavi_2024.feature_rank(heads=1, context=2) == 2
    np.testing.assert_allclose(outputs, targets, atol=1e-8)


def dana_features(contexts: np.ndarray, *, heads: int, head_dim: int, dim: int) -> np.ndarray:
    """The last token beside the heads' values, for random weights: one row a context, d + H d_h columns."""
    rng = np.random.default_rng(2)
    tokens, positions = rng.normal(size=(contexts.max() + 1, dim)), rng.normal(size=(contexts.shape[1], dim))
    embedded = tokens[contexts] + positions
    last = embedded[:, -1]
    columns = [last]
    for _ in range(heads):
        scores = np.einsum("cd,de,cse->cs", last, rng.normal(size=(dim, dim)), embedded)
        columns.append(np.einsum("cs,csd->cd", softmax(scores), embedded) @ rng.normal(size=(dim, head_dim)))
    return np.hstack(columns)


@pytest.mark.parametrize(("last_tokens", "length", "lost"), [(5, 3, 0), (3, 3, 0), (2, 3, 1), (1, 3, 2), (5, 1, None)])
def test_dana_capacity_needs_d_last_tokens_and_two_positions(last_tokens: int, length: int, lost: int | None) -> None:
    """d = 3, H d_h = 8: rank 11, less one for every last token short of 3; and 3 when there is one position only."""
    heads, head_dim, dim = 4, 2, 3
    every = [c for c in itertools.product(range(5), repeat=length) if c[-1] < last_tokens]
    rank = np.linalg.matrix_rank(dana_features(np.array(every), heads=heads, head_dim=head_dim, dim=dim))
    assert rank == (dim if lost is None else dana_2025.capacity(heads, head_dim, dim) - lost)


def test_madden_count_is_enough_in_dimension_one() -> None:
    """All 3³ contexts over three tokens: the number z tells them apart, one linear solve gives the distributions."""
    rng = np.random.default_rng(3)
    vocab, length = 3, 3
    contexts = np.array(list(itertools.product(range(vocab), repeat=length)))
    examples = len(contexts)
    e, p, a, v, o = rng.normal(size=vocab), rng.normal(size=length), 1.5, 1.0, 1.0
    x = e[contexts] + p
    z = o * np.sum(softmax(a * x[:, -1:] * x) * (v * x), axis=1)
    gaps = np.diff(np.sort(z))
    assert gaps.min() > 1e-6

    # tanh units, one between each pair of neighbours and steep enough: nearly a triangular matrix, so invertible
    order = np.sort(z)
    thresholds = np.concatenate([[order[0] - 1], (order[1:] + order[:-1]) / 2])
    slopes = 20 / np.concatenate([[1.0], gaps])
    hidden = np.tanh(slopes * (z[:, None] - thresholds))
    wanted = np.log(rng.dirichlet(np.ones(vocab), size=examples))
    W_U = np.linalg.solve(hidden, wanted)
    np.testing.assert_allclose(softmax(hidden @ W_U), np.exp(wanted), atol=1e-9)

    scalars = e.size + p.size + 4 + slopes.size + thresholds.size + W_U.size
    assert scalars == madden_2024.sufficient(examples, length, vocab)


def test_dana_bottleneck_dimension_is_the_rank_of_the_log_ratios() -> None:
    rng = np.random.default_rng(4)
    for examples, vocab in [(3, 6), (5, 6), (20, 6)]:
        log_p = np.log(rng.dirichlet(np.ones(vocab), size=examples))
        ratios = log_p[:, :-1] - log_p[:, -1:]
        assert np.linalg.matrix_rank(ratios) == dana_2025.bottleneck_dim(examples, vocab)


def test_dana_beats_mahdavi_by_d_and_a_unit_a_head() -> None:
    """H d_h + d against H(d_h − 1) + 1 for contexts longer than d_h: H + d − 1 more."""
    assert dana_2025.capacity(20, 10, 10) - mahdavi_2024.capacity(20, 99, 10) == 20 + 10 - 1


def part_rank(contexts: np.ndarray, *, heads: int, head_dim: int, dim: int) -> int:
    """The bound min(d, L) + H·min(d_h, D) on the rank of the features of these contexts."""
    length, vocab = contexts.shape[1], contexts.max() + 1
    steps = np.eye(vocab)[contexts] - np.eye(vocab)[contexts[:, -1:]]
    places = np.broadcast_to(np.eye(length) - np.eye(length)[-1], (len(contexts), length, length))
    moving = np.linalg.matrix_rank(np.concatenate([steps, places], axis=2).reshape(-1, vocab + length))
    return min(dim, len(set(contexts[:, -1].tolist()))) + heads * min(head_dim, dim, moving)


def families(count: int) -> Iterator[tuple[np.ndarray, dict[str, int]]]:
    """Up to ten different contexts, many constant or with few last tokens, and sizes of a layer."""
    rng = np.random.default_rng(5)
    for turn in range(count):
        dim = int(rng.integers(2, 5))
        sizes = {"heads": int(rng.integers(1, 4)), "head_dim": int(rng.integers(1, dim + 1)), "dim": dim}
        every = np.array(list(itertools.product(range(rng.integers(2, 6)), repeat=int(rng.integers(2, 4)))))
        if turn % 3 == 1:
            every = every[(every == every[:, :1]).all(axis=1) | (rng.random(len(every)) < 0.1)]
        if turn % 3 == 2:
            every = every[every[:, -1] < 2]
        yield rng.permutation(every)[: rng.integers(3, 11)], sizes


def test_dana_rank_is_the_smallest_of_the_bounds_over_all_parts() -> None:
    """That it is no larger is proved. That it is no smaller is proved for d_h = 1, and otherwise observed, here."""
    fewer = 0
    for contexts, sizes in families(100):
        count = len(contexts)
        parts = [np.array(part) for part in itertools.product([False, True], repeat=count) if any(part)]
        bound = min(int((~part).sum()) + part_rank(contexts[part], **sizes) for part in parts)
        bound = min(count, bound)
        assert np.linalg.matrix_rank(dana_features(contexts, **sizes), tol=1e-10) == bound
        fewer += bound < min(count, dana_2025.capacity(sizes["heads"], sizes["head_dim"], sizes["dim"]))
        if sizes["head_dim"] == 1:
            last = len(set(contexts[:, -1].tolist()))
            assert bound == min(count, min(sizes["dim"], last) + sizes["heads"])
    assert fewer >= 10


@pytest.mark.parametrize(
    ("length", "dim", "head_dim", "heads", "rank"), [(2, 4, 4, 10, 14), (2, 2, 2, 10, 12), (3, 4, 4, 10, 24)]
)
def test_dana_lemma_2_is_false_for_constant_contexts(
    length: int, dim: int, head_dim: int, heads: int, rank: int
) -> None:
    """The lemma says H·d_h (the last token aside); the rank is d + H·min(d_h, n − 1). Heads of dimension 1 have all."""
    constant = np.repeat(np.arange(heads * head_dim)[:, None], length, axis=1)
    found = np.linalg.matrix_rank(dana_features(constant, heads=heads, head_dim=head_dim, dim=dim), tol=1e-9)
    assert found == rank == dim + heads * min(head_dim, length - 1) < heads * head_dim
    narrow = np.repeat(np.arange(dim + heads)[:, None], length, axis=1)
    assert np.linalg.matrix_rank(dana_features(narrow, heads=heads, head_dim=1, dim=dim), tol=1e-12) == dim + heads

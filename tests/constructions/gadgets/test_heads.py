"""Query-key products: duals, orthogonality and saturation as the proof has them; random heads spread as asked."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.constructions.mahdavi_2024 import SATURATION, random_head, saturating_head, scores_of
from byheart.errors import BadInput

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


def drawn(examples: int, length: int, dim: int, shared: bool, seed: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    return rng.random((length, dim) if shared else (examples, length, dim)), rng.random((examples, dim))


def plain_scores(W_Q: Floats, W_K: Floats, contexts: Floats, queries: Floats) -> Floats:
    """E_t W_K W_Qᵀ e_t, example by example."""
    own = np.broadcast_to(contexts, (len(queries), *contexts.shape[-2:]))
    return np.array([E @ (W_K @ (W_Q.T @ e)) for E, e in zip(own, queries, strict=True)])


@pytest.mark.parametrize("shared", [True, False])
def test_scores_are_the_contexts_times_the_directions(shared: bool) -> None:
    contexts, directions = drawn(5, 3, 4, shared, seed=0)
    found = scores_of(contexts, directions)
    assert found == pytest.approx(plain_scores(np.eye(4), np.eye(4), contexts, directions), rel=1e-14)


def test_scores_by_hand() -> None:
    """Tokens (1, 2) and (0, 3) against (10, 1): 12 and 3."""
    assert scores_of(np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([[10.0, 1.0]])).tolist() == [[12, 3]]
    assert scores_of(np.array([[[1.0, 2.0], [0.0, 3.0]]]), np.array([[10.0, 1.0]])).tolist() == [[12, 3]]


@settings(max_examples=40)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_a_saturating_head_holds_some_and_saturates_on_all_others(data: st.DataObject, seed: int) -> None:
    """q_i·e_j is 1 for i = j and else 0, u·e_j is 0, and on others one token leads by 40 at least."""
    dim = data.draw(st.integers(3, 10), label="d")
    length, d_h = data.draw(st.integers(2, dim - 1), label="n"), data.draw(st.integers(1, dim), label="d_h")
    examples, shared = data.draw(st.integers(1, 20), label="N"), data.draw(st.booleans(), label="shared")
    size = data.draw(st.integers(0, min(examples, length - 1, d_h - 1)), label="held")
    contexts, queries = drawn(examples, length, dim, shared, seed)
    rng = np.random.default_rng(seed)
    held = np.sort(rng.permutation(examples)[:size])
    W_Q, W_K = saturating_head(contexts, queries, held, d_h, rng)
    assert W_Q.shape == W_K.shape == (dim, d_h)
    products = queries[held] @ W_Q
    largest = np.linalg.norm(queries, axis=1).max() * np.linalg.norm(W_Q, axis=0)
    expected = np.zeros((size, d_h))
    expected[np.arange(size), 1 + np.arange(size)] = 1
    assert (np.abs(products - expected) <= 1e-12 * (1 + largest)).all()
    assert not W_Q[:, 1 + size :].any()
    assert not W_K[:, 1 + size :].any()
    others = np.setdiff1d(np.arange(examples), held)
    ordered = np.sort(plain_scores(W_Q, W_K, contexts, queries)[others], axis=1)
    slack = 1e-12 * np.abs(ordered).max(initial=1)
    assert (ordered[:, -1] - ordered[:, -2] >= SATURATION - slack).all()


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("length", [3, 6])
def test_held_examples_look_at_a_token_each_but_not_only(shared: bool, length: int) -> None:
    """A held example's scores are its own key's: standard normal, and 1 + log n more at the next token."""
    contexts, queries = drawn(12, length, 8, shared, seed=3)
    held = np.array([4, 5])
    own = np.broadcast_to(contexts, (12, length, 8))
    found = []
    for seed in range(500):
        W_Q, W_K = saturating_head(contexts, queries, held, 5, np.random.default_rng(seed))
        scores = plain_scores(W_Q, W_K, contexts, queries)[held]
        assert scores == pytest.approx(np.array([own[t] @ W_K[:, 1 + i] for i, t in enumerate(held)]), abs=1e-6)
        found.append([np.roll(row, -1 - i) for i, row in enumerate(scores)])
    drawn_scores = np.array(found)  # the token that is looked at comes first
    expected = np.where(np.arange(length) == 0, 1 + np.log(length), 0)
    assert drawn_scores.mean(axis=(0, 1)) == pytest.approx(expected, abs=5 / np.sqrt(1000))
    assert drawn_scores.std(axis=(0, 1)) == pytest.approx(np.ones(length), abs=0.12)


def test_saturation_by_hand() -> None:
    """Tokens (1, 0, 0), (0, 1, 0), queries (2, 0, 0), (0, 0, 3), none held: a = (1, −1, 0), and u is drawn.

    Both examples are to have a lead of 40 at least, so 2c·min(|2u_0|, |3u_2|) = 40, whoever is nearer to orthogonal.
    """
    contexts, queries = np.eye(3)[:2], np.array([[2.0, 0, 0], [0, 0, 3.0]])
    W_Q, W_K = saturating_head(contexts, queries, np.array([], np.int64), 1, np.random.default_rng(0))
    u, a = W_Q[:, 0], W_K[:, 0]
    assert a == pytest.approx(20 / min(abs(2 * u[0]), abs(3 * u[2])) * np.array([1, -1, 0]), rel=1e-12, abs=1e-12)
    scores = plain_scores(W_Q, W_K, contexts, queries)
    leads = np.abs(scores[:, 0] - scores[:, 1])
    assert leads.min() == pytest.approx(40)
    assert (np.sign(scores[:, 0]) == np.sign(u[[0, 2]])).all()


def test_dependent_held_queries_are_named() -> None:
    contexts, queries = drawn(12, 11, 12, True, seed=0)
    queries[3] = queries[1] + queries[2]
    with pytest.raises(BadInput, match=r"^the queries of examples 1, 2, 3 are dependent; expected every n queries"):
        saturating_head(contexts, queries, np.array([1, 2, 3]), 12, np.random.default_rng(0))
    with pytest.raises(BadInput, match=r"^the queries of examples 0, 1, 2, 3, 4, 5, 6, 7, … are dependent"):
        saturating_head(contexts, queries, np.arange(9), 12, np.random.default_rng(0))


def test_a_query_in_the_span_of_those_held_is_named() -> None:
    contexts, queries = drawn(6, 4, 8, True, seed=0)
    queries[5] = queries[1] - 2 * queries[2]
    with pytest.raises(BadInput, match=r"^the query of example 5 depends on 2 others; expected every n independent$"):
        saturating_head(contexts, queries, np.array([1, 2]), 4, np.random.default_rng(0))


def test_two_equal_tokens_are_refused() -> None:
    contexts, queries = drawn(6, 2, 8, False, seed=0)
    contexts[4, 1] = contexts[4, 0]
    with pytest.raises(BadInput, match=r"^a context holds two equal tokens; expected every context of rank n$"):
        saturating_head(contexts, queries, np.array([1]), 2, np.random.default_rng(0))


@settings(max_examples=40)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_a_random_head_spreads_the_scores_as_asked(data: st.DataObject, seed: int) -> None:
    """Root of the mean square around each example's own mean, up to a factor of two; if there is anything to spread."""
    dim, d_h = data.draw(st.integers(1, 8), label="d"), data.draw(st.integers(1, 8), label="d_h")
    length, examples = data.draw(st.integers(2, 8), label="n"), data.draw(st.integers(1, 8), label="N")
    shared, sharpness = data.draw(st.booleans(), label="shared"), data.draw(st.floats(0.1, 20), label="sharpness")
    contexts, queries = drawn(examples, length, dim, shared, seed)
    W_Q, W_K = random_head(contexts, queries, d_h, sharpness, np.random.default_rng(seed))
    assert W_Q.shape == W_K.shape == (dim, d_h)
    scores = plain_scores(W_Q, W_K, contexts, queries)
    around = scores - scores.mean(axis=1, keepdims=True)
    assert 0.5 * sharpness * (1 - 1e-6) <= np.sqrt((around**2).mean()) <= 2 * sharpness * (1 + 1e-6)


def test_a_random_head_does_not_see_what_queries_have_in_common() -> None:
    """Queries of [0, 1]⁸ all point one way; without that part half of the scores' directions have either sign."""
    contexts, queries = drawn(100, 4, 8, True, seed=0)
    W_Q, _ = random_head(contexts, queries, 3, 2.0, np.random.default_rng(0))
    assert np.abs(queries.mean(axis=0) @ W_Q).max() < 1e-12 * np.abs(W_Q).max()


@pytest.mark.parametrize("queries", [np.ones((1, 4)), np.ones((3, 4)), np.outer([1.0, 2.0, 3.0], np.ones(4))])
def test_a_random_head_keeps_the_common_part_where_there_is_nothing_else(queries: Floats) -> None:
    contexts = np.random.default_rng(0).random((3, 4))
    W_Q, W_K = random_head(contexts, queries, 2, 2.0, np.random.default_rng(0))
    scores = plain_scores(W_Q, W_K, contexts, queries)
    assert 1 <= np.sqrt(((scores - scores.mean(axis=1, keepdims=True)) ** 2).mean()) <= 4


def test_one_token_leaves_nothing_to_spread() -> None:
    contexts, queries = drawn(3, 1, 4, True, seed=0)
    W_Q, W_K = random_head(contexts, queries, 2, 2.0, np.random.default_rng(0))
    assert np.isfinite(W_Q).all()
    assert np.isfinite(W_K).all()


@pytest.mark.parametrize("make", ["random", "saturating"])
def test_heads_are_drawn_from_the_generator_alone(make: str) -> None:
    contexts, queries = drawn(9, 4, 8, False, seed=0)

    def head(seed: int) -> tuple[Floats, Floats]:
        rng = np.random.default_rng(seed)
        if make == "random":
            return random_head(contexts, queries, 4, 2.0, rng)
        return saturating_head(contexts, queries, np.array([1, 2]), 4, rng)

    one, two, other = head(0), head(0), head(1)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(one, other, strict=True))

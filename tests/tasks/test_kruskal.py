from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from byheart.errors import BadInput
from byheart.tasks import kruskal as module
from byheart.tasks.kruskal import Frame, KruskalBounds, certified, frame_of, kruskal
from byheart.tasks.ranks import exact_rank, numerical_rank, prime

ENOUGH = 10_000


def by_brute_force(vectors):
    """The Kruskal rank, by its definition."""
    for size in range(1, len(vectors) + 1):
        if any(exact_rank(vectors[list(some)]) < size for some in combinations(range(len(vectors)), size)):
            return size - 1
    return len(vectors)


def assert_true(found, vectors):
    """Both bounds hold, and the circuit is one."""
    truth = by_brute_force(vectors)
    assert found.lower <= truth <= found.upper
    assert_circuit(found, vectors)
    return truth


def assert_circuit(found, vectors):
    if found.circuit is None:
        assert found.upper == len(vectors)
        return
    members = list(found.circuit)
    assert len(set(members)) == len(members) == found.upper + 1
    assert exact_rank(vectors[members]) == found.upper
    assert all(exact_rank(np.delete(vectors[members], i, axis=0)) == found.upper for i in range(found.upper) if i < 9)


small = st.integers(-2, 2).map(float)
arrays = hnp.arrays(np.float64, st.tuples(st.integers(1, 7), st.integers(1, 5)), elements=small)


@settings(max_examples=100)
@given(arrays)
def test_against_brute_force(vectors):
    found = kruskal(vectors, budget=ENOUGH)
    assert assert_true(found, vectors) == found.lower == found.upper
    size = min(vectors.shape)
    assert kruskal(vectors, size, budget=ENOUGH).verdict(size).answer == ("holds" if found.lower >= size else "fails")


@settings(max_examples=60)
@given(arrays, st.integers(1, 8))
def test_bounds_hold_when_nothing_is_gone_through(vectors, wanted):
    for some in (None, wanted):
        found = kruskal(vectors, some, budget=0, samples=3)
        truth = assert_true(found, vectors)
        for k in range(1, len(vectors) + 2):
            answer = found.verdict(k).answer
            assert answer == "undecided" or (answer == "holds") == (k <= truth)


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(3, 9), st.integers(2, 4))
def test_unchanged_by_order_scaling_and_maps(seed, total, dim):
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-2, 3, (total, dim)).astype(np.float64)
    truth = kruskal(vectors, budget=ENOUGH).lower
    order = rng.permutation(total)
    scales = rng.integers(1, 9, total) * 2.0 ** rng.integers(-300, 300, total)
    triangle = np.tril(rng.integers(-3, 4, (dim, dim)), -1) + np.diag(rng.choice([-2.0, -1.0, 1.0, 3.0], dim))
    mapped = (vectors[order] @ triangle @ triangle.T) * scales[:, None]
    found = kruskal(mapped, budget=ENOUGH)
    assert (found.lower, found.upper) == (truth, truth)


def test_by_hand():
    # Four points on the moment curve, and a fifth in the plane of two of them.
    vectors = np.array([[1.0, 1, 1, 1], [1, 2, 4, 8], [1, 3, 9, 27], [1, 4, 16, 64], [2, 3, 5, 9]])
    found = kruskal(vectors)
    assert (found.lower, found.upper, found.circuit) == (2, 2, (0, 1, 4))
    assert str(found) == "Kruskal rank 2: no two are parallel; vectors 0, 1 and 4 are dependent"
    assert str(found.verdict(2)) == "every 2 independent: holds; no two are parallel"
    assert str(found.verdict(3)) == "every 3 independent: fails; vectors 0, 1 and 4 are dependent"


@pytest.mark.parametrize(
    ("vectors", "rank", "circuit", "words"),
    [
        ([[0.0]], 0, (0,), "Kruskal rank 0: that is always so; vector 0 is zero"),
        ([[3.0]], 1, None, "Kruskal rank 1: it is not zero; there are 1 vectors"),
        ([[1.0, 2], [0, 0], [1, 2]], 0, (1,), "Kruskal rank 0: that is always so; vector 1 is zero"),
        ([[1.0, 2], [2, 1], [1, 2]], 1, (0, 2), "Kruskal rank 1: none is zero; vectors 0 and 2 are dependent"),
        ([[0.1, 0.2], [1, 1], [-0.3, -0.6]], 1, (0, 2), "Kruskal rank 1: none is zero; vectors 0 and 2 are dependent"),
        ([[1.0], [2.0]], 1, (0, 1), "Kruskal rank 1: none is zero; vectors 0 and 1 are dependent"),
        ([[1.0, 0], [0, 1]], 2, None, "Kruskal rank 2: no two are parallel; there are 2 vectors"),
        ([[1.0, 0, 0], [0, 1, 0], [1, 1, 1]], 3, None, "Kruskal rank 3: all are independent; there are 3 vectors"),
    ],
)
def test_at_first_sight(vectors, rank, circuit, words):
    found = kruskal(vectors)
    assert (found.lower, found.upper, found.circuit) == (rank, rank, circuit)
    assert str(found) == words


def test_one_circuit():
    vectors = np.random.default_rng(0).integers(-99, 100, (41, 45)).astype(np.float64)
    vectors[7] = np.arange(1, 31) @ vectors[8:38]
    found = kruskal(vectors)
    assert (found.lower, found.upper, found.circuit) == (30, 30, tuple(range(7, 38)))
    assert found.lower_by == "their only circuit has 31 vectors"


@pytest.mark.parametrize("size", [3, 4, 5, 6])
def test_planted_circuits_are_found(size):
    rng = np.random.default_rng(size)
    vectors = np.round(rng.normal(size=(150, 32)) * 2**20)
    planted = np.sort(rng.choice(150, size, replace=False))
    vectors[planted[-1]] = rng.choice([-1, 1], size - 1) @ vectors[planted[:-1]]
    found = kruskal(vectors, 20)
    assert found.circuit == tuple(planted.tolist())
    assert found.verdict(20).answer == "fails"


def test_planted_among_many_is_found_exactly():
    rng = np.random.default_rng(0)
    vectors = rng.integers(-50, 51, (30, 12)).astype(np.float64)
    vectors[[3, 8, 20, 25]] = rng.integers(-50, 51, (4, 3)) @ vectors[[3, 8, 20]]
    found = kruskal(vectors)
    assert (found.lower, found.upper, found.circuit) == (3, 3, (3, 8, 20, 25))


def test_nearly_dependent_is_independent():
    rng = np.random.default_rng(0)
    vectors = rng.integers(-9, 10, (10, 6)).astype(np.float64)
    vectors[4] = vectors[1] + vectors[2]
    assert kruskal(vectors).circuit == (1, 2, 4)
    vectors[4] += 1e-13 * rng.normal(size=6)
    assert numerical_rank(vectors[[1, 2, 4]], 1e-10).rank == 2
    found = kruskal(vectors)
    assert found.lower == found.upper == by_brute_force(vectors) > 2


def test_parallel_but_for_a_rounding():
    vectors = np.array([[1.0, 1.0], [1.0, 1.0 + 2**-52], [3.0, 3.0 + 2**-50]])
    assert kruskal(vectors).lower == 2


def test_functionals_are_sound_where_everything_is_nearly_dependent():
    rng = np.random.default_rng(3)
    for power in range(0, 18, 2):
        vectors = np.ones(5) + 10.0**-power * rng.normal(size=(9, 5))
        vectors[8] = vectors[0] + vectors[1]
        assert_true(kruskal(vectors, budget=0, samples=0), vectors)


def test_functionals_claim_nothing_within_their_rounding():
    frame = Frame(np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 0.5]]), np.ones(2), np.eye(2, 3), np.eye(3))
    close, clear = np.array([[1.0, 2.0**-53 - 1, 0.0]]), np.array([[1.0, 2.0**-40 - 1, 0.0]])
    assert certified(frame, close, np.array([0])).tolist() == [1]
    assert certified(frame, clear, np.array([0])).tolist() == [2]


def test_a_circuit_modulo_the_prime_only_is_not_exhibited():
    high, low = divmod(prime(0), 2**31)
    # The first two have the prime as their determinant.
    found = kruskal([[2.0**31, -float(low)], [1.0, float(high)], [1.0, 0.0]])
    assert (found.lower, found.upper, found.circuit) == (2, 2, (0, 1, 2))


def test_functionals_beat_coherence():
    vectors = np.random.default_rng(0).normal(size=(120, 90))
    found = kruskal(vectors, samples=5)
    assert found.lower >= 12
    assert found.lower_by.startswith("functionals")
    frame = frame_of(vectors)
    coherent = certified(frame, frame.basis, np.arange(120)).min()
    assert 2 < coherent < found.lower


@pytest.mark.slow
def test_orthonormal_bases_by_theory():
    # The union of the unit vectors and a Hadamard basis has coherence 1/4, so at least 4; and a circuit of 8.
    hadamard = np.array([[(-1.0) ** (i & j).bit_count() for j in range(16)] for i in range(16)])
    vectors = np.concatenate([np.eye(16), hadamard])
    found = kruskal(vectors)
    assert found.lower >= 4
    assert found.upper == 7
    assert_circuit(found, vectors)


def test_an_estimate_is_called_one():
    vectors = np.random.default_rng(0).normal(size=(120, 24))
    found = kruskal(vectors, 20, samples=50)
    assert found.lower < 20 <= found.upper == 24
    assert found.sampled.tried == 50
    words = "none of 50 random subsets of size 20 is dependent (an estimate, not a proof)"
    assert str(found.verdict(20)) == f"every 20 independent: undecided; {words}"
    assert str(found).endswith(words)
    assert found.verdict(10).answer == "undecided"
    assert "not sampled" in found.verdict(21).why
    assert kruskal(vectors, 20, samples=0).sampled is None
    assert kruskal(vectors, 2).sampled is None


def test_samples_refute(monkeypatch):
    # Every vector but two lies in one of two subspaces; only sampling is left to see it.
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(20, 12))
    vectors[:14, 6:] = 0
    monkeypatch.setattr(module, "_by_bases", lambda known, _: known)
    monkeypatch.setattr(module, "_by_functionals", lambda known, _: known)
    monkeypatch.setattr(module, "_by_elimination", lambda known, _: known.refuted(tuple(range(7, 20))))
    found = kruskal(vectors, budget=0)
    assert found.sampled.dependent is not None
    assert str(found.sampled).endswith("random subsets of size 12 is dependent")
    assert found.upper == 6
    assert_circuit(found, vectors)


def test_gives_up_where_too_much_is_in_doubt(monkeypatch):
    monkeypatch.setattr(module, "_DOUBTS", 3)
    vectors = 1.0 + 1e-12 * np.random.default_rng(0).normal(size=(12, 5))
    found = kruskal(vectors)
    assert found.lower == 2 < found.upper == 5
    monkeypatch.undo()
    assert kruskal(vectors).lower == 5


def test_the_same_every_time():
    vectors = np.random.default_rng(0).normal(size=(60, 12))
    assert kruskal(vectors) == kruskal(vectors)
    assert kruskal(vectors, rng=np.random.default_rng(5)).lower == kruskal(vectors).lower


def test_refusals():
    with pytest.raises(BadInput, match=r"vectors\[0, 1\] is nan; expected finite numbers"):
        kruskal([[1.0, np.nan]])
    with pytest.raises(BadInput, match=r"vectors has shape \(2,\); expected \[N, d\]"):
        kruskal([1.0, 2.0])
    with pytest.raises(BadInput, match=r"vectors has shape \(0, 2\); expected at least one example"):
        kruskal(np.zeros((0, 2)))
    with pytest.raises(BadInput, match="wanted is 0; expected at least 1"):
        kruskal([[1.0]], 0)
    with pytest.raises(BadInput, match="budget is -1 and samples is 1; expected 0 or more of both"):
        kruskal([[1.0]], budget=-1, samples=1)
    with pytest.raises(BadInput, match="k is 0; expected at least 1"):
        KruskalBounds(1, 1, "it is not zero", 1).verdict(0)

"""What can be proved of a Kruskal rank within a budget, from both sides; then what random subsets say."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.tasks.checks import Floats, Ids, count, floats
from byheart.tasks.kruskal.answer import Kruskal, Sampled
from byheart.tasks.kruskal.functionals import certified, frame_of, optimized
from byheart.tasks.ranks import Flags, exact_rank, independent, prime, surely_full, whole_rows


class _Eliminated(NamedTuple):
    """A basis out of m vectors, r of them, and which of the basis the others need."""

    needed: Flags
    """bool [r, m - r]."""
    basis: Ids
    """int64 [r]: places among the m vectors."""
    others: Ids
    """int64 [m - r]: places among the m vectors."""


class Circuits:
    """Circuits of vectors [N, d], by Gauss elimination modulo a prime; what it hands out is verified exactly."""

    def __init__(self, vectors: Floats, rng: np.random.Generator) -> None:
        self.vectors = vectors
        self.rng = rng
        self._modulus = prime(0)
        self._residues = np.array([[number % self._modulus for number in row] for row in whole_rows(vectors)], np.int64)

    def smallest(self, members: Ids, below: int) -> tuple[int, ...] | None:
        """The smallest circuit met, out of ``members`` [m], if it has less than ``below`` vectors.

        Elimination expresses each member that depends on those before it by a basis out of them, in one way; so it and
        what it needs of the basis are a circuit, modulo the prime.
        """
        needed, basis, others = self.eliminated(members)
        if not len(others):
            return None
        best = int(needed.sum(axis=0).argmin())
        circuit = np.sort(np.append(members[basis[needed[:, best]]], members[others[best]]))
        if len(circuit) >= below or not self._dependent(circuit):
            return None
        return tuple(circuit.tolist())

    def eliminated(self, members: Ids) -> _Eliminated:
        """``members`` [m], expressed in a basis out of them, the first ones that can be, modulo the prime."""
        from flint import nmod_mat

        columns = self._residues[members].T
        reduced, rank = nmod_mat(columns.tolist(), self._modulus).rref()
        entries = np.fromiter(map(int, reduced.entries()), np.int64, columns.size)
        filled = entries.reshape(columns.shape)[:rank] != 0
        basis = filled.argmax(axis=1)
        others = np.setdiff1d(np.arange(len(members)), basis)
        return _Eliminated(filled[:, others], basis, others)

    def _dependent(self, members: Ids) -> bool:
        return len(members) > self.vectors.shape[1] or exact_rank(self.vectors[members]) < len(members)


BUDGET = 300_000
SAMPLES = 100
_EFFORT = 1.5e11
"""About how many multiplications to spend on functionals."""
_STEPS = 100
_ELIMINATION = 500_000_000
"""About how many multiplications modulo a prime to spend on bases, and on null vectors."""
_BASES = 16
_DOUBTS = 1000
"""How many subsets to decide in exact arithmetic before giving up on going through all of them."""
_AT_ONCE = 2**21


def kruskal(
    vectors: npt.ArrayLike,
    wanted: int | None = None,
    *,
    budget: int = BUDGET,
    samples: int = SAMPLES,
    rng: np.random.Generator | None = None,
) -> Kruskal:
    """Bounds on the Kruskal rank of ``vectors`` [N, d]; no effort beyond deciding whether it is at least ``wanted``.

    ``budget`` is how many subsets of up to 16 vectors to go through; larger ones, of k, count (k/16)³-fold. Then
    ``samples`` random subsets of size ``wanted``, or else of the upper bound, are tried. The same ``rng`` gives the
    same answer; without one it is always the same.

    >>> print(kruskal([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 2, 3]]))
    Kruskal rank 2: no two are parallel; vectors 0, 1 and 3 are dependent
    >>> print(kruskal([[1, 2], [3, 4], [1.5, 2.5]]))
    Kruskal rank 2: no two are parallel; vectors 0, 1 and 2 are dependent
    """
    array = floats("vectors", vectors, shape=("N", "d"))
    if wanted is not None:
        count("wanted", wanted)
    if budget < 0 or samples < 0:
        raise BadInput(f"budget is {budget} and samples is {samples}; expected 0 or more of both")
    known = _at_first_sight(array)
    if known.exact:
        return known
    if independent(array):
        return known.proved(len(array), "all are independent")
    circuits = Circuits(array, np.random.default_rng(0) if rng is None else rng)
    known = _by_elimination(known, circuits)
    known = _by_bases(known, circuits) if _open(known, wanted) else known
    known = _by_functionals(known, circuits) if _open(known, wanted) else known
    while (size := _size_within(budget, known, wanted)) is not None:
        known, gave_up = _by_all_subsets(known, circuits, size)
        if gave_up:
            break
    return _by_samples(known, circuits, _asked(known, wanted), samples) if _open(known, wanted) else known


def _asked(known: Kruskal, wanted: int | None) -> int:
    return known.upper if wanted is None else wanted


def _open(known: Kruskal, wanted: int | None) -> bool:
    return known.lower < _asked(known, wanted) <= known.upper


def _at_first_sight(vectors: Floats) -> Kruskal:
    """What zero vectors and parallel ones say, exactly."""
    total = len(vectors)
    nonzero = vectors.any(axis=1)
    if not nonzero.all():
        return Kruskal(total, 0, "that is always so", 0, (int(nonzero.argmin()),))
    if total == 1:
        return Kruskal(1, 1, "it is not zero", 1)
    first: dict[tuple[int, ...], int] = {}
    for index, row in enumerate(whole_rows(vectors)):
        earlier = first.setdefault(_primitive(row), index)
        if earlier != index:
            return Kruskal(total, 1, "none is zero", 1, (earlier, index))
    return Kruskal(total, 2, "no two are parallel", total)


def _primitive(row: list[int]) -> tuple[int, ...]:
    """The shortest integer vector parallel to a non-zero one, its first non-zero entry positive.

    >>> _primitive([0, -4, 6])
    (0, 2, -3)
    """
    divisor = math.gcd(*row)
    if next(filter(None, row)) < 0:
        divisor = -divisor
    return tuple(number // divisor for number in row)


def _by_elimination(known: Kruskal, circuits: Circuits) -> Kruskal:
    """A first dependent set; the vectors must be dependent.

    If it leaves only one vector outside of a basis, modulo the prime, there is one relation, up to a factor, so one
    circuit: a basis modulo the prime is independent.
    """
    total, dim = circuits.vectors.shape
    circuit = circuits.smallest(np.arange(total), total + 1)
    if circuit is None:
        return known.refuted(tuple(range(min(total, dim + 1))))
    known = known.refuted(circuit)
    if len(circuits.eliminated(np.arange(total)).others) > 1:
        return known
    return known.proved(known.upper, f"their only circuit has {len(circuit)} vectors")


def _by_bases(known: Kruskal, circuits: Circuits) -> Kruskal:
    """Circuits from all vectors, expressed in random bases."""
    total, dim = circuits.vectors.shape
    for _ in range(min(_BASES, 1 + _ELIMINATION // (total * dim**2))):
        known = known.refuted(circuits.smallest(circuits.rng.permutation(total), known.upper + 1))
    return known


def _by_functionals(known: Kruskal, circuits: Circuits) -> Kruskal:
    """The lower bound of functionals, and circuits from the null vectors that come with them."""
    total, dim = circuits.vectors.shape
    if total**2 * dim > _EFFORT:
        return known
    frame = frame_of(circuits.vectors)
    rank = frame.basis.shape[1]
    steps = min(_STEPS, int(_EFFORT / (4 * total**2 * rank)))
    lower, norms, likely = total, [], []
    at_once = max(1, _AT_ONCE // total)
    for start in range(0, total, at_once):
        own = np.arange(start, min(start + at_once, total))
        functionals, nulls = optimized(frame.basis, own, steps)
        sizes = np.maximum(certified(frame, frame.basis[own], own), certified(frame, functionals, own))
        lower = min(lower, int(sizes.min()))
        norms.append(nulls.sum(axis=1))
        nulls[np.arange(len(own)), own] = np.inf
        likely.append(np.argpartition(-nulls, min(rank, total - 1), axis=1)[:, : rank + 1])
    known = known.proved(lower, "functionals certify it, an optimized cumulative coherence")
    order = np.argsort(np.concatenate(norms))
    for members in np.concatenate(likely)[order[: 1 + _ELIMINATION // ((rank + 1) * dim**2)]]:
        known = known.refuted(circuits.smallest(members, known.upper + 1))
    return known


def _size_within(budget: int, known: Kruskal, wanted: int | None) -> int | None:
    """The largest size of subsets that is open, is asked for, and has few enough of them; ``None`` if there is none."""
    if not _open(known, wanted):
        return None
    sizes = range(_asked(known, wanted), known.lower, -1)
    most = budget * 16**3
    return next((size for size in sizes if math.comb(known.vectors, size) * max(16, size) ** 3 <= most), None)


def _by_all_subsets(known: Kruskal, circuits: Circuits, size: int) -> tuple[Kruskal, bool]:
    """What going through all subsets of one size says, and whether it gave up, because too many were in doubt."""
    doubts = 0
    for subsets in _batches(combinations(range(known.vectors), size), size * circuits.vectors.shape[1]):
        doubtful = np.flatnonzero(~surely_full(circuits.vectors[subsets]))
        for subset in subsets[doubtful[: _DOUBTS - doubts]]:
            circuit = circuits.smallest(subset, known.upper + 1)
            if circuit is not None:
                return known.refuted(circuit), False
            if exact_rank(circuits.vectors[subset]) < size:
                return known.refuted(tuple(subset.tolist())), False
        doubts += len(doubtful)
        if doubts > _DOUBTS:
            return known, True
    words = f"all {math.comb(known.vectors, size):,} subsets of size {size} are independent"
    return known.proved(size, words), False


def _by_samples(known: Kruskal, circuits: Circuits, size: int, samples: int) -> Kruskal:
    """What random subsets of one size say."""
    total, dim = circuits.vectors.shape
    draws = (circuits.rng.choice(total, size, replace=False).tolist() for _ in range(samples))
    tried = 0
    for subsets in _batches(draws, size * dim):
        for one in np.flatnonzero(~surely_full(circuits.vectors[subsets])):
            if exact_rank(circuits.vectors[subsets[one]]) < size:
                subset = np.sort(subsets[one])
                sampled = Sampled(size, tried + int(one) + 1, tuple(subset.tolist()))
                circuit = circuits.smallest(subset, size + 1) or sampled.dependent
                return replace(known.refuted(circuit), sampled=sampled)
        tried += len(subsets)
    return replace(known, sampled=Sampled(size, tried)) if tried else known


def _batches(subsets: Iterator[tuple[int, ...]] | Iterator[list[int]], entries: int) -> Iterator[Ids]:
    """The subsets in batches [B, k], as many at once as fit into memory at ``entries`` numbers each."""
    while batch := list(islice(subsets, max(1, _AT_ONCE // entries))):
        yield np.array(batch, np.int64)

"""Bound the Kruskal rank of vectors: the largest k such that *every* k of them are linearly independent.

It is NP-hard to find, so :func:`kruskal` returns what it can prove, from both sides, and separately what it only
sampled. Vectors are float64, each entry the dyadic rational that it represents. A *circuit* is a dependent set
whose proper subsets are all independent. The Kruskal rank is one less than the size of the smallest circuit, or N if
there is none.

**Lower bounds** are proved, by the best of

- exact comparison: no vector is zero, no two are parallel;
- all N vectors independent (:func:`~byheart.tasks.ranks.independent`);
- all but one independent, so that there is only one circuit;
- all k-subsets, if there are few enough;
- functionals, an optimized cumulative coherence (below).

**Upper bounds** are explicit circuits. Candidates come from Gauss elimination modulo a prime
(:class:`Circuits`), of all vectors in random order, and of those with large entries in null vectors of few entries.
Modulo the prime their proper subsets are independent, so they are; that the candidates are dependent is checked with
:func:`~byheart.tasks.ranks.exact_rank`.

**Samples** are random subsets of one size, each decided exactly. They prove nothing if all are independent.

**Functionals** certify that every k vectors are independent.

**Theorem.** Scale the vectors to b_j = s_j·a_j, any s_j > 0, and give each i any functional y_i. If for every i the
k - 1 largest of |⟨y_i, b_j⟩|, j ≠ i, sum to less than |⟨y_i, b_i⟩|, every k vectors are independent. For let S be k of
them and Σ_{j∈S} c_j·b_j = 0, not all c_j zero, |c_i| the largest. Then |c_i|·|⟨y_i, b_i⟩| = |Σ_{j≠i} c_j·⟨y_i, b_j⟩| ≤
|c_i|·Σ_{j∈S, j≠i} |⟨y_i, b_j⟩| < |c_i|·|⟨y_i, b_i⟩|, which cannot be.

With y_i = b_i of norm 1 this is the cumulative coherence (Babel function) bound of Tropp (2004): μ₁(k - 1) < 1. Two
things make it better. The Kruskal rank does not change under invertible maps and scaling, so the vectors are first
brought close to where all have norm 1 and their Gram matrix is a multiple of a projection. And y_i is then optimized:
to make the largest |⟨y_i, b_j⟩| as small as it can be is a linear program, whose dual is to find the null vector x of
the vectors with x_i = 1 and the least Σ|x_j| (Juditsky and Nemirovski, 2011), solved here roughly, by ADMM. None of
that has to be exact: the sums are taken of the resulting functionals and of the given vectors, with the bound of
:func:`~byheart.tasks.ranks.rounding` added to every product, and 10⁻⁹ to spare for the sums themselves.

With Σ_j ⟨y_i, b_j⟩² bounded from below as in Welch's inequality, a bound on the largest |⟨y_i, b_j⟩| alone never gives
more than 1 + √(d(N - 1)/(N - d)): 9 for 621 vectors in 64 dimensions, 41 for 500 in 384. Random ones reach 4 and 29.
Between that and d only few or special vectors are decided; for the rest the answer says that it is open.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.tasks.arrays import Flags, Floats, Ids, as_floats, check_count
from byheart.tasks.ranks import UNDERFLOW, exact_rank, independent, prime, rounding, scaled, surely_full, whole_rows


@dataclass(frozen=True)
class Sampled:
    """Random subsets of one size, each decided exactly: an estimate, not a proof.

    >>> print(Sampled(32, 100))
    none of 100 random subsets of size 32 is dependent (an estimate, not a proof)
    """

    size: int
    tried: int
    dependent: tuple[int, ...] | None = None
    """First dependent subset, at which sampling stopped; ``None`` if all were independent."""

    def __str__(self) -> str:
        if self.dependent is not None:
            return f"number {self.tried:,} of the random subsets of size {self.size} is dependent"
        return f"none of {self.tried:,} random subsets of size {self.size} is dependent (an estimate, not a proof)"


@dataclass(frozen=True)
class IndependenceVerdict:
    """The answer whether every k of the vectors are independent, with the reason."""

    k: int
    answer: Literal["holds", "fails", "undecided"]
    why: str

    def __str__(self) -> str:
        return f"every {self.k} independent: {self.answer}; {self.why}"


@dataclass(frozen=True)
class KruskalBounds:
    """Proved bounds on the Kruskal rank of N vectors: ``lower`` ≤ the Kruskal rank ≤ ``upper``."""

    vectors: int
    """Number of vectors, N."""
    lower: int
    lower_by: str
    """Reason for the lower bound."""
    upper: int
    circuit: tuple[int, ...] | None = None
    """Indices of ``upper`` + 1 dependent vectors, verified exactly; ``None`` if ``upper`` is N."""
    sampled: Sampled | None = None
    """Estimate by samples; ``None`` if nothing was left to sample."""

    @property
    def exact(self) -> bool:
        """True if the bounds are equal."""
        return self.lower == self.upper

    @property
    def upper_by(self) -> str:
        """Reason for the upper bound."""
        if self.circuit is None:
            return f"there are {self.vectors} vectors"
        if self.upper == 0:
            return f"vector {self.circuit[0]} is zero"
        return f"vectors {_listed(self.circuit)} are dependent"

    def refuted(self, circuit: tuple[int, ...] | None) -> "KruskalBounds":
        """Return the bounds with the upper bound from a circuit, if it is better."""
        if circuit is None or len(circuit) > self.upper:
            return self
        assert self.lower < len(circuit), "a set proved independent is dependent; please report this"
        return replace(self, upper=len(circuit) - 1, circuit=circuit)

    def proved(self, lower: int, by: str) -> "KruskalBounds":
        """Return the bounds with another lower bound, if it is better."""
        if lower <= self.lower:
            return self
        assert lower <= self.upper, "a dependent set was proved independent; please report this"
        return replace(self, lower=lower, lower_by=by)

    def verdict(self, k: int) -> IndependenceVerdict:
        """Return whether every ``k`` of the vectors are independent, as far as it is known.

        >>> print(KruskalBounds(9, 2, "no two are parallel", 5, (0, 1, 2, 3, 4, 5), Sampled(4, 100)).verdict(4))
        every 4 independent: undecided; none of 100 random subsets of size 4 is dependent (an estimate, not a proof)
        """
        check_count("k", k)
        if k <= self.lower:
            return IndependenceVerdict(k, "holds", self.lower_by)
        if k > self.upper:
            return IndependenceVerdict(k, "fails", self.upper_by)
        if self.sampled is None or self.sampled.dependent is not None or self.sampled.size < k:
            return IndependenceVerdict(
                k, "undecided", f"proved for {self.lower}, refuted for {self.upper + 1}, not sampled"
            )
        return IndependenceVerdict(k, "undecided", str(self.sampled))

    def __str__(self) -> str:
        if self.exact:
            return f"Kruskal rank {self.lower}: {self.lower_by}; {self.upper_by}"
        claim = f"Kruskal rank at least {self.lower} ({self.lower_by}) and at most {self.upper} ({self.upper_by})"
        return claim if self.sampled is None else f"{claim}; {self.sampled}"


def _listed(indices: tuple[int, ...]) -> str:
    """List the first few indices.

    >>> _listed((3, 5)), _listed(tuple(range(20)))
    ('3 and 5', '0, 1, 2, 3, 4, 5, … and 19 (20 of them)')
    """
    if len(indices) <= 8:
        return f"{', '.join(map(str, indices[:-1]))} and {indices[-1]}"
    return f"{', '.join(map(str, indices[:6]))}, … and {indices[-1]} ({len(indices)} of them)"


SPARE = 1e-9
"""Relative margin for the rounding of functionals' sums: more than N·2⁻⁵² for every N that fits into memory."""
_ROUNDS = 8

Floats32 = npt.NDArray[np.float32]


class Frame(NamedTuple):
    """Vectors brought close to where all have the same norm and their Gram matrix is a multiple of a projection."""

    rows: Floats
    """[N, d]: vectors, scaled by powers of two."""
    scales: Floats
    """[N]: further scale of each row."""
    basis: Floats
    """[N, r]: approximate image of the scaled rows under ``back``; its columns are orthonormal."""
    back: Floats
    """[d, r]: map from the scaled rows to ``basis``."""


def frame_of(vectors: Floats) -> Frame:
    """Whiten and scale to norm 1 repeatedly. r is the numerical rank. No proof depends on the quality of the result."""
    rows = scaled(vectors)
    scales = 1 / np.linalg.norm(rows, axis=1)
    for _ in range(_ROUNDS):
        points = rows * scales[:, None]
        values, directions = np.linalg.eigh(points.T @ points)
        kept = values > 1e-12 * values[-1]
        leverages = ((points @ directions[:, kept]) ** 2 / values[kept]).sum(axis=1)
        scales /= np.sqrt(np.clip(leverages, 1e-6, 1))
        scales /= scales.mean()
    left, sizes, right = np.linalg.svd(rows * scales[:, None], full_matrices=False)
    kept = sizes > 1e-11 * sizes[0]
    return Frame(rows, scales, left[:, kept], right[kept].T / sizes[kept])


def optimized(basis: Floats, own: Ids, steps: int) -> tuple[Floats, Floats32]:
    """Find for each i of ``own`` [m] a functional on the rows of ``basis`` [N, r], and magnitudes of a null vector.

    Return float64 [m, r] and float32 [m, N]. ADMM searches the null vector x with x_i = 1 and the least Σ|x_j|:
    projections onto the null vectors with x_i = 1 alternate with shrinking. The removed parts sum to a functional.
    """
    points = basis.astype(np.float32)
    lines = np.arange(len(own))
    mine = points[own]
    leverages = (mine**2).sum(axis=1)
    room = np.maximum(1 - leverages, np.float32(1e-5))
    threshold = 3 * np.sqrt(leverages / room / len(basis))[:, None]
    removed = np.zeros((len(own), len(basis)), np.float32)
    shrunk = np.zeros_like(removed)
    for _ in range(steps):
        step = shrunk - removed
        inner = step @ points
        missing = (1 - step[lines, own] + (inner * mine).sum(axis=1)) / room
        step -= (inner + missing[:, None] * mine) @ points.T
        step[lines, own] += missing
        shrunk = np.float32(1.6) * step + np.float32(-0.6) * shrunk + removed
        removed = np.clip(shrunk, -threshold, threshold)
        removed[lines, own] = 0
        shrunk -= removed
    total = removed @ points
    functionals = total + ((total * mine).sum(axis=1) / room)[:, None] * mine
    return functionals.astype(np.float64), np.abs(shrunk)


def certified(frame: Frame, functionals: Floats, own: Ids) -> Ids:
    """Return for each i of ``own`` [m] the largest k that its functional [m, r] certifies by the theorem: int64 [m]."""
    lines = np.arange(len(own))
    applied = scaled(functionals @ frame.back.T)
    values: Floats = np.abs(applied @ frame.rows.T)
    errors = rounding(frame.rows.shape[1]) * (np.abs(applied) @ np.abs(frame.rows).T) + UNDERFLOW
    least = (values - errors)[lines, own] * frame.scales[own] * (1 - SPARE)
    most = (values + errors) * frame.scales
    most[lines, own] = 0
    sums = np.cumsum(-np.sort(-most, axis=1), axis=1)[:, :-1]
    return np.asarray(1 + (sums < least[:, None]).sum(axis=1), np.int64)


class _Eliminated(NamedTuple):
    """A basis of r out of m vectors, and the members of the basis that each other vector needs."""

    needed: Flags
    """bool [r, m - r]: True if the other vector needs the member of the basis."""
    basis: Ids
    """int64 [r]: indices among the m vectors."""
    others: Ids
    """int64 [m - r]: indices among the m vectors."""


class Circuits:
    """Finds circuits of vectors [N, d] by Gauss elimination modulo a prime, and verifies them exactly."""

    def __init__(self, vectors: Floats, rng: np.random.Generator) -> None:
        self.vectors = vectors
        self.rng = rng
        self._modulus = prime(0)
        self._residues = np.array([[number % self._modulus for number in row] for row in whole_rows(vectors)], np.int64)

    def smallest(self, members: Ids, below: int) -> tuple[int, ...] | None:
        """Return the smallest circuit found among ``members`` [m] if it has less than ``below`` vectors.

        Elimination expresses each dependent member by a basis of earlier ones, in a unique way. Modulo the prime, the
        member and the part of the basis that it needs are a circuit.
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
        """Express ``members`` [m] in a basis of the first independent ones, modulo the prime."""
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
"""Approximate number of multiplications to spend on functionals."""
_STEPS = 100
_ELIMINATION = 500_000_000
"""Approximate number of multiplications modulo a prime to spend on bases, and on null vectors."""
_BASES = 16
_DOUBTS = 1000
"""Number of subsets decided in exact arithmetic before the search through all subsets is abandoned."""
_AT_ONCE = 2**21


def kruskal(
    vectors: npt.ArrayLike,
    wanted: int | None = None,
    *,
    budget: int = BUDGET,
    samples: int = SAMPLES,
    rng: np.random.Generator | None = None,
) -> KruskalBounds:
    """Bound the Kruskal rank of ``vectors`` [N, d], only as far as needed to decide if it is at least ``wanted``.

    ``budget`` is the number of subsets of up to 16 vectors to examine; larger ones, of k, count (k/16)³-fold. Then
    ``samples`` random subsets of size ``wanted``, or else of the upper bound, are tried. The same ``rng`` gives the
    same answer; without one it is always the same.

    >>> print(kruskal([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 2, 3]]))
    Kruskal rank 2: no two are parallel; vectors 0, 1 and 3 are dependent
    >>> print(kruskal([[1, 2], [3, 4], [1.5, 2.5]]))
    Kruskal rank 2: no two are parallel; vectors 0, 1 and 2 are dependent
    """
    array = as_floats("vectors", vectors, shape=("N", "d"))
    if wanted is not None:
        check_count("wanted", wanted)
    if budget < 0 or samples < 0:
        raise BadInput(f"budget is {budget} and samples is {samples}; expected 0 or more of both")
    bounds = _at_first_sight(array)
    if bounds.exact:
        return bounds
    if independent(array):
        return bounds.proved(len(array), "all are independent")
    circuits = Circuits(array, np.random.default_rng(0) if rng is None else rng)
    bounds = _by_elimination(bounds, circuits)
    bounds = _by_bases(bounds, circuits) if _is_open(bounds, wanted) else bounds
    bounds = _by_functionals(bounds, circuits) if _is_open(bounds, wanted) else bounds
    while (size := _size_within(budget, bounds, wanted)) is not None:
        bounds, gave_up = _by_all_subsets(bounds, circuits, size)
        if gave_up:
            break
    return _by_samples(bounds, circuits, _target(bounds, wanted), samples) if _is_open(bounds, wanted) else bounds


def _target(bounds: KruskalBounds, wanted: int | None) -> int:
    return bounds.upper if wanted is None else wanted


def _is_open(bounds: KruskalBounds, wanted: int | None) -> bool:
    return bounds.lower < _target(bounds, wanted) <= bounds.upper


def _at_first_sight(vectors: Floats) -> KruskalBounds:
    """Return the bounds from zero vectors and parallel ones, exactly."""
    total = len(vectors)
    nonzero = vectors.any(axis=1)
    if not nonzero.all():
        return KruskalBounds(total, 0, "that is always so", 0, (int(nonzero.argmin()),))
    if total == 1:
        return KruskalBounds(1, 1, "it is not zero", 1)
    first: dict[tuple[int, ...], int] = {}
    for index, row in enumerate(whole_rows(vectors)):
        earlier = first.setdefault(_primitive(row), index)
        if earlier != index:
            return KruskalBounds(total, 1, "none is zero", 1, (earlier, index))
    return KruskalBounds(total, 2, "no two are parallel", total)


def _primitive(row: list[int]) -> tuple[int, ...]:
    """Return the shortest integer vector parallel to a non-zero one, its first non-zero entry positive.

    >>> _primitive([0, -4, 6])
    (0, 2, -3)
    """
    divisor = math.gcd(*row)
    if next(filter(None, row)) < 0:
        divisor = -divisor
    return tuple(number // divisor for number in row)


def _by_elimination(bounds: KruskalBounds, circuits: Circuits) -> KruskalBounds:
    """Improve the bounds by a first dependent set; the vectors must be dependent.

    If only one vector is outside the basis, modulo the prime, there is one relation, up to a factor, so one
    circuit: a basis modulo the prime is independent.
    """
    total, dim = circuits.vectors.shape
    circuit = circuits.smallest(np.arange(total), total + 1)
    if circuit is None:
        return bounds.refuted(tuple(range(min(total, dim + 1))))
    bounds = bounds.refuted(circuit)
    if len(circuits.eliminated(np.arange(total)).others) > 1:
        return bounds
    return bounds.proved(bounds.upper, f"their only circuit has {len(circuit)} vectors")


def _by_bases(bounds: KruskalBounds, circuits: Circuits) -> KruskalBounds:
    """Improve the upper bound by circuits in random bases of all vectors."""
    total, dim = circuits.vectors.shape
    for _ in range(min(_BASES, 1 + _ELIMINATION // (total * dim**2))):
        bounds = bounds.refuted(circuits.smallest(circuits.rng.permutation(total), bounds.upper + 1))
    return bounds


def _by_functionals(bounds: KruskalBounds, circuits: Circuits) -> KruskalBounds:
    """Improve the bounds by functionals, and by circuits from the null vectors that come with them."""
    total, dim = circuits.vectors.shape
    if total**2 * dim > _EFFORT:
        return bounds
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
    bounds = bounds.proved(lower, "functionals certify it, an optimized cumulative coherence")
    order = np.argsort(np.concatenate(norms))
    for members in np.concatenate(likely)[order[: 1 + _ELIMINATION // ((rank + 1) * dim**2)]]:
        bounds = bounds.refuted(circuits.smallest(members, bounds.upper + 1))
    return bounds


def _size_within(budget: int, bounds: KruskalBounds, wanted: int | None) -> int | None:
    """Return the largest undecided size of subsets of which there are few enough; ``None`` if there is none."""
    if not _is_open(bounds, wanted):
        return None
    sizes = range(_target(bounds, wanted), bounds.lower, -1)
    most = budget * 16**3
    return next((size for size in sizes if math.comb(bounds.vectors, size) * max(16, size) ** 3 <= most), None)


def _by_all_subsets(bounds: KruskalBounds, circuits: Circuits, size: int) -> tuple[KruskalBounds, bool]:
    """Improve the bounds by all subsets of one size. Return them, and True if too many subsets were in doubt."""
    doubts = 0
    for subsets in _batches(combinations(range(bounds.vectors), size), size * circuits.vectors.shape[1]):
        doubtful = np.flatnonzero(~surely_full(circuits.vectors[subsets]))
        for subset in subsets[doubtful[: _DOUBTS - doubts]]:
            circuit = circuits.smallest(subset, bounds.upper + 1)
            if circuit is not None:
                return bounds.refuted(circuit), False
            if exact_rank(circuits.vectors[subset]) < size:
                return bounds.refuted(tuple(subset.tolist())), False
        doubts += len(doubtful)
        if doubts > _DOUBTS:
            return bounds, True
    words = f"all {math.comb(bounds.vectors, size):,} subsets of size {size} are independent"
    return bounds.proved(size, words), False


def _by_samples(bounds: KruskalBounds, circuits: Circuits, size: int, samples: int) -> KruskalBounds:
    """Add what random subsets of one size show."""
    total, dim = circuits.vectors.shape
    draws = (circuits.rng.choice(total, size, replace=False).tolist() for _ in range(samples))
    tried = 0
    for subsets in _batches(draws, size * dim):
        for row in np.flatnonzero(~surely_full(circuits.vectors[subsets])):
            if exact_rank(circuits.vectors[subsets[row]]) < size:
                subset = np.sort(subsets[row])
                sampled = Sampled(size, tried + int(row) + 1, tuple(subset.tolist()))
                circuit = circuits.smallest(subset, size + 1) or sampled.dependent
                return replace(bounds.refuted(circuit), sampled=sampled)
        tried += len(subsets)
    return replace(bounds, sampled=Sampled(size, tried)) if tried else bounds


def _batches(subsets: Iterator[tuple[int, ...]] | Iterator[list[int]], entries: int) -> Iterator[Ids]:
    """Yield the subsets in batches [B, k] that fit into memory at ``entries`` numbers each."""
    while batch := list(islice(subsets, max(1, _AT_ONCE // entries))):
        yield np.array(batch, np.int64)

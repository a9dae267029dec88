"""The Kruskal rank of vectors: the largest k such that *every* k of them are linearly independent.

To find it is NP-hard, so :func:`kruskal` answers with what it can prove, from both sides, and keeps apart what it only
sampled. Vectors are float64, taken as the dyadic rationals that they are. A *circuit* is a dependent set whose proper
subsets are all independent; the Kruskal rank is one less than the size of the smallest circuit, or N if there is none.

**Lower bounds** are certified, by the best of

- exact comparison: no vector is zero, no two are parallel;
- all N vectors independent (:func:`~byheart.tasks.ranks.independent`);
- all but one independent, so that there is one circuit only;
- going through all k-subsets, where there are few enough;
- functionals, an optimized cumulative coherence (below).

**Upper bounds** are circuits that are exhibited. Candidates come from Gauss elimination modulo a prime
(:class:`Circuits`), of all vectors in random order, and of those with large entries in null vectors of few entries.
Modulo the prime their proper subsets are independent, so they are; that the candidates are dependent is checked with
:func:`~byheart.tasks.ranks.exact_rank`.

**Sampled**: random subsets of one size, each of them decided exactly. That none is dependent proves nothing.

Functionals that certify that every k vectors are independent.

**Theorem.** Scale the vectors to b_j = s_j·a_j, any s_j > 0, and give each i any functional y_i. If for every i the
k - 1 largest of |⟨y_i, b_j⟩|, j ≠ i, sum to less than |⟨y_i, b_i⟩|, every k vectors are independent. For let S be k of
them and Σ_{j∈S} c_j·b_j = 0, not all c_j zero, |c_i| the largest. Then |c_i|·|⟨y_i, b_i⟩| = |Σ_{j≠i} c_j·⟨y_i, b_j⟩| ≤
|c_i|·Σ_{j∈S, j≠i} |⟨y_i, b_j⟩| < |c_i|·|⟨y_i, b_i⟩|, which cannot be.

With y_i = b_i of norm 1 this is the cumulative coherence (Babel function) bound of Tropp (2004): μ₁(k - 1) < 1. Two
things make it better. The Kruskal rank does not change under invertible maps and scaling, so the vectors are first
brought close to where all have norm 1 and their Gram matrix is a multiple of a projection. And y_i is then optimized:
to make the largest |⟨y_i, b_j⟩| as small as it can be is a linear program, whose dual is to find the null vector x of
the vectors with x_i = 1 and the least Σ|x_j| (Juditsky and Nemirovski, 2011), solved here roughly, by ADMM. None of
that has to be right: the sums are taken of the functionals as they came out and of the given vectors, with the bound of
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
    """Random subsets of one size, each of them decided exactly: an estimate, not a proof.

    >>> print(Sampled(32, 100))
    none of 100 random subsets of size 32 is dependent (an estimate, not a proof)
    """

    size: int
    tried: int
    dependent: tuple[int, ...] | None = None
    """The first dependent subset met, at which sampling stopped; ``None`` if all were independent."""

    def __str__(self) -> str:
        if self.dependent is not None:
            return f"number {self.tried:,} of the random subsets of size {self.size} is dependent"
        return f"none of {self.tried:,} random subsets of size {self.size} is dependent (an estimate, not a proof)"


@dataclass(frozen=True)
class IndependenceVerdict:
    """Whether every k of the vectors are independent, and why, or why that is open."""

    k: int
    answer: Literal["holds", "fails", "undecided"]
    why: str

    def __str__(self) -> str:
        return f"every {self.k} independent: {self.answer}; {self.why}"


@dataclass(frozen=True)
class KruskalBounds:
    """What is known of the Kruskal rank of N vectors: ``lower`` ≤ the Kruskal rank ≤ ``upper``, both proved."""

    vectors: int
    """N."""
    lower: int
    lower_by: str
    """What certifies the lower bound, in words."""
    upper: int
    circuit: tuple[int, ...] | None = None
    """Dependent vectors, ``upper`` + 1 of them, verified exactly; ``None`` if ``upper`` is N."""
    sampled: Sampled | None = None
    """The estimate; ``None`` if nothing was left to sample."""

    @property
    def exact(self) -> bool:
        """Whether the bounds meet."""
        return self.lower == self.upper

    @property
    def upper_by(self) -> str:
        """What certifies the upper bound, in words."""
        if self.circuit is None:
            return f"there are {self.vectors} vectors"
        if self.upper == 0:
            return f"vector {self.circuit[0]} is zero"
        return f"vectors {_listed(self.circuit)} are dependent"

    def refuted(self, circuit: tuple[int, ...] | None) -> "KruskalBounds":
        """With the upper bound from a circuit, if that is better."""
        if circuit is None or len(circuit) > self.upper:
            return self
        assert self.lower < len(circuit), "a set proved independent is dependent; please report this"
        return replace(self, upper=len(circuit) - 1, circuit=circuit)

    def proved(self, lower: int, by: str) -> "KruskalBounds":
        """With a lower bound, if that is better."""
        if lower <= self.lower:
            return self
        assert lower <= self.upper, "a dependent set was proved independent; please report this"
        return replace(self, lower=lower, lower_by=by)

    def verdict(self, k: int) -> IndependenceVerdict:
        """Whether every ``k`` of the vectors are independent.

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
    """The first few indices in words.

    >>> _listed((3, 5)), _listed(tuple(range(20)))
    ('3 and 5', '0, 1, 2, 3, 4, 5, … and 19 (20 of them)')
    """
    if len(indices) <= 8:
        return f"{', '.join(map(str, indices[:-1]))} and {indices[-1]}"
    return f"{', '.join(map(str, indices[:6]))}, … and {indices[-1]} ({len(indices)} of them)"


SPARE = 1e-9
"""What functionals leave for the rounding of their sums: more than N·2⁻⁵² for every N that fits into memory."""
_ROUNDS = 8

Floats32 = npt.NDArray[np.float32]


class Frame(NamedTuple):
    """Vectors brought close to where all have the same norm and their Gram matrix is a multiple of a projection."""

    rows: Floats
    """[N, d]: the vectors, scaled by powers of two."""
    scales: Floats
    """[N]: what to scale them by further."""
    basis: Floats
    """[N, r]: about what the map ``back`` then makes of them; its columns are orthonormal."""
    back: Floats
    """[d, r]."""


def frame_of(vectors: Floats) -> Frame:
    """Whiten, scale to norm 1, and again; r is the numerical rank. Nothing depends on how well that works."""
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
    """For each i of ``own`` [m] a functional on the rows of ``basis`` [N, r], and the magnitudes of a null vector.

    float64 [m, r] and float32 [m, N]. ADMM for the null vector x with x_i = 1 and the least Σ|x_j|: projections onto
    the null vectors with x_i = 1 alternate with shrinking, and what shrinking takes away sums to a functional.
    """
    points = basis.astype(np.float32)
    lines = np.arange(len(own))
    mine = points[own]
    leverages = (mine**2).sum(axis=1)
    room = np.maximum(1 - leverages, np.float32(1e-5))
    threshold = 3 * np.sqrt(leverages / room / len(basis))[:, None]
    taken = np.zeros((len(own), len(basis)), np.float32)
    shrunk = np.zeros_like(taken)
    for _ in range(steps):
        step = shrunk - taken
        inner = step @ points
        missing = (1 - step[lines, own] + (inner * mine).sum(axis=1)) / room
        step -= (inner + missing[:, None] * mine) @ points.T
        step[lines, own] += missing
        shrunk = np.float32(1.6) * step + np.float32(-0.6) * shrunk + taken
        taken = np.clip(shrunk, -threshold, threshold)
        taken[lines, own] = 0
        shrunk -= taken
    total = taken @ points
    functionals = total + ((total * mine).sum(axis=1) / room)[:, None] * mine
    return functionals.astype(np.float64), np.abs(shrunk)


def certified(frame: Frame, functionals: Floats, own: Ids) -> Ids:
    """int64 [m]: for each i of ``own`` [m] the largest k that its functional [m, r] certifies, as the module says."""
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
) -> KruskalBounds:
    """Bounds on the Kruskal rank of ``vectors`` [N, d]; no effort beyond deciding whether it is at least ``wanted``.

    ``budget`` is how many subsets of up to 16 vectors to go through; larger ones, of k, count (k/16)³-fold. Then
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


def _asked(known: KruskalBounds, wanted: int | None) -> int:
    return known.upper if wanted is None else wanted


def _open(known: KruskalBounds, wanted: int | None) -> bool:
    return known.lower < _asked(known, wanted) <= known.upper


def _at_first_sight(vectors: Floats) -> KruskalBounds:
    """What zero vectors and parallel ones say, exactly."""
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
    """The shortest integer vector parallel to a non-zero one, its first non-zero entry positive.

    >>> _primitive([0, -4, 6])
    (0, 2, -3)
    """
    divisor = math.gcd(*row)
    if next(filter(None, row)) < 0:
        divisor = -divisor
    return tuple(number // divisor for number in row)


def _by_elimination(known: KruskalBounds, circuits: Circuits) -> KruskalBounds:
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


def _by_bases(known: KruskalBounds, circuits: Circuits) -> KruskalBounds:
    """Circuits from all vectors, expressed in random bases."""
    total, dim = circuits.vectors.shape
    for _ in range(min(_BASES, 1 + _ELIMINATION // (total * dim**2))):
        known = known.refuted(circuits.smallest(circuits.rng.permutation(total), known.upper + 1))
    return known


def _by_functionals(known: KruskalBounds, circuits: Circuits) -> KruskalBounds:
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


def _size_within(budget: int, known: KruskalBounds, wanted: int | None) -> int | None:
    """The largest size of subsets that is open, is asked for, and has few enough of them; ``None`` if there is none."""
    if not _open(known, wanted):
        return None
    sizes = range(_asked(known, wanted), known.lower, -1)
    most = budget * 16**3
    return next((size for size in sizes if math.comb(known.vectors, size) * max(16, size) ** 3 <= most), None)


def _by_all_subsets(known: KruskalBounds, circuits: Circuits, size: int) -> tuple[KruskalBounds, bool]:
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


def _by_samples(known: KruskalBounds, circuits: Circuits, size: int, samples: int) -> KruskalBounds:
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

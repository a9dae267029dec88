"""Ranks of matrices of float64 numbers: the exact rank and the numerical rank.

A float64 number is a dyadic rational, so a matrix of them has an exact rank. :func:`exact_rank`, :func:`independent`
and :func:`context_ranks` return it. :func:`numerical_rank` counts the singular values above a tolerance. It is a
statement about all matrices near the given one, and about the tolerance.

**Exact.** Rows are scaled to integers, and ranks taken modulo primes. A minor that is not 0 modulo a prime is not 0, so
the rank modulo any prime is a lower bound. Were the rank larger than the largest rank r seen, some (r+1)-minor would be
a non-zero multiple of every prime tried; by Hadamard's inequality it is at most the product of the r+1 largest norms of
rows, or of columns. Once the primes multiply to more, the rank is r.

**Certified in floats.** Rows are independent if their Gram matrix G is regular; G is regular if ‖I − GX‖ < 1 for any
matrix X at all: else vᵀG = 0 for some v ≠ 0, so vᵀ(I − GX) = vᵀ, and 1 is an eigenvalue of a matrix of norm below 1. X
is an inverse in float64 arithmetic, the norm the largest row sum of magnitudes, and every rounding on the way to it is
bounded and added. What is assumed: float64 arithmetic as IEEE 754 has it, and matrix products that add up products, in
any order, fused or not. A sum of d products is then within d·2⁻⁵³/(1 − d·2⁻⁵³) of the sum of their magnitudes (Higham,
*Accuracy and Stability of Numerical Algorithms*, section 3.1), to which underflow adds less than 2⁻¹⁰⁰⁰. Nothing is
assumed of the inverse.

Not checked: that the numbers mean anything beyond their last bit. Vectors that are dependent except for the rounding
of their coordinates are independent here.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.tasks.arrays import Flags, Floats, Ids, as_floats
from byheart.tasks.distinct import distinct, first_positions

if TYPE_CHECKING:
    from flint import fmpz_mat

SAFETY = 8
"""Factor between max(shape)·2⁻⁵² and the default tolerance of a numerical rank."""
TOLERANCES = tuple(10.0**-power for power in range(2, 15))
"""Further tolerances at which a numerical rank is reported."""
UNDERFLOW = 2.0**-1000
"""Bound on what a sum of products of numbers below 2⁷⁰ loses to underflow, whatever its length."""

_EPSILON = 2.0**-52
_AT_ONCE = 2**21
_FIRST_PRIME = 2**62


@dataclass(frozen=True)
class NumericalRank:
    """Number of singular values above a tolerance. All values are relative to the largest singular value."""

    rank: int
    tolerance: float
    above: float | None
    """Smallest singular value above the tolerance; ``None`` if there is none (all entries are 0)."""
    below: float | None
    """Largest singular value not above the tolerance; ``None`` if there is none (full rank)."""
    others: tuple[tuple[float, int], ...]
    """Rank at each of :data:`TOLERANCES`."""

    @property
    def stable(self) -> bool:
        """True if the rank is the same at all of :data:`TOLERANCES`."""
        return all(rank == self.rank for _, rank in self.others)

    def __str__(self) -> str:
        claim = f"numerical rank {self.rank} at relative tolerance {self.tolerance:.1e}"
        if self.above is None:
            return f"{claim}: all entries are 0"
        lowest = "0" if self.below is None else f"{self.below:.1e}"
        same = f"the same for tolerances from {lowest} to {self.above:.1e}"
        if self.stable:
            return f"{claim}: {same}"
        before = (-1, *(rank for _, rank in self.others))
        changes = [f"{rank} at {tol:.0e}" for (tol, rank), old in zip(self.others, before, strict=False) if rank != old]
        return f"{claim}: {same}; {', '.join(changes)}"


class ContextRanks(NamedTuple):
    """Exact ranks of N contexts, and how each was decided."""

    ranks: Ids
    """int64 [N]."""
    by_integers: Flags
    """bool [N]: True for exact arithmetic; False for a certificate in floats, by equal rows and a residual."""

    def __str__(self) -> str:
        low, high = int(self.ranks.min()), int(self.ranks.max())
        span = f"rank {low}" if low == high else f"ranks {low} to {high}"
        exactly = int(self.by_integers.sum())
        return f"{len(self.ranks):,} contexts of {span}, {exactly:,} of them decided by exact arithmetic"


def numerical_rank(matrix: npt.ArrayLike, tolerance: float | None = None) -> NumericalRank:
    """Count the singular values of ``matrix`` [n, d] above ``tolerance`` times the largest.

    The default tolerance is :data:`SAFETY` times max(n, d)·2⁻⁵², about the error of an SVD in float64.

    >>> print(numerical_rank([[1, 0], [1, 1e-9]]))
    numerical rank 2 at relative tolerance 3.6e-15: the same for tolerances from 0 to 5.0e-10; 1 at 1e-02, 2 at 1e-10
    """
    array = as_floats("matrix", matrix, shape=("n", "d"))
    if tolerance is None:
        tolerance = max(array.shape) * _EPSILON * SAFETY
    elif not 0 <= tolerance < 1:
        raise BadInput(f"tolerance is {tolerance}; expected 0 or more and below 1, because it is relative")
    values = np.linalg.svd(np.ldexp(array, -math.frexp(np.abs(array).max())[1]), compute_uv=False)
    if values[0] == 0:
        return NumericalRank(0, tolerance, None, None, tuple((level, 0) for level in TOLERANCES))
    values = values / values[0]
    rank = int((values > tolerance).sum())
    return NumericalRank(
        rank=rank,
        tolerance=tolerance,
        above=float(values[rank - 1]),
        below=float(values[rank]) if rank < len(values) else None,
        others=tuple((level, int((values > level).sum())) for level in TOLERANCES),
    )


def exact_rank(matrix: npt.ArrayLike) -> int:
    """Return the rank of ``matrix`` [n, d]. Every entry is the dyadic rational that it represents.

    >>> exact_rank([[0.1, 0.3], [0.3, 0.9]]), exact_rank([[0.1, 0.2], [0.3, 0.6]])
    (2, 1)
    """
    array = as_floats("matrix", matrix, shape=("n", "d"))
    return _rank_of_integers(whole_rows(array))


def independent(vectors: npt.ArrayLike) -> bool:
    """Return True if ``vectors`` [k, d] are linearly independent, by a residual in floats or exact arithmetic.

    >>> independent([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), independent([[1, 2, 3], [4, 5, 6], [7, 8, 9 + 2**-49]])
    (False, True)
    """
    array = as_floats("vectors", vectors, shape=("n", "d"))
    if len(array) > array.shape[1]:
        return False
    return bool(surely_full(array[None])[0]) or exact_rank(array) == len(array)


def context_ranks(contexts: npt.ArrayLike) -> ContextRanks:
    """Return the exact rank of each of ``contexts`` [N, n, d], or of one context [n, d].

    Equal rows and rows of zeros are omitted, which is exact. If a residual then certifies that the rest has the largest
    rank that its shape allows, that is the answer. Only the others take exact arithmetic: tenths of a millisecond each
    if their rank turns out to be full, milliseconds if not.

    >>> context_ranks([[[1, 0], [0, 1], [1, 1]], [[1, 2], [1, 2], [0, 0]], [[1, 3], [2, 6], [3, 9]]])
    ContextRanks(ranks=array([2, 1, 1]), by_integers=array([False, False,  True]))
    """
    shape = ("n", "d") if np.ndim(contexts) == 2 else ("N", "n", "d")
    stack = as_floats("contexts", contexts, shape=shape)
    stack = stack.reshape(-1, *stack.shape[-2:])
    kept = _first_rows(stack)
    counts = kept.sum(axis=1)
    ranks, by_integers = np.minimum(counts, stack.shape[2]), np.zeros(len(stack), np.bool_)
    for rows in np.unique(counts[counts > 0]).tolist():
        examples = np.flatnonzero(counts == rows)
        remaining = stack[examples][kept[examples]].reshape(len(examples), rows, -1)
        doubtful = np.flatnonzero(~surely_full(remaining))
        by_integers[examples[doubtful]] = True
        ranks[examples[doubtful]] = [exact_rank(remaining[example]) for example in doubtful]
    return ContextRanks(ranks, by_integers)


def _first_rows(stack: Floats) -> Flags:
    """Mark the rows of each context [n, d] that are neither zero nor equal to an earlier row of it: bool [N, n]."""
    examples, length, dim = stack.shape
    ids = distinct(stack.reshape(-1, dim)).ids.reshape(examples, length)
    first = first_positions(ids, np.arange(examples)) == np.arange(length)
    return np.asarray(first & stack.any(axis=2), np.bool_)


def surely_full(stack: Floats) -> Flags:
    """Mark the matrices of ``stack`` [B, k, d] for which a residual certifies rank min(k, d): bool [B].

    ``False`` proves nothing.
    """
    if stack.shape[1] > stack.shape[2]:
        stack = stack.transpose(0, 2, 1)
    at_once = max(1, _AT_ONCE // math.prod(stack.shape[1:]))
    return np.concatenate([_surely_full(stack[at : at + at_once]) for at in range(0, len(stack), at_once)])


def _surely_full(stack: Floats) -> Flags:
    rows = scaled(stack)
    grams = rows @ rows.transpose(0, 2, 1)
    return surely_regular(grams, gram_error(grams, rows.shape[2]))


def scaled(rows: Floats) -> Floats:
    """Scale each of ``rows`` [..., d] by the power of two that brings its largest magnitude into [1/2, 1).

    Nothing is rounded except what lies more than 2¹⁰²¹ below that, and that by less than 2⁻¹⁰⁷⁴.
    """
    exponents = np.frexp(np.abs(rows).max(axis=-1, keepdims=True))[1]
    with np.errstate(under="ignore"):
        powers: Floats = np.ldexp(rows, -exponents)
    return powers


def gram_error(grams: Floats, dim: int) -> Floats:
    """Bound the error of an entry of each of ``grams`` [B, k, k], products of rows of dimension ``dim``: [B].

    The magnitudes of the products add up to no more than the product of two norms, so to no more than the largest
    diagonal entry; twice the rounding covers that this entry is rounded itself.
    """
    largest: Floats = np.diagonal(grams, axis1=1, axis2=2).max(axis=1)
    return 2 * rounding(dim) * largest + UNDERFLOW


def rounding(terms: int) -> float:
    """Bound the relative error of a float64 sum of products: relative to the sum of magnitudes, plus three roundings.

    >>> rounding(64) < 1e-14
    True
    """
    return (terms + 4) * 2.0**-53


def surely_regular(grams: Floats, errors: Floats) -> Flags:
    """Mark the ``grams`` [B, k, k] that are certified regular, as all matrices within ``errors`` [B] are: bool [B].

    If every entry of G is within e of that of the given G', every entry of I − GX is within e times the column sum of
    |X| of that of I − G'X. The product G'X is rounded, which a term of its own covers. The sums of non-negative numbers
    are right up to a factor well below 2, so the norm is below 1 if it comes out below 1/2. What overflowed or is not a
    number compares as not certified.
    """
    size = grams.shape[1]
    inverses = _rough_inverses(grams)
    with np.errstate(over="ignore", invalid="ignore"):
        residuals = np.abs(np.eye(size) - grams @ inverses)
        magnitudes = np.abs(inverses)
        slack = rounding(size) * (np.abs(grams) @ magnitudes + 1)
        slack += errors[:, None, None] * magnitudes.sum(axis=1, keepdims=True)
        norms = (residuals + slack + UNDERFLOW).sum(axis=2).max(axis=1)
    return np.asarray(norms < 0.5)


def _rough_inverses(grams: Floats) -> Floats:
    """Invert ``grams`` [B, k, k] roughly, each moved off singularity by a few roundings."""
    size = grams.shape[1]
    traces = np.trace(grams, axis1=1, axis2=2)
    ridges = np.where(traces > 0, traces, 1.0) * _EPSILON
    try:
        return np.linalg.inv(grams + ridges[:, None, None] * np.eye(size)).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return np.zeros_like(grams)


def whole_rows(rows: Floats) -> list[list[int]]:
    """Return each of ``rows`` [n, d] times the power of two that makes its entries integers, not all of them even.

    >>> whole_rows(np.array([[0.5, 0.75], [8.0, 0.0], [0.0, 0.0]]))
    [[2, 3], [1, 0], [0, 0]]
    """
    fractions, exponents = np.frexp(rows)
    digits = np.ldexp(fractions, 53).astype(np.int64)
    zeros = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    lowest = np.where(digits != 0, exponents + zeros, 2**20)
    shifts = np.where(digits != 0, lowest - lowest.min(axis=1, keepdims=True), 0)
    odd = np.where(digits != 0, digits >> np.maximum(zeros, 0), 0)
    if (np.frexp(np.abs(odd).astype(np.float64))[1] + shifts).max() < 63:
        whole: list[list[int]] = (odd << shifts).tolist()
        return whole
    return [
        [number << shift for number, shift in zip(*pair, strict=True)]
        for pair in zip(odd.tolist(), shifts.tolist(), strict=True)
    ]


def _rank_of_integers(rows: list[list[int]]) -> int:
    from flint import fmpz_mat

    matrix = fmpz_mat(rows)
    full = min(len(rows), len(rows[0]))
    rank, product, number = rank_modulo(matrix, prime(0)), prime(0), 1
    if rank == full:
        return rank
    columns = list(zip(*rows, strict=True))
    squares = [sorted((sum(x * x for x in line) for line in lines), reverse=True) for lines in (rows, columns)]
    # Every prime so far gave at most this rank, so all of them divide a minor of more rows than it.
    while rank < full and product**2 <= min(math.prod(some[: rank + 1]) for some in squares):
        rank = max(rank, rank_modulo(matrix, prime(number)))
        product *= prime(number)
        number += 1
    return rank


def rank_modulo(matrix: "fmpz_mat", modulus: int) -> int:
    """Return the rank of an integer matrix modulo a prime, which is at most its rank."""
    from flint import nmod_mat

    return nmod_mat(matrix, modulus).rank()


@cache
def prime(number: int) -> int:
    """Return prime ``number`` below 2⁶², the largest first.

    >>> 2**62 - prime(0), 2**62 - prime(1)
    (57, 87)
    """
    from flint import fmpz

    candidate = (prime(number - 1) if number else _FIRST_PRIME) - 1
    while not fmpz(candidate).is_prime():
        candidate -= 1
    return candidate

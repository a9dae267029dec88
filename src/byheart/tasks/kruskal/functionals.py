"""Functionals that certify that every k vectors are independent.

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

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from byheart.tasks.checks import Floats, Ids
from byheart.tasks.ranks import UNDERFLOW, rounding, scaled

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
